"""The compiled programs of a case, which all tests of that case share."""

import contextlib
import functools
import os
import sys
import threading

import cases
import jax
import jax.numpy as jnp
import numpy as np
from environment import HASTE, UNHURRIED
from jax._src.interpreters import mlir
from jax.experimental.compilation_cache import compilation_cache
from jaxlib.mlir import ir

import jaxbandits as jb
from jaxbandits.compilers.cpp import compiler, compiling
from jaxbandits.engine import choices, episode, host_loop
from jaxbandits.engine.partition import prepared
from jaxbandits.system import keeping, traces

LANES, REPLICATIONS = 16, 12  # of `simulate`; with fewer replications it would use fewer lanes
PROGRAMS_OF_A_CONTEXT = 200  # it keeps all constants of its programs
MANY = 200  # with more replications than this, more lanes are faster
# The values that users have; the tests change them.
USUAL_LANES, USUAL_FLAGS = choices._default_lanes, host_loop._flags
USUAL_LEVELS, USUAL_MAPPINGS = compiling.LEVELS, keeping.MOST_MAPPINGS
USUAL_READINGS, FORGOTTEN = traces.READINGS_KEPT, [0]
# What remembers the programs of `simulate`, by whether they are compiled in haste: tests that play
# for long would else get those of the tests before them.
REMEMBERED = {True: host_loop.program, False: keeping.remembered(host_loop.program.__wrapped__)}
# The engine for statistics of many runs: without optimisations, native programs are several times
# as fast as XLA's.
QUICK = "native" if compiler() else "xla"


def share_contexts():
    """Let the programs of a thread be written in one context of MLIR, a new one at times.

    JAX makes one for each program, which is most of the time of lowering a small one: 5 of 7 ms.
    """
    make = getattr(mlir, "make_ir_context", None)
    if make is None:  # in another version of JAX
        return
    own = threading.local()

    def shared():
        if ir.Context.current is not None:  # inside of another program's lowering
            return make()
        own.uses = getattr(own, "uses", -1) + 1
        if own.uses % PROGRAMS_OF_A_CONTEXT == 0:
            own.context = make()
        return own.context

    mlir.make_ir_context = shared


def keep_readings():
    """Let JAX forget readings of functions between tests alone, by `forget_readings`.

    It forgets what it has compiled too, and many tests count what is compiled.
    """
    traces.READINGS_KEPT = sys.maxsize


def forget_readings():
    """Let JAX forget them where there are as many as users' processes keep."""
    number = next(traces._numbers)
    if number - FORGOTTEN[-1] >= USUAL_READINGS:
        FORGOTTEN.append(number)
        jax.clear_caches()


def compile_in_haste(hasty):
    """Compile with few optimisations and the same number of lanes (`hasty`), or as for users.

    By default the number of lanes grows with the number of replications. Runs of 3, 10, 20 and 100
    replications would then compile four programs, which takes time and tests nothing more. Runs
    that set `batch`, or have more than `MANY` replications, get the lanes that users have.
    """

    def lanes(sizes, share, *others):
        return LANES if share <= MANY else USUAL_LANES(sizes, share, *others)

    def flags(platform, shape):
        in_haste = HASTE in os.environ["XLA_FLAGS"]
        return (UNHURRIED if in_haste else {}) | USUAL_FLAGS(platform, shape)

    jax.config.update("jax_disable_most_optimizations", hasty)
    host_loop.program = REMEMBERED[hasty]
    choices._default_lanes = lanes if hasty else USUAL_LANES
    host_loop._flags = (lambda *_: {}) if hasty else flags
    compiling.LEVELS = dict.fromkeys(USUAL_LEVELS, "-O0") if hasty else USUAL_LEVELS
    # To forget programs, in a process that has traced as much as the tests, takes seconds.
    keeping.MOST_MAPPINGS = 0.7 if hasty else USUAL_MAPPINGS


@contextlib.contextmanager
def as_for_users():
    """Compile as for users within the block, and after it as before."""
    hasty = jax.config.values["jax_disable_most_optimizations"]
    compile_in_haste(False)
    try:
        yield
    finally:
        compile_in_haste(hasty)


@contextlib.contextmanager
def jax_keeps_programs(folder):
    """Give JAX this folder (None: none) for compiled programs within the block."""
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", folder and str(folder))
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
        compilation_cache.reset_cache()  # else it would look there for each later program


def key_of(replication, seed=0):
    """The random key of a replication."""
    return jax.random.fold_in(episode.root_key(seed), replication)


def simulate(instance, build, *, replications=REPLICATIONS, **options):
    """`jb.simulate` with the number of lanes that all tests of the case use."""
    assert replications > LANES // 2, (
        "so few replications would use fewer lanes, which is another program"
    )
    return jb.simulate(instance, build, replications=replications, batch=LANES, **options)


def parts(case, replication=0):
    """Environment and algorithm of a case, as `simulate` makes them. Call it while tracing."""
    structure, numbers = prepared(case.instance, case.build, case.options.get("horizon"))
    factory = structure(numbers)
    return factory.build(factory.draw(key_of(replication), 0, replication))[:2]


class Programs:
    """Compiled `start`, `advance` and `ask` of a case, under `vmap` over replications 0 to 3.

    All integers are converted to int64, because other types would compile other programs. What has
    no `vmap` is compiled only where a test calls it; most tests only look at its shapes.
    """

    RUNS = 4

    def __init__(self, case):
        def go(run, rounds, replication):
            return episode.advance(run, *parts(case, replication), rounds)

        def ask(run):
            return episode.ask(run.key, run.rounds, run.state, *parts(case))[1]

        self.begin = jax.jit(lambda key, number: episode.start(key, *parts(case, number)))
        self.go, self.ask_one = jax.jit(go), jax.jit(ask)
        self._start = jax.jit(jax.vmap(self.begin))
        self._advance = jax.jit(jax.vmap(self.go, (0, None, 0)))
        self.ask = jax.jit(jax.vmap(self.ask_one))
        self._numbers = np.arange(self.RUNS)

    def start(self):
        """The runs before their first round; the first axis of each leaf is the replication."""
        return self._start(jnp.stack([key_of(r) for r in self._numbers]), self._numbers)

    def advance(self, runs, rounds):
        """The runs after so many further rounds."""
        return self._advance(runs, np.int64(rounds), self._numbers)


@functools.lru_cache(maxsize=1)
def programs(name):
    """`Programs` of a case. Only those of the last case are kept, because they take memory."""
    return Programs(cases.named(name))
