"""Sets of likely parameters against general solvers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

import jaxbandits as jb
from jaxbandits.kernels.confidence import likelihood_set
from jaxbandits.kernels.estimate import newton

PARTITIONS = {
    "logistic": lambda z: np.logaddexp(0, z),
    "poisson": np.exp,
    "gaussian": lambda z: z**2 / 2,
}
MEANS = {"logistic": special.expit, "poisson": np.exp, "gaussian": lambda z: z}
NORM = 2.0


@partial(jax.jit, static_argnames="family")
def solve(arms, counts, sums, level, family):
    problem = newton.problem_of(arms, counts, sums, family, 0.0)
    norm, init = jnp.array(NORM), jnp.zeros(arms.shape[1])
    likely = likelihood_set.likeliest(problem, norm, init)
    concordance = 0.0 if family == "gaussian" else 1.0
    bounds = likelihood_set.outer_bounds(problem, likely.theta, level, norm, concordance)
    order = jnp.arange(arms.shape[0])
    highest = likelihood_set.highest(problem, likely, level, norm, bounds, order)
    steepness = likelihood_set.steepness(problem, norm)
    return likely, bounds, highest, steepness, likelihood_set.contains(problem, likely, level, init)


class Plain:
    """L and its gradient in NumPy, and optima by SciPy."""

    def __init__(self, arms, counts, sums, family):
        self.arms, self.counts, self.sums = arms, counts, sums
        self.partition, self.mean = PARTITIONS[family], MEANS[family]

    def value(self, theta):
        z = self.arms @ theta
        return (self.counts * self.partition(z) - self.sums * z).sum()

    def gradient(self, theta):
        return self.arms.T @ (self.counts * self.mean(self.arms @ theta) - self.sums)

    def inside(self, level):
        """Constraints of the set."""
        return [
            {
                "type": "ineq",
                "fun": lambda t: np.array([level - self.value(t), NORM**2 - t @ t]),
                "jac": lambda t: -np.stack([self.gradient(t), 2 * t]),
            }
        ]

    def least(self):
        ball = {"type": "ineq", "fun": lambda t: NORM**2 - t @ t, "jac": lambda t: -2 * t}
        zero, options = np.zeros(self.arms.shape[1]), {"ftol": 1e-13, "maxiter": 300}
        return optimize.minimize(
            self.value, zero, jac=self.gradient, method="SLSQP", constraints=ball, options=options
        ).x

    def highest(self, x, start, level):
        return -optimize.minimize(
            lambda t: -x @ t,
            start,
            jac=lambda t: -x,
            method="SLSQP",
            constraints=self.inside(level),
            options={"ftol": 1e-12, "maxiter": 300},
        ).fun


def data(family, seed, total, num_arms=8, dim=3):
    rng = np.random.default_rng(seed)
    arms, theta = rng.normal(size=(num_arms, dim)), rng.normal(size=dim)
    theta *= rng.uniform(0.3, 1.0) * NORM / np.linalg.norm(theta)
    arms /= 1.0 + np.linalg.norm(arms, axis=1)[:, None]
    counts = rng.multinomial(total, rng.dirichlet(np.ones(num_arms)))
    means = MEANS[family](arms @ theta)
    sums = {
        "logistic": lambda: rng.binomial(counts, means),
        "poisson": lambda: rng.poisson(counts * means),
        "gaussian": lambda: counts * means + np.sqrt(counts) * rng.normal(size=num_arms),
    }[family]()
    return arms, counts.astype(float), sums.astype(float)


def twice(arms, counts, sums):
    """Every arm twice, so that the largest maximum has to be found to the accuracy."""
    none = np.zeros(len(arms))
    return [np.concatenate(pair) for pair in ((arms, arms), (counts, none), (sums, none))]


@pytest.mark.parametrize("family", sorted(PARTITIONS))
def test_the_highest_arm_is_that_of_a_general_solver(family):
    with jax.enable_x64(True):
        for seed, total in enumerate((4, 40, 400, 20_000)):
            arms, counts, sums = data(family, seed, total)
            level = 3.0 + seed
            likely, bounds, highest, *_ = solve(*twice(arms, counts, sums), level, family)
            plain = Plain(arms, counts, sums, family)
            least = plain.least()
            np.testing.assert_allclose(likely.value, plain.value(least), rtol=1e-9, atol=1e-7)
            start, top = 0.99 * np.asarray(likely.theta), float(likely.value) + level
            values = np.array([plain.highest(x, start, top) for x in arms])
            np.testing.assert_allclose(highest.value, values.max(), atol=2e-6)
            assert highest.excess < 1e-6
            assert values[int(highest.arm) % len(arms)] > values.max() - 1e-6
            assert (np.asarray(bounds).reshape(2, -1) > values - 1e-6).all()
            assert bool(likely.converged)
            assert not bool(highest.missed)


def test_value_plus_excess_is_an_upper_bound_at_every_step():
    with jax.enable_x64(True):
        arms, counts, sums = data("logistic", 0, 60)
        likely, *_ = solve(arms, counts, sums, 3.0, "logistic")
        level = likely.value + 3.0
        top = Plain(arms, counts, sums, "logistic").highest(
            arms[2], np.asarray(likely.theta), float(level)
        )

        @jax.jit
        def walked(arms, counts, sums, level, theta):
            problem = newton.problem_of(arms, counts, sums, "logistic", 0.0)
            norm = jnp.array(NORM)
            goal = likelihood_set.Goal(arms[2], level, norm)
            product = 0.3 * norm * jnp.sqrt(arms[2] @ arms[2])
            facts = (problem, goal, theta, jnp.array([0.2, 0.1]), *likelihood_set._unmoved(product))
            begin = likelihood_set._evaluated(*facts)

            def step(now, _):
                seen = goal.direction @ now.theta, now.excess(norm), now.slacks
                return likelihood_set._step(problem, goal, now), seen

            return jax.lax.scan(step, begin, length=25)[1]

        facts = arms, counts, sums, level, 0.9 * np.asarray(likely.theta)
        values, excess, slacks = map(np.asarray, walked(*facts))
        assert (values - 1e-7 <= top).all()
        assert (top <= values + excess + 1e-7).all()
        assert (slacks > 0).all()
        assert excess[0] > 0.1
        assert excess[-1] < 1e-7


def test_maxima_of_nearly_parallel_arms_are_accurate():
    """The curvature of the likelihood differs by a factor of a million between directions."""
    with jax.enable_x64(True):
        arms = np.array([[1.0, 0.0], [1.0, 1e-3], [0.2, 1.0]])
        counts, sums = np.array([4000.0, 4000.0, 0.0]), np.array([3000.0, 3010.0, 0.0])
        likely, bounds, highest, *_ = solve(arms, counts, sums, 5.0, "logistic")
        plain = Plain(arms, counts, sums, "logistic")
        top = float(likely.value) + 5.0
        values = np.array([plain.highest(x, 0.9 * np.asarray(likely.theta), top) for x in arms])
        _, _, exact, *_ = solve(*twice(arms, counts, sums), 5.0, "logistic")
        np.testing.assert_allclose(exact.value, values.max(), atol=2e-6)
        assert highest.value < values.max() + 2e-6 < highest.value + highest.excess + 4e-6
        assert highest.value > sorted(values)[-2]  # which is why it went no further
        assert int(highest.arm) == values.argmax()
        assert not bool(highest.missed)
        assert (np.asarray(bounds) > values - 1e-6).all()


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 2, 1]])
def test_mirrored_arms_tie_although_their_maxima_are_approximate(order):
    keys = jax.random.split(jax.random.key(2), 3)
    a, b, c, d = jax.random.normal(keys[0], (4,))
    arms = jnp.array([[0.1 * d, 0.1 * d, c], [a, b, c], [b, a, c]])
    pair = jnp.array([0, 1, 1])  # the last two arms have the same rewards
    counts = jax.random.randint(keys[1], (200, 2), 1, 30).astype(float)[:, pair]
    sums = counts * jax.random.uniform(keys[2], (200, 2))[:, pair]
    norm, level = jnp.array(NORM), jnp.array(1.5)

    @jax.vmap
    def chosen(counts, sums):
        problem = newton.problem_of(arms, counts, sums, "gaussian", 0.0)
        likely = likelihood_set.likeliest(problem, norm, jnp.zeros(3))
        bounds = likelihood_set.outer_bounds(problem, likely.theta, level, norm, 0.0)
        return likelihood_set.highest(problem, likely, level, norm, bounds, jnp.array(order)).arm

    found = np.asarray(jax.jit(chosen)(counts, sums))
    assert set(found) <= {0, order.index(2)}
    assert (found > 0).mean() > 0.5


def test_walks_keep_their_distance_to_the_border_of_the_ball():
    """Steps that use up 99% of a slack, however small it is, get stuck for two of these radii."""
    with jax.enable_x64(True):
        instance = jb.instances.logistic_cube(jax.random.key(1), 20, 5, half_width=1.0)
        arms, counts, sums = np.asarray(instance.arms), np.zeros(20), np.zeros(20)
        drawn = [2, 4, 7, 15, 16]
        counts[drawn], sums[drawn] = [39.0, 15.0, 3.0, 40.0, 462.0], [12.0, 2.0, 1.0, 16.0, 321.0]
        norm = jnp.linalg.norm(instance.theta)

        @jax.jit
        @partial(jax.vmap, in_axes=(None, None, None, 0))
        def missed(arms, counts, sums, radius):
            problem = newton.problem_of(arms, counts, sums, "logistic", 0.0)
            likely = likelihood_set.likeliest(problem, norm, jnp.zeros(5))
            bounds = likelihood_set.outer_bounds(problem, likely.theta, radius, norm, 1.0)
            found = likelihood_set.highest(problem, likely, radius, norm, bounds, jnp.arange(20))
            return found.missed | ~likely.converged

        assert not np.asarray(missed(arms, counts, sums, np.linspace(17.44, 52.33, 400))).any()


def test_without_data_the_longest_arm_wins():
    with jax.enable_x64(True):
        arms = np.array([[1.0, 0.0, 0.2], [0.0, 1.5, 0.0], [0.0, 0.0, 1.2]])
        problem = twice(arms, np.zeros(3), np.zeros(3))
        likely, _, highest, steepness, _ = solve(*problem, 3.0, "logistic")
        np.testing.assert_allclose(highest.value, 1.5 * NORM, rtol=1e-6)
        assert int(highest.arm) % 3 == 1
        assert float(steepness) == 0.0
        assert bool(likely.converged)


@pytest.mark.parametrize("family", sorted(PARTITIONS))
def test_steepness_bounds_every_gradient_in_the_ball(family):
    with jax.enable_x64(True):
        arms, counts, sums = data(family, 5, 200)
        *_, steepness, _ = solve(arms, counts, sums, 3.0, family)
        plain, rng, longest = Plain(arms, counts, sums, family), np.random.default_rng(0), 0.0
        for _ in range(300):
            theta = rng.normal(size=3)
            theta *= NORM / np.linalg.norm(theta)
            longest = max(longest, np.linalg.norm(plain.gradient(theta)))
        assert 0.3 * steepness < longest < steepness


def test_the_set_contains_a_theta_from_its_level_on():
    with jax.enable_x64(True):
        arms, counts, sums = data("logistic", 1, 300)
        plain = Plain(arms, counts, sums, "logistic")
        off = plain.value(np.zeros(3)) - plain.value(plain.least())
        for level, inside in ((1.01 * off, True), (0.99 * off, False)):
            assert bool(solve(arms, counts, sums, float(level), "logistic")[-1]) == inside


def test_steps_are_counted_up_to_the_cap():

    @jax.jit
    def walked():
        tables = jnp.eye(2), jnp.array([5.0, 5.0]), jnp.array([4.0, 1.0])
        problem = newton.problem_of(*tables, "logistic", 0.0)
        goal, one = likelihood_set.Goal(jnp.zeros(2), None, jnp.array(NORM)), jnp.ones(())
        prices = jnp.array([0.0, 0.5])
        begin = likelihood_set._evaluated(
            problem, goal, jnp.zeros(2), prices, one, one, jnp.array(0)
        )

        def step(walk, _):
            return likelihood_set._step(problem, goal, walk), (walk.steps, walk.stuck())

        end, seen = jax.lax.scan(step, begin, length=3)
        return *seen, end._replace(steps=jnp.array(likelihood_set.MOST)).stuck()

    steps, stuck, stuck_at_the_cap = walked()
    assert np.asarray(steps).tolist() == [0, 1, 2]
    assert not np.asarray(stuck).any()
    assert bool(stuck_at_the_cap)
