"""D-optimal designs on random active sets of Gaussian arms, to a tolerance of 1e-3."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.compilers.lanewise import lanewise
from jaxbandits.kernels.design.d_optimal import d_optimal

from ..baselines import designs
from ..contest import OURS, Contest
from .streams import others

TOL = 1e-3


@jax.jit
def _ours(arms, active, unit):
    """Weights `[R, K]` for all active sets `[R, K]` in one call."""

    def one(mask):
        return d_optimal(arms, mask, tol=TOL).weights

    return lanewise(one, len(active), unit)(active.T).T


def _designs(name, num_arms, dim, *, sets, few, quick):
    rng = np.random.default_rng(5)
    arms = rng.normal(size=(num_arms, dim))
    active = rng.random((8 if quick else sets, num_arms)) < 0.5
    loops = others(designs)

    def ours(active):
        with jax.enable_x64(True):
            return np.asarray(_ours(arms, active, jnp.float64(1.0)))

    def agree():
        found = {OURS: ours(active)[:8]}
        found |= {who: loop(arms, active[:8], TOL) for who, loop in loops.items()}
        for who, weights in found.items():
            assert (weights >= 0).all(), (name, who)
            np.testing.assert_allclose(weights.sum(1), 1.0, atol=1e-9)
            for row, mask in zip(weights, active, strict=False):
                assert not row[~mask].any(), (name, who)
                assert designs.excess(arms[mask], row[mask]) <= TOL + 1e-9, (name, who)
        return f"{len(active[:8])} designs of each are certified to {TOL}"

    def contestant(find, number):
        return lambda: len(find(active[:number]))

    contestants = {OURS: contestant(ours, sets)}
    for who, loop in loops.items():
        find = functools.partial(loop, arms, tol=TOL)
        contestants[who] = contestant(find, few if who == "numpy" else sets)
    return Contest(name, "design", contestants, agree, rounds=2 if quick else 5)


def designs_100(quick=False):
    """Half of a hundred arms in ten dimensions."""
    return _designs("designs 100", 100, 10, sets=64, few=16, quick=quick)


def designs_1000(quick=False):
    """Half of a thousand arms in twenty dimensions."""
    return _designs("designs 1000", 1000, 20, sets=16, few=4, quick=quick)


CONTESTS = {"designs-100": designs_100, "designs-1000": designs_1000}
