"""The file of a live run: no reward is lost, and any other file is refused."""

import copy
import gc
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from test_live import ARMS, GSE, LINGAPE, by_message, reward_of

import jaxbandits as jb
from jaxbandits.live import file

CHILD = """
import sys
sys.path.insert(0, {tests!r})
import test_live as t
with t.jb.Live(t.LINGAPE, t.ARMS, path={path!r}, noise_var=30.0) as live:
    while not live.done:
        live.tell(t.reward_of(live.pulls, live.ask()))
        print(live.pulls, flush=True)
"""


def test_a_killed_process_loses_no_reward(tmp_path):
    path, generator = tmp_path / "run.npz", np.random.default_rng(2)
    code = CHILD.format(tests=os.path.dirname(__file__), path=str(path))
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    known = 0
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
        )
        with child, child.stdout as lines:
            printed = [int(lines.readline()) for _ in range(15)]
            with pytest.raises(ValueError, match=r"run\.npz is in use"):
                jb.Live(LINGAPE, ARMS, path=path, noise_var=30.0)
            time.sleep(generator.uniform(0.0, 0.05))
            child.send_signal(signal.SIGKILL)
            printed += [int(line) for line in lines.read().split()]
        assert printed[0] == known + 1
        with jb.Live(LINGAPE, ARMS, path=path, noise_var=30.0) as live:
            known = live.pulls
            assert printed[-1] <= known <= printed[-1] + 1
            assert not live.done
            found = live.arm_pulls
    memory = jb.Live(LINGAPE, ARMS, noise_var=30.0)
    for pull in range(known):
        memory.tell(reward_of(pull, memory.ask()))
    np.testing.assert_array_equal(found, memory.arm_pulls)


@pytest.fixture
def saved(tmp_path):
    """A file with some rewards."""
    path = tmp_path / "run.npz"
    with jb.Live(LINGAPE, ARMS, path=path) as live:
        for arm in range(3):
            live.tell(float(arm))
    return path


def assert_refused(path, match, constructor=LINGAPE, arms=ARMS, **options):
    before = path.read_bytes()
    for _ in range(2):  # the lock is released
        with pytest.raises(ValueError, match=rf"run\.npz.*{match}"):
            jb.Live(constructor, arms, path=path, **options)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["truncated", "empty", "text", "changed", "runs", "array"])
def test_a_damaged_or_foreign_file_is_refused_and_left(kind, saved):
    whole = bytearray(saved.read_bytes())
    if kind == "runs":
        jb.Runs(*np.zeros((5, 1)), np.zeros((1, 2))).save(saved)
    elif kind == "array":
        with saved.open("wb") as stream:
            np.save(stream, ARMS)
    else:
        position = whole.index(b"plays")
        whole[position] ^= 1
        damaged = {"truncated": whole[:-1], "empty": b"", "text": b"hello\n", "changed": whole}
        saved.write_bytes(damaged[kind])
    assert_refused(saved, "does not hold a live run")


def test_a_file_of_another_format_is_refused_without_advice_on_pickles(saved):
    saved.write_text("a,b\n1,2\n")
    assert_refused(saved, r"does not hold a live run \(it is no \.npz file\)$")


def test_a_changed_byte_is_refused_or_harmless(saved):
    whole = saved.read_bytes()
    description = saved_description(saved)
    intact, refused = file.load(saved, description), 0
    for position in range(0, len(whole), 37):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        saved.write_bytes(damaged)
        try:
            found = file.load(saved, description)
        except ValueError:
            refused += 1
            continue
        # Some bytes of the archive are not part of the data, such as times.
        assert found.keys() == intact.keys()
        assert all(found[n].tobytes() == intact[n].tobytes() for n in intact)
    assert refused > len(whole) // 37 / 2


def saved_description(path):
    with jb.Live(LINGAPE, ARMS, path=path) as live:
        return json.loads(live._header)["plays"]


def test_contents_with_a_wrong_checksum_are_refused(saved):
    with np.load(saved) as stored:
        arrays = dict(stored)
    arrays["contents"] = arrays["contents"] ^ np.uint8(1)
    np.savez(saved, **arrays)
    assert_refused(saved, "is damaged")


def in_the_format_before(path, change=lambda arrays: None):
    """Write the file anew as the package did before arrays were packed."""
    arrays = dict(file.load(path, saved_description(path)))
    with np.load(path) as stored:
        facts = json.loads(stored["header"].tobytes().split(b"\n")[0])
    header = json.dumps(facts | {"format": 1})
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape} ".encode())
        digest.update(arrays[name].tobytes())
    change(arrays)
    np.savez(path, header=header, checksum=digest.hexdigest(), **arrays)


def test_a_file_of_the_format_before_is_continued(saved):
    in_the_format_before(saved)
    memory = jb.Live(LINGAPE, ARMS)
    with jb.Live(LINGAPE, ARMS, path=saved) as live:
        for pull in range(8):
            if pull >= 3:
                live.tell(float(pull))
            memory.tell(float(pull))
        np.testing.assert_array_equal(live.arm_pulls, memory.arm_pulls)
        assert live.pulls == 8
    with jb.Live(LINGAPE, ARMS, path=saved) as live:
        assert live.pulls == 8
    in_the_format_before(saved, lambda arrays: arrays.update(sums=arrays["sums"] + 1))
    assert_refused(saved, "is damaged")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"seed": 1}, "another experiment: seed 0 there, 1 here"),
        ({"noise_var": 2.0}, "noise_var 1.0 there, 2.0 here"),
        ({"arms": ARMS + 1e-9}, r"another experiment: arms\[0, 0\] 1\.0 there, 1\.000000001 here"),
        (
            {"arms": ARMS[:2]},
            r"arms an array float64 \[4, 2\] there, an array float64 \[2, 2\] here",
        ),
        ({"constructor": partial(LINGAPE, delta=0.2)}, "delta 0.1 there, 0.2 here"),
        ({"constructor": GSE}, r"budget left out there, 14 here; constructor jaxbandits.*lingape"),
    ],
    ids=by_message,
)
def test_the_file_of_another_experiment_is_refused(change, match, saved):
    assert_refused(saved, match, **change)


def test_the_file_of_another_format_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    with monkeypatch.context() as patch:
        patch.setattr(file, "FORMAT", 3)
        jb.Live(LINGAPE, ARMS, path=path).close()
    assert_refused(path, "has format 3")


def test_a_change_that_cannot_be_saved_has_no_effect(tmp_path, monkeypatch):
    live = jb.Live(LINGAPE, ARMS, path=tmp_path / "run.npz")
    live.tell(0.5)
    kept = (tmp_path / "run.npz").read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        for change in (lambda: live.tell(1.0), live.ticket):
            with pytest.raises(OSError, match="no space"):
                change()
    assert (live.pulls, live.tickets, live.ask()) == (1, (), 1)
    assert (tmp_path / "run.npz").read_bytes() == kept
    live.tell(1.0)
    assert live.pulls == 2


def test_only_one_live_run_at_a_time_uses_a_file(saved):
    live = jb.Live(LINGAPE, ARMS, path=saved)
    with pytest.raises(ValueError, match=r"run\.npz is in use by another live run$"):
        jb.Live(LINGAPE, ARMS, path=saved)
    live.close()
    live.close()
    assert live.pulls == 3
    with pytest.raises(RuntimeError, match="closed"):
        live.tell(1.0)
    forgotten = jb.Live(LINGAPE, ARMS, path=saved)
    forgotten.tell(1.0)
    del forgotten
    gc.collect()
    with jb.Live(LINGAPE, ARMS, path=saved) as live:
        assert live.pulls == 4


def test_a_file_that_cannot_be_locked_is_not_said_to_be_in_use(saved, monkeypatch):
    def lock(descriptor):
        raise OSError("no locks here")

    monkeypatch.setattr(file.locks, "lock", lock)
    assert_refused(saved, r"cannot be locked \(no locks here\)$")


@pytest.mark.parametrize("linked", ["file", "folder", "nothing yet"])
def test_links_to_a_file_share_its_lock_and_stay(linked, saved, tmp_path):
    if linked == "nothing yet":
        saved.unlink()
    link = tmp_path / "link"
    link.symlink_to(tmp_path if linked == "folder" else saved)
    other = link / "run.npz" if linked == "folder" else link
    with jb.Live(LINGAPE, ARMS, path=saved), pytest.raises(ValueError, match="is in use"):
        jb.Live(LINGAPE, ARMS, path=other)
    with jb.Live(LINGAPE, ARMS, path=other) as live:
        pulls = live.pulls
        live.tell(1.0)
        with pytest.raises(ValueError, match="is in use"):
            jb.Live(LINGAPE, ARMS, path=saved)
    assert link.is_symlink()
    with jb.Live(LINGAPE, ARMS, path=saved) as live:
        assert live.pulls == pulls + 1


@pytest.mark.parametrize("kept", ["memory", "file"])
def test_a_live_run_cannot_be_copied(kept, tmp_path):
    with jb.Live(LINGAPE, ARMS, path=None if kept == "memory" else tmp_path / "run.npz") as live:
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="a live run cannot be copied or pickled: share"):
                make(live)
        live.tell(1.0)
        assert live.pulls == 1
