"""Full disks, read-only folders, signals: one line of error, and no stored result is damaged."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tomllib

import jax
import pytest
import xarray
from jax.experimental.compilation_cache import compilation_cache
from test_cli import call, refused
from test_sweep_folder import SMALL, everything

from jaxbandits.sweeps import parse, run
from jaxbandits.system.interrupts import held_back, interruptible

LARGER = SMALL.replace("replications = 40", "replications = 300")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(LARGER)
    return path


def same_as_whole(out):
    """Whether a folder holds the results of a run without faults."""
    whole = run(parse(tomllib.loads(LARGER)))
    with xarray.open_dataset(out / "results.nc") as found:
        return (found.arm_pulls == whole.arm_pulls).all() and (found.correct == whole.correct).all()


@contextlib.contextmanager
def files_up_to(size):
    """No file of this process can be longer, as if the disk were full."""
    before, stores = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    sys.dont_write_bytecode = True  # Python would store the first part of a module's code
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = stores


@pytest.fixture
def _no_kept_programs():
    """With its cache JAX would leave half a program in the user's cache folder."""
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    yield
    jax.config.update("jax_enable_compilation_cache", before)
    compilation_cache.reset_cache()


@pytest.mark.usefixtures("_no_kept_programs")
def test_a_full_disk_loses_nothing_that_was_stored(file, tmp_path):
    out = tmp_path / "out"
    with files_up_to(1500):  # bytes: too few for a cell
        full = call("run", file, "--engine", "xla", "--out", out)
    refused(full, f"error: {out}/cells/", ".npz: File too large")
    assert everything(out) == {}
    with files_up_to(20_000):  # enough for cells, too few for results
        full = call("run", file, "--engine", "xla", "--out", out)
    assert full.exit_code == 2
    assert full.stderr.splitlines()[-1] == f"error: {out / 'results.nc'}: File too large"
    assert {path.suffix for path in everything(out)} == {".npz"}
    assert call("run", file, "--engine", "xla", "--out", out).output.count("stored before") == 2
    assert same_as_whole(out)
    before = everything(out)
    with files_up_to(1500):
        refused(
            call("run", file, "--engine", "xla", "--out", out, "--force", "--seed", 5),
            "File too large",
        )
    assert everything(out) == before


def test_a_file_in_the_place_of_a_folder_is_refused(file, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "cells").write_text("mine")
    refused(call("run", file, "--out", out), "out:", "cells", "File exists")
    assert everything(out) == {out / "cells": b"mine"}
    refused(call("run", file, "--out", out / "cells" / "inner"), "--out", "Not a directory")


@contextlib.contextmanager
def read_only(folder):
    """A folder in which no file can be made; against root this takes a flag of the file system."""
    if os.geteuid():
        folder.chmod(0o500)
        yield
        folder.chmod(0o700)
        return
    try:
        done = subprocess.run(["chattr", "+i", folder], check=False, capture_output=True)
    except OSError:
        done = None
    if done is None or done.returncode:
        pytest.skip("nothing makes a folder read-only for root here")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", folder], check=True)


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_played(
    file, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    (out / "cells").mkdir(parents=True)
    monkeypatch.setattr("jaxbandits.sweeps.grid._run_groups", pytest.fail)
    with read_only(out / "cells"):
        refused(call("run", file, "--out", out), "out:", "cells cannot be written")


CHILD = """
import sys, time
from functools import partialmethod
from jaxbandits import cli
from jaxbandits.engine import api
from jaxbandits.sweeps import local

def slowly(*_):
    print("at work", flush=True)
    time.sleep(0.2)

local._report = slowly
start = api.Simulation.__init__
api.Simulation.__init__ = partialmethod(start, batch=8)
cli.main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    "signals",
    [
        [signal.SIGTERM],
        pytest.param([signal.SIGINT], marks=pytest.mark.slow),
        pytest.param([signal.SIGINT, signal.SIGINT], marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_signal_ends_a_run_cleanly_and_the_next_run_continues_it(signals, file, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-c", CHILD, "run", str(file), "--out", str(out)]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        for _ in range(3):
            assert child.stdout.readline() == "at work\n"
        refused(call("run", file, "--out", out), "in use", f"process {child.pid} on")
        for number in signals:
            child.send_signal(number)
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 128 + signals[0]
    how = "terminated" if signals[0] == signal.SIGTERM else "interrupted"
    assert errors.splitlines()[-1] == f"{how}; the same command goes on where this one stopped"
    assert "Traceback" not in errors
    stored = everything(out)
    assert {path.suffix for path in stored} <= {".part", ".npz"}
    assert len(stored) > 0 or len(signals) > 1
    again = call("run", file, "--out", out)
    assert again.exit_code == 0
    assert same_as_whole(out)


def test_one_interrupt_waits_for_a_file_being_stored_and_a_second_does_not():
    done = []

    def store(times):
        with held_back():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            done.append("stored")

    with pytest.raises(KeyboardInterrupt):
        store(1)
    assert done == ["stored"]
    with pytest.raises(KeyboardInterrupt):
        store(2)
    assert done == ["stored"]


def test_sigterm_is_an_interrupt_only_while_a_command_runs():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with interruptible() as signals:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert signals.status == 143
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
