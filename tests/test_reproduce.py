"""Experiments: files, resumption, and claims that are decided by standard errors."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest
import xarray

import jaxbandits as jb
from jaxbandits import reproduce
from jaxbandits.reproduce import base, lingape
from jaxbandits.sweeps import run

NAME = "lingape/fig1"


EASY = {"soare": partial(jb.instances.soare, angle=0.8, scale=2.0)}


@pytest.fixture
def easy(monkeypatch):
    """The experiment with an angle that takes hundreds of pulls, not a million."""
    quick = {"axes": {"dim": (2, 5)}, "replications": 6}
    one = dataclasses.replace(reproduce.EXPERIMENTS[NAME], instances=EASY, quick=quick)
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, one)
    monkeypatch.setattr(lingape, "ANGLE", 0.8)
    return one


def test_the_paper_s_parameters():
    plan = reproduce.EXPERIMENTS[NAME].sweep(None, False, None)
    assert plan.axes == {"dim": tuple(range(2, 11))}
    assert plan.instances[0].options == {"angle": 0.01, "scale": 2.0}
    assert plan.algorithms[0].options == {"delta": 0.05, "v0": 1.0}
    assert plan.replications == 100
    quick = reproduce.EXPERIMENTS[NAME].sweep(None, True, None)
    assert (quick.axes, quick.replications) == ({"dim": (2, 5, 10)}, 10)
    assert reproduce.EXPERIMENTS[NAME].sweep(7, True, None).replications == 7


def test_files_and_resumption(easy, tmp_path):
    options = {"quick": True, "replications": 6}
    result = reproduce.reproduce(NAME, tmp_path, **options)
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert claims == result.claims
    assert all(set(one) == {"claim", "measured", "holds"} for one in claims)
    assert claims[0]["holds"] is None  # six runs say little about an error of 5%
    assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
    with xarray.open_dataset(tmp_path / "results.nc") as dataset:
        assert dataset.sizes["dim"] == 2
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    again = reproduce.reproduce(NAME, tmp_path, **options)
    assert times == {file: file.stat().st_mtime_ns for file in (tmp_path / "cells").iterdir()}
    assert again.claims == result.claims


def test_one_replication_decides_nothing(easy):
    one = run(easy.sweep(quick=True)).isel(replication=[0])
    one["pulls_se"] = one.pulls_se * np.nan
    claims = lingape.figure_1_claims(one)
    assert {claim["holds"] for claim in claims} == {None}
    json.dumps(claims, allow_nan=False)


def test_claims_can_fail(easy):
    plan = dataclasses.replace(easy.sweep(quick=True), seed=1)
    dataset = run(plan)
    wrong = dataset.assign(correct=dataset.correct & False)
    wrong["arm_pulls"] = dataset.arm_pulls * 0 + 1000 + dataset.replication
    wrong["pulls_mean"] = dataset.pulls_mean * dataset.dim**3
    assert [one["holds"] for one in lingape.figure_1_claims(wrong)] == [False] * 5


def test_claims_are_open_where_single_pulls_are_not_kept(easy, monkeypatch):
    monkeypatch.setattr("jaxbandits.sweeps.dataset.MOST_ARM_PULLS", 1)
    dataset = run(easy.sweep(quick=True))
    assert "arm_pulls" not in dataset
    assert [one["holds"] for one in easy.claims(dataset)][2:] == [None] * 3


def test_what_stands_in_for_data_is_said(easy, tmp_path, monkeypatch):
    def measured(folder):
        gap = float((folder / "gap.txt").read_text())
        return {"measured": partial(jb.instances.canonical, gap=gap)}

    def means(dataset):
        return [base.claim("It ends.", {"pulls": float(dataset.pulls.mean())}, True)]

    one = dataclasses.replace(
        easy,
        instances={"made up": partial(jb.instances.canonical, gap=2.0)},
        from_folder=measured,
        stand_in="made-up means",
        claims=means,
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


def test_below_is_decided_by_the_standard_error():
    assert base.below(1.0, 0.1, 2.0) is True
    assert base.below(3.0, 0.1, 2.0) is False
    assert base.below(1.9, 0.1, 2.0) is None
    assert base.below(1.0, float("nan"), 2.0) is None


def test_claims_are_plain_json():
    one = base.claim("text", {"a": float("nan"), "b": [1.0, float("nan")]}, np.bool_(True))
    assert one == {"claim": "text", "measured": {"a": None, "b": [1.0, None]}, "holds": True}


def test_names():
    assert not set(reproduce.LATER) & set(reproduce.EXPERIMENTS)
    assert len(reproduce.LATER) + len(reproduce.EXPERIMENTS) == 22
    with pytest.raises(ValueError, match="not available yet; available: lingape/fig1"):
        reproduce.reproduce("gse/fig7", "nowhere")
    with pytest.raises(ValueError, match="did you mean 'lingape/fig1'"):
        reproduce.reproduce("lingape/fig", "nowhere")
