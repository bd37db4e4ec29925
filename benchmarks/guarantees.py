"""The guarantee table: errors in 20,000 runs compared with the guarantee, also of broken twins.

For each setting of `benchmarks.promises` the table has the errors, the exact one-sided 95% upper
bound of the error rate (Clopper and Pearson), and the errors of twins: the same algorithm with one
fault, which must violate the guarantee. With a fixed budget the guarantee is the exact error
probability of successive halving, an integral.

    python -m benchmarks.guarantees [--only WORD ...] [--replications N] [--twins N]

Each part of a row is stored as soon as it is done, and not computed again; `missing` in the file
lists what is left.
"""

import json
import time
from functools import partial
from pathlib import Path

from scipy import stats

import jaxbandits as jb
from jaxbandits.estimates import estimate

from .promises import (
    BUDGET,
    ERROR,
    FIXED,
    PROMISES,
    forgetful,
    halving_instance,
    misfiled,
    narrow,
    twin_of,
)
from .rows import command

RESULTS = Path(__file__).parent / "results" / "guarantees-cpu.json"
SEED, LEVEL = 8, 0.95
AGREES = 1e-3  # p-value below which an error rate differs from the exact one
DELTAS = (0.05, 0.1, 0.01)
TWINS = {"narrow": narrow, "misfiled": misfiled, "forgetful": forgetful}
CHEAP = ("top_two", "lin_gifa", "m_lingape", "frank_wolfe_sampling", "lin_game", "lingape", "rage")


def cells():
    """All `(name, delta, part)` to compute, the cheapest first.

    A part is "itself" or the name of a twin's fault; delta is None with a fixed budget.
    """
    names = sorted(PROMISES, key=lambda name: CHEAP.index(name) if name in CHEAP else len(CHEAP))
    found = [(name, None, "itself") for name in FIXED] + [("sequential_halving", None, "forgetful")]
    found += [(name, DELTAS[0], part) for name in names for part in ("itself", "narrow")]
    found += [(name, DELTAS[0], "misfiled") for name in names]
    return found + [(name, delta, "itself") for delta in DELTAS[1:] for name in names]


def counts_of(name, delta, part, replications):
    """The counts of one part of a row."""
    fixed = name in FIXED
    instance = halving_instance() if fixed else PROMISES[name][0]
    options = {"budget": BUDGET} if fixed else {"delta": delta}
    began = time.perf_counter()

    def runs(build, **more):
        build = partial(build, **options)
        return jb.simulate(instance, build, replications=replications, seed=SEED, **more)

    if part == "itself":
        found = runs(FIXED[name] if fixed else PROMISES[name][1])
    else:
        twin, pulls = twin_of(TWINS[part], name)
        with twin as build:
            found = runs(build, max_pulls=pulls)
    return counted(found, twin=part != "itself") | {
        "seconds": round(time.perf_counter() - began, 1)
    }


def counted(runs, *, twin):
    """Errors with their bound. For a twin, runs cut short count by their answer so far."""
    number, cut = len(runs), int((~runs.stopped).sum())
    wrong = ~runs.correct if twin else ~runs.correct & runs.stopped
    errors = int(wrong.sum())
    return {
        "replications": number,
        "errors": errors,
        "cut_short": cut,
        "error_rate": errors / number,
        "upper": upper(errors, number),
        "pulls_mean": float(runs.pulls.mean()),
    }


def upper(errors, number):
    """The exact one-sided 95% upper bound of a proportion."""
    test = stats.binomtest(errors, number, alternative="less")
    return float(test.proportion_ci(LEVEL, method="exact").high)


def verdict(row):
    """Whether the algorithm keeps the guarantee, and which twins break it."""
    promised, itself = row["promised"], row.get("itself")
    said = {}
    if itself is not None:
        keeps = itself["upper"] <= promised
        if row["delta"] is None:  # the error rate is exact: more errors and fewer errors both count
            test = stats.binomtest(itself["errors"], itself["replications"], promised)
            said["p_value"] = float(test.pvalue)
            keeps = test.pvalue > AGREES
        said["kept"] = bool(keeps) and not itself["cut_short"]
    for twin in TWINS:
        if twin in row:
            test = stats.binomtest(row[twin]["errors"], row[twin]["replications"], promised)
            said[f"{twin}_broken"] = bool(test.pvalue < 1e-6 and row[twin]["error_rate"] > promised)
    return said


def setting(name, delta):
    """The first columns of a row."""
    build = FIXED[name] if name in FIXED else PROMISES[name][1]
    instance = halving_instance() if name in FIXED else PROMISES[name][0]
    num_arms, dim = instance.arms.shape
    options = dict(getattr(build, "keywords", {}))
    return {
        "setting": name,
        "algorithm": getattr(build, "func", build).__name__,
        "options": options | ({"budget": BUDGET} if name in FIXED else {}),
        "arms": num_arms,
        "targets": len(instance.targets),
        "dim": dim,
        "delta": delta,
        "promised": ERROR if delta is None else delta,
        "seed": SEED,
    }


class Table:
    """The stored table."""

    def __init__(self, path):
        self.path = path
        text = path.read_text() if path.exists() else '{"rows": []}'
        self.rows = json.loads(text)["rows"]

    def row(self, name, delta):
        """The row of a setting; a new one if the table has none."""
        for row in self.rows:
            if (row["setting"], row["delta"]) == (name, delta):
                return row
        return setting(name, delta)

    def has(self, name, delta, part, replications):
        """Whether the table has a part with at least so many replications."""
        return self.row(name, delta).get(part, {}).get("replications", 0) >= replications

    def put(self, name, delta, part, found, missing):
        """Store a part."""
        row = self.row(name, delta)
        row[part] = found
        if not any(row is other for other in self.rows):
            self.rows.append(row)
        for other in self.rows:
            other |= verdict(other)
        table = {"rows": self.rows, "missing": missing}
        self.path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def main(arguments=None):
    """Compute what is missing."""
    parser = command(__doc__, replications=20_000, results=RESULTS)
    parser.add_argument("--twins", type=int, default=2000, help="replications of a twin")
    asked = parser.parse_args(arguments)
    table = Table(asked.out)

    def number(part):
        return asked.replications if part == "itself" else asked.twins

    def missing():
        return [list(c) for c in cells() if not table.has(*c, number(c[-1]))]

    for cell in missing():
        words = " ".join(map(str, cell))
        if not all(word in words for word in asked.only):
            continue
        found = counts_of(*cell, number(cell[-1]))
        table.put(*cell, found, [c for c in missing() if c != cell])
        print(
            f"{words:40s} {found['errors']:6d} of {found['replications']}, at most "
            f"{estimate(100 * found['upper'], digits=3, unit='%')}, "
            f"{found['cut_short']} cut short, {found['seconds']} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
