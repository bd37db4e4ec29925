"""Algorithms played by hand, in step with a plain NumPy twin on the same rewards."""

import jax
import numpy as np

from jaxbandits.engine import episode


class Hand:
    """An algorithm played by hand; other instances of the same shapes share the programs."""

    def __init__(self, build, *names):
        def verb(name):
            def call(facts, *args):
                arms, targets, numbers = facts
                options = dict(zip(names, numbers, strict=True))
                if targets is not None:
                    options["targets"] = targets
                return getattr(build(arms, **options), name)(*args)

            return jax.jit(call)

        self.init, self.ask, self.tell = map(verb, ("init", "ask", "tell"))

        def ask_in(facts, data, rounds, state):
            return self.ask(facts, episode.ask_key(jax.random.wrap_key_data(data), rounds), state)

        # From the data of a run's key: calls with keys take a slow path through Python.
        self._ask_in = jax.jit(ask_in)

    def play(self, twin, facts, reward, key, *, rounds=20_000, compare):
        """Twin and package in step until both stop; the twin sees the package's rewards."""
        state = self.init(facts, jax.random.fold_in(key, episode.INIT))
        data = jax.random.key_data(key)
        for played in range(rounds):
            move = self._ask_in(facts, data, played, state)
            done, answer, draws = twin.ask()
            assert bool(move.done) == done, f"round {played}"
            if answer is not None:
                np.testing.assert_array_equal(move.answer, answer, err_msg=f"round {played}")
            if done:
                return played, state
            compare(move, draws, twin)
            drawn = np.asarray(move.arm if move.count is None else move.count)
            total = reward(drawn)
            state = self.tell(facts, state, move, total)
            twin.tell(drawn, total)
        return rounds, state


def same_arm(move, arm, twin):
    assert int(move.arm) == arm


def same_counts(move, counts, twin):
    np.testing.assert_array_equal(move.count, counts)


def normal_rewards(rng, means, noise_var):
    """The sum of the draws: of one arm, or of counts of each."""

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
