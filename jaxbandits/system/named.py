"""Names of what is of this package, Python or JAX, the same in every process."""

import builtins
import dataclasses
import enum
import functools
import hashlib
import sys
import types
from pathlib import PurePath
from typing import Any

import jax
import numpy as np

from .. import replaced
from .file_stamps import FileStamp

PLAIN: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None))


class Unknown(ValueError):
    """What another process could not find by a name: a function inside a function, say."""


def is_named(*values: Any) -> bool:
    """Whether these are made of plain data and of what is of this package, Python or JAX alone.

    Then they mean the same as long as the process lasts. Of anything else, such as a function of a
    user, a library or a plugin, nobody can say so; nor of this package, where a part of it was
    replaced.
    """
    if replaced.look():
        return False
    try:
        for value in values:
            text_of(value)
    except Exception:  # objects of users may raise whatever they like
        return False
    return True


def text_of(value: Any) -> Any:
    """Plain data that say what a value is, in this process and in any other.

    Raises:
      Unknown: it could be something else in another process.
    """
    if isinstance(value, jax.tree_util.PyTreeDef):  # first, as most of what is asked for are leaves
        node = value.node_data()
        data = None if node is None else (_name_of_one(node[0]), text_of(node[1]))
        return "tree", data, [] if node is None else [text_of(x) for x in value.children()]
    if type(value) in PLAIN or isinstance(value, np.generic):
        return type(value).__name__, repr(value)
    if isinstance(value, (np.dtype, _type_of_keys())):
        return "dtype", str(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return "array", str(value.dtype), value.shape, digest
    if isinstance(value, type | types.FunctionType):
        return _name_of_one(value)
    if type(value) is functools.partial:
        return "partial", text_of(value.func), text_of(value.args), text_of(value.keywords)
    if isinstance(value, FileStamp):  # another file may have the same one later
        raise Unknown(value.path)
    if isinstance(value, list | tuple):
        return _name_of_one(type(value)), [text_of(part) for part in value]
    if type(value) is dict:
        return "dict", [(text_of(key), text_of(part)) for key, part in value.items()]
    if isinstance(value, PurePath):
        return "path", str(value)
    if isinstance(value, enum.Enum):
        return _name_of_one(type(value)), value.name
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _name_of_one(type(value)), [(name, text_of(part)) for name, part in fields.items()]
    raise Unknown(repr(value))


@functools.cache
def _type_of_keys() -> type:
    """The type of the dtype of random keys."""
    return type(jax.eval_shape(lambda: jax.random.key(0)).dtype)


def _name_of_one(thing: Any) -> str:
    """Module and name of a function or class of this package, or of a type of Python or JAX."""
    module = getattr(thing, "__module__", None) or ""
    name = getattr(thing, "__qualname__", "<none>")
    if thing is type(None) or (module == "builtins" and getattr(builtins, name, None) is thing):
        return name
    known = module.partition(".")[0] in (replaced.PACKAGE, "jax")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if known and found is thing:
        return f"{module}.{name}"
    if known and getattr(found, "__wrapped__", None) is thing:  # a decorated one is another thing
        return f"{module}.{name}.__wrapped__"
    raise Unknown(repr(thing))
