"""At which level each option of `jb.instances.stressed` breaks the guarantee of an algorithm.

One algorithm of each family runs on its instance of `benchmarks.promises` with one option at a
time, at increasing levels. A guarantee is broken if the 95% interval of the error rate lies above
the guaranteed rate: delta, or for a fixed budget the exact error of the unchanged instance. For
cumulative regret it is broken if the regret of the second half of the rounds is not below 90% of
that of the first half.

    python -m benchmarks.stress [--only WORD ...] [--replications N]

Rows that the file already holds are not computed again.
"""

import math
from functools import partial
from pathlib import Path

import numpy as np

import jaxbandits as jb
from jaxbandits.estimates import estimate
from jaxbandits.intervals import binomial_interval

from .promises import BUDGET, DELTA, ERROR, FIXED, PROMISES, halving_instance
from .rows import command, keep, kept, stored

RESULTS = Path(__file__).parent / "results" / "stress-cpu.json"
KEY = ("algorithm", "switch", "level")
MOST = 50_000  # pulls of a run
HORIZON, LINEAR = 4000, 0.9
# Seeds of the deviations' signs and the drifts' phases, each for a fifth of the replications.
SEEDS = range(5)
LEVELS = {
    "plain": (0.0,),
    "noise_var_factor": (0.5, 0.25, 0.1, 0.03, 0.01),
    "variance_ratio": (4.0, 16.0, 64.0, 256.0),
    "df": (10.0, 3.0, 2.1, 1.5, 1.1),
    "deviation": (0.25, 0.5, 1.0, 2.0, 4.0),  # in gaps between the two best means
    "drift": (0.5, 1.0, 2.0, 4.0, 8.0),  # the same
    "delay": (10, 300),
}
IN_GAPS, SIGNED = ("deviation", "drift"), ("deviation", "drift")
PHASED = ("rage", "xy_static", "sequential_halving", "gse_d_opt")


def settings():
    """`name -> (family, instance, constructor with all options, options of simulate)`."""
    families = {
        "lingape": "gap index",
        "top_two": "posterior",
        "lucb": "intervals of single arms",
        "xy_static": "static design",
        "rage": "elimination",
    }
    found = {}
    for name, family in families.items():
        instance, build = PROMISES[name]
        found[name] = family, instance, partial(build, delta=DELTA), {"max_pulls": MOST}
    for name in ("sequential_halving", "gse_d_opt"):
        build = partial(FIXED[name], budget=BUDGET)
        found[name] = "fixed budget", halving_instance(), build, {}
    soare = jb.instances.soare(3, angle=0.5)
    found["lin_ucb"] = "regret", soare, partial(jb.lin_ucb, alpha=1.0), {"horizon": HORIZON}
    return found


def gap_of(instance, m):
    """The gap between the m-th best mean and the next."""
    ordered = np.sort(instance.values)[::-1]
    return float(ordered[m - 1] - ordered[m])


def under(instance, switch, level, gap, seed):
    """The instance with one option of `stressed` at this level."""
    if switch == "plain":
        return instance
    size = level * gap if switch in IN_GAPS else level
    return jb.instances.stressed(instance, seed=seed, **{switch: size})


def row(name, setting, switch, level, replications):
    """A row of the table."""
    family, instance, build, how = setting
    gap = gap_of(instance, getattr(build, "keywords", {}).get("m", 1))
    seeds = SEEDS if switch in SIGNED else range(1)
    share = replications // len(seeds)
    runs = [
        jb.simulate(
            under(instance, switch, level, gap, seed), build, replications=share, seed=seed, **how
        )
        for seed in seeds
    ]
    found = {"algorithm": name, "family": family, "switch": switch, "level": level}
    found |= {"size": level * gap if switch in IN_GAPS else level, "replications": share}
    found["replications"] *= len(seeds)
    found["pulls_mean"] = float(np.mean([r.pulls.mean() for r in runs]))
    if family == "regret":
        return found | growth(np.concatenate([r.regret for r in runs]), runs[0].rounds)
    stopped = np.concatenate([r.stopped for r in runs])
    errors = int((~np.concatenate([r.correct for r in runs]) & stopped).sum())
    low, high = binomial_interval(errors, int(stopped.sum())) if stopped.any() else (0.0, 1.0)
    promised = ERROR if family == "fixed budget" else DELTA
    found |= {"cut_short": int((~stopped).sum()), "errors": errors, "promised": promised}
    return found | {"error_low": low, "error_high": high, "broken": bool(low > promised)}


def growth(regret, rounds):
    """Regret of the second half of the rounds divided by that of the first half."""
    middle = np.array([np.interp(HORIZON / 2, rounds, one) for one in regret])
    late, early = (regret[:, -1] - middle).mean(), middle.mean()
    return {
        "regret_mean": float(regret[:, -1].mean()),
        "promised": LINEAR,
        "growth": float(late / early),
        "broken": bool(late >= LINEAR * early),
    }


def shown(row):
    """A row as a line of text."""
    if "growth" in row:
        what = f"regret {row['regret_mean']:8.1f}, growth {row['growth']:.2f}"
    else:
        finished = row["replications"] - row["cut_short"]
        rate = 100 * row["errors"] / finished if finished else math.nan
        interval = (100 * row["error_low"], 100 * row["error_high"])
        errors = estimate(rate, interval=interval, digits=2, unit="%")
        what = f"{row['errors']:5d} errors: {errors}, {row['cut_short']} cut short"
    mark = "BROKEN" if row["broken"] else "kept"
    return (
        f"{row['algorithm']:20s} {row['switch']:17s} {row['level']:8g}  {mark:7s} {what}, "
        f"{row['pulls_mean']:.0f} pulls"
    )


def breaking(rows):
    """`{algorithm: {option: the mildest level that breaks the guarantee, or None}}`."""
    found = {}
    for one in rows:
        levels = found.setdefault(one["algorithm"], {})
        levels.setdefault(one["switch"], None)
        if one["broken"]:
            levels[one["switch"]] = min(
                (x for x in (levels[one["switch"]], one["level"]) if x is not None),
                key=LEVELS[one["switch"]].index,
            )
    return found


def main(arguments=None):
    """Compute what is missing and print all rows."""
    parser = command(__doc__, replications=2000, results=RESULTS)
    asked = parser.parse_args(arguments)
    rows = kept(asked.out)
    for name, setting in settings().items():
        for switch, levels in LEVELS.items():
            if switch == "delay" and name in PHASED:
                continue
            for level in levels:
                wanted = {"algorithm": name, "switch": switch, "level": level}
                words = f"{name} {switch} {level}"
                if not all(word in words for word in asked.only) or stored(rows, KEY, **wanted):
                    continue
                made = row(name, setting, switch, level, asked.replications)
                rows = keep(asked.out, rows, made, KEY)
                print(shown(made), flush=True)
    for name, switches in breaking(rows).items():
        broken = {s: level for s, level in switches.items() if level is not None}
        print(f"{name}: broken first at {broken or 'no level'}")


if __name__ == "__main__":
    main()
