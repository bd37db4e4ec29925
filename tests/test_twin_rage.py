"""RAGE's other designs and roundings against a plain NumPy twin, phase by phase."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import plain
import pytest
import twins
from hands import Hand, linear_problem, normal_rewards, same_counts
from params import params

import jaxbandits as jb


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


OPTIONS = ("delta", "noise_var", "log_factor", "rounding_epsilon")


class Rage(twins.Rage):
    """With its own Frank-Wolfe designs, and with rounding by regret minimisation on request."""

    def __init__(self, arms, targets, *, by_regret, **numbers):
        super().__init__(arms, targets, self.frank_wolfe, cuts=(1e-5,), **numbers)
        self.by_regret = by_regret

    def frank_wolfe(self, alive):
        pairs = [self.targets[a] - self.targets[b] for a in alive for b in alive if a < b]
        weights = plain.frank_wolfe(self.arms, np.array(pairs))[0]
        return weights, 1.01 * self.rho(weights)

    def ask(self):
        if not self.by_regret or len(self.alive) == 1:
            return super().ask()
        weights = self.weights()
        total = 2 * 4**self.phase * self.rho(weights) * (1 + self.eps) * self.log_term()
        least = 36 * self.arms.shape[1] / self.eps**2
        total = math.ceil(max(total, least))
        return False, None, plain.in_two_parts(self.arms, weights, total)


class CertifiedRage(twins.Rage):
    """With the package's certified designs, cut in plain NumPy."""

    def __init__(self, arms, targets, **numbers):
        super().__init__(arms, targets, self.certified, **numbers)

    def certified(self, alive):
        mask = np.isin(np.arange(len(self.targets)), alive)
        found = jb.design.xy_optimal(self.arms, self.targets, active=mask, tol=1e-3)
        assert found.converged
        return found.weights, 1.001 * found.bound


HANDS = {
    name: Hand(partial(jb.rage, design="frank_wolfe", rounding=name), *OPTIONS)
    for name in ("efficient", "regret")
}
SETTINGS = ((0.05, 1.0, 2.0, 0.1), (0.1, 0.3, 1.0, 0.3))


def problem(seed):
    rng, arms, theta = linear_problem(30 + seed, 5, 3)
    return rng, arms, rng.normal(size=(6, 3)), theta


@pytest.mark.parametrize("rounding", params(HANDS, slow=["efficient"]))
def test_rage_with_designs_and_roundings_of_its_paper(rounding):
    phases = []
    for seed, numbers in enumerate(SETTINGS):
        rng, arms, targets, theta = problem(seed)
        delta, noise_var, c, eps = numbers
        options = {"delta": delta, "noise_var": noise_var, "c": c, "eps": eps}
        twin = Rage(arms, targets, by_regret=rounding == "regret", **options)
        facts = (jnp.asarray(arms), jnp.asarray(targets), numbers)
        reward = normal_rewards(rng, arms @ theta, noise_var)
        key = jax.random.key(seed)
        played, state = HANDS[rounding].play(twin, facts, reward, key, compare=same_counts)
        assert int(state.unsolved) == 0
        phases.append(played)
    assert max(phases) >= 2


def test_designs_whose_arms_do_not_span_and_the_early_exit():
    """Of 7 arms in 6 dimensions two are enough for two targets; once all of them were drawn."""
    instance = jb.instances.transductive(6, angle=0.3)
    rng = np.random.default_rng(40)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]  # zeros are not exact then
    targets, theta = np.asarray(instance.targets) @ turn, np.asarray(instance.theta) @ turn
    arms = np.vstack([np.asarray(instance.arms) @ turn, 0.3 * rng.normal(size=6)])
    hand = Hand(jb.rage, *OPTIONS, "epsilon")
    ends = []
    for seed, (epsilon, noise_var) in enumerate([(0.0, 1.0), (0.03, 0.25), (0.0, 0.3)]):
        numbers = (0.1, noise_var, 2.0, 0.1, epsilon)
        twin = CertifiedRage(arms, targets, delta=0.1, noise_var=noise_var, exit=epsilon)
        facts = (jnp.asarray(arms), jnp.asarray(targets), numbers)
        reward = normal_rewards(rng, arms @ theta, noise_var)
        _, state = hand.play(twin, facts, reward, jax.random.key(seed), compare=same_counts)
        assert int(state.unsolved) == 0
        assert min(twin.ranks) == 2
        ends.append(len(twin.alive))
    assert ends == [1, 2, 1]  # with epsilon two targets are still alive


@pytest.mark.parametrize(("epsilon", "size"), [(0.1, 10_800), (0.3, 1200)])
def test_the_least_number_of_draws_of_a_phase_with_regret_rounding(epsilon, size):
    """`36 d / eps^2`, after which no direction loses more than a factor of 1 + eps."""
    _, arms, targets, _ = problem(0)
    facts = (jnp.asarray(arms), jnp.asarray(targets), (0.05, 1e-3, 2.0, epsilon))
    hand, key = HANDS["regret"], jax.random.key(0)
    counts = np.asarray(hand.ask(facts, key, hand.init(facts, key)).count)
    weights = jb.design.xy_frank_wolfe(arms, targets).weights
    assert counts.sum() == size
    assert plain.worst(arms, weights, counts) >= 1 / (1 + epsilon)


@pytest.mark.parametrize(
    ("epsilon", "size"),
    [(0.1, 200), (5.0, 20), *(pytest.param(x, 20, marks=pytest.mark.slow) for x in (1.0, 50.0))],
)
def test_efficient_rounding_needs_two_draws_of_each_supported_arm(epsilon, size):
    """With fewer its loss is not bounded: an arm with weight may get no draw.

    At a level that asks for nearly nothing the first phase has no more draws than these.
    """
    instance = jb.instances.canonical(10, gap=1.0, noise_var=1e-6)
    options = {"delta": 0.99, "log_factor": 0.01, "rounding_epsilon": epsilon}
    runs = jb.simulate(instance, partial(jb.rage, **options), replications=16)
    assert set(runs.pulls) == {size}
    assert size <= jb.theory.rage_pull_bound(instance, **options).value


def test_phases_are_for_gaps_in_units_of_the_noise():
    """Once the first phase was sized for gaps of at most 2 whatever the variance: 160,782 pulls."""
    pulls = [
        jb.simulate(
            jb.instances.linear(np.eye(2), [gap, 0.0], noise_var=variance),
            jb.rage,
            replications=16,
        ).pulls
        for gap, variance in ((1.0, 1.0), (30.0, 900.0), (1024.0, 1024.0**2), (1e-3, 1e-6))
    ]
    assert set(pulls[0]) == {179}
    np.testing.assert_array_equal(pulls, np.broadcast_to(pulls[0], (4, 16)))


def test_epsilon_ends_a_run_after_the_phase_for_gaps_of_its_size():
    """At the latest: intervals are narrower than 2^-t sigma after phase t. Two targets are best."""
    tied = jb.instances.linear(np.eye(3), [1.0, 1.0, 0.0], noise_var=4.0)
    for epsilon, most in ((50.0, 1), (1.0, 1), (0.3, 3), (0.06, 6)):
        runs = jb.simulate(tied, partial(jb.rage, epsilon=epsilon), replications=64)
        assert runs.stopped.all()
        assert runs.correct.all()
        assert runs.info["phases"].max() <= most
        assert (runs.pulls > 0).all()
    assert np.median(runs.info["phases"]) >= 4  # at 0.06, not after phases for gaps of 0.25
    runs = jb.simulate(tied, partial(jb.rage, epsilon=0.0), replications=64, max_pulls=10**6)
    assert not runs.stopped.any()


def test_a_phase_of_more_draws_than_are_allowed_is_not_begun():
    runs = jb.simulate(
        jb.instances.canonical(10, gap=1e-11), jb.rage, replications=16, max_pulls=2**62
    )
    assert not runs.stopped.any()
    assert (runs.pulls > 0).all()
    np.testing.assert_array_equal(runs.arm_pulls.sum(1), runs.pulls)


def test_equal_targets_are_treated_as_one():
    """They cannot be distinguished: only the first of them takes part, and it is the answer."""
    rng, arms, targets, theta = problem(2)
    best = int(np.argmax(targets @ theta))
    others = [m for m in range(6) if m != best]
    targets = targets[[others[0], best, others[1], best, others[0], best]]
    numbers = (0.05, 1.0, 2.0, 0.1)
    twin = Rage(arms, targets, by_regret=False, delta=0.05, noise_var=1.0, c=2.0, eps=0.1)
    twin.alive = [0, 1, 2]
    facts, hand = (jnp.asarray(arms), jnp.asarray(targets), numbers), HANDS["efficient"]
    reward, key = normal_rewards(rng, arms @ theta, 1.0), jax.random.key(2)
    played, state = hand.play(twin, facts, reward, key, compare=same_counts)
    assert played >= 1
    assert int(hand.ask(facts, key, state).answer) == 1
    same = (facts[0], jnp.ones((6, 3)), numbers)
    move = hand.ask(same, key, hand.init(same, key))
    assert (bool(move.done), int(move.answer), int(move.count.sum())) == (True, 0, 0)
