"""`Runs` in a few words: lines for a terminal, a table for a notebook."""

import html
import math
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..estimates import RATE_DIGITS, TERMINAL, estimate, number
from ..instances.estimated_regret import SHARE
from ..intervals import ONE
from .engine_reasons import hindrance
from .reasons import text_of

WIDTH: int = 100  # most letters of a line
QUANTILES: dict[float, str] = {0.05: "5%", 0.5: "median", 0.95: "95%"}
_estimate, _number = partial(estimate, style=TERMINAL), partial(number, style=TERMINAL)


def facts_of(summary: Mapping[str, Any], num_arms: int, meta: Mapping[str, Any]) -> dict[str, str]:
    """What to show of some runs, by the name of each line.

    Args:
      summary: of the runs, see `Runs.summary`.
      num_arms: K.
      meta: see `Runs.meta`.
    """
    total, cut = summary["replications"], summary["cut_short"]
    found = {"replications": f"{total} with {num_arms} arms"}
    if "regret_mean" in summary and total:  # what such a run is for, hence first
        found["regret"] = _mean(summary, "regret")
    if not math.isnan(summary["error_rate"]):
        found["error rate [95%]"] = _error_rate(summary)
    if total:
        found["pulls"] = _pulls(summary)
    if summary["reasons"]:
        found["no answer"] = f"{text_of(summary['reasons'])} ({cut} cut short)"
    if meta.get(SHARE):
        found["means"] = f"their errors are {meta[SHARE]:.0%} of the variance of the mean regret"
    if meta.get("unsettled"):
        found["not settled"] = _unsettled(meta["unsettled"])
    if summary["info"]:
        found["counted"] = ", ".join(_counted(*item) for item in summary["info"].items())
    if meta:
        found["played"] = _played(meta)
    if reason := hindrance(meta.get("engine_reason", "")):
        found["engine"] = f"{meta.get('engine')}: {reason}"
    return found


def _error_rate(summary):
    total, cut = summary["replications"], summary["cut_short"]
    if sum(summary["reasons"].values()) == total:  # a rate of answers that do not stand misleads
        return f"{TERMINAL.missing}: {total} without an answer that stands"
    interval = summary["error_low"], summary["error_high"]
    rate = _estimate(summary["error_rate"], interval=interval, digits=RATE_DIGITS)
    return f"{rate}: {summary['errors']} of {total - cut}"


def _pulls(summary):
    mean = _mean(summary, "pulls", summary["pulls_mean_is_lower_bound"])
    if summary["replications"] == 1:
        return mean
    if summary["pulls_se"] == 0:  # all alike, and so are their quantiles
        return f"{mean} in each replication"
    quantiles = summary["pulls_quantiles"]
    parts = [f"{name} {_number(quantiles[level])}" for level, name in QUANTILES.items()]
    return f"{mean}; {', '.join(parts)}"


def _unsettled(share):
    return f"in {share:.3g} of the replications estimated means do not settle which answer is right"


def _counted(name, value):
    how = "on average" if isinstance(value, float) else "in all"
    return f"{name} {_number(value)} {how}"


def _mean(summary, name, at_least=False):
    low, high = summary[f"{name}_low"], summary[f"{name}_high"]
    text = _estimate(summary[f"{name}_mean"], (high - low) / 2, at_least=at_least)
    if summary["replications"] == 1:
        return f"{text} ({ONE})"
    return f"{text} (95%)" if "±" in text else text


def _played(meta):
    parts = [f"{name} {meta[name]}" for name in ("seed", "engine", "device") if name in meta]
    if meta.get("cores", 1) != 1:
        parts.append(f"{meta['cores']} cores")
    if "seconds" in meta:
        parts.append(f"{meta['seconds']:.3g} s")
        if "compile_seconds" in meta:
            parts[-1] += f" after {meta['compile_seconds']:.3g} s of compiling"
    return ", ".join(parts)


def as_text(title: str, facts: Mapping[str, str]) -> str:
    """The facts as lines below a title.

    >>> print(as_text("Runs", {"pulls": "mean 3", "regret": "mean 0.5"}))
    Runs
      pulls   mean 3
      regret  mean 0.5
    """
    width = max(map(len, facts), default=0)
    lines = [f"  {name:{width}}  {text}" for name, text in facts.items()]
    return "\n".join([title, *(_cut(line) for line in lines)])


def _cut(line):
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ..."


def as_html(title: str, facts: Mapping[str, str]) -> str:
    """The facts as an HTML table with a caption.

    >>> as_html("Runs", {"pulls": "mean < 3"})
    '<table><caption>Runs</caption><tr><th scope="row">pulls</th><td>mean &lt; 3</td></tr></table>'
    """
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(text)}</td></tr>'
        for name, text in facts.items()
    )
    return f"<table><caption>{html.escape(title)}</caption>{rows}</table>"
