import itertools
import math

import pytest

from jaxbandits.kernels.allocate import halving


@pytest.mark.parametrize("eta", [2, 3, 5, 7])
def test_sizes_fall_by_integer_ceilings(eta):
    for num_arms in (1, 2, 7, 16, 64, 124, 125, 126, 1000):
        schedule = halving.schedule(num_arms, eta)
        sizes = schedule.sizes.tolist()
        assert sizes[0] == num_arms
        assert sizes[-1] == 1
        assert schedule.stages == len(sizes) - 1
        pairs = itertools.pairwise(sizes)
        assert all(after == math.ceil(before / eta) for before, after in pairs)
        assert (
            eta**schedule.stages
            >= num_arms
            > (eta ** (schedule.stages - 1) if schedule.stages else 0)
        )


@pytest.mark.parametrize("budget", [4, 5, 99, 320])
def test_the_budget_is_spent_and_later_stages_get_the_remainder(budget):
    schedule = halving.schedule(16)
    draws = [schedule.draws(budget, stage) for stage in range(schedule.stages)]
    assert sum(draws) == budget
    assert sorted(draws) == draws
    assert draws[-1] - draws[0] <= 1


def test_the_remainder_of_the_budget_may_be_discarded():
    schedule = halving.schedule(16)
    assert [schedule.draws(43, stage, "discard") for stage in range(4)] == [10] * 4
