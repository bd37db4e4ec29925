"""`python -m benchmarks.speed`: CPU seconds per round against NumPy, Numba and C, on one core.

Contests run in one process, in turn, so that only ratios count; the contestants' numbers are
compared before anything is timed. Other parts: what compiling costs, how the cost scales with
replications and devices, what a sweep saves over single calls, and, with --gpu, rounds a second
on an accelerator.
"""

import argparse
import os
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def arguments():
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="contests; all by default")
    parser.add_argument("--part", choices=PARTS, default="contests", help="contests by default")
    parser.add_argument(
        "--gpu", dest="part", action="store_const", const="gpu", help="the same as --part gpu"
    )
    parser.add_argument("--quick", action="store_true", help="little work: does it run?")
    parser.add_argument("--out", type=Path, help="where the figures go: benchmarks/results/...")
    return parser.parse_args()


def one_core():
    """Stay on one core, before any library counts them."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def contests(names, quick):
    """Each contestant against ours."""
    from .contest import race, table
    from .contests import CONTESTS

    results = {}
    for name in chosen(names, CONTESTS):
        results[name] = race(CONTESTS[name](quick=quick))
        print("\n".join(table({name: results[name]})), flush=True)
    return results


def compiling(names, quick):
    """CPU seconds to compile, and to load what was compiled before."""
    from .compiling import measure
    from .tasks import TASKS

    return measure(chosen(names, TASKS))


def scaling(names, quick):
    """The cost by the number of replications and of devices, and how busy the lanes are."""
    from .scaling import SCALED, devices, lane_use, measure

    sizes = {"sizes": (100, 1000)} if quick else {}
    results = {"replications": measure(chosen(names, SCALED), **sizes)}
    results["lane_use"] = lane_use(lanes=32 if quick else 128)
    results["devices"] = devices(quick)
    return results


def sweeping(names, quick):
    """Cells that differ in numbers alone: side by side, against one `simulate` for each."""
    from .sweeping import ANGLES, DELTAS, measure
    from .tasks import engines

    part = 5 if quick else 1
    results = {}
    for engine in engines():
        for replications in (20,) if quick else (100, 1000):
            found = measure(replications, engine, ANGLES[-1::-part], DELTAS[::part])
            results[f"{engine}-{replications}"] = found
            print(f"{engine} {replications}: {found}", flush=True)
    return results


def gpu(names, quick):
    """Rounds a second by the number of lanes and the width of numbers."""
    from .accelerator import LANES, NAMES, measure

    return measure(chosen(names, NAMES), LANES[:1] if quick else LANES)


PARTS = {
    "contests": contests,
    "compiling": compiling,
    "scaling": scaling,
    "sweeping": sweeping,
    "gpu": gpu,
}


def chosen(names, known):
    """The names asked for, all by default."""
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise SystemExit(f"no contest {unknown[0]!r}; there are {', '.join(known)}")
    return names or list(known)


def main():
    """Run a part, print the table, write the file."""
    options = arguments()
    if options.part != "gpu":
        one_core()
    # The cores are settled before JAX is loaded.
    import jax

    from .contest import save

    results = PARTS[options.part](options.only, options.quick)
    device = jax.devices()[0]
    part = "speed" if options.part == "contests" else options.part
    out = options.out or RESULTS / f"{part}-{_plain(device)}.json"
    save(out, results, getattr(device, "device_kind", str(device)))
    print(f"written: {out}")


def _plain(device):
    if device.platform == "cpu":
        return "cpu"
    return "-".join(device.device_kind.lower().split())


if __name__ == "__main__":
    main()
