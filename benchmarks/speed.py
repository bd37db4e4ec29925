"""`python -m benchmarks.speed`: CPU seconds per round against NumPy, Numba and C, on one core.

All programs run in turn in one process; only their ratios are meaningful. Their results are
compared before anything is timed. Other parts: the cost of compiling, the cost by the number of
replications and devices, what a sweep saves over single calls, and, with --gpu, rounds per second
on an accelerator.
"""

import argparse
import os
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def arguments():
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", help="names of contests; by default all"
    )
    parser.add_argument(
        "--part", choices=PARTS, default="contests", help="what to measure; by default contests"
    )
    parser.add_argument(
        "--gpu", dest="part", action="store_const", const="gpu", help="the same as --part gpu"
    )
    parser.add_argument(
        "--quick", action="store_true", help="little work, only to see that it runs"
    )
    parser.add_argument(
        "--lanes", nargs="+", type=int, help="of --gpu; by default 256 to 1,000,000"
    )
    parser.add_argument(
        "--within", type=float, default=480.0, help="seconds in which --gpu must end; it leaves out"
    )
    parser.add_argument("--out", type=Path, help="where the figures go: benchmarks/results/...")
    return parser.parse_args()


def one_core():
    """Restrict the process to one core; call it before any library counts the cores.

    Where the system binds no process to a core, the package uses one all the same.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "JAXBANDITS_CORES"):
        os.environ[name] = "1"


def contests(names, quick):
    """Times of our program and of the others."""
    from .contest import race, table
    from .contests import CONTESTS

    results = {}
    for name in chosen(names, CONTESTS):
        results[name] = race(CONTESTS[name](quick=quick))
        print("\n".join(table({name: results[name]})), flush=True)
    return results


def compiling(names, quick):
    """Seconds of a first call, of one with kept programs, and of a second one; every algorithm."""
    from .compiling import measure

    return measure(names, repeats=1 if quick else 3)


def scaling(names, quick):
    """The cost by the number of replications and of devices, and the share of lanes in use."""
    from .scaling import SCALED, devices, lane_use, measure

    sizes = {"sizes": (100, 1000)} if quick else {}
    results = {"replications": measure(chosen(names, SCALED), **sizes)}
    results["lane_use"] = lane_use(lanes=32 if quick else 128)
    results["devices"] = devices(quick)
    return results


def sweeping(names, quick):
    """Cells that differ only in numbers: as one sweep, and with one `simulate` for each."""
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


def gpu(names, quick, lanes, within):
    """Rounds per second by number of lanes, engine and precision."""
    from .accelerator import LANES, NAMES, SECONDS, measure

    few, seconds = ((min(LANES),), 0.1) if quick else (LANES, SECONDS)
    return measure(chosen(names, NAMES), lanes or few, seconds, within)


PARTS = {
    "contests": contests,
    "compiling": compiling,
    "scaling": scaling,
    "sweeping": sweeping,
    "gpu": gpu,
}


def chosen(names, known):
    """The names asked for; by default all."""
    unknown = sorted(set(names or ()) - set(known))
    if unknown:
        raise SystemExit(f"no contest {unknown[0]!r}; there are {', '.join(known)}")
    return names or list(known)


def main():
    """Run a part, print the table, write the file."""
    options = arguments()
    if options.part != "gpu":
        one_core()
    # This comes before JAX is imported.
    import jax

    from .contest import save

    more = (options.lanes, options.within) if options.part == "gpu" else ()
    results = PARTS[options.part](options.only, options.quick, *more)
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
