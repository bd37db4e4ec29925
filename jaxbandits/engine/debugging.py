"""An algorithm under watch: it ends at the first thing that no algorithm should do."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import keystr, tree_flatten_with_path

from ..core import Algorithm
from .episode import exists, kept, root_key

# What the records of a watched run have besides. Codes: 0 for none, those below, and from
# `STATE` on the place of an array in the state.
REPORT = FAULT, ROUND, VALUE = "debug: fault", "debug: round", "debug: value"
ARM, COUNT, ANSWER, REWARD, STATE = range(1, 6)


class Fault(NamedTuple):
    """The first of a run."""

    code: jax.Array  # int []
    round: jax.Array  # int [], the first is 1
    value: jax.Array  # float []


class State(NamedTuple):
    """What is remembered besides the inner algorithm's state."""

    inner: Any
    rounds: jax.Array  # int [] learnt from
    fault: Fault


def debugged(env, algorithm):
    """The algorithm, which is done at its first fault: `info` then says which it was.

    Until then every move is the one that it makes by itself.
    """

    def init(key):
        zero = jnp.zeros((), int)
        return State(algorithm.init(key), zero, Fault(zero, zero, jnp.zeros((), float)))

    @functools.wraps(algorithm.ask)  # for its signature: whether it is shown something
    def ask(key, state, *context):
        move = algorithm.ask(key, state.inner, *context)
        fault = _first(state.fault, state.rounds + 1, _faults_of_move(env, move))
        wrong = fault.code > 0
        report = {FAULT: fault.code, ROUND: fault.round, VALUE: fault.value}
        return move._replace(done=move.done | wrong, info=(kept(move.info) | report, move.info))

    def tell(state, move, total):
        inner = algorithm.tell(state.inner, move._replace(info=move.info[1]), total)
        rounds = state.rounds + 1
        faults = [_fault(REWARD, ~jnp.isfinite(total), total)]
        before = jax.tree.leaves(state.inner)
        for place, (old, new) in enumerate(zip(before, jax.tree.leaves(inner), strict=True)):
            if jnp.issubdtype(new.dtype, jnp.floating):
                # What begins infinite may stay so: the least of nothing, say.
                wrong = jnp.isnan(new) | (~jnp.isfinite(new) & jnp.isfinite(old))
                faults.append(_fault(STATE + place, wrong, new))
        return State(inner, rounds, _first(state.fault, rounds, faults))

    return Algorithm(init, ask, tell)


def _faults_of_move(env, move):
    """Of what is drawn, unless the run ends here, and of what would be answered."""
    faults, answer, going = [], move.answer, ~move.done
    outside = (move.arm < 0) | (move.arm >= env.num_arms)
    if move.count is not None:
        faults.append(_fault(COUNT, going & (move.count < 0), move.count))
        outside = outside & (move.count != 0)
    faults.append(_fault(ARM, going & outside, move.arm))
    if answer.ndim == 0:
        faults.append(_fault(ANSWER, ~exists(env, answer), answer))
    return faults


def _fault(code, wrong, value):
    """A code, whether any entry is wrong, and the largest of these."""
    largest = jnp.where(wrong, value, -jnp.inf).max(initial=-jnp.inf).astype(float)
    return code, wrong.any(), largest


def _first(fault, round, faults):
    """The first fault of a run, after those of a round."""
    for code, wrong, value in faults:
        new = wrong & (fault.code == 0)
        latest = Fault(jnp.asarray(code), round, value)
        fault = jax.tree.map(lambda a, b, new=new: jnp.where(new, a, b), latest, fault)
    return fault


def explained(world, numbers, code, value):
    """What was wrong, a phrase; of the worlds that one program plays, all have these arms."""
    found = []

    def look(numbers):
        key, trial = root_key(0), world(numbers)
        env, algorithm, _ = trial.build(trial.draw(key, *trial.place(jnp.zeros((), int))))
        found.append((env.num_arms, env.num_answers))
        return algorithm.init(key).inner

    with jax.enable_x64(True):
        state = jax.eval_shape(look, numbers)
    ((arms, answers),) = found
    if code >= STATE:
        path, _ = tree_flatten_with_path(state)[0][code - STATE]
        return f"tell makes state{keystr(path)} {value}"
    return {
        ARM: lambda: f"ask draws arm {value:.0f}, and there are {arms}: 0 to {arms - 1}",
        COUNT: lambda: f"ask draws an arm {value:.0f} times, a count below 0",
        ANSWER: lambda: f"ask answers {value:.0f}, and there are {answers}: 0 to {answers - 1}",
        REWARD: lambda: f"the reward is {value}",
    }[code]()
