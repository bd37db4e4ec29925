"""Invalid input is named before anything compiles."""

import dataclasses
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import compilations, refused
from programs import QUICK, key_of, simulate
from run_settings import CUBE, SOARE
from scipy import sparse

import jaxbandits as jb
from jaxbandits.design import checks as design_checks
from jaxbandits.engine import checks, host_loop
from jaxbandits.engine.episode import root_key
from jaxbandits.engine.partition import prepared


def own(arms, *, gamma=1.0):
    return jb.uniform(arms)


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
        r"arms must be finite, got NaN at \[0, 1\]",
    ),
    "NaN means": (
        lambda: jb.instances.tabular(EYE, [1.0, np.nan, 0.0]),
        "means must be finite, got NaN at",
    ),
    "infinite means": (
        lambda: jb.instances.tabular(EYE, [1.0, np.inf, 0.0]),
        r"means must be finite, got infinity at \[1\]",
    ),
    "delta 0": ((SOARE, partial(jb.lingape, delta=0.0)), r"delta must be .*\(0, 1\), .*got 0.0"),
    "delta 1": ((SOARE, partial(jb.rage, delta=1.0)), r"delta must be .*\(0, 1\), .*got 1.0"),
    "a delta whose share of a test is subnormal": (
        (SOARE, partial(jb.alba, delta=1e-307)),
        r"delta must be a number in \(0, 1\), 1e-250 or above, got 1e-307",
    ),
    "a variant nobody knows": (
        (SOARE, partial(jb.xy_adaptive, variant="published")),
        "variant must be one of 'rage', 'soare', got 'published'",
    ),
    "a beginning nobody knows": (
        (SOARE, partial(jb.xy_adaptive, begin="none")),
        "begin must be one of 'ridge', 'basis', 'every', got 'none'",
    ),
    "alpha 1": ((SOARE, partial(jb.xy_adaptive, alpha=1)), r"alpha must be .*\(0, 1\), .*got 1"),
    "no draws": (
        (SOARE, partial(jb.xy_adaptive, max_draws=0)),
        "max_draws must be a whole number, 1 or above, got 0",
    ),
    "delta a word": ((SOARE, partial(jb.lingape, delta="small")), "delta must be .*got 'small'"),
    "an accuracy below 0": (
        (SOARE, partial(jb.rage, epsilon=-0.1)),
        "epsilon must be a finite number, 0 or above, got -0.1",
    ),
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
    **{
        f"{build.__name__} of a theory without a horizon": (
            (CUBE, partial(build, **{option: name})),
            f"horizon must be given for {option} '{name}', got None",
        )
        for build, option, name in (
            (jb.ucb_glm, "alpha", "theory"),
            (jb.glm_ucb, "alpha", "theory"),
            (jb.glm_ucb, "alpha", "theory_horizon"),
            (jb.glm_tsl, "a", "theory"),
            (jb.glm_fpl, "a", "theory"),
            (jb.epsilon_greedy, "rate", "fading"),
        )
    },
    **{
        f"{build.__name__} for no rounds": (
            (CUBE, partial(build, horizon=horizon), {"horizon": 5}),
            f"horizon must be a whole number, 1 or above, got {horizon}",
        )
        for build, horizon in (
            (jb.glm_tsl, -3),
            (jb.glm_fpl, 0),
            (jb.glm_ucb, 0.5),
            (jb.ucb_glm, -1),
            (jb.epsilon_greedy, -1),
        )
    },
    "a scale of glm_fpl nobody knows": (
        (CUBE, partial(jb.glm_fpl, a="large"), {"horizon": 5}),
        "a must be a finite number, 0 or above or one of 'informal', 'theory', got 'large'",
    ),
    "first arms nobody knows": (
        (CUBE, partial(jb.glm_fpl, begin="random"), {"horizon": 5}),
        "begin must be one of 'basis', 'pivot', 'every', got 'random'",
    ),
    "an option nobody knows": (
        (SOARE, partial(jb.lingape, detla=0.1)),
        "^unknown option of lingape 'detla'; did you mean 'delta'\\? allowed: delta, epsilon, "
        "noise_var, ratios, selection, theta_norm, threshold, v0$",
    ),
    "an option nobody knows, called at once": (
        lambda: jb.lingape(EYE, detla=0.1),
        "unknown option of lingape 'detla'",
    ),
    "an option that resembles none": (
        (SOARE, partial(own, zzz=1)),
        "^unknown option of own 'zzz'; allowed: gamma$",
    ),
    "an option without a name": ((SOARE, partial(jb.rage, EYE)), "rage must have .* bound by name"),
    "an inner option nobody knows": (
        (SOARE, jb.at_budget(partial(jb.lingape, detla=0.1), budget=9)),
        r"unknown option of at_budget\(lingape\) 'detla'; .*allowed: answer, budget, delta",
    ),
    "an option of watched nobody knows": (
        (CUBE, jb.watched(partial(jb.glm_tsl, horizn=5)), {"horizon": 5}),
        r"unknown option of watched\(glm_tsl\) 'horizn'; did you mean 'horizon'",
    ),
    "a wrapper that was not called": (
        (SOARE, partial(jb.at_budget, jb.lingape, budget=9)),
        r"at_budget makes a constructor from another one; call it: at_budget\(lingape\)",
    ),
    "an option of an instance nobody knows": (
        (partial(jb.instances.sphere, num_arms=4, dimm=3), jb.lingape),
        "unknown option of sphere 'dimm'; did you mean 'dim'\\? allowed: dim, mix, noise_var, num",
    ),
    "an instance without its size": (
        (partial(jb.instances.sphere, num_arms=4), jb.lingape),
        "instance sphere: missing a required argument: 'dim'",
    ),
    "an option of a sweep's instance nobody knows": (
        lambda: jb.sweep(
            {"s": partial(jb.instances.soare, dmi=3)}, {"a": jb.lingape}, replications=2
        ),
        r"\[instances.s\] unknown option of soare 'dmi'; did you mean 'dim'",
    ),
    "complex arms": (
        lambda: jb.instances.linear(EYE * 1j, EYE[0]),
        "arms must be real numbers, got complex ones",
    ),
    "arms with a mask": (
        lambda: jb.instances.linear(np.ma.masked_equal(EYE, 0.0), EYE[0]),
        "arms must have all entries, got a masked array that lacks 6",
    ),
    "labels with a mask": (
        lambda: jb.instances.labelled(EYE, np.ma.masked_equal([0, 1, 2], 2), shown=2),
        "labels must have all entries, got a masked array that lacks 1",
    ),
    "sparse arms": (
        lambda: jb.instances.linear(sparse.eye(3), EYE[0]),
        "arms must be a full array, got a sparse dia_matrix",
    ),
    "an option with a mask": (
        lambda: jb.simulate(
            SOARE, partial(jb.xy_oracle, theta=np.ma.masked_equal(SOARE.theta, 0)), replications=2
        ),
        "theta must be a table",
    ),
    "complex arms of an algorithm": (lambda: jb.lingape(EYE * 1j), "arms must be real"),
    "complex theta": (lambda: jb.instances.linear(EYE, EYE[0] * 1j), "theta must be real"),
    "complex means": (lambda: jb.instances.tabular(EYE, EYE[0] * 1j), "means must be real"),
    "complex samples": (
        lambda: jb.instances.recorded(EYE, EYE * 1j, noise_var=1.0),
        "samples must be real",
    ),
    "complex theta of an oracle": ((SOARE, partial(jb.xy_oracle, theta=EYE[0] * 1j)), "theta must"),
    "a complex delta": ((SOARE, partial(jb.lingape, delta=np.complex128(0.1 + 1j))), "delta must"),
    "a complex norm": (
        lambda: jb.instances.tabular(EYE, EYE[0], theta_norm=1j),
        "theta_norm must be a finite number, 0 or above, got 1j",
    ),
    "arms of text": (
        lambda: jb.instances.linear([["a", "b"]], [1.0, 0.0]),
        "arms must be real numbers, got text",
    ),
    "arms of unequal length": (
        lambda: jb.instances.linear([[1.0, 2.0], [1.0]], [1.0, 0.0]),
        "arms must be a table of numbers: setting an array element",
    ),
    "rewards beyond the numbers": (
        lambda: jb.instances.linear(EYE * 1e200, EYE[0]),
        r"arms must have a largest entry from 3.1e-151 to 3.3e\+150, .*got 1e\+200",
    ),
    "noise that hides all means": (
        (jb.instances.canonical(3, gap=1.0, noise_var=1e40), jb.lingape),
        r"noise_var must be at most 2e\+31 for means that are at most 1 apart: .*got 1e\+40",
    ),
    **{
        f"{name} arms of {size:g}": (
            (jb.instances.linear(EYE * size, EYE[0] / size), build),
            f"a largest norm of {allowed} where .* v0 is {v0}, .*got {size:g}".replace("+", r"\+"),
        )
        for size, name, build, allowed, v0 in (
            (1e-150, "lingape", jb.lingape, "9.5e-07 to 1.6e+04", 1),
            (1e150, "lingape", jb.lingape, "9.5e-07 to 1.6e+04", 1),
            (1e-7, "top_two", jb.top_two, "9.5e-07 to 1.6e+04", 1),
            (1e5, "lin_game", jb.lin_game, "9.5e-07 to 1.6e+04", 1),
            (1e5, "lin_ucb", jb.lin_ucb, "9.5e-07 to 1.6e+04", 1),
            (1e5, "frank_wolfe_sampling", jb.frank_wolfe_sampling, "9.5e-07 to 1.6e+04", 1),
            (1e8, "lin_ts", jb.lin_ts, "9.5e-07 to 1.7e+07", 1),
            (1e4, "m_lingape", partial(jb.m_lingape, m=1), "1.5e-07 to 2.6e+03", 0.025),
            (1e3, "lin_gifa", partial(jb.lin_gifa, m=1, v0="code"), "4.8e-08 to 8.2e+02", 0.0025),
        )
    },
    "bayes_gap arms of 1e6": (
        (jb.instances.linear(EYE * 1e6, EYE[0]), partial(jb.bayes_gap, budget=9)),
        r"prior variances, at most prior_scale\^2 x . x, of 9.1e-13 to 6.9e\+10 times.*2.5e\+15",
    ),
    "bayes_gap with little noise": (
        (
            jb.instances.linear(EYE, EYE[0], noise_var=1e-9),
            partial(jb.bayes_gap, budget=9, kernel="matern32", prior_scale=50.0),
        ),
        r"prior variances, at most prior_scale\^2, of .* got 2.5e\+12 times",
    ),
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
    "theta_norm unknown to ofu_glb": (
        (jb.instances.bernoulli(EYE, [0.2, 0.3, 0.1]), jb.ofu_glb, {"horizon": 5}),
        "theta_norm must be given, got None",
    ),
    "a scale below 0": (
        (CUBE, partial(jb.evill, a=-1.0), {"horizon": 5}),
        "a must be a finite number, 0 or above, got -1.0",
    ),
    "no made-up rewards": (
        (CUBE, partial(jb.log_phe, a=0.0), {"horizon": 5}),
        "a must be a finite number above 0, got 0.0",
    ),
    "a family that log_phe does not know": (
        (SOARE, jb.log_phe, {"horizon": 5}),
        "family must be one of 'logistic', got 'gaussian'",
    ),
    "theta_norm unknown to ofu_ecolog": (
        (jb.instances.bernoulli(EYE, [0.2, 0.3, 0.1]), jb.ofu_ecolog, {"horizon": 5}),
        "theta_norm must be given, got None",
    ),
    "a family that ofu_ecolog does not know": (
        (SOARE, jb.ofu_ecolog, {"horizon": 5}),
        "family must be one of 'logistic', got 'gaussian'",
    ),
    "a family without a likelihood": (
        (jb.instances.glm(EYE, EYE[0], family="probit"), jb.ofu_glb, {"horizon": 5}),
        "family must be one of 'logistic', 'poisson', 'gaussian', got 'probit'",
    ),
    "theta_norm unknown": (
        (jb.instances.tabular(EYE, [1.0, 0.0, 0.0]), jb.lingape),
        "theta_norm must be given for threshold 'pairwise', got None.* in functools.partial or in "
        "Live.*"
        "rage, for the best arm, needs none",
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
    "m left out": (
        (SOARE, jb.lucb),
        r"missing a required.*'m' \(number of arms to return, below K; 1 for the best arm\)",
    ),
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
        "replications must be a whole number, 1 or above, got 0",
    ),
    "a negative seed": ((SOARE, jb.lingape, {"seed": -1}), "seed must be .*0 or above, got -1"),
    "half a batch": ((SOARE, jb.lingape, {"batch": 0.5}), "batch must be .*, got 0.5"),
    "no horizon": ((SOARE, jb.lin_ts, {"horizon": 0}), "horizon must be .*, got 0"),
    "no pulls": ((SOARE, jb.lingape, {"max_pulls": 0}), "max_pulls must be .*, got 0"),
    **{
        f"{name} {value}": (
            (SOARE, jb.lingape, {name: value}),
            f"^{name} must be at most {re.escape(most)}, got {value}$",
        )
        for name, value, most in (
            ("max_pulls", 2**70, f"2**62 = {2**62}"),
            ("horizon", 2**63, f"2**62 = {2**62}"),
            ("batch", 2**70, f"2**62 = {2**62}"),
            ("seed", 2**63, f"2**63 - 1 = {2**63 - 1}"),
            ("seed", 2**64, f"2**63 - 1 = {2**63 - 1}"),
            ("replications", 2**40 + 1, f"2**40 = {2**40}"),
        )
    },
    "more replications than there is memory": (
        (SOARE, jb.lingape, {"replications": 2**40}),
        r"replications must be at most \d+ here: each has \d+ bytes of results, and .* memory",
    ),
    "a budget beyond 64 bits": (
        (SOARE, partial(jb.sequential_halving, budget=2**70)),
        f"budget must be at most {2**62}, got {2**70}",
    ),
    "a size beyond 32 bits": ((SOARE, partial(jb.m_lingape, m=2**31)), "m must be at most"),
}


@pytest.mark.parametrize(
    "build",
    [
        partial(jb.lingape, theta_norm=1.0),
        partial(jb.gse, budget=60),
        partial(jb.lin_ucb, theta_norm=1.0),
        jb.uniform,
    ],
)
def test_arms_on_a_line_are_refused_only_by_algorithms_that_say_so(build):
    assert build(FLAT).ask


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_before_anything_compiles(name):
    key_of(0)  # making a key compiles, once
    refused(*BAD[name])


def test_an_instance_drawn_with_nan_is_named():
    """It is known only after the draw."""
    with pytest.raises(ValueError, match="instance: replication 0 drew one with NaN or infinity"):
        jb.simulate(draws_nan, partial(jb.lingape, theta_norm=1.0), replications=3)


@pytest.mark.parametrize("wrong", ["noise_var", "means"])
def test_an_instance_drawn_with_what_cannot_be_is_named(wrong):
    def instance(key):
        size = 1.5 + jax.random.uniform(key)
        if wrong == "noise_var":
            return jb.instances.linear(jnp.eye(3), [0.0, 0.5, 1.0], noise_var=-size)
        return jb.instances.bernoulli(jnp.eye(3), size * jnp.array([0.1, 0.5, 1.0]))

    with pytest.raises(ValueError, match="a negative noise_var, or means that its rewards cannot"):
        jb.simulate(instance, partial(jb.gse, budget=60), replications=4)


def test_a_design_of_arms_with_nan_ends_its_loops():
    """A NaN pivot once made the search for a basis run for ever."""

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
def test_an_instance_with_replaced_fields_is_checked(field, value, message):
    instance = dataclasses.replace(SOARE, **{field: value})
    with compilations() as seen, pytest.raises(ValueError, match=message):
        jb.simulate(instance, jb.lingape, replications=3)
    assert seen == []


def test_all_bits_of_a_seed_are_used():
    """Without double precision JAX uses only the lower 32 bits."""
    low, high = (jax.random.key_data(root_key(seed)).tolist() for seed in (5, 2**40 + 5))
    assert (low, high) == ([0, 5], [256, 5])


def test_means_that_are_equal_up_to_rounding_are_tied():
    tied = jb.instances.tabular(np.eye(2), [0.3, 0.1 + 0.2])
    runs = jb.simulate(tied, partial(jb.lucb, m=1), replications=2, max_pulls=20)
    assert runs.summary()["reasons"] == {"tied": 2}


@pytest.mark.parametrize("engine", sorted({"xla", QUICK}))
def test_a_program_that_exceeds_the_memory_is_refused_with_its_bytes(monkeypatch, engine):
    monkeypatch.setattr(host_loop, "check_lanes", lambda *_: None)
    monkeypatch.setattr(checks, "memory_bytes", lambda: 2**11)
    with pytest.raises(ValueError, match=r"program needs \S+ GiB .*memory of 1.91e-06 GiB; fewer"):
        simulate(SOARE, jb.lingape, engine=engine)


@pytest.mark.parametrize("solve", [jb.design.xy_optimal, jb.design.xy_frank_wolfe])
def test_designs_that_exceed_the_memory_are_refused_with_their_bytes(monkeypatch, solve):
    monkeypatch.setattr(design_checks, "memory_bytes", lambda: 2**10)
    said = r"design of 40 arms in 3 dimensions for 780 directions needs about \S+ GiB: .*9.54e-07"
    with pytest.raises(ValueError, match=said):
        solve(np.random.default_rng(0).normal(size=(40, 3)), np.eye(3)[np.arange(40) % 3])
    with pytest.raises(ValueError, match=r"design of 3 arms in 3 dimensions for 3 directions"):
        jb.design.oracle(jb.instances.linear(EYE, [1.0, 0.5, 0.0]))


def test_lanes_that_exceed_the_memory_are_refused_with_their_bytes(monkeypatch):
    large = jb.instances.soare(20, angle=0.5)
    monkeypatch.setattr(checks, "memory_bytes", lambda: 3 * 2**16)
    said = r"carries (\S+) GiB .*, and (\d+) replications side by side (\S+) GiB: .*memory of 0.000"
    monkeypatch.setattr(host_loop, "program", None)  # nothing compiles before
    with pytest.raises(ValueError, match=said) as error:
        jb.simulate(large, jb.lingape, replications=80, batch=64, engine="xla")
    each, lanes, together = map(float, re.search(said, str(error.value)).groups())
    assert together == pytest.approx(lanes * each, rel=0.01)
    assert each > large.arms.nbytes / 2**30
    assert "With `batch=8` they would fit." in str(error.value)
    # Eight lanes fit between two rounds, but not with what a round needs; or not one fits.
    sixteen = {"replications": 20, "batch": 16, "engine": "xla"}
    for memory, options in ((3 * 2**14, sixteen), (2**12, {"replications": 3})):
        monkeypatch.setattr(checks, "memory_bytes", lambda memory=memory: memory)
        with pytest.raises(ValueError, match=said.partition(": ")[0]) as error:
            jb.simulate(large, jb.lingape, **options)
        assert "With `batch" not in str(error.value)


def test_what_was_given_is_made_text_only_where_it_is_refused(monkeypatch):
    instance, shown = jb.instances.canonical(3, gap=0.5), []
    monkeypatch.setattr(jb.instances.Instance, "__repr__", lambda x: shown.append(x) or "itself")
    prepared(instance, partial(jb.sequential_halving, budget=30))
    assert not shown
    with pytest.raises(ValueError, match="algorithm must be a constructor, got itself"):
        prepared(instance, instance)
    assert shown
