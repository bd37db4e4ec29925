"""A sweep in the attributes of its results, and what is lost where another replaces them."""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..system.identity import Number, Plain, described, differences, entries_of
from ..system.revisions import Revisions, changes
from ..version import VERSION
from .cells import Cell
from .columns import NUM_ARMS, OF_PARTS, TAKEN
from .spec import Sweep
from .stated import stated
from .summaries import EACH

if TYPE_CHECKING:
    import xarray

Attributes: TypeAlias = Mapping[str, Any]  # of a dataset

SAME = ("seed", "horizon", "max_pulls", "record", "until")
READY = " constructor "  # before a part of an instance that is given ready
MOST_NAMED = 4  # differences in one line


def attributes(plan: Sweep) -> dict[str, Any]:
    """Plain data that say what is simulated, for the attributes of a dataset."""
    parts = plan.instances + plan.algorithms
    options = {
        part.table: constructor_of(part.build)
        | {"redraw": part.redraw}
        | ({"plugin": part.source} if part.source else {})
        | ({"only": readable(part.only)} if part.only else {})
        | {name: readable(value) for name, value in part.options.items()}
        for part in parts
    }
    record = plan.record if isinstance(plan.record, str) else list(plan.record)
    return {
        "jaxbandits": VERSION,
        "seed": plan.seed,
        "replications": plan.replications,
        "max_pulls": plan.max_pulls,
        "horizon": 0 if plan.horizon is None else plan.horizon,
        "record": json.dumps(record),
        "until": json.dumps(plan.until),
        "axes": json.dumps(list(plan.axes)),
        "independent": json.dumps(plan.independent()),
        "options": json.dumps(options),
        "entries": json.dumps(entries_of([(part.build, part.options) for part in parts])),
        **({"title": plan.title} if plan.title else {}),
    }


def facts_of(cells: Iterable[Cell | None]) -> dict[str, str]:
    """What is known of cells once they are built, for the attributes of a dataset; JSON each.

    `data`: by instance, the hashes of the files that it is read from. `revisions`: by table, the
    names of what decides the numbers and what has changed in each. `code`: by table, the hashes of
    a user's code.
    """
    data: dict[str, set[str]] = {}
    revisions: dict[str, Revisions] = {}
    code: dict[str, set[str]] = {}
    for cell in cells:
        if cell is not None:
            for table, each in cell.revisions.items():
                revisions.setdefault(table, {}).update(each)
            for table, hashes in cell.own_code.items():
                code.setdefault(table, set()).update(hashes)
            if cell.spec["data"] is not None:
                data.setdefault(cell.instance.label, set()).add(cell.spec["data"])
    return {
        "data": _listed(data),
        "revisions": json.dumps(revisions, sort_keys=True),
        "code": _listed(code),
    }


def _listed(sets: Mapping[str, Iterable[str]]) -> str:
    return json.dumps({name: sorted(entries) for name, entries in sets.items()})


def constructor_of(build: Any) -> dict[str, Plain]:
    """The importable name of a constructor, and that of the algorithm it is around."""
    if hasattr(build, "inner"):
        inner = readable(build.inner)
        return {"constructor": importable(build.outer, "jaxbandits"), "algorithm": inner}
    return {"constructor": readable(build)}


def readable(value: Any) -> Plain:
    """A value for JSON: numbers as numbers, functions by the names they are imported by."""
    return described(value, _number, _name)


def importable(name: str, module: str, function: Any = None) -> str:
    """`module.name` by the shortest path at which the function is found.

    >>> import jaxbandits as jb
    >>> importable("soare", "jaxbandits.instances.papers", jb.instances.soare)
    'jaxbandits.instances.soare'
    """
    parts = module.split(".")
    for length in range(1, len(parts)):
        shelf = ".".join(parts[:length])
        found = getattr(sys.modules.get(shelf), name, None)
        if found is function is not None:
            return f"{shelf}.{name}"
    return f"{module}.{name}"


def _name(function: Any) -> str:
    if hasattr(function, "inner"):
        found = constructor_of(function)
        return f"{found['constructor']}({found['algorithm']})"
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return importable(name, function.__module__ or "__main__", function)


def _number(value: Number) -> Number | str:
    """JSON has no infinity and no NaN; those, and complex numbers, are text."""
    finite = not isinstance(value, complex) and math.isfinite(value)
    return value if finite else repr(value)


def lost(old: "xarray.Dataset", plan: Sweep, new: Attributes) -> list[str]:
    """What the dataset `old` holds that the results of a `Sweep` will not, in words.

    A sweep with more replications, algorithms, instances or points holds all that one with fewer
    does, as a replication depends on nothing but the seed and its number.

    Args:
      old: the dataset of a sweep.
      plan: the `Sweep` whose results are to take its place.
      new: the attributes that those results will have.
    """
    found = [
        f"{name} {_shown(old.attrs[name])} instead of {_shown(new[name])}"
        for name in SAME
        if name in old.attrs and old.attrs[name] != new[name]
    ]
    if old.attrs.get("experiment", "") != new["experiment"]:
        found.append(f"that of {_experiment(old.attrs)} instead of {_experiment(new)}")
    number = max(old.attrs["replications"], old.sizes.get(EACH, 0))
    if number > plan.replications:
        found.append(f"{number:,} replications instead of {plan.replications:,}")
    axes = stated(old.attrs, "axes")
    if set(axes) != set(plan.axes):
        return [*found, f"axes {_list(axes)} instead of {_list(plan.axes)}"]
    found += _added(old, axes, new["experiment"])
    found += [
        f"also {axis} = {_list(gone)}"
        for axis in axes
        if (gone := [v for v in old[axis].values.tolist() if v not in plan.axes[axis]])
    ]
    labels = {"instance": plan.instances, "algorithm": plan.algorithms}
    for kind, parts in labels.items():
        known = {part.label for part in parts}
        more = [label for label in old[kind].values.tolist() if label not in known]
        found += [f"also {kind} {label!r}" for label in more]
    return found + _revised(old, new) + _options_lost(old, plan, new) + _data_lost(old, new)


def _added(old: "xarray.Dataset", axes: Sequence[str], experiment: str) -> list[str]:
    """What a sweep does not write: others have put it there, or several results into one file."""
    grid = ("instance", "algorithm", EACH, *axes)
    labels = {name: old[name].values.tolist() for name in grid if name in old.coords}
    found = [
        f"{name} {_list(twice[:MOST_NAMED])} more than once"
        for name, given in labels.items()
        if (twice := [one for one, number in Counter(given).items() if number > 1])
    ]
    known = {*grid, *TAKEN, NUM_ARMS}
    ours = [column for name, column in old.variables.items() if name in known]
    more = dict.fromkeys(dim for column in ours for dim in column.dims if dim not in known)
    found += [f"also the dimension {name!r}" for name in more]
    if not experiment:  # else it adds columns of its own
        names = [x for x in old.variables if not (x in known or str(x).startswith(OF_PARTS))]
        found += [f"also the variable {name!r}" for name in names if name not in more]
    return found


def _revised(old: "xarray.Dataset", new: Attributes) -> list[str]:
    """What has been revised of the parts that both have; of results without a word it is all."""
    had = stated(old.attrs, "revisions")
    tables = {"[until]", *stated(old.attrs, "options")}
    lines: dict[str, None] = {}
    for table, now in stated(new, "revisions").items():
        if table in tables:
            before = had.get(table, dict.fromkeys(now, ()))
            both = before.keys() & now.keys()
            earlier, later = ({name: each[name] for name in both} for each in (before, now))
            lines |= dict.fromkeys(changes(earlier, later))
    return list(lines)


def _options_lost(old: "xarray.Dataset", plan: Sweep, new: Attributes) -> list[str]:
    """Of the parts that both have; files written before `record` was stored are not compared."""
    if "record" not in old.attrs:
        return []
    had, has = (stated(attrs, "options") for attrs in (old.attrs, new))
    entries = {
        digest: table
        for attrs in (old.attrs, new)
        for digest, table in stated(attrs, "entries").items()
    }
    found: list[str] = []
    for table in [table for table in had if table in has]:
        one, two = had[table], has[table]
        bare = ({name: x for name, x in each.items() if name != "only"} for each in (one, two))
        found += [
            f"{table}{where.replace(READY, ' ')} {before} instead of {after}"
            for where, before, after in differences(*bare, entries)
        ]
        for axis, values in plan.axes.items():
            before = one.get("only", {}).get(axis, old[axis].values.tolist())
            after = two.get("only", {}).get(axis, values)
            if gone := [v for v in before if v in values and v not in after]:
                found.append(f"also {table} at {axis} = {_list(gone)}")
    return found


def _data_lost(old: "xarray.Dataset", new: Attributes) -> list[str]:
    had, has = (stated(attrs, "data") for attrs in (old.attrs, new))
    files = [x for x, hashes in had.items() if not set(hashes) <= set(has.get(x, hashes))]
    return [f"other files behind instance {label!r}" for label in files] + [
        f"other code of yours behind {table}" for table in _other_code(old, new)
    ]


def _other_code(old: "xarray.Dataset", new: Attributes) -> list[str]:
    """The tables of both whose functions have changed, of results that say what they were."""
    if "code" not in old.attrs:
        return []
    had, has = (stated(attrs, "code") for attrs in (old.attrs, new))
    tables = stated(old.attrs, "options").keys() & stated(new, "options").keys()
    pairs = [(table, set(had.get(table, ())), set(has.get(table, ()))) for table in sorted(tables)]
    # A table without a hash is of this package, of which parts may be replaced.
    return [table for table, then, now in pairs if not then <= now or (now and not then)]


def in_words(differences: Sequence[str]) -> str:
    """The first differences in one line, and the number of the others."""
    rest = len(differences) - MOST_NAMED
    more = [f"and {rest} more"] if rest > 0 else []
    return ", ".join([*differences[:MOST_NAMED], *more])


def _experiment(attrs: Attributes) -> str:
    title = attrs.get("experiment", "")
    return f"{title!r}" if title else "a file"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _list(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values)) or "none"
