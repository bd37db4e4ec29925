"""Tables of papers that are calculated: files, rows that are stored, and what is refused."""

import dataclasses
import json
from functools import partial

import pytest
import xarray
from test_cli import call, refused

from benchmarks import reproductions
from jaxbandits import reproduce
from jaxbandits.reproduce import Calculation, calculation
from jaxbandits.reproduce.calculation import is_recorded
from jaxbandits.reproduce.claims import Claim, Finding, checked
from jaxbandits.reproduce.topm.constants import share

NAME = "topm/table4"
WIDE = Claim("It is wide.", lambda data: Finding({}, bool((data.high - data.low > 9).all())))


def dots(dataset, ax):
    ax.plot(dataset.percent.values, "o", label="share")


SMALL = Calculation(
    title="Shares, small",
    rows={f"N = {dim}": partial(share, 4, dim, 0.5) for dim in (2, 3, 4)},
    claims=checked(WIDE),
    draw=dots,
    replications=6,
    quick={"rows": ["N = 3"], "replications": 2},
)


@pytest.fixture
def drawn_too(monkeypatch):
    """A small table under the name of one of a paper."""
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, SMALL)
    return SMALL


@pytest.fixture
def small(drawn_too, monkeypatch):
    """The same without a figure, which takes longer than its rows."""
    monkeypatch.setattr(calculation, "_save", lambda *_: None)
    return drawn_too


def times(folder):
    return {file.name: file.stat().st_mtime_ns for file in (folder / "cells").iterdir()}


def test_rows_are_stored_and_not_calculated_again(drawn_too, tmp_path):
    result = reproduce.reproduce(NAME, tmp_path)
    assert result.dataset.row.values.tolist() == ["N = 2", "N = 3", "N = 4"]
    assert result.dataset.instances.values.tolist() == [6, 6, 6]
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert claims == result.claims
    assert claims[0]["holds"] is True
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
    assert (tmp_path / "table.csv").read_text().startswith("row,m,instances,count,percent")
    with xarray.open_dataset(tmp_path / "results.nc") as dataset:
        assert dataset["count"].values.tolist() == result.dataset["count"].values.tolist()
        assert not is_recorded(dataset)
    before = times(tmp_path)
    reproduce.reproduce(NAME, tmp_path)
    assert times(tmp_path) == before
    reproduce.reproduce(NAME, tmp_path, replications=5)
    assert len(times(tmp_path)) == 2 * len(before)


def test_what_changes_a_row_gives_it_another_file(small, tmp_path, monkeypatch):
    reproduce.reproduce(NAME, tmp_path, quick=True)
    (first,) = times(tmp_path)
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, dataclasses.replace(small, revision=1))
    reproduce.reproduce(NAME, tmp_path, quick=True)
    assert len(times(tmp_path)) == 2
    assert first in times(tmp_path)


def test_shards_share_the_rows(small, tmp_path):
    assert reproduce.reproduce(NAME, tmp_path, shard=(1, 2)) is None
    assert len(times(tmp_path)) == 2
    assert not (tmp_path / "claims.json").exists()
    result = reproduce.reproduce(NAME, tmp_path, shard=(2, 2))
    assert result.dataset.sizes["row"] == 3


def test_the_command_shows_the_rows(small, tmp_path):
    done = call("reproduce", NAME, "--quick", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "N = 3,2,2," in done.stdout
    assert "holds: It is wide." in done.stdout
    assert "jaxbandits report" not in done.stdout  # which is about runs
    refused(call("report", tmp_path), "only runs have a report")


def test_results_of_another_table_are_not_replaced(small, tmp_path, monkeypatch):
    reproduce.reproduce(NAME, tmp_path, quick=True)
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, dataclasses.replace(small, title="Other"))
    with pytest.raises(ValueError, match=r"it holds another experiment \(Shares, small\)"):
        reproduce.reproduce(NAME, tmp_path, quick=True)
    reproduce.reproduce(NAME, tmp_path, quick=True, force=True)
    with pytest.raises(ValueError, match="replications must be a whole number"):
        reproduce.reproduce(NAME, tmp_path, replications=0)


def test_recorded_data_and_what_stands_in(small, tmp_path, monkeypatch):
    def rows_from(folder):
        return {"from data": partial(share, 4, 2, float((folder / "scale.txt").read_text()))}

    both = dataclasses.replace(small, from_folder=rows_from, stand_in="made up")
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, both)
    (tmp_path / "scale.txt").write_text("0.25")
    bare = reproduce.reproduce(NAME, tmp_path / "bare", replications=2)
    assert bare.claims[0]["claim"] == "It is wide. (made up)"
    real = reproduce.reproduce(NAME, tmp_path / "real", replications=2, data=tmp_path)
    assert real.claims[0]["claim"] == "It is wide."
    assert real.dataset.row.values.tolist() == ["from data"]
    assert is_recorded(real.dataset)
    assert real.dataset.attrs["experiment"] == small.title


@pytest.mark.slow
def test_a_calculation_is_kept_with_its_size(drawn_too, tmp_path, monkeypatch):
    for name in ("KEPT", "STORED", "PICTURES"):
        monkeypatch.setattr(reproductions, name, tmp_path / name)
    for options in ({"quick": True}, {}):
        reproduce.reproduce(NAME, tmp_path / "out" / NAME, **options)
        reproductions.keep(tmp_path / "out")
        found = json.loads((tmp_path / "KEPT").read_text())[NAME]
        smaller = reproductions.smaller(NAME, found)
        text = reproductions.played_text(NAME, found)
        if options:
            assert smaller == ["2 replications instead of 6", "without N = 2, N = 4"]
            assert text.startswith("Smaller than the paper's: 2 replications")
        else:
            assert smaller == []
            assert text.startswith("Calculated at the paper's size. 6 random instances a row")
    section = reproductions.section(NAME, {NAME: found}, {"text": "Why."})
    assert "It is wide." in section
    judged = dataclasses.replace(
        drawn_too, claims=checked(Claim("New.", lambda _: Finding({}, True)))
    )
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, judged)
    reproductions.judge_again(None)
    (row,) = json.loads((tmp_path / "KEPT").read_text())[NAME]["claims"]
    assert (row["claim"], row["holds"]) == ("New.", True)
