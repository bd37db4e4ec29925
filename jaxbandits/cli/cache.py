"""Compiled programs kept between runs of the command line, in the user's cache folder."""

import contextlib
import glob
import re
import warnings

from ..system.private_folders import NotPrivate, private_folder

# What JAX warns of where a kept program cannot be read, or a new one not be kept.
TROUBLE = re.compile(r"Error (read|writ)ing persistent compilation cache entry for '(.*?)': ?(.*)")


@contextlib.contextmanager
def kept_programs():
    """Keep every compiled program of this block; a folder that JAX was given already wins.

    `JAX_COMPILATION_CACHE_DIR` names another folder. Importing the package changes nothing.

    The folder is the user's alone, for whoever writes to it runs code here: else a warning says
    why no programs are kept. A program that cannot be read is removed and compiled anew.
    """
    import jax
    import platformdirs
    from jax.experimental.compilation_cache import compilation_cache

    if jax.config.jax_compilation_cache_dir is not None:
        yield
        return
    try:
        folder = private_folder(platformdirs.user_cache_path("jaxbandits", appauthor=False))
    except (NotPrivate, OSError) as error:
        warnings.warn(f"compiled programs are not kept: {error}", RuntimeWarning, stacklevel=3)
        yield
        return
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    compilation_cache.reset_cache()
    for name, value in settings.items():
        jax.config.update(name, value)
    try:
        with _mended(folder):
            yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()


@contextlib.contextmanager
def _mended(folder):
    """Remove kept programs that JAX cannot read, which it would leave; one warning of each kind."""
    seen = set()

    def show(message, *where, **more):
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
        before, warnings.showwarning = warnings.showwarning, show
        yield
