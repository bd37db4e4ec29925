"""The top-two algorithm against a plain NumPy twin, pull by pull on the same rewards."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_arm
from params import params
from ratio_twins import Ridge

import jaxbandits as jb
from jaxbandits.engine import episode

OPTIONS = ("delta", "noise_var", "theta_norm", "v0")


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class TopTwo(Ridge):
    """Leader and challenger follow from the estimate, the arm from its share of the information.

    `coin(round)` is the uniform number with which an arm is drawn; without it, counts follow the
    sums of the shares.
    """

    def __init__(self, arms, order, coin=None, **options):
        super().__init__(arms, order, **options)
        self.coin, self.wanted = coin, np.zeros(len(arms))

    def ask(self):
        pulls, arms = self.pulls, self.pulls.arms
        if pulls.draws < pulls.num_arms:
            self.wanted[pulls.draws] += 1
            return False, None, pulls.draws
        estimate = self.estimate()
        if self.stops(estimate):
            return True, estimate.leader, None
        lengths = [x @ estimate.inverse @ x for x in arms]
        if max(lengths) > 2 / math.sqrt(pulls.draws):
            unknown = int(np.argmax(lengths))
            self.wanted[unknown] += 1
            arm = self.first(self.wanted - pulls.counts) if self.coin is None else unknown
            return False, estimate.leader, arm
        y = arms[estimate.leader] - arms[estimate.rival]
        shares = pulls.counts * np.array([(x @ estimate.inverse @ y) ** 2 for x in arms])
        shares /= shares.sum()
        if self.coin is None:
            self.wanted += shares
            return False, estimate.leader, self.first(self.wanted - pulls.counts)
        mark, passed = self.coin(pulls.draws), 0.0
        for arm, share in enumerate(shares):
            passed += share
            if mark < passed:
                return False, estimate.leader, arm
        raise AssertionError("the shares do not add up")


@pytest.mark.parametrize(("num_arms", "dim"), [(5, 3), (7, 2)], ids=["arm space", "feature space"])
@pytest.mark.parametrize("selection", params(["sampled", "tracked"], slow=["sampled"]))
def test_top_two(num_arms, dim, selection):
    hand = Hand(partial(jb.top_two, selection=selection), *OPTIONS)
    played = []
    for seed, numbers in enumerate([(0.05, 0.5, 1.0, 1.0), (0.2, 1.5, 1.3, 0.2)]):
        rng, arms, theta = linear_problem(seed, num_arms, dim)
        facts, key = (jnp.asarray(arms), None, numbers), jax.random.key(seed)
        order = hand.init(facts, jax.random.fold_in(key, episode.INIT)).order

        def coin(played, key=key):
            return float(jax.random.uniform(episode.ask_key(key, played), dtype=float))

        twin = TopTwo(
            arms,
            np.asarray(order),
            coin if selection == "sampled" else None,
            threshold="self_normalised_det",
            **dict(zip(OPTIONS, numbers, strict=True)),
        )
        reward = normal_rewards(rng, arms @ theta, numbers[1])
        played += hand.play(twin, facts, reward, key, rounds=1000, compare=same_arm)[:1]
    assert max(played) > 5 * num_arms


@pytest.mark.parametrize("selection", ["sampled", "tracked"])
def test_two_equal_arms_do_not_keep_the_others_from_being_drawn(selection):
    """The first rewards of the best arm are so low that the two equal arms lead for a long time."""
    arms, means = np.eye(4), np.array([1.0, 0.0, 0.0, -1.0])
    build = partial(jb.top_two, selection=selection, theta_norm=2.0, v0=0.1)
    algorithm, rng = build(jnp.asarray(arms)), np.random.default_rng(1)
    state, key = algorithm.init(jax.random.key(0)), jax.random.key(1)
    ask, tell = jax.jit(algorithm.ask), jax.jit(algorithm.tell)
    for played in range(2000):
        move = ask(jax.random.fold_in(key, played), state)
        if move.done:
            break
        low = move.arm == 0 and state.counts[0] < 2
        state = tell(state, move, -4.0 if low else means[move.arm] + rng.normal())
    assert move.done
    assert move.answer == 0
