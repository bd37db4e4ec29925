"""Two-player zero-sum games of small matrices, exactly, with a certificate."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .. import selection

ROUNDING = 1e-12  # of the largest payoff: what counts as zero in a tableau


class Game(NamedTuple):
    """The best mixture of rows: `value <= value of the game <= bound`."""

    weights: Float[Array, " K"]  # non-negative, sum 1
    value: Float[Array, ""]  # what the weights gain at least, whatever column is played
    bound: Float[Array, ""]  # what a mixture of columns allows at most
    iterations: Int[Array, ""]  # pivots
    converged: Bool[Array, ""]  # value and bound agree up to rounding


class _Tableau(NamedTuple):
    """The tableau of the simplex method: basic variables in rows, the others in columns."""

    table: Float[Array, "K+1 P+1"]  # the last row is the objective, the last column the bounds
    rows: Int[Array, " K"]  # variables: columns of the game first, then the slacks of its rows
    columns: Int[Array, " P"]
    pivots: Int[Array, ""]


def solve(
    payoffs: Float[Array, "K P"], active: Bool[Array, " P"], *, max_pivots: int | None = None
) -> Game:
    """`max over w of min over active j of sum_k w_k payoffs[k, j]`, w in the simplex.

    With payoffs B scaled to [1, 2], the other player's program is `max sum of u` subject to
    `B u <= 1`, u >= 0 and u = 0 where inactive (Dantzig, 1951); its slacks are feasible to begin
    with and their prices are the weights. Needs an active column; 4 (K + P) pivots at most by
    default.
    """
    num_rows, num_columns = payoffs.shape
    most = 4 * (num_rows + num_columns) if max_pivots is None else max_pivots
    low = jnp.where(active, payoffs, jnp.inf).min()
    size = jnp.where(active, payoffs, -jnp.inf).max() - low
    scaled = jnp.where(active, (payoffs - low) / jnp.where(size > 0, size, 1.0), 0.0) + 1.0
    end = lax.while_loop(
        lambda now: _improves(now) & (now.pivots < most), _pivot, _begin(scaled, active)
    )
    weights, mixture = _solution(end, num_rows, num_columns)
    value = jnp.where(active, weights @ payoffs, jnp.inf).min()
    bound = (payoffs @ jnp.where(active, mixture, 0.0)).max()
    converged = bound - value <= 1e3 * ROUNDING * (size + jnp.abs(bound))
    return Game(weights, value, bound, end.pivots, converged)


def _begin(scaled, active):
    """All slacks are basic; a column that is inactive gains nothing."""
    num_rows, num_columns = scaled.shape
    ones, zero = jnp.ones((num_rows, 1), scaled.dtype), jnp.zeros((1, 1), scaled.dtype)
    objective = -active.astype(scaled.dtype)[None, :]
    table = jnp.block([[scaled, ones], [objective, zero]])
    variables = jnp.arange(num_rows + num_columns)
    return _Tableau(table, variables[num_columns:], variables[:num_columns], jnp.zeros((), int))


def _improves(now):
    return (now.table[-1, :-1] < -ROUNDING).any()


def _pivot(now):
    """The column with the largest gain enters, the row that limits it first leaves."""
    table = now.table
    enters = selection.best(-table[-1, :-1]).arm
    column = table[:, enters]
    usable = column[:-1] > ROUNDING
    ratios = jnp.where(usable, table[:-1, -1] / jnp.where(usable, column[:-1], 1.0), jnp.inf)
    leaves = selection.best(-ratios).arm
    row, pivot = selection.at(table, leaves), selection.at(column, leaves)
    there = jnp.arange(table.shape[1]) == enters
    here = (jnp.arange(table.shape[0]) == leaves)[:, None]
    share = jnp.where(there, 1.0, row) / pivot
    # Row and column of the pivot are replaced, the rest of the table is swept.
    rest = jnp.where(there, 0.0, table) - column[:, None] * share
    rows, columns = now.rows, now.columns
    return _Tableau(
        table=jnp.where(here, share, rest),
        rows=jnp.where(jnp.arange(rows.size) == leaves, selection.at(columns, enters), rows),
        columns=jnp.where(jnp.arange(columns.size) == enters, selection.at(rows, leaves), columns),
        pivots=now.pivots + 1,
    )


def _solution(end, num_rows, num_columns):
    """Mixtures of both players: prices of the slacks, and values of the basic columns."""
    prices, amounts = end.table[-1, :-1], end.table[:-1, -1]
    slacks = num_columns + jnp.arange(num_rows)
    own = jnp.where(end.columns[None, :] == slacks[:, None], prices[None, :], 0.0).sum(1)
    basic = end.rows[None, :] == jnp.arange(num_columns)[:, None]
    other = jnp.where(basic, amounts[None, :], 0.0).sum(1)
    return _normalised(own), _normalised(other)


def _normalised(weights):
    kept = jnp.maximum(weights, 0.0)
    total = kept.sum()
    return jnp.where(total > 0, kept / jnp.where(total > 0, total, 1.0), 1.0 / kept.size)
