"""Programs that a process finds compiled, because an earlier one has kept them.

A program of this package's algorithms is found by what it is made of: names of constructors, static
options and shapes of numbers, with the source of the package and all that JAX and the machine add.
Then nothing is traced. Any other program, of a user's own algorithm say, is traced, and found by
its text.
"""

import contextlib
import dataclasses
import enum
import functools
import hashlib
import os
import pickle
import re
import sys
import types
import zlib
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable
from jax.stages import Compiled, Lowered

from ..compilers.cpp import features, library_at_hand
from ..system import kept_programs
from ..system.interrupts import waited_for
from ..version import VERSION

T = TypeVar("T")

PACKAGE: str = __name__.partition(".")[0]
LEVEL = 1  # of zlib: more would take longer to write, and hardly shorten the files
LIBRARY: re.Pattern[str] = re.compile(r"\bjaxbandits_[0-9a-f]{32}\b")  # see `cpp.build`
LAPACK = "lapack_"  # begins the names of operations that JAX makes ready when it lowers one
# Errors of pickle about a class inside a function, which has no name to find it by.
NAMELESS: tuple[type[Exception], ...] = (pickle.PicklingError, AttributeError, TypeError)
# Parts of the names of JAX's options that change no program.
NO_MATTER: tuple[str, ...] = (
    "cache",
    "dump",
    "locations",
    "log_",
    "logging",
    "pprint",
    "traceback",
    "tracer",
)


class Unknown(ValueError):
    """A thing that has no name which another process could rely on."""


class Kept(NamedTuple):
    """What is kept of a program."""

    executable: bytes
    result: Any  # a pytree of the structure of its result
    libraries: tuple[str, ...]  # native ones that it calls
    lapack: bool  # whether it calls LAPACK


def keeps() -> bool:
    """Whether compiled programs are kept: on CPUs, unless the user or JAX is set otherwise."""
    config: Any = jax.config  # JAX adds its options as attributes when it is imported
    plain = not config.jax_disable_jit and config.jax_default_device is None
    return plain and jax.default_backend() == "cpu" and kept_programs.folder() is not None


def name_of(*parts: Any) -> str | None:
    """The name of a program that is made of these parts alone, and of this package.

    Returns:
      None where a part is not of this package, or has no name of its own.
    """
    try:
        text = repr([_text(part) for part in parts])
    except Unknown:
        return None
    return _name(text.encode())


def _name(data: bytes) -> str:
    return kept_programs.digest(repr((*_sources(), *_settings())).encode() + data)


@functools.cache
def _sources() -> tuple[Any, ...]:
    """What is the same all the time: versions, the package's own files, the processor."""
    digest = hashlib.sha256()
    above = Path(__file__).parents[1]
    for path in sorted(above.rglob("*")):
        if path.suffix in (".py", ".h"):
            digest.update(path.relative_to(above).as_posix().encode() + b"\0" + path.read_bytes())
    versions = [version(name) for name in ("jax", "jaxlib", "numpy", "scipy", "optax")]
    return VERSION, digest.hexdigest(), sys.version_info[:2], *versions, *features()


def _settings() -> tuple[Any, ...]:
    """JAX's options, those of this thread where they differ."""
    names = [name for name in jax.config.values if not any(part in name for part in NO_MATTER)]
    options = [(name, getattr(jax.config, name, None)) for name in sorted(names)]
    return repr(options), os.environ.get("XLA_FLAGS", ""), os.environ.get("JAX_XLA_FLAGS", "")


def _text(value: Any) -> Any:
    """Plain data that say what a value is, in this process and in any other.

    Raises:
      Unknown: it could be something else in another process.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return type(value).__name__, repr(value)
    if isinstance(value, np.dtype) or hasattr(value, "_rules"):  # or that of a random key
        return "dtype", str(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return "array", str(value.dtype), value.shape, digest
    if isinstance(value, type | types.FunctionType):
        return _name_of_one(value)
    if isinstance(value, jax.tree_util.PyTreeDef):
        node = value.node_data()
        data = None if node is None else (_name_of_one(node[0]), _text(node[1]))
        return "tree", data, [_text(child) for child in value.children()]
    if isinstance(value, functools.partial):
        return "partial", _text(value.func), _text(value.args), _text(value.keywords)
    if isinstance(value, list | tuple):
        return _name_of_one(type(value)), [_text(part) for part in value]
    if isinstance(value, dict):
        return "dict", [(_text(key), _text(part)) for key, part in value.items()]
    if isinstance(value, enum.Enum):
        return _name_of_one(type(value)), value.name
    if dataclasses.is_dataclass(value):
        return _name_of_one(type(value)), _text(vars(value))
    if type(value).__reduce__ is not object.__reduce__ and isinstance(value.__reduce__(), str):
        return _name_of_one(type(value)), value.__reduce__()  # the only one
    raise Unknown(repr(value))


def _name_of_one(thing: Any) -> str:
    """Module and name of a function or class of this package, or of a type of Python or JAX."""
    module = getattr(thing, "__module__", None) or ""
    name = getattr(thing, "__qualname__", "<none>")
    if module == "builtins":
        return name
    known = module.partition(".")[0] in (PACKAGE, "jax")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not known or found is not thing:
        raise Unknown(repr(thing))
    return f"{module}.{name}"


def shapes(name: str | None, make: Callable[[], T]) -> T:
    """What `make` finds by tracing: kept or made, and kept then.

    Args:
      name: as `name_of` returns it; None for what is not kept.
      make: returns shapes and plain data, in named tuples of this package.
    """
    if name is None or not keeps():
        return make()
    data = kept_programs.read(name)
    if data is not None:
        with contextlib.suppress(Exception):  # of another version, or whatever else
            return pickle.loads(data)
    made = make()
    with contextlib.suppress(*NAMELESS):
        kept_programs.keep(name, pickle.dumps(made))
    return made


def program(
    name: str | None, lower: Callable[[], Lowered], arguments: tuple[Any, ...], flags: Any = None
) -> Compiled:
    """A compiled program: kept or made, and kept then.

    Args:
      name: as `name_of` returns it; None for one that is found by its text.
      lower: traces it.
      arguments: of the program, or their shapes.
      flags: compiler options that `lower` has added to it.
    """
    if not keeps():
        return waited_for(lower().compile)
    found = None if name is None else _loaded(name, arguments)
    if found is not None:
        return found
    lowered = lower()
    text = lowered.as_text()
    if name is None:
        name = _name(repr(flags).encode() + text.encode())
        found = _loaded(name, arguments)
        if found is not None:
            return found
    compiled = waited_for(lowered.compile)
    _keep(name, compiled, text)
    return compiled


def _loaded(name, arguments):
    """The program that is kept under a name, or None."""
    data = kept_programs.read(name)
    if data is None:
        return None
    try:
        kept = Kept(*pickle.loads(data))
        if not all(map(library_at_hand, kept.libraries)):
            return None
        if kept.lapack:
            _make_lapack_ready()
        executable = zlib.decompress(kept.executable)
        return serialize_executable.deserialize_and_load(
            executable,
            jax.tree.structure((arguments, {})),
            jax.tree.structure(kept.result),
            execution_devices=jax.devices()[:1],
        )
    except Exception as error:
        kept_programs.warn(f"a kept program is compiled anew: {error}")
        return None


@functools.cache
def _make_lapack_ready():
    """JAX looks up the functions of LAPACK when it lowers a program that calls one."""
    jax.jit(jnp.linalg.cholesky).lower(jax.ShapeDtypeStruct((2, 2), jnp.zeros(0).dtype))


def _keep(name, compiled, text):
    try:
        executable, _, out_tree = serialize_executable.serialize(compiled)
    except Exception as error:
        kept_programs.warn(f"a compiled program is not kept: {error}")
        return
    libraries = tuple(sorted(set(LIBRARY.findall(text))))
    result = jax.tree.unflatten(out_tree, [0] * out_tree.num_leaves)
    kept = Kept(zlib.compress(executable, LEVEL), result, libraries, LAPACK in text)
    with contextlib.suppress(*NAMELESS):
        kept_programs.keep(name, pickle.dumps(tuple(kept)))
