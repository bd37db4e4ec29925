"""What is played: a constructor with its options, as a simulation would call it."""

import functools
import hashlib
import inspect
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from ..core import is_shown
from ..engine.partition import derived_options
from ..feature_tables import check_arms, check_real, require
from ..parameters import check, nonnegative, positive
from ..signatures import check_options, name_of
from ..system.files import stored_name

NUMBERS = (float, np.ndarray, np.generic, jax.Array)
# A simulation knows these two; reality does not say them.
UNKNOWN = {"theta": "the parameter", "horizon": "the number of rounds"}


class Plan(NamedTuple):
    """The static half of an algorithm; hashable, so that equal plans share their programs."""

    function: Callable
    words: tuple  # (option, value) for options that are no numbers
    derived: tuple = ()  # names of numbers that follow from the others

    def __call__(self, numbers):
        """The `Algorithm` for a dict of numbers, `arms` among them."""
        options = {name: value for name, value in numbers.items() if name != "arms"}
        return self.function(numbers["arms"], **options, **dict(self.words))

    @property
    def name(self):
        """The constructor's own name, for messages."""
        return name_of(self.function)

    def looks(self, numbers):
        """Whether the algorithm is shown something each round."""
        known, seen = getattr(self.function, "contextual", None), []
        if known is not None:
            return known

        def build(numbers):
            seen.append(is_shown(self(numbers).ask))
            return ()

        jax.eval_shape(build, numbers)
        return seen[0]


def prepare(constructor, arms, *, targets, noise_var, theta_norm, family):
    """`(Plan, numbers)` after every check that needs no compilation.

    Raises:
      ValueError: names the argument, what it was and what is allowed.
    """
    require(callable(constructor), f"constructor must be callable, got {constructor!r}")
    partial = isinstance(constructor, functools.partial)
    function, bound = (constructor.func, constructor.keywords) if partial else (constructor, {})
    require(not (partial and constructor.args), "constructor must bind its options by name")
    check_options("constructor", constructor)
    arms = _table("arms", arms)
    targets = None if targets is None else _table("targets", targets)
    check_arms(arms, targets)
    facts = {
        "targets": targets,
        "noise_var": _number("noise_var", noise_var, positive),
        "theta_norm": None
        if theta_norm is None
        else _number("theta_norm", theta_norm, nonnegative),
        "family": family,
    }
    options, added = _options(Plan(function, ()).name, function, arms, facts, bound)
    numbers = {k: np.asarray(v) for k, v in options.items() if isinstance(v, NUMBERS)}
    sizes = {k: v for k, v in added.items() if isinstance(v, int)}
    derived = {k: v for k, v in added.items() if k not in sizes}
    words = tuple(sorted((k, v) for k, v in (options | sizes).items() if k not in numbers))
    return Plan(function, words, tuple(derived)), {"arms": arms} | numbers | derived


def _options(name, function, arms, facts, bound):
    """What the constructor is called with besides the arms, and what follows from it."""
    names = inspect.signature(function).parameters
    for option, meaning in UNKNOWN.items():
        needed = option in names and names[option].default is inspect.Parameter.empty
        require(
            not needed or option in bound,
            f"constructor {name} needs {option}, {meaning}, which live use does not know: "
            f"bind it with functools.partial({name}, {option}=...)",
        )
    require(
        facts["targets"] is None or "targets" in names,
        f"targets must be None for {name}, which answers with arms, got a table",
    )
    options = {k: v for k, v in facts.items() if v is not None and k in names} | bound
    if options.get("targets") is not None:
        options["targets"] = _table("targets", options["targets"])
    added = derived_options("constructor", function, arms, options)
    options = getattr(function, "convert", lambda keywords: keywords)(options)
    for option, value in options.items():
        plain = isinstance(value, NUMBERS) or value.__hash__ is not None
        require(plain, f"{option} must be a number, an array or a name, got {value!r}")
    return options, added


def _table(name, values):
    """`values` as float64, which the checks of `check_arms` need."""
    check_real(name, values)
    return np.array(values, dtype=np.float64)


def _number(name, value, option):
    check(name, option, value)
    return np.float64(value)


def describe(plan, numbers, seed):
    """What is played as a dict of strings: equal exactly where the same would be played.

    Raises:
      ValueError: the constructor, or a function among its options, has no name of its own.
    """
    told = {"constructor": _named(plan.function), "seed": str(int(seed))}
    given = {name: value for name, value in numbers.items() if name not in plan.derived}
    return told | {name: _brief(value) for name, value in [*given.items(), *plan.words]}


def _brief(value):
    if callable(value):
        return _named(value)
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.ndim == 0:
        return repr(value.item())
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return f"{value.dtype} {list(value.shape)} {digest}"


def _named(function):
    name = stored_name(function)
    require(
        "<" not in name,
        f"constructor: {name} could not be recognised in another process, as `path` requires; "
        "define it at the top of a module",
    )
    return name
