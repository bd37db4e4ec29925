"""Frank-Wolfe sampling against a plain NumPy twin, pull by pull on the same rewards."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_arm
from ratio_twins import Ridge
from scipy import optimize

import jaxbandits as jb
from jaxbandits.engine import episode

OPTIONS = ("delta", "noise_var", "theta_norm", "v0")


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def best_mixture(payoffs):
    """The mixture of rows with the largest payoff in the worst column."""
    rows, columns = payoffs.shape
    found = optimize.linprog(
        [*np.zeros(rows), -1.0],
        A_ub=np.c_[-payoffs.T, np.ones(columns)],
        b_ub=np.zeros(columns),
        A_eq=[[*np.ones(rows), 0.0]],
        b_eq=[1.0],
        bounds=[*[(0, None)] * rows, (None, None)],
    )
    return found.x[:rows]


class FrankWolfeSampling(Ridge):
    """Wang, Tzeng and Proutiere, Algorithm 1; `total` is t x(t), the sum of all z.

    Its entries are often equal multiples of 1 / K; those of x(t) would be equal up to rounding.
    """

    def __init__(self, arms, order, **options):
        super().__init__(arms, order, **options)
        self.total, self.games, self.forced = np.ones(len(arms)), 0, 0

    def ask(self):
        pulls = self.pulls
        if pulls.draws < pulls.num_arms:
            return False, None, pulls.draws
        estimate, t = self.estimate(), pulls.draws + 1
        if self.stops(estimate):
            return True, estimate.leader, None
        self.total = self.total + self.step(estimate, t)
        return False, estimate.leader, self.first(self.total / pulls.counts)

    def step(self, estimate, t):
        arms, num_arms = self.pulls.arms, self.pulls.num_arms
        if math.isqrt(t // num_arms) ** 2 == t // num_arms or estimate.ratio <= 0:
            self.forced += 1
            return np.full(num_arms, 1 / num_arms)
        design = self.total / (t - 1)
        inverse = np.linalg.inv(arms.T @ (design[:, None] * arms))
        values, slopes = {}, {}
        for j in range(num_arms):
            if j != estimate.leader:
                y = arms[estimate.leader] - arms[j]
                gap, size = estimate.means[estimate.leader] - estimate.means[j], y @ inverse @ y
                scale = gap**2 / (2 * self.facts["noise_var"])
                values[j] = scale / size
                slopes[j] = scale * np.array([x @ inverse @ y for x in arms]) ** 2 / size**2
        worst = min(values.values())
        near = [j for j, value in values.items() if value < worst + t**-0.9 / num_arms]
        if len(near) == 1:
            return np.eye(num_arms)[np.argmax(slopes[near[0]])]
        self.games += 1
        return best_mixture(np.array([slopes[j] - design @ slopes[j] for j in near]).T)


@pytest.mark.parametrize(("num_arms", "dim"), [(5, 3), (7, 2)], ids=["arm space", "feature space"])
def test_frank_wolfe_sampling(num_arms, dim):
    hand, played, twins = Hand(jb.frank_wolfe_sampling, *OPTIONS), [], []
    for seed, numbers in enumerate([(0.05, 0.5, 1.0, 1.0), (0.2, 1.5, 1.3, 0.2)]):
        rng, arms, theta = linear_problem(seed, num_arms, dim)
        facts, key = (jnp.asarray(arms), None, numbers), jax.random.key(seed)
        order = hand.init(facts, jax.random.fold_in(key, episode.INIT)).order
        options = dict(zip(OPTIONS, numbers, strict=True))
        twin = FrankWolfeSampling(
            arms, np.asarray(order), threshold="self_normalised_det", **options
        )
        reward = normal_rewards(rng, arms @ theta, numbers[1])
        rounds, state = hand.play(twin, facts, reward, key, rounds=600, compare=same_arm)
        assert int(state.unsolved) == 0
        played, twins = [*played, rounds], [*twins, twin]
    assert max(played) > 5 * num_arms
    assert sum(twin.games for twin in twins) > 1
    assert all(twin.forced >= num_arms for twin in twins)
