"""Compiles generated C++ by the machine's compiler, stores and loads libraries, registers them.

Loading a library runs code, so a file that somebody else put in its place would be dangerous.
Libraries are therefore loaded only from a folder that no other user may write to, and a library's
name holds two digests: one of all that it was made from, one of its bytes. A file whose bytes do
not fit its name is not loaded but removed, and the library is compiled anew.
"""

import contextlib
import ctypes
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import jax

from ...system import kept_programs
from ...system.kept_programs import digest, file_name
from ...system.private_folders import NotPrivate, private_folder
from .compiling import compile_to, compiler, made_from

FOLDER: str = kept_programs.NATIVE  # inside JAX's folder of compiled programs
MAKING: str = ".making-"  # start of the names of folders in which a compiler works
DAY: int = 86_400  # seconds after which such a folder was left behind by a process that was killed
_libraries = {}  # by target; a loaded library must not be freed
_lock = threading.Lock()  # several threads compile programs


def register(source: str, often: bool = True) -> str:
    """The name under which XLA calls the function `XLA_FFI_Error *run(...)` of a C++ source.

    The source is compiled once for each machine where programs are kept, else once for each
    process; in less time, to a slower program, where it is not called `often`.

    Raises:
      ChildProcessError: one line that says that the compiler is missing, failed, or wrote no
        library, or that there is no room for one.
    """
    name = "jaxbandits_" + digest("\n".join([source, *made_from(often)]).encode())
    if name not in _libraries:
        _made_known(name, _library(name, source, often))
    return name


def library_at_hand(name: str) -> bool:
    """Whether XLA can call what `register` has called `name`, in an earlier process perhaps."""
    if name not in _libraries:
        with _lock:
            folder = _folder()
            stored = folder and _stored(folder, name)
        library = stored and _loaded(stored)
        if not library:
            return False
        _made_known(name, library)
    return True


def _made_known(name, library):
    with _lock:
        if name not in _libraries:
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(library.run), platform="cpu")
            _libraries[name] = library


def _library(name, source, often=True):
    """A program as a loaded library: the stored one, or a new one."""
    with _lock:
        folder = _folder()
        stored = folder and _stored(folder, name)
    library = _loaded(stored) if stored else None
    try:
        return library or _compiled(name, source, folder, often)
    except ChildProcessError:
        raise
    except OSError as error:
        raise ChildProcessError(
            f"a native program could not be written: {kept_programs.reason(error)}"
        ) from None


def _loaded(path):
    """A stored library; None where the system does not load it, as one made with other systems'."""
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        return None


def _folder():
    """Where libraries are stored: beside the programs of JAX, or of this package; or None."""
    config: Any = jax.config  # JAX adds its options as attributes when it is imported
    cache = config.jax_compilation_cache_dir
    if not cache or "://" in cache:
        cache = kept_programs.folder()
    if cache is None:
        return None
    try:
        return private_folder(Path(cache, FOLDER))
    except (NotPrivate, OSError) as error:
        kept_programs.warn(f"native programs are not kept: {kept_programs.reason(error)}")
        return None


def _stored(folder, name):
    """The stored library of a name, or None where there is none, or only damaged ones."""
    found = kept_programs.intact(sorted(folder.glob(f"{name}.*.so")), name, "native")
    return None if found is None else found[0]


def _compiled(name, source, folder, often):
    """A new library, loaded, and moved as a whole to the folder where there is one."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=MAKING) as making:
        new = Path(making, f"{name}.so")
        compile_to(new, source, often)
        try:
            library = ctypes.CDLL(str(new))
            library.run  # noqa: B018  AttributeError where there is none
        except (OSError, AttributeError):
            if folder:  # from which the system may load no programs
                return _compiled(name, source, None, often)
            wrote = f"what the C++ compiler {compiler()} wrote is no library for this machine"
            raise ChildProcessError(wrote) from None
        if folder:
            _store(new, folder / file_name(name, new.read_bytes(), ".so"))
    return library


def _store(new, path):
    """Move a new library to `path`; a process that compiles the same writes the same file."""
    try:
        os.chmod(new, 0o700)
        os.replace(new, path)
    except OSError as error:
        kept_programs.warn(f"a native program is not kept: {kept_programs.reason(error)}")
    else:
        _remove_left_behind(path.parent)


def _remove_left_behind(folder):
    """Remove folders of compilers that were killed; others may end while they are looked at."""
    for left in folder.glob(f"{MAKING}*"):
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - DAY:
                shutil.rmtree(left, ignore_errors=True)
