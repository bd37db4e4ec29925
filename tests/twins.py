"""Plain NumPy twins: each algorithm as its paper prints it, without any code of the package.

A twin has `ask() -> (done, answer, what to draw)` and learns from `tell(what, rewards)`. It inverts
matrices anew in each round and finds maxima by loops.
"""

import math

import numpy as np
import scipy.optimize
from scipy.special import expit


class Pulls:
    """Counts and reward sums of a sequential learner."""

    def __init__(self, arms):
        self.arms, (self.num_arms, self.dim) = arms, arms.shape
        self.counts, self.sums = np.zeros(self.num_arms), np.zeros(self.num_arms)

    @property
    def draws(self):
        return int(self.counts.sum())

    def see(self, arm, reward):
        self.counts[arm] += 1
        self.sums[arm] += reward

    def matrix(self, v0):
        gram = sum(n * np.outer(x, x) for n, x in zip(self.counts, self.arms, strict=True))
        return v0 * np.eye(self.dim) + gram


def radius(name, pulls, *, delta, noise_var, v0, theta_norm):
    """C_t of the named threshold: a width is `sigma C_t ||y||` in the inverse of V = v0 I + ..."""
    t, d, num_arms = pulls.draws, pulls.dim, pulls.num_arms
    bias = math.sqrt(v0) * theta_norm / math.sqrt(noise_var)
    logdet = np.linalg.slogdet(pulls.matrix(v0))[1] - d * math.log(v0)
    length = max(float(x @ x) for x in pulls.arms)
    return {
        "pairwise": math.sqrt(2 * math.log(num_arms**2 / delta) + logdet) + bias,
        "self_normalised_det": math.sqrt(2 * math.log(1 / delta) + logdet) + bias,
        "self_normalised": bias
        + math.sqrt(2 * math.log(1 / delta) + d * math.log(1 + t * length / (v0 * d))),
        "self_normalised_printed": bias
        + math.sqrt(2 * math.log(1 / delta) + d * math.log(1 + (t + 1) * length / (v0**2 * d))),
        "self_normalised_code": math.sqrt(1 / 400) * theta_norm
        + math.sqrt(2 * math.log(1 / delta) + d * math.log(1 + t * length / (noise_var / 400 * d))),
        "lucb1": math.sqrt(2 * math.log(5 * num_arms * t**4 / (4 * delta))),
        "heuristic": math.sqrt(2 * math.log((1 + math.log(t)) / delta)),
    }[name]


def furthest_behind(arms, y, counts, order):
    """The arm of least count divided by `|w_a|`, for the w of least `||w||_1` with `X^T w = y`.

    Of tied arms the one with the larger `order` wins.
    """
    both = np.hstack([arms.T, -arms.T])
    found = scipy.optimize.linprog(np.ones(2 * len(arms)), A_eq=both, b_eq=y, method="highs-ds")
    parts = np.abs(found.x[: len(arms)] - found.x[len(arms) :])
    used = [a for a in range(len(arms)) if parts[a] > 1e-9]
    return min(used, key=lambda a: (round(counts[a] / parts[a], 6), -order[a]))


class LinGapE:
    """Xu, Honda, Sugiyama, Algorithm 1; with `m`, m-LinGapE of Reda et al., Algorithm 1.

    With `order`, arms are drawn by optimal ratios, and ties are broken by `order`.
    """

    def __init__(self, arms, *, m=None, epsilon=0.0, threshold="pairwise", order=None, **facts):
        self.pulls, self.m, self.epsilon = Pulls(arms), m, epsilon
        self.threshold, self.facts, self.order = threshold, facts, order

    def ask(self):
        pulls, arms = self.pulls, self.pulls.arms
        if pulls.draws < pulls.num_arms:
            return False, None, pulls.draws
        matrix = pulls.matrix(self.facts["v0"])
        inverse = np.linalg.inv(matrix)
        means = arms @ inverse @ (arms.T @ pulls.sums)
        scale = math.sqrt(self.facts["noise_var"])
        scale *= radius(self.threshold, pulls, **self.facts)

        def index(i, j):
            y = arms[i] - arms[j]
            return means[i] - means[j] + scale * math.sqrt(y @ inverse @ y)

        inside = set(np.argsort(-means)[: self.m or 1].tolist())
        outside = [i for i in range(pulls.num_arms) if i not in inside]
        weakest = max(inside, key=lambda j: max(index(i, j) for i in outside))
        challenger = max(outside, key=lambda i: index(i, weakest))
        answer = weakest if self.m is None else np.isin(np.arange(pulls.num_arms), [*inside])
        if index(challenger, weakest) <= self.epsilon:
            return True, answer, None
        y = arms[weakest] - arms[challenger]
        if self.order is not None:
            return False, answer, furthest_behind(arms, y, pulls.counts, self.order)
        after = [y @ np.linalg.inv(matrix + np.outer(x, x)) @ y for x in arms]
        return False, answer, int(np.argmin(after))

    def tell(self, arm, reward):
        self.pulls.see(arm, reward)


class Halving:
    """Sequential halving; `estimate(counts, sums, alive) -> values [alive]` ranks the arms."""

    def __init__(self, num_arms, budget, estimate, eta=2):
        self.alive, self.estimate, self.eta = list(range(num_arms)), estimate, eta
        self.num_arms, self.stage, sizes = num_arms, 0, [num_arms]
        while sizes[-1] > 1:
            sizes.append(math.ceil(sizes[-1] / eta))
        stages = len(sizes) - 1
        self.totals = [budget // stages + (t >= stages - budget % stages) for t in range(stages)]

    def ask(self):
        """Done, answer, and the equal shares of the stage's total, which need not be whole."""
        if len(self.alive) == 1:
            return True, self.alive[0], None
        even = np.zeros(self.num_arms)
        even[self.alive] = self.totals[self.stage] / len(self.alive)
        return False, None, even

    def tell(self, counts, sums):
        values = self.estimate(counts, sums, self.alive)
        keep = math.ceil(len(self.alive) / self.eta)
        best = sorted(range(len(self.alive)), key=lambda i: -values[i])[:keep]
        self.alive, self.stage = sorted(self.alive[i] for i in best), self.stage + 1


def sample_means(counts, sums, alive):
    return [sums[k] / counts[k] for k in alive]


def least_squares(arms):
    def estimate(counts, sums, alive):
        rows = np.array([arms[k] for k in alive for _ in range(int(counts[k]))])
        rewards = [sums[k] / counts[k] for k in alive for _ in range(int(counts[k]))]
        theta = np.linalg.lstsq(rows, np.array(rewards), rcond=None)[0]
        return arms[alive] @ theta

    return estimate


def logistic_objective(theta, arms, counts, sums, ridge):
    z = arms @ theta
    value = counts @ np.logaddexp(0, z) - sums @ z + ridge / 2 * theta @ theta
    return value, arms.T @ (counts * expit(z) - sums) + ridge * theta


def logistic_hessian(theta, arms, counts, sums, ridge):
    p = expit(arms @ theta)
    return (arms.T * (counts * p * (1 - p))) @ arms + ridge * np.eye(len(theta))


def logistic_fit(arms, counts, sums, ridge):
    facts = (arms, counts, sums, ridge)
    found = scipy.optimize.minimize(
        logistic_objective,
        np.zeros(arms.shape[1]),
        facts,
        jac=True,
        hess=logistic_hessian,
        method="trust-exact",
        options={"gtol": 1e-8},
    )
    theta = found.x - np.linalg.solve(logistic_hessian(found.x, *facts), found.jac)
    assert np.abs(logistic_objective(theta, *facts)[1]).max() < 1e-7
    return theta


def max_likelihood(arms, ridge):
    def estimate(counts, sums, alive):
        theta = logistic_fit(arms[alive], counts[alive], sums[alive], ridge)
        return arms[alive] @ theta

    return estimate


def wolfe_atwood(arms, tol=1e-6):
    """D-optimal weights by Frank-Wolfe with away steps, and the rank of the arms."""
    left, values, _ = np.linalg.svd(arms, full_matrices=False)
    points = left[:, values > 1e-9 * values[0]]
    num, rank = points.shape
    weights = np.full(num, 1 / num)
    for _ in range(100_000):
        inverse = np.linalg.inv((points.T * weights) @ points)
        leverage = np.einsum("ki,ij,kj->k", points, inverse, points)
        up = int(np.argmax(leverage))
        if leverage[up] <= rank * (1 + tol):
            return weights, rank
        down = min((k for k in range(num) if weights[k] > 0), key=lambda k: leverage[k])
        k = up if leverage[up] / rank - 1 >= 1 - leverage[down] / rank else down
        floor = -weights[k] / (1 - weights[k]) if weights[k] < 1 else -math.inf
        step = (leverage[k] / rank - 1) / (leverage[k] - 1) if leverage[k] > 1 else floor
        step = max(step, floor)
        weights = (1 - step) * weights
        weights[k] = max(weights[k] + step, 0.0)
    raise AssertionError("no convergence")


def efficient_rounding(weights, total):
    """Pukelsheim's rounding: ceilings of `(N - p/2) w`, then one draw more or less at a time."""
    support = [k for k, w in enumerate(weights) if w > 0]
    counts = [0] * len(weights)
    for k in support:
        counts[k] = math.ceil((total - len(support) / 2) * weights[k])
    while sum(counts) < total:
        counts[min(support, key=lambda k: counts[k] / weights[k])] += 1
    while sum(counts) > total:
        counts[max(support, key=lambda k: (counts[k] - 1) / weights[k])] -= 1
    return np.array(counts)


class Rage:
    """Fiez et al., Algorithm 1, except that `design(alive) -> (weights, most)` is an argument.

    Weights below the first of `cuts` are dropped where the rest measures all differences and their
    largest norm is at most `most`, else those below the next. The paper has noise of variance 1;
    sums are divided by the deviation here.
    """

    def __init__(
        self, arms, targets, design, *, cuts=(1e-4, 1e-5), delta, noise_var, c=2.0, eps=0.1, exit=0
    ):
        self.arms, self.targets, self.design, self.cuts = arms, targets, design, cuts
        self.delta, self.noise_var, self.c, self.eps, self.exit = delta, noise_var, c, eps, exit
        self.alive, self.phase, self.ranks = list(range(len(targets))), 1, []
        self.best, self.doubt = None, math.inf

    def pairs(self):
        return [self.targets[a] - self.targets[b] for a in self.alive for b in self.alive]

    def inverse(self, weights):
        return np.linalg.pinv((self.arms.T * weights) @ self.arms, rcond=1e-12, hermitian=True)

    def rho(self, weights):
        inverse = self.inverse(weights)
        return max(y @ inverse @ y for y in self.pairs())

    def measures_all(self, weights):
        used, rank = self.arms[weights > 0], np.linalg.matrix_rank
        return rank(used) == rank(np.vstack([used, self.pairs()]))

    def weights(self):
        weights, most = self.design(self.alive)
        for below in self.cuts:
            cut = np.where(weights < below, 0.0, weights)
            cut = cut / cut.sum()
            if self.measures_all(cut) and self.rho(cut) <= most:
                weights = cut if (cut == 0).sum() > (weights == 0).sum() else weights
                break
        self.ranks.append(np.linalg.matrix_rank(self.arms[weights > 0]))
        return weights

    def log_term(self):
        return math.log(self.c * len(self.targets) ** 2 * self.phase**2 / self.delta)

    def ask(self):
        if len(self.alive) == 1:
            return True, self.alive[0], None
        if 0 < self.exit >= self.doubt:
            return True, self.best, None
        weights = self.weights()
        total = 2 * 4**self.phase * self.rho(weights) * (1 + self.eps) * self.log_term()
        total = math.ceil(max(total, 2 * (weights > 0).sum() / self.eps))
        return False, None, efficient_rounding(weights, total)

    def tell(self, counts, sums):
        inverse = self.inverse(counts)
        theta = inverse @ self.arms.T @ (sums / math.sqrt(self.noise_var))

        def lead(z, other):
            """How much better z is at least, up to one confidence interval."""
            y = self.targets[z] - self.targets[other]
            return y @ theta - math.sqrt((y @ inverse @ y) * 2 * self.log_term())

        alive, scores = self.alive, self.targets @ theta
        self.best = max(alive, key=lambda z: scores[z])
        self.alive = [z for z in alive if not any(lead(a, z) > 0 for a in alive if a != z)]
        doubts = [-lead(self.best, z) for z in self.alive if z != self.best]
        self.doubt = math.sqrt(self.noise_var) * max(doubts, default=0.0)
        self.phase += 1


class GlmTsl:
    """Kveton et al., Algorithm 1, logistic; `normal(t) -> [d]` are the normal draws of round t."""

    def __init__(self, arms, normal, *, a, ridge):
        self.pulls, self.normal, self.a, self.ridge = Pulls(arms), normal, a, ridge
        self.first = []
        for k in range(len(arms)):
            if np.linalg.matrix_rank(arms[[*self.first, k]]) > len(self.first):
                self.first.append(k)

    def ask(self):
        pulls, arms = self.pulls, self.pulls.arms
        if pulls.draws < pulls.dim:
            return False, None, self.first[pulls.draws]
        facts = (arms, pulls.counts, pulls.sums, self.ridge)
        theta = logistic_fit(*facts)
        answer = int(np.argmax(arms @ theta))
        lower = np.linalg.cholesky(logistic_hessian(theta, *facts))
        sampled = theta + self.a * np.linalg.inv(lower.T) @ self.normal(pulls.draws)
        return False, answer, int(np.argmax(arms @ sampled))

    def tell(self, arm, reward):
        self.pulls.see(arm, reward)
