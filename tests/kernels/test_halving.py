import itertools
import math

import pytest

from jaxbandits.kernels.allocate import halving


@pytest.mark.parametrize("eta", [2, 3, 5, 7])
def test_sizes_fall_by_integer_ceilings(eta):
    for num_arms in (1, 2, 7, 16, 64, 124, 125, 126, 1000):
        plan = halving.schedule(num_arms, eta)
        sizes = plan.sizes.tolist()
        assert sizes[0] == num_arms
        assert sizes[-1] == 1
        assert plan.stages == len(sizes) - 1
        pairs = itertools.pairwise(sizes)
        assert all(after == math.ceil(before / eta) for before, after in pairs)
        assert eta**plan.stages >= num_arms > (eta ** (plan.stages - 1) if plan.stages else 0)


@pytest.mark.parametrize("budget", [4, 5, 99, 320])
def test_the_budget_is_spent_exactly_and_late(budget):
    plan = halving.schedule(16)
    draws = [plan.draws(budget, stage) for stage in range(plan.stages)]
    assert sum(draws) == budget
    assert sorted(draws) == draws
    assert draws[-1] - draws[0] <= 1


def test_what_a_stage_leaves_may_be_discarded():
    plan = halving.schedule(16)
    assert [plan.draws(43, stage, "discard") for stage in range(4)] == [10] * 4
