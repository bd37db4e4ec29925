"""What is run: a constructor with its options, as a simulation would call it."""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jaxtyping import Float

from .. import replaced
from ..core import Algorithm, needs_context
from ..engine.assumptions import broken_by_family
from ..engine.partition import derived_options
from ..feature_tables import check_arms, require
from ..instances import Instance, Labelled
from ..kernels.estimate.links import FAMILIES
from ..parameters import Option, check, check_leaf, choice, nonnegative, variance
from ..precision import check_real
from ..signatures import check_options, name_of, parameters_of
from ..system.caller import warn_caller
from ..system.identity import described_array, digest_files, stored_name
from ..system.named import is_named
from ..system.own_code import Unknown, hash_of_code, hash_of_value
from ..system.revisions import revised_ones, revisions_of
from ..system.traces import TraceCache, reading
from ..types import NUMBERS, Rows

# By option, what is traced; `arms` among them.
Numbers: TypeAlias = Mapping[str, Any]
Options: TypeAlias = dict[str, Any]

REVISIONS = "revisions"  # the entry of a description with them, where there are any
REPLACED = "replaced"  # the entry with the names of replaced parts of this package
CODE = "code of "  # before the name of a part of a description, whose code is hashed
# A simulation knows these two; of real rewards they are not known.
UNKNOWN: dict[str, str] = {"theta": "the parameter", "horizon": "the number of rounds"}


class BoundConstructor(NamedTuple):
    """A constructor with its static options; equal ones share their programs, as it is hashable."""

    function: Callable[..., Algorithm]
    static: tuple[tuple[str, Any], ...]  # (option, value) for options that are no numbers
    derived: tuple[str, ...] = ()  # names of numbers that follow from the others
    traces: TraceCache | None = None  # of functions that are not this package's own

    def __call__(self, numbers: Numbers) -> Algorithm:
        """The `Algorithm` for these numbers."""
        options = {name: value for name, value in numbers.items() if name != "arms"}
        return self.function(numbers["arms"], **options, **dict(self.static))

    @property
    def name(self) -> str:
        """The constructor's own name, for messages."""
        return name_of(self.function)

    def is_contextual(self, numbers: Numbers) -> bool:
        """Whether the algorithm is shown some rows of the arms each round."""
        known = getattr(self.function, "contextual", None)
        if known is not None:
            return known
        found: list[bool] = []

        def build(numbers: Numbers) -> tuple[()]:
            found.append(needs_context(self(numbers).ask))
            return ()

        with reading(self):
            jax.eval_shape(build, numbers)
        return found[0]


def prepare(
    constructor: Callable[..., Algorithm],
    arms: Rows,
    *,
    targets: Rows | None,
    noise_var: float,
    theta_norm: float | None,
    family: str | None,
) -> tuple[BoundConstructor, dict[str, Any]]:
    """`(BoundConstructor, numbers)` after every check that needs no compilation.

    Raises:
      ValueError: names the argument, what it was and what is allowed.
    """
    require(callable(constructor), "constructor must be callable", constructor)
    function, bound = constructor, {}
    if isinstance(constructor, functools.partial):
        function, bound = constructor.func, constructor.keywords
        require(not constructor.args, "constructor must bind its options by name")
    check_options("constructor", constructor)
    whole, kind = isinstance(arms, Instance | Labelled), type(arms).__name__
    require(not whole, f"arms must be a table [K, d], got an object {kind}: give instance.arms")
    if family is not None:
        check("family", choice(*FAMILIES), family)
    arms = _table("arms", arms)
    targets = None if targets is None else _table("targets", targets)
    check_arms(arms, targets)
    facts = {
        "targets": targets,
        "noise_var": _number("noise_var", noise_var, variance),
        "theta_norm": None
        if theta_norm is None
        else _number("theta_norm", theta_norm, nonnegative),
        "family": family,
    }
    options, added = _options(name_of(function), function, arms, facts, bound)
    if (text := broken_by_family(family, constructor)) is not None:
        warn_caller(text)
    numbers = {k: np.asarray(v) for k, v in options.items() if isinstance(v, NUMBERS)}
    sizes = {k: v for k, v in added.items() if isinstance(v, int)}
    derived = {k: v for k, v in added.items() if k not in sizes}
    static = tuple(sorted((k, v) for k, v in (options | sizes).items() if k not in numbers))
    numbers = {"arms": arms} | numbers | derived
    traces = None if is_named(function, static) else TraceCache()
    return BoundConstructor(function, static, tuple(derived), traces), numbers


def _options(
    name: str,
    function: Callable[..., Algorithm],
    arms: Float[np.ndarray, "K d"],
    facts: Mapping[str, Any],
    bound: Mapping[str, Any],
) -> tuple[Options, Options]:
    """What the constructor is called with besides the arms, and what follows from it."""
    names = parameters_of(function)
    for option in UNKNOWN:
        needed = option in names and names[option].default is inspect.Parameter.empty
        require(
            not needed or option in bound,
            f"constructor {name} needs {option}, {_bind(name, option)}",
        )
    require(
        facts["targets"] is None or "targets" in names,
        f"targets must be None for {name}, which answers with arms, got a table",
    )
    options: Options = {k: v for k, v in facts.items() if v is not None and k in names}
    options |= bound
    if options.get("targets") is not None:
        options["targets"] = _table("targets", options["targets"])
    try:
        added = derived_options("constructor", function, arms, options)
    except ValueError as error:
        # With some options a constructor needs what with others it does not.
        needed = (option for option in UNKNOWN if str(error).startswith(f"{option} must be given"))
        option = next(needed, None)
        if option is None:
            raise
        raise ValueError(f"{error}: {option} is {_bind(name, option)}") from None
    options = getattr(function, "convert", lambda keywords: keywords)(options)
    for option, value in options.items():
        check_leaf(option, value)
    return dict(options), dict(added)


def _bind(name, option):
    """What an option is that live use does not know, and how to give it."""
    advice = f"bind it with functools.partial({name}, {option}=...)"
    return f"{UNKNOWN[option]}, which live use does not know: {advice}"


def _table(name: str, values: Rows) -> Float[np.ndarray, "K d"]:
    """`values` as float64, which the checks of `check_arms` need."""
    check_real(name, values)
    return np.array(values, dtype=np.float64)


def _number(name: str, value: float, option: Option) -> np.float64:
    check(name, option, value)
    return np.float64(value)


def describe(constructor: BoundConstructor, numbers: Numbers, seed: int) -> dict[str, str]:
    """What is run as a dict of strings: equal exactly where the same would be run.

    Functions of a user have an entry more, `CODE` and their place: a hash of their code. Where
    numbers have changed since version 0.2.0, the entry `REVISIONS` has the lines that say how. The
    entry `REPLACED` names the parts of this package that are replaced, where there are some.

    Raises:
      ValueError: the constructor, or a function among its options, has no name of its own.
    """
    first = {"constructor": _named(constructor.function), "seed": str(int(seed))}
    given = {name: value for name, value in numbers.items() if name not in constructor.derived}
    options = [*given.items(), *constructor.static]
    functions = [
        ("constructor", constructor.function),
        *((n, value) for n, value in options if not _is_plain(value)),
    ]
    path = dict(constructor.static).get("path")
    hashes = {CODE + name: _hash_of(name, function, path) for name, function in functions}
    if path:
        hashes[f"{CODE}path"] = digest_files(path)
    code = {name: digits for name, digits in hashes.items() if digits}
    revisions = revised_ones(revisions_of([function for _, function in functions]))
    later = {REVISIONS: json.dumps(revisions)} if revisions else {}
    changed = ", ".join(sorted(replaced.look()))
    own = {REPLACED: changed} if changed else {}
    return first | {name: _brief(value) for name, value in options} | code | later | own


def _hash_of(name: str, function: Any, path: Any) -> str:
    """The hash of a user's code; `path` is an option that names files, if there is one."""
    try:
        if _is_named(function):
            return hash_of_code(function, reads_files=bool(path))
        return hash_of_value(function)
    except Unknown as reason:
        raise ValueError(f"{name}: {reason}, or leave out `path`") from None


def _brief(value: Any) -> str:
    """An option in one line."""
    if callable(value):
        return _named(value)
    if type(value).__repr__ is object.__repr__:  # which gives no more than an address
        return _named(value)
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.ndim == 0:
        return repr(value.item())
    return " ".join(map(str, described_array(value)))


def _is_plain(value: Any) -> bool:
    """Whether its text says all of it."""
    if isinstance(value, tuple):
        return type(value) is tuple and all(map(_is_plain, value))
    return value is None or isinstance(value, (*NUMBERS, str, bool, int, float))


def _is_named(value: Any) -> bool:
    """Whether it is a function, a class or a wrapper, and no object that is called."""
    return hasattr(value, "__qualname__") or hasattr(value, "inner")


def _named(function: Any) -> str:
    name = stored_name(function)
    require(
        "<" not in name,
        f"constructor: {name} could not be recognised in another process, as `path` requires; "
        "define it at the top of a module",
    )
    return name
