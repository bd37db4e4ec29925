"""Instances whose rewards a simulator draws, with known or estimated means."""

from typing import Annotated, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ..feature_tables import check_arms, is_concrete, require
from ..parameters import Nonnegative, Normal, Option, count, size
from ..precision import check_real, double, floats, is_traced
from ..system.caller import warn_caller
from ..system.indices import beyond_the_end
from ..system.named import is_named
from ..system.randomness import REWARD, reward_drawn
from ..system.randomness import check as check_randomness
from ..system.traces import Trace, TraceCache, shapes_of
from ..types import Key, Pytree, Rows
from ..whole_numbers import allowed_whole, is_whole, shown
from .doubts import MIN_DRAWS_FOR_ERRORS, named, warn_of_constants, warn_of_variances
from .instance import Instance, built, check_finite
from .options import checked
from .settled import SETTLED, UNTIL_SETTLED, check_settled
from .simulator_code import Code, code_of, reward_trace
from .simulator_means import DRAWS, MOST_KEYS, drawn, until_settled

#: Of a sum of squares that is due to one draw. Of 2,000 rewards without a mean (Cauchy) the share
#: is larger in 99 of 100 samples; of normal or exponential ones it is 0.01 to 0.03.
DOMINATED: float = 0.15
CHECKED_KEPT: int = 256  # rewards of users
SAME_DRAWS: str = (
    "where they are to vary, their randomness has to come from the key, or rare values need more "
    "draws"
)

_checked: dict[Any, Trace] = {}  # rewards that draw by their keys, by what simulators are made of


def _is_draws(value):
    return value == UNTIL_SETTLED if isinstance(value, str) else is_whole(value, 1)


Draws: TypeAlias = Annotated[
    int | str,
    Option(
        f"{allowed_whole(1)}, or {UNTIL_SETTLED!r}",
        _is_draws,
        lambda value: value if isinstance(value, str) else int(value),
        shown=shown,
    ),
]
SizeOfSet: TypeAlias = Annotated[int, size(0)]


def check_draws(draws: int | str, m: int, num_arms: int) -> None:
    """Raise unless each draw of so many has a key of its own, and m is a number of arms."""
    most = MOST_KEYS // num_arms
    few = isinstance(draws, str) or draws <= most
    require(few, f"draws must be at most {most:,} for {num_arms} arms, got {draws}")
    require(m <= num_arms, f"m must be at most {num_arms}, the number of arms, got {m}")


@checked
@double
def simulated(
    arms: Rows,
    simulator: Pytree,
    *,
    means: Rows | None = None,
    noise_var: Normal,
    draws: Draws = DRAWS,
    m: SizeOfSet = 1,
    seed: Annotated[int, count(0)] = 0,
    theta_norm: Nonnegative | None = None,
) -> Instance:
    """Rewards from a simulator; the means of the arms are given, or estimated from draws.

    Means decide which answers are correct. Estimated ones therefore have to settle which arms are
    the m best: the gap between one of these and any other arm is 5 standard errors of the
    difference or more, else there is an error that says how many draws it takes. Their standard
    errors are the `standard_errors` of the instance. Where the simulator is drawn anew in each
    replication, there is no error: `runs.meta["unsettled"]` is the share of the replications whose
    best arms are not settled.

    Args:
      arms: `[K, d]` features.
      simulator: a pytree of arrays with a method `reward(key, arm) -> []`, pure, for one arm
        given as a traced integer. It is compiled together with the algorithm.
      means: `[K]` the expected rewards, where they are known. The draws then only show whether
        rewards are as `means` and `noise_var` say.
      noise_var: the variance given to the learner.
      draws: simulations of each arm; or "until settled": 2,000, doubled until the m best arms are
        settled, 4,096,000 at most. Arms with equal means are never settled: give `means`.
      m: how many best arms algorithms are to find; 0 or K: nothing is checked here.
      seed: of these draws only; the same seed gives the same means, in any order of computation.
      theta_norm: a bound given to the learner, unknown by default.
    Returns:
      An `Instance`; its `theta` is not known, and stored as zeros.
    Raises:
      ValueError: wrong shapes, NaN, a variance not above 0, no draws, a simulator that is no
        pytree or whose reward is not a single number, best arms that are not settled.
    Warns:
      UserWarning: once for each kind, naming the arm: draws have a variance above `noise_var`, by
        5 standard errors; one draw dominates the variance, as where rewards have no mean; rewards
        do not vary, or there is a single draw; given means differ from those of the draws by 5
        standard errors.

    >>> from typing import Any, NamedTuple
    >>> class Dice(NamedTuple):
    ...     sides: Any
    ...     def reward(self, key, arm):
    ...         return 1.0 + jax.random.randint(key, (), 0, self.sides[arm])
    >>> dice = simulated([[1.0, 0.0], [0.0, 1.0]], Dice(jnp.array([5, 19])), noise_var=100.0)
    >>> dice.means.round()
    array([ 3., 10.])
    >>> dice.standard_errors.round(2)
    array([0.03, 0.12])
    """
    check_arms(arms)
    num_arms = np.shape(arms)[0]
    check_draws(draws, m, num_arms)
    if means is not None:
        check_finite("means", means, (num_arms,))
    key = jax.random.key(seed, impl="threefry2x32")
    traces = TraceCache()
    code = _check_simulator(simulator, key, num_arms, traces)
    simulator = jax.tree.map(lambda x: x.copy() if isinstance(x, np.ndarray) else x, simulator)
    sample, law = _sampled(simulator, key, num_arms, draws, m, traces, known=means is not None)
    if is_concrete(sample.means):
        sample = jax.tree.map(np.asarray, sample)
    found = sample.estimated(np if is_concrete(sample.means) else jnp)
    if is_concrete(found.means):
        finite = np.isfinite(found.means).all()
        require(finite, "simulator: its rewards must be finite, got NaN or infinity")
        heavy = _doubt(found, law, noise_var, means)
    rest = {"simulator": simulator, "rewards": "simulated", "simulator_code": code}
    if means is None:
        if is_concrete(found.means) and found.draws > 1:
            enough = draws == UNTIL_SETTLED
            check_settled(found, m, role="simulator", enough=enough, heavy=heavy)
        means = found.means
        rest |= {"standard_errors": found.errors, "draws": found.draws}
    theta = jnp.zeros(np.shape(arms)[1])
    instance = built(floats(arms), None, means, means, theta, noise_var, theta_norm, **rest)
    if code is not None:
        code.note_means(instance.means)
    return instance


def _check_simulator(simulator: Pytree, key: Key, num_arms: int, traces: TraceCache) -> Code | None:
    """Raise unless it is a pytree whose `reward(key, arm)` is a single number, of each arm its own.

    Returns:
      The code of the reward, see `simulator_code`.
    """
    leaves = jax.tree.leaves(simulator)
    is_tree = all(isinstance(x, np.ndarray | np.generic | jax.Array | float | int) for x in leaves)
    require(is_tree, f"simulator must be a pytree of arrays, got {type(simulator).__name__}")
    for leaf in leaves:
        check_real("simulator: an array of it", leaf)
    method = callable(getattr(simulator, "reward", None))
    require(method, "simulator must have a method `reward(key, arm)`, got none")
    trace = reward_trace(simulator, traces)
    own = is_named(jax.tree.structure(simulator))
    if not (own or is_traced(simulator)):
        _check_randomness(simulator, key, trace, traces)
    shape = getattr(trace.shapes, "shape", None)
    require(shape == (), f"simulator: a reward must be a single number, got shape {shape}")
    check_real("simulator: a reward", trace.shapes)
    if own:
        return None
    _check_indices(trace, leaves, num_arms)
    return None if is_traced(simulator) else code_of(simulator, trace)


def _check_randomness(simulator, key, trace, traces):
    """Raise where a reward has randomness of its own; it is looked at once while it is the same."""
    known = shapes_of(simulator)
    if _checked.get(known) == trace:
        return
    arm = jnp.zeros((), int)
    check_randomness(reward_drawn, simulator, key, arm, traces=traces, rest=REWARD)
    if len(_checked) >= CHECKED_KEPT:
        _checked.clear()
    _checked[known] = trace


def _check_indices(trace, leaves, num_arms):
    """Raise where an arm reads beyond the end of a table: its reward would be that of another."""
    found = beyond_the_end(trace.jaxpr, num_arms, leaves)
    if found is not None:
        raise ValueError(
            f"simulator: the reward of {named(found.arms, found.arm)} reads entry {found.index} of "
            f"{found.length}, for which JAX takes another one without a word: its tables must be "
            f"as long as {num_arms} arms need, or the index be limited, as by jnp.clip"
        )


def _sampled(simulator, key, num_arms, draws, m, traces, *, known):
    """`Sample` and `Law` of the rewards; where means are known, nothing is to be settled."""
    if draws == UNTIL_SETTLED and not known:
        return until_settled(simulator, key, num_arms, m, traces)
    number = DRAWS if draws == UNTIL_SETTLED else int(draws)
    return drawn(simulator, key, num_arms, number, traces)


def _doubt(found, law, noise_var, means):
    """Warn where draws show rewards that are not as the instance says.

    Returns:
      Whether one draw dominates the variance of an arm.
    """
    number = int(found.draws)
    varies, deviations, relative_errors, shares = map(np.asarray, law)
    warn_of_constants("simulator", varies, number, SAME_DRAWS)
    dominated = shares > max(DOMINATED, MIN_DRAWS_FOR_ERRORS / number)
    if dominated.any():
        arm = int(shares.argmax())
        warn_caller(
            f"simulator: one of {number:,} draws makes up {shares[arm]:.0%} of the variance of "
            f"{named(dominated, arm)}: its rewards may have no mean, as those of Cauchy's law have "
            "none, and their standard error says little"
        )
    with np.errstate(over="ignore"):
        variances = np.where(dominated, 0.0, deviations**2)
    if is_concrete(noise_var):
        warn_of_variances("simulator", variances, relative_errors, number, float(noise_var))
    if means is not None and is_concrete(means) and number > MIN_DRAWS_FOR_ERRORS:
        _doubt_means(found, np.asarray(means, float), varies & ~dominated)
    return bool(dominated.any())


def _doubt_means(found, means, judged):
    """Warn once where means that are given differ from those of the draws."""
    distances = np.where(judged, np.abs(found.means - means) / np.where(judged, found.errors, 1), 0)
    wrong = distances > SETTLED
    if wrong.any():
        arm = int(distances.argmax())
        warn_caller(
            f"means: {means[arm]:.4g} of {named(wrong, arm)} is {distances[arm]:.3g} standard "
            f"errors from {found.means[arm]:.4g}, the mean of {found.draws:,} draws"
        )
