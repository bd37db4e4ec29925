"""XY-adaptive: replications share allocations; its error rate; the end of its phases."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits as jb
from jaxbandits.engine.partition import prepared
from jaxbandits.kernels.confidence import radius

SOARE = jb.instances.soare(3, angle=0.3, scale=2.0)


@pytest.mark.parametrize("variant", ["rage", "soare"])
def test_rewards_change_an_allocation_only_through_the_arms_alive(variant):
    with jax.enable_x64(True):
        algorithm = jb.xy_adaptive(SOARE.arms, variant=variant)
        ask, tell = map(jax.jit, (algorithm.ask, algorithm.tell))
        key = jax.random.key(0)
        first = algorithm.init(key)
        move = ask(key, first)
        means = np.asarray(move.count) * SOARE.means
        # The first two differ too little to eliminate an arm; the third eliminates some.
        totals = (0.0 * means, 0.01 * means, 100.0 * means)
        states = [tell(first, move, jnp.asarray(total)) for total in totals]
        moves = [ask(key, state) for state in states]
    assert [np.sum(state.alive) for state in states[:2]] == [4, 4]
    assert states[0].widest == states[1].widest  # to the last bit
    np.testing.assert_array_equal(moves[0].count, moves[1].count)
    assert np.sum(states[2].alive) < 4
    assert np.asarray(moves[2].count).sum() != np.asarray(moves[0].count).sum()


def at_most(most, max_pulls):
    """Runs whose phases have `most` draws at most; other numbers use the same program."""
    build = partial(jb.xy_adaptive, max_draws=most)
    return jb.simulate(SOARE, build, replications=300, seed=2, max_pulls=max_pulls)


def test_replications_share_few_allocations():
    runs = at_most(10**9, 10**7)
    assert runs.stopped.all()
    assert len(np.unique(runs.pulls)) > 3
    assert len(np.unique(runs.arm_pulls, axis=0)) < 30
    assert (runs.info["capped"] == 0).all()


def test_phases_end_at_max_draws_and_count_as_capped():
    most = 40
    runs = at_most(most, 2000)
    capped, phases = runs.info["capped"], runs.info["phases"]
    assert capped.max() > 3
    assert (capped < phases).all()
    assert (runs.pulls >= most * capped).all()
    assert (runs.pulls < most * phases).all()


def wrong(monkeypatch, factor):
    """Errors of 500 runs of the soare variant whose radii are `factor` times the right ones."""
    right = radius.static
    monkeypatch.setattr(radius, "static", lambda *arguments: factor * right(*arguments))
    options = {"delta": 0.05, "variant": "soare", "retest": False, "max_draws": 100_000}

    def build(arms, *, noise_var):  # another function, so that it is compiled anew
        return jb.xy_adaptive(arms, noise_var=noise_var, **options)

    instance = jb.instances.canonical(4, gap=0.3)
    runs = jb.simulate(instance, build, replications=500, seed=1, max_pulls=200_000)
    assert runs.stopped.mean() > 0.95
    return int((runs.stopped & ~runs.correct).sum())


@pytest.mark.slow
def test_the_soare_variant_errs_at_most_delta_and_its_broken_twin_does_not(monkeypatch):
    """Its radius is twice what normal noise needs: a quarter of it is still wide enough."""
    allowed = stats.binom.ppf(1 - 1e-6, 500, 0.05)
    assert wrong(monkeypatch, 1.0) <= allowed
    assert wrong(monkeypatch, 1 / 20) > allowed


def test_a_ridge_whose_bias_is_beyond_the_width_is_warned_of():
    """With arms a hundredth as long all of 200 answers were wrong."""
    small = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]]) / 100.0
    with pytest.warns(RuntimeWarning, match=r"theta_norm = 102.* = 3\.37 .*begin='basis'") as found:
        jb.xy_adaptive(small, delta=0.1, theta_norm=102.0)
    assert len(found) == 1
    width = np.sqrt(2.0 * np.log(np.pi**2 * 9 / 0.3))
    with pytest.warns(RuntimeWarning, match="xy_adaptive"):
        jb.xy_adaptive(small, delta=0.1, noise_var=4.0, theta_norm=4.001 * width)
    # A warning would be an error.
    jb.xy_adaptive(small, delta=0.1, noise_var=4.0, theta_norm=3.999 * width)
    jb.xy_adaptive(small, theta_norm=None)
    jb.xy_adaptive(small, theta_norm=102.0, begin="basis")
    jb.xy_adaptive(small, theta_norm=102.0, variant="soare")
    instance = jb.instances.linear(small, [100.0, 20.0])  # it has the norm of its theta
    with pytest.warns(RuntimeWarning, match="xy_adaptive"):
        prepared(instance, jb.at_budget(jb.xy_adaptive, 10))


@pytest.mark.slow
def test_of_equal_arms_only_the_first_takes_part():
    """Also where eliminated arms are tested again."""
    arms = np.vstack([np.eye(3), np.eye(3)])
    instance = jb.instances.linear(arms, 3 * arms[1], noise_var=0.01)
    build = partial(jb.xy_adaptive, variant="soare")
    runs = jb.simulate(instance, build, replications=20, seed=4)
    assert runs.stopped.all()
    assert (runs.answer == 1).all()
