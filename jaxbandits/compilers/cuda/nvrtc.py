"""NVIDIA's run-time compiler: CUDA C++ as text becomes PTX as text. No GPU is needed for that."""

import ctypes
import functools
import hashlib
import os
import re
import sys
from pathlib import Path

from ..cpp.compiling import FOLDER, HEADERS

# Where it is: in the packages that `jax[cuda13]` and `jax[cuda12]` bring, or with a CUDA toolkit.
IN_PACKAGES: tuple[str, ...] = ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib")
IN_TOOLKIT: tuple[str, ...] = ("lib64", "lib")
# A product and a sum are two operations, as in the text: joined, the last bits would depend on what
# the compiler finds to join. It takes no longer.
OPTIONS: tuple[str, ...] = ("-std=c++17", "-w", "--fmad=false")
# A driver refuses PTX that is newer than itself; the programs need nothing that came after this.
NEWEST_PTX: tuple[int, int] = (8, 0)
NEWEST_ARCHITECTURE: int = 90  # that this version of PTX knows; newer GPUs run it too
_programs: dict[str, str] = {}


class NoCompiler(RuntimeError):
    """NVRTC is missing, or refuses a program."""


@functools.cache
def found_library() -> Path | None:
    """The path of NVRTC; None if there is none."""
    folders = [Path(entry, name) for entry in sys.path for name in IN_PACKAGES]
    toolkit = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    folders += [Path(toolkit, name) for name in IN_TOOLKIT]
    for folder in folders:
        for path in sorted(folder.glob("libnvrtc.so*"), reverse=True):
            return path
    return None


@functools.cache
def _nvrtc(path):
    try:
        for part in path.parent.glob("libnvrtc-builtins.so*"):  # it looks for it elsewhere
            ctypes.CDLL(str(part), mode=ctypes.RTLD_GLOBAL)
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise NoCompiler(f"NVIDIA's run-time compiler {path} cannot be loaded: {error}") from None
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


def architecture(compute_capability: str) -> int:
    """The architecture to compile for, such as 90, from a device's capability, such as "9.0"."""
    return min(NEWEST_ARCHITECTURE, int(compute_capability.replace(".", "")))


def to_ptx(text: str, architecture: int) -> str:
    """The PTX of a CUDA C++ program; compiled once for a process.

    Args:
      text: of the program; it may include the headers of `cpp`.
      architecture: such as 90, see `architecture`.
    Raises:
      NoCompiler: there is no NVRTC, or it refuses the program; with the compiler's first error.
    """
    given = [f"--gpu-architecture=compute_{architecture}", *OPTIONS]
    key = hashlib.sha256("\n".join([text, *given]).encode()).hexdigest()
    if key not in _programs:
        path = found_library()
        if path is None:
            raise NoCompiler(
                "NVIDIA's run-time compiler (NVRTC) was not found; it comes with jax[cuda13] or a "
                "CUDA toolkit, whose folder CUDA_HOME may name"
            )
        _programs[key] = _relabelled(_compiled(_nvrtc(path), text, given))
    return _programs[key]


def _compiled(nvrtc, text, options):
    program = ctypes.c_void_p()
    sources = [(FOLDER / name).read_bytes() for name in HEADERS]
    number = len(HEADERS)
    headers = (ctypes.c_char_p * number)(*sources)
    names = (ctypes.c_char_p * number)(*(name.encode() for name in HEADERS))
    created = nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), text.encode(), b"lane.cu", number, headers, names
    )
    _check(nvrtc, created)
    try:
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = nvrtc.nvrtcCompileProgram(program, len(options), given)
        if status:
            log = _text(nvrtc, program, "ProgramLog")
            lines = [line for line in log.splitlines() if "error" in line] or [log]
            error = NoCompiler(f"NVRTC refuses a program: {lines[0][:300]}")
            error.add_note(log[:2000])
            raise error
        return _text(nvrtc, program, "PTX")
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc, program, what):
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, buffer))
    return buffer.value.decode()


def _check(nvrtc, status):
    if status:
        raise NoCompiler(f"NVRTC failed: {nvrtc.nvrtcGetErrorString(status).decode()}")


def _relabelled(ptx):
    """The PTX with an older version in its head, for older drivers."""

    def older(found):
        version = min(NEWEST_PTX, (int(found[1]), int(found[2])))
        return ".version {}.{}".format(*version)

    return re.sub(r"^\.version (\d+)\.(\d+)", older, ptx, count=1, flags=re.M)
