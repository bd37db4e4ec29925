"""How GLM-TSL and GLM-FPL are related, and what they do where no fit exists."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from params import params
from scipy import stats

import jaxbandits as jb
from jaxbandits.engine import episode
from jaxbandits.kernels.estimate import irls
from jaxbandits.kernels.estimate.links import LINKS

ARMS = np.array([[1.0, 0.0], [0.6, 0.9], [-0.4, 1.0], [0.9, -0.7]])
THETA = np.array([0.8, -0.5])


@partial(jax.jit, static_argnums=0)
def state_of(build, numbers, counts, sums):
    """The state after these counts and sums, and its fit; `numbers` are options."""
    algorithm = build(jnp.asarray(ARMS), **numbers)
    state = algorithm.init(jax.random.key(0))._replace(counts=counts, sums=sums)
    family = build.keywords["family"]
    tables = (jnp.asarray(ARMS), counts.astype(float), sums)
    fit = irls.fit(*tables, family=family, ridge=1e-3, init=jnp.zeros(2))
    names = type(state.fit)._fields
    return state._replace(fit=type(state.fit)(*(getattr(fit, n) for n in names))), fit


@partial(jax.jit, static_argnums=0)
def moves(build, numbers, state, keys):
    """The moves of a state, for each of the keys."""
    algorithm = build(jnp.asarray(ARMS), **numbers)
    return jax.vmap(lambda key: algorithm.ask(key, state))(keys)


def chosen(build, numbers, counts, sums, number, seed):
    """How often each arm is the move after these counts and sums, over so many keys."""
    state, _ = state_of(build, numbers, counts, sums)
    asked = moves(build, numbers, state, jax.random.split(jax.random.key(seed), number))
    return np.bincount(np.asarray(asked.arm), minlength=len(ARMS))


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
def test_on_linear_models_both_draw_from_one_distribution():
    """Identity link: both sample from `N(estimate, a^2 G^-1)`."""
    counts = np.array([6, 4, 5, 3])
    sums = counts * (ARMS @ THETA) + np.array([0.4, -0.3, 0.2, 0.9])
    tsl, fpl = (partial(build, family="gaussian") for build in (jb.glm_tsl, jb.glm_fpl))
    tables = [
        chosen(build, {"a": 1.0}, counts, sums, 20_000, seed)
        for seed, build in enumerate((tsl, fpl))
    ]
    assert (np.array(tables).sum(0) > 50).sum() >= 3  # there is something to compare
    assert stats.chi2_contingency(np.array(tables)[:, np.sum(tables, 0) > 0]).pvalue > 1e-3
    other = np.array([tables[0], chosen(fpl, {"a": 1.3}, counts, sums, 20_000, 9)])
    assert stats.chi2_contingency(other[:, other.sum(0) > 0]).pvalue < 1e-6


@pytest.mark.slow
def test_on_linear_models_both_have_one_regret():
    instance = jb.instances.linear(ARMS, THETA, noise_var=0.25)
    play = partial(jb.simulate, instance, replications=1500, horizon=60)
    first = play(partial(jb.glm_tsl, a=0.5), seed=1).regret[:, -1]
    second = play(partial(jb.glm_fpl, a=0.5), seed=2).regret[:, -1]
    wider = play(partial(jb.glm_fpl, a=1.0), seed=3).regret[:, -1]
    assert stats.ks_2samp(first, second).pvalue > 1e-3
    assert stats.ks_2samp(first, wider).pvalue < 1e-6


@pytest.mark.parametrize(
    "family",
    ["logistic", *(pytest.param(name, marks=pytest.mark.slow) for name in ("poisson", "probit"))],
)
def test_perturbed_fits_have_the_covariance_of_a_newton_step(family):
    """`a^2 H^-1 G H^-1` for many draws; where all slopes are 1/4, that of GLM-TSL with 2 a."""
    counts = np.array([30_000, 20_000, 25_000, 15_000])
    sums = counts * np.asarray(LINKS[family].mean(jnp.asarray(ARMS @ THETA)))
    build, numbers = partial(jb.glm_fpl, family=family), {"a": 0.7}
    state, fit = state_of(build, numbers, counts, sums)

    def ask(key):
        normal = jax.random.normal(key, (4,))
        return irls.estimate(
            jnp.asarray(ARMS), state.counts.astype(float),
            state.sums + 0.7 * jnp.sqrt(state.counts) * normal,
            family=family, ridge=1e-3, init=fit.theta, inverse=fit.inverse,
        ).theta  # fmt: skip

    keys = jax.random.split(jax.random.key(1), 10_000)
    perturbed = np.asarray(jax.jit(jax.vmap(ask))(keys)) - np.asarray(fit.theta)
    gram = (ARMS.T * counts) @ ARMS
    inverse = np.linalg.inv(np.asarray(fit.hessian))
    wanted = 0.49 * inverse @ gram @ inverse
    root = np.linalg.inv(np.linalg.cholesky(wanted))
    np.testing.assert_allclose(np.cov(perturbed @ root.T, rowvar=False), np.eye(2), atol=0.05)
    # The move is the arm that is best for such a draw, made from the same key.
    arms = np.argmax((perturbed[:50] + np.asarray(fit.theta)) @ ARMS.T, axis=1)
    np.testing.assert_array_equal(moves(build, numbers, state, keys[:50]).arm, arms)


LAPLACE = partial(jb.glm_tsl, family="logistic")


@pytest.mark.slow
def test_laplace_samples_have_the_inverse_hessian_as_covariance():
    counts = np.array([40, 20, 30, 10])
    sums = np.array([25.0, 6.0, 9.0, 8.0])
    _, fit = state_of(LAPLACE, {"a": 1.5}, counts, sums)
    shares = chosen(LAPLACE, {"a": 1.5}, counts, sums, 40_000, 3) / 40_000
    inverse = np.linalg.inv(np.asarray(fit.hessian))
    rng = np.random.default_rng(0)
    drawn = rng.multivariate_normal(fit.theta, 2.25 * inverse, 40_000)
    expected = np.bincount(np.argmax(drawn @ ARMS.T, axis=1), minlength=4) / 40_000
    np.testing.assert_allclose(shares, expected, atol=0.015)


def test_the_parameter_of_a_laplace_sample_has_the_inverse_hessian_as_covariance():
    counts, sums = np.array([40, 20, 30, 400]), np.array([25.0, 6.0, 9.0, 250.0])
    state, fit = state_of(LAPLACE, {"a": 1.5}, counts, sums)
    keys = jax.random.split(jax.random.key(5), 40_000)
    sampled = moves(LAPLACE, {"a": 1.5}, state, keys).info[1].theta
    hessian = np.asarray(fit.hessian)
    white = (np.asarray(sampled) - np.asarray(fit.theta)) @ np.linalg.cholesky(hessian) / 1.5
    np.testing.assert_allclose(np.cov(white, rowvar=False), np.eye(2), atol=0.05)
    # With the factor transposed the covariance would be far from it.
    root = np.linalg.cholesky(hessian)
    wrong = np.linalg.solve(hessian, root.T) @ np.linalg.solve(hessian, root.T).T
    assert np.abs(root.T @ wrong @ root - np.eye(2)).max() > 0.2


LEARNERS = {
    "glm_tsl": jb.glm_tsl,
    "glm_fpl": partial(jb.glm_fpl, a=3.0),
    "glm_ucb": jb.glm_ucb,
    "ucb_glm": jb.ucb_glm,
}


def rounds_of(build):
    """A compiled function of 40 rewards: the last state, and two results of each round.

    These are its state, and the certificate of its own fit, if any.
    """

    @jax.jit
    def play(rewards):
        algorithm, key = build(jnp.asarray(ARMS)), jax.random.key(7)

        def one(state, drawn):
            number, reward = drawn
            move = algorithm.ask(episode.ask_key(key, number), state)
            state = algorithm.tell(state, move, reward)
            return state, (state, move.info[1].certificate)

        return jax.lax.scan(one, algorithm.init(key), (jnp.arange(40), rewards))

    return lambda rewards: play(np.asarray(rewards, float))


def missed(states, certificates, first):
    """The numbers of fits in these rounds with status 1, 2 and 3."""
    codes = [np.asarray(states.fit.status)]
    if certificates is not None:
        codes.append(np.asarray(certificates[0])[first:])
    return np.bincount(np.concatenate(codes), minlength=4)[1:].tolist()


@pytest.mark.parametrize("name", params(LEARNERS, always=["glm_fpl", "ucb_glm"]))
def test_rewards_that_no_model_fits_give_finite_estimates(name):
    """All 0, all 1, or a fair coin, with a tiny ridge; fits that did not converge are reported."""
    build, ridge = partial(LEARNERS[name], ridge=1e-6), 1e-6
    coins = np.random.default_rng(1).integers(0, 2, 40)
    play = rounds_of(build)
    for rewards in (np.zeros(40), np.ones(40), coins):
        last, (states, certificates) = play(rewards)
        counts, sums, thetas = (np.asarray(x) for x in (states.counts, states.sums, states.fit[0]))
        assert np.isfinite(thetas).all()
        assert counts[-1].sum() == 40
        z = thetas @ ARMS.T
        means = 1 / (1 + np.exp(-z))
        gradients = (counts * means - sums) @ ARMS + ridge * thetas
        weights = counts * means * (1 - means)
        hessians = np.einsum("tk,ki,kj->tij", weights, ARMS, ARMS) + ridge * np.eye(2)
        moves = np.linalg.solve(hessians, gradients[..., None])[..., 0]
        decrements = 0.5 * (gradients * moves).sum(1)[2:]  # the first two rounds draw a basis
        converged = np.asarray(states.fit.converged)[2:]
        assert converged.mean() > 0.9
        assert (decrements[converged] < 1e-6).all()
        reported = last.missed.report()
        found = [int(reported[key]) for key in ("capped", "stalled", "nonfinite")]
        assert found == missed(states, certificates, first=2)
        assert int(reported["unconverged"]) == sum(found)


def test_missed_fits_are_counted(monkeypatch):
    """With one Newton step per fit, many miss their tolerance, and each of them is counted."""
    whole = irls.estimate

    def short(*args, **options):
        return whole(*args, **options | {"max_iterations": 1, "tol": 1e-13})

    monkeypatch.setattr(irls, "estimate", short)
    coins = np.random.default_rng(2).integers(0, 2, 40)
    last, (states, certificates) = rounds_of(partial(jb.glm_fpl, a=2.0))(coins)
    reported = last.missed.report()
    found = [int(reported[key]) for key in ("capped", "stalled", "nonfinite")]
    assert found == missed(states, certificates, first=2)
    assert found[0] > 10
    worst = np.concatenate([states.fit.decrement, certificates[1][2:]])
    np.testing.assert_allclose(reported["worst_decrement"], worst[np.isfinite(worst)].max())
    assert reported["worst_decrement"] > 1e-13


def test_a_longer_run_begins_as_a_shorter_one():
    """The regret of the first rounds does not depend on how many follow."""
    cube = jb.instances.logistic_cube(jax.random.key(6), 9, 3, half_width=1.0)
    short, long = (
        jb.simulate(cube, jb.glm_fpl, replications=8, horizon=n, record=range(1, 61))
        for n in (60, 90)
    )
    np.testing.assert_allclose(short.regret, long.regret, rtol=1e-9)
    assert episode.BLOCK < 60


@pytest.mark.parametrize(
    ("build", "moves"),
    [
        pytest.param(partial(jb.epsilon_greedy, rate=0.0), True, marks=pytest.mark.slow),
        pytest.param(jb.glm_ucb, True, marks=pytest.mark.slow),
        pytest.param(jb.ucb_glm, True, marks=pytest.mark.slow),
        (jb.glm_tsl, False),
        pytest.param(jb.glm_fpl, False, marks=pytest.mark.slow),
    ],
)
def test_arms_of_equal_rewards_tie(build, moves):
    """Three orthogonal arms whose reward is always 1: none is preferred for its index."""
    instance = jb.instances.bernoulli(np.eye(3), np.ones(3))
    play = partial(jb.simulate, instance, build, replications=300)
    answers = np.bincount(play(horizon=3).answer, minlength=3)
    assert stats.chisquare(answers).pvalue > 1e-3
    if moves:
        fourth = play(horizon=4).arm_pulls.sum(0) - 300
        assert stats.chisquare(fourth).pvalue > 1e-3


@pytest.mark.slow
def test_every_fit_converges_from_large_first_rewards():
    """With Poisson rewards, after one draw of each arm."""
    rng = np.random.default_rng(0)
    arms, theta = rng.normal(size=(10, 4)), rng.normal(size=4)
    arms /= np.linalg.norm(arms, axis=1)[:, None]
    instance = jb.instances.glm(arms, 3 * theta / np.linalg.norm(theta), family="poisson")
    assert instance.means.max() > 10
    build = partial(jb.ucb_glm, begin="every")
    runs = jb.simulate(instance, build, replications=30, horizon=25, seed=1)
    assert runs.info["unconverged"].sum() == 0
