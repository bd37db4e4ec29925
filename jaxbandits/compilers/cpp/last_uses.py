"""Which arrays nobody reads after an equation, which may therefore change them in place."""

from collections.abc import Mapping

from jax.extend.core import Jaxpr, Var

from .values import Value


def last_readers(jaxpr: Jaxpr) -> dict[Var, int]:
    """The position of the last equation that reads a variable; results are read after them all."""
    lists = [*(eqn.invars for eqn in jaxpr.eqns), jaxpr.outvars]
    return {x: k for k, atoms in enumerate(lists) for x in atoms if isinstance(x, Var)}


def given_up(
    var: Var, reader: int, jaxpr: Jaxpr, values: Mapping[Var, Value], last: Mapping[Var, int]
) -> bool:
    """Whether equation `reader` is the last to need the array that holds a variable.

    Values that are written where they are read may need it too: which do is known of the arrays of
    loops alone, see `Value.reads`.

    Args:
      values: of the variables so far.
      last: see `last_readers`.
    """
    name = values[var].array
    if reader != last[var] or reader >= len(jaxpr.eqns) or name not in values[var].reads:
        return False
    if sum(x is var for x in jaxpr.eqns[reader].invars) > 1:
        return False
    later = [x for y, x in values.items() if y is not var and last.get(y, -1) >= reader]
    return not any(name == x.array or name in x.reads for x in later)
