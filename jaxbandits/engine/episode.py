"""Start, step, chunk, advance, rollout: one replication of any algorithm in any environment.

The random stream of replication r, fixed for good: `key_r = fold_in(key(seed), r)`. Rewards
of sequential algorithms come from standardised noise drawn for `BLOCK` = 32 rounds at once
from `fold_in(key_r, block)`; a phase or a batch draws from `fold_in(key_r, round)`. Other uses
of `key_r` fold in tags at the far end of the range, which no block number reaches. A round's draws
depend on (seed, r, round) alone, so 12 rounds equal 5 + 3 + 4 rounds exactly.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun
from jax.interpreters.partial_eval import dce_jaxpr
from jax.random import fold_in
from jaxtyping import Array, Bool, Float, Int

from ..compilers.jaxprs import in_common, name_of
from ..core import Algorithm, Env, Move, Run
from ..kernels.allocate import efficient_rounding
from ..parameters import LARGEST
from ..system.jax_options import pinned
from ..types import Key, Pytree, Scalar, Table

BLOCK: int = 32
MAX_PULLS: int = 10_000_000  # of a replication, unless the caller says otherwise
ASK: int = 0xFFFFFFFF
INIT: int = ASK - 1
INSTANCE: int = ASK - 2
CONTEXT: int = ASK - 3
UNLIMITED: int = 2**31 - 1  # fits the integers of either precision
IDLE: int = 10_000  # rounds without a draw that a run may have

Noise: TypeAlias = Callable[[Move], Pytree]  # standardised noise for the draws of a move


class Limits(NamedTuple):
    """Where a run is cut short: before the move that would exceed either."""

    pulls: Scalar = UNLIMITED
    rounds: Scalar = UNLIMITED


NO_LIMITS: Limits = Limits()
# Operations that make it too costly to ask ahead. Those that are not of JAX itself count as None.
COSTLY: frozenset[str | None] = frozenset({None, "while", "scan", "cond", "jit", "sort"})
COSTLY_DESIGN: int = 1000  # operations of a design that is worth computing once for many lanes
SAME_VALUE: frozenset[str] = frozenset(
    {"broadcast_in_dim", "convert_element_type", "copy", "reshape", "squeeze"}
)


def root_key(seed: int) -> Key:
    """The key of a seed, all 64 bits; threefry whatever the caller's default generator is."""
    with pinned():  # else JAX takes half of it
        return jax.random.key(seed, impl="threefry2x32")


@cache
def like_root_key() -> Key:
    """What stands for a `root_key` where JAX only traces; the key of a seed would be compiled."""
    like: Any = jax.eval_shape(partial(root_key, 0))
    return like


def ask_key(key: Key, rounds: Scalar) -> Key:
    """The key that `ask` gets before round `rounds`."""
    return fold_in(fold_in(key, ASK), rounds)


def ask(
    key: Key, rounds: Scalar, state: Pytree, env: Env, algorithm: Algorithm
) -> tuple[tuple[Any, ...], Move]:
    """Context and move of a round."""
    context = env.context(fold_in(fold_in(key, CONTEXT), rounds))
    return context, algorithm.ask(ask_key(key, rounds), state, *context)


class MoveTraits(NamedTuple):
    """What is known of all moves of an algorithm from tracing alone."""

    one_arm: bool  # else a move is a phase or a batch
    stops: bool  # whether the algorithm may ever be done: not where `done` is the constant False
    cheap: bool  # whether asking whether a run is done costs little, see `COSTLY`
    in_common: bool = False  # whether lanes are likely to have costly designs in common


class Traits(NamedTuple):
    """What tracing tells of a cell."""

    moves: MoveTraits
    contextual: bool = False  # whether `ask` is given a context each round
    answers_one: bool = True  # whether its answer is an index, not a set


class Asked(NamedTuple):
    """What tracing tells of the moves of an algorithm."""

    answer: jax.ShapeDtypeStruct
    info: Mapping[str, jax.ShapeDtypeStruct]  # what results keep of it
    traits: MoveTraits


def asked(key: Key, rounds: Scalar, state: Pytree, env: Env, algorithm: Algorithm) -> Asked:
    """`Asked` of an algorithm in a state. It is traced, not computed; shapes of arrays will do."""

    def ending_and_move(key, rounds, state):
        move = ask(key, rounds, state, env, algorithm)[1]
        return _ending(move), move

    trace = jax.make_jaxpr(ending_and_move, return_shape=True)
    closed, (ending, move) = trace(key, rounds, state)
    jaxpr = closed.jaxpr
    done = _constant(jaxpr, closed.consts, jaxpr.outvars[0])
    number = len(jax.tree.leaves(ending))
    needed, _ = dce_jaxpr(jaxpr, [i < number for i in range(len(jaxpr.outvars))])
    cheap = not any(name_of(eqn) in COSTLY for eqn in needed.eqns)
    stops = done is None or bool(np.any(done))
    traits = MoveTraits(_is_one_arm(move), stops, cheap, in_common(jaxpr, COSTLY_DESIGN))
    return Asked(*ending[1:], traits)


def move_traits(run: Run, env: Env, algorithm: Algorithm) -> MoveTraits:
    """The `MoveTraits` of a run, or of its shapes."""
    return asked(run.key, run.rounds, run.state, env, algorithm).traits


def _ending(move):
    """What a run keeps of the move that ends it; `done` is the first."""
    return move.done, move.answer, kept(move.info)


def _is_one_arm(move):
    return move.arm.ndim == 0 and move.count is None


def _constant(jaxpr, consts, var):
    """The constant that a variable of a jaxpr always equals, None where there is none."""
    if isinstance(var, Literal):
        return var.val
    known = dict(zip(jaxpr.constvars, consts, strict=True))
    if var in known:
        return None if isinstance(known[var], Tracer) else known[var]
    for eqn in jaxpr.eqns:
        if var in eqn.outvars:
            inner = eqn.params.get("jaxpr")
            if name_of(eqn) in SAME_VALUE:
                return _constant(jaxpr, consts, eqn.invars[0])
            if name_of(eqn) == "jit" and isinstance(inner, ClosedJaxpr):
                inner_var = inner.jaxpr.outvars[eqn.outvars.index(var)]
                return _constant(inner.jaxpr, inner.consts, inner_var)
    return None


def kept(info: Any) -> Mapping[str, Any]:
    """The part of a move's `info` that results keep: a dict, alone or the first of a pair."""
    first = info[0] if isinstance(info, tuple) and info else info
    return first if isinstance(first, dict) else {}


def start(key: Key, env: Env, algorithm: Algorithm, like: Run | None = None) -> Run:
    """A `Run` before its first round; `key` is the replication's.

    Args:
      like: a run of this algorithm or its shapes, where there is one: `ask` is not traced then.
    """
    state = initial_state(key, algorithm)
    return run_from(key, state, env, like or asked(key, jnp.zeros((), int), state, env, algorithm))


def initial_state(key: Key, algorithm: Algorithm) -> Pytree:
    """The algorithm's state before the first round of the replication with this key."""
    return algorithm.init(fold_in(key, INIT))


def run_from(key: Key, state: Pytree, env: Env, like: Run | Asked) -> Run:
    """The run that starts in this state; `like` shows the shapes of its answer and `info`."""
    shapes = (like.answer, like.info)
    blank = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    nothing, zero = jnp.zeros((), float), jnp.zeros((), int)
    counts = jnp.zeros(env.num_arms, int)
    yes, no = jnp.array(True), jnp.array(False)
    return Run(key, state, zero, zero, counts, nothing, yes, no, *blank, no)


def step(
    run: Run,
    env: Env,
    algorithm: Algorithm,
    noise: Noise,
    limits: Limits,
    *,
    to_the_last: bool = False,
) -> Run:
    """Ask; unless that ends the run, draw the move with `noise(move)` and tell.

    A run that has ended keeps its tallies in further steps. Its state then means nothing, so that
    no lane of a batch pays for choosing between two states.

    Args:
      to_the_last: a move that would exceed `limits.pulls` is counted in part, not left out.
        Whole draws of each arm, but the exact share of its regret: what a run has lost up to a
        round does not depend on how long it goes on.
    """
    context, move = ask(run.key, run.rounds, run.state, env, algorithm)
    counted = truncated(move, limits.pulls - run.pulls) if to_the_last else move
    pulls = run.pulls + num_draws(counted)
    live = run.live & ~move.done & (pulls <= limits.pulls) & (run.rounds < limits.rounds)
    if move.count is not None:
        live = live & ~is_idle(run)
    now = env.now(run.pulls)
    lost = env.regret(move, *context, *now)
    if to_the_last:
        live = live & (run.pulls < limits.pulls)
        lost = (
            lost if counted is move else lost * num_draws(counted) / jnp.maximum(num_draws(move), 1)
        )
    total = env.reward(noise(move), move, *context, *now)

    def latest(new, old):
        return jnp.where(run.live, new, old)

    return Run(
        key=run.key,
        state=algorithm.tell(run.state, move, total),
        rounds=run.rounds + live,
        pulls=jnp.where(live, pulls, run.pulls),
        arm_pulls=jnp.where(live, run.arm_pulls + arm_draws(counted, env.num_arms), run.arm_pulls),
        regret=run.regret + jnp.where(live, lost, 0.0),
        live=live,
        done=run.done | (run.live & move.done),
        answer=jax.tree.map(latest, move.answer, run.answer),
        info=jax.tree.map(latest, kept(move.info), run.info),
        broken=run.broken,
    )


def is_idle(run: Run) -> Bool[Array, ""]:
    """Whether a run has had so many rounds without a draw that it may never draw again."""
    return run.rounds > run.pulls + IDLE


def answer_exists(env: Env, answer: Array) -> Bool[Array, ""]:
    """Whether an index is one of the answers; the shape of a mask was checked before."""
    if env.num_answers is None or answer.ndim:
        return jnp.array(True)
    return (answer >= 0) & (answer < env.num_answers)


def truncated(move: Move, rest: Int[Table, ""]) -> Move:
    """The move with `rest` draws at most, in the proportions of its counts."""
    if move.count is None:
        if move.arm.ndim == 0:
            return move
        return move._replace(count=(jnp.arange(move.arm.size) < rest).astype(int))
    if move.count.ndim == 0:
        return move._replace(count=jnp.minimum(move.count, rest))
    total = num_draws(move)
    share = efficient_rounding.largest_remainder(
        move.count / jnp.maximum(total, 1), jnp.asarray(rest)
    )
    return move._replace(count=jnp.where(total > rest, share, move.count))


def num_draws(move: Move) -> Int[Array, ""] | int:
    """Number of draws of a move.

    A count below 0 counts as 0 here but not in `arm_draws`: the pulls of a run then differ from the
    sum of its `arm_pulls`, and `simulate` refuses it. A sum that 64 bits might not hold is given as
    one more than `LARGEST`, which no run may draw.
    """
    if move.count is None:
        return move.arm.size
    count = jnp.maximum(move.count, 0).astype(int)
    # The upper halves cannot overflow, and what they leave out is below 2^32 for each arm.
    fits = (count >> 32).sum() <= LARGEST >> 32
    return jnp.where(fits, count.sum(), LARGEST + 1)


def arm_draws(move: Move, num_arms: int) -> Int[Array, " K"]:
    """Draws of each arm; a comparison vectorises where a scatter would not."""
    if move.arm.ndim == 0:
        return jnp.where(jnp.arange(num_arms) == move.arm, num_draws(move), 0)
    count = jnp.ones_like(move.arm) if move.count is None else move.count
    arms = jnp.where(move.arm < 0, num_arms, move.arm)  # -1 does not mean the last arm
    return jnp.zeros(num_arms, int).at[arms].add(count.astype(int), mode="drop")


def chunk(
    run: Run,
    env: Env,
    algorithm: Algorithm,
    limits: Limits,
    moves: MoveTraits,
    *,
    to_the_last: bool = False,
) -> tuple[Run, Float[Array, " rounds"]]:
    """A block of 32 rounds or one phase: `(run, regret after each round)`.

    The run must be at the start of a block. One that has ended is stepped too, see `step`.

    Args:
      moves: of the algorithm, see `move_traits`.
    """
    if not moves.one_arm:
        noise = phase_noise(run, env)
        before = run
        run = step(run, env, algorithm, noise, limits, to_the_last=to_the_last)
        run = kept_if_cut(run, before)
        # That saves a phase in which nothing is drawn, and a run has only a few phases.
        run = stopped_if_done(run, env, algorithm) if moves.cheap else run
        return run, run.regret[None]
    noise = env.noise(fold_in(run.key, run.rounds // BLOCK), (BLOCK,), False)

    def one_round(run, noise):
        run = step(run, env, algorithm, lambda move: noise, limits)
        return run, run.regret

    live = run.live
    run, regrets = lax.scan(one_round, run, noise)
    # Looked at now: the state may hold anything later, as the lane is stepped until others end.
    broken = live & ~run.live & has_nan(run.state)
    return run._replace(broken=run.broken | broken), regrets


def kept_if_cut(run: Run, before: Run) -> Run:
    """The run, with the state before its last phase if that phase was cut off.

    Its lane is stepped until others end, and the phases of the new state would be longer and
    longer. This one repeats the last.

    Args:
      before: the run before its last phase.
    """
    cut = ~(run.live | run.done)
    # The new state has learnt from the phase that was cut off, so the one before is judged.
    broken = run.broken | (before.live & ~run.live & has_nan(before.state))
    state = jax.tree.map(partial(jnp.where, cut), before.state, run.state)
    return run._replace(state=state, broken=broken)


def has_nan(tree: Pytree) -> Bool[Array, ""]:
    """Whether any number of a pytree is NaN."""
    floats = [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.stack([jnp.isnan(x).any() for x in floats]).any() if floats else jnp.array(False)


def stopped_if_done(run: Run, env: Env, algorithm: Algorithm) -> Run:
    """The run, stopped already if the next `ask` would stop it."""

    def next_ask(run):
        return _ending(ask(run.key, run.rounds, run.state, env, algorithm)[1])

    closed, shape = jax.make_jaxpr(next_ask, return_shape=True)(run)
    jaxpr, used = dce_jaxpr(closed.jaxpr, [True] * len(closed.out_avals))  # without the phase
    leaves = [x for x, needed in zip(jax.tree.leaves(run), used, strict=True) if needed]
    found = jaxpr_as_fun(ClosedJaxpr(jaxpr, closed.consts))(*leaves)
    done, answer, info = jax.tree.unflatten(jax.tree.structure(shape), found)
    done = done & run.live

    def latest(new, old):
        return jnp.where(done, new, old)

    return run._replace(
        live=run.live & ~done,
        done=run.done | done,
        broken=run.broken | (done & has_nan(run.state)),
        answer=jax.tree.map(latest, answer, run.answer),
        info=jax.tree.map(latest, info, run.info),
    )


def phase_noise(run: Run, env: Env) -> Noise:
    """A function that draws the noise of a phase or a batch, once its move is known."""
    key = fold_in(run.key, run.rounds)
    return lambda move: env.noise(key, move.arm.shape, move.count is not None)


def advance(
    run: Run, env: Env, algorithm: Algorithm, rounds: Scalar, limits: Limits = NO_LIMITS
) -> Run:
    """At most `rounds` rounds, fewer where the run ends; its state then stays as it ended."""
    last = run.rounds + rounds
    one_arm = move_traits(run, env, algorithm).one_arm

    def going(run):
        return run.live & (run.rounds < last)

    def step_if_live(run, noise):
        after = step(run, env, algorithm, noise, limits)
        choose = partial(jnp.where, after.live)
        return after._replace(state=jax.tree.map(choose, after.state, run.state))

    def phase(run):
        return step_if_live(run, phase_noise(run, env))

    def block(run):
        number = run.rounds // BLOCK
        noise = env.noise(fold_in(run.key, number), (BLOCK,), False)

        def one_round(run):
            def of_this_round(move):
                return jax.tree.map(lambda x: x[run.rounds % BLOCK], noise)

            return step_if_live(run, of_this_round)

        return lax.while_loop(
            lambda run: going(run) & (run.rounds // BLOCK == number), one_round, run
        )

    return lax.while_loop(going, block if one_arm else phase, run)


def rollout(
    run: Run,
    env: Env,
    algorithm: Algorithm,
    rounds: Sequence[int] | Int[Array, " T"] | np.ndarray,
    record: Callable[[Run], Pytree],
) -> tuple[Run, Pytree]:
    """Advance to each of the increasing `rounds [T]` and stack `record(run)` there.

    Returns:
      The run after the last of them, and the records with a leading axis `[T]`.
    """

    def leg(run, until):
        run = advance(run, env, algorithm, until - run.rounds)
        return run, record(run)

    return lax.scan(leg, run, jnp.asarray(rounds))
