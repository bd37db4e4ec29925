"""Rewards that are not what an algorithm assumes: said once, and only where it matters."""

import dataclasses
import re
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner
from programs import QUICK

import jaxbandits as jb
from jaxbandits import algorithms
from jaxbandits.cli.main import main
from jaxbandits.engine.assumptions import broken_assumption, uses_features
from jaxbandits.engine.partition import prepared

make = jb.instances
ARMS = make.soare(3, angle=0.5).arms
AXES = np.eye(3)
COUNTS = make.glm(ARMS, [1.0, 0.0, 0.0], family="poisson")
LOGISTIC = make.glm(ARMS, [1.0, 0.0, 0.0])
CONSTRUCTORS = [getattr(jb, name) for name in algorithms.__all__ if name not in ("at_budget",)]
CONSTRUCTORS = [build for build in CONSTRUCTORS if build is not jb.watched]


def assumptions_of(build):
    """The section of the docstring, in one line."""
    found = re.search(r"Assumptions:\n(.*?)\n\s*Guarantee:", build.__doc__, re.DOTALL)
    return " ".join(found[1].split())


@pytest.mark.parametrize("build", CONSTRUCTORS, ids=lambda build: build.__name__)
def test_what_is_said_of_counts_is_what_the_docstring_assumes(build):
    stated = assumptions_of(build)
    assert uses_features(build) == ("features are not used" not in stated)
    text = broken_assumption(COUNTS, build)
    assert (text is not None) == ("noise of known variance" in stated)
    if text is not None:
        linear = "linear means, sub-Gaussian" in stated
        assert ("means that are not linear" in text) == linear
        assert "counts" in text
        assert "\n" not in text
    logistic = broken_assumption(LOGISTIC, build)
    assert (logistic is not None) == ("linear means, sub-Gaussian" in stated)


@pytest.mark.parametrize(
    ("instance", "build"),
    [
        (make.bernoulli(means=[0.5, 0.4]), jb.rage),  # any means are linear in unit vectors
        (make.bernoulli(means=[0.5, 0.4], theta_norm=1.0), jb.lingape),
        (make.glm(AXES, [2.0, 0.0, 0.0]), jb.lingape),  # and their norm is within the bound
        (make.glm(AXES, [0.1, 0.0, 0.0]), jb.rage),  # which this one does not use
        (make.glm(AXES, [0.1, 0.0, 0.0]), partial(jb.lingape, theta_norm=1.0)),
        (LOGISTIC, partial(jb.lucb, m=1)),
        (LOGISTIC, jb.glm_tsl),
        (COUNTS, partial(jb.sequential_halving, budget=60)),
        (COUNTS, jb.at_budget(jb.lingape, 60)),
        (make.glm(ARMS, [1.0, 0.0, 0.0], family="gaussian"), jb.lingape),
        (dataclasses.replace(make.linear(AXES, [0.9, 0.5, 0.1]), rewards="bernoulli"), jb.lingape),
    ],
)
def test_nothing_is_said_where_it_is_harmless(instance, build):
    assert broken_assumption(instance, build) is None


def test_a_bound_for_another_model_is_none_for_linear_means():
    text = broken_assumption(make.glm(AXES, [0.1, 0.0, 0.0]), jb.lingape)
    assert "a theta_norm that is no bound for linear means" in text


def drawn(key):
    return make.glm(jnp.asarray(ARMS), jax.random.normal(key, (3,)))


@pytest.mark.parametrize(
    "instance", [COUNTS, LOGISTIC, drawn], ids=["poisson", "logistic", "drawn"]
)
def test_a_call_says_it_once(instance):
    with pytest.warns(UserWarning, match=r"^lingape assumes linear means and .* known") as caught:
        prepared(instance, partial(jb.lingape, theta_norm=3.0))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_sweep_says_it_once_for_each_algorithm(tmp_path):
    """Not once for each of its eight cells, nor when it is resumed from what is stored."""
    instances = {"logistic": LOGISTIC, "other": make.glm(ARMS, [0.0, 1.0, 0.0])}
    learners = {"ucb": partial(jb.lin_ucb, alpha=1.0), "ts": jb.lin_ts}
    play = partial(jb.sweep, instances, learners, replications=2, horizon=5, progress=False)
    with pytest.warns(UserWarning, match="assumes linear means") as caught:
        play(axes={"noise_var": [1.0, 2.0]}, engine=QUICK, out=tmp_path)
    assert sorted(str(one.message).split()[0] for one in caught) == ["lin_ts", "lin_ucb"]


@pytest.mark.slow
def test_the_command_line_says_it_once(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(
        "replications = 2\nhorizon = 5\n"
        '[instances.cube]\nname = "logistic_cube"\nnum_arms = 4\ndim = 2\n'
        '[algorithms.UCB]\nname = "lin_ucb"\nalpha = 1.0\n[axes]\nhalf_width = [0.5, 1.0]\n'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        result = CliRunner().invoke(main, ["run", str(file), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert result.output.count("lin_ucb assumes linear means") == 1


def test_what_draws_show_is_said_once_in_a_sweep_too():
    """An instance that is built anew for each point of an axis."""

    def records(noise_var):
        return make.recorded(AXES[:2, :2], [[1.0], [0.0]], noise_var=noise_var)

    halving = partial(jb.sequential_halving, budget=8)
    with pytest.warns(UserWarning, match="one reward of each arm") as caught:
        jb.sweep(
            {"records": records},
            {"halving": halving},
            axes={"noise_var": [1.0, 2.0, 3.0]},
            replications=2,
            progress=False,
            engine=QUICK,
        )
    assert len(caught) == 1


def test_live_runs_say_it_of_a_family_that_they_cannot_assume():
    with pytest.warns(UserWarning, match=r"^lingape assumes .*'poisson' have means .* counts"):
        jb.Live(jb.lingape, AXES, theta_norm=2.0, family="poisson")
    for build in (partial(jb.lucb, m=1), jb.glm_tsl):  # coins are sub-Gaussian
        jb.Live(build, AXES, family="logistic")
