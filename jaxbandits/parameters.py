"""Options of constructors: what each may be, checked before anything compiles.

A constructor is decorated with one `Option` per keyword. The decorator checks concrete values
(a traced value was checked where it entered), and tells the simulator which options are
numbers, traced so that another value compiles nothing, and which are names or sizes.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from .feature_tables import (
    check_arms,
    check_condition,
    check_spans,
    is_concrete,
    require,
    tells_span,
)
from .kernels.linalg import scaling
from .signatures import check_options

LEAST_GROWTH = 2.0**-40  # of `|x|^2 / v0`: a draw is then 4,000 times what is rounded away
LARGEST = 2**62  # of whole numbers: the sum of two of them still fits 64 bits


class Option(NamedTuple):
    """One keyword: `allowed` is the human sentence, `accepts(value)` the test."""

    allowed: str
    accepts: Callable[[Any], bool]
    convert: Callable[[Any], Any]  # np.float64 and np.int64 are traced, int and str static
    most: int | None = None  # the largest number that the machine can take

    def holds(self, value):
        """Whether the value is allowed, whatever it is."""
        try:
            return self.accepts(value)
        except (TypeError, ValueError, OverflowError):
            return False


def real(allowed, accepts):
    """An option that is a single number, traced; text that can be read as one is none."""

    def number(value):
        return np.ndim(value) == 0 and np.asarray(value).dtype.kind not in "cSU"

    return Option(allowed, lambda v: number(v) and bool(accepts(float(v))), np.float64)


probability = real("a number in (0, 1)", lambda v: 0 < v < 1)
chance = real("a number in [0, 1]", lambda v: 0 <= v <= 1)
percentage = real("a number between 0 and 100", lambda v: 0 < v < 100)
positive = real("a finite number above 0", lambda v: 0 < v < np.inf)
nonnegative = real("a finite number, 0 or above", lambda v: 0 <= v < np.inf)


def _whole(value):
    return np.ndim(value) == 0 and not np.iscomplexobj(value) and value == int(value)


def count(least=1):
    """A whole number that may be traced (a budget, say)."""
    allowed = f"a whole number, {least} or above"
    return Option(allowed, lambda v: _whole(v) and v >= least, np.int64, most=LARGEST)


def whole(least=1):
    """A whole number of a formula that the host computes; no machine's integers limit it."""
    allowed = f"a whole number, {least} or above, that fits double precision"
    return Option(allowed, lambda v: _whole(v) and v >= least and float(v) < np.inf, lambda v: v)


def size(least=1):
    """A whole number that fixes shapes, hence static."""
    allowed = f"a whole number, {least} or above"
    return Option(allowed, lambda v: _whole(v) and v >= least, int, most=2**31 - 1)


def choice(*names):
    """One of `names`, static."""
    return Option("one of " + ", ".join(map(repr, names)), lambda v: v in names, lambda v: v)


def number_or(*names):
    """A finite number above 0, or one of `names`, which are static."""
    return _or_named(positive, names)


def nonnegative_or(*names):
    """The same, or 0."""
    return _or_named(nonnegative, names)


def _or_named(number, names):
    named = lambda v: isinstance(v, str) and v in names  # noqa: E731
    return Option(
        f"{number.allowed} or one of {', '.join(map(repr, names))}",
        lambda v: named(v) or number.accepts(v),
        lambda v: v if named(v) else number.convert(v),
    )


def check(name, option, value):
    """Raise unless a value that can be looked at is what `option` allows."""
    if not is_concrete(value):
        return
    if not option.holds(value):  # only now, for it takes a while to write an array out
        raise ValueError(f"{name} must be {option.allowed}, got {value!r}")
    fits = option.most is None or value <= option.most
    require(fits, f"{name} must be at most {option.most}, got {value}")


def converted(options, keywords):
    """The keywords with those that `options` knows checked and converted; None and traced pass."""
    done = dict(keywords)
    for name, value in keywords.items():
        if name in options and value is not None and is_concrete(value):
            check(name, options[name], value)
            done[name] = options[name].convert(value)
    return done


def fewer_than_arms(values):
    """Raise unless the size of the set, `m`, is below the number of arms."""
    m, num_arms = values["m"], values["arms"].shape[0]
    require(m is not None and m < num_arms, f"m must be below the {num_arms} arms, got {m}")


def theta_fits(values):
    """Raise where theta is unknown, or no vector of the arms' features."""
    theta, shape = values["theta"], np.shape(values["arms"])[1:]
    require(theta is not None, "theta must be given, got None (unknown)")
    require(np.shape(theta) == shape, f"theta must have shape {shape}, got {np.shape(theta)}")


def theta_norm_given(values):
    """Raise where theta_norm is unknown."""
    require(values["theta_norm"] is not None, "theta_norm must be given, got None (unknown)")


def theta_norm_known(values, thresholds, option="threshold"):
    """Raise where the chosen threshold is one of `thresholds` and theta_norm is unknown."""
    named = values[option] if isinstance(values[option], str) else None
    unknown = values["theta_norm"] is None and named in thresholds
    require(not unknown, f"theta_norm must be given for {option} {named!r}, got None (unknown)")


def ridge_in_reach(values, v0=None, most=2.0**28):
    """Raise where the ridge is too small or too large beside the arms for updates draw by draw.

    The first draws take `x^T V^-1 x` from `|x|^2 / v0` to about 1, and leave the rounding of the
    former: measured, the variance of a difference of arms is wrong by `n eps |x|^2 / v0` of itself
    after n draws, times the square of the arms' condition number. Where `|x|^2 / v0` is about
    eps itself, a draw is rounded away.

    Args:
      values: the bound arguments.
      v0: the ridge, `values["v0"]` by default.
      most: the largest `|x|^2 / v0` to allow. Updates of a square root lose only its root.
    """
    arms, v0 = values["arms"], values["v0"] if v0 is None else v0
    if not (is_concrete(arms) and is_concrete(v0)):
        return
    arms, v0 = np.asarray(arms, float), float(v0)
    length = np.sqrt((arms**2).sum(1).max())
    shortest, longest = np.sqrt(LEAST_GROWTH * v0), np.sqrt(most * v0)
    if length == 0 or shortest <= length <= longest:
        return
    with np.errstate(over="ignore"):
        low, high = length**2 / most, length**2 / LEAST_GROWTH
    raise ValueError(
        f"arms must be {shortest:.2g} to {longest:.2g} long (the longest of them) where the ridge "
        f"v0 is {v0:.6g}, beyond which rounding hides what draws tell, got {length:.6g}: give them "
        f"in another unit (theta_norm then changes too), or v0 from {low:.2g} to {high:.2g}"
    )


def horizon_unless(given, horizon, name):
    """The size `given` as the option `name`, or that of all rounds."""
    require(horizon is not None, "horizon must be given, got None")
    known = given is not None or is_concrete(horizon)
    require(known, f"{name} must be given where the horizon is traced, got None")
    return int(horizon) if given is None else given


def in_reach(values, largest):
    """Raise where `rounding_epsilon` is above the largest that the chosen rounding promises."""
    epsilon, most = values["rounding_epsilon"], largest[values["rounding"]]
    fine = not is_concrete(epsilon) or epsilon <= most
    require(fine, f"rounding_epsilon must be at most {most:.3g} for this rounding, got {epsilon}")


def ratios_known(values, bases, most):
    """Raise where a table of ratios does not fit the arms, or takes more than `most` bases."""
    arms, given = values["arms"], values["ratios"]
    num_arms, dim = arms.shape
    used = given is None or values["selection"] == "ratio"
    require(used, f"ratios must go with selection 'ratio', got {values['selection']!r}")
    positive = given is None or not is_concrete(given) or (np.asarray(given) >= 0).all()
    require(positive, "ratios must be 0 or above, got a negative one")
    fits = given is None or np.shape(given) == (num_arms,) * 3
    require(fits, f"ratios must have shape {(num_arms,) * 3}, got {np.shape(given)}")
    if values["selection"] == "ratio" and given is None and not is_concrete(arms):
        require(
            bases <= most,
            f"selection must be 'greedy' for {num_arms} arms in {dim} dimensions that are drawn "
            f"anew ('ratio' goes through at most {most} bases, not {bases}), got 'ratio'",
        )


def budget_covers(values, least, what="stages"):
    """Raise unless one of `budget` and `per_arm` is given, and covers the number of stages."""
    budget, per_arm = values["budget"], values["per_arm"]
    one = (budget is None) != (per_arm is None)
    require(one, f"budget or per_arm must be given, one of the two, got {budget!r} and {per_arm!r}")
    if is_concrete(budget) and is_concrete(per_arm):
        total = total_draws(values["arms"], budget, per_arm)
        require(total >= least, f"budget must be at least the {least} {what}, got {total}")


def total_draws(arms, budget, per_arm):
    """The budget, whichever way it was given."""
    return budget if per_arm is None else per_arm * arms.shape[0]


def array(*shape):
    """A table of finite numbers of this many axes, traced."""

    def accepts(value):
        real = not np.iscomplexobj(value)
        return real and np.ndim(value) == len(shape) and bool(np.isfinite(value).all())

    return Option(f"a table [{', '.join(shape)}] of finite real numbers", accepts, np.asarray)


def _of_one_size(values):
    """Arms, targets and theta where the columns of the arms are of one size."""
    scales = scaling.column_scales(values["arms"])
    tables = {name: values[name] for name in ("arms", "targets") if values.get(name) is not None}
    scaled = {name: table / scales for name, table in tables.items()}
    theta = values.get("theta")
    return scaled if theta is None else scaled | {"theta": theta * scales}


def constructor(
    *,
    spans=False,
    scale_free=False,
    conditioned=False,
    contextual=False,
    requires=None,
    completes=None,
    **options,
):
    """Decorate a constructor `(arms, [targets], *, keywords) -> Algorithm` with its checks.

    Args:
      spans: whether the arms must span the feature space.
      scale_free: whether the units of a column of features change nothing in theory: the algorithm
        is then given arms, targets and theta in columns of one size, see `kernels.scaling`. Or a
        function of the bound arguments that says so.
      conditioned: whether nearly dependent arms are refused, as for all that is `scale_free`.
      contextual: whether `ask` is shown the indices of some rows of `arms` each round.
      requires: `(bound arguments) -> None`, raises on conditions between options.
      completes: `(bound arguments) -> options`, what the host computes once from arms that it
        can look at, before anything is traced.
      **options: an `Option` for each keyword; a keyword that is None is not checked.
    Raises:
      ValueError: names the argument, what it was and what is allowed.
    """

    def decorate(build):
        signature = inspect.signature(build)

        def bind(arms, args, keywords):
            try:
                bound = signature.bind(arms, *args, **keywords)
            except TypeError as error:
                check_options("algorithm", functools.partial(checked, **keywords))
                raise TypeError(f"{build.__name__}() {error}") from None
            bound.apply_defaults()
            values = bound.arguments
            check_arms(arms, values.get("targets"))
            if not hasattr(arms, "shape"):
                values["arms"] = np.asarray(arms, float)
            known = check_spans(arms) if spans else None
            values.update(convert({k: v for k, v in values.items() if k in options}))
            if requires is not None:
                requires(values)
            if conditioned or free(values):
                check_condition(arms, known)
            return bound

        def free(values):
            return scale_free(values) if callable(scale_free) else scale_free

        def convert(keywords):
            """Check and convert concrete keyword values; unknown names pass to Python."""
            return converted(options, keywords)

        def complete(bound):
            """What the host adds to the options."""
            known = completes is not None and is_concrete(bound.arguments["arms"])
            return completes(bound.arguments) if known else {}

        def is_scale_free(**keywords):
            """Whether units of columns change nothing, with these options."""
            bound = signature.bind_partial(**keywords)
            bound.apply_defaults()
            return free(bound.arguments)

        def tells(arms, **keywords):
            """Whether arms that are drawn only now would pass the checks of their span."""
            checked = spans or conditioned or is_scale_free(**keywords)
            return tells_span(arms, whole=spans) if checked else jnp.array(True)

        @functools.wraps(build)
        def checked(arms, *args, **keywords):
            bound = bind(arms, args, keywords)
            bound.arguments.update(complete(bound))
            for name, value in bound.arguments.items():
                if np.ndim(value):  # a table; NumPy cannot be indexed by a tracer
                    bound.arguments[name] = jnp.asarray(value)
            if free(bound.arguments):
                bound.arguments.update(_of_one_size(bound.arguments))
            return build(*bound.args, **bound.kwargs)

        checked.convert, checked.contextual = convert, contextual
        # Checks as well, without building anything.
        checked.complete = lambda arms, **keywords: complete(bind(arms, (), keywords))
        checked.scale_free, checked.tells = is_scale_free, tells
        return checked

    return decorate
