"""Digests of the runs of every algorithm, which show whether a change has altered any number.

`python -m benchmarks.digests` runs each case of `tests/cases.py` with both engines and three seeds
and writes a digest of pulls, answers, arm counts, regret and info. `--against FILE` compares with
such a file instead, and ends with status 1 if anything differs. The last bits depend on the
processor and on JAX, so both files must come from the same machine. Another checkout of the package
can run the same cases:

    PYTHONPATH=OTHER python benchmarks/digests.py --out before.json
    python -m benchmarks.digests --against before.json
"""

import argparse
import hashlib
import json
import platform
import sys
from pathlib import Path

import jax
import numpy as np

import jaxbandits as jb

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "digests-cpu.json"
ENGINES, SEEDS, REPLICATIONS = ("xla", "native"), (0, 1, 2), 48
FIELDS = ("pulls", "answer", "arm_pulls", "correct", "stopped", "regret")


def digest_of(arrays):
    """A digest of named arrays: their names, dtypes, shapes and bytes."""
    words = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        array = np.ascontiguousarray(array)
        words.update(f"{name} {array.dtype} {array.shape}\n".encode())
        words.update(array.tobytes())
    return words.hexdigest()[:16]


def digests(case, engine):
    """`{field: digest}` of the runs of a case, over all seeds."""
    runs = [
        jb.simulate(
            case.instance,
            case.build,
            replications=REPLICATIONS,
            batch=16,
            seed=seed,
            engine=engine,
            **case.options,
        )
        for seed in SEEDS
    ]
    known = [name for name in FIELDS if getattr(runs[0], name) is not None]
    found = {name: digest_of({name: np.stack([getattr(r, name) for r in runs])}) for name in known}
    info = {name: np.stack([r.info[name] for r in runs]) for name in runs[0].info}
    return found | ({"info": digest_of(info)} if info else {})


def differences(before, after):
    """One line per case that names the fields that differ or that only one side has."""
    lines = []
    for name in sorted(before.keys() | after.keys()):
        one, two = before.get(name, {}), after.get(name, {})
        fields = sorted(f for f in one.keys() | two.keys() if one.get(f) != two.get(f))
        if fields:
            lines.append(f"{name}: {', '.join(fields)}")
    return lines


def machine():
    """The processor and the JAX version, on which the last bits depend."""
    # This does not use `compilers.cpp.features`, because other checkouts may name it differently.
    file = Path("/proc/cpuinfo")
    wide = file.exists() and "avx512f" in file.read_text().split()
    wide = "AVX-512" if wide else "narrower registers than AVX-512"
    return {"machine": f"{platform.machine()}, {wide}", "jax": jax.__version__}


def main(arguments=None):
    """Run the cases; write their digests, or compare them with those of a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", nargs="*", help="names of cases")
    asked = parser.parse_args(arguments)
    sys.path.insert(0, str(ROOT / "tests"))
    from cases import CASES

    print(f"running {Path(jb.__file__).parent}", flush=True)
    found = {}
    for case in CASES:
        for engine in ENGINES:
            if not asked.only or case.name in asked.only:
                found[f"{case.name} {engine}"] = digests(case, engine)
                print(f"{case.name} {engine}", flush=True)
    if asked.against is None:
        table = {"replications": REPLICATIONS, "seeds": SEEDS, **machine(), "digests": found}
        asked.out.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        return 0
    before = json.loads(asked.against.read_text(encoding="utf-8"))["digests"]
    if asked.only:
        before = {name: row for name, row in before.items() if name in found}
    lines = differences(before, found)
    print("\n".join(lines) or f"equal: {len(found)} rows")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
