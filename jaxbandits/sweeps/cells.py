"""The cells of a sweep: one instance with one algorithm at one point of the axes."""

import dataclasses
import functools
import itertools
from typing import Any

from ..signatures import check_call, check_options
from ..version import VERSION
from . import names
from .spec import Part
from .store import describe, digest_files

SIMULATED = ("replications", "seed", "horizon", "max_pulls", "record")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One of them.

    Attributes:
      instance, algorithm, point: where it stands in the sweep.
      spec: plain data, equal for cells that hold the same runs.
      problem: the `Instance`, or what draws one from a key.
      world: what is played, checked; see `world.prepared`.
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


def cells_of(plan):
    """All cells of a sweep in the order of its grid, every option checked; None: not played.

    Raises:
      ValueError: names the table and what was wrong in it.
    """
    parts = itertools.product(plan.instances, plan.algorithms, plan.points())
    if not any(one.plays(point) and other.plays(point) for one, other, point in parts):
        raise ValueError("only: no cell of the sweep is played")
    problems = {}  # each is built once: it may be read from a file, or drawn at some cost
    return [
        _cell(plan, instance, algorithm, point, problems)
        if instance.plays(point) and algorithm.plays(point)
        else None
        for instance in plan.instances
        for algorithm in plan.algorithms
        for point in plan.points()
    ]


def _cell(plan, instance, algorithm, point, problems):
    from ..world import prepared

    options = instance.at(point)
    key = instance.label, *(options.get(axis) for axis in plan.axes)
    if key not in problems:
        data = _data(instance, options)
        problems[key] = data, located(instance.table, _problem, plan, instance, point)
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
    world = located(algorithm.table, prepared, problem, build, plan.horizon)
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

        from ..driver import root_key

        draw = functools.partial(build, **options)
        jax.eval_shape(draw, root_key(plan.seed))
        return draw
    return _fixed(build, options, plan.seed)


def _fixed(build, options, seed):
    from jax.random import fold_in

    from ..driver import INSTANCE, root_key

    return build(fold_in(root_key(seed), INSTANCE), **options)


def located(table, function, *args):
    """Call, and put the table's name in front of what goes wrong."""
    try:
        return function(*args)
    except (ValueError, TypeError, OverflowError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{table} {message}") from None
