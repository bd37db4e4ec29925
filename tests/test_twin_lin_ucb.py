"""LinUCB and LinTS against plain NumPy twins, pull by pull on the same rewards; their regret."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hands import Hand, linear_problem, normal_rewards, same_arm
from twins import Pulls

import jaxbandits as jb
from benchmarks.promises import misfiled
from jaxbandits.engine import episode


@pytest.fixture
def double_precision():
    with jax.enable_x64(True):
        yield


class Twin:
    """Draws the largest index, answers the arm drawn most; `order` breaks ties."""

    def __init__(self, arms, order, **options):
        self.pulls, self.order, self.options = Pulls(arms), order, options

    def best(self, values):
        """The index of the largest tuple; of equal ones that with the larger `order`."""
        return max(range(len(values)), key=lambda k: (*values[k], self.order[k]))

    def ask(self):
        means = self.means()
        drawn = [(n, round(m, 9)) for n, m in zip(self.pulls.counts, means, strict=True)]
        return False, self.best(drawn), self.best([(round(x, 9),) for x in self.indices(means)])

    def tell(self, arm, reward):
        self.pulls.see(arm, reward)


class LinUCB(Twin):
    """`alpha` is a number, the name of a threshold, or None for the width of the paper."""

    def __init__(self, arms, order, *, alpha, disjoint, **options):
        super().__init__(arms, order, **options)
        self.alpha, self.disjoint = alpha, disjoint

    def matrix(self, arm):
        """V: of all draws, or of those of one arm."""
        pulls, v0 = self.pulls, self.options["v0"]
        if not self.disjoint:
            return pulls.matrix(v0)
        x = pulls.arms[arm]
        return v0 * np.eye(pulls.dim) + pulls.counts[arm] * np.outer(x, x)

    def means(self):
        arms, sums = self.pulls.arms, self.pulls.sums
        moments = [arms[k] * sums[k] if self.disjoint else arms.T @ sums for k in range(len(arms))]
        return [x @ np.linalg.solve(self.matrix(k), moments[k]) for k, x in enumerate(arms)]

    def radius(self):
        """The radius of OFUL, with the determinant or an upper bound of it."""
        o, pulls = self.options, self.pulls
        squares = [x @ x for x in pulls.arms]
        dim = pulls.num_arms if self.disjoint else pulls.dim
        if self.disjoint:
            logdet = sum(np.log1p(pulls.counts * squares / o["v0"]))
        else:
            logdet = np.linalg.slogdet(pulls.matrix(o["v0"]) / o["v0"])[1]
        if self.alpha == "self_normalised":
            bound = dim * math.log(1 + pulls.draws * max(squares) / (o["v0"] * dim))
            assert bound >= logdet - 1e-9
            logdet = bound
        bias = math.sqrt(o["v0"] / o["noise_var"]) * o["theta_norm"]
        return math.sqrt(2 * math.log(1 / o["delta"]) + logdet) + bias

    def indices(self, means):
        o, width = self.options, self.alpha
        if width is None:
            width = math.sqrt(o["noise_var"]) * (1 + math.sqrt(math.log(2 / o["delta"]) / 2))
        elif isinstance(width, str):
            width = math.sqrt(o["noise_var"]) * self.radius()
        arms = self.pulls.arms
        return [
            mean + width * math.sqrt(x @ np.linalg.solve(self.matrix(k), x))
            for k, (x, mean) in enumerate(zip(arms, means, strict=True))
        ]


class LinTS(Twin):
    """`normal(t) -> [d]` are its normal draws; the root of V^-1 is updated by Potter's formula."""

    def __init__(self, arms, order, *, normal, scale, **options):
        super().__init__(arms, order, **options)
        self.normal, self.scale = normal, scale
        self.root = np.eye(arms.shape[1]) / math.sqrt(options["v0"])

    def means(self):
        inverse = np.linalg.inv(self.pulls.matrix(self.options["v0"]))
        np.testing.assert_allclose(self.root @ self.root.T, inverse, rtol=1e-8, atol=1e-12)
        return self.pulls.arms @ inverse @ (self.pulls.arms.T @ self.pulls.sums)

    def indices(self, means):
        o, t, scale = self.options, self.pulls.draws + 1, self.scale
        if scale is None or scale == "theory":
            scale = math.sqrt(o["noise_var"])
        if self.scale == "theory":
            scale *= math.sqrt(9 * self.pulls.dim * math.log(t / o["delta"]))
        return means + scale * self.pulls.arms @ self.root @ self.normal(t - 1)

    def tell(self, arm, reward):
        x = self.pulls.arms[arm]
        r = self.root.T @ x
        s = 1 + r @ r
        self.root = self.root - np.outer(self.root @ r, r) / (s + math.sqrt(s))
        super().tell(arm, reward)


def in_step(build, names, twin_of, settings, shape, rounds=80):
    """Play twin and package on some instances with arms of about the same length."""
    hand, drawn = Hand(build, *names), []
    for seed, numbers in enumerate(settings):
        rng, arms, theta = linear_problem(seed, *shape)
        lengths = rng.uniform(0.9, 1.1, len(arms))  # similar, but no two equal
        arms *= (lengths / np.linalg.norm(arms, axis=1))[:, None]
        key, facts = jax.random.key(seed), (jnp.asarray(arms), None, numbers)
        order = hand.init(facts, jax.random.fold_in(key, episode.INIT)).order
        options = dict(zip(names, numbers, strict=True))
        twin = twin_of(arms, np.asarray(order), key, **options)
        reward = normal_rewards(rng, arms @ theta, options["noise_var"])
        hand.play(twin, facts, reward, key, rounds=rounds, compare=same_arm)
        drawn.append((twin.pulls.counts > 0).sum())
    assert max(drawn) >= 3


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize(
    ("alpha", "disjoint", "shape"),
    [
        (None, False, (5, 3)),
        (0.5, False, (9, 2)),
        ("self_normalised_det", False, (9, 2)),
        ("self_normalised", True, (5, 3)),
        pytest.param("self_normalised", False, (9, 2), marks=pytest.mark.slow),
        pytest.param("self_normalised_det", True, (5, 3), marks=pytest.mark.slow),
    ],
)
def test_lin_ucb(alpha, disjoint, shape):
    names = ("delta", "noise_var", "theta_norm", "v0")

    def twin_of(arms, order, key, **options):
        return LinUCB(arms, order, alpha=alpha, disjoint=disjoint, **options)

    build = partial(jb.lin_ucb, alpha=alpha, disjoint=disjoint)
    settings = [(0.05, 0.5, 1.0, 1.0), (0.2, 1.5, 1.3, 0.2)]
    in_step(build, names, twin_of, settings, shape)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("scale", [None, "theory"])
def test_lin_ts(scale):
    names, dim = ("delta", "noise_var", "v0"), 3

    def twin_of(arms, order, key, **options):
        def normal(t):
            return np.asarray(jax.random.normal(episode.ask_key(key, t), (dim,), float))

        return LinTS(arms, order, normal=normal, scale=scale, **options)

    build = partial(jb.lin_ts, scale=scale)
    in_step(build, names, twin_of, [(0.05, 0.5, 1.0), (0.2, 1.5, 0.2)], (6, dim))


def test_on_basis_vectors_both_forms_of_lin_ucb_agree():
    """Nothing is shared between arms that are orthogonal."""
    basis, more = jb.instances.canonical(5, gap=1.0), {"replications": 50, "horizon": 60}
    shared, disjoint = (
        jb.simulate(basis, partial(jb.lin_ucb, alpha=0.513, disjoint=d), **more)
        for d in (False, True)
    )
    np.testing.assert_array_equal(shared.arm_pulls, disjoint.arm_pulls)
    np.testing.assert_array_equal(shared.answer, disjoint.answer)


SOARE = jb.instances.soare(3, angle=0.9)


def late_share(build):
    """Regret of the last half of the rounds over that of the first."""
    runs = jb.simulate(SOARE, build, replications=200, horizon=1000, seed=4)
    half = np.interp(500, runs.rounds, runs.regret.mean(0))
    return (runs.regret[:, -1].mean() - half) / half


@pytest.mark.parametrize("build", [jb.lin_ucb, pytest.param(jb.lin_ts, marks=pytest.mark.slow)])
def test_regret_grows_sublinearly(build):
    """It does not if each reward is assigned to the next arm."""
    assert late_share(build) < 0.4
    with misfiled(build) as twin:
        assert late_share(twin) > 0.8
