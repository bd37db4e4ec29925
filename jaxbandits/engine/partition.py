"""A cell divided into structure, which is compiled, and numbers, which are not; and its checks."""

import enum
import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from ..core import Algorithm
from ..instances import Instance
from ..parameters import check_leaves, is_concrete, require
from ..signatures import (
    check_call,
    check_options,
    first_parameter,
    function_of,
    name_of,
    parameters_of,
    signature_of,
)
from ..system.caller import warn_caller
from ..system.file_stamps import FileStamp, stamps_of
from ..system.jax_options import pinned
from ..system.named import is_named
from ..system.traces import TraceCache
from ..types import NUMBERS, Key, Pytree, Rows
from .assumptions import broken_assumption
from .debugging import debugged
from .device_loop import EpisodeFactory, Numbers, ProblemChecks
from .episode import INSTANCE, like_root_key, root_key
from .problems import Problem, is_problem, type_of

# What a user gives as `algorithm` and as `instance`.
Constructor: TypeAlias = Callable[..., Algorithm]
ProblemSource: TypeAlias = Problem | Callable[[Key], Instance]


class CellStructure(NamedTuple):
    """The static half of a cell; calling it with the numbers makes its episodes.

    Hashable, so that two calls which differ in numbers alone share their programs.
    """

    treedef: Any
    leaves: tuple[Any, ...]  # static ones, and `_NUMBER` where a number goes
    debug: bool = False  # whether the algorithm is checked every round, see `debugging`
    files: tuple[FileStamp, ...] = ()  # that its constructors read
    traces: TraceCache | None = None  # of functions that are not this package's own

    def __call__(self, numbers: Numbers) -> EpisodeFactory:
        """The `EpisodeFactory`: what is drawn for each replication, and what is built from it."""
        problem, build, horizon = self.tree(numbers)
        built = functools.partial(_built, build=build, horizon=horizon, debug=self.debug)
        if is_problem(problem):
            return _factory_of_one(problem, built)

        def draw(key, cell, replication):
            drawn = _entered(problem(jax.random.fold_in(key, INSTANCE)))
            return jax.tree.map(jnp.asarray, drawn)

        return EpisodeFactory(draw, functools.partial(built, drawn=True))

    @property
    def in_any_call(self) -> "CellStructure":
        """What is the same in each call with these functions."""
        return self._replace(traces=None)

    def of_one(self, shapes: Any) -> tuple["CellStructure", Any]:
        """Itself and these shapes, as it is no stack."""
        return self, shapes

    def tree(self, numbers: Numbers) -> tuple[Any, Constructor, Any]:
        """Problem, constructor and horizon with these numbers."""
        rest = iter(numbers)
        leaves = [next(rest) if static is _NUMBER else static for static in self.leaves]
        return jax.tree.unflatten(self.treedef, leaves)


PreparedCell: TypeAlias = tuple[CellStructure, Numbers]


def _factory_of_one(problem, built):
    """The `EpisodeFactory` of one problem; a replication has little of its own, or nothing."""
    kind = type_of(problem)

    def draw(key, cell, replication):
        return kind.own_part(problem, replication)

    if jax.tree.leaves(jax.eval_shape(draw, None, 0, 0)):
        return EpisodeFactory(draw, lambda own: built(kind.with_own_part(problem, own)))
    shared = built(problem)
    return EpisodeFactory(draw, lambda _: shared)


def _built(instance, *, build, horizon, debug, drawn=False):
    """Environment, algorithm, and what is known of an instance `drawn` for a replication."""
    kind, facts = type_of(instance), supplied_options(instance, build, horizon)
    algorithm = kind.learner(instance, build(jnp.asarray(instance.arms), **facts))
    env = kind.env(instance, bound_options(build))
    checks = ProblemChecks(kind.is_possible(instance), jnp.array(True))
    accepts = getattr(function_of(build), "accepts_drawn", None)
    if drawn and accepts is not None:
        checks = checks._replace(spans=accepts(instance.arms, **bound_options(build)))
    return env, debugged(env, algorithm) if debug else algorithm, checks


class _Mark(enum.Enum):
    """Marks of leaves; in other processes too there is one of each."""

    NUMBER = "number"  # it is traced

    def __repr__(self):
        return self.value


_NUMBER = _Mark.NUMBER


def split(tree: Pytree) -> PreparedCell:
    """`(structure, numbers)`: arrays and floats are numbers, everything else is structure."""
    leaves, treedef = jax.tree.flatten(tree)
    is_number = [isinstance(x, NUMBERS) for x in leaves]
    static = tuple(_NUMBER if n else x for n, x in zip(is_number, leaves, strict=True))
    numbers = tuple(x for n, x in zip(is_number, leaves, strict=True) if n)
    return CellStructure(treedef, static), numbers


def as_tree(build: Any) -> Any:
    """A `functools.partial` as a pytree whose options are leaves, checked and converted."""
    if isinstance(build, functools.partial):
        options = getattr(build.func, "convert", lambda keywords: keywords)(build.keywords)
        options = {name: as_tree(value) for name, value in options.items()}
        for name, value in options.items():
            check_leaves(name, value)
        return Partial(build.func, *build.args, **options)
    # Without leaves of its own a function is structure: two names for it compile once.
    return Partial(build) if inspect.isroutine(build) else build


def bound_options(build: Constructor) -> Mapping[str, Any]:
    """The options a caller has bound to a constructor."""
    return build.keywords if isinstance(build, functools.partial) else {}


def supplied_options(instance: Problem, build: Constructor, horizon: Any) -> dict[str, Any]:
    """What `simulate` passes to a constructor: what its signature names and is not bound yet."""
    facts = type_of(instance).facts(instance) | {"horizon": horizon}
    names = parameters_of(build)
    return {k: v for k, v in facts.items() if k in names and k not in bound_options(build)}


def prepared(
    instance: ProblemSource,
    algorithm: Constructor,
    horizon: int | None = None,
    traces: TraceCache | None = None,
) -> PreparedCell:
    """`(structure, numbers)` of what `simulate` is given, checked.

    Args:
      instance, algorithm, horizon: as `simulate` is given them.
      traces: of all cells of a call; by default the cell is one.
    Raises:
      ValueError: names the argument, what it was and what is allowed.
    """
    _check_order(instance, algorithm)
    require(callable(algorithm), "algorithm must be a constructor", algorithm)
    check_options("algorithm", algorithm)
    build, problem = as_tree(algorithm), _without_key(instance)
    problem = _entered(problem, traces) if is_problem(problem) else _checked_source(problem)
    given, _ = split((problem, build))
    own = is_named(given.treedef, *(x for x in given.leaves if x is not _NUMBER))
    traces = None if own else traces or TraceCache()
    with pinned():
        build = completed(problem, build, horizon, traces)
        structure, numbers = split((problem, build, None if horizon is None else np.int64(horizon)))
    files = (*stamps_of(instance), *stamps_of(algorithm))
    return structure._replace(files=files, traces=traces), numbers


def _check_order(instance, algorithm):
    """Raise where the instance was given as the algorithm and the algorithm as the instance."""
    makes_algorithms = hasattr(function_of(instance), "complete")
    if is_problem(algorithm):
        swapped = callable(instance) and not is_problem(instance)
    else:
        swapped = makes_algorithms and not hasattr(function_of(algorithm), "complete")
    if swapped:
        raise ValueError(
            f"instance and algorithm are swapped: got {name_of(instance)} as the instance; "
            "the instance comes first"
        )


def _without_key(source: Any) -> Any:
    """What a constructor of one fixed instance returns; anything else as it is."""
    if is_problem(source) or not callable(source):
        return source
    try:
        signature_of(source).bind()
    except (TypeError, ValueError):  # it needs a key, or has no signature that Python can read
        return source
    return source if first_parameter(source) == "key" else source()


def _checked_source(draw: Any) -> Any:
    """A callable that draws instances, checked and as a pytree."""
    fits = callable(draw)
    require(fits, "instance must be an Instance or a callable of a key", draw)
    check_options("instance", draw, supplied=int(first_parameter(function_of(draw)) == "key"))
    check_call("instance", draw, "a key")
    return as_tree(draw)


def _entered(drawn, traces=None):
    """What a callable has drawn, checked; anything but a problem is refused elsewhere."""
    return type_of(drawn).entered(drawn, traces) if is_problem(drawn) else drawn


def completed(
    source: Any, build: Constructor, horizon: int | None, traces: TraceCache | None = None
) -> Partial:
    """The constructor after all checks that values allow, with what the host computes for it.

    Args:
      source: a problem, or a callable that draws one from a key.
      build, horizon: as `simulate` is given them.
      traces: see `CellStructure`.
    """
    problem = source
    if not is_problem(source):
        with nullcontext() if traces is None else traces.reading():
            problem = jax.eval_shape(lambda: _entered(source(root_key(0))))
        require(
            isinstance(problem, Instance),
            f"instance must return an Instance for a key, got {type(problem).__name__}",
        )
    type_of(problem).check(problem, horizon)
    facts = {**supplied_options(problem, build, horizon), **bound_options(build)}
    function = function_of(build)
    _check_context(problem, function)
    if "theta" in facts and "theta" not in bound_options(build):
        _check_parameter(problem, build)
    added = derived_options("algorithm", function, problem.arms, facts)
    _check_targets(problem, function)
    if (text := broken_assumption(problem, build)) is not None:
        warn_caller(text)
    args = build.args if isinstance(build, functools.partial) else ()
    return Partial(function, *args, **bound_options(build), **added)


def _check_context(problem, function):
    """Raise unless both instance and algorithm are contextual, or neither is."""
    contextual, wanted = type_of(problem).contextual, getattr(function, "contextual", None)
    name = name_of(function)
    require(
        contextual or not wanted, f"instance must be contextual for {name}, which is shown examples"
    )
    require(
        wanted is not False or not contextual,
        f"instance is contextual, but {name} is shown nothing",
    )


def _check_parameter(problem, build):
    """Raise where an algorithm has to be told the parameter of an instance that has none."""
    if parameters_of(build)["theta"].default is None:
        return  # it can do without
    if not (is_concrete(problem.theta) and is_concrete(problem.means)):
        return
    means = np.asarray(problem.means)
    known = np.any(problem.theta) or (means == means[0]).all()
    require(known, f"instance has no parameter that {name_of(build)} could be told: bind theta")


def _check_targets(problem, function):
    """Raise where an algorithm that answers with arms meets other targets."""
    if "targets" in parameters_of(function) or type_of(problem).contextual:
        return
    arms, targets = problem.arms, problem.targets
    same = np.shape(arms) == np.shape(targets)
    if same and is_concrete(arms) and is_concrete(targets):
        same = np.array_equal(arms, targets)
    name = name_of(function)
    require(same, f"instance: its targets are not its arms, among which {name} chooses")


def answers_with_arms(source: Any, build: Constructor) -> bool:
    """Whether the answers of an algorithm are known to be arms.

    Args:
      source: a problem, or a callable that draws one from a key.
      build: the constructor with its options.
    """
    if "targets" not in parameters_of(build):
        return True
    if is_problem(source):
        return np.array_equal(source.arms, source.targets)

    def tables(key):
        instance = source(key)
        return instance.arms, instance.targets

    with pinned():
        arms, targets = jax.make_jaxpr(tables)(like_root_key()).jaxpr.outvars
    return arms is targets


def derived_options(
    role: str, function: Constructor, arms: Rows, options: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What a constructor has the host compute from its options, after these were checked.

    Args:
      role: what errors call it, "algorithm" say.
    """
    check_call(role, function, arms, **options)
    return getattr(function, "complete", lambda *_, **__: {})(arms, **options)
