"""Experiments: files, resumption, and claims that are decided by standard errors."""

import dataclasses
import json
import math
from functools import partial

import numpy as np
import pytest
import xarray

import jaxbandits as jb
from benchmarks import reproductions
from jaxbandits import reproduce
from jaxbandits.reproduce.claims import Claim, Finding, checked, few_errors
from jaxbandits.reproduce.measures import Estimate, all_hold

MANY = 10**6  # replications

NAME = "lingape/fig1"
OTHERS = {  # no figures of papers
    *("glm/fig1_printed", "glm/lin_ts", "rage/fig2a_printed"),
    *(f"gse/{name}" for name in ("eta", "bounds", "bounds_logistic", "fig6_100", "fig6_per_arm")),
}


EASY = reproduce.Experiment(
    title="An angle that takes hundreds of pulls, not a million",
    instances={"soare": partial(jb.instances.soare, angle=0.8, scale=2.0)},
    algorithms={"LinGapE": partial(jb.lingape, delta=0.05)},
    axes={"dim": (2, 3, 5)},
    replications=20,
    quick={"axes": {"dim": (2, 5)}, "replications": 6},
    claims=checked(few_errors()),
    quantities=("pulls",),
)


@pytest.fixture
def easy(monkeypatch):
    """An experiment that takes seconds, under the name of a figure."""
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, EASY)
    return EASY


def test_quick_and_arguments_override_the_experiment():
    assert EASY.sweep().axes == {"dim": (2, 3, 5)}
    quick = EASY.sweep(quick=True)
    assert (quick.axes, quick.replications) == ({"dim": (2, 5)}, 6)
    assert EASY.sweep(7, quick=True).replications == 7
    assert EASY.sweep().max_pulls == 10_000_000
    long = dataclasses.replace(
        EASY, max_pulls=10**10, quick={"instances": {"other": jb.instances.soare}}
    )
    assert long.sweep().max_pulls == 10**10
    assert long.sweep(quick=True).instances[0].label == "other"


def test_files_and_resumption(easy, tmp_path):
    options = {"quick": True, "replications": 6}
    result = reproduce.reproduce(NAME, tmp_path, **options)
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert claims == result.claims
    assert all(set(one) == {"claim", "paper", "ours", "measured", "holds"} for one in claims)
    assert claims[0]["holds"] is None  # six runs say little about an error of 5%
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
    with xarray.open_dataset(tmp_path / "results.nc") as dataset:
        assert dataset.sizes["dim"] == 2
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    again = reproduce.reproduce(NAME, tmp_path, **options)
    assert times == {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    assert again.claims == result.claims


def test_a_figure_has_the_paper_s_scale_and_leaves_out_what_the_paper_s_does(easy, tmp_path):
    two = {**easy.algorithms, "another one": partial(jb.lingape, delta=0.1)}
    pictures = []
    for scale in ("linear", "log"):
        shown = dataclasses.replace(easy, algorithms=two, scale=scale, undrawn=("another one",))
        result = reproduce.experiment.run(shown, tmp_path, quick=True)
        assert result.dataset.algorithm.values.tolist() == list(two)
        pictures.append((tmp_path / "figure.svg").read_text())
    linear, log = pictures
    assert linear != log
    for picture in pictures:
        assert "LinGapE" in picture
        assert "another one" not in picture


def test_a_run_is_kept_and_judged_again_from_its_cells(easy, tmp_path, monkeypatch, capsys):
    whole = dataclasses.replace(easy, axes={"dim": (2, 5)}, replications=6)
    monkeypatch.setattr(reproductions, "SHORT", 0.0)
    for name in ("KEPT", "STORED", "PICTURES"):
        monkeypatch.setattr(reproductions, name, tmp_path / name)
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, whole)
    out = tmp_path / NAME
    result = reproduce.reproduce(NAME, out)
    for file in ("claims.json", "results.nc"):  # as of a run that has not ended
        (out / file).rename(out / f"later {file}")
    reproductions.keep(tmp_path)
    assert "has not ended" in capsys.readouterr().out
    for file in ("claims.json", "results.nc"):
        (out / f"later {file}").rename(out / file)
    reproductions.keep(tmp_path)
    assert json.loads(reproductions.KEPT.read_text())[NAME]["claims"] == result.claims
    cells = {file.name for file in (out / "cells").iterdir()}
    assert {file.name for file in (reproductions.STORED / NAME / "cells").iterdir()} == cells
    ends = Claim("It ends.", lambda dataset: Finding({}, bool(dataset.stopped.all())))
    changed = dataclasses.replace(whole, claims=checked(ends))
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, changed)
    capsys.readouterr()
    reproductions.judge_again(None)
    assert capsys.readouterr().out == f"{NAME}: kept\n"  # and no cell was played
    (row,) = json.loads(reproductions.KEPT.read_text())[NAME]["claims"]
    assert (row["claim"], row["holds"]) == ("It ends.", True)
    monkeypatch.setattr(reproductions, "SHORT", math.inf)
    reproductions.keep(tmp_path)
    assert not (reproductions.STORED / NAME).exists()
    capsys.readouterr()
    reproductions.judge_again(None)
    assert capsys.readouterr().out == f"{NAME}: 2 cells were played\n{NAME}: kept\n"


@pytest.mark.slow
def test_claims_and_title_name_what_stands_in_for_data(easy, tmp_path, monkeypatch):
    def measured(folder):
        gap = float((folder / "gap.txt").read_text())
        return {"measured": partial(jb.instances.canonical, gap=gap)}

    def ends(dataset):
        return Finding({"pulls": float(dataset.pulls.mean())}, bool(dataset.stopped.all()))

    one = dataclasses.replace(
        easy,
        instances={"made up": partial(jb.instances.canonical, gap=2.0)},
        from_folder=measured,
        stand_in="made-up means",
        claims=checked(Claim("It ends.", ends)),
        quick={"axes": {"dim": (2, 3)}, "replications": 6},
    )
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, one)
    (tmp_path / "gap.txt").write_text("1.5")
    bare = reproduce.reproduce(NAME, tmp_path / "bare", quick=True)
    assert bare.claims[0]["claim"] == "It ends. (made-up means)"
    assert bare.dataset.attrs["experiment"].endswith(" (made-up means)")
    real = reproduce.reproduce(NAME, tmp_path / "real", quick=True, data=tmp_path)
    assert real.claims[0]["claim"] == "It ends."
    assert real.dataset.instance.values.tolist() == ["measured"]
    assert "made-up" not in real.dataset.attrs["experiment"]


def test_data_that_an_experiment_does_not_need_change_nothing(easy, tmp_path):
    assert easy.sweep(quick=True, data=tmp_path) == easy.sweep(quick=True)
    assert easy.note(None) == easy.note(tmp_path) == ""


def test_within_and_all_hold_give_true_false_or_none():
    assert Estimate(1.0, 0.1, MANY).within(0.5, 1.5) is True
    assert Estimate(1.6, 0.01, MANY).within(0.5, 1.5) is False
    assert Estimate(1.4, 0.1, MANY).within(0.5, 1.5) is None
    assert all_hold([True, True]) is True
    assert all_hold([None, False]) is False
    assert all_hold([None, True]) is None
    assert all_hold([]) is None


def test_below_is_decided_by_the_standard_error():
    assert Estimate(1.0, 0.1, MANY).below(2.0) is True
    assert Estimate(3.0, 0.1, MANY).below(2.0) is False
    assert Estimate(1.9, 0.1, MANY).below(2.0) is None
    assert Estimate(1.0, float("nan"), MANY).below(2.0) is None
    assert Estimate(float("nan"), 0.1, MANY).below(2.0) is None
    assert Estimate(1.81, 0.1, MANY).below(2.0) is None  # near the end of the interval
    assert Estimate(1.79, 0.1, MANY).below(2.0) is True
    assert Estimate(1.6, 0.1, 3).below(2.0) is None  # Student's: 4.5 errors and not 2
    assert Estimate(1.5, 0.1, 3).below(2.0) is True
    assert Estimate(1.0, 0.1, 1).below(2.0) is None
    assert Estimate(2.0, 0.0, MANY).below(2.0) is None  # equal for certain, and not below
    assert Estimate(1.9, 0.0, MANY).below(2.0) is True
    assert Estimate(2.1, 0.0, MANY).below(2.0) is False


def test_claims_are_plain_json():
    found = Finding({"a": float("nan"), "b": [1.0, float("nan")]}, np.bool_(True))
    (row,) = checked(Claim("text", lambda dataset: found))(None)
    assert row["measured"] == {"a": None, "b": [1.0, None]}
    assert row["holds"] is True


def test_a_misspelt_experiment_is_refused():
    figures = {name for name in reproduce.EXPERIMENTS if name not in OTHERS}
    assert len(figures) == 29
    with pytest.raises(ValueError, match="did you mean 'lingape/fig"):
        reproduce.reproduce("lingape/fig", "nowhere")
