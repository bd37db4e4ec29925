"""What a user has put into a class or an object, apart from what Python adds to every class."""

import dataclasses
import enum
import functools
from collections.abc import Iterator
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, TypeAlias

from .reads import OF_THE_FILE
from .user_files import is_own, is_own_class

Names: TypeAlias = frozenset[str]
Part: TypeAlias = tuple[str, Any]  # what messages call a value, and the value

# Attributes of a class that Python makes, and differently in each version.
OF_A_CLASS: Names = OF_THE_FILE | {
    *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__dict__"),
    *("__weakref__", "__module__", "__qualname__", "__firstlineno__", "__static_attributes__"),
    *("__slots__", "__match_args__", "__parameters__", "__orig_bases__", "__abstractmethods__"),
    *("__dataclass_params__", "__dataclass_fields__", "__classdictcell__", "__type_params__"),
    *("__replace__", "_abc_impl"),
}
OF_A_NAMED_TUPLE: Names = frozenset(
    {"_fields", "_field_defaults", "_make", "_replace", "_asdict", "__repr__", "__getnewargs__"}
)


def state_of(value: Any) -> Iterator[Part]:
    """What an object holds: its attributes, and those that its classes have slots for."""
    own = [vars(kind).get("__dict__") for kind in type(value).__mro__]
    if any(own):
        yield from sorted(object.__getattribute__(value, "__dict__").items())
    for kind in type(value).__mro__:
        for name, slot in sorted(vars(kind).items()):
            if isinstance(slot, MemberDescriptorType) and is_own_class(kind):
                try:
                    yield name, slot.__get__(value)
                except AttributeError:  # nothing was assigned yet
                    yield name, "nothing"


def fields_of(kind: type) -> Iterator[Part]:
    """Names and defaults of the fields of a named tuple, a dataclass or an enumeration."""
    for name in getattr(kind, "_fields", ()) if is_named_tuple(kind) else ():
        yield name, getattr(kind, "_field_defaults", {}).get(name)
    for field in getattr(kind, "__dataclass_fields__", {}).values():
        for default in (field.default, field.default_factory):
            yield field.name, None if default is dataclasses.MISSING else default
    if issubclass(kind, enum.Enum):
        yield from ((name, member.value) for name, member in kind.__members__.items())


def is_added(kind: type, name: str, member: Any) -> bool:
    """Whether Python has put this into a class, in its own way in each version."""
    if name in OF_A_CLASS or isinstance(member, MemberDescriptorType | GetSetDescriptorType):
        return True
    if issubclass(kind, enum.Enum) and (name.startswith("_") or name in kind.__members__):
        return True
    inner = next(inside(member), None)
    inner = getattr(inner, "__wrapped__", inner) if isinstance(inner, FunctionType) else inner
    if isinstance(inner, FunctionType) and is_own(inner):
        generated = inner.__code__.co_filename == "<string>"  # by `dataclass`, say
        return generated and name.startswith("__")
    return is_named_tuple(kind) and name in {*OF_A_NAMED_TUPLE, *vars(kind).get("_fields", ())}


def is_named_tuple(kind: type) -> bool:
    """Whether it is a class of named tuples."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def inside(member: Any) -> Iterator[Any]:
    """The functions in a method of a class, a property or the like; else the member itself."""
    if isinstance(member, classmethod | staticmethod):
        yield member.__func__
    elif isinstance(member, property):
        yield from (x for x in (member.fget, member.fset) if x is not None)
    elif isinstance(member, functools.cached_property):
        yield member.func
    else:
        yield member
