"""The cells of a sweep: one instance with one algorithm at one point of the axes."""

import dataclasses
import functools
import inspect
import itertools
import numbers
from typing import Any

from ..signatures import check_call, check_options
from ..version import VERSION
from . import names
from .spec import Part
from .store import describe, digest_files

SIMULATED = ("replications", "seed", "horizon", "max_pulls", "record")
LARGEST = 2**63  # whole numbers from here on have no place in an array


@dataclasses.dataclass(frozen=True)
class Cell:
    """One of them.

    Attributes:
      instance, algorithm, point: where it stands in the sweep.
      spec: plain data, equal for cells that hold the same runs.
      problem: the `Instance`, or what draws one from a key.
      world: what is played, checked; see `partition.prepared`.
    """

    instance: Part
    algorithm: Part
    point: dict
    spec: dict
    problem: Any
    world: tuple

    @property
    def identity(self):
        """Equal for cells that hold the same runs."""
        return str(self.spec)

    @property
    def title(self):
        """What a reader calls the cell."""
        reached = {*self.instance.at(self.point), *self.algorithm.at(self.point)}
        where = "".join(f", {n} = {value}" for n, value in self.point.items() if n in reached)
        return f"{self.algorithm.label} on {self.instance.label}{where}"


def cells_of(plan, report=lambda done, total: None):
    """All cells of a sweep in the order of its grid, every option checked; None: not played.

    Args:
      report: a callable `(done, total)` for each cell; called with `done` None in the end.
    Raises:
      ValueError: names the table and what was wrong in it.
    """
    problems = {}  # each is built once: it may be read from a file, or drawn at some cost
    grid = list(itertools.product(plan.instances, plan.algorithms, plan.points()))
    cells = []
    try:
        for done, (instance, algorithm, point) in enumerate(grid):
            report(done, len(grid))
            played = instance.plays(point) and algorithm.plays(point)
            cells.append(_cell(plan, instance, algorithm, point, problems) if played else None)
    finally:
        report(None, len(grid))
    if not any(cells):
        raise ValueError("only: no cell of the sweep is played")
    return cells


def _cell(plan, instance, algorithm, point, problems):
    from ..engine.partition import prepared

    options = instance.at(point)
    key = instance.label, *(options.get(axis) for axis in plan.axes)
    if key not in problems:
        data = _data(instance, options)
        problems[key] = data, located(instance, point, _problem, plan, instance, point)
    data, problem = problems[key]
    spec = {
        "version": VERSION,
        "instance": [describe(instance.build), describe(options), instance.redraw],
        "algorithm": [describe(algorithm.build), describe(algorithm.at(point))],
        "data": data,
    }
    spec |= {name: getattr(plan, name) for name in SIMULATED}
    spec["record"] = plan.record if isinstance(plan.record, str) else list(plan.record)
    if plan.until:
        spec["until"] = {name: repr(float(limit)) for name, limit in plan.until.items()}
    build = functools.partial(algorithm.build, **algorithm.at(point))
    world = located(algorithm, point, prepared, problem, build, plan.horizon)
    return Cell(instance, algorithm, point, spec, problem, world)


def _data(instance, options):
    """Hash of the files an instance is read from."""
    try:
        below = getattr(instance.build, "reads_below", ())
        return digest_files(options["path"], below) if options.get("path") else None
    except OSError as error:
        raise ValueError(f"{instance.table} path: {error}") from None


def _problem(plan, instance, point) -> Any:
    """What `simulate` takes as its instance."""
    build, options = instance.build, instance.at(point)
    if not callable(build):
        return build
    supplied = ["a key"] if names.is_random(build) else []
    check_options("instance", functools.partial(build, **options), len(supplied))
    check_call("instance", build, *supplied, **options)
    if not names.is_random(build):
        return build(**options)
    if instance.redraw:
        # Checks the options without drawing anything.
        import jax

        from ..engine.episode import root_key

        draw = functools.partial(build, **options)
        with jax.enable_x64(True):  # JAX keeps tables as the first trace has them
            jax.eval_shape(draw, root_key(plan.seed))
        return draw
    return _fixed(build, options, plan.seed)


def _fixed(build, options, seed):
    from jax.random import fold_in

    from ..engine.episode import INSTANCE, root_key

    return build(fold_in(root_key(seed), INSTANCE), **options)


def located(part, point, function, *args):
    """Call, and put the name of the part's table in front of what goes wrong."""
    try:
        return function(*args)
    except (ValueError, TypeError, OverflowError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        odd = [] if isinstance(error, ValueError) else _odd(part, point)
        if odd:  # what JAX and NumPy say of them names no option
            message = f"{part.build.__name__} cannot use {' or '.join(odd)}"
        raise ValueError(f"{part.table} {message}") from None


def _odd(part, point):
    """Options that are no number, where their default is not of that kind either."""
    known = inspect.signature(part.build).parameters
    return [
        f"{name} = {value!r}"
        for name, value in part.at(point).items()
        if not (isinstance(value, numbers.Real) and abs(value) < LARGEST)
        and type(value) is not type(known[name].default)
    ]
