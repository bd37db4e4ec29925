"""What cannot be played is named before anything compiles."""

import dataclasses
from functools import partial

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from worlds import CANONICAL, CUBE, SOARE

import jaxbandits as jb


def draws_nan(key):
    return jb.instances.tabular(jnp.eye(2), jnp.array([1.0, jnp.nan]) * jax.random.normal(key))


EYE = np.eye(3)
FLAT = np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]])
BAD = {
    "means of another length": (
        lambda: jb.instances.tabular(EYE, [1.0, 0.0]),
        r"means must have shape \(3,\), got \(2,\)",
    ),
    "theta of another length": (
        lambda: jb.instances.linear(EYE, [1.0, 0.0]),
        r"theta must have shape \(3,\), got \(2,\)",
    ),
    "arms that are a vector": (
        lambda: jb.instances.linear([1.0, 0.0], [1.0]),
        r"arms must be a table \[K, d\], got shape \(2,\)",
    ),
    "targets of other dimension": (
        lambda: jb.instances.linear(EYE, EYE[0], targets=[[1.0, 0.0]]),
        "targets must have the arms' 3 features, got 2",
    ),
    "NaN features": (
        lambda: jb.instances.linear([[1.0, np.nan], [0.0, 1.0]], [1.0, 0.0]),
        r"arms must be finite, got NaN or infinity at \[0, 1\]",
    ),
    "NaN means": (
        lambda: jb.instances.tabular(EYE, [1.0, np.nan, 0.0]),
        "means must be finite, got NaN",
    ),
    "delta 0": ((SOARE, partial(jb.lingape, delta=0.0)), r"delta must be .*\(0, 1\), got 0.0"),
    "delta 1": ((SOARE, partial(jb.rage, delta=1.0)), r"delta must be .*\(0, 1\), got 1.0"),
    "a variant nobody knows": (
        (SOARE, partial(jb.xy_adaptive, variant="published")),
        "variant must be one of 'rage', 'soare', got 'published'",
    ),
    "a beginning nobody knows": (
        (SOARE, partial(jb.xy_adaptive, begin="none")),
        "begin must be one of 'ridge', 'basis', 'every', got 'none'",
    ),
    "alpha 1": ((SOARE, partial(jb.xy_adaptive, alpha=1)), r"alpha must be .*\(0, 1\), got 1"),
    "no draws": (
        (SOARE, partial(jb.xy_adaptive, max_draws=0)),
        "max_draws must be a whole number, 1 or above, got 0",
    ),
    "delta a word": ((SOARE, partial(jb.lingape, delta="small")), "delta must be .*got 'small'"),
    "regret rounding asked too little": (
        (SOARE, partial(jb.rage, rounding="regret", rounding_epsilon=0.4)),
        "rounding_epsilon must be at most 0.333 for this rounding, got 0.4",
    ),
    "a design nobody knows": (
        (SOARE, partial(jb.rage, design="simplex")),
        "design must be one of 'interior_point', 'frank_wolfe', got 'simplex'",
    ),
    "a burn-in of no known size": (
        (jb.instances.bernoulli(EYE, [0.5, 0.4, 0.3]), partial(jb.rage_glm, family="logistic")),
        "theta_norm must be given, got None",
    ),
    "normal rewards for a logistic model": (
        (SOARE, jb.rage_glm),
        "family must be 'logistic', got 'gaussian'",
    ),
    "probit rewards for a logistic model": (
        (jb.instances.glm(EYE, EYE[0], family="probit"), jb.rage_glm),
        "family must be 'logistic', got 'probit'",
    ),
    "rage_glm with regret rounding asked too little": (
        (
            jb.instances.glm(EYE, EYE[0]),
            partial(jb.rage_glm, rounding="regret", rounding_epsilon=0.4),
        ),
        "rounding_epsilon must be at most 0.333 for this rounding, got 0.4",
    ),
    "delta NaN": ((SOARE, partial(jb.lingape, delta=float("nan"))), "delta must be .*got nan"),
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
        (SOARE, jb.at_budget(jb.lingape, 40, per_arm=10)),
        "budget or per_arm must be given, one of the two",
    ),
    "a budget of nothing": (
        (SOARE, jb.at_budget(jb.lingape, 0)),
        "budget must be a whole number, 1 or above, got 0",
    ),
    "an option of an algorithm at a budget": (
        (SOARE, jb.at_budget(partial(jb.lingape, delta=2.0), 40)),
        r"delta must be .*\(0, 1\), got 2.0",
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
    "a width nobody knows": (
        (SOARE, partial(jb.lin_ucb, alpha="pairwise"), {"horizon": 5}),
        "alpha must be a finite number above 0 or one of 'self_normalised_det', .*got 'pairwise'",
    ),
    "theta_norm unknown to lin_ucb": (
        (
            jb.instances.tabular(EYE, [1.0, 0.0, 0.0]),
            partial(jb.lin_ucb, alpha="self_normalised"),
            {"horizon": 5},
        ),
        "theta_norm must be given for alpha 'self_normalised', got None",
    ),
    "a scale nobody knows": (
        (SOARE, partial(jb.lin_ts, scale="informal"), {"horizon": 5}),
        "scale must be a finite number above 0 or one of 'theory', got 'informal'",
    ),
    "a theory without a horizon": (
        (CUBE, partial(jb.ucb_glm, alpha="theory")),
        "horizon must be given for alpha 'theory', got None",
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
        "budget or per_arm must be given, one of the two, got .*40.* and .*5",
    ),
    "an option nobody knows": ((SOARE, partial(jb.lingape, detla=0.1)), "detla"),
    "a threshold nobody knows": (
        (SOARE, partial(jb.lingape, threshold="large")),
        "threshold must be one of .*'pairwise'.*got 'large'",
    ),
    "rage on a line": (
        (jb.instances.tabular(FLAT, [1.0, 2.0, -1.0]), jb.rage),
        r"arms must span R\^2 .*got rank 1",
    ),
    "frank_wolfe_sampling on a line": (
        (jb.instances.tabular(FLAT, [1.0, 2.0, -1.0]), jb.frank_wolfe_sampling),
        r"arms must span R\^2 .*got rank 1",
    ),
    "lazy_track_and_stop on a line": (
        (jb.instances.tabular(FLAT, [1.0, 2.0, -1.0]), jb.lazy_track_and_stop),
        r"arms must span R\^2 .*got rank 1",
    ),
    "no laziness": (
        (SOARE, partial(jb.lazy_track_and_stop, laziness=0.0)),
        "laziness must be a finite number above 0, got 0.0",
    ),
    "a selection nobody knows": (
        (SOARE, partial(jb.top_two, selection="greedy")),
        "selection must be one of 'sampled', 'tracked', got 'greedy'",
    ),
    "glm_tsl on a line": (
        (jb.instances.bernoulli(FLAT, [0.2, 0.3, 0.1]), jb.glm_tsl, {"horizon": 5}),
        r"arms must span R\^2 .*got rank 1",
    ),
    "theta_norm unknown": (
        (jb.instances.tabular(EYE, [1.0, 0.0, 0.0]), jb.lingape),
        "theta_norm must be given for threshold 'pairwise', got None",
    ),
    "ratios of too many drawn arms": (
        (
            partial(jb.instances.sphere, num_arms=40, dim=9),
            partial(jb.lingape, selection="ratio"),
        ),
        "selection must be 'greedy' for 40 arms in 9 dimensions that are drawn anew",
    ),
    "ratios of other arms": (
        (SOARE, partial(jb.lingape, selection="ratio", ratios=np.ones((3, 3, 3)))),
        r"ratios must have shape \(4, 4, 4\), got \(3, 3, 3\)",
    ),
    "theta_norm unknown to alba": (
        (jb.instances.tabular(EYE, [1.0, 0.0, 0.0]), jb.alba),
        r"theta_norm must be given, got None \(unknown\)",
    ),
    "a design alba does not know": (
        (SOARE, partial(jb.alba, design="uniform")),
        "design must be one of 'd_opt', 'frank_wolfe', got 'uniform'",
    ),
    "m too large": ((SOARE, partial(jb.m_lingape, m=4)), "m must be below the 4 arms, got 4"),
    "no m": ((SOARE, partial(jb.lucb, m=None)), "m must be below the 4 arms, got None"),
    "targets that nobody knows of": (
        (jb.instances.transductive(4), jb.lingape),
        "instance: its targets are not its arms, among which lingape chooses",
    ),
    "ratios that would not be used": (
        (SOARE, partial(jb.m_lingape, m=2, ratios=np.ones((4, 4, 4)))),
        "ratios must go with selection 'ratio', got 'greedy'",
    ),
    "negative ratios": (
        (SOARE, partial(jb.lingape, selection="ratio", ratios=-np.ones((4, 4, 4)))),
        "ratios must be 0 or above",
    ),
    "m too large for averages": ((SOARE, partial(jb.ugape, m=5)), "m must be below the 4 arms"),
    "a threshold that needs features": (
        (SOARE, partial(jb.lucb, m=2, threshold="pairwise")),
        "threshold must be one of 'lucb1', 'heuristic', got 'pairwise'",
    ),
    "a ridge without a name": (
        (SOARE, partial(jb.lin_gifa, m=2, v0="theirs")),
        "v0 must be a finite number above 0 or one of 'paper', 'code', got 'theirs'",
    ),
    "a ridge of nothing": ((SOARE, partial(jb.m_lingape, m=2, v0=0.0)), "v0 must be .*got 0.0"),
    "a callable that draws no instance": (
        (lambda key: 3, jb.lingape),
        "instance must return an Instance for a key, got",
    ),
    "an instance that is none": ((3, jb.lingape), "instance must be an Instance .*got 3"),
    "no replications": (
        (SOARE, jb.lingape, {"replications": 0}),
        "replications must be a whole number, 1 or above: 0",
    ),
    "a negative seed": ((SOARE, jb.lingape, {"seed": -1}), "seed must be .*0 or above: -1"),
    "half a batch": ((SOARE, jb.lingape, {"batch": 0.5}), "batch must be .*: 0.5"),
    "no horizon": ((CUBE, jb.glm_tsl, {"horizon": 0}), "horizon must be .*: 0"),
    "no pulls": ((SOARE, jb.lingape, {"max_pulls": 0}), "max_pulls must be .*: 0"),
}


def attempt(what):
    if callable(what):
        return what()
    instance, build, *more = what
    return jb.simulate(instance, build, **{"replications": 3, **(more[0] if more else {})})


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_before_anything_compiles(name):
    what, message = BAD[name]
    with cases.compilations() as seen, pytest.raises(ValueError, match=message):
        attempt(what)
    assert seen == []


def test_an_instance_drawn_with_nan_is_named():
    """Only the draw itself can tell."""
    with pytest.raises(ValueError, match="instance: replication 0 drew one with NaN or infinity"):
        jb.simulate(draws_nan, partial(jb.lingape, theta_norm=1.0), replications=3)


def test_nan_in_some_draws_ends_the_loops_of_a_design():
    """A pivot that is NaN once made the search for a basis go on for ever."""

    def instance(key):
        hole = jnp.where(jax.random.uniform(key) < 0.3, jnp.nan, 1.0)
        arms = jnp.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]).at[1, 1].mul(hole)
        return jb.instances.linear(arms, jnp.array([1.0, 0.0]))

    with pytest.raises(ValueError, match="drew one with NaN or infinity"):
        jb.simulate(instance, partial(jb.gse, budget=30), replications=20)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("means", np.zeros(2), r"means must have shape \(4,\), got \(2,\)"),
        ("values", np.full(4, np.nan), "values must be finite"),
        ("noise_var", np.float64(-1), "noise_var must be .*got"),
        ("arms", np.full((4, 3), np.inf), "arms must be finite"),
    ],
)
def test_an_instance_made_by_hand_is_checked(field, value, message):
    instance = dataclasses.replace(SOARE, **{field: value})
    with cases.compilations() as seen, pytest.raises(ValueError, match=message):
        jb.simulate(instance, jb.lingape, replications=3)
    assert seen == []
