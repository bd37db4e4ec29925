"""What constructors over the gap-index loop have in common: options, checks, assembly."""

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import jax.numpy as jnp

from ...conditions import (
    fewer_than_arms,
    ratios_fit,
    ridge_in_range,
    theta_norm_known,
)
from ...core import Algorithm
from ...feature_tables import is_concrete
from ...kernels.allocate import pair_shares
from ...kernels.confidence import radius
from ...parameters import Values, choice, number_or
from ...types import Arms, Scalar, Table
from .comparisons import Compare, Evidence
from .gap_index import gap_index
from .pair_selection import SELECTIONS

PairSelection: TypeAlias = Annotated[str, choice(*SELECTIONS)]
AverageSelection: TypeAlias = Annotated[str, choice("largest_variance", "both")]
Threshold: TypeAlias = Annotated[str, choice(*radius.THRESHOLDS)]
AverageThreshold: TypeAlias = Annotated[str, choice(*radius.NEED_NO_FEATURES)]
Ridge: TypeAlias = Annotated[Scalar | str, number_or("paper", "code")]


# The paper's lambda, sigma / 20, where it plays: at sigma = 1/2. As a number it has no unit, as V
# has none, while sigma / 20 has that of the rewards.
USUAL_RIDGE: float = 1.0 / 40.0
REVISIONS: tuple[str, ...] = (
    "v0 is 1/40 by default, where it was sigma/20, which is as much at noise_var 1/4 alone and has "
    "the unit of the rewards; v0='paper' is sigma/20",
)


def ridge(v0: Scalar | str, noise_var: Scalar, *, code: Scalar) -> Scalar:
    """A ridge by its name: the paper's lambda, sigma / 20, or that of the published program."""
    if not isinstance(v0, str):
        # Times 1, which compilers do not see: they would divide by a constant in another way, by a
        # product, and a run of 10^5 draws would differ from that with the paper's ridge.
        return v0 * (noise_var / noise_var)
    return {"paper": jnp.sqrt(noise_var) / 20.0, "code": code}[v0]


def consistent(values: Values, code: Callable[[float], float]) -> None:
    """Raise unless the options fit each other; `code(noise_var)` is the ridge of that name."""
    fewer_than_arms(values)
    noise_var, v0 = values["noise_var"], values["v0"]
    if isinstance(v0, str) and is_concrete(noise_var):
        v0 = {"paper": float(noise_var) ** 0.5 / 20.0, "code": code(float(noise_var))}[v0]
    if not isinstance(v0, str):
        ridge_in_range(values, v0)
    theta_norm_known(values, radius.NEED_THETA_NORM)
    ratios_fit(values, pair_shares.num_bases(values["arms"]), pair_shares.MOST_BASES)


def top_m(
    arms: Arms,
    evidence: Evidence,
    compare: Callable[[Evidence], Compare],
    *,
    selection: str,
    delta: Scalar,
    epsilon: Scalar,
    noise_var: Scalar,
    threshold: str,
    theta_norm: Scalar | None = None,
    v0: Scalar = 1.0,
    ratios: Table | None = None,
    **rest: Any,
) -> Algorithm:
    """The gap-index algorithm of these options on this evidence; `rest` goes to `gap_index`."""
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    return gap_index(
        arms,
        evidence,
        compare(evidence),
        SELECTIONS[selection](arms, ratios),
        radius.width(threshold, facts),
        epsilon=epsilon,
        **rest,
    )
