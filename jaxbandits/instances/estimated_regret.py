"""The part that estimated means have in the error of a mean regret.

The regret of a replication with pulls `N_k` in T rounds is `sum_k N_k (mu_best - mu_k)`. Where the
means are estimates with independent errors of standard deviation `se_k`, it is wrong by
`sum_k (T [k is best] - N_k) (error of mu_k)`. These errors are the same in all replications, so
that the mean regret is wrong by the same sum with mean pulls, whatever the number of replications:
its variance is `sum_k (T [k is best] - mean N_k)^2 se_k^2`, on top of what the spread of the
replications shows.

Where each replication draws an instance of its own, its means are estimated by the same keys as
those of the others (`seed` of `instances.simulated`). Errors are then common to the replications as
far as equal keys give equal noise. They are taken to be wholly common: what is independent would
average out, and is in the spread.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from ..intervals import standard_error

#: of `Runs.meta`: the share of the variance of the mean regret that is due to estimated means
SHARE: str = "regret_variance_of_means"


def error_of_means(errors: Float[np.ndarray, "... K"] | None) -> float:
    """The standard error of a mean regret that estimated means give it; 0 for known means.

    Args:
      errors: `Runs.regret_errors [R, K]`, or their means `[K]`; rows of NaN are not known.

    >>> error_of_means(np.array([[0.0, 3.0], [0.0, 5.0], [6.0, 1.0]])), error_of_means(None)
    (3.605551275463989, 0.0)
    """
    if errors is None or not errors.size:
        return 0.0
    rows = errors.reshape(-1, errors.shape[-1])
    known = rows[~np.isnan(rows).any(1)]
    return float(np.linalg.norm(known.mean(0))) if len(known) else 0.0


def error_of_difference(
    one: Float[np.ndarray, "... K"] | None, two: Float[np.ndarray, "... K"] | None
) -> float:
    """The part of estimated means in the error of a difference of two mean regrets.

    The means are those of one instance, so that errors cancel as far as both draw the same arms.
    """
    if one is None or two is None:
        return error_of_means(two if one is None else one)
    return error_of_means(one - two)


def along_the_rounds(part: float, mean: Float[np.ndarray, " T"]) -> Float[np.ndarray, " T"]:
    """The part of estimated means in the error of a regret curve, from that at its last round.

    Pulls are kept for the last round alone. Earlier ones are taken to be in proportion to the
    regret, as they are where one arm is worse than the best. Usually near-best arms are drawn for
    longer than bad ones, and the part is then too large.

    Args:
      part: at the last round.
      mean: regret.
    """
    return part * mean / mean[-1] if part and mean[-1] > 0 else np.full(len(mean), part)


def with_means(error: Any, part: Any) -> Any:
    """A standard error together with the part of estimated means; as it is where that is 0."""
    return np.hypot(error, part) if np.any(part) else error


def share_of_means(
    regret: Float[np.ndarray, "R T"] | None, errors: Float[np.ndarray, "R K"] | None
) -> Mapping[str, float]:
    """Of `Runs.meta`, which share of the variance of the mean regret estimated means have."""
    part = error_of_means(errors)
    if regret is None or errors is None or len(regret) < 2 or not np.isfinite(part):
        return {}
    spread = standard_error(regret[:, -1])
    total = spread**2 + part**2
    return {SHARE: part**2 / total if total > 0 else 0.0}
