"""Roundings by name, each with the draws from which its promise holds."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from ...types import Scalar
from . import efficient_rounding, regret_rounding


class Rounding(NamedTuple):
    """From `least` draws on, `||y||^2_{A(n)^-1} <= (1 + epsilon) max ||y||^2_{A(w)^-1} / N`.

    The maximum is over the directions that the design is for.
    """

    counts: Callable[[Array, Array, Array], regret_rounding.Rounded]  # (arms, weights, total)
    least: Callable[[Scalar, int, Scalar], Scalar]  # (number of supported arms, d, epsilon)
    largest: float  # epsilon for which this is true


def _efficient(arms, weights, total):
    counts = efficient_rounding.efficient(weights, total)
    return regret_rounding.Rounded(counts, jnp.zeros((), int), jnp.array(True))


def _least_for_efficient(size, dim, epsilon):
    """The loss is at most `1 + 2 size / N`, but only from `N = 2 size` on."""
    return 2.0 * size / jnp.minimum(epsilon, 1.0)


def _least_for_regret(size, dim, epsilon):
    """`lambda_min >= 1 - epsilon / 2` from `d / e^2` draws on with e = epsilon / 6."""
    return 36.0 * dim / epsilon**2


ROUNDINGS: dict[str, Rounding] = {
    "efficient": Rounding(_efficient, _least_for_efficient, float("inf")),
    "regret": Rounding(regret_rounding.regret, _least_for_regret, 1 / 3),
}
LARGEST = {name: rule.largest for name, rule in ROUNDINGS.items()}
