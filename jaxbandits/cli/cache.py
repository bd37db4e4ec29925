"""Compiled programs kept between runs of the command line, in the user's cache folder."""

import contextlib
import glob
import re
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

from ..system import kept_programs

# Warnings of JAX that a kept program cannot be read, or that a new one cannot be kept.
TROUBLE: re.Pattern[str] = re.compile(
    r"Error (read|writ)ing persistent compilation cache entry for '(.*?)': ?(.*)"
)
FOLDER = "jax_compilation_cache_dir"  # options of JAX
LEAST: dict[str, float | int] = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
}


@contextlib.contextmanager
def all_programs_kept() -> Generator[None]:
    """Have JAX keep the small programs of this block too, unless it was given a folder already.

    They lie in the folder of `system.kept_programs`, to which the engine writes its own. One that
    cannot be read is removed and compiled again.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    before = {name: getattr(jax.config, name) for name in (FOLDER, *LEAST)}
    folder = None if before[FOLDER] is not None else kept_programs.folder()
    if folder is None:
        yield
        return
    compilation_cache.reset_cache()
    for name, value in {FOLDER: str(folder), **LEAST}.items():
        jax.config.update(name, value)
    try:
        with _damaged_removed(folder):
            yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
        kept_programs.prune(folder)


@contextlib.contextmanager
def _damaged_removed(folder: Path) -> Generator[None]:
    """Remove kept programs that JAX cannot read, as JAX does not; one warning of each kind."""
    seen: set[str] = set()

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        trouble = TROUBLE.match(str(message))
        if trouble is None:
            before(message, *where, **more)
            return
        kind, name, reason = trouble.groups()
        if kind == "read":
            for path in folder.glob(f"{glob.escape(name)}-*-cache"):
                path.unlink(missing_ok=True)
        if kind not in seen:
            seen.add(kind)
            text = {
                "read": f"a kept program in {folder} is damaged and compiled anew ({reason})",
                "writ": f"compiled programs cannot be kept in {folder}: {reason}",
            }
            before(RuntimeWarning(text[kind]), RuntimeWarning, *where[1:], **more)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", TROUBLE.pattern)
        before = warnings.showwarning
        warnings.showwarning = show  # ty: ignore[invalid-assignment]  # Python documents replacing it
        yield
