"""LinGame against a plain NumPy twin, pull by pull on the same rewards."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_arm
from params import params
from ratio_twins import Ridge, nearest

import jaxbandits as jb
from jaxbandits.engine import episode

OPTIONS = ("delta", "noise_var", "theta_norm", "v0")


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class AdaHedge:
    """Losses so far and the sum of mixability gaps, as de Rooij et al. print it."""

    def __init__(self, number):
        self.losses, self.gaps = np.zeros(number), 0.01

    @property
    def rate(self):
        return math.log(len(self.losses)) / self.gaps

    def act(self):
        weights = np.exp(-self.rate * (self.losses - min(self.losses)))
        return weights / weights.sum()

    def incur(self, losses):
        played, rate = self.act(), self.rate
        least = min(losses)
        mixed = least - math.log(played @ np.exp(-rate * (losses - least))) / rate
        self.losses, self.gaps = self.losses + losses, self.gaps + played @ losses - mixed


class LinGame(Ridge):
    """Degenne et al., Algorithm 1, a learner for each answer."""

    def __init__(self, arms, order, **options):
        super().__init__(arms, order, **options)
        self.learners, self.wanted = {}, np.zeros(len(arms))

    def tested(self, estimate):
        """The answer, the key of its learner, and the ratio to be tested."""
        return estimate.leader, estimate.leader, estimate.ratio

    def weakest(self, estimate, inverse):
        """The pair of arms that is hardest to distinguish."""
        return estimate.leader, nearest(self.pulls.arms, inverse, estimate.means, estimate.leader)[
            0
        ]

    def ask(self):
        pulls, arms = self.pulls, self.pulls.arms
        if pulls.draws < pulls.num_arms:
            self.wanted[pulls.draws] += 1
            return False, None, pulls.draws
        estimate = self.estimate()
        answer, name, estimate.ratio = self.tested(estimate)
        if self.stops(estimate):
            return True, answer, None
        learner = self.learners.setdefault(name, AdaHedge(len(arms)))
        weights = learner.act()
        matrix = sum(w * np.outer(x, x) for w, x in zip(weights, arms, strict=True))
        longest = max(x @ x for x in arms)
        inverse = np.linalg.inv(matrix + 1e-9 * longest * np.eye(pulls.dim))
        i, j = self.weakest(estimate, inverse)
        y = arms[i] - arms[j]
        closest = estimate.theta - (y @ estimate.theta) / (y @ inverse @ y) * (inverse @ y)
        learner.incur(-self.gains(estimate, closest))
        self.wanted += weights
        return False, answer, self.first(self.wanted - pulls.counts)

    def gains(self, estimate, closest):
        most, sigma = math.log(self.pulls.draws), math.sqrt(self.facts["noise_var"])
        found = []
        for x in self.pulls.arms:
            distance = abs(x @ (estimate.theta - closest)) / sigma
            bonus = math.sqrt(2 * most * (x @ estimate.inverse @ x))
            found.append(min((distance + bonus) ** 2 / 2, most))
        return np.array(found)


class SetGame(LinGame):
    """LinGame for the m best arms: pairs of an arm inside and one outside, a learner for each set.

    The package has a limited number of learners, and may restart one for another set. The twin has
    no limit, so it plays instances with few sets.
    """

    def __init__(self, arms, order, m, **options):
        super().__init__(arms, order, **options)
        self.m = m

    def worst(self, estimate, inverse):
        """The least ratio of a pair inside and outside, and the pair."""
        arms, found = self.pulls.arms, []
        inside = set(np.argsort(-estimate.means)[: self.m].tolist())
        for i in inside:
            for j in set(range(len(arms))) - inside:
                y = arms[i] - arms[j]
                found.append(
                    ((estimate.means[i] - estimate.means[j]) ** 2 / (y @ inverse @ y), i, j)
                )
        return min(found), inside

    def tested(self, estimate):
        (ratio, _, _), inside = self.worst(estimate, estimate.inverse)
        return np.isin(np.arange(len(estimate.means)), [*inside]), tuple(sorted(inside)), ratio

    def weakest(self, estimate, inverse):
        return self.worst(estimate, inverse)[0][1:]


def in_step(build, make_twin, num_arms, dim, rounds):
    """Play the package and `make_twin(arms, order, **options)` on two instances."""
    hand, played = Hand(build, *OPTIONS), []
    for seed, numbers in enumerate([(0.05, 0.5, 1.0, 1.0), (0.2, 1.5, 1.3, 0.2)]):
        rng, arms, theta = linear_problem(seed, num_arms, dim)
        facts, key = (jnp.asarray(arms), None, numbers), jax.random.key(seed)
        order = hand.init(facts, jax.random.fold_in(key, episode.INIT)).order
        twin = make_twin(arms, np.asarray(order), **dict(zip(OPTIONS, numbers, strict=True)))
        reward = normal_rewards(rng, arms @ theta, numbers[1])
        played += hand.play(twin, facts, reward, key, rounds=rounds, compare=same_arm)[:1]
    assert max(played) > 5 * num_arms


SHAPES = {"arm space": (5, 3), "feature space": (7, 2)}


@pytest.mark.parametrize("space", params(SHAPES, slow=["arm space"]))
def test_lin_game_for_the_m_best_arms(space):
    build = partial(jb.lin_game, m=2, threshold="heuristic")
    in_step(build, partial(SetGame, m=2, threshold="heuristic"), *SHAPES[space], rounds=800)


@pytest.mark.parametrize("space", SHAPES)
@pytest.mark.parametrize(
    "threshold", params(["self_normalised_det", "heuristic"], slow=["self_normalised_det"])
)
def test_lin_game(space, threshold):
    build = partial(jb.lin_game, threshold=threshold)
    in_step(build, partial(LinGame, threshold=threshold), *SHAPES[space], rounds=1500)
