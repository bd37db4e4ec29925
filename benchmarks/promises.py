"""Guarantees of algorithms, small instances to test them on, and broken twins that violate them.

The tests of guarantees and the tables of `benchmarks.guarantees` and `benchmarks.stress` share
these settings.
"""

import contextlib
import functools
from functools import partial
from unittest import mock

import jax.numpy as jnp

import jaxbandits as jb
from jaxbandits.kernels.confidence import radius

DELTA = 0.05
TOP_M = jb.instances.classic_top_m(4, 2, angle=0.9, noise_var=1.0)
LOGISTIC = jb.instances.glm(jb.instances.soare(3, angle=0.1).arms, [1.0, 0.0, 0.0])
PROMISES = {
    "lingape": (jb.instances.soare(3, angle=0.3), partial(jb.lingape, v0=0.1)),
    "frank_wolfe_sampling": (
        jb.instances.soare(3, angle=0.5),
        partial(jb.frank_wolfe_sampling, v0=0.1),
    ),
    "lazy_track_and_stop": (jb.instances.soare(3, angle=0.5), jb.lazy_track_and_stop),
    "lin_game": (jb.instances.soare(3, angle=0.5), partial(jb.lin_game, v0=0.1)),
    "m_lingape": (TOP_M, partial(jb.m_lingape, m=2)),
    "m_lingape_ratio": (TOP_M, partial(jb.m_lingape, m=2, selection="ratio")),
    "lin_gifa": (TOP_M, partial(jb.lin_gifa, m=2)),
    "lin_gifa_individual": (TOP_M, partial(jb.lin_gifa, m=2, indices="individual")),
    "lin_game_set": (TOP_M, partial(jb.lin_game, m=2)),
    "lucb": (TOP_M, partial(jb.lucb, m=2)),
    "ugape": (TOP_M, partial(jb.ugape, m=2)),
    "top_two": (jb.instances.soare(3, angle=0.5), partial(jb.top_two, v0=0.1)),
    "rage": (jb.instances.soare(3, angle=0.1), jb.rage),
    "xy_static": (jb.instances.soare(3, angle=0.3), jb.xy_static),
    "xy_static_soare": (
        jb.instances.soare(3, angle=0.5, scale=2.0),
        partial(jb.xy_static, variant="soare"),
    ),
    "rage_transductive": (jb.instances.transductive(4, angle=0.2), jb.rage),
    # The gap is 0.02: with the other arm, too, an answer is wrong.
    "rage_epsilon": (jb.instances.soare(3, angle=0.2), partial(jb.rage, epsilon=0.015)),
    "rage_glm": (LOGISTIC, jb.rage_glm),
    "alba": (jb.instances.soare(3, angle=0.2, scale=0.2), jb.alba),
    # Proved without the ridge, whose bias the width ignores.
    "xy_adaptive": (jb.instances.soare(3, angle=0.3), jb.xy_adaptive),
    "xy_adaptive_basis": (jb.instances.soare(3, angle=0.3), partial(jb.xy_adaptive, begin="basis")),
}
"""Fixed confidence: an answer is wrong with probability at most `delta`."""
# Twins of these need narrower intervals to err: intervals of single arms are twice as wide as
# needed, and those of LUCB1 hold for all times and arms.
NARROWER = dict.fromkeys(("lin_gifa_individual", "lin_game_set", "lucb", "ugape"), 0.1)
TWIN_PULLS = {"rage_glm": 300_000}  # most pulls of a twin's run; 3000 for all others

GAP, ARMS, BUDGET, ERROR = 1.0, 16, 320, 0.018671
FIXED = {
    "sequential_halving": jb.sequential_halving,
    "gse_uniform": jb.gse,
    "gse_d_opt": partial(jb.gse, design="d_opt"),
}
"""Fixed budget: on `halving_instance()` the error probability is exactly `ERROR`, an integral."""


def halving_instance():
    """One best arm and 15 equal ones, on which all variants of halving are the same."""
    return jb.instances.canonical(ARMS, gap=GAP, noise_var=1.0)


def another(build, twist=lambda algorithm: algorithm):
    """A new constructor for the same algorithm, changed by `twist`; its programs compile anew."""

    @functools.wraps(build)
    def twin(*args, **options):
        return twist(build(*args, **options))

    return twin


@contextlib.contextmanager
def narrow(build, part=0.25):
    """The twin whose confidence radii are multiplied by `part` within the block.

    A radius that uses another radius is multiplied by `part` more than once.
    """

    def narrowed(right):
        return lambda *arguments: part * right(*arguments)

    with contextlib.ExitStack() as patches:
        for name in ("static", "soare", "least_squares", "alba_worst_case", "alba_empirical"):
            patches.enter_context(mock.patch.object(radius, name, narrowed(getattr(radius, name))))
        thresholds = {name: narrowed(right) for name, right in radius.THRESHOLDS.items()}
        patches.enter_context(mock.patch.dict(radius.THRESHOLDS, thresholds))
        yield another(build)


@contextlib.contextmanager
def misfiled(build, part=None):
    """The twin that assigns every reward to the next arm."""

    def twist(algorithm):
        def next_arm(move):
            return move._replace(arm=(move.arm + 1) % 4)  # every K here is 4

        def tell(state, move, total):
            if move.count is None:
                return algorithm.tell(state, next_arm(move), total)
            return algorithm.tell(state, move, jnp.roll(total, 1))

        return algorithm._replace(tell=tell)

    yield another(build, twist)


@contextlib.contextmanager
def forgetful(build, part=None):
    """The twin for a fixed budget that sees only zeros in its first stage."""

    def lazy(algorithm):
        def tell(state, move, total):
            return algorithm.tell(state, move, jnp.where(state.stage == 0, 0.0, total))

        return algorithm._replace(tell=tell)

    yield another(build, lazy)


def twin_of(fault, name):
    """`(context manager that gives the twin's constructor, most pulls of a run)`."""
    build = {**{n: b for n, (_, b) in PROMISES.items()}, **FIXED}[name]
    options = getattr(build, "keywords", {})

    @contextlib.contextmanager
    def opened():
        with fault(getattr(build, "func", build), NARROWER.get(name, 0.25)) as twin:
            yield partial(twin, **options)

    return opened(), TWIN_PULLS.get(name, 3000)
