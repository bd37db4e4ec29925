"""C baselines, compiled when first used by the C compiler that is there."""

import atexit
import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "baselines"
# The last two change no value: they let square roots and comparisons vectorise.
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")


@functools.cache
def compiler():
    """Path of a C compiler, or None."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def version():
    """The first line of what the compiler says of itself, or None."""
    if compiler() is None:
        return None
    said = subprocess.run([compiler(), "--version"], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[0]


@functools.cache
def _folder():
    folder = tempfile.mkdtemp(prefix="jaxbandits-benchmarks-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@functools.cache
def library(name, **sizes):
    """The program `name.c` with these macros, compiled and loaded."""
    defines = [f"-D{key}={value}" for key, value in sizes.items()]
    target = _folder() / f"{name}{''.join(defines)}.so"
    command = [compiler(), *FLAGS, *defines, "-o", target, FOLDER / f"{name}.c", "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target))
