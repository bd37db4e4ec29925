"""An algorithm and its NumPy twin, played round by round with the same rewards.

The algorithm is called by its own `init`, `ask` and `tell`; each move is compared.
"""

import jax
import numpy as np

from jaxbandits.engine import episode


class Hand:
    """The compiled functions of an algorithm; instances of the same shapes share the programs."""

    def __init__(self, build, *names):
        def verb(name):
            def call(inputs, *args):
                arms, targets, numbers = inputs
                options = dict(zip(names, numbers, strict=True))
                if targets is not None:
                    options["targets"] = targets
                return getattr(build(arms, **options), name)(*args)

            return jax.jit(call)

        self.init, self.ask, self.tell = map(verb, ("init", "ask", "tell"))

        def ask_in(inputs, data, rounds, state):
            return self.ask(inputs, episode.ask_key(jax.random.wrap_key_data(data), rounds), state)

        # It takes the data of a key, because calls of jitted functions with keys are slow.
        self.ask_in = jax.jit(ask_in)

    def play(self, twin, inputs, reward, key, *, rounds=20_000, compare):
        """Run twin and package side by side until both stop; the twin gets the package's rewards.

        `compare(move, draws, twin)` checks a move against what the twin wants to draw. Returns the
        number of rounds and the last state.
        """
        state = self.init(inputs, jax.random.fold_in(key, episode.INIT))
        data = jax.random.key_data(key)
        for number in range(rounds):
            move = self.ask_in(inputs, data, number, state)
            done, answer, draws = twin.ask()
            assert bool(move.done) == done, f"round {number}"
            if answer is not None:
                np.testing.assert_array_equal(move.answer, answer, err_msg=f"round {number}")
            if done:
                return number, state
            compare(move, draws, twin)
            drawn = np.asarray(move.arm if move.count is None else move.count)
            total = reward(drawn)
            state = self.tell(inputs, state, move, total)
            twin.tell(drawn, total)
        return rounds, state


def same_arm(move, arm, twin):
    assert int(move.arm) == arm


def same_counts(move, counts, twin):
    np.testing.assert_array_equal(move.count, counts)


def normal_rewards(rng, means, noise_var):
    """A function that draws a reward of one arm, or the sums for counts of all arms."""

    def reward(drawn):
        if drawn.ndim == 0:
            return means[drawn] + np.sqrt(noise_var) * rng.normal()
        return drawn * means + np.sqrt(drawn * noise_var) * rng.normal(size=drawn.size)

    return reward


def binomial_rewards(rng, means):
    def reward(drawn):
        counts = 1 if drawn.ndim == 0 else drawn
        chance = means[drawn] if drawn.ndim == 0 else means
        return (
            np.float64(rng.binomial(counts, chance))
            if drawn.ndim == 0
            else (rng.binomial(counts, chance).astype(float))
        )

    return reward


def linear_problem(seed, num_arms, dim):
    rng = np.random.default_rng(seed)
    arms, theta = rng.normal(size=(num_arms, dim)), rng.normal(size=dim)
    return rng, arms, theta / np.linalg.norm(theta)
