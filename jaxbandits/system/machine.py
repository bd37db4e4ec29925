"""Where results come from: the versions, the machine and the command of this process."""

import functools
import os
import platform
import re
import shlex
import sys
from pathlib import Path

import numpy as np

CPU_FILE = Path("/proc/cpuinfo")
MAPS_FILE, MOST_MAPS_FILE = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
CPU_FEATURES = re.compile(r"^(flags|Features)\s*:(.*)$", re.MULTILINE)
CPU_NAME = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)


def provenance() -> dict[str, str]:
    """Text by name: `python`, `numpy`, `machine` and, unless in a notebook, `command`."""
    found = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": _machine(),
        "command": _command(),
    }
    return {name: text for name, text in found.items() if text}


def processor() -> str:
    """The name of the processor, "" where the system does not tell."""
    name = CPU_NAME.search(CPU_FILE.read_text()) if CPU_FILE.exists() else None
    return name[1].strip() if name else platform.processor()


@functools.cache
def features() -> tuple[str, ...]:
    """Names of the processor's instruction sets; empty where the system does not list them."""
    found = CPU_FEATURES.search(CPU_FILE.read_text()) if CPU_FILE.exists() else None
    return tuple(found[2].split()) if found else ()


def memory_bytes() -> int:
    """The memory of this machine; 2**62 where the system does not report it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**62


def in_gibibytes(number: int) -> str:
    """A number of bytes as text."""
    return f"{number / 2**30:.3g} GiB"


def mappings_used() -> float:
    """The share of the memory mappings that Linux allows a process; 0 on other systems.

    Each kernel of a compiled program takes some; a process that would need more is ended.
    """
    if not (MAPS_FILE.exists() and MOST_MAPS_FILE.exists()):
        return 0.0
    return MAPS_FILE.read_bytes().count(b"\n") / int(MOST_MAPS_FILE.read_text())


def _machine() -> str:
    parts = [f"{platform.system()} {platform.machine()}", processor(), f"{os.cpu_count()} CPUs"]
    return ", ".join(part for part in parts if part.strip())


def _command() -> str:
    """The command as it was typed, without the folders of the program.

    Bytes of it that are no UTF-8 are written as escapes, for no file format takes them as text.
    """
    if "ipykernel" in sys.modules:  # the command of a notebook's kernel says nothing
        return ""
    program, *arguments = sys.argv or [""]
    name = Path(program).name
    words = [name] if name != "__main__.py" else ["python", "-m", Path(program).parent.name]
    text = shlex.join([*words, *arguments]) if name else ""
    return text.encode(errors="backslashreplace").decode()
