"""How many kernels the program of each case has: most of the time of compiling follows from it.

A change that makes a program larger by more than a tenth fails, so that nobody waits longer without
having decided it. To store the sizes anew:

    PROGRAM_SIZES=store pytest -q -n 0 tests/native/test_engine.py -k those_of_xla
"""

import json
import os
from pathlib import Path

import jax
import jaxlib

from benchmarks.compiling import size

STORED = Path(__file__).with_name("program_sizes.json")
MORE, FEW = 1.1, 3  # allowed: a tenth, and a few of a small program
HASTY = bool(jax.config.values["jax_disable_most_optimizations"])


def check(name, programs):
    """Raise where a program of a case has grown; or store its size, where that is asked for.

    Args:
      programs: the compiled programs, by engine. Their sizes depend on XLA and its flags, so they
        are compared only where these are as they were.
    """
    stored = json.loads(STORED.read_text()) if STORED.exists() else {}
    found = {engine: size(program.as_text())["kernels"] for engine, program in programs.items()}
    if os.environ.get("PROGRAM_SIZES") == "store":
        sizes = stored.get("kernels", {}) | {name: found}
        facts = {"jaxlib": jaxlib.__version__, "kernels": dict(sorted(sizes.items()))}
        STORED.write_text(json.dumps(facts, indent=1) + "\n")
    elif HASTY and stored["jaxlib"] == jaxlib.__version__:
        known = stored["kernels"][name]
        grown = {engine: (known[engine], n) for engine, n in found.items() if engine in known}
        grown = {engine: (k, n) for engine, (k, n) in grown.items() if n > k * MORE + FEW}
        assert not grown, f"more kernels than the stored ones, see {Path(__file__).name}: {grown}"
