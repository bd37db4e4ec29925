"""Compiles the baselines in C and for Numba when they are first used, if a compiler exists."""

import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

try:
    import numba
except ImportError:
    numba = None

REAL, WHOLE, POINTER = ctypes.c_double, ctypes.c_int64, ctypes.c_void_p
FOLDER = Path(__file__).parent / "baselines"


def compiler():
    """Path of a C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def version():
    """The first line of the compiler's version text, or None."""
    if compiler() is None:
        return None
    said = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[0]


@functools.cache
def _folder():
    return Path(tempfile.mkdtemp(prefix="jaxbandits-benchmarks-"))


@functools.cache
def library(name, arguments, **sizes):
    """The library of `name.c`, compiled with these macros; its `play` takes these C types."""
    defines = [f"-D{key}={value}" for key, value in sorted(sizes.items())]
    mark = hashlib.sha256(" ".join(defines).encode()).hexdigest()[:12]
    target, source = _folder() / f"{name}-{mark}.so", FOLDER / f"{name}.c"
    # Without this option each square root needs a branch that sets errno.
    flags = ["-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC", *defines]
    subprocess.run([compiler(), *flags, "-o", str(target), str(source), "-lm"], check=True)
    loaded = ctypes.CDLL(str(target))
    loaded.play.argtypes, loaded.play.restype = arguments, None
    return loaded


def address(array):
    """The address of a contiguous array."""
    assert array.flags.c_contiguous
    return array.ctypes.data


def jitted(function):
    """The function, which Numba (if installed) compiles at its first call."""
    return function if numba is None else numba.njit(error_model="numpy")(function)
