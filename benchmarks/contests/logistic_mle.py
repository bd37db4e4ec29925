"""Logistic maximum likelihood: only the fits of recorded GLM-TSL runs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.compilers.cpp import compiler, natively
from jaxbandits.compilers.lanewise import lanewise
from jaxbandits.kernels.estimate import irls

from ..baselines import glm_tsl, logistic_mle
from ..contest import NATIVE, OURS, Contest
from ..tasks import task_of
from .glm_tsl import play_baseline
from .streams import others

COMPARED, CLOSE = 5, 1e-4


def recorded(numbers, replications, horizon, seed):
    """GLM-TSL runs of the fastest baseline with the package's random numbers."""
    play = list(others(glm_tsl).values())[-1]
    runs = [play_baseline(play, numbers, r, horizon, seed) for r in range(replications)]
    arms, rewards = (np.concatenate([getattr(x, f) for x in runs]) for f in ("arms", "rewards"))
    return logistic_mle.Record(arms, rewards)


def some_of(record, number):
    """The first replications of a record."""
    return logistic_mle.Record(*(x[:number] for x in record))


def program(lanes, mapped=lanewise, *, ridge, tol):
    """The package's estimates from round d on: `(theta [T - d + 1, d, R], all converged)`.

    Lanes are vectorised as in `simulate`; `jax.vmap` took twice as long.
    """

    options = {"family": "logistic", "ridge": ridge, "tol": tol}

    def one(arms, counts, sums, found, arm, reward):
        counts, sums = counts.at[arm].add(1.0), sums.at[arm].add(reward)
        near, slope = irls.after_draw(found, "logistic", arms[arm], reward)
        begin = {"init": found.theta, "inverse": near, "slope": slope}
        found = irls.estimate(arms, counts, sums, **begin, **options)
        return (counts, sums, found), (found.theta, found.converged)

    @jax.jit
    def fits(arms, unit, drawn, rewards):
        def round_of(state, draw):
            return mapped(partial(one, arms), lanes, unit)(*state, *draw)

        num_arms, dim = arms.shape
        before = jax.nn.one_hot(drawn[:, : dim - 1], num_arms, axis=0, dtype=float)
        counts, sums = before.sum(-1), (before * rewards[:, : dim - 1]).sum(-1)
        nothing = irls.without_data(dim, ridge, arms.dtype)
        known = irls.Estimate(*[getattr(nothing, name) for name in irls.Estimate._fields])
        known = known._replace(converged=jnp.array(False))  # for the first draws
        known = jax.tree.map(lambda x: jnp.repeat(x[..., None], lanes, -1), known)
        draws = drawn.T[dim - 1 :], rewards.T[dim - 1 :]
        return jax.lax.scan(round_of, (counts, sums, known), draws)[1]

    return fits


def worst(found, exact):
    """The largest relative error of theta over rounds and contestants."""
    length = np.linalg.norm(exact, axis=-1)
    return max((np.linalg.norm(x - exact, axis=-1) / length).max() for x in found)


def logistic_fits(quick=False, seed=0):
    """A hundred arms in twenty dimensions; each fit starts at the previous estimate."""
    loops, numbers = others(logistic_mle), glm_tsl.problem(task_of("glm-tsl").instance)
    replications, horizon = (16, 100) if quick else (64, 500)
    first = numbers.arms.shape[1] - 1  # round d, counted from 0
    record = recorded(numbers, replications, horizon, seed)
    options = {"ridge": numbers.ridge, "tol": numbers.tol}
    programs = {OURS: program(replications, **options)}
    if compiler():
        programs[NATIVE] = program(replications, natively, **options)

    def fits(who):
        with jax.enable_x64(True):
            return jax.block_until_ready(programs[who](numbers.arms, 1.0, *record))

    def agree():
        some = some_of(record, COMPARED)
        found = [loop(numbers.arms, some, **options).theta[:, first:] for loop in loops.values()]
        for who in programs:
            theta, converged = map(np.asarray, fits(who))
            assert converged.all()
            found.append(np.moveaxis(theta, -1, 0)[:COMPARED])
        exact = logistic_mle.in_numpy(numbers.arms, some, ridge=numbers.ridge, tol=1e-10)
        assert not exact.missed.any()
        error = worst(found, exact.theta[:, first:])
        assert error <= CLOSE, error
        return (
            f"{COMPARED} runs recorded on the same noise: theta of each round within "
            f"{error:.1e} (relative) of a fit to a decrement of 1e-10"
        )

    def by_us(who):
        return fits(who)[1].size

    def by_loop(loop, number):
        found = loop(numbers.arms, some_of(record, number), **options)
        return found.theta[:, first:, 0].size

    contestants = {who: partial(by_us, who) for who in programs}
    for who, loop in loops.items():
        number = max(1, replications // (32 if who == "numpy" else 4))
        contestants[who] = partial(by_loop, loop, number)
    return Contest("logistic mle", "fit", contestants, agree, rounds=2 if quick else 5)


CONTESTS = {"logistic-mle": logistic_fits}
