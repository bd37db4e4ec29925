"""Generated C++: compiled by the machine's own compiler, loaded, made known to the runtime."""

import ctypes
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import jax

HEADER = Path(__file__).with_name("lanes.h")
FLAGS = """
    -std=gnu++17 -O2 -march=native -fPIC -shared -fwrapv -fno-math-errno -fno-trapping-math -w
"""
COMPILERS = ("g++", "clang++", "c++")
_libraries = {}  # by target: a loaded library must stay
_one = threading.Lock()  # programs are compiled by several threads


def compiler():
    """The C++ compiler: what `CXX` names, else the first of the usual ones; None where none is."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else COMPILERS
    return next(filter(None, map(shutil.which, names)), None)


def register(source):
    """The name under which XLA calls the program of a source, its `XLA_FFI_Error *run(...)`.

    Compiled once a process, or once a machine where JAX has a persistent cache.
    """
    digest = hashlib.sha256("\n".join([source, HEADER.read_text(), *_machine()]).encode())
    name = "jaxbandits_" + digest.hexdigest()[:24]
    if name not in _libraries:
        library = ctypes.CDLL(str(_compiled(name, source)))
        with _one:
            if name not in _libraries:
                capsule = jax.ffi.pycapsule(library.run)
                jax.ffi.register_ffi_target(name, capsule, platform="cpu")
                _libraries[name] = library
    return name


@functools.cache
def features():
    """Names of what the processor can do; none where the system does not tell."""
    if not os.path.exists("/proc/cpuinfo"):
        return ()
    found = re.search(r"^(flags|Features)\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return tuple(found.group(2).split()) if found else ()


@functools.cache
def _machine():
    """What a compiled program depends on besides its source."""
    path = compiler()
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
    return (FLAGS, path, version.stdout, platform.machine(), platform.processor(), *features())


@functools.cache
def _scratch():
    return tempfile.TemporaryDirectory(prefix="jaxbandits-")


def _compiled(name, source):
    with _one:
        folder = Path(jax.config.jax_compilation_cache_dir or _scratch().name)
    library = folder / f"{name}.so"
    if library.exists():
        return library
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        code, made = Path(place, f"{name}.cc"), Path(place, f"{name}.so")
        code.write_text(source)
        include = [f"-I{HEADER.parent}", f"-I{jax.ffi.include_dir()}"]
        done = subprocess.run(
            [compiler(), *FLAGS.split(), *include, str(code), "-o", str(made), "-lm"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{compiler()} refused a generated program:\n{done.stderr[:2000]}")
        made.replace(library)  # whole or not at all, whoever else compiles it now
    return library
