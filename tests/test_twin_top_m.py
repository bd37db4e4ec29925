"""The gap-index algorithms against a plain NumPy twin, pull by pull on the same rewards."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_arm
from params import params
from top_m_lines import GapIndexRules, algorithm
from twins import Pulls, furthest_behind, radius

import jaxbandits as jb
from jaxbandits.algorithms.loops.comparisons import by_features
from jaxbandits.engine import episode
from jaxbandits.kernels.confidence import radius as radii


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


class TopM:
    """Reda et al. (2021), Algorithm 1, with the rules of a row of Table 1.

    `order` breaks ties, the larger wins.
    """

    def __init__(self, arms, order, *, m, rules, features, threshold, epsilon, **facts):
        self.pulls, self.order, self.m, self.rules = Pulls(arms), order, m, rules
        self.features, self.threshold = features, threshold
        self.epsilon, self.facts = epsilon, facts
        self.waiting, self.last = None, None

    def first(self, arms, value):
        best = max(value(k) for k in arms)
        return max((k for k in arms if value(k) == best), key=lambda k: self.order[k])

    def comparison(self):
        """J, b, c, the two tests, and B."""
        pulls, every = self.pulls, range(self.pulls.num_arms)
        if self.features:
            inverse = np.linalg.inv(pulls.matrix(self.facts["v0"]))
            means = pulls.arms @ inverse @ (pulls.arms.T @ pulls.sums)
        else:
            inverse = np.diag(1 / np.maximum(pulls.counts, 1e-300))
            means = pulls.sums / pulls.counts
        points = pulls.arms if self.features else np.eye(pulls.num_arms)
        self.inverse, self.points = inverse, points

        def norm(y):
            return math.sqrt(y @ inverse @ y)

        wide = self.width()

        def bound(i, j):
            if self.rules.indices == "paired":
                width = norm(points[i] - points[j])
            else:
                width = norm(points[i]) + norm(points[j])
            return means[i] - means[j] + wide * width

        def furthest(j):
            return sorted((bound(i, j) for i in every if i != j), reverse=True)[self.m - 1]

        value = (lambda j: means[j]) if self.rules.guess == "means" else (lambda j: -furthest(j))
        inside, left = [], list(every)
        while len(inside) < self.m:
            inside.append(self.first(left, value))
            left.remove(inside[-1])
        by_pair = self.rules.weakest == "pair"
        hardest = (lambda j: max(bound(i, j) for i in left)) if by_pair else furthest
        weakest = self.first(inside, hardest)
        challenger = self.first(left, lambda i: bound(i, weakest))
        settled = {
            "lucb": bound(challenger, weakest) <= self.epsilon,
            "ugape": max(furthest(j) for j in inside) <= self.epsilon,
        }
        return inside, weakest, challenger, settled[self.rules.stopping], bound

    def width(self):
        pulls = self.pulls
        late = pulls if self.rules.all_first else Late(pulls)
        return math.sqrt(self.facts["noise_var"]) * radius(self.threshold, late, **self.facts)

    def draw(self, weakest, challenger):
        pair, points = (weakest, challenger), self.points
        y = points[weakest] - points[challenger]
        if self.rules.selection == "largest_variance":
            return self.first(pair, lambda k: points[k] @ self.inverse @ points[k])
        if self.rules.selection == "ratio":
            return furthest_behind(self.pulls.arms, y, self.pulls.counts, self.order)
        if self.rules.selection == "greedy":
            matrix = np.linalg.inv(self.inverse)
            after = [y @ np.linalg.inv(matrix + np.outer(x, x)) @ y for x in points]
            return self.first(range(len(points)), lambda k: -round(after[k], 12))
        self.waiting = challenger
        return weakest

    def ask(self):
        pulls = self.pulls
        if self.rules.all_first and pulls.draws < pulls.num_arms:
            return False, None, pulls.draws
        if self.waiting is not None:
            arm, self.waiting = self.waiting, None
            return False, None, arm
        inside, weakest, challenger, settled, bound = self.comparison()
        answer = np.isin(np.arange(pulls.num_arms), inside)
        if self.rules.stale_pair:
            before, self.last = self.last, (answer, weakest, challenger, settled)
            if before is None:
                return False, None, self.draw(weakest, challenger)
            answer, b, c, settled = before
            if self.rules.stopping == "lucb":
                settled = bound(c, b) <= self.epsilon
        if settled:
            return True, answer, None
        return False, answer, self.draw(weakest, challenger)

    def tell(self, arm, reward):
        self.pulls.see(arm, reward)


class Late:
    """Pulls whose number of draws is counted from one."""

    def __init__(self, pulls):
        self.draws, self.dim, self.num_arms = pulls.draws + 1, pulls.dim, pulls.num_arms
        self.arms, self.matrix = pulls.arms, pulls.matrix


NUMBERS = ("delta", "epsilon", "noise_var")
LINEAR = (*NUMBERS, "theta_norm", "v0")
M, GIFA = jb.m_lingape, jb.lin_gifa
PAIRED_GIFA = GapIndexRules("paired", "indices", "index", "greedy", "ugape", all_first=False)
ALONE_GIFA = PAIRED_GIFA._replace(indices="individual")
UGAPE = GapIndexRules("individual", "indices", "pair", "largest_variance", "ugape")
SELF = {"threshold": "self_normalised_det"}
ROWS = {
    "lucb both": (jb.lucb, GapIndexRules("individual", selection="both")),
    "lucb": (jb.lucb, GapIndexRules("individual", selection="largest_variance")),
    "lucb stale": (jb.lucb, GapIndexRules("individual", selection="both", stale_pair=True)),
    "ugape": (jb.ugape, UGAPE),
    "ugape both": (jb.ugape, UGAPE._replace(selection="both")),
    "ugape stale": (jb.ugape, UGAPE._replace(stale_pair=True)),
    **{
        f"m_lingape {x}": (M, GapIndexRules(selection=x))
        for x in ("largest_variance", "ratio", "both")
    },
    "m_lingape stale": (M, GapIndexRules(stale_pair=True)),
    "m_lingape both, stale": (M, GapIndexRules(selection="both", stale_pair=True)),
    **{
        f"lin_gifa {x}": (GIFA, PAIRED_GIFA._replace(selection=x))
        for x in ("greedy", "largest_variance", "ratio", "both")
    },
    "lin_gifa lucb": (GIFA, PAIRED_GIFA._replace(stopping="lucb")),
    "lin_gifa stale": (GIFA, PAIRED_GIFA._replace(stale_pair=True)),
    "lin_gifa lucb, stale": (GIFA, PAIRED_GIFA._replace(stopping="lucb", stale_pair=True)),
    "lin_gifa individual": (GIFA, ALONE_GIFA._replace(selection="largest_variance")),
    "lin_gifa individual, greedy": (GIFA, ALONE_GIFA),
}


def options_of(build, rules):
    """The options of a constructor that give these rules."""
    found = {"selection": rules.selection, "stale_pair": rules.stale_pair}
    if build is GIFA:
        found |= {"indices": rules.indices, "stopping": rules.stopping}
    return found


# Each option of the others is in one of these rows too.
OTHERS = ("lucb", "ugape both", "ugape stale", "m_lingape largest_variance", "m_lingape stale")
OTHERS += (
    "lin_gifa individual",
    "lin_gifa largest_variance",
    "lin_gifa ratio",
    "lin_gifa stale",
    "lin_gifa lucb",
    "m_lingape both",
    "lin_gifa greedy",
    "ugape",
)


@pytest.mark.parametrize("name", params(ROWS, slow=OTHERS))
def test_a_row_of_the_table(name):
    """Six arms in R^3; for individual indices ten arms in R^2, where only V^-1 is kept."""
    build, rules = ROWS[name]
    features = build in (M, GIFA)
    names, shape = (LINEAR, (6, 3)) if features else (NUMBERS, (6, 3))
    if rules.indices == "individual" and features:
        shape = (10, 2)
    constructor = partial(build, m=2, threshold="heuristic", **options_of(build, rules))
    hand, played = Hand(constructor, *names), []
    for seed, numbers in enumerate([(0.1, 0.0, 0.25, 1.0, 0.05), (0.2, 0.3, 1.0, 1.2, 0.5)]):
        rng, arms, theta = linear_problem(30 + seed, *shape)
        facts, key = (jnp.asarray(arms), None, numbers[: len(names)]), jax.random.key(seed)
        order = np.asarray(hand.init(facts, jax.random.fold_in(key, episode.INIT)).order)
        options = dict(zip(LINEAR, numbers, strict=True))
        twin = TopM(
            arms, order, m=2, rules=rules, features=features, threshold="heuristic", **options
        )
        reward = normal_rewards(rng, arms @ theta, numbers[2])
        played += hand.play(twin, facts, reward, key, rounds=600, compare=same_arm)[:1]
    assert max(played) > 12


@pytest.mark.parametrize(
    "rules",
    [GapIndexRules(), pytest.param(PAIRED_GIFA, marks=pytest.mark.slow)],
    ids=["m_lingape", "lin_gifa"],
)
def test_arm_space_and_feature_space_draw_the_same_arms(rules):
    def build(arms, *, noise_var, arm_space):
        facts = radii.facts(arms, delta=0.1, noise_var=noise_var, v0=0.1, theta_norm=1.0)
        evidence = by_features(arms, 0.1, arm_space=arm_space)
        return algorithm(arms, evidence, rules, radii.width("heuristic", facts), m=2)

    instance = jb.instances.classic_top_m(5, 2, angle=0.9)
    one, other = (
        jb.simulate(instance, partial(build, arm_space=space), replications=50, seed=3)
        for space in (True, False)
    )
    np.testing.assert_array_equal(one.arm_pulls, other.arm_pulls)
    np.testing.assert_array_equal(one.answer, other.answer)
