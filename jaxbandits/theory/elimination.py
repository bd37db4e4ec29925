"""Bounds of the error of GSE: as printed, as proved, and one that can be computed."""

import functools
import math
from functools import partial
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from ..algorithms import gse
from ..engine.episode import rollout, root_key, start
from ..instances import Instance
from ..instances.environments.finite import finite
from ..intervals import standard_error
from ..kernels.allocate import halving
from ..kernels.estimate import least_squares
from ..kernels.linalg import scaling, spd, subspace
from ..parameters import choice, count, nonnegative, require, size, whole
from ..precision import double, on_host
from ..system.kept_calls import kept
from ..system.named import is_named
from ..system.traces import computing
from .budget import ErrorBound, facts_of
from .given import given

__all__ = ["gse_error_bound"]

Form: TypeAlias = Literal[
    "paper", "corollary_2", "safe", "single_stage", "pairwise_paper", "pairwise_proof", "normal"
]

CLOSED: tuple[Form, ...] = ("paper", "corollary_2", "safe", "single_stage")
LINEAR: tuple[Form, ...] = ("safe", "single_stage", "pairwise_proof")  # forms without a slope
REALISED: tuple[Form, ...] = ("pairwise_paper", "pairwise_proof", "normal")


@on_host
def gse_error_bound(
    instance: Instance,
    budget: int,
    *,
    form: Form = "paper",
    eta: int = 2,
    excess: float = 0.0,
    slope: float | None = None,
    replications: int = 1000,
    seed: int = 0,
    **options: Any,
) -> ErrorBound:
    """Bounds of the error probability of `gse`.

    Closed forms, for G-optimal designs and s = ceil(log_eta K) stages of n = floor(B / s) draws:
    "paper": `2 eta log_eta(K) exp(-B D^2 c^2 / (a s^2 d log_eta K))`. Theorem 4.1 (3), the linear
    model, has a = 4 and c = 1; Theorem 5.1 (6), a generalised one, has a = 8, D the least gap of
    linear predictors and c the least slope of the mean.
    "corollary_2": "paper" with twice the a, for designs with `max_k ||x_k||^2 <= 2 d / n`: after
    O(d log log d) steps from the start of Kumar and Yildirim, as `design.fedorov` has it.
    "safe": `eta s exp(-n D^2 / (8 s^2 d (1 + excess)))`, by `||x - y||^2 <= 4 max ||x||^2`, which
    holds whatever the angles.
    "single_stage": `2 K exp(-B D^2 / (4 s^2 d))`, for eta = K (appendix E).

    Means over replications of `gse`, computed from its draws of the active arms. With v the largest
    `||x_i - x_best||^2` in V^-1, over the stages where the best arm was active, and u the largest
    `||x_i||^2`:
    "pairwise_paper": `2 eta log_eta(K) exp(-D^2 / (4 s^2 v))`, Theorem 4.1 (2); of a generalised
    model `2 eta log_eta(K) exp(-D^2 c^2 / (8 s^2 u))`, Theorem 5.1 (5).
    "pairwise_proof": `2 eta s exp(-D^2 / (2 s^2 v))`, which the proof of the former shows.
    "normal": in the linear model with normal rewards, `Q(D_i / (s ||x_i - x_best||))` is the exact
    probability that arm i is ahead of the best one, with Q the upper tail. The best one is dropped
    only if as many rivals as survive are ahead of it. By Markov's inequality the error is at most
    the mean of `sum over stages of 1{best active} (sum over active rivals of Q) / survivors`. Q
    counts as 1 for a difference that the draws do not span, because its estimate is biased.

    Args:
      instance: an `Instance` whose means are linear in the features, or given by a family's link.
      budget: total draws B.
      form: see above.
      eta: elimination factor.
      excess: of "safe", the loss of design and rounding: `max_k ||x_k||^2 <= (1 + excess) d / n`.
      slope: c, `h'` at its least; by default at the arms of the instance. This is optimistic:
        the theorem requires it also between theta and every estimate.
      replications, seed: of the means, as in `simulate`.
      **options: of `gse`, for the means.
    Returns:
      `ErrorBound(value, standard_error)`; a value above 1 is vacuous.
    Raises:
      ValueError: a bad option, means that do not follow from the features, one arm or two best,
        "normal" where rewards are not normal or all stages' rewards are used, or "safe",
        "single_stage" or "pairwise_proof" of a generalised model.
      TypeError: traced arguments.
    Composes:
      jit, vmap, grad, float32: no, it is computed on the host, in double precision.
    Deviations:
      "paper" and "pairwise_paper" rely on `||x_i - x_best||^2 <= 2 max ||x||^2`, which holds for
      independent arms, not in general: opposite arms give 4.
    Reference:
      M. J. Azizi, B. Kveton, M. Ghavamzadeh, "Fixed-budget best-arm identification in structured
      bandits", IJCAI 2022, Theorems 4.1, 5.1, Corollary 2. https://arxiv.org/abs/2106.04763

    >>> import jaxbandits as jb
    >>> instance = jb.instances.canonical(16, gap=1.0)
    >>> round(gse_error_bound(instance, 320).value, 2)
    4.58
    >>> gse_error_bound(instance, 320, form="normal").value < 0.15
    True
    """
    given(choice(*CLOSED, *REALISED), form=form)
    budget = given(whole(), budget=budget)
    eta = given(size(2), eta=eta)
    excess = given(nonnegative, excess=excess)
    replications = given(size(), replications=replications)
    seed = given(count(0), seed=seed)
    facts = facts_of(instance, slope)
    require(facts.linear or form not in LINEAR, f"form {form!r} needs linear means")
    if form in CLOSED:
        return ErrorBound(_closed(facts, form, budget, eta, excess), 0.0)
    if form == "normal":
        plain = instance.rewards == "normal" and facts.linear and not options.get("reuse", False)
        require(plain, "form 'normal' needs normal rewards, linear means and reuse=False")
    values = _realised(instance, facts, form, budget, eta, replications, seed, options)
    return ErrorBound(float(values.mean()), standard_error(values))


def _closed(facts, form, budget, eta, excess):
    square, variance = facts.gap**2, facts.noise_var * facts.rank
    stages, logarithm = halving.schedule(facts.num_arms, eta).stages, _log(facts.num_arms, eta)
    if form == "safe":
        each = budget // stages
        return eta * stages * math.exp(-each * square / (8 * variance * (1 + excess)))
    if form == "single_stage":
        return 2 * facts.num_arms * math.exp(-budget * square / (4 * variance))
    scale = 4 * variance if facts.linear else 8 * variance / facts.slope**2
    scale *= 2 if form == "corollary_2" else 1
    return 2 * eta * logarithm * math.exp(-budget * square / (scale * logarithm))


def _log(number, base):
    return math.log(number) / math.log(base)


@double
def _realised(instance, facts, form, budget, eta, replications, seed, options):
    """The bound's value in each replication, `[R]`."""
    options = {"family": instance.family} | options
    gse(instance.arms, budget=budget, eta=eta, **options)  # raises for bad options
    options = gse.convert(options)
    single = form != "normal" and not facts.linear
    how = form == "normal", eta, single, tuple(sorted(options.items()))
    arrays = jax.tree.map(jnp.asarray, instance)
    # Of a simulator of a user nobody can say whether it is as it was.
    own = is_named(jax.tree.structure(instance), how)
    values = _compiled(*how) if own else computing(partial(_values, *how))
    numbers = jnp.asarray(budget), facts.gaps, facts.noise_var, facts.best
    found = np.asarray(values(arrays, *numbers, root_key(seed), np.arange(replications)))
    if form == "normal":
        return found
    stages = halving.schedule(facts.num_arms, eta).stages
    front = 2 * eta * (stages if form == "pairwise_proof" else _log(facts.num_arms, eta))
    scale = {"pairwise_proof": 2.0, "pairwise_paper": 4.0}[form]
    scale = scale if facts.linear else 8.0 / facts.slope**2
    return front * np.exp(-(facts.gap**2) / (scale * facts.noise_var * found))


@functools.lru_cache(maxsize=16)
def _compiled(*how):
    """A program that runs GSE; another budget or other numbers of an instance reuse it."""
    return kept(partial(_values, *how))


def _values(tails, eta, single, options, instance, budget, gaps, noise_var, best, key, numbers):
    """What runs of GSE give, one for each of the `numbers` of replications."""
    schedule = halving.schedule(instance.arms.shape[0], eta)
    build = partial(gse, budget=budget, eta=eta, **dict(options))
    algorithm, env = build(instance.arms), finite(instance)
    stage = partial(_of_stage, instance.arms, gaps, noise_var, best, tails, single)

    def replication(number):
        run = start(jax.random.fold_in(key, number), env, algorithm)
        record = lambda run: (run.state.alive, run.arm_pulls)  # noqa: E731
        _, (alive, pulls) = rollout(run, env, algorithm, np.arange(1, schedule.stages + 1), record)
        alive = jnp.concatenate([run.state.alive[None], alive[:-1]])
        counts = jnp.diff(pulls, axis=0, prepend=0)
        found = jax.vmap(stage)(alive, counts, jnp.asarray(schedule.sizes[1:]))
        return found.sum() if tails else found.max()

    return jax.lax.map(replication, numbers, batch_size=256)


def _of_stage(arms, gaps, noise_var, best, tails, single, alive, counts, survivors):
    """A stage's term of "normal", or its largest `||x||^2` in V^-1 for the other forms."""
    (arms,) = scaling.equilibrated(arms)
    matrix = least_squares.gram(arms, counts)
    drawn = spd.partial_inverse(matrix, subspace.negligible(arms))
    space = subspace.of_gram(matrix, drawn)
    directions = arms if single else arms - arms[best]
    norms = jnp.maximum(0.0, spd.quadratic(directions, drawn.matrix))
    norms = jnp.where(subspace.within(space, directions), norms, jnp.inf)
    rivals = alive & (jnp.arange(gaps.size) != best)
    if not tails:
        return jnp.where(alive[best] & (alive if single else rivals), norms, 0.0).max()
    ahead = norm.sf(gaps / jnp.sqrt(noise_var * norms))
    ahead = jnp.where(jnp.isinf(norms), 1.0, ahead)
    return alive[best] * jnp.where(rivals, ahead, 0.0).sum() / survivors
