"""Start, play, advance, roll out: one replication of any algorithm in any world.

The random stream of replication r, fixed for good: `key_r = fold_in(key(seed), r)`. Rewards
of sequential algorithms come from standardised noise drawn for `BLOCK` = 32 rounds at once
from `fold_in(key_r, block)`; a phase or a batch draws from `fold_in(key_r, round)`. The other
uses take tags at the far end of the range, which no block number reaches. A round's draws
depend on (seed, r, round) alone, so 12 rounds equal 5 + 3 + 4 rounds exactly.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.random import fold_in

from .core import Run

BLOCK = 32
ASK, INIT, INSTANCE, CONTEXT = (0xFFFFFFFF - i for i in range(4))
UNLIMITED = 2**31 - 1  # fits the integers of either precision


def root_key(seed):
    """The key of a seed; threefry whatever the caller's default generator is."""
    return jax.random.key(seed, impl="threefry2x32")


def ask_key(key, rounds):
    """The key that `ask` gets before round `rounds`."""
    return fold_in(fold_in(key, ASK), rounds)


def start(key, env, algorithm):
    """A `Run` with its first move asked and nothing drawn; `key` is the replication's."""
    context = env.context(fold_in(fold_in(key, CONTEXT), 0))
    state = algorithm.init(fold_in(key, INIT))
    move = algorithm.ask(ask_key(key, 0), state, *context)
    zero = jnp.zeros((), int)
    arm_pulls = jnp.zeros(env.num_arms, int)
    return Run(key, state, context, move, zero, zero, arm_pulls, jnp.zeros((), float))


def play(run, env, algorithm, noise):
    """One round: draw the move with this `noise`, learn, ask again."""
    move = run.move
    total = env.reward(noise, move, *run.context)
    state = algorithm.tell(run.state, move, total)
    rounds = run.rounds + 1
    context = env.context(fold_in(fold_in(run.key, CONTEXT), rounds))
    count = jnp.ones_like(move.arm) if move.count is None else move.count
    return Run(
        key=run.key,
        state=state,
        context=context,
        move=algorithm.ask(ask_key(run.key, rounds), state, *context),
        rounds=rounds,
        pulls=run.pulls + drawn(move),
        arm_pulls=run.arm_pulls.at[move.arm].add(count.astype(run.arm_pulls.dtype)),
        regret=run.regret + env.regret(move, *run.context),
    )


def drawn(move):
    """Number of draws of a move, int []."""
    return move.arm.size if move.count is None else move.count.sum()


def is_live(run, max_pulls):
    """Whether another round will be played: not done, and the move fits under `max_pulls`."""
    return ~run.move.done & (run.pulls + drawn(run.move) <= max_pulls)


def advance(run, env, algorithm, rounds, max_pulls=UNLIMITED):
    """Play at most `rounds` rounds, fewer where the run stops or the next move does not fit."""
    last = run.rounds + rounds

    def live(run):
        return is_live(run, max_pulls) & (run.rounds < last)

    def phase(run):
        key = fold_in(run.key, run.rounds)
        noise = env.noise(key, run.move.arm.shape, run.move.count is not None)
        return play(run, env, algorithm, noise)

    def block(run):
        number = run.rounds // BLOCK
        noise = env.noise(fold_in(run.key, number), (BLOCK,), False)
        return lax.while_loop(
            lambda run: live(run) & (run.rounds // BLOCK == number),
            lambda run: play(
                run, env, algorithm, jax.tree.map(lambda x: x[run.rounds % BLOCK], noise)
            ),
            run,
        )

    one_arm = run.move.arm.ndim == 0 and run.move.count is None
    return lax.while_loop(live, block if one_arm else phase, run)


def rollout(run, env, algorithm, rounds, record):
    """Advance to each of the increasing `rounds [T]` and stack `record(run)` there.

    Returns:
      The run after the last of them, and the records with a leading axis `[T]`.
    """

    def leg(run, until):
        run = advance(run, env, algorithm, until - run.rounds)
        return run, record(run)

    return lax.scan(leg, run, jnp.asarray(rounds))
