"""The compiled programs of a case, one of each, that all laws share."""

import functools

import cases
import jax
import numpy as np

import jaxbandits as jb
from jaxbandits.compilers.cpp import compiler
from jaxbandits.engine import episode, host_loop
from jaxbandits.engine.partition import prepared

LANES, REPLICATIONS = 16, 12  # of `simulate`: fewer replications would have fewer lanes
MANY = 200  # replications, above which it pays to have more lanes
# As users have them, before the tests change them.
USUAL_LANES, USUAL_FLAGS = host_loop._default_lanes, host_loop._flags
# For statistics of many runs: compiled in haste, its programs play several times as fast.
QUICK = "native" if compiler() else "xla"


def pin_lanes():
    """Let runs of few replications have `LANES` lanes, however few, unless they say how many.

    By default lanes follow the number of replications, so that 3, 10, 20 and 100 of them would be
    four programs, which takes the time of the tests and shows nothing.
    """

    def pinned(sizes, share, *others):
        return LANES if share <= MANY else USUAL_LANES(sizes, share, *others)

    host_loop._default_lanes = pinned


def key_of(replication, seed=0):
    """The key of a replication."""
    return jax.random.fold_in(episode.root_key(seed), replication)


def simulate(instance, build, *, replications=REPLICATIONS, **options):
    """`jb.simulate` with as many lanes as all other tests of the case have."""
    assert replications > LANES // 2, "fewer lanes are another program"
    return jb.simulate(instance, build, replications=replications, batch=LANES, **options)


def parts(case, replication=0):
    """Environment and algorithm of a case as `simulate` makes them; call it inside a trace."""
    structure, numbers = prepared(case.instance, case.build, case.options.get("horizon"))
    factory = structure(numbers)
    return factory.build(factory.draw(key_of(replication), 0, replication))[:2]


class Programs:
    """`start`, `advance` and `ask` of a case, and the first two for many runs by `vmap`.

    Numbers are int64 whoever gives them, for other types would be other programs.
    """

    def __init__(self, case):
        def begin(key, replication):
            return episode.start(key, *parts(case, replication))

        def go(run, rounds, replication):
            return episode.advance(run, *parts(case, replication), rounds)

        self._start, self._advance = jax.jit(begin), jax.jit(go)
        self.ask = jax.jit(lambda run: episode.ask(run.key, run.rounds, run.state, *parts(case))[1])
        self._all = jax.jit(jax.vmap(lambda k, n, r: go(begin(k, r), n, r), (0, None, 0)))

    def start(self, key, replication=0):
        """The run of a replication, paused before its first round."""
        return self._start(key, np.int64(replication))

    def advance(self, run, rounds, replication=0):
        """The run after as many rounds."""
        return self._advance(run, np.int64(rounds), np.int64(replication))

    def advance_all(self, keys, rounds):
        """The runs of replications 0, 1, ... after as many rounds, stacked."""
        return self._all(keys, np.int64(rounds), np.arange(len(keys)))


@functools.lru_cache(maxsize=1)
def programs(name):
    """`Programs` of the case of that name; of the last one alone, for they take memory."""
    return Programs(cases.named(name))
