"""Files of earlier versions: sweeps and live runs are continued, results are opened."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import stored_things

import jaxbandits as jb
from jaxbandits.engine import api

FOLDER = Path(__file__).parent / "stored"
VERSIONS = sorted(folder.name for folder in FOLDER.iterdir())


@pytest.fixture(params=VERSIONS)
def stored(request, tmp_path):
    return Path(shutil.copytree(FOLDER / request.param, tmp_path / "stored"))


def test_a_stored_sweep_is_read_without_playing(stored, monkeypatch):
    monkeypatch.setattr(api, "Simulation", None)  # so that nothing can be played
    found = stored_things.sweep(stored / "sweep")
    assert found.pulls.shape == (4, 2, 4)
    assert (found.pulls > 0).all()


def test_a_sweep_with_another_seed_is_not_read_from_the_stored_one(stored, monkeypatch):
    monkeypatch.setattr(api, "Simulation", None)
    with pytest.raises(TypeError, match="NoneType"):
        stored_things.sweep(stored / "sweep", seed=4)


def test_a_stored_live_run_is_continued(stored):
    run = stored_things.live(stored / "live.npz")
    again = jb.Live(stored_things.BUILD, np.asarray(stored_things.ARMS), seed=5, theta_norm=1.0)
    for reward in stored_things.REWARDS:
        again.ask()
        again.tell(reward)
    assert run.ask() == again.ask()


def test_stored_results_can_be_opened(stored):
    runs = jb.load(stored / "runs.npz")
    assert runs.regret.shape == (3, 20)
