"""Where an operation was written: the function of JAX by its public name, file and line."""

import inspect
import sys
from pathlib import Path
from typing import Any

import jax
from jax.extend.core import JaxprEqn

# Modules whose functions users call, by the name that users give them; the first that has a
# function gives its name.
PUBLIC: dict[str, str] = {
    "jnp": "jax.numpy",
    "jnp.linalg": "jax.numpy.linalg",
    "jnp.fft": "jax.numpy.fft",
    "jax.scipy.linalg": "jax.scipy.linalg",
    "jax.scipy.special": "jax.scipy.special",
    "jax.nn": "jax.nn",
    "jax.random": "jax.random",
    "jax.lax": "jax.lax",
    "jax.lax.linalg": "jax.lax.linalg",
    "jax.debug": "jax.debug",
    "jax.experimental": "jax.experimental",
    "jax": "jax",
}
JAX: str = str(Path(jax.__file__).parent)
PACKAGE: Path = Path(__file__).parents[1]
# Folders of the package that call functions of users: what lies beyond is the call of `simulate`.
CALLERS: tuple[str, ...] = tuple(str(PACKAGE / name) for name in ("engine", "live", "system"))


def origin_of(eqn: JaxprEqn) -> str:
    """Such as "jnp.linalg.solve, mine.py:9", of the line of a user that made an equation.

    Where there is none, the line of this package, if it is known; "" where neither is. Only frames
    of Python that JAX has noted count: inside of a function under `jit` there are none of its
    caller.
    """
    frames = list(getattr(eqn.source_info.traceback, "frames", ()))  # the innermost first
    place = _place(frames)
    if place is None:
        return ""
    inner = [(frame.function_name, frame.file_name) for frame in reversed(frames[:place])]
    name = next(filter(None, (_public(*one) for one in [*inner, _called(eqn)])), "")
    file, line = frames[place].file_name, frames[place].line_num
    where = f"line {line} of a cell" if "ipykernel_" in file else f"{Path(file).name}:{line}"
    return ", ".join(filter(None, [name, where]))


def _place(frames):
    """The index of the frame of a user, else of this package, that is nearest; None for none."""
    own = None
    for k, frame in enumerate(frames):
        if frame.file_name.startswith(CALLERS):
            break
        if frame.file_name.startswith(str(PACKAGE)):
            own = k if own is None else own
        elif not frame.file_name.startswith(JAX) and Path(frame.file_name).exists():
            return k
    return own


def _called(eqn: Any) -> tuple[str, str]:
    """Name and file of the function under `jit` that an equation calls."""
    inner = getattr(eqn.params.get("jaxpr"), "jaxpr", None)
    source = getattr(getattr(inner, "debug_info", None), "func_src_info", None) or ""
    name, _, place = source.partition(" at ")
    return name, place.rpartition(":")[0]


def _public(name: str, file: str) -> str:
    """The public name of a function of JAX in this file; "" where it has none."""
    for short, module in PUBLIC.items():
        # What a user has called is imported.
        for public, found in getattr(sys.modules.get(module), "__dict__", {}).items():
            if name not in (public, getattr(found, "__name__", None)) or not callable(found):
                continue
            code = getattr(inspect.unwrap(found), "__code__", None)
            if code is not None and code.co_filename == file:
                return f"{short}.{public}"
    return ""
