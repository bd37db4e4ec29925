"""The benchmarks run, and all contestants of a contest simulate the same bandit."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

from benchmarks import (
    before_after,
    build,
    cores,
    gpu_launches,
    guarantees,
    kernel_compiling,
    mutants,
    mutations,
    numerics,
    speed,
    stress,
)
from benchmarks.contests import CONTESTS

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTESTS)
def test_all_contestants_agree_before_they_are_timed(name):
    contest = CONTESTS[name](quick=True)
    assert {"jaxbandits", "numpy"} <= set(contest.contestants)
    if name.startswith("lingape") or name in ("gse-16", "gse-64"):
        assert ("numba" in contest.contestants) == (build.numba is not None)
        assert ("c" in contest.contestants) == (build.compiler() is not None)
    assert contest.agree()


@pytest.mark.slow
def test_the_command_prints_a_table_and_writes_figures(tmp_path, monkeypatch, capsys):
    """In this process, which has compiled the contestants for the test above."""
    out = tmp_path / "speed.json"
    command = ["speed", "--quick", "--only", "lingape-soare", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", command)
    settled = []
    monkeypatch.setattr(speed, "one_core", lambda: settled.append("one core"))
    speed.main()
    assert settled == ["one core"]
    assert "ours is faster" in capsys.readouterr().out
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


def test_times_before_and_after_are_compared_in_pairs():
    found = before_after.compared([2.0, 1.0, 4.0], [1.0, 1.5, 4.0])
    assert found == {"least": 1.0, "median": 1.0, "lowest": 0.5, "highest": 1.5}


def test_another_checkout_must_be_one(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"cannot play .*designs-100.*does not contain jaxb"):
        before_after.measured(tmp_path, "designs-100", rounds=1)
    with pytest.raises(SystemExit):
        before_after.main([str(tmp_path), "chess"])
    assert "contests: chess is none of lingape-soare" in capsys.readouterr().err


@pytest.mark.slow
def test_a_checkout_is_as_fast_as_itself(tmp_path):
    out = tmp_path / "ratios.json"
    options = ["--rounds", "9", "--quick", "--out", str(out)]
    found = before_after.main([str(ROOT), "designs-100", *options])
    assert json.loads(out.read_text()) == found
    for ratios in found["designs-100"].values():
        assert ratios["lowest"] <= ratios["median"] <= ratios["highest"]
        assert 0.7 < ratios["least"] < 1.4


@pytest.mark.slow
def test_the_part_scaling_measures_replications_and_devices(tmp_path):
    found = measured(tmp_path, "--part", "scaling")
    rows = found["replications"]["lingape-soare"]["xla"]
    assert {int(size) for size in rows} == {100, 1000}
    assert all(row["microseconds"] > 0 for row in rows.values())
    assert 0.8 < found["lane_use"]["use"] <= 1.0
    assert found["devices"] is None or found["devices"]["ratio"] > 0


@pytest.mark.slow
def test_all_cores_are_timed_against_one(tmp_path, monkeypatch):
    monkeypatch.setattr(cores, "usable_cores", lambda: 2)
    out = tmp_path / "cores.json"
    found = cores.main(["--quick", "--only", "lingape-sphere", "--out", str(out)])
    assert json.loads(out.read_text())["results"] == found
    _, many = found.values()
    assert many["cores"] == 2
    assert 0 < many["ratio"]["median"] <= many["ratio"]["best"]


def test_kernels_are_compiled_anew_for_each_row(tmp_path):
    path = tmp_path / "found.json"
    only = ["--only", "rounding.efficient", "--dims", "2", "--repeats", "1", "--out", str(path)]
    rows = kernel_compiling.main(only)
    assert json.loads(path.read_text())["results"] == rows
    assert [(row["kernel"], row["way"]) for row in rows] == [
        ("rounding.efficient", "plain"),
        ("rounding.efficient", "vmap"),
    ]
    assert all(row["compiling"] > 0 for row in rows)
    assert rows[0]["equations"] < rows[1]["equations"]


def test_all_kernels_that_are_measured_are_stored():
    stored = json.loads(kernel_compiling.RESULTS.read_text())["results"]
    found = {(row["kernel"], row["dim"], row["way"]) for row in stored}
    with jax.enable_x64(True):
        for dim in kernel_compiling.DIMS:
            for name, kernel in kernel_compiling.kernels(dim).items():
                for way in kernel_compiling.ways(name, *kernel):
                    assert (name, dim, way) in found


@pytest.mark.slow
def test_a_kept_program_takes_less_time_than_compiling(tmp_path):
    found = measured(tmp_path, "--part", "compiling", "--only", "best arm, no features, lucb")
    assert {row["algorithm"] for row in found} == {"lucb"}
    assert {row["engine"] for row in found} == {"xla", *(["native"] if build.compiler() else [])}
    for row in found:
        assert 0 < row["warm_wall"] < row["kept_wall"] < row["cold_wall"]
        assert row["kept_cpu"] < row["cold_cpu"]
        assert row["kernels"] > row["loops"] > 0


@pytest.mark.slow
def test_the_accelerator_benchmark_runs_in_both_precisions(tmp_path):
    # Any device will do to see that it runs, in both precisions.
    found = measured(tmp_path, "--gpu", "--only", "lingape-soare")
    (row,) = found["lingape-soare"].values()
    assert set(row) == {"float64", "float32", *(["native float64"] if build.compiler() else [])}
    assert all(rate > 0 for rate in row.values())


@pytest.mark.slow
def test_runs_of_two_processes_are_compared(tmp_path):
    path = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.gpu_agreement", "--only", "rage-soare"]
    command += ["--share", "0.01", "--out", str(path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    found = json.loads(path.read_text())["results"]["rage-soare"]
    assert found["xla twice the same"]
    assert found["xla and CPU"]["equal pulls of each arm"] == 1.0


SEQUENCE = """\
000: kCopy          [source | sink] kCopy
001: kWhile         [source | sink]
condition:
    002: kKernel    [source | sink] test grid: [1, 1, 1]
  body:
    003: kCommandBuffer [source | sink]
        004: kKernel    [source | sink] refill grid: [1, 1, 1]
    005: kWhile         [source | sink]
condition:
        006: kKernel    [source | sink] test grid: [1, 1, 1]
      body:
        007: kCommandBuffer [source | sink]
            008: kKernel    [source | sink] run grid: [1, 1, 1]
            009: kCopy      [source | sink] kCopy
            010: kKernel    [source | sink] count grid: [1, 1, 1]
    011: kKernel    [source | sink] end grid: [1, 1, 1]
"""


@pytest.mark.parametrize("engine", ["xla", "cuda"])
def test_launches_of_the_innermost_loop_are_counted(engine):
    """With its condition; a graph counts as what is in it."""
    steps = gpu_launches.steps_of(SEQUENCE)
    found = gpu_launches.figures(steps, engine)
    assert found == {"kernels": 3, "copies": 1, "loops": 2, "started by the host": 2}


def test_an_unknown_contest_is_named():
    command = [sys.executable, "-m", "benchmarks.speed", "--only", "lingap"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "no contest 'lingap'; there are lingape-soare" in done.stderr


def test_the_guarantee_table_is_made_part_by_part(tmp_path):
    path = tmp_path / "table.json"
    table = guarantees.Table(path)

    def counts(errors):
        upper, rate = guarantees.upper(errors, 20_000), errors / 20_000
        return {"replications": 20_000, "errors": errors, "upper": upper, "error_rate": rate}

    table.put("lingape", 0.05, "itself", counts(940) | {"cut_short": 0}, ["left"])
    table.put("lingape", 0.05, "narrow", counts(1400) | {"cut_short": 5}, [])
    table.put("sequential_halving", None, "itself", counts(380) | {"cut_short": 0}, [])
    again = guarantees.Table(path)
    assert again.has("lingape", 0.05, "narrow", 20_000)
    assert not again.has("lingape", 0.05, "narrow", 20_001)
    assert not again.has("lingape", 0.1, "itself", 1)
    row, halving = again.rows
    np.testing.assert_allclose(row["itself"]["upper"], stats.beta.ppf(0.95, 941, 19_060))
    assert (row["kept"], row["narrow_broken"], halving["kept"]) == (True, True, True)
    again.put("lingape", 0.05, "itself", counts(980) | {"cut_short": 0}, [])  # 4.9%, up to 5.15%
    again.put("lingape", 0.05, "narrow", counts(1000) | {"cut_short": 5}, [])
    assert (again.rows[0]["kept"], again.rows[0]["narrow_broken"]) == (False, False)
    assert len({cell[:2] for cell in guarantees.cells()}) == 66


def test_a_ledger_in_fifty_digits_agrees_with_numpy():
    rng = np.random.default_rng(0)
    arms, counts, sums = rng.normal(size=(6, 5)), rng.integers(1, 99, 6), rng.normal(size=6)
    matrix = 0.5 * np.eye(5) + (arms.T * counts) @ arms
    inverse, means, variances, logdet = numerics.exact(arms, counts, sums, 0.5)
    right = np.linalg.inv(matrix)
    np.testing.assert_allclose(inverse.astype(float), right, rtol=1e-9)
    np.testing.assert_allclose(means.astype(float), arms @ right @ arms.T @ sums, rtol=1e-9)
    np.testing.assert_allclose(variances.astype(float), ((arms @ right) * arms).sum(1), rtol=1e-9)
    sign, log = np.linalg.slogdet(matrix)
    np.testing.assert_allclose(float(logdet), sign * log - 5 * np.log(0.5), rtol=1e-12)


def test_the_drift_of_a_ledger_is_small():
    with jax.enable_x64(True):
        row = numerics.drift("feature space", "even", 1.0, "float64", 0, 1000)
    found = row["errors"]["1000"]
    assert 0 < found["variance"] < 1e-11
    assert 0 < found["mean_in_sd"] < 1e-9


def test_the_mildest_level_that_breaks_a_guarantee_is_found():
    rows = [
        {"algorithm": "a", "switch": "df", "level": level, "broken": level < 3}
        for level in (1.5, 10.0, 2.1)
    ]
    rows.append({"algorithm": "a", "switch": "delay", "level": 10, "broken": False})
    assert stress.breaking(rows) == {"a": {"df": 2.1, "delay": None}}
    name, (_, instance, build, _) = next(iter(stress.settings().items()))
    gap = stress.gap_of(instance, 1)
    moved = stress.under(instance, "deviation", 2.0, gap, 3)
    np.testing.assert_allclose(np.abs(moved.means - instance.means), 2 * gap)
    assert name == build.func.__name__ == "lingape"


LOOP = """
def grows(start: int = 1 + 1, *, limit=10.0):
    while start <= limit and limit > 0:
        start = max(start + 1, 2 * start)
    return start
"""


def test_every_mutant_is_one_change_of_the_text():
    made = mutants.mutants("loop.py", LOOP)
    pairs = {(one.before, one.after) for one in made}
    expected = {("start <= limit", "start < limit"), ("1 + 1", "1 - 1"), ("10.0", "15.0")}
    assert expected | {("2 * start", "2 / start"), ("limit > 0", "limit >= 0")} <= pairs
    assert len({one.name for one in made}) == len(made)
    texts = {mutants.changed(one, LOOP) for one in made}
    assert len(texts) == len(made)
    for text in texts:
        lines = zip(text.splitlines(), ast.unparse(ast.parse(LOOP)).splitlines(), strict=True)
        assert sum(one != other for one, other in lines) == 1
    with pytest.raises(ValueError, match="has another expression than"):
        mutants.changed(made[-1], LOOP.replace("start + 1", "start + 1 + 1"))


def test_a_report_gives_seconds_of_files_that_pass(tmp_path):
    cases = [
        ("tests.test_a", 1.0, ""),
        ("tests.test_a", 2.0, ""),
        ("tests.k.test_b", 1.0, "<failure/>"),
    ]
    rows = [
        f'<testcase classname="{c}" name="test_it" time="{t}">{inner}</testcase>'
        for c, t, inner in cases
    ]
    (tmp_path / "r.xml").write_text(
        f"<testsuites><testsuite>{''.join(rows)}</testsuite></testsuites>"
    )
    found = mutations.found_in(tmp_path / "r.xml")
    assert found == {"tests/test_a.py": (3.0, []), "tests/k/test_b.py": (0.0, ["test_it"])}


def test_tests_of_a_file_are_found_by_name_and_by_use():
    found = mutations.tests_of("jaxbandits/kernels/selection.py")
    assert found[0] == "tests/kernels/test_selection.py"
    every = [
        path.relative_to(mutations.ROOT).as_posix()
        for path in mutations.ROOT.glob("jaxbandits/**/*.py")
    ]
    without = [
        file
        for file in every
        if mutations.part_of(file) in mutations.SHARES and not file.endswith("__.py")
    ]
    assert [file for file in without if not mutations.tests_of(file)] == []
