"""Options by name: what a constructor can be given, and which name was meant."""

import difflib
import functools
import inspect
import numbers
import re
from collections.abc import Callable, Collection, Mapping
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

from .messages import brief

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE: str = __name__.partition(".")[0] + "."


def function_of(build: Callable[..., Any]) -> Callable[..., Any]:
    """The constructor itself, without the options that `functools.partial` binds to it."""
    return build.func if isinstance(build, functools.partial) else build


def name_of(build: Callable[..., Any]) -> str:
    """What messages call a constructor."""
    function = function_of(build)
    return getattr(function, "__name__", None) or brief(function)


def unknown(what: str, name: Any, known: Collection[str]) -> ValueError:
    """A `ValueError` that gives the nearest known name, and lists all of them."""
    near, listed = nearest(name, known), ", ".join(sorted(known)) or "none"
    hint = f"did you mean {near!r}? " if near else ""
    return ValueError(f"unknown {what} {brief(name)}; {hint}allowed: {listed}")


def nearest(name: Any, known: Collection[str]) -> str | None:
    """The known name that is most like `name`, or None."""
    if not isinstance(name, str):
        return None
    near = difflib.get_close_matches(name, list(known), n=len(known) or 1, cutoff=0.5)
    swapped = [one for one in near if sorted(one) == sorted(name)]  # "dmi" is dim and not mix
    return next(iter(swapped + near), None)


def check_names(what: str, names: Collection[Any]) -> None:
    """Raise unless names are text or numbers that differ, and files can hold them as text.

    >>> check_names("names", [1, "1"])
    Traceback (most recent call last):
        ...
    ValueError: names must differ as text, got '1' and 1
    """
    known: dict[str, Any] = {}
    for name in names:
        text = str(name)
        if not isinstance(name, str | numbers.Real) or name != name:
            raise ValueError(f"{what} must be text or numbers, got {brief(name)}")
        if not (text.strip() and text.isprintable()):
            raise ValueError(f"{what} must be of printable characters, got {brief(name)}")
        if text in known:
            raise ValueError(
                f"{what} must differ as text, got {brief(name)} and {brief(known[text])}"
            )
        known[text] = name


def hinting(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate `function`: of a keyword that it does not have, an error gives the nearest one.

    Raises:
      ValueError: for such a keyword, where Python raises a `TypeError`.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*args, **keywords)
        except TypeError:
            error = _unknown_keyword(function, keywords)
            if error is None:
                raise
        raise error  # not from the error of Python, which says less

    return wrapped


def _unknown_keyword(function, keywords):
    """What is wrong with the first keyword that the function does not have, or None."""
    parameters = signature_of(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    names = [p.name for p in parameters]
    wrong = (name for name in keywords if name not in names)
    return next((unknown(f"option of {name_of(function)}", name, names) for name in wrong), None)


def hinting_at_partial(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate what plays algorithms: an error says how options of an algorithm are bound.

    The function has an argument `algorithm`, `constructor`, or `algorithms`, a dict by name.
    """
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    called, _, method = getattr(function, "__qualname__", "").partition(".")

    @functools.wraps(function)
    def wrapped(*args: P.args, **keywords: P.kwargs) -> R:
        for name, value in keywords.items():
            if name not in known:
                given = dict(zip(known, args[bool(method) :], strict=False)) | keywords
                raise TypeError(_no_argument(called, name, value, given, known))
        return function(*args, **keywords)

    return wrapped


def _no_argument(called, name, value, given, known):
    """What is wrong with a keyword that a function does not have."""
    one = given.get("algorithm", given.get("constructor"))
    several = given.get("algorithms")
    builds = several.values() if isinstance(several, Mapping) else [one]
    for build in filter(callable, builds):
        options = options_of_call(build)
        option = name if name in options else nearest(name, options)
        if option is not None and nearest(name, [*known, option]) == option:
            bound = f"functools.partial({name_of(build)}, {option}={value!r:.40})"
            return f"{called} has no argument {name!r}; bind the option of the algorithm: {bound}"
    return str(unknown(f"argument of {called}", name, known))


def suggesting(module: str, known: Collection[str]) -> Callable[[str], Any]:
    """A `__getattr__` for a module: its error gives the nearest of the known names."""

    def refused(name: str) -> Any:
        near = None if name.startswith("_") else nearest(name, known)
        hint = f"; did you mean {near!r}?" if near else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}")

    return refused


def publish(module: dict[str, Any]) -> None:
    """Let `dir` of a module, and so completion, list its `__all__` alone.

    All other names of the module stay readable. An error of a name that it does not have gives the
    nearest public one.

    Args:
      module: its `globals()`, with `__all__` as a list.
    """
    names = module["__all__"]
    module["__dir__"] = lambda: sorted(names)
    module["__getattr__"] = suggesting(module["__name__"], names)


def check_options(role: str, build: Callable[..., Any], supplied: int = 1) -> None:
    """Raise unless a constructor has every option that is bound to it by name.

    Args:
      role: "algorithm", "instance" or "constructor", for messages.
      build: the constructor, or `functools.partial` of it.
      supplied: how many of its first arguments come from the simulator (the arms, the key) and
        are no options.
    Raises:
      ValueError: gives the option, the nearest one, and all that are allowed.
    """
    bound = isinstance(build, functools.partial)
    args, options = (build.args, build.keywords) if bound else ((), {})
    function, name = function_of(build), name_of(build)
    if hasattr(function, "convert") and args:
        raise ValueError(f"{role} {name} must have its options bound by name, not by position")
    try:
        parameters = tuple(signature_of(function).parameters.values())
    except (TypeError, ValueError):  # some callables have no signature that Python can read
        return
    if role != "instance" and [p.name for p in parameters[:1]] == ["algorithm"]:
        call = f"call it: {name}(lingape), say, in place of partial({name}, lingape)"
        raise ValueError(f"{role} {name} makes a constructor from another one; {call}")
    allowed = [p.name for p in parameters[len(args) + supplied :] if p.kind is not p.VAR_POSITIONAL]
    variable = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for option in () if variable else options:
        if option not in allowed:
            raise unknown(f"option of {name}", option, allowed)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """`inspect.signature`, which takes long; of one that is not this package's own it is anew."""
    fixed = isinstance(function, FunctionType) and str(function.__module__).startswith(PACKAGE)
    return _signature_of_own(function) if fixed else inspect.signature(function)


_signature_of_own = functools.lru_cache(maxsize=256)(inspect.signature)


def parameters_of(build: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a constructor by name, but those that are bound to it by position.

    The defaults are those of the constructor itself, whatever is bound to it by name.
    """
    if isinstance(build, functools.partial) and not build.args:
        return parameters_of(build.func)
    return signature_of(build).parameters


def options_of_call(build: Callable[..., Any]) -> list[str]:
    """Names of the keywords of a constructor, without its first argument."""
    try:
        return list(parameters_of(build))[1:]
    except (TypeError, ValueError):
        return []


def first_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the first parameter, or None where there is none that Python can read."""
    try:
        return next(iter(parameters_of(function)), None)
    except (TypeError, ValueError):
        return None


def check_call(role: str, build: Callable[..., Any], /, *args: Any, **options: Any) -> None:
    """Raise unless a constructor can be called with these arguments.

    Raises:
      ValueError: names the argument that is missing or not expected.
    """
    signature = signature_of(build)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        text = f"{role} {name_of(build)}: {error}"
        if str(error).startswith("missing"):  # and none too many
            given = signature.bind_partial(*args, **options).arguments
            text += _first_missing(build, signature, given)
        raise ValueError(text) from None


def _first_missing(build, signature, given):
    """The meaning of the first argument that is not given, by the constructor's docstring."""
    missing = (
        name
        for name, p in signature.parameters.items()
        if p.default is p.empty and name not in given
    )
    text = meaning_of(function_of(build), next(missing, ""))
    return f" ({text})" if text else ""


def meaning_of(function: Callable[..., Any], option: str) -> str:
    """The first sentence on an option in the docstring of a function, "" where there is none.

    >>> def toss(coins):
    ...     '''Toss some.
    ...
    ...     Args:
    ...       coins: how many. They are
    ...         fair.
    ...     '''
    >>> meaning_of(toss, "coins")
    'how many'
    """
    arguments = (inspect.getdoc(function) or "").partition("Args:\n")[2]
    found = re.search(rf"^  {re.escape(option)}: (.*(?:\n    .*)*)", arguments, re.MULTILINE)
    text = " ".join(found[1].split()) if found and option else ""
    return re.split(r"\.(?: |$)", text)[0].replace(" (static)", "")
