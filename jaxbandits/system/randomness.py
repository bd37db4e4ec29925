"""Randomness of a user's functions that does not come from the keys that they are given.

JAX calls a function once, while it compiles, and plays what it has traced. A number from a
generator of NumPy, from a clock or from a key that is always the same would so be drawn once, and
be the same in all rounds and replications, without a word. Five signs of it are looked for: a
generator whose state changes while a function is traced, operations that are others in a second
trace, or in one whose clocks are behind, a generator that is made or seeded while it is traced or
entropy that is read then, and draws from a key that does not change.
"""

import functools
import gc
import itertools
import operator
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from .new_generators import CLOCK, ENTROPY, GENERATOR, SEED, clocks_put_back, noting, replaced
from .traces import Trace, TraceCache, digest_of_operations

Generator: TypeAlias = Any  # of one of the types `GENERATORS`
Equations: TypeAlias = tuple[Any, ...]  # equations that lead to one, the outermost first

GENERATORS: tuple[type, ...] = (np.random.Generator, np.random.RandomState, random.Random)
GLOBAL: dict[int, str] = {
    id(getattr(np.random.random, "__self__", None)): "NumPy's global generator, np.random",
    id(getattr(random.random, "__self__", None)): "Python's global generator, random",
}
# Functions that are to draw anew each time; a constant draw of any other is a part of its design.
ANEW: tuple[str, ...] = ("its ask", "its tell", "its reward")
INIT: str = "its init"  # what it returns is the state
DRAWS: tuple[str, ...] = ("random_bits", "random_gamma", "rng_bit_generator")  # from a key
RAW_KEY: str = "random_unwrap"  # makes one
KEYLESS: str = "rng_uniform"  # draws from no key
CALLS: tuple[str, ...] = ("jit", "custom_jvp_call", "custom_vjp_call", "closed_call", "remat2")
OWN: str = str(Path(__file__).parents[1]) + os.sep  # where this package is
PYTHON: str = str(Path(os.__file__).parent) + os.sep
JAX: str = str(Path(jax.__file__).parent) + os.sep
REWARD: str = "simulator: its reward"
BY_ONE_KEY = "a key that is always the same, as jax.random.key(0) is"
BY_CLOCK = "is another function at another time: it reads a clock"
MARK = "user's "  # begins the names of functions that are looked at
# Seconds for which it is seen whether another thread draws.
LEAST_WAIT, MOST_WAIT = 0.05, 1.0
# In the order in which one is told; entropy may be read to seed a generator that is made.
DOES: dict[str, str] = {
    ENTROPY: "reads entropy of the system, as default_rng() without a seed, secrets and uuid4 do",
    GENERATOR: "makes a generator of its own, as np.random.default_rng(0) does",
    SEED: "seeds a global generator, as np.random.seed(0) does",
}
# Nanoseconds by which clocks are put back: so that all of a date and whether its whole seconds are
# even is another thing, or in which half of a second it is.
BACK: tuple[int, ...] = (34_609_043_000_000_001, 500_000_000)
FROZEN = "JAX does so once, when it compiles, and each round and replication has the same number"
CONFIRMED_DIGESTS_KEPT = 4096
INCREMENTAL: bool = sys.version_info >= (3, 14)  # objects become old in any collection

_confirmed: set[str] = set()  # digests of traces that a second one has equalled


class Watch:
    """Functions of users, looked at while they are traced.

    Args:
      generators: whose states are compared before and after each of them.
    """

    def __init__(self, generators: Sequence[Generator]) -> None:
        self._generators = generators
        self.used: list[tuple[str, Generator]] = []
        self.made: list[tuple[str, str]] = []  # names with what `noting` tells

    def call(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, whose use of a generator is noted; `name` says in an error what it is."""

        def watched(*args: Any) -> Any:
            before = _states(self._generators)
            try:
                with noting(lambda kind: self.made.append((name, kind))):
                    return function(*args)
            finally:
                states = zip(self._generators, before, _states(self._generators), strict=True)
                self.used += [(name, x) for x, old, new in states if old != new]

        return watched

    def part(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of arrays, whose use of a generator and whose operations are looked at."""
        watched: Any = self.call(name, function)
        watched.__name__ = MARK + name
        return jax.jit(watched)


def check(
    whole: Callable[..., Any], *args: Any, traces: TraceCache, rest: str, constant: int = 0
) -> None:
    """Raise where functions of a user have randomness that does not come from their arguments.

    Args:
      whole: a function of a `Watch` and of `args` that calls each of these functions by it. It is
        traced twice, and once where an earlier call has confirmed the very operations.
      *args: arrays or their shapes.
      traces: of the call of `simulate` or the like.
      rest: what an error calls that which is no `part` of `whole`.
      constant: how many of `args`, the first ones, no round and no replication changes. A key that
        is made of them is always the same; that of a simulator may stand for its table.
    Raises:
      ValueError: names the function, says where its numbers come from, and shows the right form.
    """
    with replaced():
        first = _checked_trace(whole, args, traces, rest)
    for number in {0, len(jax.tree.leaves(args[:constant]))}:
        _check_keys(first.jaxpr, number)
    if len(_confirmed) >= CONFIRMED_DIGESTS_KEPT:
        _confirmed.clear()
    _confirmed.add(first.digest)


def _checked_trace(whole, args, traces, rest):
    """The trace of a function that reads nothing which changes by itself."""
    watch = Watch(traces.remembered("generators", _generators))
    began = time.monotonic()
    first = _traced(whole, watch, args, traces)
    second = None
    if watch.made or first.digest not in _confirmed:
        watch.made.clear()  # what is made once is a table: by a module that is imported, in a cache
        second = _traced(whole, watch, args, TraceCache())
    for name, generator in _without_others(watch.used, time.monotonic() - began):
        kind = f"a generator of its own, {type(generator).__module__}.{type(generator).__name__}"
        of = GLOBAL.get(id(generator), kind)
        raise ValueError(f"{name} draws from {of}. {FROZEN}. {_right_form(name)}")
    if second is not None and first.digest != second.digest:
        name = _first_difference(first.jaxpr, second.jaxpr) or rest
        raise ValueError(
            f"{name} is another function each time that it is traced: it reads what changes by "
            f"itself, such as a clock, a counter or a new generator. {FROZEN}. {_right_form(name)}"
        )
    for kind, does in DOES.items():
        for name in (name for name, noted in watch.made if noted == kind):
            if kind == ENTROPY or name.endswith(ANEW):
                raise ValueError(f"{name} {does}. {FROZEN}. {_right_form(name)}")
    if readers := [name for name, kind in watch.made if kind == CLOCK]:
        found = _first_by_clock(whole, watch, args, first)
        if found is not None:  # a constant of the constructor shows in init too
            name = found if found in readers else readers[0]
            raise ValueError(f"{name} {BY_CLOCK}. {FROZEN}. {_right_form(name)}")
    return first


def reward_drawn(watch: Watch, simulator: Any, key: Any, arm: Any) -> Any:
    """A reward of a simulator, looked at."""
    return watch.part(REWARD, lambda x, *args: x.reward(*args))(simulator, key, arm)


def _traced(whole, watch, args, traces):
    """A trace of its own: JAX would take inner functions from another one of the same cache."""
    with traces.reading():
        return Trace(lambda *args: whole(watch, *args), *args)


def _check_keys(closed: ClosedJaxpr, number: int) -> None:
    """Raise where a draw has a key that depends on no argument but the first ones."""
    found = Findings([], {})
    fixed = [i < number for i in range(len(closed.jaxpr.invars))]
    _follow(closed.jaxpr, fixed, (), found)
    for name, draw in _frozen(found):
        if number > 0 and name == REWARD:
            continue
        by = "no key, as jax.lax.rng_uniform does" if draw == KEYLESS else BY_ONE_KEY
        raise ValueError(
            f"{name} draws by {by}: each round and replication has the same number. "
            f"{_right_form(name)}"
        )
    for name, keeps in found.keeps.items():
        if keeps and name.endswith(INIT):
            raise ValueError(
                f"{name} keeps {BY_ONE_KEY}: each replication draws the same numbers by it. Keep "
                "one that comes from the key it is given: jax.random.split(key)"
            )


def _first_by_clock(whole, watch, args, first):
    """The first function that is another one where clocks are behind, "" for the rest, or None."""
    for back in BACK:
        try:
            with clocks_put_back(back):
                trace = _traced(whole, watch, args, TraceCache())
        except Exception:  # of a function that has never met such a time: no answer
            continue
        if trace.digest != first.digest:
            return _first_difference(first.jaxpr, trace.jaxpr) or ""
    return None


def _right_form(name):
    if name.endswith("its tell"):  # which is given no key
        form = "a key that the state keeps: key, use = jax.random.split(state.key)"
    elif name.endswith("its constructor"):
        form = "the key of init, into the state: jax.random.normal(key)"
    else:
        form = "the key that it is given: jax.random.normal(key)"
    return f"Draw from {form}"


# Generators.


def _generators() -> list[Generator]:
    """All generators of this process, but those that Python or beartype use by themselves."""
    others: list[Any] = [getattr(vars(tempfile).get("_name_sequence"), "rng", None)]
    if "beartype" in sys.modules:  # its checks of lists draw an entry
        others.append(getattr(random.random, "__self__", None))
    found = _known.all()
    return [x for x in found if not (x in others or isinstance(x, random.SystemRandom))]


class _Known:
    """The generators of this process, as its collector of garbage lists them.

    To look at ten million objects takes a second. Objects become old in a collection of the middle
    generation, which appends them to the old ones, or in one of all, which puts them in another
    order and takes longer than to look at them. So all are looked at only after one of all.
    """

    def __init__(self) -> None:
        self._old: list[Generator] = []
        self._young: list[Generator] = []
        self._mark: list[Any] = []  # as young as possible when these were listed
        self._collections = -1, -1  # of the middle generation, of all

    def all(self) -> list[Generator]:
        """These; one may be listed twice."""
        # The young ones first: one that a collection makes old meanwhile is met twice, not missed.
        mark: list[Any] = []
        young = [x for k in (0, 1) for x in _among(gc.get_objects(generation=k))]
        middle, every = (kind["collections"] for kind in gc.get_stats()[1:])
        if every != self._collections[1] or INCREMENTAL:
            self._old = _among(gc.get_objects(generation=2))
        elif middle != self._collections[0]:
            # Where the mark now is not old, as of a collection at this moment, these are all.
            since = itertools.takewhile(
                functools.partial(operator.is_not, self._mark),
                reversed(gc.get_objects(generation=2)),
            )
            found = [*self._old, *self._young, *_among([*since])]
            self._old = [*{id(x): x for x in found}.values()]
        self._young, self._mark, self._collections = young, mark, (middle, every)
        return [*young, *self._old]


def _among(objects):
    # By their types: objects that stand for others, such as a weak proxy, run code when asked.
    return [*itertools.compress(objects, map(_kinds().__contains__, map(type, objects)))]


def _kinds():
    """The types of generators, those of users too."""
    kinds, waiting = set(), [*GENERATORS]
    while waiting:
        kinds.add(kind := waiting.pop())
        waiting += set(kind.__subclasses__()) - kinds
    return kinds


_known = _Known()


def _without_others(used, seconds):
    """Of the generators in `used` those that rest while no function of a user is called.

    Another thread may draw from the rest, for as long as the functions took. Draws that a function
    freezes are then still seen as operations that differ in the second trace.
    """
    if not used or threading.active_count() == 1:
        return used
    generators = [generator for _, generator in used]
    before = _states(generators)
    time.sleep(min(max(seconds, LEAST_WAIT), MOST_WAIT))
    states = zip(used, before, _states(generators), strict=True)
    return [entry for entry, old, new in states if old == new]


def _states(generators):
    return [_comparable(_state(generator)) for generator in generators]


def _state(generator):
    if isinstance(generator, random.Random):
        return generator.getstate()
    if isinstance(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.bit_generator.state


def _comparable(state):
    """A state whose arrays are bytes."""
    if isinstance(state, dict):
        return [(name, _comparable(value)) for name, value in state.items()]
    return state.tobytes() if isinstance(state, np.ndarray) else state


# Operations.


def _parts(closed: ClosedJaxpr) -> dict[str, Any]:
    """The equation of each function that was looked at, by the function's name."""
    return {name: eqn for eqn in closed.jaxpr.eqns if (name := _part_of(eqn)) is not None}


def _part_of(eqn):
    name = str(eqn.params.get("name", ""))
    return name.removeprefix(MARK) if name.startswith(MARK) else None


def _first_difference(one, two):
    """The name of the first function that is another one in the second trace; None for the rest."""
    others = _parts(two)
    for name, eqn in _parts(one).items():
        mine, other = (x.params["jaxpr"] for x in (eqn, others.get(name, eqn)))
        if digest_of_operations(mine) != digest_of_operations(other):
            return name
    return None


class Findings(NamedTuple):
    """What `_follow` finds."""

    draws: list[Equations]  # that lead to a draw whose key is known
    keeps: dict[str, bool]  # whether a function that was looked at returns a key that is known


def _frozen(found: Findings) -> Iterator[tuple[str, str]]:
    """The functions that are to draw anew and draw by a known key, with the draw."""
    for path in found.draws:
        name = _part_of(path[0])
        if name is not None and name.endswith(ANEW) and all(map(_is_of_a_user, path[1:])):
            yield name, path[-1].primitive.name


def _follow(jaxpr: Jaxpr, known: Sequence[bool], path: Equations, found: Findings) -> list[bool]:
    """Which results depend on no argument, given which arguments do not; adds to `found`."""
    fixed = dict(zip(jaxpr.invars, known, strict=True)) | dict.fromkeys(jaxpr.constvars, True)

    def is_fixed(x: Any) -> bool:
        return isinstance(x, Literal) or fixed[x]

    for eqn in jaxpr.eqns:
        given = [is_fixed(x) for x in eqn.invars]
        if eqn.primitive.name == KEYLESS or (eqn.primitive.name in DRAWS and given[0]):
            found.draws.append((*path, eqn))
        results = [all(given)] * len(eqn.outvars)
        for inner, inputs in _inside(eqn, given):
            inner_results = _follow(inner, inputs, (*path, eqn), found)
            if eqn.primitive.name in CALLS and len(inner_results) == len(results):
                results = inner_results
            if (name := _part_of(eqn)) is not None:
                found.keeps[name] = any(_keys_among(inner, inner_results))
        # What a user's function returns is another thing in another round.
        fixed |= zip(eqn.outvars, [r and _part_of(eqn) is None for r in results], strict=True)
    return [is_fixed(x) for x in jaxpr.outvars]


def _keys_among(jaxpr: Jaxpr, known: Sequence[bool]) -> Iterator[bool]:
    """Which results of a jaxpr are known keys, raw ones such as `jax.random.PRNGKey(0)` too."""
    raw = {x for eqn in jaxpr.eqns if eqn.primitive.name == RAW_KEY for x in eqn.outvars}
    for result, is_known in zip(jaxpr.outvars, known, strict=True):
        dtype = getattr(result.aval, "dtype", None)
        is_key = dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)
        yield is_known and (is_key or (not isinstance(result, Literal) and result in raw))


def _inside(eqn: Any, given: list[bool]) -> Iterator[tuple[Jaxpr, list[bool]]]:
    """The jaxprs inside an equation, each with which of its arguments depend on none of ours."""
    name, params = eqn.primitive.name, eqn.params
    for key, value in params.items():
        for inner in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(inner, ClosedJaxpr | Jaxpr):
                continue
            jaxpr = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
            if name in CALLS:
                same = given
            elif name == "cond":
                same = given[1:]
            elif name == "scan":
                same = given[: _consts_of_scan(params)]
            elif name == "while":
                first = params["cond_nconsts"] if key == "body_jaxpr" else 0
                same = given[first:][: params[key.replace("jaxpr", "nconsts")]]
            else:
                same = []
            number = len(jaxpr.invars)  # what a loop carries changes, and so it is not fixed
            yield jaxpr, (same + [False] * number)[:number]


def _consts_of_scan(params):
    """How many arguments of a scan do not change; from jax 0.12 on they are the first group."""
    return params["num_consts"] if "num_consts" in params else len(params["ft_in"].unpack()[0])


def _is_of_a_user(eqn):
    """Whether the line that an equation comes from is in a function of a user, not of ours."""
    frames = getattr(getattr(eqn.source_info, "traceback", None), "frames", ())
    for frame in frames:  # the innermost first
        file = frame.file_name
        of_python = file.startswith(PYTHON) and "site-packages" not in file
        if not (file.startswith(JAX) or of_python):
            return not file.startswith(OWN)
    return True
