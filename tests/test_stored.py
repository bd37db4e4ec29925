"""Files of earlier versions: sweeps and live runs are continued, results are opened."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import stored_algorithm
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


def test_cells_with_code_of_a_user_are_played_anew_and_said_so(stored):
    """Their names did not hold all that the code reads; those of the package are read."""
    out = stored / "own_sweep"
    before = {path: path.read_bytes() for path in (out / "cells").iterdir()}
    message = (
        r"^out: cells with code of yours \(\[algorithms\.turns\], \[instances\.drawn\]\) that "
        r"version 0\.2\.0 has stored are played anew, as it did not note all that the code reads; "
        "the old files stay$"
    )
    with pytest.warns(RuntimeWarning, match=message):
        found = stored_things.own_sweep(out)
    assert (found.pulls.sel(algorithm="turns") == stored_algorithm.STOP).all()
    after = {path: path.read_bytes() for path in (out / "cells").iterdir()}
    assert before.items() < after.items()
    assert len(after) == len(before) + 3  # the halving on a fixed table is found as it is
    again = stored_things.own_sweep(out)  # without a word
    assert (again.pulls == found.pulls).all()
    assert len([*(out / "cells").iterdir()]) == len(after)


def test_a_live_run_with_code_of_a_user_goes_on_and_says_so(stored):
    path = stored / "own_live.npz"
    message = (
        r"own_live\.npz is of version 0\.2\.0, which did not note all that the code of "
        r"stored_algorithm\.turns reads: the run goes on, and whether that has changed before "
        "today is not known$"
    )
    with pytest.warns(RuntimeWarning, match=message):
        run = stored_things.own_live(path)
    with run:
        assert run.pulls == len(stored_things.REWARDS)
        run.tell(0.5)
    with stored_things.own_live(path) as run:  # whose file now says it
        assert run.pulls == stored_algorithm.STOP
        assert run.done


def test_stored_results_can_be_opened(stored):
    runs = jb.load(stored / "runs.npz")
    assert runs.regret.shape == (3, 20)
