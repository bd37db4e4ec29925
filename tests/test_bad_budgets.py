"""Invalid options of fixed-budget algorithms are named before anything compiles."""

from functools import partial

import numpy as np
import pytest
from counting import refused
from run_settings import CANONICAL, SOARE

import jaxbandits as jb

EYE = np.eye(3)
BAD = {
    "budget below the stages of gse": (
        (CANONICAL, partial(jb.gse, budget=2)),
        "budget must be at least the 3 stages, got 2",
    ),
    "budget below the stages": (
        (CANONICAL, partial(jb.sequential_halving, budget=2)),
        "budget must be at least the 3 stages, got 2",
    ),
    "budget 2.5": (
        (CANONICAL, partial(jb.gse, budget=7.5)),
        "budget must be a whole number, 1 or above, got 7.5",
    ),
    "no budget for any algorithm": (
        (SOARE, jb.at_budget(jb.lingape)),
        "budget or per_arm must be given, one of the two, got None and None",
    ),
    "two budgets": (
        lambda: jb.at_budget(jb.lingape, np.int64(40), per_arm=np.int64(10)),
        "budget or per_arm must be given, one of the two, got 40 and 10",
    ),
    "a second budget that is bound later": (
        (SOARE, partial(jb.at_budget(jb.lingape, 40), per_arm=10)),
        "budget or per_arm must be given, one of the two, got 40 and 10",
    ),
    "more draws of each arm than fit a whole number": (
        (CANONICAL, partial(jb.gse, per_arm=2**61 + 3)),
        f"per_arm must be at most {2**59} for the 8 arms, got {2**61 + 3}",
    ),
    "more draws of each arm at a budget": (
        (CANONICAL, jb.at_budget(jb.lingape, per_arm=2**59 + 1)),
        f"per_arm must be at most {2**59} for the 8 arms, got {2**59 + 1}",
    ),
    "a budget of nothing": (
        (SOARE, jb.at_budget(jb.lingape, 0)),
        "budget must be a whole number, 1 or above, got 0",
    ),
    "an option of an algorithm at a budget": (
        (SOARE, jb.at_budget(partial(jb.lingape, delta=2.0), 40)),
        r"delta must be .*\(0, 1\), .*got 2.0",
    ),
    "an option that no algorithm at a budget knows": (
        (SOARE, jb.at_budget(partial(jb.lingape, detla=0.1), 40)),
        "detla",
    ),
    "a budget within a budget": (
        lambda: jb.at_budget(partial(jb.gse, budget=40), 30),
        "algorithm must leave the budget to at_budget, it binds .'budget'.",
    ),
    "a number at a budget": (lambda: jb.at_budget(3, 30), "algorithm must be a constructor, got 3"),
    "an answer nobody knows": (
        (SOARE, jb.at_budget(jb.lingape, 40, answer="last")),
        "answer must be one of 'inner', 'most_pulled', got 'last'",
    ),
    "most pulled among targets": (
        (jb.instances.transductive(4), jb.at_budget(jb.rage, 40, answer="most_pulled")),
        "answer must be 'inner' where the targets are not the arms",
    ),
    "targets at a budget that nobody knows of": (
        (jb.instances.transductive(4), jb.at_budget(jb.lingape, 40)),
        r"instance: its targets are not its arms, among which at_budget\(lingape\) chooses",
    ),
    "budget below the arms": (
        (SOARE, partial(jb.bayes_gap, budget=3)),
        "budget must be at least the 4 arms, each of which is drawn once, got 3",
    ),
    "a kernel nobody knows": (
        (SOARE, partial(jb.bayes_gap, per_arm=5, kernel="rbf")),
        "kernel must be one of 'linear', .*got 'rbf'",
    ),
    "an oracle that knows nothing": (
        (
            jb.instances.tabular(EYE, [1.0, 0.0, 0.0]),
            partial(jb.bayes_gap, per_arm=5, hardness="oracle"),
        ),
        "gaps must be given for hardness 'oracle' where theta is unknown, got None",
    ),
    "gaps of other arms": (
        (SOARE, partial(jb.bayes_gap, per_arm=5, hardness="oracle", gaps=np.ones(3))),
        r"gaps must be .K., for hardness 'oracle' alone, got shape \(3,\)",
    ),
    "gaps that would not be used": (
        (SOARE, partial(jb.bayes_gap, per_arm=5, gaps=np.ones(4))),
        "gaps must be .K., for hardness 'oracle' alone",
    ),
    "no budget": ((CANONICAL, jb.gse), "budget"),
    "a design gse does not know": (
        (CANONICAL, partial(jb.gse, budget=40, design="d_optimal")),
        "design must be one of 'uniform', 'fwg', .* got 'd_optimal'",
    ),
    "a rounding gse does not know": (
        (CANONICAL, partial(jb.gse, budget=40, rounding="floor")),
        "rounding must be one of .*'ceil', 'multinomial', got 'floor'",
    ),
    "a start of a design that has none": (
        (CANONICAL, partial(jb.gse, budget=40, design="d_opt", start="kumar_yildirim")),
        "start='kumar_yildirim' is for one of the designs 'fwg', 'd_opt_fw', 'wynn', 'fedorov'",
    ),
    "forced draws below none": (
        (CANONICAL, partial(jb.gse, budget=40, forced=-1)),
        "forced must be a whole number, 0 or above, got -1",
    ),
    "no clusters": (
        (CANONICAL, partial(jb.gse, budget=40, design="kmeans", clusters=0)),
        "clusters must be a whole number, 1 or above, got 0",
    ),
    "no budget of od_linbai": ((CANONICAL, jb.od_linbai), "budget or per_arm must be given"),
    "two budgets of od_linbai": (
        (CANONICAL, partial(jb.od_linbai, budget=40, per_arm=5)),
        "budget or per_arm must be given, one of the two, got 40 and 5",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_budget_is_named_before_anything_compiles(name):
    refused(*BAD[name])


def test_the_largest_number_of_draws_of_each_arm_is_played_as_such():
    algorithm = partial(jb.gse, per_arm=2**59)
    runs = jb.simulate(CANONICAL, algorithm, replications=1, max_pulls=2**62)
    assert runs.pulls.tolist() == [2**62]
