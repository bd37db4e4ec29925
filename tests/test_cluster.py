"""Sweeps on a cluster of dask workers: the same numbers, also when a worker is killed."""

import dataclasses
import os
import signal
import time
import tomllib

import pytest
from test_sweep_store import CELLS, alike, files

from jaxbandits.sweeps import cluster, parse, run

distributed = pytest.importorskip("distributed")
PLAN = parse(tomllib.loads(CELLS.replace("replications = 40", "replications = 900", 1)))


@pytest.fixture(scope="module")
def client():
    options = {"threads_per_worker": 1, "dashboard_address": None, "protocol": "tcp://"}
    with (
        distributed.LocalCluster(n_workers=2, **options) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


def test_a_cluster_gives_the_sweep_of_one_process(client, tmp_path):
    address = client.scheduler.address
    found = run(PLAN, out=tmp_path, cluster=address)
    assert alike(found, run(PLAN))
    assert [file.suffix for file in files(tmp_path)] == [".npz", ".npz"]
    assert run(PLAN, out=tmp_path, cluster=address).identical(found)  # nothing is left to simulate


def test_a_scheduler_without_workers_warns(client, monkeypatch):
    there = client.nthreads()
    monkeypatch.setattr(client, "nthreads", iter([{}, there]).__next__)
    with pytest.warns(RuntimeWarning, match="no worker yet; the sweep waits"):
        run(dataclasses.replace(PLAN, replications=20), cluster=client)


@pytest.mark.slow
def test_cells_that_end_early_are_the_same_as_in_one_process(client):
    table = tomllib.loads(CELLS) | {"replications": 400, "until": {"error_width": 0.08}}
    plan = parse(table)
    found = run(plan, cluster=client)
    assert alike(found, run(plan))
    assert int(found.replications.min()) < 400


def test_a_killed_worker_loses_nothing(client, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "LEAST", 50)
    whole, killed = run(PLAN), []
    take, held, left = cluster._Pieces._take, [], []

    def kill_one(pieces, future):
        submitted = take(pieces, future)
        held.append(len(client.who_has()))
        end = time.monotonic() + 20  # the scheduler releases results with a delay
        while (
            not pieces._submitted and (kept := len(client.who_has())) > 2 and time.monotonic() < end
        ):
            time.sleep(0.05)
        left.append(0 if pieces._submitted else kept)
        if not killed:
            busy = [worker for worker, keys in client.processing().items() if keys]
            killed.append(client.run(os.getpid, workers=busy[:1])[busy[0]])
            os.kill(killed[0], signal.SIGKILL)
        return submitted

    monkeypatch.setattr(cluster._Pieces, "_take", kill_one)
    assert alike(run(PLAN, out=tmp_path, cluster=client), whole)
    assert left[-1] <= 2 < max(held)  # results that are stored are released by the scheduler
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    assert [file.suffix for file in files(tmp_path)] == [".npz", ".npz"]


def test_cancelled_work_gives_one_line_of_error_and_can_be_continued(client, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "LEAST", 50)
    take, seen = cluster._Pieces._take, []

    def cancel_others(pieces, future):
        submitted = take(pieces, future)
        seen.append(future)
        if len(seen) == 2:
            client.cancel([*pieces._submitted])
        return submitted

    with monkeypatch.context() as cancelled:
        cancelled.setattr(cluster._Pieces, "_take", cancel_others)
        with pytest.raises(ValueError, match=r"^cluster: the work was cancelled .* is stored$"):
            run(PLAN, out=tmp_path, cluster=client)
    assert {file.suffix for file in files(tmp_path)} <= {".part", ".npz"}
    assert len(files(tmp_path)) >= 2
    assert alike(run(PLAN, out=tmp_path, cluster=client), run(PLAN))


def test_a_missing_scheduler_and_another_version_are_named(client, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ValueError, match=r"cluster: no scheduler at 'tcp://127\.0\.0\.1:9'"):
        run(PLAN, cluster="tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match=r"no scheduler at 'foo' \(missing port"):
        run(PLAN, cluster="foo")
    monkeypatch.setattr(cluster, "VERSION", "0.0.1")
    with pytest.raises(ValueError, match=r"a worker has jaxbandits .*, not 0\.0\.1"):
        run(PLAN, cluster=client)
