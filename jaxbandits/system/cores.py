"""How many cores this process may use."""

import functools
import math
import multiprocessing
import os
from pathlib import Path

from ..messages import brief
from ..whole_numbers import allowed_whole, written_whole

VARIABLE = "JAXBANDITS_CORES"  # of the environment: at most so many, unless a call says how many
CGROUP_FILE, CGROUP_ROOT = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
QUOTA_FILE, PERIOD_FILE = "cpu.cfs_quota_us", "cpu.cfs_period_us"  # of cgroups, version 1
MAX_FILE = "cpu.max"  # of version 2: quota and period
UNLIMITED: int = 2**20  # cores, more than any machine has


def usable_cores() -> int:
    """The cores that this process may use: those it is bound to, up to the quota of its cgroup.

    One in a process that another process of Python has started by `multiprocessing`: there are as
    many of them as there is work.

    Raises:
      ValueError: the environment variable `JAXBANDITS_CORES` is no whole number, 1 or above.
    """
    limit = _limit(os.environ.get(VARIABLE, ""))
    if multiprocessing.parent_process() is not None:
        return 1
    return max(1, min(_bound_to(), quota(), limit))


def _limit(text: str) -> int:
    """What the environment variable says; "" is no limit."""
    if not text.strip():
        return UNLIMITED
    number = written_whole(text)
    if not number:
        raise ValueError(f"{VARIABLE} must be {allowed_whole(1)}, got {brief(text)}")
    return number


def _bound_to() -> int:
    """How many cores the process is bound to; on systems that do not say, those of the machine."""
    bound = getattr(os, "sched_getaffinity", None)
    return len(bound(0)) if bound is not None else os.cpu_count() or 1


@functools.cache
def quota(listed: Path = CGROUP_FILE, root: Path = CGROUP_ROOT) -> int:
    """The cores whose time the cgroups of this process allow, rounded up; `UNLIMITED` for none.

    Args:
      listed: the file that lists the cgroups, one in a line: `number:controllers:path`, where
        version 2 has number 0 and names no controllers.
      root: where they are mounted.
    """
    if not listed.exists():  # not on Linux
        return UNLIMITED
    found = [UNLIMITED]
    for line in listed.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += [_allowed(folder, MAX_FILE) for folder in _folders(root, path)]
        elif "cpu" in controllers.split(","):
            for mount in {root / controllers, root / "cpu"}:
                found += [_allowed(x, QUOTA_FILE, PERIOD_FILE) for x in _folders(mount, path)]
    return min(found)


def _folders(mount: Path, path: str) -> list[Path]:
    """The folder of a cgroup and of all around it; a container may see the outermost alone."""
    inner = mount / path.lstrip("/")
    return [inner, *(x for x in inner.parents if x.is_relative_to(mount))]


def _allowed(folder: Path, *names: str) -> int:
    """Cores by the quota that files of a cgroup hold; `UNLIMITED` where they hold none."""
    try:
        quota_time, period = " ".join((folder / name).read_text() for name in names).split()
        cores = math.ceil(int(quota_time) / int(period))
    except (OSError, ValueError, ZeroDivisionError):  # not there, or "max"
        return UNLIMITED
    return cores if cores > 0 else UNLIMITED  # -1 microseconds are no limit
