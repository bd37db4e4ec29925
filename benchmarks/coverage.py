"""How often 95% intervals hold the truth: of few replications, and of cells that end early.

    python -m benchmarks.coverage

- `normal`: the mean of 3, 5, 10, 20 normal numbers, by Student's t and by the normal quantile.
- `lingape`: the same for the pulls of LinGapE. A large run stands for all possible ones: samples
  are drawn from it, so that its mean is the true one.
- `until`: cells of a sweep with `until = {"error_width": w}`, enumerated without chance: the
  probability that a cell ends with an interval that holds the error rate, at several rates; and the
  worst over all rates, widths and largest numbers of replications of a grid, with the confidence
  that each look has (`sweeps.until.EACH_LOOK`) and with 95%.
- `until_pulls`: cells with `until = {"pulls_se": ..}`, simulated, for normal pulls and LinGapE's.

Each share of simulated samples has its standard error beside it. The results are stored in
`benchmarks/results/coverage.json`; it takes about a minute.
"""

import argparse
import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

import jaxbandits as jb
from jaxbandits.intervals import CONFIDENCE, binomial_interval, half_width
from jaxbandits.sweeps.until import EACH_LOOK, stages

RESULTS = Path(__file__).parent / "results" / "coverage.json"
NUMBERS = (3, 5, 10, 20)  # of replications
SAMPLES, SEED = 40_000, 11
RUN = 100_000  # replications of LinGapE that stand for all
NORMAL = 1.959964  # the normal quantile, which a mean of few replications must not be given
RATES = (0.0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
SHOWN = ((0.05, 1000), (0.02, 4000))  # widths and largest numbers for the table of rates
WIDTHS = np.geomspace(0.004, 0.3, 40)
LARGEST = (150, 400, 1200, 4000)
RATES_TRIED = 100  # for each design: just outside of ends of its intervals, where coverage is least
NO_MORE = 1e-9  # probability of going on that is not followed
PULLS_SE = {"normal": 0.06, "lingape": 0.03}  # limits, in units of the mean or the deviation
CELLS = 2000


class Look(NamedTuple):
    """What may be seen at a look.

    Attributes:
      more: replications since the last one.
      ends: bool `[n + 1]`, whether the cell ends, by the number of errors.
      low, high: `[n + 1]` of the interval.
    """

    more: int
    ends: np.ndarray
    low: np.ndarray
    high: np.ndarray


def looks_of(width, most, confidence):
    """The looks at a cell with `until = {"error_width": width}` and `most` replications at most."""
    found, last = [], 0
    for number in stages(most, {"error_width": width}):
        low, high = binomial_interval(np.arange(number + 1), number, confidence)
        ends = (high - low <= width) | (number == most)
        found.append(Look(number - last, ends, low, high))
        last = number
        if ends.all():
            break
    return found


def until_coverage(rate, looks):
    """`(coverage, mean replications)` at an error rate, exactly."""
    going, covered, replications, number = np.ones(1), 0.0, 0.0, 0
    for look in looks:
        steps = stats.binom.pmf(np.arange(look.more + 1), look.more, rate)
        here = np.convolve(going, steps)  # probability of each number of errors
        number += look.more
        replications += look.more * going.sum()
        covered += here[look.ends & (look.low <= rate) & (rate <= look.high)].sum()
        going = np.where(look.ends, 0.0, here)
        if going.sum() < NO_MORE:
            break
    return float(covered), float(replications)


def worst_rate(looks):
    """`(coverage, rate)` where it is least: on either side of an end of an interval."""
    ends = [np.concatenate([x.low[x.ends], x.high[x.ends]]) for x in looks]
    rates = np.unique(np.concatenate(ends))
    rates = rates[(rates > 0) & (rates <= 0.5)]
    some = np.unique(np.geomspace(1, len(rates), RATES_TRIED).astype(int) - 1)
    tried = np.concatenate([rates[some] * (1 - NO_MORE), rates[some] * (1 + NO_MORE)])
    return min((until_coverage(rate, looks)[0], float(rate)) for rate in tried)


def until_table():
    """Coverage at several rates, and the worst of all designs of the grid, by confidence."""
    found = {}
    for confidence in (CONFIDENCE, EACH_LOOK):
        rows = [
            {"width": width, "most": most, "rate": rate, "coverage": x, "replications": round(n)}
            for width, most in SHOWN
            for rate in RATES
            for x, n in [until_coverage(rate, looks_of(width, most, confidence))]
        ]
        worst = min(
            (*worst_rate(looks_of(width, most, confidence)), float(width), most)
            for width in WIDTHS
            for most in LARGEST
            if width * most > 4  # else it can hardly end before
        )
        names = ("coverage", "rate", "width", "most")
        found[str(confidence)] = {"rates": rows, "worst": dict(zip(names, worst, strict=True))}
    return found


def held(values, truth, quantile=None):
    """The share of the rows `[samples, n]` whose interval holds the truth, with its error."""
    means, number = values.mean(1), values.shape[1]
    errors = values.std(1, ddof=1) / np.sqrt(number)
    widths = half_width(errors, number) if quantile is None else quantile * errors
    return share(np.abs(means - truth) <= widths)


def share(hits):
    """A share of independent samples, with its standard error."""
    mean = float(np.mean(hits))
    error = float(np.sqrt(mean * (1 - mean) / len(hits)))
    return {"coverage": round(mean, 4), "standard_error": round(error, 4)}


def few_table(draw, truth):
    """Coverage for few replications. `draw(shape)` draws values with the mean `truth`."""
    return {
        str(number): {
            "student": held(values, truth),
            "normal": held(values, truth, NORMAL),
        }
        for number in NUMBERS
        for values in [draw((SAMPLES, number))]
    }


def until_pulls(draw, truth, limit, most=5000):
    """Coverage of the mean pulls where cells end at a standard error, by confidence."""
    planned = list(stages(most, {"pulls_se": limit}))
    hits = {CONFIDENCE: [], EACH_LOOK: []}
    for _ in range(CELLS):
        values = draw(most)
        errors = ((n, values[:n].std(ddof=1) / np.sqrt(n)) for n in planned)
        number, error = next((n, x) for n, x in errors if x <= limit or n == most)
        off = abs(values[:number].mean() - truth)
        for confidence, each in hits.items():
            each.append(off <= half_width(error, number, confidence))
    return {str(confidence): share(each) for confidence, each in hits.items()}


def lingape_pulls(replications):
    """Pulls of LinGapE in a large run."""
    instance = jb.instances.soare(3, angle=0.5)
    build = partial(jb.lingape, delta=0.1)
    return jb.simulate(instance, build, replications=replications, seed=SEED).pulls.astype(float)


def measured(replications=RUN):
    """All results."""
    rng = np.random.default_rng(SEED)
    pulls = lingape_pulls(replications)
    truth = float(pulls.mean())

    def resampled(shape):
        return rng.choice(pulls, shape)

    return {
        "normal": few_table(rng.standard_normal, 0.0),
        "lingape": {"mean_pulls": truth, "replications": replications}
        | few_table(resampled, truth),
        "until": until_table(),
        "until_pulls": {
            "normal": until_pulls(rng.standard_normal, 0.0, PULLS_SE["normal"]),
            "lingape": until_pulls(resampled, truth, PULLS_SE["lingape"] * truth),
        },
    }


def main(arguments=None):
    """Measure, store and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    found = measured()
    asked.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name in ("normal", "lingape"):
        for number in map(str, NUMBERS):
            by = ", ".join(f"{how} {x['coverage']:.3f}" for how, x in found[name][number].items())
            print(f"{name}, {number} replications: {by}")
    for confidence, table in found["until"].items():
        print(f"until error_width, {confidence} at each look: at worst {table['worst']}")
    for name, table in found["until_pulls"].items():
        by = ", ".join(f"{confidence}: {x['coverage']:.3f}" for confidence, x in table.items())
        print(f"until pulls_se, {name}: {by}")


if __name__ == "__main__":
    main()
