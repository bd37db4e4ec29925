"""What a replication is played in: structure that compiles, numbers that do not, and checks."""

import functools
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..instances import Instance
from ..parameters import is_concrete, require
from ..signatures import check_call, check_options, function_of, name_of
from .debugging import debugged
from .device_loop import EpisodeFactory, Sound
from .episode import INSTANCE, root_key
from .problems import kind_of


class Structure(NamedTuple):
    """The static half of a trial; calling it with the numbers gives world and algorithm.

    Hashable, so that two calls which differ in numbers alone share their programs.
    """

    treedef: Any
    names: tuple  # static leaves, None where a number goes
    debug: bool = False  # whether the algorithm is watched, see `debugging`

    def __call__(self, numbers):
        """The `EpisodeFactory`: what is drawn for each replication, and how its world is built."""
        problem, build, horizon = self.tree(numbers)
        kind = kind_of(problem)
        built = functools.partial(_built, build=build, horizon=horizon, debug=self.debug)
        if kind is not None:
            return _given(kind, problem, built)

        def draw(key, world, replication):
            return jax.tree.map(jnp.asarray, problem(jax.random.fold_in(key, INSTANCE)))

        return EpisodeFactory(draw, functools.partial(built, drawn=True))

    def tree(self, numbers):
        """Problem, constructor and horizon with these numbers."""
        fill = iter(numbers)
        leaves = [next(fill) if static is _NUMBER else static for static in self.names]
        return jax.tree.unflatten(self.treedef, leaves)


def _given(kind, problem, built):
    """The `EpisodeFactory` of one problem; a replication has little of its own, or nothing."""

    def draw(key, world, replication):
        return kind.own(problem, replication)

    if jax.tree.leaves(jax.eval_shape(draw, None, 0, 0)):
        return EpisodeFactory(draw, lambda own: built(kind.given(problem, own)))
    once = built(problem)
    return EpisodeFactory(draw, lambda _: once)


def _built(instance, *, build, horizon, debug, drawn=False):
    """Environment, algorithm, and what is known of an instance `drawn` for a replication."""
    facts, kind = offered(instance, build, horizon), kind_of(instance)
    algorithm = kind.learner(instance, build(jnp.asarray(instance.arms), **facts))
    env = kind.env(instance, bound_options(build))
    sound = Sound(kind.healthy(instance), jnp.array(True))
    tells = getattr(function_of(build), "tells", None)
    if drawn and tells is not None:
        sound = sound._replace(told=tells(instance.arms, **bound_options(build)))
    return env, debugged(env, algorithm) if debug else algorithm, sound


class _Number:
    """Marks a leaf that is traced."""

    def __repr__(self):
        return "number"

    def __reduce__(self):
        return "_NUMBER"  # there is but one, in other processes too


_NUMBER = _Number()


def split(tree):
    """`(Structure, numbers)`: arrays and floats are numbers, everything else is structure."""
    leaves, treedef = jax.tree.flatten(tree)
    is_number = [isinstance(x, float | np.ndarray | np.generic | jax.Array) for x in leaves]
    names = tuple(_NUMBER if n else x for n, x in zip(is_number, leaves, strict=True))
    numbers = tuple(x for n, x in zip(is_number, leaves, strict=True) if n)
    return Structure(treedef, names), numbers


def as_tree(build):
    """A `functools.partial` as a pytree whose options are leaves, checked and converted."""
    if isinstance(build, functools.partial):
        options = getattr(build.func, "convert", lambda keywords: keywords)(build.keywords)
        options = {name: as_tree(value) for name, value in options.items()}
        return jax.tree_util.Partial(build.func, *build.args, **options)
    # Without leaves of its own a function is structure: two names for it compile once.
    return jax.tree_util.Partial(build) if inspect.isroutine(build) else build


def bound_options(build):
    """The options a caller has bound to a constructor."""
    return build.keywords if isinstance(build, functools.partial) else {}


def offered(instance, build, horizon):
    """What `simulate` passes to a constructor: what its signature names and nobody has bound."""
    facts = kind_of(instance).facts(instance) | {"horizon": horizon}
    names = inspect.signature(build).parameters
    return {k: v for k, v in facts.items() if k in names and k not in bound_options(build)}


def prepared(instance, algorithm, horizon=None):
    """`(Structure, numbers)` of what `simulate` is given, checked.

    Raises:
      ValueError: names the argument, what it was and what is allowed.
    """
    require(callable(algorithm), f"algorithm must be a constructor, got {algorithm!r}")
    check_options("algorithm", algorithm)
    build, problem = as_tree(algorithm), instance
    if kind_of(instance) is None:
        fits = callable(instance)
        require(fits, f"instance must be an Instance or a callable of a key, got {instance!r}")
        check_options("instance", instance)
        check_call("instance", instance, "a key")
        problem = as_tree(instance)
    with jax.enable_x64(True):
        build = completed(problem, build, horizon)
        return split((problem, build, None if horizon is None else np.int64(horizon)))


def completed(problem, build, horizon):
    """The constructor after all checks that values allow, with what the host computes for it."""
    if kind_of(problem) is None:
        problem = jax.eval_shape(lambda: problem(root_key(0)))
        require(
            isinstance(problem, Instance),
            f"instance must return an Instance for a key, got {type(problem).__name__}",
        )
    kind_of(problem).check(problem, horizon)
    facts = offered(problem, build, horizon) | bound_options(build)
    function = function_of(build)
    _check_context(problem, function)
    if "theta" in facts and "theta" not in bound_options(build):
        _check_parameter(problem, build)
    added = derived_options("algorithm", function, problem.arms, facts)
    _check_targets(problem, function)
    args = build.args if function is not build else ()
    return jax.tree_util.Partial(function, *args, **bound_options(build), **added)


def _check_context(problem, function):
    """Raise where an algorithm that is to be shown something is not, or the other way round."""
    shown, looks = kind_of(problem).contextual, getattr(function, "contextual", None)
    name = name_of(function)
    require(shown or not looks, f"instance must be contextual for {name}, which is shown examples")
    require(looks is not False or not shown, f"instance is contextual, but {name} is shown nothing")


def _check_parameter(problem, build):
    """Raise where an algorithm has to be told the parameter of an instance that has none."""
    if inspect.signature(build).parameters["theta"].default is None:
        return  # it does without
    if not (is_concrete(problem.theta) and is_concrete(problem.means)):
        return
    means = np.asarray(problem.means)
    known = np.any(problem.theta) or (means == means[0]).all()
    require(known, f"instance has no parameter that {name_of(build)} could be told: bind theta")


def _check_targets(problem, function):
    """Raise where an algorithm that answers with arms meets other targets."""
    if "targets" in inspect.signature(function).parameters or kind_of(problem).contextual:
        return
    arms, targets = problem.arms, problem.targets
    same = np.shape(arms) == np.shape(targets)
    if same and is_concrete(arms) and is_concrete(targets):
        same = np.array_equal(arms, targets)
    chooser = name_of(function)
    require(same, f"instance: its targets are not its arms, among which {chooser} chooses")


def answers_with_arms(problem, build):
    """Whether the answers of an algorithm on that problem are known to be arms."""
    if "targets" not in inspect.signature(build).parameters:
        return True
    if kind_of(problem) is not None:
        return np.array_equal(problem.arms, problem.targets)

    def tables(key):
        instance = problem(key)
        return instance.arms, instance.targets

    with jax.enable_x64(True):
        arms, targets = jax.make_jaxpr(tables)(root_key(0)).jaxpr.outvars
    return arms is targets


def derived_options(role, function, arms, options):
    """What a constructor has the host compute from its options, once they have been checked."""
    check_call(role, function, arms, **options)
    return getattr(function, "complete", lambda *_, **__: {})(arms, **options)
