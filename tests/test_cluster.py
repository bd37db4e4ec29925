"""Sweeps on a cluster of dask workers: the same numbers, also when a worker is killed."""

import dataclasses
import itertools
import os
import signal
import time
import tomllib

import numpy as np
import pytest
from test_sweep_store import CELLS, alike, files

import jaxbandits as jb
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
    answers = itertools.chain([{}], itertools.repeat(there))
    monkeypatch.setattr(client, "nthreads", answers.__next__)
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


@pytest.mark.slow
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


class Submitted:
    """A future that such a client returns."""


class Recorded:
    """A client that keeps what is submitted, of a cluster with so many threads."""

    def __init__(self, threads):
        self.threads, self.pieces = threads, []

    def nthreads(self):
        return {"worker": self.threads}

    def submit(self, function, *arguments, pure):
        if function is cluster.run_piece:
            self.pieces.append(arguments[3])
        return Submitted()


class Endless:
    """A cell of which so many replications are missing."""

    result = engine = None

    def __init__(self, number):
        self.number = number

    def missing(self):
        return np.arange(self.number)


def test_pieces_are_sized_by_time_memory_and_what_is_left():
    recorded = Recorded(threads=64)
    work = [(None, {0: Endless(300), 1: Endless(50_000_000)})]
    pieces = cluster._Pieces(recorded, PLAN, work, None, {})
    pieces._add(0, [0, 1])

    def next_piece():
        size = pieces._size(0, threads=64)
        return {number: len(part) for number, part in pieces._cut(0, size).items()}

    pieces._submit()
    assert len(recorded.pieces) == cluster.IN_HAND * 64 == len(pieces._submitted)
    assert {sum(map(len, piece.values())) for piece in recorded.pieces} == {cluster.FIRST}
    assert {n: len(x) for n, x in recorded.pieces[0].items()} == {0: 300, 1: cluster.FIRST - 300}
    assert pieces._submit() == []  # enough are in hand
    for cost, size in [
        (cluster.Cost(1e-3, 100.0), 2**14),  # 20,000 take 20 seconds
        (cluster.Cost(1.0, 100.0), cluster.LEAST),
        (cluster.Cost(1e-6, 2.0**14), 2**12),  # of which the results have 64 MiB
        (cluster.Cost(1e-6, 100.0), 2**17),  # an equal share of what is left for each thread
    ]:
        pieces._costs[0] = cost
        assert next_piece() == {1: size}
    starts = [piece[1][0] for piece in recorded.pieces[1:]]
    assert starts == [cluster.FIRST * (k + 1) - 300 for k in range(len(starts))]


def test_a_cell_that_waits_for_more_pieces_is_not_asked_for_again():
    recorded = Recorded(threads=1)
    cells = {0: Endless(10**6)}
    pieces = cluster._Pieces(recorded, PLAN, [(None, cells)], lambda *_: None, {})
    pieces._add(0, [0])
    submitted = pieces._submit()
    runs = {0: jb.Runs(*np.ones((3, 4), int), *np.ones((2, 4), bool), np.zeros((4, 2), int))}
    runs[0].meta["seconds"] = 0.01
    left = sum(len(numbers) for _, numbers in pieces._missing[0])
    for future in submitted:
        future.result = lambda: runs
    for future in submitted:
        pieces._take(future)
    assert len(pieces._missing[0]) == 1
    assert sum(len(numbers) for _, numbers in pieces._missing[0]) < left
