"""When a cell has enough replications: checked after fixed numbers of them.

A cell that ends when its numbers look precise has been looked at several times, and it ends more
likely at a look at which errors happen to be few. An interval of 95% at each look then misses the
truth in up to 8% of the cells. So 2.5% instead of 5% are spent at each look: the confidence
`EACH_LOOK`. With it the interval at the end holds an error rate with 95% at least, at all rates and
limits that were enumerated (`python -m benchmarks.coverage`). It does not depend on how many looks
are planned, so a sweep that is extended looks at its cells as before. All intervals of such a sweep
have this confidence, also those of pulls and regret.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..engine.results import Runs
from ..intervals import CONFIDENCE
from ..messages import brief
from ..parameters import positive
from ..signatures import unknown
from ..system.revisions import Revisions, revised, revisions_of_each


@revised(
    "the width is that of an interval which holds with 95% after several looks; before, of one "
    "which does at a single look, so that up to 8% of the cells missed the error rate and not 5%"
)
def _error_width(digest: dict[str, Any]) -> float:
    return digest["error_high"] - digest["error_low"]


def _regret_spread(digest: dict[str, Any]) -> float:
    """The standard error of the regret without the part that more replications do not reduce."""
    part, error = digest.get("regret_se_of_means", 0.0), digest["regret_se"]
    return math.sqrt(max(0.0, error**2 - part**2)) if part else error


# By rule, what a summary of the runs says of the quantity that it limits.
RULES: dict[str, Callable[[dict[str, Any]], float]] = {
    "error_width": _error_width,
    "pulls_se": lambda digest: digest["pulls_se"],
    "regret_se": _regret_spread,
}
FIRST, GROWTH = 100, 1.5
EACH_LOOK = 0.975  # confidence of an interval at each of several looks


def check(until: Any, horizon: int | None) -> None:
    """Raise unless `until` is a dict of known rules with limits above 0."""
    if not isinstance(until, dict):
        raise ValueError(f"[until] must be a table, got {brief(until)}")
    for name, limit in until.items():
        if name not in RULES:
            raise unknown("rule of [until]", name, RULES)
        number = isinstance(limit, int | float) and not isinstance(limit, bool)
        if not (number and positive.accepts(limit)):
            raise ValueError(f"[until] {name} must be {positive.allowed}, got {brief(limit)}")
        if (name == "regret_se") != (horizon is not None):
            raise ValueError(
                f"[until] {name} is for sweeps with a horizon, and this one has none"
                if horizon is None
                else f"[until] {name} is for sweeps without a horizon, and this one has {horizon}: "
                "give regret_se"
            )


def stages(most: int, until: Mapping[str, float]) -> Iterator[int]:
    """Numbers of replications after which the rules are checked, up to `most`.

    Without a rule it is `most` alone. They depend on nothing else, so that a cell ends with the
    same numbers on any machine.

    >>> list(stages(400, {"error_width": 0.1}))
    [100, 150, 225, 338, 400]
    """
    number = FIRST
    while until and number < most:
        yield number
        number = round(number * GROWTH)
    yield most


def revisions(until: Mapping[str, float]) -> Revisions:
    """The revisions of the rules that decide how many replications are played, by name."""
    rules: dict[str, object] = {f"until {name}": RULES[name] for name in until}
    return revisions_of_each(rules | ({"until": enough} if until else {}))


def confidence(most: int, until: Mapping[str, float]) -> float:
    """The confidence of each interval, so that the one at the end holds with 95% at least.

    >>> confidence(400, {"error_width": 0.1}), confidence(400, {}), confidence(100, {"pulls_se": 1})
    (0.975, 0.95, 0.95)
    """
    return EACH_LOOK if len(list(stages(most, until))) > 1 else CONFIDENCE


def enough(runs: Runs, until: Mapping[str, float], most: int) -> bool:
    """Whether every rule holds; an unknown standard error is not below any limit.

    Args:
      runs: the replications up to a look.
      until: limits by rule.
      most: the number of replications at which a cell ends in any case.
    """
    digest = runs.summary(confidence=confidence(most, until))
    return all(RULES[name](digest) <= limit for name, limit in until.items())
