"""XY-static: the fixed allocation that measures all differences best."""

import jax.numpy as jnp

from ..core import Algorithm, Move
from ..kernels import growing, pick, radius, spd
from ..kernels.once import once_for_equal
from ..kernels.xy_designs import DESIGNS, named
from ..options import choice, constructor, positive, probability


@constructor(
    spans=True,
    delta=probability,
    noise_var=positive,
    variant=choice("rage"),
    growth=positive,
    powers=choice(*growing.POWERS),
    allocation=choice(*growing.ALLOCATIONS),
    singular=choice(*growing.SINGULAR),
    design=choice(*DESIGNS),
    tol=positive,
)
def xy_static(
    arms,
    targets=None,
    *,
    delta=0.05,
    noise_var=1.0,
    variant="rage",
    growth=1.35,
    powers="all",
    allocation="iid",
    singular="wait",
    design="interior_point",
    tol=None,
):
    """XY-static (Soare, Lazaric, Munos, 2014).

    The design w minimises the largest `||z - z'||^2` in A(w)^-1.
    "rage" (Fiez et al., 2019): batches of `ceil(growth^t)` draws from w, t = 1, 2, ..; stop with
    the empirical best z when for all others
    `||z - z'||_{A(n)^-1} sqrt(2 log(2 M^2 t^2 / delta)) < (z - z')^T theta_hat`.

    Args:
      arms: `[K, d]` features that can be drawn; they must span.
      targets: `[M, d]` features to choose among, the arms by default.
      delta: error probability, in (0, 1).
      noise_var: sub-Gaussian variance of a reward.
      variant: "rage", the experiments it is taken from.
      growth: of the batches.
      powers: "all" t, or "odd" as in the published program, which counts each batch twice.
      allocation: "iid" draws from w, or "rounded" efficiently, so that each arm of the support
        is drawn from the start.
      singular: "wait" with the test until the draws span, or "ignore" as in the published
        program, to which a direction not yet measured looks certain.
      design: "interior_point", certified, or "frank_wolfe", that of the RAGE experiments.
      tol: relative accuracy of w, 1e-3 by default; for Frank-Wolfe the step at which it ends, 0.01
        by default.
    Returns:
      An `Algorithm` that asks for a batch and answers the index of a target.
    Raises:
      ValueError: a bad option, or arms that do not span.
    Deviations:
      "all", "wait" and "interior_point" by default, see above. The published program counts d
      draws that it does not make.
    Reference:
      M. Soare, A. Lazaric, R. Munos, "Best-arm identification in linear bandits", NeurIPS 2014.
      https://arxiv.org/abs/1409.6110
    Example:
      >>> import jaxbandits as jb
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), jb.xy_static, replications=20)
      >>> int(runs.correct.sum())
      20
    """
    targets = arms if targets is None else targets
    num_targets = targets.shape[0]
    solve, every_arm = named(design, tol), jnp.arange(arms.shape[0])

    @once_for_equal
    def allocate():
        return solve.between(arms, targets, jnp.ones(num_targets, bool)).weights

    def init(key):
        return growing.begin(arms, allocate())

    def ask(key, state):
        counts = growing.batch(key, state, growth, powers, allocation)
        return Move(every_arm, counts, done=state.done, answer=state.answer)

    def tell(state, move, total):
        totals = growing.added(state.totals, move.count, total)
        found = growing.estimate(arms, totals, singular)
        best = pick.best(targets @ found.theta).arm
        apart = pick.at(targets, best) - targets
        width = radius.static(delta, growing.power(totals.batches, powers), num_targets**2, 2.0)
        sure = (
            jnp.sqrt(noise_var * spd.quadratic(apart, found.inverse)) * width < apart @ found.theta
        )
        done = (sure | (jnp.arange(num_targets) == best)).all() & found.settled
        return state._replace(totals=totals, done=done, answer=best)

    return Algorithm(init, ask, tell)
