"""OFUGLB: optimism over the likely parameters of a generalised linear bandit."""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ...conditions import theta_norm_given
from ...core import Algorithm, Move
from ...kernels import selection
from ...kernels.confidence import likelihood_radius, likelihood_set
from ...kernels.estimate import newton
from ...kernels.linalg import spd
from ...parameters import Positive, Probability, Variance, choice, constructor, number_or
from ...types import Arms, Scalar
from ..loops import glm

# M with |mu''| <= M mu'; probit's quasi-likelihood is no likelihood.
CONCORDANCE: dict[str, float] = {"logistic": 1.0, "poisson": 1.0, "gaussian": 0.0}


class State(NamedTuple):
    """What OFUGLB remembers."""

    counts: Int[Array, " K"]
    sums: Float[Array, " K"]  # of rewards in units of sigma, for "gaussian"
    likely: likelihood_set.Likeliest  # given the rewards so far; the next fit starts from it
    order: Int[Array, " K"]  # priorities that break ties
    unconverged: Int[Array, ""]


@constructor(
    requires=theta_norm_given,
    revisions=(
        "family 'gaussian': rewards are taken in units of their standard deviation, so that the "
        "last digits of a maximum depend on no unit; the set is the same",
    ),
)
def ofu_glb(
    arms: Arms,
    *,
    theta_norm: Positive | None = None,
    form: Annotated[str, choice("set", "ellipsoid")] = "set",
    level: Annotated[Scalar | str, number_or("theory")] = "theory",
    delta: Probability = 0.05,
    family: Annotated[str, choice(*CONCORDANCE)] = "logistic",
    noise_var: Variance = 1.0,
) -> Algorithm:
    """OFUGLB and OFUGLB-e (Lee, Yun, Jun, 2024).

    With L the negative log-likelihood of all rewards, least at `theta'` in the ball `||theta|| <=
    S`: draw the arm of the largest `x^T theta` over all theta in the ball for which `L(theta) -
    L(theta') <= level`.

    Args:
      arms: `[K, d]` features. Their units matter, because of the ridge.
      theta_norm: S, a bound on the norm of theta; `simulate` passes the instance's.
      form: "set"; or "ellipsoid", which draws `argmax x^T theta' + w ||x||_{V^-1}` for `w^2 = c (1
        + level)`, `c = 2 + 2 S max ||x||`, and V the Hessian of L at `theta'` plus `c / (4 S^2)`
        times I. The ellipsoid contains the set, see `likelihood_set.outer_bounds`; the ridge is
        what adds c to `w^2`.
      level: "theory", see `likelihood_radius.likelihood_ratio`; or a number, without a theorem.
      delta: chance that theta is ever outside the set; for "theory".
      family: "logistic" (rewards in [0, 1]), "poisson" or "gaussian".
      noise_var: variance, or sub-Gaussian variance, of a reward; for "gaussian".
    Returns:
      An `Algorithm` for cumulative regret (never done) that answers the arm with the largest
      estimate. `info`: rounds in which a maximum missed its accuracy (`unconverged`).
    Raises:
      ValueError: a bad option, or an unknown `theta_norm`.
    Deviations:
      The level bounds the gradient of L arm by arm, by what its rewards were; the authors' program
      has `(1 + S / 2) t`, which is more. Arms may have any length. Where the longest has length 1,
      `w^2` has the program's form, `2 (1 + S) (1 + level)`, and the ridge is `(1 + S) / (2 S^2)`,
      as it was in the program until 2025; since then the program has `1 / (8 S^2 (1 + S))`, which
      is smaller by a factor of `4 (1 + S)^2`, hence a wider ellipsoid. For "gaussian", c is 2, as
      the Hessian does not change. The longest arms tie in the first round; ties are broken at
      random.
    Setting:
      cumulative regret, generalised linear.
    Assumptions:
      generalised linear by `family`, without probit. Arms without features: as unit vectors.
    Guarantee:
      theta is always in the set, except with probability delta, with level = "theory" (default);
      the paper bounds the regret. Needs a bound on the norm of theta.
    Cost:
      a round K d^2 + d^3 for each Newton step: of the fit, and of a search for each arm that may be
      best.
    Reference:
      J. Lee, S.-Y. Yun, K.-S. Jun, "A unified confidence sequence for generalized linear models,
      with applications to bandits", NeurIPS 2024, Algorithm 1, Theorems 3.1 and 3.2.
      https://arxiv.org/abs/2407.13977
    Example:
      >>> from functools import partial
      >>> import jax
      >>> import jaxbandits as jb
      >>> instance = jb.instances.logistic_cube(jax.random.key(0), 10, 3, half_width=1.0)
      >>> algorithm = partial(jb.ofu_glb, delta=0.1)
      >>> runs = jb.simulate(instance, algorithm, horizon=100, replications=10)
      >>> int(runs.rounds[-1]), int(runs.info["unconverged"].sum())
      (100, 0)
    """
    num_arms, dim = arms.shape
    # Normal rewards, and theta, are taken in units of sigma: the likelihood then has no other
    # constant, and no step of a search depends on the unit of the rewards.
    unit = glm.reward_unit(family, noise_var)
    per_unit = 1.0 if unit is None else 1.0 / unit
    concordance, theta_norm = CONCORDANCE[family], jnp.asarray(theta_norm, arms.dtype) * per_unit
    longest = jnp.sqrt((arms**2).sum(1).max())

    def problem_of(counts, sums):
        return newton.problem_of(arms, 1.0 * counts, sums, family, 0.0)

    def level_of(problem):
        if not isinstance(level, str):
            return jnp.asarray(level, arms.dtype)
        climb = 2.0 * theta_norm * likelihood_set.steepness(problem, theta_norm)
        return likelihood_radius.likelihood_ratio(delta, dim, climb)

    def in_set(problem, state):
        above, theta = level_of(problem), state.likely.theta
        bounds = likelihood_set.outer_bounds(problem, theta, above, theta_norm, concordance)
        return likelihood_set.highest(problem, state.likely, above, theta_norm, bounds, state.order)

    def in_ellipsoid(problem, state):
        theta, factor = state.likely.theta, 2.0 + 2.0 * concordance * theta_norm * longest
        hessian = problem.information(theta)
        ridge = 0.25 * factor / theta_norm**2
        inverse = spd.inverse(hessian + ridge * jnp.eye(dim, dtype=arms.dtype)).matrix
        width = jnp.sqrt(factor * (1.0 + level_of(problem)))
        values = arms @ theta + width * jnp.sqrt(spd.quadratic(arms, inverse))
        arm = selection.argmax(selection.fine(values), state.order)
        value = selection.at(values, arm)
        return likelihood_set.Highest(arm, value, jnp.zeros_like(value), jnp.array(False))

    def init(key):
        zeros, zero = jnp.zeros(num_arms, arms.dtype), jnp.zeros((), arms.dtype)
        nothing = likelihood_set.Likeliest(jnp.zeros(dim, arms.dtype), zero, zero, jnp.array(True))
        order = selection.tie_order(key, num_arms)
        return State(jnp.zeros(num_arms, int), zeros, nothing, order, jnp.zeros((), int))

    def ask(key, state):
        problem = problem_of(state.counts, state.sums)
        highest = (in_set if form == "set" else in_ellipsoid)(problem, state)
        missed = highest.missed | ~state.likely.converged
        return Move(
            arm=highest.arm,
            count=None,
            done=jnp.array(False),
            answer=selection.argmax(arms @ state.likely.theta, state.order),
            info={"unconverged": state.unconverged + missed},
        )

    def tell(state, move, total):
        here = jnp.arange(num_arms) == move.arm
        counts, sums = state.counts + here, state.sums + jnp.where(here, total * per_unit, 0.0)
        problem = problem_of(counts, sums)
        likely = likelihood_set.likeliest(problem, theta_norm, state.likely.theta)
        return State(counts, sums, likely, state.order, move.info["unconverged"])

    return Algorithm(init, ask, tell)
