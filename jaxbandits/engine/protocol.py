"""What `init`, `ask` and `tell` must return: checked on shapes, before anything compiles."""

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.random import fold_in
from jax.tree_util import keystr, tree_flatten_with_path

from ..core import Algorithm, Move
from ..messages import brief, reason
from ..parameters import require
from ..system import untraceable
from ..types import Key, Pytree
from .device_loop import Factories, LoopInputs
from .episode import INIT, ask_key, kept

PACKAGE: str = __name__.partition(".")[0] + "."
PARAMETERS: dict[str, str] = {
    "init": "key",
    "ask": "key and state, and the rows of a context",
    "tell": "state, move and total",
}


def check_structure(structure: Factories, inputs: LoopInputs) -> None:
    """Check the algorithm of a structure for numbers of these shapes, see `check_built`.

    Args:
      structure: makes an `EpisodeFactory` of numbers.
      inputs: arrays or their shapes.
    """

    def build(inputs):
        factory, zero = structure(inputs.numbers), jnp.zeros((), int)
        key = fold_in(inputs.root, zero)
        env, algorithm, _ = factory.build(factory.draw(key, *factory.locate(zero)))
        return algorithm, key, jax.eval_shape(env.context, key), env.num_answers

    check_built(build, inputs)


def check_built(build: Callable[..., tuple[Any, ...]], *args: Any) -> None:
    """Check an algorithm of the user's own, see `check`; `args` are arrays or their shapes.

    Those of this package have passed, in its tests: tracing them again would take a moment.

    Args:
      build: a function of `args` that returns the arguments of `check`; traced.
    """
    errors = []

    def traced(*args):
        algorithm, *rest = build(*args)
        functions = [getattr(algorithm, name, None) for name in Algorithm._fields]
        if all(str(getattr(f, "__module__", "")).startswith(PACKAGE) for f in functions):
            return
        try:
            check(algorithm, *rest)
        except ValueError as error:
            errors.append(error)

    jax.eval_shape(traced, *args)
    if errors:
        raise errors[0]  # only here, so that JAX adds no remark about its frames


def check(
    algorithm: Any, key: Key, context: tuple[Any, ...] = (), num_answers: int | None = None
) -> None:
    """Raise unless the three functions fit together; nothing is computed.

    Args:
      algorithm: what a constructor has returned.
      key: of a replication.
      context: what `ask` is given besides key and state, arrays or their shapes.
      num_answers: M: an answer is an index below it, or a mask of that length; None: not known.
    Raises:
      ValueError: names the function, what it returned and what is allowed.
    """
    functions = [getattr(algorithm, name, None) for name in Algorithm._fields]
    fits = all(map(callable, functions))
    require(fits, "algorithm: its constructor must return an Algorithm", algorithm)
    init, ask, tell = functions
    name = getattr(ask, "__qualname__", "").split(".")[0] or type(algorithm).__name__
    where = f"algorithm {name}:"
    state = _shapes(where, "init", init, fold_in(key, INIT))
    move = _shapes(where, "ask", ask, ask_key(key, 0), state, *context)
    _check_move(f"{where} ask must return a Move", move, num_answers)
    total = jax.ShapeDtypeStruct(move.arm.shape, jnp.zeros((), float).dtype)
    after = _shapes(where, "tell", tell, state, move, total)
    forgotten = after is None and state is not None
    require(not forgotten, f"{where} tell returned None; did you forget `return`?")
    difference = different(state, after)
    require(difference is None, f"{where} tell must return a state like that of init: {difference}")


def _check_move(must, move, num_answers):
    require(isinstance(move, Move), f"{must}, got {_kind(move)}")
    arm, count, answer = move.arm, move.count, move.answer
    whole = jnp.issubdtype(arm.dtype, jnp.integer) and len(arm.shape) <= 1
    require(whole, f"{must} whose arm is an integer or a vector of them, got {_brief(arm)}")
    if count is not None:
        fits = jnp.issubdtype(count.dtype, jnp.integer) and count.shape == arm.shape
        allowed = f"None or integers of the shape {list(arm.shape)} of arm"
        require(fits, f"{must} whose count is {allowed}, got {_brief(count)}")
    fits = move.done.dtype == bool and move.done.shape == ()
    require(fits, f"{must} whose done is a single bool, got {_brief(move.done)}")
    index = jnp.issubdtype(answer.dtype, jnp.integer) and answer.shape == ()
    size = answer.shape if num_answers is None else (num_answers,)
    mask = answer.dtype == bool and answer.shape == size and len(size) == 1
    length = "" if num_answers is None else f" of length {num_answers}"
    allowed = f"a single integer or a bool mask{length}"
    require(index or mask, f"{must} whose answer is {allowed}, got {_brief(answer)}")
    for name, value in kept(move.info).items():
        single = getattr(value, "shape", None) == ()
        require(single, f"{must} whose info has single numbers, got {brief(value)} for {name!r}")


def different(before: Pytree, after: Pytree) -> str | None:
    """How the shapes of one pytree differ from those of another: a phrase; None if they do not."""
    trees = [jax.tree.structure(tree) for tree in (before, after)]
    types = [type(tree) for tree in (before, after)]
    if types[0] is not types[1]:
        return f"it is of the type {types[1].__name__}, and {types[0].__name__} in that of init"
    if trees[0] != trees[1] and trees[0].num_leaves == trees[1].num_leaves:
        return f"it is {trees[1]}, and {trees[0]} in that of init"
    one, two = (dict(_leaves(tree)) for tree in (before, after))
    for path, leaf in one.items():
        if path not in two:
            return f"{path} is missing"
        if _brief(two[path]) != _brief(leaf):
            return f"{path} is {_brief(two[path])}, and {_brief(leaf)} in that of init"
    return next((f"{path} is new" for path in two if path not in one), None)


def _kind(value):
    """What kind of thing was returned in place of a `Move`."""
    if value is None:
        return "None; did you forget `return`?"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"an array {_brief(value)}"
    return type(value).__name__


def _leaves(tree):
    """`(path, leaf)` of each leaf; the path as it is written in Python, `state.counts` say."""
    return [("state" + keystr(path), leaf) for path, leaf in tree_flatten_with_path(tree)[0]]


def _brief(leaf):
    """Dtype and shape of an array, `float64[3,2]` say."""
    return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"


def _shapes(where, name, function, *args):
    """The shapes of what a function returns; raises unless these are arrays."""
    _check_parameters(f"{where} {name}", PARAMETERS[name], function, len(args))
    must, returned = f"{where} {name} must return", []

    def call(*args):
        try:
            returned.append(function(*args))
        except Exception as error:  # which may name functions of JAX alone
            error.add_note(f"{where.rstrip(':')}: this was raised in its {name}")
            raise
        return returned[0]

    try:
        shapes = jax.eval_shape(call, *args)
    except Exception as error:
        text = untraceable.fault(error, f"{where} {name}")
        if text is not None:
            raise ValueError(text) from error
        if not (returned and isinstance(error, TypeError)):  # its own error
            raise
        _check_fields(must, returned[0])
        raise ValueError(
            f"{must} arrays in named tuples, tuples or dicts: {reason(error)}"
        ) from None
    _check_fields(must, returned[0])
    return shapes


def _check_fields(must, move):
    """Raise unless each field of a `Move` is one array, its info aside."""
    if not isinstance(move, Move):
        return
    for field, value in zip(Move._fields, move, strict=True):
        text = f"{must} a Move of arrays: {field} is {value!r}, write jnp.asarray({value!r})"
        require(not isinstance(value, bool | int | float), text)
        may_be_anything = field == "info" or (field == "count" and value is None)
        single = may_be_anything or (hasattr(value, "dtype") and hasattr(value, "shape"))
        require(single, f"{must} a Move whose {field} is one array", value)


def _check_parameters(what, parameters, function, number):
    """Raise if the function's signature is known and does not take so many arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*range(number))
    except TypeError:
        raise ValueError(
            f"{what} is called with {number} arguments ({parameters}), and takes {signature}"
        ) from None
