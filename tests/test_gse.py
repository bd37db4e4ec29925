"""Designs, roundings and options of GSE; its elimination against related algorithms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.engine import episode
from jaxbandits.kernels.allocate import stage_shares

FEW = {"replications": 12, "seed": 3}
CANONICAL = jb.instances.canonical(8, gap=0.5)


def linear(num_arms, dim, seed=0):
    rng = np.random.default_rng(seed)
    return jb.instances.linear(rng.normal(size=(num_arms, dim)), rng.normal(size=dim))


COMMON = [("uniform", "efficient"), ("greedy", "efficient"), ("d_opt", "efficient")]
COMMON += [("fwg", rule) for rule in stage_shares.ROUNDINGS]
MORE = [(name, "efficient") for name in stage_shares.DESIGNS]
MORE += [(name, rule) for name in stage_shares.SOLVED for rule in stage_shares.ROUNDINGS]


def shared(arms, name, rule, **options):
    return jax.jit(stage_shares.allocation(arms, name, rule, tol=0.01, **options))


@pytest.mark.parametrize(
    ("name", "rule"),
    [*COMMON, *(pytest.param(*x, marks=pytest.mark.slow) for x in MORE if x not in COMMON)],
    ids=lambda x: x,
)
def test_every_draw_goes_to_an_arm_alive_and_all_draws_are_used(name, rule):
    with jax.enable_x64(True):
        arms = jnp.asarray(linear(12, 3).arms)
        share, key, order = shared(arms, name, rule), jax.random.key(0), jnp.arange(12)
        for size in (12, 5, 2):
            alive = jnp.arange(12) % (12 // size) == 0
            for total in (1, 6, 50, 333):
                counts = np.asarray(share(key, order, alive, jnp.asarray(total)).counts)
                assert counts.min() >= 0
                assert (counts[~np.asarray(alive)] == 0).all()
                if rule == "ceil":
                    assert total <= counts.sum() < total + (counts > 0).sum()
                else:
                    assert counts.sum() == total


@pytest.mark.parametrize("forced", [1, 4])
def test_a_basis_gets_the_forced_draws(forced):
    with jax.enable_x64(True):
        arms = np.zeros((6, 3))  # the optimal design prefers the long arms
        arms[[0, 1, 2]], arms[3], arms[4], arms[5] = 5 * np.eye(3), [1, 1, 0], [2, 0, 0], [0, 1, 1]
        share = shared(jnp.asarray(arms), "d_opt", "efficient", forced=forced)
        key, order = jax.random.key(0), jnp.arange(6)
        alive = jnp.array([False, True, False, True, True, True])
        for total in (3, 11, 40):
            counts = np.asarray(share(key, order, alive, jnp.asarray(total)).counts)
            assert counts.sum() == total
            each = min(forced, total // 3)
            drawn = counts >= each
            assert np.linalg.matrix_rank(arms[drawn & np.asarray(alive)]) == 3
        share = shared(jnp.asarray(arms), "uniform", "efficient", forced=forced)
        line = jnp.arange(6) % 4 == 0  # two parallel arms: the longer one is the basis
        counts = share(key, order, line, jnp.asarray(forced)).counts
        assert counts.tolist() == [forced, 0, 0, 0, 0, 0]


def test_draws_that_the_stages_leave_can_be_discarded():
    runs = jb.simulate(CANONICAL, partial(jb.gse, budget=41, leftover="discard"), **FEW)
    assert set(runs.pulls) == {39}


@pytest.mark.parametrize(
    "design", ["uniform", *(pytest.param(x, marks=pytest.mark.slow) for x in ("d_opt", "greedy"))]
)
def test_on_independent_arms_gse_is_sequential_halving(design):
    rng = np.random.default_rng(1)
    instance = jb.instances.linear(rng.normal(size=(8, 8)), 0.1 * rng.normal(size=8))
    instance = CANONICAL if design == "greedy" else instance  # which depends on lengths too
    plain = jb.simulate(instance, partial(jb.sequential_halving, budget=240), **FEW)
    found = jb.simulate(instance, partial(jb.gse, budget=240, design=design), **FEW)
    assert found.info["unsolved"].max() == 0
    assert len(np.unique(plain.answer)) > 1
    np.testing.assert_array_equal(found.arm_pulls, plain.arm_pulls)
    np.testing.assert_array_equal(found.answer, plain.answer)


def survivors(build, arms, totals):
    """Arms alive after each stage, where `totals` are the mean rewards."""

    @jax.jit
    def stage(state, number, arms):
        algorithm = build(arms)
        move = algorithm.ask(episode.ask_key(jax.random.key(0), number), state)
        return algorithm.tell(state, move, move.count * totals), move.count

    state, masks = jax.jit(lambda key: build(arms).init(key))(jax.random.key(1)), []
    for number in range(3):
        state, count = stage(state, number, arms)
        masks.append(np.asarray(state.alive))
        assert count.sum() == 100
    return np.array(masks)


@pytest.mark.parametrize("dim", [10, pytest.param(12, marks=pytest.mark.slow)])
def test_on_independent_arms_the_family_does_not_matter(dim):
    """GSE-Log and GSE-Lin keep the same arms for the same rewards."""
    with jax.enable_x64(True):
        arms = jnp.asarray(np.random.default_rng(dim).uniform(-0.5, 0.5, size=(8, dim)))
        totals = jnp.asarray(np.random.default_rng(0).permutation(np.linspace(0.2, 0.8, 8)))
        builds = [partial(jb.gse, budget=300, family=x) for x in ("gaussian", "logistic")]
        lin, log = (survivors(build, arms, totals) for build in builds)
    np.testing.assert_array_equal(lin, log)
    assert lin.sum(1).tolist() == [4, 2, 1]
    assert lin[-1].argmax() == np.asarray(totals).argmax()


def test_eta_equal_to_the_number_of_arms_gives_a_single_stage():
    runs = jb.simulate(linear(8, 3), partial(jb.gse, budget=50, eta=8), **FEW)
    assert set(np.sort(runs.arm_pulls, axis=1).ravel()) == {6, 7}
    assert set(runs.pulls) == {50}


@pytest.mark.slow
def test_frank_wolfe_stays_uniform_on_soare_and_is_reported_as_unsolved():
    """While two of the other unit vectors are alive, their variances tie."""
    instance = jb.instances.soare(4, angle=0.1, noise_var=1e-9)  # e_1 and e_5 lead
    runs = jb.simulate(instance, partial(jb.gse, budget=75, design="fwg"), **FEW)
    assert set(np.sort(runs.arm_pulls, axis=1)[:, :2].ravel()) == {5}
    assert runs.info["unsolved"].min() >= 1


@pytest.mark.slow
def test_remainders_of_equal_shares_favour_no_arm():
    build = partial(jb.gse, budget=3, eta=8, design="d_opt")
    runs = jb.simulate(CANONICAL, build, replications=800, seed=1)
    drawn = runs.arm_pulls.mean(0)
    assert drawn.sum() == 3
    assert np.abs(drawn - 3 / 8).max() < 5 * np.sqrt(15 / 64 / 800)


@pytest.mark.slow
def test_arms_that_tie_are_answered_equally_often():
    """Equal means of rewards 0 and 1 differ by rounding, which depends on the index of the arm."""
    arms = np.random.default_rng(0).uniform(-0.5, 0.5, (8, 10))
    coins = jb.instances.bernoulli(arms, [0.5] * 8)
    build = partial(jb.gse, per_arm=3, family="gaussian")
    answers = np.bincount(jb.simulate(coins, build, replications=8000).answer, minlength=8)
    assert ((answers - 1000) ** 2 / 1000).sum() < 24.3  # the 0.999 quantile of chi^2
