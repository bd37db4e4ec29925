"""How long an algorithm may take to compile, for what is shown while it does."""

import functools
import json
from pathlib import Path
from typing import Any

from ..compilers.cpp import compiler
from ..signatures import function_of, name_of

# Seconds by engine and constructor on small instances, from the benchmark of compile times; written
# by `python -m benchmarks.pages`.
STORED: Path = Path(__file__).with_name("compile_seconds.json")


def about(build: Any, engine: str) -> str:
    """Such as " (about 3 s)" after the name of an algorithm of the package; else nothing.

    Args:
      build: a constructor, with options bound perhaps.
      engine: as in `simulate`.
    """
    if engine == "auto":
        engine = "native" if compiler() else "xla"
    seconds = _stored().get(engine, {}).get(name_of(build))
    module = getattr(function_of(build), "__module__", None) or ""
    if seconds is None or not module.startswith("jaxbandits."):
        return ""
    return f" (about {max(1, round(seconds))} s)"


@functools.cache
def _stored():
    return json.loads(STORED.read_text(encoding="utf-8"))
