"""Lanes: how they are refilled and how many there are; they do not influence the results."""

from functools import partial
from types import SimpleNamespace

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from params import params
from programs import USUAL_LANES, Programs, key_of, parts

import jaxbandits as jb
from jaxbandits.engine import checks, choices, device_loop, episode, host_loop, traits
from jaxbandits.engine.api import Simulation
from jaxbandits.engine.partition import prepared
from jaxbandits.system.jax_options import pinned

SOARE = jb.instances.soare(3, angle=0.5, scale=2.0)
LINGAPE = partial(jb.lingape, delta=0.1)


def simulate(**options):
    return jb.simulate(SOARE, LINGAPE, seed=4, **{"replications": 320, **options})


def test_lanes_are_refilled():
    """Without refilling, 8 lanes with runs of such different lengths would often be idle."""
    runs = simulate(batch=8)
    by_lane = runs.pulls.reshape(-1, 8)
    assert runs.pulls.sum() / (by_lane.max(1).sum() * 8) < 0.8
    assert runs.meta["lane_use"] > 0.9


@pytest.mark.parametrize(
    "changed", params(["RECORD_BYTES", "CALL_SECONDS", "LANES_PER_REFILL"], slow=["RECORD_BYTES"])
)
def test_queue_length_call_time_and_refills_change_no_number(changed, monkeypatch):
    whole = simulate(batch=16)
    small = {
        "RECORD_BYTES": (choices, 20 * 8 * 30),
        "CALL_SECONDS": (host_loop, 1e-9),
        "LANES_PER_REFILL": (choices, 2),
    }
    room, value = small[changed]
    monkeypatch.setattr(room, changed, value)
    other = simulate(batch=16)
    np.testing.assert_array_equal(other.replication, np.arange(320))
    np.testing.assert_array_equal(other.pulls, whole.pulls)
    np.testing.assert_array_equal(other.arm_pulls, whole.arm_pulls)
    np.testing.assert_array_equal(other.answer, whole.answer)


@pytest.mark.parametrize("devices", [1, 2])
def test_tables_in_another_memory_are_fetched_in_part(monkeypatch, devices):
    """The part holds all that a call has written, and the records are the same."""
    fetched, whole = [], host_loop.HostLoop._fetched

    def watched(loop, tables, written):
        found = whole(loop, tables, written)
        fetched.append(next(iter(found.values())).shape[int(devices > 1)])
        assert fetched[-1] >= written
        return found

    monkeypatch.setattr(host_loop, "LEAST_ROWS", 1)
    monkeypatch.setattr(choices, "WAITING", {})  # as on an accelerator
    monkeypatch.setattr(host_loop, "CALL_SECONDS", 1e-9)  # few runs end in a call
    monkeypatch.setattr(host_loop.HostLoop, "_fetched", watched)
    options = {"batch": 8, "devices": jax.devices()[:devices] if devices > 1 else None}
    usual = simulate(**options)
    rows = max(fetched)
    assert min(fetched) == rows  # all of them
    fetched.clear()
    monkeypatch.setattr(host_loop, "HOST_MEMORY", ())
    found = simulate(**options)
    np.testing.assert_array_equal(found.replication, np.arange(320))
    np.testing.assert_array_equal(found.arm_pulls, usual.arm_pulls)
    np.testing.assert_array_equal(found.answer, usual.answer)
    assert set(fetched) <= {rows, rows // 8, rows // 64}
    assert np.mean(fetched) < rows / 2


@pytest.mark.parametrize(
    ("written", "rows"), [(0, 12), (12, 12), (13, 100), (100, 100), (101, 800), (800, 800)]
)
def test_the_rows_that_are_fetched_are_one_of_a_few_numbers(monkeypatch, written, rows):
    monkeypatch.setattr(host_loop, "HOST_MEMORY", ())
    monkeypatch.setattr(host_loop, "LEAST_ROWS", 5)
    loop = object.__new__(host_loop.HostLoop)
    loop.shape = host_loop.Shape(8, 1, 8, 784, episode.MoveTraits(True, True, True))
    loop._sharded, loop._platform = False, "gpu"
    table = np.arange(2.0 * loop.shape.records).reshape(-1, 2)
    like = {"float": jax.ShapeDtypeStruct(table.shape, jax.dtypes.canonicalize_dtype(float))}
    monkeypatch.setattr(host_loop, "_like_batch", lambda *_: SimpleNamespace(records=like))
    loop._program_key = object(), loop.shape, (), 0, None
    found = loop._fetched({"float": jnp.asarray(table)}, written)["float"]
    np.testing.assert_array_equal(found, table[:rows])


@pytest.mark.parametrize(("memory", "calls"), [(("cpu",), 1), ((), 2)])
def test_the_next_call_plays_while_records_come_from_another_memory(monkeypatch, memory, calls):
    monkeypatch.setattr(host_loop, "HOST_MEMORY", memory)
    monkeypatch.setattr(host_loop, "CALL_SECONDS", 1e-9)
    loop = Simulation([prepared(SOARE, LINGAPE)], replications=320, batch=8)._loop
    called, play = [], loop._compiled_loop
    monkeypatch.setattr(loop, "_compiled_loop", lambda *args: called.append(0) or play(*args))
    with jax.enable_x64(True):
        next(loop.run(range(320)))
    assert len(called) == calls


@pytest.mark.parametrize(("size", "burst"), [(500, 8), (2**20, 8), (2**22, 2), (2**25, 1)])
@pytest.mark.parametrize("engine", ["native", "in turn"])
def test_large_lanes_are_looked_at_often(engine, size, burst):
    lanes = {"table": jax.ShapeDtypeStruct((size // 8, 16), np.float64)}
    assert device_loop._burst(engine, lanes) == burst


@pytest.mark.parametrize("seconds", [1e-4, 3e-3, 0.05, 20.0])
def test_calls_soon_take_less_than_a_second_by_a_clock_that_counts_chunks(seconds):
    """However long a chunk takes; and it takes few calls before they are long enough."""
    chunks, calls, longest = 1, 0, 0.0
    while calls < 12:
        longest = max(longest, chunks * seconds)
        chunks, calls = host_loop._next_chunks(chunks, chunks * seconds), calls + 1
    assert longest <= max(seconds, 2 * host_loop.CALL_SECONDS)
    assert max(seconds, chunks * seconds) >= host_loop.CALL_SECONDS / 2
    while chunks > 1:  # later chunks take ten times as long
        before = chunks
        chunks = host_loop._next_chunks(chunks, chunks * 10 * seconds)
        if chunks == before:
            break
    assert chunks == 1 or chunks * 10 * seconds <= 2 * host_loop.CALL_SECONDS


def test_a_signal_ends_the_wait_for_a_call(monkeypatch):
    """NumPy would wait for what a call writes, and no signal is handled meanwhile."""
    loop = Simulation([prepared(SOARE, LINGAPE)], replications=8, batch=8)._loop
    waited = []
    monkeypatch.setattr(jax, "block_until_ready", lambda x: waited.append(len(x)) or x)
    with jax.enable_x64(True):
        assert sum(len(record.id) for record in loop.run(range(8))) == 8
    assert set(waited) == {4}


@pytest.fixture
def usual_lanes(monkeypatch):
    """The number of lanes that users have; the tests pin it, see `programs.compile_in_haste`."""
    monkeypatch.setattr(choices, "_default_lanes", USUAL_LANES)


def sized(replications, *, batch=None, lane=500, record=20, phased=False, engine="xla", table=0):
    moves = episode.MoveTraits(one_arm=not phased, stops=True, cheap=True)
    sizes = traits.Sizes(lane, record, False, traits.Traits(moves))
    return choices.shape_of(
        sizes,
        replications=replications,
        batch=batch,
        devices=None,
        engine=engine,
        largest_table=lambda: table,
    )


@pytest.mark.usefixtures("usual_lanes")
def test_a_few_numbers_of_lanes_serve_all_numbers_of_replications():
    assert {sized(r).lanes for r in range(1, 1000)} == {8, 16, 32, 64, 128}
    assert all(sized(r).lanes < 2 * r for r in range(9, 256))
    assert (sized(8191).lanes, sized(8192).lanes, sized(10**6).lanes) == (128, 256, 256)


@pytest.mark.usefixtures("usual_lanes")
@pytest.mark.parametrize(
    ("memory", "engine", "lanes"),
    [
        (2**38, "xla", 32),
        (2**36, "xla", 16),
        (2**34, "xla", 8),  # a register at least
        (2**34, "in turn", 4),
        (2**31, "in turn", 1),
    ],
)
def test_large_lanes_are_as_few_as_the_memory_holds(monkeypatch, memory, engine, lanes):
    monkeypatch.setattr(checks, "memory_bytes", lambda: memory)
    assert sized(10**6, lane=2**30, engine=engine).lanes == lanes


@pytest.mark.usefixtures("usual_lanes")
def test_large_lanes_are_fewer_and_large_records_have_shorter_queues():
    assert sized(10**6, lane=1200).lanes == sized(10**6, lane=2**14).lanes == 64
    assert sized(10**6, lane=1200, phased=True).lanes == 256
    assert sized(10**6, lane=1200, phased=True, engine="native").lanes == 512
    assert sized(16_384, lane=1200, phased=True, engine="native").lanes == 512
    assert sized(16_383, lane=1200, phased=True, engine="native").lanes == 256
    assert sized(10**6, batch=16).queue == 32 * 16
    assert sized(10**6, record=10**5).queue < sized(10**6).queue
    assert sized(10**6, record=10**9).queue == 1


@pytest.mark.usefixtures("usual_lanes")
def test_large_designs_have_few_lanes_in_xla():
    """Those of all lanes are one call, which nothing interrupts."""
    for table, lanes in ((3 * 10**6, 8), (10**6, 64), (6 * 10**5, 128), (10**5, 256), (0, 256)):
        assert sized(10**6, phased=True, table=table).lanes == lanes
    assert sized(10**6, phased=True, table=3 * 10**6, engine="native").lanes == 512
    assert [sized(10**6, table=table).lanes for table in (6 * 10**5, 10**5)] == [8, 256]


@pytest.mark.parametrize(
    ("name", "least"),
    # A table of all differences of the arms; their outer products, in a branch; nothing.
    [("rage", 3 * 4 * 3 * 8), ("lazy_track_and_stop", 4 * 3 * 3 * 8), ("lingape", 0)],
)
def test_tracing_tells_how_large_the_designs_are_that_lanes_compute(name, least):
    structure, numbers = prepared(SOARE, partial(getattr(jb, name), delta=0.1), None)
    with pinned():
        found = traits.largest_table(structure, traits.shapes_of(numbers), 0)
    assert (found >= least) if least else (found == 0)


def test_a_batch_is_rounded_up_to_full_registers():
    assert [sized(100, batch=b).lanes for b in (1, 8, 9, 64, 500)] == [8, 8, 16, 64, 104]


def test_replications_are_distributed_evenly_over_devices():
    loop = object.__new__(host_loop.HostLoop)
    loop.shape = host_loop.Shape(8, 1, 8, 5, episode.MoveTraits(True, True, True))
    queue = loop._queue(list(range(7)), 2)
    np.testing.assert_array_equal(queue, [[0, 2, 4, 6, -1], [1, 3, 5, -1, -1]])


def test_progress_is_reported_while_lanes_play():
    seen = []
    runs = simulate(batch=8, progress=lambda done, total: seen.append((done, total)))
    assert len(runs) == seen[-1][0] == 320
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 3


@pytest.mark.parametrize("every", [float("inf"), 60.0, 0.0])
def test_runs_are_handed_over_at_the_end_or_at_intervals(every):
    parts = []
    simulation = Simulation([prepared(SOARE, LINGAPE)], replications=320, batch=8)
    simulation.run({0: range(320)}, lambda *_: None, lambda _, runs: parts.append(runs), every)
    assert sum(map(len, parts)) == 320
    assert (len(parts) == 1) == (every > 0)


def test_the_default_generator_of_jax_changes_no_number():
    """Keys of replications are derived from a root key of a fixed generator."""
    with jax.default_prng_impl("rbg"):
        other = simulate(batch=8)
    np.testing.assert_array_equal(other.pulls, simulate(batch=8).pulls)


def test_a_run_whose_phase_is_cut_short_keeps_the_state_before_it():
    """Otherwise its lane would compute longer and longer phases, and the others would wait."""
    case = cases.named("xy_adaptive")
    with jax.enable_x64(True):
        begun = Programs(case).begin(key_of(0), np.int64(0))

        @jax.jit
        def phase(run, most):
            moves = episode.MoveTraits(one_arm=False, stops=True, cheap=False)
            return episode.chunk(run, *parts(case), episode.Limits(most), moves)[0]

        played, cut = phase(begun, 10**6), phase(begun, 10)
        assert int(played.state.phase) == 2
        later = phase(played, 10)
    assert bool(played.live)
    assert int(played.pulls) > 10
    for run, before in ((cut, begun), (later, played)):
        assert not bool(run.live | run.done)
        assert int(run.state.phase) == int(before.state.phase)
    assert (int(cut.pulls), int(later.pulls)) == (0, int(played.pulls))


def test_arms_that_are_targets_too_are_on_the_device_once(monkeypatch):
    expected, placed, put = simulate(batch=8), [], jax.device_put
    monkeypatch.setattr(host_loop, "LARGE_BYTES", 0)
    monkeypatch.setattr(jax, "device_put", lambda x, *more: placed.append(x) or put(x, *more))
    found = simulate(batch=8)
    assert SOARE.targets is SOARE.arms
    shapes = [np.shape(x) for x in jax.tree.leaves(placed[0])]
    assert shapes.count(SOARE.arms.shape) == 1
    np.testing.assert_array_equal(found.pulls, expected.pulls)
