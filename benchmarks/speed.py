"""`python -m benchmarks.speed`: CPU seconds per round against NumPy, Numba and C, on one core.

Everything runs in one process, in turn, so that only ratios count; the contestants' numbers are
compared before anything is timed.
"""

import argparse
import os
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def arguments():
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contests; all by default")
    parser.add_argument("--quick", action="store_true", help="little work: does it run?")
    parser.add_argument("--out", type=Path, default=RESULTS / "speed-cpu.json")
    return parser.parse_args()


def one_core():
    """Stay on one core, before any library counts them."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def main():
    """Run the contests, print the table, write the file."""
    options = arguments()
    one_core()
    # The cores are settled before JAX is loaded.
    import jax

    from .contest import race, save, table
    from .contests import CONTESTS

    names = options.only or list(CONTESTS)
    unknown = sorted(set(names) - set(CONTESTS))
    if unknown:
        raise SystemExit(f"no contest {unknown[0]!r}; there are {', '.join(CONTESTS)}")
    results = {}
    for name in names:
        results[name] = race(CONTESTS[name](quick=options.quick))
        print("\n".join(table({name: results[name]})), flush=True)
    save(options.out, results, str(jax.devices()[0]))
    print(f"written: {options.out}")


if __name__ == "__main__":
    main()
