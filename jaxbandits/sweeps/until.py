"""When a cell has enough replications: checked after fixed numbers of them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..engine.results import Runs
from ..messages import brief
from ..parameters import positive
from ..signatures import unknown
from ..system.revisions import Revisions, revisions_of_each

# By rule, what a summary of the runs says of the quantity that it limits.
RULES: dict[str, Callable[[dict[str, Any]], float]] = {
    "error_width": lambda digest: digest["error_high"] - digest["error_low"],
    "pulls_se": lambda digest: digest["pulls_se"],
    "regret_se": lambda digest: digest["regret_se"],
}
FIRST, GROWTH = 100, 1.5


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
            kind = "with" if name == "regret_se" else "without"
            raise ValueError(f"[until] {name} is for sweeps {kind} a horizon, got {brief(horizon)}")


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


def enough(runs: Runs, until: Mapping[str, float]) -> bool:
    """Whether every rule holds; an unknown standard error is not below any limit."""
    digest = runs.summary()
    return all(RULES[name](digest) <= limit for name, limit in until.items())
