"""`python -m benchmarks.gpu_agreement`: whether a GPU gives the runs that a CPU gives.

For each task the same replications by engine "xla" and engine "cuda" on the GPU, each twice, and by
the CPU of the same machine, in a process of its own. Runs of one engine must be identical both
times. Engines differ in the last bits of numbers, which rarely changes a choice: the table gives
the shares of replications that stop after as many pulls, and that draw each arm as often, and the
difference of mean pulls in standard errors.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

# Replications of each task.
TASKS = {
    "lingape-soare": 100_000,
    "lingape-sphere": 5_000,
    "gse-16": 20_000,
    "m-lingape-drug": 5_000,
    "rage-soare": 2_000,
}


class Pulls(NamedTuple):
    """What is compared."""

    pulls: object  # int [R]
    arm_pulls: object  # int [R, K]
    engine: str = ""


def play(name, replications, engine):
    """The `Pulls` of a task on the default device."""
    from .tasks import task_of

    runs = task_of(name).play(replications, engine=engine)
    return Pulls(runs.pulls, runs.arm_pulls, runs.meta["engine"])


def on_cpu(name, replications):
    """The `Pulls` of a task on the CPU, engine "xla"."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pulls.npz")
        command = [sys.executable, "-m", "benchmarks.gpu_agreement", "--cpu", name]
        command += ["--replications", str(replications), "--out", str(path)]
        subprocess.run(command, check=True, env=os.environ | {"JAX_PLATFORMS": "cpu"})
        with np.load(path, allow_pickle=False) as stored:
            return Pulls(stored["pulls"], stored["arm_pulls"])


def compare(name, replications):
    """The figures of a task."""
    from .accelerator import SHARED_DESIGNS

    engines = ["xla"] if name in SHARED_DESIGNS else ["xla", "cuda"]
    runs = {engine: play(name, replications, engine) for engine in engines}
    row = {"replications": replications, "mean pulls": float(runs["xla"].pulls.mean())}
    for engine, first in runs.items():
        again = play(name, replications, engine)
        row[f"{engine} twice the same"] = bool((first.arm_pulls == again.arm_pulls).all())
        row[f"{engine} played by"] = first.engine
    cpu = on_cpu(name, replications)
    for engine, found in runs.items():
        row[f"{engine} and CPU"] = differences(found, cpu)
    if "cuda" in runs:
        row["cuda and xla"] = differences(runs["cuda"], runs["xla"])
    return row


def differences(one, two):
    """Shares of equal replications, and the difference of mean pulls in standard errors."""
    import numpy as np

    # Where all replications draw as often, draws of the first arm are compared.
    a, b = (x.pulls if np.std(one.pulls) else x.arm_pulls[:, 0] for x in (one, two))
    error = np.hypot(a.std(), b.std()) / np.sqrt(len(a))
    return {
        "equal pulls": float((one.pulls == two.pulls).mean()),
        "equal pulls of each arm": float((one.arm_pulls == two.arm_pulls).all(1).mean()),
        "standard errors": float(abs(a.mean() - b.mean()) / max(error, 1e-300)),
    }


def main():
    """Compare, print, write the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_agreement", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--share", type=float, default=1.0, help="of the replications")
    parser.add_argument("--out", type=Path, help="where the figures go: benchmarks/results/...")
    parser.add_argument("--cpu", metavar="NAME", help="only play a task, and store its pulls")
    parser.add_argument("--replications", type=int, help="of --cpu")
    options = parser.parse_args()
    if options.cpu:
        import numpy as np

        found = play(options.cpu, options.replications, "xla")
        np.savez(options.out, pulls=found.pulls, arm_pulls=found.arm_pulls)
        return
    import jax

    from .contest import save
    from .speed import RESULTS, _plain

    device, results = jax.devices()[0], {}
    for name in options.only:
        results[name] = compare(name, max(16, int(options.share * TASKS[name])))
        print(name, results[name], flush=True)
    out = options.out or RESULTS / f"gpu-agreement-{_plain(device)}.json"
    save(out, results, getattr(device, "device_kind", str(device)))
    print(f"written: {out}")


if __name__ == "__main__":
    main()
