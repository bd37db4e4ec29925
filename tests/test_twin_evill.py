"""EVILL and LogPHE against plain NumPy twins, pull by pull; their distributions and regret."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats
from test_glm_laws import chosen
from test_guarantees import Play
from test_twin_glm import Glm, K, against, normals
from twins import logistic_fit

import jaxbandits as jb
from jaxbandits.engine import episode


class Evill(Glm):
    """Two fits in each round, from scratch; the second has the random linear term in its loss."""

    def choose(self, theta):
        means, counts = special.expit(self.arms @ theta), self.pulls.counts
        normal = self.normal(self.pulls.draws)
        root = np.sqrt(counts * means * (1 - means))
        term = self.a * (self.arms.T @ (root * normal[:K]) + math.sqrt(self.ridge) * normal[K:])

        def loss(t):
            z = self.arms @ t
            value = (counts * np.logaddexp(0, z) - self.pulls.sums * z).sum() - term @ t
            slope = self.arms.T @ (counts * special.expit(z) - self.pulls.sums) - term
            return value + self.ridge / 2 * t @ t, slope + self.ridge * t

        found = optimize.minimize(loss, theta, jac=True, method="BFGS", options={"gtol": 1e-8})
        return np.argmax(self.arms @ found.x)


class LogPhe(Glm):
    def choose(self, theta):
        pseudo_counts = np.array([math.ceil(self.a * n) for n in self.pulls.counts])
        sums = self.pulls.sums + self.binomial(self.pulls.draws, pseudo_counts)
        fitted = logistic_fit(self.arms, self.pulls.counts + pseudo_counts, sums, self.ridge)
        return np.argmax(self.arms @ fitted)


def test_evill():
    def twin(arms, first, key, options):
        return Evill(arms, first, normal=normals(key, K + arms.shape[1]), **options)

    against(twin, jb.evill, ("a", "ridge"), [(1.0, 1.0), (2.5, 0.1)])


def binomials(key):
    def draw(t, pseudo_counts):
        counts = jnp.asarray(pseudo_counts, float)
        return np.asarray(jax.random.binomial(episode.ask_key(key, t), counts, 0.5))

    return draw


def test_log_phe():
    def twin(arms, first, key, options):
        return LogPhe(arms, first, binomial=binomials(key), **options)

    against(twin, jb.log_phe, ("a", "ridge"), [(0.7, 1.0), (2.0, 0.1)], "every")


@pytest.fixture
def _double():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("_double")
def test_evill_and_glm_tsl_have_the_same_distribution_in_linear_models():
    """Both sample from `N(estimate, a^2 H^-1)`: the Hessian does not change."""
    counts = np.array([6, 4, 5, 3])
    sums = counts * np.array([0.8, 0.1, -0.7, 1.0]) + np.array([0.4, -0.3, 0.2, 0.9])

    evill, tsl = (partial(build, family="gaussian") for build in (jb.evill, jb.glm_tsl))

    def shares(build, a, seed):
        return chosen(build, {"a": a, "ridge": 1e-3}, counts, sums, 20_000, seed)

    ours, theirs = shares(evill, 1.0, 0), shares(tsl, 1.0, 1)
    table = np.array([ours, theirs])
    assert (table.sum(0) > 50).sum() >= 3
    assert stats.chi2_contingency(table[:, table.sum(0) > 0]).pvalue > 1e-3
    other = np.array([ours, shares(evill, 1.4, 2)])
    assert stats.chi2_contingency(other[:, other.sum(0) > 0]).pvalue < 1e-6


def filed(arms, *, build, off):
    """The algorithm, with each reward assigned to the arm whose index is `off` larger."""
    algorithm = build(arms)

    def tell(state, move, total):
        wrong = move._replace(arm=(move.arm + off) % arms.shape[0])
        return algorithm.tell(state, wrong, total)

    return algorithm._replace(tell=tell)


@pytest.mark.parametrize("name", ["evill", pytest.param("log_phe", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("horizon", "replications", "share"),
    [
        (400, 60, 0.7),
        pytest.param(10_000, 100, 0.45, marks=[pytest.mark.slow, pytest.mark.optimised]),
    ],
    ids=["short", "long"],
)
def test_regret_grows_sublinearly_unless_rewards_are_misfiled(name, horizon, replications, share):
    right, wrong = (
        Play.growth(partial(filed, build=getattr(jb, name), off=np.int64(n)), horizon, replications)
        for n in (0, 1)
    )
    assert right < share < wrong
