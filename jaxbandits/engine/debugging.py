"""Debugging: an algorithm that stops at the first thing that no algorithm should do."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import keystr, tree_flatten_with_path
from jaxtyping import Array, Float, Int

from ..core import Algorithm, Env
from ..system.jax_options import pinned
from ..system.traces import reading
from ..types import Pytree
from .device_loop import Factories, Numbers
from .episode import answer_exists, kept, root_key

# Names in the `info` of a debugged run.
FAULT: str = "debug: fault"
ROUND: str = "debug: round"
VALUE: str = "debug: value"
REPORT: tuple[str, str, str] = FAULT, ROUND, VALUE
# Codes of faults, 0 for none. From `STATE` on the index of an array in the state is added.
ARM: int = 1
COUNT: int = 2
ANSWER: int = 3
REWARD: int = 4
STATE: int = 5


class Fault(NamedTuple):
    """The first fault of a run."""

    code: Int[Array, ""]
    round: Int[Array, ""]  # the first is 1
    value: Float[Array, ""]


class State(NamedTuple):
    """The inner algorithm's state, and what is remembered besides."""

    inner: Pytree
    rounds: Int[Array, ""]  # told so far
    fault: Fault


def debugged(env: Env, algorithm: Algorithm) -> Algorithm:
    """The algorithm, which is done at its first fault: `info` then says which it was.

    Until then every move is the inner algorithm's own.
    """

    def init(key):
        zero = jnp.zeros((), int)
        return State(algorithm.init(key), zero, Fault(zero, zero, jnp.zeros((), float)))

    @functools.wraps(algorithm.ask)  # for its signature: whether it takes a context
    def ask(key, state, *context):
        move = algorithm.ask(key, state.inner, *context)
        fault = _first(state.fault, state.rounds + 1, _faults_of_move(env, move))
        wrong = fault.code > 0
        report = {FAULT: fault.code, ROUND: fault.round, VALUE: fault.value}
        info = {**kept(move.info), **report}
        return move._replace(done=move.done | wrong, info=(info, move.info))

    def tell(state, move, total):
        inner = algorithm.tell(state.inner, move._replace(info=move.info[1]), total)
        rounds = state.rounds + 1
        faults = [_fault(REWARD, ~jnp.isfinite(total), total)]
        before = jax.tree.leaves(state.inner)
        for index, (old, new) in enumerate(zip(before, jax.tree.leaves(inner), strict=True)):
            if jnp.issubdtype(new.dtype, jnp.floating):
                # What begins infinite may stay so: a minimum over nothing yet, say.
                wrong = jnp.isnan(new) | (~jnp.isfinite(new) & jnp.isfinite(old))
                faults.append(_fault(STATE + index, wrong, new))
        return State(inner, rounds, _first(state.fault, rounds, faults))

    return Algorithm(init, ask, tell)


def _faults_of_move(env, move):
    """Faults of what is drawn, unless the run stops here, and of the answer."""
    faults, answer, going = [], move.answer, ~move.done
    outside = (move.arm < 0) | (move.arm >= env.num_arms)
    if move.count is not None:
        faults.append(_fault(COUNT, going & (move.count < 0), move.count))
        outside = outside & (move.count != 0)
    faults.append(_fault(ARM, going & outside, move.arm))
    if answer.ndim == 0:
        faults.append(_fault(ANSWER, ~answer_exists(env, answer), answer))
    return faults


def _fault(code, wrong, value):
    """A code, whether any entry is wrong, and the largest of these."""
    largest = jnp.where(wrong, value, -jnp.inf).max(initial=-jnp.inf).astype(float)
    return code, wrong.any(), largest


def _first(fault, round, faults):
    """The first fault of a run, where its latest round had these."""
    for code, wrong, value in faults:
        new = wrong & (fault.code == 0)
        latest = Fault(jnp.asarray(code), round, value)
        fault = jax.tree.map(lambda a, b, new=new: jnp.where(new, a, b), latest, fault)
    return fault


def fault_text(structure: Factories, numbers: Numbers, code: int, value: float) -> str:
    """What was wrong, a phrase; all cells that share a program have as many arms."""
    found = []

    def traced(numbers):
        key, factory = root_key(0), structure(numbers)
        problem = factory.draw(key, *factory.locate(jnp.zeros((), int)))
        env, algorithm, _ = factory.build(problem)
        found.append((env.num_arms, env.num_answers))
        return algorithm.init(key).inner

    with pinned(), reading(structure):
        state = jax.eval_shape(traced, numbers)
    ((arms, answers),) = found
    if code >= STATE:
        path, _ = tree_flatten_with_path(state)[0][code - STATE]
        return f"tell makes state{keystr(path)} {value}"
    texts: dict[int, Callable[[], str]] = {
        ARM: lambda: f"ask draws arm {value:.0f}, and there are {arms}: 0 to {arms - 1}",
        COUNT: lambda: f"ask draws an arm {value:.0f} times, a count below 0",
        ANSWER: lambda: f"ask answers {value:.0f}, and there are {answers}: 0 to {answers - 1}",
        REWARD: lambda: f"the reward is {value}",
    }
    return texts[code]()
