"""DeepFPL: each round scores ten examples and trains a network on thirty-two.

The package is compared with NumPy and with itself: "side by side" puts all lanes in the last axis,
as for algorithms without a context; "batched" lets the compiler batch the products of all lanes.
The native engine cannot draw normal numbers in single precision.
"""

import contextlib
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.engine import choices
from jaxbandits.engine.episode import CONTEXT, INIT

from ..baselines import deep_fpl
from ..contest import Contest
from ..tasks import task_of
from .streams import noise_of

COMPARED, SURE = 3, 60  # replications compared, and rounds that must agree in spite of rounding
WAYS = {"side by side": "xla", "batched": "together"}


def drawn_by_us(task, seed, replication, rounds):
    """The random numbers of a replication, as the package draws them."""
    with jax.enable_x64(True):
        key, uniforms = noise_of(seed, replication, rounds, jax.random.uniform)
        state = task.algorithm(jnp.asarray(task.instance.features)).init(
            jax.random.fold_in(key, INIT)
        )
        shows = jax.random.fold_in(key, CONTEXT)
        size = task.instance.shown, len(task.instance.labels)

        def of_round(t):
            context = jax.random.fold_in(shows, t)
            noise = jax.random.normal(
                jax.random.fold_in(state.key, t), (deep_fpl.BATCH,), jnp.float32
            )
            return jax.random.randint(context, size[:1], 0, size[1]), noise

        shown, normals = map(np.asarray, jax.vmap(of_round)(jnp.arange(rounds)))
        weights = tuple(map(np.asarray, state.network))
    return deep_fpl.Draws(weights, shown, uniforms[:rounds], normals)


@contextlib.contextmanager
def playing(engine):
    """The package with another engine for contextual learners."""
    usual = choices.engine_for
    choices.engine_for = lambda *_: engine
    try:
        yield
    finally:
        choices.engine_for = usual


def deep_fpl_contest(name, quick=False, seed=0):
    """The contest on whole runs."""
    task = task_of(name)
    instance = task.instance
    replications, horizon = (8, 100) if quick else (32, 640)
    task = task._replace(horizon=horizon)

    def alike(runs, r):
        """The number of rounds for which NumPy has the same regret, so the same choices."""
        ours = drawn_by_us(task, seed, r, horizon)
        target = instance.target_of(r)
        arms = deep_fpl.in_numpy(instance, target, ours)
        means = np.where(instance.labels[ours.shown] == target, instance.high, instance.low)
        regret = np.cumsum(means.max(1) - means[np.arange(horizon), arms])
        same = np.isclose(regret[runs.rounds - 1], runs.regret[r], rtol=0, atol=1e-9)
        return int(runs.rounds[np.logical_and.accumulate(same)].max(initial=0))

    def agree():
        runs = task.play(replications, seed=seed)
        until = [alike(runs, r) for r in range(COMPARED)]
        assert min(until) >= SURE, until
        return (
            f"{COMPARED} replications on the same noise: the same choices for {min(until)} to "
            f"{max(until)} of {horizon} rounds, where single precision may part them"
        )

    def by_us(engine="in turn"):
        with playing(engine):
            task.play(replications, seed=seed)
        return replications * horizon

    def by_numpy():
        rounds = min(horizon, 200)
        draws = deep_fpl.draws(np.random.default_rng(seed), instance, rounds)
        deep_fpl.in_numpy(instance, 3, draws)
        return rounds

    contestants = {"jaxbandits": by_us}
    if not quick:
        contestants |= {who: partial(by_us, engine) for who, engine in WAYS.items()}
    contestants["numpy"] = by_numpy
    return Contest(name, "round", contestants, agree, rounds=2 if quick else 3)


CONTESTS = {name: partial(deep_fpl_contest, name) for name in ("deep-64", "deep-784")}
