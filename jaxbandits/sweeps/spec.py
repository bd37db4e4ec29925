"""A sweep as data: named constructors with options, axes, and how many replications."""

import dataclasses
import decimal
import fractions
import functools
import io
import itertools
import math
import numbers
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from ..engine import checkpoints
from ..engine.episode import MAX_PULLS
from ..feature_tables import is_concrete
from ..messages import brief, reason
from ..signatures import check_names, name_of, nearest, unknown
from ..system.data_files import Unreadable, read_text
from ..system.plugins import Catalogue, PluginFile
from . import names
from .columns import TAKEN
from .names import Constructor, PartKind
from .until import check as check_until

AxisValue: TypeAlias = str | float
Point: TypeAlias = dict[str, Any]  # by axis, an `AxisValue`
Only: TypeAlias = Mapping[str, Sequence[Any]]  # by axis, some of its values

TABLES = ("instances", "algorithms", "axes", "until")
WHOLE: tuple[str, ...] = ("replications", "seed", "horizon", "max_pulls")
SETTINGS: tuple[str, ...] = (*WHOLE, "record")
TOP_LEVEL: tuple[str, ...] = ("title", *SETTINGS, *TABLES)
LARGEST_WHOLE: int = 2**63  # whole numbers from here on do not fit an array
MOST_CELLS = 100_000  # each is checked on the host for a millisecond or more, and stored in a file


@dataclasses.dataclass(frozen=True)
class Part:
    """One table of a sweep: a constructor and its options.

    Attributes:
      kind: "instance" or "algorithm".
      label: the table's name in the sweep.
      build: the constructor, or a ready `Instance`.
      options: keywords for it.
      redraw: whether a random instance is drawn afresh for each replication.
      only: by axis, the values at which the part is simulated; without an entry, at all of them.
      source: the plugin that defines the constructor, and the hash of its code; "" where none does.
      folder: what the values of an axis `path` are relative to; None: the working directory.
    """

    kind: PartKind
    label: str
    build: Any
    options: dict[str, Any]
    redraw: bool = True
    only: Only = dataclasses.field(default_factory=dict)
    source: str = ""
    folder: Path | None = dataclasses.field(default=None, compare=False)

    @property
    def table(self) -> str:
        """The name of the part's table in a file, for messages."""
        return f"[{self.kind}s.{self.label}]"

    def at(self, point: Point) -> dict[str, Any]:
        """The options at a point of the axes: an axis reaches every option of its name."""
        own = {name: x for name, x in point.items() if self.depends_on(name)}
        return self.options | _with_path(own, self.folder)

    def depends_on(self, axis: str) -> bool:
        """Whether the constructor has an option of the axis's name."""
        return callable(self.build) and axis in names.options(self.kind, self.build)

    def plays(self, point: Point) -> bool:
        """Whether it is simulated at a point of the axes."""
        return all(point[name] in values for name, values in self.only.items())


class Combination(NamedTuple):
    """An instance with an algorithm at a point of the axes.

    Attributes:
      instance, algorithm, point: the three.
      instance_options, algorithm_options: those of the parts at this point.
      wanted: whether it is simulated.
    """

    instance: Part
    algorithm: Part
    point: Point
    instance_options: dict[str, Any]
    algorithm_options: dict[str, Any]
    wanted: bool


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Every instance with every algorithm at every point of the axes.

    Attributes:
      instances, algorithms: the parts.
      axes: values by name of the axis.
      replications, seed, horizon, max_pulls, record: as in `simulate`, the same for all cells.
      until: limits by rule; a cell ends early where all hold (see `until.py`).
      title: of figures and reports; no number depends on it.
    """

    instances: tuple[Part, ...]
    algorithms: tuple[Part, ...]
    axes: dict[str, tuple[AxisValue, ...]]
    replications: int
    seed: int = 0
    horizon: int | None = None
    max_pulls: int = MAX_PULLS
    record: str | Sequence[int] = "mixed"
    until: dict[str, float] = dataclasses.field(default_factory=dict)
    title: str = dataclasses.field(default="", compare=False)

    def __post_init__(self) -> None:
        from ..engine.checks import size_of, size_or_none

        for name in WHOLE:
            convert = size_or_none if name == "horizon" else size_of
            object.__setattr__(self, name, convert(name, getattr(self, name)))
        for kind, parts in (("instances", self.instances), ("algorithms", self.algorithms)):
            if not parts:
                raise ValueError(f"{kind}: a sweep needs at least one")
            check_names(f"names of {kind}", [part.label for part in parts])
        for name, values in self.axes.items():
            self._check_axis(name, values)
        self._check_size()
        for part in self.instances + self.algorithms:
            for name, values in part.only.items():
                self._check_only(part, name, values)
        if not isinstance(self.title, str):
            raise ValueError(f"title must be text, got {brief(self.title)}")
        _check_text("title", self.title)
        checkpoints.check(self.record, self.horizon)
        if not isinstance(self.record, str):
            object.__setattr__(self, "record", tuple(int(r) for r in self.record))
        check_until(self.until, self.horizon)

    def _check_axis(self, name: str, values: Any) -> None:
        given = list(values) if isinstance(values, tuple) else values  # as it was written
        if not isinstance(given, list) or not given:
            raise ValueError(f"[axes] {name} must be a list of values, got {brief(given)}")
        kinds = {_kind(v) for v in values}
        if any(value is None for value in values):  # which files of results would give back as NaN
            raise ValueError(f"[axes] {name} must be without None, got {brief(given)}")
        if kinds not in ({"number"}, {"flag"}, {"text"}):
            raise ValueError(
                f"[axes] {name} must be all numbers, all text or all flags, got {brief(given)}"
            )
        for value in values:
            _check_text(f"[axes] {name}", value)
            if isinstance(value, numbers.Integral) and not -LARGEST_WHOLE < value < LARGEST_WHOLE:
                raise ValueError(
                    f"[axes] {name} must have whole numbers below 2**63, got {brief(value)}"
                )
            if value != value:  # it equals nothing, so no cell could be found by it
                raise ValueError(f"[axes] {name} must be without NaN, got {brief(given)}")
        if len(set(values)) < len(values):
            raise ValueError(f"[axes] {name} has a value twice: {given!r}")
        parts = [p for p in self.instances + self.algorithms if callable(p.build)]
        known = {option for p in parts for option in names.options(p.kind, p.build)}
        if name not in known:
            raise unknown("axis", name, known)
        if name in TAKEN:
            raise ValueError(
                f"[axes] {name} is the name of something else in the results; rename the option, "
                f"to none of {', '.join(sorted(TAKEN))}"
            )

    @property
    def num_cells(self) -> int:
        """How many cells the grid has, those that are not simulated among them."""
        points = math.prod(map(len, self.axes.values()))
        return len(self.instances) * len(self.algorithms) * points

    def _check_size(self) -> None:
        if self.num_cells > MOST_CELLS:
            raise ValueError(
                f"axes: the grid has {self.num_cells:,} cells, and a sweep at most "
                f"{MOST_CELLS:,}; split it into several"
            )

    def _check_only(self, part: Part, name: str, values: Any) -> None:
        if name not in self.axes:
            raise _located(part.table[1:-1], unknown("axis of only", name, self.axes))
        listed = isinstance(values, list | tuple) and len(values) > 0
        # A flag equals a number, and is none.
        allowed = [(_kind(v), v) for v in self.axes[name]]
        given = [(v, _plain(v)) for v in values] if listed else []
        wrong = [v for v, one in given if (_kind(one), one) not in allowed] if listed else values
        if wrong or not listed:
            known = list(self.axes[name])
            raise ValueError(
                f"{part.table} only {name} must be some of {known}, got {brief(wrong)}"
            )

    def points(self) -> Iterator[Point]:
        """Every point of the axes, a dict each; one empty dict without axes."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def independent(self) -> dict[str, list[tuple[str, str]]]:
        """By axis, the labels of the instances with algorithms whose cells do not depend on it."""
        pairs = list(itertools.product(self.instances, self.algorithms))
        return {
            axis: [
                (one.label, two.label)
                for one, two in pairs
                if not (one.depends_on(axis) or two.depends_on(axis))
            ]
            for axis in self.axes
        }

    def combinations(self) -> Iterator[Combination]:
        """All cells of the grid, in its order, before anything is checked or built."""
        for one, two, point in itertools.product(self.instances, self.algorithms, self.points()):
            wanted = one.plays(point) and two.plays(point)
            yield Combination(one, two, point, one.at(point), two.at(point), wanted)


def read(path: Path | str, *, plugins: Sequence[PluginFile] = (), **overrides: Any) -> Sweep:
    """The `Sweep` of a TOML file; `path` options are relative to that file.

    Its title is the file's name, unless the file has a `title`.

    Args:
      path: the file.
      plugins: files whose constructors it may name, see `system.plugins.read_files`.
      overrides: settings in place of those of the file.
    Raises:
      ValueError: the file is missing or malformed, or names something unknown.
    """
    path = Path(path)
    try:
        table = tomllib.loads(io.StringIO(read_text(path), newline=None).read())
    except Unreadable as error:
        raise ValueError(f"{path}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: not valid TOML: {reason(error)}") from None
    except RecursionError:
        raise ValueError(f"{path}: not valid TOML: lists or tables nested too deep") from None
    try:
        whole = {"title": _printable(path.name)} | table | overrides
        return parse(whole, folder=path.parent, plugins=plugins)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse(
    table: Mapping[str, Any], *, folder: Path | str = ".", plugins: Sequence[PluginFile] = ()
) -> Sweep:
    """The `Sweep` that a TOML table describes.

    Args:
      table: what `tomllib` returns.
      folder: what `path` options are relative to.
      plugins: as in `read`.
    Raises:
      ValueError: names what was wrong and the nearest known name.
    """
    for name in table:
        if name not in TOP_LEVEL:
            raise unknown("key", name, TOP_LEVEL)
    if "replications" not in table:
        raise ValueError("replications is missing")
    rest = {name: table[name] for name in ("title", *SETTINGS) if name in table}
    if "horizon" in table and "max_pulls" in table:
        raise ValueError(
            "max_pulls is for sweeps without a horizon: with one all rounds are played"
        )
    if "record" in table and "horizon" not in table:
        raise ValueError("record is for sweeps with a horizon")
    axes = _mapping("axes", table.get("axes", {}))
    plan = Sweep(
        instances=_parts("instance", table, Path(folder), plugins),
        algorithms=_parts("algorithm", table, Path(folder), plugins),
        axes={name: tuple(v) if isinstance(v, list) else v for name, v in axes.items()},
        until=table.get("until", {}),
        **rest,
    )
    for part in plan.instances + plan.algorithms:
        missing = names.required(part.kind, part.build) - {*part.options, *plan.axes}
        if missing:
            raise ValueError(
                f"{part.table} {name_of(part.build)} needs the option {min(missing)!r}"
            )
    return plan


def planned(
    instances: Mapping[str, Any],
    algorithms: Mapping[str, Constructor],
    *,
    axes: Mapping[str, Any] | None = None,
    until: dict[str, float] | None = None,
    only: Mapping[str, Only] | None = None,
    **rest: Any,
) -> Sweep:
    """The `Sweep` of the arguments of `sweep`."""
    _by_name("instances", "instances", instances)
    _by_name("algorithms", "constructors", algorithms)
    axes, only = {} if axes is None else axes, {} if only is None else only
    _by_name("axes", "lists", axes)
    _by_name("only", "dicts of axes", only)
    for name, values in only.items():
        _by_name(f"only[{name!r}]", "lists", values)
    for name in only:
        if name not in {**instances, **algorithms}:
            raise unknown("name in only", name, {**instances, **algorithms})
    return Sweep(
        instances=tuple(_bound("instance", *item, only) for item in instances.items()),
        algorithms=tuple(_bound("algorithm", *item, only) for item in algorithms.items()),
        axes={name: _listed(name, values) for name, values in axes.items()},
        until={} if until is None else until,
        **rest,
    )


def _by_name(name: str, of: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a dict of {of} by name, got {brief(value)}")


def _bound(kind: PartKind, label: str, build: Any, only: Mapping[str, Only]) -> Part:
    """The `Part` of a constructor with its options bound, or of a ready instance."""
    mine = dict(only.get(label, {}))
    if isinstance(build, functools.partial) and not build.args:
        options = {name: _plain(value) for name, value in build.keywords.items()}
        return Part(kind, label, build.func, options, only=mine)
    return Part(kind, label, build, {}, only=mine)


def _listed(name: str, values: Any) -> Any:
    """A tuple of what can be listed, counted before; anything else is for `Sweep` to refuse."""
    number = len(values) if isinstance(values, list | tuple | range) else np.size(values)
    if number > MOST_CELLS:
        raise ValueError(
            f"[axes] {name} must have at most {MOST_CELLS:,} values, as many as a sweep may have "
            f"cells, got {number:,}"
        )
    if hasattr(values, "tolist"):
        values = values.tolist()
    return tuple(map(_plain, values)) if isinstance(values, list | tuple | range) else values


def _plain(value: Any) -> Any:
    """A fraction or decimal number as a float, an array without axes as its entry.

    Anything else is as it was.
    """
    if isinstance(value, fractions.Fraction | decimal.Decimal):
        return float(value)
    whole = isinstance(value, np.ndarray | np.bool_ | jax.Array) and np.ndim(value) == 0
    return np.asarray(value).item() if whole and is_concrete(value) else value


def _parts(
    kind: PartKind, table: Mapping[str, Any], folder: Path, plugins: Sequence[PluginFile]
) -> tuple[Part, ...]:
    parts = _mapping(f"{kind}s", table.get(f"{kind}s", {}))
    known = names.constructors(kind, plugins)
    return tuple(_part(kind, label, part, folder, known) for label, part in parts.items())


def _part(
    kind: PartKind, label: str, table: Any, folder: Path, known: Catalogue[Constructor]
) -> Part:
    where = f"{kind}s.{label}"
    options = dict(_mapping(where, table))
    name = _named(where, kind, "name", options, known)
    build, source = _looked_up(where, known, name), known.source(name)
    if known.is_own(name) and names.takes_another(kind, build):
        build, source = _around(kind, where, name, known, options)
    if isinstance(build, functools.partial):  # what a plugin has bound can be set by the table too
        build, options = build.func, {**build.keywords, **options}
    redraw = _redraw(where, name, build, options) if kind == "instance" else True
    only = _mapping(f"{where}.only", options.pop("only", {}))
    allowed = names.options(kind, build)
    for option, value in options.items():
        if option not in allowed:
            extra = ["redraw", "only"] if kind == "instance" else ["only"]
            raise _located(where, unknown(f"option of {name}", option, allowed + extra))
        if not _is_plain(value):
            raise ValueError(
                f"[{where}] {option} must be text, numbers or lists, got {brief(value)}"
            )
    options = _with_path(options, folder)
    return Part(kind, label, build, options, redraw, only, source, folder)


def _with_path(options: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """The options with `path` relative to the folder, where there is one."""
    path = options.get("path")
    if folder is None or not isinstance(path, str):
        return options
    return options | {"path": str((folder / path).resolve())}


def _looked_up(where: str, known: Catalogue[Constructor], name: str) -> Constructor:
    """The constructor of a known name; raises where a plugin is at fault."""
    try:
        return known[name]
    except ValueError as error:
        raise _located(where, error) from None


def _redraw(where: str, name: str, build: Constructor, options: dict[str, Any]) -> bool:
    """Whether a table says that the instance is drawn afresh for each replication."""
    if "redraw" not in options:
        return True
    redraw = options.pop("redraw")
    if not isinstance(redraw, bool):
        raise ValueError(f"[{where}] redraw must be true or false, got {brief(redraw)}")
    if not names.is_random(build):
        raise ValueError(f"[{where}] redraw is for random instances, and {name} is not random")
    return redraw


def _named(where: str, what: str, key: str, options: dict[str, Any], known: Collection[str]) -> str:
    """The known name that `options` hold under `key`, which is removed from them."""
    if key not in options:
        near = nearest(key, options)
        hint = f"; is it meant by {near!r}?" if near else ""
        raise ValueError(f"[{where}] {key} is missing{hint}")
    name = options.pop(key)
    if not isinstance(name, str) or name not in known:
        own = "; those of your own need --plugin FILE.py or an installed plugin"
        raise _located(where, ValueError(f"{unknown(what, name, known)}{own}"))
    return name


def _around(
    kind: PartKind,
    where: str,
    name: str,
    known: Catalogue[Constructor],
    options: dict[str, Any],
) -> tuple[Constructor, str]:
    """The constructor around the one that the option `kind` names, and that one's plugin."""
    inner = [n for n in known if not known.is_own(n) or names.may_be_inside(kind, known[n])]
    if kind not in options:
        near = nearest(kind, options)
        hint = f"; is it meant by {near!r}?" if near else ""
        raise ValueError(f"[{where}] {name} needs the option {kind!r}{hint}")
    chosen = _named(where, f"{kind} of {name}", kind, options, inner)
    build = _looked_up(where, known, chosen)
    try:
        return known[name](build), known.source(chosen)
    except ValueError as error:
        raise _located(where, error) from None


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"[{name}] must be a table, got {brief(value)}")
    return value


def _located(where: str, error: ValueError) -> ValueError:
    return ValueError(f"[{where}] {error}")


def _kind(value: Any) -> str | None:
    """The type of a value that an axis may hold; None for what it may not."""
    kinds = {"flag": bool, "text": str, "number": numbers.Real}
    return next((kind for kind, types in kinds.items() if isinstance(value, types)), None)


def _is_plain(value: Any) -> bool:
    """Whether an option in a file is text, a number or a list: no date and no table."""
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float)


def _check_text(what: str, value: Any) -> None:
    """Raise for text that file names and netCDF files cannot hold."""
    if isinstance(value, str) and not value.isprintable():
        raise ValueError(f"{what} must be of printable characters, got {brief(value)}")


def _printable(name: str) -> str:
    """The name of a file, with escapes for bytes that are no UTF-8 and for control characters."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
