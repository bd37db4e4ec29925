"""Digests of runs: equal for equal numbers, different for any others."""

import hashlib
import json
from pathlib import Path

import cases
import numpy as np
import pytest

from benchmarks import digests
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.spec import planned

PULLS = np.array([3, 5])
FIRST = Path(__file__).parent / "stored" / "0.2.0" / "digests.json"  # of each row


@pytest.mark.parametrize(
    "other",
    [{"pulls": PULLS + 1}, {"pulls": PULLS.astype(float)}, {"pulls": PULLS[None]}, {"arm": PULLS}],
    ids=["number", "dtype", "shape", "name"],
)
def test_different_arrays_have_different_digests(other):
    same = digests.digest_of({"pulls": PULLS.copy()})
    assert digests.digest_of({"pulls": PULLS}) == same
    assert digests.digest_of(other) != same


def test_differences_name_the_case_and_the_field():
    before = {"a": {"pulls": "1", "info": "2"}, "b": {"pulls": "3"}, "c": {"pulls": "4"}}
    after = {"a": {"pulls": "0", "info": "2"}, "b": {"pulls": "3", "regret": "5"}, "d": {}}
    assert digests.differences(before, before) == []
    assert digests.differences(before, after) == ["a: pulls", "b: regret", "c: pulls"]


def test_the_command_compares_with_a_file(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(digests, "ENGINES", ("xla",))
    file, only = tmp_path / "digests.json", ["--only", "sequential_halving"]
    assert digests.main(["--out", str(file), *only]) == 0
    assert digests.main(["--against", str(file), *only]) == 0
    assert capsys.readouterr().out.endswith("equal: 1 rows\n")
    table = json.loads(file.read_text())
    table["digests"]["sequential_halving xla"]["arm_pulls"] = "another"
    file.write_text(json.dumps(table))
    assert digests.main(["--against", str(file), *only]) == 1
    assert capsys.readouterr().out.endswith("sequential_halving xla: arm_pulls\n")


def test_runs_of_other_numbers_have_other_digests():
    case = cases.named("sequential_halving")
    instance, build = case.other
    other = digests.digests(case._replace(instance=instance, build=build), "xla")
    assert other["pulls"] != digests.digests(case, "xla")["pulls"]


def test_numbers_that_have_changed_since_the_first_version_have_a_revision():
    """Stored runs with the earlier numbers would else be mixed with new ones."""
    now = json.loads(digests.RESULTS.read_text())
    first = json.loads(FIRST.read_text())
    if any(now[name] != first[name] for name in ("machine", "jax")):
        pytest.skip("the digests of the first version are of another machine or another JAX")
    changed = {
        name.rpartition(" ")[0]
        for name, row in now["digests"].items()
        if first["digests"].get(name, "") not in ("", _short(row))
    }
    without = [case.name for case in cases.CASES if case.name in changed and not _revised(case)]
    assert without == []


def _short(row):
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:16]


def _revised(case):
    plan = planned({"i": case.instance}, {"a": case.build}, replications=2, **case.options)
    (cell,) = cells_of(plan)
    return cell.revised
