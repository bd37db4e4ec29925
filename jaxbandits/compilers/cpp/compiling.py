"""Finds and calls the machine's C++ compiler, and ends it where it hangs."""

import contextlib
import functools
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import warnings
from pathlib import Path

import jax
import jaxlib

from ...system.machine import features

FOLDER: Path = Path(__file__).parent
HEADERS: tuple[str, ...] = ("lanes.h", "vectors.h", "one_lane.h")
FLAGS: str = """
    -std=gnu++17 -march=native -fPIC -shared -fwrapv -fno-math-errno -fno-trapping-math -w
"""
# Of optimisation, by whether a program is called often.
LEVELS: dict[bool, str] = {True: "-O2", False: "-O1"}
# For long programs GCC takes half of the time without these passes and with fewer looks at what
# memory may be the same; the programs are as fast, to the last bit the same, and there is hardly
# anything for these passes to find in vectors and tables that are written out.
LARGE: int = 50_000  # characters of a source
QUICKER: str = """
    -fno-tree-pre -fno-gcse -fno-code-hoisting -fno-tree-vectorize -fno-tree-slp-vectorize
    -fira-region=one --param=sccvn-max-alias-queries-per-access=10
    --param=dse-max-alias-queries-per-store=10
"""
COMPILERS: tuple[str, ...] = ("g++", "clang++", "c++")
MOST_SECONDS: int = 300  # limit for compiling a program, which takes 1 to 60 seconds
ANSWER_SECONDS: int = 20  # limit for asking the compiler for its version


def compiler() -> str | None:
    """The path of the C++ compiler that `CXX` names, else of the first usual one; None if none.

    Where the system has none, the one of the Python package `ziglang` does if it is installed.
    """
    if os.environ.get("CXX"):
        return shutil.which(os.environ["CXX"])
    return next(filter(None, map(shutil.which, COMPILERS)), None) or _in_package()


@functools.cache
def warn_of_missing(named: str) -> None:
    """Warn, once, where the C++ compiler that `CXX` names is not found."""
    if shutil.which(named) is None:
        warnings.warn(
            f"CXX names the C++ compiler {named!r}, which is not found: XLA plays; name one "
            "program, without options, or unset CXX",
            RuntimeWarning,
            stacklevel=3,
        )


@functools.cache
def _in_package():
    """The path of Zig, which contains clang, in the package `ziglang`; None where it is not."""
    found = importlib.util.find_spec("ziglang")
    folders = (found.submodule_search_locations if found else None) or []
    return next(filter(None, (shutil.which("zig", path=x) for x in folders)), None)


def _command(path):
    """The command that compiles C++ with the compiler of this path."""
    # Its own C++ library, which it would build at first use, is not needed.
    return (path, "cc", "-xc++", "-nostdlib++") if path == _in_package() else (path,)


def made_from(often: bool = True) -> tuple[str, ...]:
    """Texts of all that a compiled program depends on besides its source."""
    path = compiler()
    if path is None:
        raise ChildProcessError(
            "no C++ compiler was found (g++, clang++, what CXX names, or the package ziglang)"
        )
    machine = platform.machine(), platform.processor(), *_system_library(), *features()
    headers = [(FOLDER / name).read_text() for name in HEADERS]
    flags = FLAGS, LEVELS[often], QUICKER
    return (*headers, *flags, path, _version(path), jaxlib.__version__, *machine)


_system_library = functools.cache(platform.libc_ver)


@functools.cache
def _version(path):
    return _output_of(*_command(path), "--version", seconds=ANSWER_SECONDS)


@functools.cache
def _is_gcc(path):
    return "Free Software Foundation" in _version(path)


def compile_to(library: Path, source: str, often: bool = True) -> None:
    """Compile a C++ source to a shared library; the source is written to the same folder.

    Args:
      library, source: the new file, and the text.
      often: whether it is called often; else it is optimised less.

    Raises:
      ChildProcessError: one line that says what went wrong.
    """
    code = library.with_suffix(".cc")
    code.write_text(source)
    include = [f"-I{FOLDER}", f"-I{jax.ffi.include_dir()}"]
    path = compiler()
    quicker = QUICKER if len(source) > LARGE and _is_gcc(path) else ""
    flags = [*FLAGS.split(), LEVELS[often], *quicker.split()]
    files = str(code), "-o", str(library)
    given = os.environ | {"ZIG_LOCAL_CACHE_DIR": str(library.parent / "zig")}  # removed with it
    _output_of(*_command(path), *flags, *include, *files, "-lm", given=given, seconds=MOST_SECONDS)
    if not library.exists():
        raise ChildProcessError(
            f"the C++ compiler {compiler()} reported success but wrote no library"
        )


def _output_of(*command, seconds, given=None):
    """What a command prints. An interrupt of this call kills the command and its children.

    `given` are the variables of its environment, by default those of this process.
    """
    path, pipe = command[0], subprocess.PIPE
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env=given,
            start_new_session=True,
        )
    except OSError as error:
        raise ChildProcessError(
            f"the C++ compiler {path} does not start: {error.strerror}"
        ) from None
    with process:
        try:
            printed, errors = process.communicate(timeout=seconds)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            late = f"the C++ compiler {path} was killed after {seconds} s without a result"
            raise ChildProcessError(late) from None
    if process.returncode:
        lines = [line for line in errors.splitlines() if line.strip()]
        reason = next((line for line in lines if "error" in line), *(lines[:1] or [""]))
        failed = f"the C++ compiler {path} failed with status {process.returncode}" + (
            f": {reason[:300]}" if reason else ", and said nothing"
        )
        error = ChildProcessError(failed)
        error.add_note(errors[:2000])
        raise error
    return printed
