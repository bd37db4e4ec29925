"""Generated C++: compiled by the machine's own compiler, kept, loaded, made known to the runtime.

A library is code, and so is whatever lies in its place. It is loaded from a folder that is the
user's alone, under a name with two digests: of all that it was made from, and of its own bytes. A
file of other bytes is not loaded: it is removed and compiled anew.
"""

import contextlib
import ctypes
import hashlib
import os
import shutil
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import jax

from ...system.private_folders import NotPrivate, check_private, private_folder
from .compiling import compile_to, compiler, made_from

FOLDER: str = "jaxbandits-native"  # inside that of JAX
MAKING: str = ".making-"  # begins the names of folders in which a compiler works
DAY: int = 86_400  # seconds after which such a folder is of a process that was ended
_libraries = {}  # by target: a loaded library must stay
_one = threading.Lock()  # programs are compiled by several threads


def register(source: str) -> str:
    """The name under which XLA calls the program of a source, its `XLA_FFI_Error *run(...)`.

    Compiled once a process, or once a machine where JAX has a persistent cache.

    Raises:
      ChildProcessError: one line about a compiler that is missing, fails, or writes no library.
    """
    name = "jaxbandits_" + _digest("\n".join([source, *made_from()]).encode())
    if name not in _libraries:
        library = _library(name, source)
        with _one:
            if name not in _libraries:
                capsule = jax.ffi.pycapsule(library.run)
                jax.ffi.register_ffi_target(name, capsule, platform="cpu")
                _libraries[name] = library
    return name


def _digest(data):
    return hashlib.sha256(data).hexdigest()[:32]


def _library(name, source):
    """A program as a loaded library: the one that is kept, or a new one."""
    with _one:
        folder = _folder()
        kept = folder and _kept(folder, name)
    return ctypes.CDLL(str(kept)) if kept else _compiled(name, source, folder)


def _folder():
    """Where libraries are kept; None where JAX keeps no programs or the folder will not do."""
    config: Any = jax.config  # JAX adds its options as attributes when it is imported
    kept = config.jax_compilation_cache_dir
    if not kept or "://" in kept:
        return None
    try:
        return private_folder(Path(kept, FOLDER))
    except (NotPrivate, OSError) as error:
        _tell(f"native programs are not kept: {_reason(error)}")
        return None


def _kept(folder, name):
    """The library of a name, if one is there that is as it was written."""
    for path in sorted(folder.glob(f"{name}.*.so")):
        try:
            check_private(path)
            if path.name == f"{name}.{_digest(path.read_bytes())}.so":
                return path
            reason = f"{path} is damaged"
        except (NotPrivate, OSError) as error:
            reason = _reason(error)
        _tell(f"a native program is compiled anew: {reason}")
        with contextlib.suppress(OSError):
            path.unlink()
    return None


def _compiled(name, source, folder):
    """A new library, loaded; where there is a folder it is put there, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=MAKING) as making:
        made = Path(making, f"{name}.so")
        compile_to(made, source)
        try:
            library = ctypes.CDLL(str(made))
            library.run  # noqa: B018  AttributeError where there is none
        except (OSError, AttributeError):
            wrote = f"what the C++ compiler {compiler()} wrote is no library of this machine"
            raise ChildProcessError(wrote) from None
        if folder:
            _keep(made, folder / f"{name}.{_digest(made.read_bytes())}.so")
    return library


def _keep(made, path):
    """Put a library where it is kept; another process that compiles the same writes the same."""
    try:
        os.chmod(made, 0o700)
        os.replace(made, path)
        for left in path.parent.glob(f"{MAKING}*"):
            if left.stat().st_mtime < time.time() - DAY:
                shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        _tell(f"a native program is not kept: {_reason(error)}")


def _reason(error):
    return f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)


def _tell(text):
    warnings.warn(text, RuntimeWarning, stacklevel=2)
