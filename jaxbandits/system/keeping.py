"""Programs that a process finds compiled, because an earlier one has kept them.

A program of this package's algorithms is found by what it is made of: names of constructors, static
options and shapes of numbers, with the source of the package and all that JAX and the machine add.
Then nothing is traced. Any other program, of a user's own algorithm say, is traced, and found by
the text that JAX makes of it (StableHLO).
"""

import contextlib
import functools
import gc
import glob
import hashlib
import importlib.metadata
import itertools
import os
import pickle
import platform
import re
import sys
import threading
import zlib
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable
from jax.stages import Compiled, Lowered

from .. import replaced
from ..version import IMPORTED, VERSION
from . import kept_programs
from .interrupts import waited_for
from .machine import features, mappings_used
from .named import text_of

T = TypeVar("T")
Stamps: TypeAlias = dict[Path, tuple[int, ...]]

ROOT: Path = Path(__file__).parents[1]
PACKAGES: tuple[str, ...] = ("jax", "jaxlib", "numpy", "scipy", "optax")
LEVEL = 1  # of zlib: more would take longer to write, and hardly shorten the files
LIBRARY: re.Pattern[str] = re.compile(r"\bjaxbandits_[0-9a-f]{32}\b")  # see `cpp.build`
MODULE: re.Pattern[str] = re.compile(r"module @(\w+)")  # begins the text of a program
LAPACK = "lapack_"  # begins the names of operations that JAX makes ready when it lowers one
# Parts of the names of JAX's options that change no program.
NO_MATTER: tuple[str, ...] = (
    "cache",
    "dump",
    "locations",
    "log_",
    "logging",
    "pprint",
    "traceback",
    "tracer",
)
MOST_MAPPINGS: float = 0.4  # of those that a process may have, before programs are forgotten
BETWEEN: int = 8  # programs from one count of them to the next: it takes up to 10 ms


class Kept(NamedTuple):
    """What is kept of a program."""

    executable: bytes
    libraries: tuple[str, ...]  # native ones that it calls
    lapack: bool  # whether it calls LAPACK
    result: Any  # a pytree of the structure of its result; None for a program found by its text


# Programs in memory.


class Remembered:
    """Functions whose results are programs, which are remembered by their arguments."""

    def __init__(self) -> None:
        self._caches: list[Any] = []

    def __call__(self, function: Callable[..., T]) -> Any:
        """Decorate a function."""

        @functools.lru_cache(maxsize=256)
        def cached(_state: int, *args: Hashable) -> T:
            return function(*args)

        @functools.wraps(function)
        def call(*args: Hashable) -> T:
            return cached(replaced.state(), *args)

        self._caches.append(cached)
        shown: Any = call
        shown.cache_clear, shown.cache_info = cached.cache_clear, cached.cache_info
        return shown

    def forget(self) -> None:
        """Forget all programs; those that are playing are not freed."""
        for cached in self._caches:
            cached.cache_clear()
        gc.collect()


remembered: Remembered = Remembered()


def make_room() -> None:
    """Forget programs before the process has as many memory mappings as are allowed.

    They are compiled, or read, when they are needed again.
    """
    if mappings_used() > MOST_MAPPINGS:
        remembered.forget()
        if mappings_used() > MOST_MAPPINGS:  # they are of small programs
            jax.clear_caches()
            gc.collect()


_new = itertools.count(1)


def _make_room_at_times():
    """`make_room` before each eighth new program; even large ones leave room for that many."""
    if next(_new) % BETWEEN == 0:
        make_room()


class _Pause:
    """Blocks in which Python does not look for cyclic garbage, in any number of threads.

    Tracing makes next to none, but so many objects that Python would look several times, each time
    through all that JAX holds: a tenth to a third of the time of tracing.
    """

    def __init__(self) -> None:
        self._lock, self._blocks, self._was_on = threading.Lock(), 0, False

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._was_on = gc.isenabled()
                gc.disable()
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks and self._was_on:
                gc.enable()


collector_paused: _Pause = _Pause()


# Names.


def keeps() -> bool:
    """Whether compiled programs are kept: on CPUs, unless the user or JAX is set otherwise."""
    config: Any = jax.config  # JAX adds its options as attributes when it is imported
    plain = not config.jax_disable_jit and config.jax_default_device is None
    flags_in_a_file = os.environ.get("XLA_FLAGS", "-").strip()[:1] not in ("", "-")
    if not plain or flags_in_a_file or jax.default_backend() != "cpu" or jax.process_count() > 1:
        return False
    return kept_programs.folder() is not None


def name_of(*parts: Any) -> str | None:
    """The name of a program that is made of these parts alone, and of this package.

    Returns:
      None where nothing is kept, where a part is not of this package or reads a file, or where the
      package has been edited, or a part of it replaced, since it was imported.
    """
    if not keeps() or replaced.look():
        return None
    try:
        text = repr([text_of(part) for part in parts])
        if _stamps() != STAMPS or max(stamp[0] for stamp in STAMPS.values()) > IMPORTED:
            return None
        return _name(text.encode())
    except Exception:  # objects of users may raise whatever they like
        return None


def _name(data: bytes) -> str:
    return kept_programs.digest(repr((_sources(), _settings())).encode() + data)


def _stamps() -> Stamps:
    """When the package's files were changed, and what tells one file from another."""
    found: Stamps = {}
    for folder, _, names in os.walk(ROOT):
        for name in names:
            if name.endswith((".py", ".h")) and not name.startswith("."):
                with contextlib.suppress(OSError):
                    facts = os.stat(os.path.join(folder, name))
                    stamp = facts.st_mtime_ns, facts.st_size, facts.st_ino
                    found[Path(folder, name)] = stamp
    return found


STAMPS: Stamps = _stamps()


@functools.cache
def _sources() -> tuple[Any, ...]:
    """What is the same all the time: versions, the package's own files, the processor."""
    digest = hashlib.sha256()
    for path in sorted(STAMPS):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    versions = [importlib.metadata.version(name) for name in PACKAGES]
    machine = sys.platform, platform.machine(), platform.processor(), *features()
    return VERSION, digest.hexdigest(), sys.version_info[:2], *versions, *machine


def _settings() -> tuple[Any, ...]:
    """JAX's options, those of this thread where they differ."""
    names = [name for name in jax.config.values if not any(part in name for part in NO_MATTER)]
    options = [(name, getattr(jax.config, name, None)) for name in sorted(names)]
    mesh = getattr(jax.sharding, "get_abstract_mesh", lambda: None)()
    return repr(options), repr(mesh), os.environ.get("XLA_FLAGS", "")


# Reading and keeping.


def shapes(name: str | None, make: Callable[[], T]) -> T:
    """What `make` finds by tracing: kept or made, and kept then.

    Args:
      name: as `name_of` returns it; None for what is not kept.
      make: returns shapes and plain data, in named tuples of this package.
    """
    if name is None:
        with collector_paused:
            return make()
    data = kept_programs.read(name)
    if data is not None:
        with contextlib.suppress(Exception):  # of another version, or whatever else
            return pickle.loads(data)
        kept_programs.discard(name)
    with collector_paused:
        made = make()
    with contextlib.suppress(Exception):  # not all can be pickled
        kept_programs.keep(name, pickle.dumps(made))
    return made


def program(
    name: str | None, lower: Callable[[], Lowered], arguments: tuple[Any, ...], more: Any = None
) -> Compiled:
    """A compiled program: kept or made, and kept then.

    Args:
      name: as `name_of` returns it; None for one that is found by its text.
      lower: traces it. It must keep arguments that are not used: the text does not say which.
      arguments: of the program, or their shapes.
      more: what else makes it another program, such as compiler options; of one without a name.
    """
    found = None if name is None else _loaded(name, arguments)
    if found is not None:
        return found
    with collector_paused:
        lowered = lower()
    if not keeps():
        return compiled(lowered)
    text = lowered.as_text()
    if name is None:
        named = _name(repr((more, lowered.in_tree, lowered.in_avals)).encode() + text.encode())
        found = _loaded(named, arguments, lowered.out_tree)
        if found is not None:
            return found
        result = None
    else:
        named, out_tree = name, lowered.out_tree
        result = jax.tree.unflatten(out_tree, [0] * out_tree.num_leaves)
    made, is_new = _compiled(lowered)
    if is_new:
        _keep(named, made, text, result)
    else:
        _forget_in_jax(text)
    return made


def compiled(lowered: Lowered) -> Compiled:
    """A compiled program that is not kept; a signal need not wait for it."""
    return _compiled(lowered)[0]


_found_by_jax = threading.local()  # how many programs of each thread were in JAX's own cache


def _note(event: str, **_: Any) -> None:
    if event == "/jax/compilation_cache/cache_hits":
        _found_by_jax.number = getattr(_found_by_jax, "number", 0) + 1


jax.monitoring.register_event_listener(_note)


def _compiled(lowered: Lowered) -> tuple[Compiled, bool]:
    """A program, and whether it was compiled here and now."""

    def made_and_new() -> tuple[Compiled, bool]:
        before = getattr(_found_by_jax, "number", 0)
        made = lowered.compile()
        return made, getattr(_found_by_jax, "number", 0) == before

    _make_room_at_times()
    return waited_for(made_and_new)


def _forget_in_jax(text):
    """Remove programs of a name that JAX keeps in our folder, so that the next one is compiled.

    A program that was read cannot be written again: its functions would be missing.
    """
    name, folder, config = MODULE.search(text), kept_programs.folder(), jax.config
    if name and folder and getattr(config, "jax_compilation_cache_dir", None) == str(folder):
        for path in folder.glob(f"{glob.escape(name[1])}-*-cache"):
            path.unlink(missing_ok=True)


def _loaded(name, arguments, out_tree=None):
    """The program that is kept under a name, or None."""
    data = kept_programs.read(name)
    if data is None:
        return None
    _make_room_at_times()
    try:
        kept = Kept(*pickle.loads(data))
        if not _at_hand(kept.libraries):
            return None
        if kept.lapack:
            _make_lapack_ready()
        return serialize_executable.deserialize_and_load(
            zlib.decompress(kept.executable),
            jax.tree.structure((arguments, {})),
            jax.tree.structure(kept.result) if out_tree is None else out_tree,
            execution_devices=jax.local_devices()[:1],
        )
    except Exception as error:  # JAX and XLA have many kinds
        kind = type(error).__name__
        kept_programs.warn(f"a kept program is compiled anew: {kind}: {error}")
        kept_programs.discard(name)
        return None


def _at_hand(libraries):
    """Whether XLA can call these native ones; only programs that call some need the compiler."""
    if not libraries:
        return True
    from ..compilers.cpp import library_at_hand

    return all(map(library_at_hand, libraries))


@functools.cache
def _make_lapack_ready():
    """JAX looks up the functions of LAPACK when it lowers a program that calls one."""
    jax.jit(jnp.linalg.cholesky).lower(jax.ShapeDtypeStruct((2, 2), jnp.zeros(0).dtype))


def _keep(name, compiled, text, result):
    """Keep a program, unless it calls Python or is otherwise of a kind that cannot be kept."""
    with contextlib.suppress(Exception):
        executable, *_ = serialize_executable.serialize(compiled)
        libraries = tuple(sorted(set(LIBRARY.findall(text))))
        kept = Kept(zlib.compress(executable, LEVEL), libraries, LAPACK in text, result)
        kept_programs.keep(name, pickle.dumps(tuple(kept)))
