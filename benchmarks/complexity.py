"""The tables of Reda, Kaufmann, Delahaye-Duriez (AISTATS 2021) on complexity constants, in full.

Table 4: in how many of 1000 random instances is the constant of m-LinGapE with optimal ratios at
most that of UGapE? Table 5: the two constants on one such instance. `jaxbandits reproduce` has both
as topm/table4 and topm/table5. Here they are also stored for rho_power 2, which the paper does not
print, and set against the counts in the authors' files.

    python -m benchmarks.complexity [--data FOLDER] [--only WORD ...] [--instances N]

FOLDER holds top_m_random_instance/features_5x10.csv, the matrix of Table 5; without it a random
matrix is used.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
from scipy import stats

from jaxbandits.estimates import estimate
from jaxbandits.intervals import binomial_interval
from jaxbandits.reproduce.topm.constants import (
    PRINTED,
    SCALES,
    TABLE_5,
    drawn,
    first_feature,
    matrix_of,
    members,
    pays,
)
from jaxbandits.theory import m_lingape_complexity, ugape_complexity

from .rows import keep, kept

RESULTS = Path(__file__).parent / "results" / "complexity-cpu.json"
RECORDED = {
    (20, 10): (13, 6),
    (30, 15): (1, 0),
}  # counts of 1000 where the authors' files differ from the printed table


def fraction(num_arms, dim, scale, instances):
    """A row of Table 4."""
    begin, m, counts = time.process_time(), members(num_arms), {1: 0, 2: 0}
    for number in range(instances):
        instance = drawn(num_arms, dim, scale, number)
        for rho_power in counts:
            counts[rho_power] += pays(instance, m, rho_power)
    count = counts[1]
    low, high = binomial_interval(count, instances)
    column, shape = SCALES.index(scale), (num_arms, dim)
    printed = PRINTED[shape][column]
    recorded = RECORDED[shape][column] if shape in RECORDED else round(10 * printed)
    table = [[count, instances - count], [recorded, 1000 - recorded]]
    return {
        "table": 4,
        "name": f"K={num_arms} N={dim} D={scale}",
        "m": m,
        "instances": instances,
        "count": count,
        "percent": 100 * count / instances,
        "low": 100 * low,
        "high": 100 * high,
        "printed_percent": printed,
        "recorded_of_1000": recorded,
        "count_of_rho_power_2": counts[2],
        "p_value": float(stats.fisher_exact(table).pvalue),
        "cpu_seconds": time.process_time() - begin,
    }


def constants(m, folder):
    """A row of Table 5."""
    begin = time.process_time()
    if folder is None:
        instance = drawn(10, 5, SCALES[0], 0)
    else:
        instance = first_feature(matrix_of(Path(folder)))
    after, least = np.sort(instance.values)[[-m - 1, -m]]
    row = {
        "table": 5,
        "name": f"m={m}, " + ("random stand-in" if folder is None else "the paper's matrix"),
        "m": m,
        "gap": float(least - after),
        "m_lingape": m_lingape_complexity(instance, m, selection="ratio"),
        "m_lingape_of_rho_power_2": m_lingape_complexity(
            instance, m, selection="ratio", rho_power=2
        ),
        "ugape": ugape_complexity(instance, m),
    }
    if folder is not None:
        row["printed_m_lingape"], row["printed_ugape"] = TABLE_5[m]
    return row | {"cpu_seconds": time.process_time() - begin}


def shown(row):
    """A row as a line of text."""
    if row["table"] == 5:
        printed = " ({:.2f}, {:.2f} in the paper)".format(*TABLE_5[row["m"]])
        return (
            f"{row['name']:26} gap {row['gap']:.4f}  m-LinGapE {row['m_lingape']:.2f} "
            f"(rho_power 2: {row['m_lingape_of_rho_power_2']:.2f})  "
            f"UGapE {row['ugape']:.2f}" + (printed if "printed_ugape" in row else "")
        )
    percent = partial(estimate, digits=3, unit="%")
    printed = "-" if row["printed_percent"] is None else percent(row["printed_percent"])
    found = percent(row["percent"], interval=(row["low"], row["high"]))
    return (
        f"{row['name']:26} {found:>24}  "
        f"paper {printed:>6}, recorded {row['recorded_of_1000']:3} of 1000  "
        f"p {row['p_value']:.2f}  rho_power 2: {row['count_of_rho_power_2']:3}  "
        f"{row['cpu_seconds']:6.1f} s"
    )


def rows(instances, folder):
    """All `(name, function that computes the row)` of both tables."""
    for num_arms, dim in PRINTED:
        for scale in SCALES:
            name = f"table 4 K={num_arms} N={dim} D={scale}"
            yield name, lambda a=num_arms, d=dim, s=scale: fraction(a, d, s, instances)
    for m in TABLE_5:
        yield f"table 5 m={m}", lambda m=m: constants(m, folder)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder that contains top_m_random_instance")
    parser.add_argument(
        "--only", nargs="*", default=[], help="only rows that contain all of these words"
    )
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    chosen = parser.parse_args(arguments)
    found = kept(chosen.out)
    for name, make in rows(chosen.instances, chosen.data):
        if not all(word in name for word in chosen.only):
            continue
        row = make()
        print(shown(row), flush=True)
        found = keep(chosen.out, found, row, ("name",))


if __name__ == "__main__":
    main()
