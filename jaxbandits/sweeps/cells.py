"""The cells of a sweep: one instance with one algorithm at one point of the axes."""

import contextlib
import dataclasses
import functools
import inspect
import json
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from ..messages import brief, reason
from ..signatures import check_call, check_options, function_of, name_of
from ..system import user_errors
from ..system.caller import each_once
from ..system.identity import Plain, describe, digest_files
from ..system.jax_options import pinned
from ..system.own_code import HASH, hash_of_code
from ..system.progress import Progress
from ..system.revisions import Revisions, counted, revised_ones, revisions_of
from . import names, until
from .spec import LARGEST_WHOLE, Combination, Part, Point, Sweep

if TYPE_CHECKING:
    from ..engine.partition import PreparedCell
    from ..system.traces import TraceCache

T = TypeVar("T")
HashOfCode: TypeAlias = Callable[..., str]  # (function, reads_files=...) -> see `hash_of_code`

SIMULATED = ("replications", "seed", "horizon", "max_pulls", "record")
MAIN = "__main__"  # the module of a script
FORMAT = "0.2.0"  # of a spec, named after the version that wrote it first
LEAST_NUMBERS = 3  # that every replication has: which one it is, its pulls and its answer
MANY = 1000  # cells, whose check takes long enough to show its progress


class TableError(ValueError):
    """Something is wrong in a table of the sweep, which the message names."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One of them.

    Attributes:
      instance, algorithm, point: which cell of the sweep it is.
      options: those of the algorithm at the point.
      spec: plain data, equal for cells that hold the same runs.
      problem: the `Instance`, or what draws one from a key.
      prepared: what is simulated, checked; see `partition.prepared`.
      title: what messages and progress call it.
      identity: text, equal for cells that hold the same runs.
      revisions: by table of the sweep, those of all that decides its numbers.
    """

    instance: Part
    algorithm: Part
    point: Point
    options: dict[str, Any]
    spec: dict[str, Any]
    problem: Any
    prepared: "PreparedCell"
    title: str
    identity: str
    revisions: Mapping[str, Revisions]

    @property
    def own_code(self) -> dict[str, list[str]]:
        """By table of the sweep, hashes of the user's code in it, where there is some."""
        parts = {x.table: self.spec[x.kind] for x in (self.instance, self.algorithm)}
        return {table: found for table, part in parts.items() if (found := _hashes(part))}

    def other_code(self) -> list[str]:
        """Tables whose code is another in this process than in the one that has made the cell.

        What came with the cell itself, as a script's own functions do, is as it was there.
        """
        own = [part for part in (self.instance, self.algorithm) if part.table in self.own_code]
        return [
            part.table
            for part in own
            if getattr(part.build, "__module__", MAIN) != MAIN
            and _hashes(_described(part, hash_of_code, part.at(self.point)))
            != self.own_code[part.table]
        ]

    @property
    def revised(self) -> Revisions:
        """What has been revised of all that decides its numbers."""
        return revised_ones(*self.revisions.values())


def _hashes(description: Plain) -> list[str]:
    return HASH.findall(json.dumps(description))


class BuiltInstance(NamedTuple):
    """An instance with its options.

    Attributes:
      description: of its constructor and options, for the spec.
      data: hash of the files it is read from, or None.
      problem: as of a `Cell`.
      revisions: of its constructor and of what draws its rewards.
    """

    description: Plain
    data: str | None
    problem: Any
    revisions: Revisions


def cells_of(plan: Sweep, *, progress: bool = False) -> list[Cell | None]:
    """All cells of a sweep in the order of its grid, every option checked.

    Those that are not simulated are None.

    Args:
      plan: the `Sweep`.
      progress: whether to show it where there are many cells.
    Raises:
      TableError: names the table and what was wrong in it.
      ValueError: the results of all cells would not fit into memory.
    """
    from ..system.traces import TraceCache

    built: dict[tuple[Any, ...], BuiltInstance] = {}  # once each: that may read a file, or draw
    code = _remembered(hash_of_code)
    traces = TraceCache()  # so that functions of users are read once for a sweep
    number, combinations = plan.num_cells, plan.combinations()
    _check_only(plan)
    cells: list[Cell | None] = []
    with each_once(), Progress(progress and number >= MANY) as display:
        if not display.has_bars:
            display.line(f"checking {number:,} cells")
        display.show("checking cells", 0, number)
        for done, combination in enumerate(combinations, 1):
            cell = _cell(plan, combination, built, code, traces) if combination.wanted else None
            cells.append(cell)
            display.show("checking cells", done, number)
    _check_memory(plan, cells)
    return cells


def _check_only(plan: Sweep) -> None:
    """Raise where no cell of the sweep is left."""
    if not any(combination.wanted for combination in plan.combinations()):
        tables = [part.table for part in plan.instances + plan.algorithms if part.only]
        raise TableError(f"{' and '.join(tables)} only: no cell of the sweep is played")


def _check_memory(plan: Sweep, cells: Iterable[Cell | None]) -> None:
    """Raise where the results of all cells, by the least that each has, do not fit into memory."""
    from ..engine.checkpoints import rounds_of
    from ..engine.checks import check_memory

    if plan.until:  # which say how many replications there are in the end
        return
    distinct = {cell.identity: cell.problem for cell in cells if cell is not None}
    arms = sum(len(getattr(problem, "arms", ())) for problem in distinct.values())
    rounds = 0 if plan.horizon is None else len(rounds_of(plan.record, plan.horizon))
    check_memory(plan.replications, arms + len(distinct) * (LEAST_NUMBERS + rounds))


def _remembered(code: HashOfCode) -> HashOfCode:
    """The hash of code, found once for each function."""
    found: dict[tuple[int, bool], tuple[str, Any]] = {}  # with functions, whose ids stay their own

    def inner(function: Any, *, reads_files: bool) -> str:
        key = id(function), reads_files
        if key not in found:
            found[key] = code(function, reads_files=reads_files), function
        return found[key][0]

    return inner


def _described(part: Part, code: HashOfCode, options: dict[str, Any], *more: Any) -> Plain:
    """A part with its options for the spec; the files of an option `path` are hashed beside it."""
    known = functools.partial(code, reads_files=bool(options.get("path")))
    return describe([part.build, options, *more], known)


def _cell(
    plan: Sweep,
    combination: Combination,
    built: dict[tuple[Any, ...], BuiltInstance],
    code: HashOfCode,
    traces: "TraceCache",
) -> Cell:
    from ..engine.partition import prepared

    instance, algorithm, point, of_instance, of_algorithm, _ = combination
    # Before anything is built, which may change what functions read.
    described = _described(algorithm, code, of_algorithm)
    key = instance.label, *(of_instance.get(axis) for axis in plan.axes)
    if key not in built:
        built[key] = _built(plan, instance, of_instance, code, traces)
    problem = built[key].problem
    spec = {"version": FORMAT, "instance": built[key].description, "algorithm": described}
    spec["data"] = built[key].data
    if own_data := _data(algorithm, of_algorithm):  # none of this package reads a file
        spec["algorithm_data"] = own_data
    spec |= {name: getattr(plan, name) for name in SIMULATED}
    spec["record"] = plan.record if isinstance(plan.record, str) else list(plan.record)
    if plugins := {part.kind: part.source for part in (instance, algorithm) if part.source}:
        spec["plugins"] = plugins  # so that what other code has played is not taken for this
    if plan.until:
        spec["until"] = {name: repr(float(limit)) for name, limit in plan.until.items()}
    build = functools.partial(algorithm.build, **of_algorithm)
    checked = located(algorithm, of_algorithm, prepared, problem, build, plan.horizon, traces)
    revisions = {
        instance.table: built[key].revisions,
        algorithm.table: revisions_of([algorithm.build, of_algorithm]),
        "[until]": until.revisions(plan.until),
    }
    if numbers := counted(*revisions.values()):  # else it is called as before there were any
        spec["revisions"] = numbers
    reached = {*of_instance, *of_algorithm}
    where = "".join(f", {name} = {x}" for name, x in point.items() if name in reached)
    return Cell(
        instance,
        algorithm,
        point,
        of_algorithm,
        spec,
        problem,
        checked,
        title=f"{algorithm.label} on {instance.label}{where}",
        identity=str(spec),
        revisions=revisions,
    )


def _built(
    plan: Sweep,
    instance: Part,
    options: dict[str, Any],
    code: HashOfCode,
    traces: "TraceCache",
) -> BuiltInstance:
    from ..engine.problems import revisions_of_rewards

    description = _described(instance, code, options, instance.redraw)
    data = _data(instance, options)
    problem, drawn = located(instance, options, _problem, plan, instance, options, traces)
    revisions = revisions_of([instance.build, options]) | revisions_of_rewards(drawn)
    return BuiltInstance(description, data, problem, revisions)


def check_endings(plan: Sweep, cells: Iterable[Cell]) -> None:
    """Raise where a replication of one of the cells would never end; see `check_ending`."""
    from ..engine.api import check_ending

    for cell in cells:
        limits = plan.max_pulls, plan.horizon, plan.record
        located(cell.algorithm, cell.options, check_ending, cell.prepared, *limits)


def _data(part: Part, options: dict[str, Any]) -> str | None:
    """Hash of the files an instance, or an algorithm of a user, is read from."""
    try:
        below = getattr(part.build, "reads_below", ())
        path = options.get("path")
        named = isinstance(path, str | os.PathLike) and path  # else the constructor refuses it
        return digest_files(path, below) if named else None
    except OSError as error:
        raise TableError(f"{part.table} path: {error}") from None


def _problem(
    plan: Sweep, instance: Part, options: dict[str, Any], traces: "TraceCache"
) -> tuple[Any, Any]:
    """What `simulate` takes as its instance; and the instance, or one that is drawn, in shapes."""
    from ..engine.problems import is_problem

    problem, drawn = _made(plan, instance, options, traces)
    if not is_problem(drawn):
        made = f"{name_of(instance.build)} must return an Instance"
        text = made if callable(instance.build) else "instance must be an Instance or a constructor"
        raise ValueError(f"{text}, got {brief(drawn)}")
    return problem, drawn


def _made(
    plan: Sweep, instance: Part, options: dict[str, Any], traces: "TraceCache"
) -> tuple[Any, Any]:
    build = instance.build
    if not callable(build):
        return build, build
    random = names.is_random(build)
    supplied = ["a key"] if random else []
    check_options("instance", functools.partial(build, **options), len(supplied))
    check_call("instance", build, *supplied, **options)
    if not random:
        return (made := build(**options)), made
    if instance.redraw:
        # Checks the options without drawing anything.
        import jax

        from ..engine.episode import root_key
        from ..system.named import is_named

        draw = functools.partial(build, **options)
        # JAX keeps tables as the first trace has them.
        own = is_named(build, options)
        with pinned(), contextlib.nullcontext() if own else traces.reading():
            drawn = jax.eval_shape(draw, root_key(plan.seed))
        return draw, drawn
    return (made := _fixed(build, options, plan.seed)), made


def _fixed(build: names.Constructor, options: dict[str, Any], seed: int) -> Any:
    """The instance that is drawn once for all replications."""
    from jax.random import fold_in

    from ..engine.episode import INSTANCE, root_key

    return build(fold_in(root_key(seed), INSTANCE), **options)


def located(part: Part, options: dict[str, Any], function: Callable[..., T], *args: Any) -> T:
    """Call `function`, and put the name of the part's table in front of what goes wrong.

    Args:
      part: an instance or algorithm.
      options: its options at the point of the cell.
      function, *args: what is called.
    Raises:
      TableError: the function has raised a `ValueError`, or another error that the options
        explain, or that code of a user has raised.
    """
    try:
        return function(*args)
    except (ValueError, TypeError, OverflowError) as error:
        odd = [] if isinstance(error, ValueError) else _odd(part, options)
        if odd:  # messages of JAX and NumPy name no option
            message = f"{name_of(part.build)} cannot use {' or '.join(odd)}"
            raise TableError(f"{part.table} {message}") from None
        text = None if isinstance(error, ValueError) else user_errors.told(error, _package(part))
        raise TableError(f"{part.table} {text or reason(error)}") from (error if text else None)
    except user_errors.RAISED as error:
        text = user_errors.told(error, _package(part))
        if text is None:
            raise
        raise TableError(f"{part.table} {text}") from error


def _package(part: Part) -> str:
    """That of the constructor."""
    return str(getattr(function_of(part.build), "__module__", None)).partition(".")[0]


def _odd(part: Part, options: dict[str, Any]) -> list[str]:
    """Options that are no number, where their default is of another type too."""
    known = inspect.signature(part.build).parameters
    return [
        f"{name} = {value!r}"
        for name, value in options.items()
        if not (isinstance(value, numbers.Real) and -LARGEST_WHOLE < value < LARGEST_WHOLE)
        and type(value) is not type(known[name].default)
    ]
