"""Options of constructors: what each may be, checked before anything compiles.

A constructor declares an option once, as `delta: Probability = 0.05`. The type is an `Annotated`
that carries an `Option`. The decorator `constructor` reads it, checks and converts concrete values
(a traced value was checked before it was traced), and tells the simulator which options are numbers
and which are names or sizes. Numbers are traced, so that a new value needs no new compilation.
"""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .core import Algorithm
from .feature_tables import (
    check_arms,
    check_condition,
    check_spans,
    is_concrete,
    require,
    tells_span,
)
from .kernels.estimate.links import FAMILIES
from .kernels.linalg import scaling
from .messages import brief, reason
from .real_numbers import fault, is_flag
from .signatures import check_options, nearest
from .system.jax_options import pinning
from .types import NUMBERS, Rows, Scalar
from .whole_numbers import allowed_whole, is_whole

Values: TypeAlias = Mapping[str, Any]  # the arguments of a constructor by name

LARGEST: int = 2**62  # largest whole number: the sum of two such numbers still fits 64 bits
# Smallest probability: its share of a test, `delta / (K^2 t^2)` say, has to be a normal number,
# because engines take smaller ones for 0.
SMALLEST: float = 1e-250


class Option(NamedTuple):
    """What a keyword may be, and how it is converted."""

    allowed: str  # follows "must be" in error messages
    accepts: Callable[[Any], bool]  # whether a concrete value is allowed
    convert: Callable[[Any], Any]  # np.float64 and np.int64 are traced, int and str static
    most: int | None = None  # the largest number that fits the machine's integers
    shown: Callable[[Any], str] = brief  # what follows "got" in error messages

    def __repr__(self) -> str:
        """What is allowed, for `help` of a constructor."""
        return f"Option({self.allowed})"

    def holds(self, value: Any) -> bool:
        """Whether the value is allowed, for values of any type."""
        try:  # JAX compares a number of 32 bits with none that needs 64
            return self.accepts(np.asarray(value) if isinstance(value, jax.Array) else value)
        except (TypeError, ValueError, OverflowError):
            return False


def real(allowed: str, accepts: Callable[[float], bool]) -> Option:
    """A single real number, traced; strings such as "0.5" and flags are not accepted."""

    def is_number(value):
        return np.ndim(value) == 0 and fault(value) is None and not is_flag(value)

    return Option(allowed, lambda v: is_number(v) and bool(accepts(float(v))), np.float64)


probability: Option = real(
    f"a number in (0, 1), {SMALLEST:g} or above", lambda v: SMALLEST <= v < 1
)
chance: Option = real("a number in [0, 1]", lambda v: 0 <= v <= 1)
percentage: Option = real("a number between 0 and 100", lambda v: 0 < v < 100)
positive: Option = real("a finite number above 0", lambda v: 0 < v < np.inf)
nonnegative: Option = real("a finite number, 0 or above", lambda v: 0 <= v < np.inf)


finite: Option = real("a finite number", np.isfinite)
# Engines take a subnormal number for 0: a run would stop at once, or never.
LEAST_NORMAL: float = float(np.finfo(float).tiny)
normal: Option = real(
    f"a finite number, {LEAST_NORMAL:.2g} or above, the least of full precision",
    lambda v: LEAST_NORMAL <= v < np.inf,
)
# A run divides a variance by numbers of draws, and multiplies it by squares.
LARGEST_VARIANCE: float = 1.0 / SMALLEST
variance: Option = real(
    f"a number from {SMALLEST:g} to {LARGEST_VARIANCE:g}, so that its products with numbers of "
    "draws fit double precision",
    lambda v: SMALLEST <= v <= LARGEST_VARIANCE,
)


def count(least: int = 1) -> Option:
    """A whole number that may be traced, such as a budget."""
    return _whole(least, np.int64, LARGEST)


def whole(least: int = 1) -> Option:
    """A whole number in a formula that Python computes, so it need not fit 64 bits."""
    allowed = f"{allowed_whole(least)}, that fits double precision"
    accepts = lambda v: is_whole(v, least, written=False) and float(v) < np.inf  # noqa: E731
    return Option(allowed, accepts, int)


def size(least: int = 1) -> Option:
    """A whole number on which shapes depend, hence static."""
    return _whole(least, int, 2**31 - 1)


def _whole(least, convert, most):
    accepts = lambda v: is_whole(v, least, written=False)  # noqa: E731
    return Option(allowed_whole(least), accepts, convert, most)


def choice(*names: str | bool | int) -> Option:
    """One of `names`, static."""
    has_flags = any(map(is_flag, names))

    def accepts(value):
        single = isinstance(value, str) or (np.ndim(value) == 0 and fault(value) is None)
        return single and value in names and (has_flags or not is_flag(value))  # True is not 1

    def convert(value):  # a flag of NumPy, or the number 1.0 for 1, would be traced
        return next(n for n in names if n == value)

    allowed = "one of " + ", ".join(map(repr, names))
    return Option(allowed, accepts, convert, shown=_hinting(names))


def _hinting(names):
    """How a message shows a name that is none of these: with the one that is most like it."""

    def hinted(value):
        near = nearest(value, [name for name in names if isinstance(name, str)])
        return f"{brief(value)}; did you mean {near!r}?" if near else brief(value)

    return hinted


def number_or(*names: str) -> Option:
    """A finite number above 0, or one of `names`, which are static."""
    return _or_named(positive, names)


def nonnegative_or(*names: str) -> Option:
    """A finite number, 0 or above, or one of `names`, which are static."""
    return _or_named(nonnegative, names)


def count_or(*names: str) -> Option:
    """A whole number above 0, traced, or one of `names`, which are static."""
    return _or_named(count(), names)


def _or_named(number, names):
    is_name = lambda v: isinstance(v, str) and v in names  # noqa: E731
    return Option(
        f"{number.allowed} or one of {', '.join(map(repr, names))}",
        lambda v: is_name(v) or number.accepts(v),
        lambda v: str(v) if is_name(v) else number.convert(v),
        shown=_hinting(names),
    )


def array(*shape: str) -> Option:
    """A table of finite real numbers with one axis for each name in `shape`, traced."""

    def accepts(value):
        real = fault(value) is None and np.ndim(value) == len(shape)
        return real and bool(np.isfinite(np.asarray(value, float)).all())

    allowed = f"a table [{', '.join(shape)}] of finite real numbers"
    return Option(allowed, accepts, lambda v: np.asarray(v, float))


# Types of options that many constructors have. Other types are written in the signature:
# `design: Annotated[str, choice("a", "b")] = "a"`. One that may be None is written `Count | None`.
Probability: TypeAlias = Annotated[Scalar, probability]
Percentage: TypeAlias = Annotated[Scalar, percentage]
Positive: TypeAlias = Annotated[Scalar, positive]
Nonnegative: TypeAlias = Annotated[Scalar, nonnegative]
Finite: TypeAlias = Annotated[Scalar, finite]
Normal: TypeAlias = Annotated[Scalar, normal]
Variance: TypeAlias = Annotated[Scalar, variance]
Chance: TypeAlias = Annotated[Scalar, chance]
Count: TypeAlias = Annotated[Scalar, count()]  # traced
Size: TypeAlias = Annotated[int, size()]  # static
Seed: TypeAlias = Annotated[int, size(0)._replace(most=2**63 - 1)]
Flag: TypeAlias = Annotated[bool, choice(False, True)]  # static
Family: TypeAlias = Annotated[str, choice(*FAMILIES)]  # static
Ratios: TypeAlias = Annotated[Float[Array, "K K K"], array("K", "K", "K")]


@functools.lru_cache(maxsize=256)
def options_of(build: Callable[..., Any]) -> Mapping[str, Option]:
    """The options of a constructor by keyword, read from the types of its signature."""
    parameters = inspect.signature(build, eval_str=True).parameters
    found = {name: _option_in(p.annotation) for name, p in parameters.items()}
    return {name: option for name, option in found.items() if option is not None}


def _option_in(annotation):
    if typing.get_origin(annotation) is Annotated:
        return next((x for x in annotation.__metadata__ if isinstance(x, Option)), None)
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next(filter(None, map(_option_in, typing.get_args(annotation))), None)
    return None


def needing_values(build: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that are options, and for which neither type nor default allows None."""
    return [
        p
        for p in inspect.signature(build, eval_str=True).parameters.values()
        if _option_in(p.annotation) and not (p.default is None or _allows_none(p.annotation))
    ]


def _allows_none(annotation):
    if typing.get_origin(annotation) is Annotated:
        return _allows_none(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return any(map(_allows_none, typing.get_args(annotation)))
    return annotation is types.NoneType


def check(name: str, option: Option, value: Any) -> None:
    """Raise where a concrete value is not what `option` allows; traced values pass."""
    if not is_concrete(value):
        return
    if not option.holds(value):  # the message is made only here: formatting an array takes long
        raise ValueError(f"{name} must be {option.allowed}, got {option.shown(value)}")
    fits = option.most is None or int(value) <= option.most
    require(fits, f"{name} must be at most {option.most}, got {value}")


def converted(options: Mapping[str, Option], keywords: Values) -> dict[str, Any]:
    """The keywords, checked and converted where `options` has them; None and traced values pass."""
    result = dict(keywords)
    for name, value in keywords.items():
        if name in options and value is not None and is_concrete(value):
            check(name, options[name], value)
            result[name] = options[name].convert(value)
    return result


def check_leaf(name: str, value: Any) -> None:
    """Raise unless an option, or a leaf of one, can be traced or told apart from others.

    Args:
      name: what messages call the option.
      value: what a constructor without checks of its own is given.
    """
    fine = _is_traceable(value) if isinstance(value, NUMBERS) else _is_hashable(value)
    if not fine:  # the message is made only here: formatting an array takes long
        raise ValueError(
            f"{name} must be a number, an array of numbers or a name, got {brief(value)}"
        )


def check_leaves(name: str, value: Any) -> None:
    """The same for all leaves of an option that may be a pytree, and for its structure."""
    try:
        leaves, structure = jax.tree.flatten(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a pytree: {reason(error)}") from None
    for leaf in leaves:
        check_leaf(name, leaf)
    require(_is_hashable(structure), f"{name} must be a pytree that has a hash", value)


def _is_traceable(value):
    if np.ma.is_masked(value):
        return False
    try:
        return jax.typeof(value if isinstance(value, jax.Array) else np.asarray(value)) is not None
    except (TypeError, ValueError):  # of text, objects or dates
        return False


def _is_hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _as_floats(table):
    """A table of features; one of whole numbers, in which sums would overflow, as floats."""
    known = isinstance(table, jax.Array | np.ndarray | jax.ShapeDtypeStruct)
    if known and jnp.issubdtype(table.dtype, jnp.floating):
        return table
    if isinstance(table, jax.ShapeDtypeStruct):
        return table.update(dtype=jnp.result_type(float))
    return np.asarray(table, float) if is_concrete(table) else jnp.asarray(table, float)


def _with_equal_columns(values):
    """Arms, targets and theta in units in which all columns of the arms are of one size."""
    scales = scaling.column_scales(values["arms"])
    tables = {name: values[name] for name in ("arms", "targets") if values.get(name) is not None}
    scaled = {name: table / scales for name, table in tables.items()}
    theta = values.get("theta")
    return scaled if theta is None else scaled | {"theta": theta * scales}


def _needs_arms(build, options):
    """What to do instead of calling a constructor with its options alone."""
    ours = build.__module__.partition(".")[0] == __name__.partition(".")[0]
    name = f"jb.{build.__name__}" if ours else build.__name__
    bound = ", ".join([name, *(f"{option}={value!r:.40}" for option, value in options.items())])
    advice = f"bind options with functools.partial({bound}) and give that to simulate"
    if not options:
        advice = f"give {name} itself to simulate, which calls it"
    return f"{build.__name__} needs arms: {advice}"


P = ParamSpec("P")
# (horizon, num_arms, dim, noise_var, kappa, lipschitz) -> c_2, see `kernels.confidence.glm_radius`
Deviation: TypeAlias = Callable[..., Array]


class Constructor(Protocol[P]):
    """A function that builds an `Algorithm`, with what the simulator needs to know before a run."""

    @property
    def contextual(self) -> bool | None:
        """Whether `ask` gets the indices of some rows of `arms` each round; None: not known."""
        ...

    @property
    def features(self) -> bool | None:
        """Whether the features of the arms are used, or only their number; None: not known."""
        ...

    @property
    def deviation(self) -> Deviation | None:
        """How far a randomised parameter may be from the estimate, if a theorem says so."""
        ...

    @property
    def revisions(self) -> tuple[str, ...]:
        """What has changed in its numbers since version 0.2.0, a line each."""
        ...

    def convert(self, keywords: Values, /) -> dict[str, Any]:
        """The keywords, checked and converted where they are options; the others unchanged."""
        ...

    def complete(self, arms: Rows, /, **keywords: Any) -> Values:
        """Checks all options, and returns those that Python computes from them and the arms."""
        ...

    def scale_free(self, **keywords: Any) -> bool:
        """Whether the units of columns change no result, with these options."""
        ...

    def accepts_drawn(self, arms: Array, /, **keywords: Any) -> Bool[Array, ""]:
        """Whether arms that are drawn in a replication, hence traced, would pass the checks."""
        ...

    def __call__(self, arms: Rows, /, *args: P.args, **kwargs: P.kwargs) -> Algorithm:
        """The algorithm for `arms [K, d]`."""
        ...


def constructor(
    *,
    spans: bool = False,
    scale_free: bool | Callable[[Values], bool] = False,
    conditioned: bool = False,
    contextual: bool = False,
    features: bool = True,
    requires: Callable[[Values], object] | None = None,
    completes: Callable[[Values], Values] | None = None,
    deviation: Deviation | None = None,
    revisions: tuple[str, ...] = (),
) -> Callable[[Callable[Concatenate[Array, P], Algorithm]], Constructor[P]]:
    """Decorate a constructor `(arms, [targets], *, keywords) -> Algorithm` with its checks.

    The types of the keywords say what each may be, see `options_of`, and whether it may be None.

    Args:
      spans: whether the arms must span the feature space.
      scale_free: whether the units of a column of features change nothing in theory, or a function
        of the bound arguments that returns this. The algorithm then gets arms, targets and theta in
        units in which all columns are of one size, see `kernels.linalg.scaling`.
      conditioned: whether nearly dependent arms are refused; if `scale_free`, they always are.
      contextual: whether `ask` gets the indices of some rows of `arms` each round.
      features: whether the features of the arms are used, or only their number.
      requires: `(bound arguments) -> None`, raises where options do not fit each other or the arms.
      completes: `(bound arguments) -> options`, options that Python computes once from concrete
        arms, before anything is traced.
      deviation: for an algorithm that `watched` can observe, the constant `c_2` of its theorem as a
        function of `(horizon, num_arms, dim, noise_var, kappa, lipschitz)`.
      revisions: what has changed in the numbers of runs since version 0.2.0, the oldest first: a
        line for each change, which says for which options and why. Stored runs of an earlier
        revision are not continued, and the lines are shown.
    Raises:
      ValueError: names an argument, its value and what is allowed.
    """

    def decorate(build):
        signature, options = inspect.signature(build), options_of(build)
        needed = needing_values(build)
        # Of those without a default, such as the true theta, `requires` may say more.
        with_default = [p.name for p in needed if p.default is not p.empty]
        without_default = [p.name for p in needed if p.default is p.empty]

        def refuse_none(names, values):
            for name in names:
                if values[name] is None:
                    check(name, options[name], None)

        def bind(arms, args, keywords):
            try:
                bound = signature.bind(arms, *args, **keywords)
            except TypeError as error:
                check_options("algorithm", functools.partial(checked, **keywords))
                raise TypeError(f"{build.__name__}() {error}") from None
            bound.apply_defaults()
            values = bound.arguments
            check_arms(arms, values.get("targets"))
            tables = {name: values.get(name) for name in ("arms", "targets")}
            values.update({n: _as_floats(x) for n, x in tables.items() if x is not None})
            condition = check_spans(arms) if spans else None
            values.update(convert({k: v for k, v in values.items() if k in options}))
            refuse_none(with_default, values)
            if requires is not None:
                requires(values)
            refuse_none(without_default, values)
            if conditioned or free(values):
                check_condition(arms, condition)
            return bound

        def free(values):
            return scale_free(values) if callable(scale_free) else scale_free

        def convert(keywords):
            return converted(options, keywords)

        def complete(bound):
            computable = completes is not None and is_concrete(bound.arguments["arms"])
            return completes(bound.arguments) if computable else {}

        def is_scale_free(**keywords):
            bound = signature.bind_partial(**keywords)
            bound.apply_defaults()
            return free(bound.arguments)

        def accepts_drawn(arms, **keywords):
            checked = spans or conditioned or is_scale_free(**keywords)
            return tells_span(arms, whole=spans) if checked else jnp.array(True)

        @functools.wraps(build)
        @pinning
        def checked(arms=None, *args, **keywords):
            if arms is None:  # where Python would only count the arguments
                raise TypeError(_needs_arms(build, keywords))
            bound = bind(arms, args, keywords)
            bound.arguments.update(complete(bound))
            for name, value in bound.arguments.items():
                if np.ndim(value):  # a table; a tracer cannot index an array of NumPy
                    bound.arguments[name] = jnp.asarray(value)
            if free(bound.arguments):
                bound.arguments.update(_with_equal_columns(bound.arguments))
            return _pinning_each(build(*bound.args, **bound.kwargs))

        vars(checked).update(
            contextual=contextual,
            features=features,
            deviation=deviation,
            revisions=tuple(revisions),
            convert=convert,
            # It checks the options too, without building the algorithm.
            complete=lambda arms, **keywords: complete(bind(arms, (), keywords)),
            scale_free=is_scale_free,
            accepts_drawn=accepts_drawn,
        )
        return cast(Constructor, checked)

    return decorate


def _pinning_each(algorithm):
    """An algorithm whose functions run under JAX's usual options, for who calls them by hand."""
    if not isinstance(algorithm, Algorithm):  # which is found, and named, where it is played
        return algorithm
    return Algorithm(pinning(algorithm.init), pinning(algorithm.ask), pinning(algorithm.tell))
