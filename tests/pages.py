"""Folders of synthetic results, for tests of the report page."""

import json

import numpy as np
import xarray

from jaxbandits.intervals import binomial_interval
from jaxbandits.report import write
from jaxbandits.sweeps.dataset import write as save

HOSTILE = '<script>alert("1")</script> & $x'
GRID = ("instance", "algorithm", "gap")
CLAIMS = [
    {"claim": "a < b", "measured": {"ratio": 1.2345, "standard_error": 0.12}, "holds": True},
    {"claim": HOSTILE, "measured": {"means": [10.0], "standard_errors": [1.5]}, "holds": False},
    {"claim": "perhaps", "measured": {"low": None, "runs": 12000}, "holds": None},
]


def example(*, instances=("soare", HOSTILE), algorithms=("LinGapE", "GSE"), regret=False):
    """A sweep's dataset of synthetic runs: some err, and some of the last cell are cut short."""
    rng = np.random.default_rng(0)
    shape = (len(instances), len(algorithms), 2)
    pulls = rng.integers(500, 2000, (*shape, 20))
    correct, stopped = rng.random(pulls.shape) < 0.8, np.ones(pulls.shape, bool)
    stopped[-1, -1, -1, :5] = False
    errors, finished = (stopped & ~correct).sum(-1), stopped.sum(-1)
    bounds = [binomial_interval(*pair) for pair in zip(errors.flat, finished.flat, strict=True)]
    low, high = np.reshape(bounds, (*shape, 2)).transpose(3, 0, 1, 2)
    columns = {name: (GRID, values) for name, values in {
        "cut_short": 20 - finished, "errors": errors, "error_rate": errors / finished,
        "error_low": low, "error_high": high, "seconds": rng.random(shape),
        "pulls_mean": pulls.mean(-1), "pulls_se": pulls.std(-1, ddof=1) / 20**0.5,
        "pulls_mean_is_lower_bound": finished < 20,
    }.items()}  # fmt: skip
    runs = {"pulls": pulls, "correct": correct, "stopped": stopped}
    columns |= {name: ((*GRID, "replication"), values) for name, values in runs.items()}
    coordinates = {"instance": list(instances), "algorithm": list(algorithms), "gap": [0.5, 0.25]}
    if regret:
        curves = rng.random((*shape, 20, 6)).cumsum(-1)
        columns["regret"] = ((*GRID, "replication", "round"), curves)
        coordinates["round"] = np.arange(1, 7)
    tables = {f"[algorithms.{name}]": {"constructor": f"a.b.{name}", "delta": "0.05"}
              for name in algorithms}  # fmt: skip
    attributes = {
        "jaxbandits": "0.1.0", "jax": "0.8.0", "device": "cpu", "seed": 7, "replications": 20,
        "max_pulls": 2000, "horizon": 6 if regret else 0, "axes": '["gap"]',
        "options": json.dumps(tables), "python": "3.11.7", "machine": "Linux, 2 CPUs",
        "command": f"jaxbandits run {HOSTILE}",
    }  # fmt: skip
    return xarray.Dataset(columns, coordinates, attributes)


def stored(folder, dataset, claims=None):
    folder.mkdir(parents=True, exist_ok=True)
    save(dataset, folder / "results.nc")
    if claims is not None:
        (folder / "claims.json").write_text(json.dumps(claims))
    return folder


def two_folders(path):
    """Write two folders of results, one with claims, and their page; returns the page."""
    stored(path / "regret", example(regret=True, instances=("cube",)))
    stored(path / "paper/fig1", example(), CLAIMS)
    return write(path)
