"""Compiled programs kept between runs of the command line, in the user's cache folder."""

import contextlib


@contextlib.contextmanager
def kept_programs():
    """Keep every compiled program of this block; a folder that JAX was given already wins.

    `JAX_COMPILATION_CACHE_DIR` names another folder. Importing the package changes nothing.
    """
    import jax
    import platformdirs
    from jax.experimental.compilation_cache import compilation_cache

    if jax.config.jax_compilation_cache_dir is not None:
        yield
        return
    settings = {
        "jax_compilation_cache_dir": platformdirs.user_cache_dir("jaxbandits", appauthor=False),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    compilation_cache.reset_cache()
    for name, value in settings.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
