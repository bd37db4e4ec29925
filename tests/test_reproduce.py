"""Experiments: files, resumption, and claims that are decided by standard errors."""

import dataclasses
import json

import numpy as np
import pytest
import xarray

from jaxbandits import reproduce
from jaxbandits.reproduce import base, lingape
from jaxbandits.sweeps import run

NAME = "lingape/fig1"


@pytest.fixture
def easy(monkeypatch):
    """The experiment with an angle that takes hundreds of pulls, not a million."""
    monkeypatch.setattr(lingape, "ANGLE", 0.8)
    monkeypatch.setattr(lingape, "QUICK_DIMS", (2, 5))


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
    one = run(lingape.figure_1(6, True, None)).isel(replication=[0])
    one["pulls_se"] = one.pulls_se * np.nan
    claims = lingape.figure_1_claims(one)
    assert {claim["holds"] for claim in claims} == {None}
    json.dumps(claims, allow_nan=False)


def test_claims_can_fail(easy):
    plan = dataclasses.replace(lingape.figure_1(6, True, None), seed=1)
    dataset = run(plan)
    wrong = dataset.assign(correct=dataset.correct & False)
    wrong["arm_pulls"] = dataset.arm_pulls * 0 + 1000 + dataset.replication
    wrong["pulls_mean"] = dataset.pulls_mean * dataset.dim**3
    assert [one["holds"] for one in lingape.figure_1_claims(wrong)] == [False] * 5


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
        reproduce.reproduce("rage/fig1a", "nowhere")
    with pytest.raises(ValueError, match="did you mean 'lingape/fig1'"):
        reproduce.reproduce("lingape/fig", "nowhere")
