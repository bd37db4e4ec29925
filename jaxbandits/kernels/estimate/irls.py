"""Maximum likelihood of a generalised linear model from counts and reward sums.

Newton steps (iteratively reweighted least squares), see `newton`, on
`f(theta) = sum_k [n_k b(z_k) - s_k z_k] + ridge/2 ||theta||^2`, `z = X theta`. The cost does not
depend on the number of draws.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from ...types import Scalar, Whole
from ..linalg import spd
from ..tracing import traced_once
from . import chord, newton
from .links import LINKS
from .newton import CAPPED, CONVERGED, NONFINITE, STALLED

SOON = 5  # steps with an old Hessian, after which an estimate gets a new one


class Fit(NamedTuple):
    """A fit and its certificate."""

    theta: Float[Array, " d"]
    hessian: Float[Array, "d d"]  # one last, short step before theta; ridge included
    iterations: Int[Array, ""]  # Newton steps, each with a new Hessian
    converged: Bool[Array, ""]
    decrement: Float[Array, ""]  # g^T H^-1 g / 2 there, about f - min f and more than at theta
    status: Int[Array, ""]  # 0 converged, 1 cap reached, 2 no descent, 3 not finite
    inverse: Float[Array, "d d"]  # of the Hessian
    factor: Float[Array, "d d"]  # its lower Cholesky factor


@traced_once
def fit(
    arms: Float[Array, "K d"],
    counts: Float[Array, " K"],
    sums: Float[Array, " K"],
    *,
    family: str,
    ridge: Scalar,
    init: Float[Array, " d"],
    inverse: Float[Array, "d d"] | None = None,
    slope: chord.Slope | None = None,
    tol: Scalar = 1e-6,
    max_iterations: Whole = 30,
) -> Fit:
    """Minimise f from `init`; a stop short of `tol` shows in `converged` and `status`.

    Args:
      sums: reward sums; perturbed sums outside [0, n_k] are welcome where `ridge > 0`.
      inverse: of a Hessian near `init`, such as that of the fit before one more draw. Steps
        with it come first, and usually no Newton step is needed after them.
      slope: at `init`, if it is known (see `after_draw`): one of those steps is then free.
      tol: largest Newton decrement of a converged fit (affine invariant, in units of f).
    """
    problem = newton.problem_of(arms, counts, sums, family, ridge)
    zero = jnp.zeros((), int)
    if inverse is not None:
        init = chord.approach(problem, init, inverse, tol, slope)
    begin = newton.evaluated(problem, init, zero, jnp.full((), jnp.inf, arms.dtype))
    return _end(newton.search(problem, begin, tol, max_iterations), tol)


def _end(search, tol):
    """The `Fit` at the end of a search."""
    converged = search.decrement <= tol
    capped = jnp.where(search.status == CONVERGED, CAPPED, search.status)
    return Fit(
        # A converged search has computed its next step already.
        theta=jnp.where(converged, search.theta - search.move, search.theta),
        hessian=search.hessian,
        iterations=search.iterations,
        converged=converged,
        decrement=search.decrement,
        status=jnp.where(converged, CONVERGED, capped),
        inverse=search.inverse,
        factor=search.factor,
    )


class Estimate(NamedTuple):
    """A maximum likelihood estimate and its certificate, without a Hessian of its own."""

    theta: Float[Array, " d"]
    inverse: Float[Array, "d d"]  # of a Hessian near theta, not at it
    iterations: Int[Array, ""]  # Newton steps, none where steps with the old inverse did
    converged: Bool[Array, ""]
    decrement: Float[Array, ""]  # g^T B g / 2 there, B the inverse
    status: Int[Array, ""]  # as of a `Fit`


@traced_once
def estimate(
    arms: Float[Array, "K d"],
    counts: Float[Array, " K"],
    sums: Float[Array, " K"],
    *,
    family: str,
    ridge: Scalar,
    init: Float[Array, " d"],
    inverse: Float[Array, "d d"],
    slope: chord.Slope | None = None,
    tol: Scalar = 1e-6,
    max_iterations: Whole = 30,
) -> Estimate:
    """Theta alone, several times as fast as `fit` where only a draw was added since the last.

    Steps with `inverse`, that of a Hessian near `init` (see `spd.added`), come first. They aim at
    a thousandth of `tol`, because the inverse is not that of the Hessian at theta. Newton steps,
    which compute a new inverse, follow only where they do not converge quickly. Arguments are
    those of `fit`.
    """
    problem = newton.problem_of(arms, counts, sums, family, ridge)
    near = chord.follow(problem, init, inverse, lambda now: now.settled(tol), SOON, slope)
    settled, nothing = near.settled(tol), jnp.zeros_like(inverse)
    # The first step has length 0 and does not count: it computes the Hessian at `near.theta`, and
    # only a search that is not settled takes it.
    begin = newton.Search(
        theta=near.theta,
        hessian=nothing,
        inverse=inverse,
        factor=nothing,
        move=jnp.zeros_like(init),
        decrement=jnp.where(settled, 0.0, 2.0 * tol),
        careful=jnp.array(False),
        iterations=jnp.array(-1, int),
        status=jnp.zeros((), int) + CONVERGED,
        ridge=problem.ridge,
        eased=jnp.array(False),
    )
    found = _end(newton.search(problem, begin, tol, max_iterations), tol)
    return Estimate(
        theta=jnp.where(settled, near.theta - near.move, found.theta),
        inverse=found.inverse,
        iterations=jnp.maximum(found.iterations, 0),
        converged=found.converged,
        decrement=jnp.where(settled, near.decrement, found.decrement),
        status=found.status,
    )


class Missed(NamedTuple):
    """How many fits of a run missed their tolerance, by status, and by how much at worst."""

    capped: Int[Array, ""]
    stalled: Int[Array, ""]
    nonfinite: Int[Array, ""]
    worst: Float[Array, ""]  # the largest decrement of a fit that was finite

    def and_of(
        self,
        status: Int[Array, ""],
        decrement: Float[Array, ""],
        unless: Bool[Array, ""] | bool = False,
    ) -> "Missed":
        """With one more fit; the fit does not count where `unless` is True."""
        status = jnp.where(unless, CONVERGED, status)
        counted = (status != CONVERGED) & jnp.isfinite(decrement)
        return Missed(
            capped=self.capped + (status == CAPPED),
            stalled=self.stalled + (status == STALLED),
            nonfinite=self.nonfinite + (status == NONFINITE),
            worst=jnp.where(counted, jnp.maximum(self.worst, decrement), self.worst),
        )

    def report(self) -> dict[str, Array]:
        """The diagnostics that results keep."""
        return {
            "unconverged": self.capped + self.stalled + self.nonfinite,
            "capped": self.capped,
            "stalled": self.stalled,
            "nonfinite": self.nonfinite,
            "worst_decrement": self.worst,
        }


def none_missed(dtype: DTypeLike) -> Missed:
    """Before any fit."""
    zero = jnp.zeros((), int)
    return Missed(zero, zero, zero, jnp.zeros((), dtype))


def without_data(dim: int, ridge: Scalar, dtype: DTypeLike) -> Fit:
    """The fit before any draw: theta is 0."""
    eye, zero = jnp.eye(dim, dtype=dtype), jnp.zeros((), int)
    certificate = (zero, jnp.array(True), jnp.zeros((), dtype), zero + CONVERGED)
    root = jnp.sqrt(jnp.asarray(ridge, dtype))
    return Fit(jnp.zeros(dim, dtype), eye * ridge, *certificate, eye / ridge, root * eye)


def estimate_without_data(dim: int, ridge: Scalar, dtype: DTypeLike) -> Estimate:
    """The same as an `Estimate`."""
    found = without_data(dim, ridge, dtype)
    return Estimate(*(getattr(found, name) for name in Estimate._fields))


def after_draw(
    found: Fit | Estimate,
    family: str,
    x: Float[Array, " d"],
    reward: Float[Array, ""],
) -> tuple[Float[Array, "d d"], chord.Slope]:
    """The inverse Hessian and the slope once an arm with features x has been drawn again.

    Theta is unchanged. The slope is that of the new reward alone: before, it was nearly 0.
    """
    mean, variance = LINKS[family].both(x @ found.theta)
    slope = chord.Slope((mean - reward) * x, found.converged)
    return spd.added(found.inverse, x, variance), slope


def determined(
    arms: Float[Array, "K d"], counts: Float[Array, " K"], hessian: Float[Array, "d d"]
) -> Bool[Array, ""]:
    """Whether the data determine the predictor of every drawn arm: standard errors below 100.

    On separable data without ridge f falls forever, ever more slowly: the Newton decrement
    passes any tolerance while the curvature vanishes. Where arms do not span, theta is one of many.
    """
    found = spd.inverse(hessian, may_lack_rank=True)
    variances = jnp.where(counts > 0, spd.quadratic(arms, found.matrix), 0.0)
    return found.positive & (variances < 1e4).all()


def deviations(
    arms: Float[Array, "K d"], counts: Float[Array, " K"], hessian: Float[Array, "d d"]
) -> Float[Array, " K"]:
    """Standard errors of the predictors of drawn arms, 0 for others; NaN for a singular Hessian."""
    found = spd.inverse(hessian, may_lack_rank=True)
    variances = jnp.where(counts > 0, spd.quadratic(arms, found.matrix), 0.0)
    return jnp.where(found.positive, jnp.sqrt(variances), jnp.nan)
