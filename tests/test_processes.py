"""A simulation or sweep on several devices, or in several processes, gives the same integers."""

import contextlib
import os
import socket
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from run_settings import simulate
from test_sweep_groups import GRID, assert_equal_pulls
from test_sweep_store import files

from jaxbandits import load
from jaxbandits.engine import multihost
from jaxbandits.sweeps import parse, run

# Of another size than in the tests of groups, which count the programs that they compile.
SWEEP = GRID.replace("dim = 3", "dim = 4")


def test_one_two_and_four_devices_give_the_same_sweep():
    plan = parse(tomllib.loads(SWEEP))
    one = run(plan)
    for devices in (2, 4, "all"):
        assert_equal_pulls(run(plan, devices=devices), one)


MEMBER = """
import sys, tomllib
import jax
tests, folder, address, index = sys.argv[1:]
sys.path.insert(0, tests)
jax.distributed.initialize(address, num_processes=2, process_id=int(index))
from test_processes import SWEEP
from run_settings import simulate
from jaxbandits.sweeps import local, parse, run
local.CHECKPOINT_SECONDS = 0.0
simulate("sequential", 41, devices="all").save(f"{folder}/runs{index}.npz")
table = tomllib.loads(SWEEP) | {"until": {"pulls_se": 5.0}, "replications": 200}
dataset = run(parse(table), out=f"{folder}/sweep", devices="all", batch=8)
dataset.to_netcdf(f"{folder}/sweep{index}.nc")
assert jax.process_count() == 2
print("done")
"""


@pytest.mark.slow
def test_two_processes_give_the_same_runs_as_one(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-c", MEMBER, os.path.dirname(__file__), str(tmp_path), address]
    members = [
        subprocess.Popen(
            [*command, str(index)],
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in range(2)
    ]
    try:
        for member in members:
            text, _ = member.communicate(timeout=300)
            assert member.returncode == 0, text[-2000:]
    finally:
        for member in members:
            member.kill()
    import xarray

    alone = simulate("sequential", 41)
    table = tomllib.loads(SWEEP) | {"until": {"pulls_se": 5.0}, "replications": 200}
    whole = run(parse(table))
    for index in range(2):
        runs = load(tmp_path / f"runs{index}.npz")
        np.testing.assert_array_equal(runs.replication, np.arange(41))
        np.testing.assert_array_equal(runs.arm_pulls, alone.arm_pulls)
        with xarray.open_dataset(tmp_path / f"sweep{index}.nc") as found:
            for name in ("pulls", "replications", "errors"):
                np.testing.assert_array_equal(found[name], whole[name])
    assert whole.replications.min() < whole.replications.max()
    assert {file.suffix for file in files(tmp_path / "sweep")} == {".npz"}


def test_several_processes_compare_their_stored_replications(monkeypatch):
    multihost.team_of("all").agree(pytest.fail)  # one process does not even compute it
    monkeypatch.setattr(multihost, "_exchanged", lambda mine: [mine, mine])
    multihost.Team().agree(lambda: "the same")
    monkeypatch.setattr(multihost, "_exchanged", lambda mine: [mine, mine[::-1]])
    with pytest.raises(ValueError, match="the processes do not see the same stored replications"):
        multihost.Team().agree(lambda: "something else")


def test_all_processes_fail_if_the_first_cannot_use_the_folder(monkeypatch):
    def taken():
        raise ValueError("in use")

    def exchanged(mine):
        raise RuntimeError("process 0 of this simulation has failed")

    monkeypatch.setattr(multihost, "_exchanged", exchanged)
    first, second = multihost.Team(), multihost.Team()
    second.index = 1
    with pytest.raises(ValueError, match="in use"), first.leading(taken):
        pytest.fail("the folder is not ours")
    with pytest.raises(RuntimeError, match="process 0"), second.leading(taken):
        pytest.fail("the folder is not ours")
    monkeypatch.setattr(multihost, "_exchanged", lambda mine: [mine, mine])
    with first.leading(lambda: contextlib.nullcontext("ours")) as entered:
        assert entered == "ours"


def test_devices_of_a_sweep_are_checked():
    plan = parse(tomllib.loads(SWEEP))
    with pytest.raises(ValueError, match=r"devices must be 'all', 1 to .* devices, got 'x'"):
        run(plan, devices="x")
    with pytest.raises(ValueError, match="devices must be 1 to "):
        run(plan, devices=10**6)
    with pytest.raises(ValueError, match="engine must be one of"):
        run(plan, engine="steam")
