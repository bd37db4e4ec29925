"""The benchmarks run, and their contestants play the same bandit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from params import params

from benchmarks import build
from benchmarks.contests import CONTESTS

ROOT = Path(__file__).parent.parent
QUICK = ("lingape-soare", "logistic-mle", "designs-100")


@pytest.mark.parametrize("name", params(CONTESTS, always=QUICK))
def test_all_contestants_agree_before_they_are_timed(name):
    contest = CONTESTS[name](quick=True)
    assert {"jaxbandits", "numpy"} <= set(contest.contestants)
    if name.startswith("lingape") or name in ("gse-16", "gse-64"):
        assert ("numba" in contest.contestants) == (build.numba is not None)
        assert ("c" in contest.contestants) == (build.compiler() is not None)
    assert contest.agree()


def test_the_command_prints_a_table_and_writes_figures(tmp_path):
    out = tmp_path / "speed.json"
    command = [sys.executable, "-m", "benchmarks.speed", "--quick", "--only", "lingape-soare"]
    done = subprocess.run(
        [*command, "--out", out], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    assert "ours is faster" in done.stdout
    stored = json.loads(out.read_text())
    figures = stored["results"]["lingape-soare"]
    assert set(figures["ratios"]) == set(figures["seconds"]) - {"jaxbandits"}
    if "native engine" in figures["seconds"]:
        assert set(figures["native_ratios"]) == set(figures["seconds"]) - {"native engine"}
    assert all(f["least"] <= f["median"] <= f["most"] for f in figures["seconds"].values())
    assert stored["machine"]["jax"]


def measured(tmp_path, *arguments):
    """The results of a part of the benchmarks."""
    out = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.speed", "--quick", "--out", out, *arguments]
    subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=True)
    return json.loads(out.read_text())["results"]


@pytest.mark.slow
def test_the_cost_by_replications_and_devices(tmp_path):
    found = measured(tmp_path, "--part", "scaling")
    rows = found["replications"]["lingape-soare"]["xla"]
    assert {int(size) for size in rows} == {100, 1000}
    assert all(row["microseconds"] > 0 for row in rows.values())
    assert 0.8 < found["lane_use"]["use"] <= 1.0
    assert found["devices"] is None or found["devices"]["ratio"] > 0


@pytest.mark.slow
def test_the_cost_of_compiling(tmp_path):
    found = measured(tmp_path, "--part", "compiling", "--only", "lingape-soare")
    assert "xla" in found["lingape-soare"]
    for cost in found["lingape-soare"].values():
        assert 0 < cost["kept"] < cost["cold"]


@pytest.mark.slow
def test_lanes_of_an_accelerator(tmp_path):
    # Any device will do to see that it runs, in both precisions.
    found = measured(tmp_path, "--gpu", "--only", "lingape-soare")
    assert all(set(row) == {"float64", "float32"} for row in found["lingape-soare"].values())


def test_an_unknown_contest_is_named():
    command = [sys.executable, "-m", "benchmarks.speed", "--only", "lingap"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no contest 'lingap'; there are lingape-soare" in done.stderr
