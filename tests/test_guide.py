"""The skeleton of the guide for new algorithms runs as it is printed."""

import doctest
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandits as jb
from benchmarks import pages

GUIDE = Path(jb.__file__).parents[1] / "docs" / "new_algorithm.md"
MODULE = "jaxbandits.algorithms.budget.explore_first"


@pytest.fixture
def explore_first(monkeypatch):
    block = GUIDE.read_text().split("```python\n")[1].split("```")[0]
    names = {"__name__": MODULE, "__package__": MODULE.rpartition(".")[0]}
    exec(block, names)
    monkeypatch.setattr(jb, "explore_first", names["explore_first"], raising=False)
    return names["explore_first"]


def test_the_example_of_its_docstring_holds(explore_first):
    examples = doctest.DocTestFinder().find(explore_first, "explore_first", globs={})
    results = doctest.DocTestRunner().run(examples[0])
    assert (results.failed, results.attempted) == (0, 3)


def test_it_draws_in_turn_and_answers_the_best(explore_first):
    instance = jb.instances.canonical(4, gap=1.0)
    runs = jb.simulate(instance, explore_first, replications=200)
    assert (runs.arm_pulls == 20).all()
    # The best of four means of 20 draws, 1 ahead: P(error) <= 3 Phi(-sqrt(10)) = 0.0024.
    assert runs.correct.sum() >= 196


def test_its_option_is_checked_and_says_what_is_allowed(explore_first):
    with pytest.raises(ValueError, match="each must be a whole number, 1 or above, got 0"):
        explore_first(np.eye(3), each=0)
    with jax.enable_x64(True):
        algorithm = explore_first(np.eye(3), each=np.float64(2.0))
        state = algorithm.init(jax.random.key(0))
        assert int(algorithm.ask(jax.random.key(1), state).arm) == 0


def test_it_gets_a_row_in_the_table_of_all_algorithms(explore_first, monkeypatch):
    monkeypatch.setattr(pages.algorithms, "explore_first", explore_first, raising=False)
    names = [*pages.algorithms.__all__, "explore_first"]
    monkeypatch.setattr(pages.algorithms, "__all__", names)
    row = next(line for line in pages.index().splitlines() if "`explore_first`" in line)
    assert row.startswith("| `explore_first` | best arm, fixed budget, no structure | any means |")
    assert row.endswith(
        "| none | a round K | not yet |  |  | S. Bubeck, R. Munos, G. Stoltz, "
        "Theoretical Computer Science 412, 2011 |"
    )
    assert "### `explore_first`" in pages.deviations()
