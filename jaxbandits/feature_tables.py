"""Tables of features: what they may hold, and whether double precision determines their span."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .kernels.linalg import scaling, subspace
from .messages import brief
from .precision import check_real
from .types import Rows, Table

LARGEST_ENTRY: float = 2.0**500  # of a table of features
LEAST_OF_COLUMN: float = float(np.finfo(float).tiny)  # less is not of full precision


def is_concrete(value: Any) -> bool:
    """True for a value whose numbers are known now."""
    return not isinstance(value, Tracer | jax.ShapeDtypeStruct)


def require(holds: object, message: str, *got: Any) -> None:
    """Raise a `ValueError` unless `holds`.

    Args:
      holds: what has to be true.
      message: what must be given.
      *got: what was given, if the message does not say it. Its text is made where it is raised
        alone: that of an instance takes longer than most checks.
    """
    if not holds:
        raise ValueError(", got ".join([message, *map(brief, got)]))


def check_arms(arms: Rows, targets: Rows | None = None) -> None:
    """Check shape and entries of `arms [K, d]` and `targets [M, d]`."""
    require(arms is not None, "arms must be a table [K, d], got None")
    for name, table in (("arms", arms), ("targets", targets)):
        if table is None:
            continue
        check_real(name, table)
        shape = np.shape(table)
        require(
            len(shape) == 2 and 0 not in shape,
            f"{name} must be a table [{'K' if name == 'arms' else 'M'}, d], got shape {shape}",
        )
        if is_concrete(table):
            _check_entries(name, np.asarray(table, dtype=float))
    if targets is not None:
        require(
            np.shape(targets)[1] == np.shape(arms)[1],
            f"targets must have the arms' {np.shape(arms)[1]} features, got {np.shape(targets)[1]}",
        )


def _check_entries(name, table):
    """Check that entries are finite, the largest can be squared, and no column underflows."""
    columns = scaling.largest_of_columns(table)
    largest, least = float(columns.max()), LEAST_OF_COLUMN
    if largest == 0 or 1.0 / LARGEST_ENTRY <= largest <= LARGEST_ENTRY:
        lost = np.flatnonzero((columns > 0) & (columns < least))
        if lost.size:
            wanted = f"{name} must have columns of zeros or with an entry of {least:.2g} or more"
            raise ValueError(f"{wanted}, got {columns[lost].max():.2g} in column {lost}")
        return
    check_entries(f"{name} must be finite", table)
    raise ValueError(
        f"{name} must have a largest entry from {1.0 / LARGEST_ENTRY:.2g} to {LARGEST_ENTRY:.2g}, "
        f"whose square fits double precision, got {largest:.6g}"
    )


def check_entries(wanted: str, table: Float[np.ndarray, "..."]) -> None:
    """Raise unless all entries are finite; the message `wanted` goes on with the first that is not.

    >>> check_entries("means must be finite", np.array([1.0, -np.inf]))
    Traceback (most recent call last):
    ValueError: means must be finite, got -infinity at [1]
    """
    broken = np.argwhere(~np.isfinite(table))
    if len(broken):
        place = broken[0].tolist()
        value = float(table[tuple(place)])
        text = "NaN" if np.isnan(value) else f"{'-' * (value < 0)}infinity"
        raise ValueError(f"{wanted}, got {text}{f' at {place}' * bool(place)}")


def check_spans(arms: Table) -> scaling.Condition | None:
    """Check that arms span R^d, as an unregularised, unprojected fit needs.

    Returns:
      Their condition, or None for traced arms, which are not checked.
    """
    if not is_concrete(arms):
        return None
    found, dim = scaling.condition(arms), np.shape(arms)[1]
    require(found.rank == dim, f"arms must span R^{dim} for this algorithm, got rank {found.rank}")
    return found


def check_condition(arms: Rows, found: scaling.Condition | None = None) -> None:
    """Check that double precision determines the span of the arms.

    Args:
      arms: `[K, d]`; traced ones are not checked.
      found: their condition, computed here where it is not given.
    """
    if is_concrete(arms):
        found = scaling.condition(np.asarray(arms)) if found is None else found
        require(
            found.ratio <= found.limit,
            f"arms must have a condition number of at most {found.limit:.2g} once their columns "
            f"are of one size, beyond which rounding hides a direction, got {found.ratio:.2g}: "
            "leave out a column that others nearly give, or subtract the mean of each",
        )


def tells_span(arms: Table, *, whole: bool) -> Bool[Array, ""]:
    """Whether traced arms would pass `check_condition`, and with `whole` `check_spans` too.

    The rank of the sum of squares is compared with that of the arms themselves.
    """
    (arms,) = scaling.equilibrated(jnp.asarray(arms))
    rank = subspace.rank(arms)
    found = subspace.of(arms, jnp.ones(arms.shape[0], bool)).rank == rank
    return found & (rank == arms.shape[1]) if whole else found
