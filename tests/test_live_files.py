"""The file of a live run: no reward is lost, and any other file is refused."""

import copy
import errno
import gc
import hashlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import types
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_live import ARMS, GSE, LINGAPE, by_message, reward_of

import jaxbandits as jb
from jaxbandits.engine.saved import LEAST_ANSWER
from jaxbandits.live import file
from jaxbandits.system import data_files, locks

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
        jb.Runs(*np.zeros((3, 1), int), *np.ones((2, 1), bool), np.zeros((1, 2), int)).save(saved)
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


def rewritten(path, header=None, layout=None, contents=None, **kept):
    """Write the file anew with other lines or bytes, and a checksum that fits."""
    with np.load(path) as stored:
        lines = stored["header"].tobytes().decode().split("\n")
        data = stored["contents"].tobytes() if contents is None else contents
    lines = [lines[0] if header is None else header, lines[1] if layout is None else layout]
    text = "\n".join([*lines, kept.get("checksum") or file._digest(*lines, data)])
    packed = {
        "header": np.frombuffer(text.encode(), np.uint8),
        "contents": np.frombuffer(data, "B"),
    }
    kept.get("save", np.savez)(path, **packed)


def facts_of(path):
    with np.load(path) as stored:
        return [json.loads(line) for line in stored["header"].tobytes().decode().split("\n")[:2]]


def test_the_checksum_is_of_the_layout_too(saved):
    _, layout = facts_of(saved)
    places = {name: index for index, (name, _, _) in enumerate(layout)}
    one, two = places["arm_pulls"], places["told"]  # of one type and shape
    assert layout[one][1:] == layout[two][1:]
    layout[one][0], layout[two][0] = layout[two][0], layout[one][0]
    with np.load(saved) as stored:
        checksum = stored["header"].tobytes().decode().split("\n")[2]
    rewritten(saved, layout=json.dumps(layout), checksum=checksum)
    assert_refused(saved, "is damaged, its contents do not match their checksum")


DEEP = "[" * 5000


@pytest.mark.parametrize(
    "change",
    [
        *({"header": text} for text in ("", "1", "null", "[]", "{}", DEEP, '{"format": 1e999}')),
        *(
            {"header": {name: x}}
            for name in ("format", "version", "plays")
            for x in (None, [], 1.5)
        ),
        {"header": {"format": "2"}},
        {"header": {"plays": {"seed": 0}}},
        *({"header": {"entries": x}} for x in (None, [], {"a": 3})),
        *({"header": {"plays": {"revisions": x}}} for x in ("[", "[]", '{"a": 1}', '{"a": [1]}')),
        *({"layout": text} for text in ("", "1", "null", "{}", "[1]", DEEP, '[["a", "<i8"]]')),
        *({"layout": [["a", x, [1]]]} for x in ("O", "<i9", 3, None, "<i8")),
        *({"layout": [["a", "<i8", x]]} for x in (None, [-1], [10**30], ["x"], [0.5], 3)),
        {"layout": [[[], "<i8", [1]]]},
        {"contents": b""},
        {"save": np.savez_compressed},
    ],
    ids=lambda change: str(change)[:60].partition(" at 0x")[0],  # the same in each process
)
def test_a_file_with_a_checksum_that_fits_and_another_structure_is_refused(change, saved):
    facts, _ = facts_of(saved)
    lines = dict(change)
    if isinstance(change.get("header"), dict):
        inner = (
            {"plays": facts["plays"] | change["header"]["plays"]}
            if isinstance(change["header"].get("plays"), dict)
            else change["header"]
        )
        lines["header"] = json.dumps(facts | inner)
    if isinstance(change.get("layout"), list):
        lines["layout"] = json.dumps(change["layout"])
    rewritten(saved, **lines)
    assert_refused(saved, "(is damaged|does not hold a live run)")


def at(name, index, value):
    """A change of one entry of an array of a live file, or of a field of its move."""

    def change(arrays, move):
        array = arrays[getattr(move, name, name)]
        array[index] = value

    change.__name__ = f"{name}{index} = {value}"
    return change


def put(name, make):
    """A change of a whole array."""

    def change(arrays, move):
        name_in_file = getattr(move, name, name)
        arrays[name_in_file] = make(arrays[name_in_file])

    return change


def tampered(path, change, constructor=LINGAPE):
    """Change the arrays of the file as somebody would who knows how the checksum is made."""
    with jb.Live(constructor, ARMS, path=path) as live:
        arrays, header = file.to_arrays(live._snapshot), live._header
        both = live._snapshot.state, live._snapshot.move
    leaves, tree = jax.tree.flatten(both)
    _, move = jax.tree.unflatten(tree, [f"leaf{i}" for i in range(len(leaves))])
    arrays = {name: table.copy() for name, table in arrays.items()}
    change(arrays, move)
    file.save(path, header, arrays)


def by_name(value):
    return getattr(value, "__name__", "")


SEQUENTIAL = [
    (at("arm", (), 4), "asks for an arm that does not exist"),
    (at("arm", (), -1), "asks for an arm that does not exist"),
    (at("answer", (), 4), "its answer is none of the targets"),
    (at("answer", (), -2), "its answer is none of the targets"),
    (at("arm_pulls", 0, -1), "a count is below 0"),
    (at("arm_pulls", 0, 9), "the pulls of the arms do not sum to the rounds"),
    (at("rounds", (), -3), "a count is below 0"),
    (at("rounds", (), 9), "the pulls of the arms do not sum to the rounds"),
    (at("issued", (), -1), "a count is below 0"),
    (at("issued", (), 1), "a ticket that was never issued"),
    (at("tickets", (0, 0), 5), "a ticket that was never issued"),
    (at("tickets", (0, 0), 1), "two of its tickets have one number"),
    (at("tickets", (0, 0), -1), "a ticket that was never issued"),
    (at("tickets", (1, 1), 4), "a ticket for an arm that does not exist"),
    (at("tickets", (1, 1), -1), "a ticket for an arm that does not exist"),
    (at("told", 0, 1), "it has a phase, which its algorithm has not"),
    (at("sums", 0, np.nan), "the sums of the rewards of a phase are none"),
    (at("sums", 0, np.inf), "the sums of the rewards of a phase are none"),
    (at("sums", 0, 1.0), "the sums of the rewards of a phase are none"),
]


@pytest.mark.parametrize(
    ("change", "words"), SEQUENTIAL, ids=lambda x: getattr(x, "__name__", None)
)
def test_a_file_with_a_checksum_that_fits_and_impossible_numbers_is_refused(change, words, saved):
    with jb.Live(LINGAPE, ARMS, path=saved) as live:
        live.ticket()
        live.ticket()
    tampered(saved, change)
    assert_refused(saved, rf"is damaged: .*{words}$")


def with_nan(arms):
    """An algorithm that remembers the last reward of each arm, NaN before there is one."""
    inner, each = jb.uniform(arms), jnp.arange(len(arms))

    def init(key):
        return inner.init(key), jnp.full(len(arms), jnp.nan)

    def tell(state, move, total):
        last = jnp.where(each == move.arm, total, state[1])
        return inner.tell(state[0], move, total), last

    return jb.Algorithm(init, lambda key, state: inner.ask(key, state[0]), tell)


def test_a_run_whose_state_holds_nan_goes_on(tmp_path):
    with jb.Live(with_nan, ARMS, path=tmp_path / "run.npz") as live:
        live.tell(1.0)
    with jb.Live(with_nan, ARMS, path=tmp_path / "run.npz") as live:
        assert live.pulls == 1


def test_an_answer_may_be_that_none_of_the_targets_is_right(saved):
    tampered(saved, at("answer", (), LEAST_ANSWER))
    with jb.Live(LINGAPE, ARMS, path=saved) as live:
        assert live.answer == -1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("rounds", np.float64), "float64"),
        (put("arm_pulls", lambda x: x[:-1]), r"\(3,\)"),
        (put("arm_pulls", np.float64), "float64"),
        (put("sums", np.int64), "int64"),
        (put("tickets", lambda _: np.zeros((1, 3), np.int64)), r"\(1, 3\)"),
        (put("tickets", lambda _: np.zeros((), np.int64)), r"\(\)"),
        (put("arm", lambda x: x[None]), r"\(1,\)"),
    ],
    ids=range(7),
)
def test_a_file_with_tables_of_other_types_or_shapes_is_refused(change, words, saved):
    tampered(saved, change)
    assert_refused(saved, f"cannot be resumed, state of another algorithm: .*{words}")


def more_tickets_than_wanted(arrays, move):
    arrays["issued"] = np.int64(30)
    arrays["tickets"] = np.array([[number, 0] for number in range(30)])


PHASED = [
    (more_tickets_than_wanted, "a phase has more pulls than it asks for"),
    (at("told", 0, 10**6), "a phase has more pulls than"),
    (at("told", 0, -1), "a count is below 0"),
    (at("count", 1, -1), "it asks for fewer than 0 pulls of an arm"),
    (at("count", 0, 0), "a phase has more pulls than it asks for"),
    (at("arm", 0, 4), "it asks for an arm that does not exist"),
    (at("arm_pulls", 1, 5), "it has pulls before the first round"),
    (at("rounds", (), -1), "a count is below 0"),
    (at("sums", 0, np.nan), "the sums of the rewards of a phase are none"),
]


@pytest.mark.parametrize(("change", "words"), PHASED, ids=by_name)
def test_a_phase_with_impossible_numbers_is_refused(change, words, tmp_path):
    path = tmp_path / "run.npz"
    with jb.Live(GSE, ARMS, path=path) as live:
        arm = int(np.argmax(live.ask()))
        assert arm == 0
        live.tell(1.0, arm=0)
    tampered(path, change, GSE)
    assert_refused(path, rf"is damaged: {words}", GSE)


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


def fifo(path):
    os.mkfifo(path)


def socket_at(path):
    with socket.socket(socket.AF_UNIX) as new:
        new.bind(str(path))


PLACES = {
    "a pipe": (fifo, r"x cannot be used: it is a named pipe, and no file$"),
    "a socket": (socket_at, r"x cannot be used: it is a socket, and no file$"),
    "a folder": (os.mkdir, r"x cannot be used: it is a folder, and no file$"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "zero cannot be used: it is a device"),
    "a loop": (lambda path: path.symlink_to(path), r"x cannot be used: .*symbolic links$"),
    "a dead end": (lambda path: path.symlink_to("none/x"), r"none/x is in a folder that does not"),
    "a long name": (lambda path: path.symlink_to("x" * 253), r"cannot be locked by .*too long$"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_where_no_file_can_be_is_refused_at_once(place, tmp_path):
    make, words = PLACES[place]
    make(tmp_path / "x")
    with pytest.raises(ValueError, match=f"^path: .*{words}"):
        jb.Live(LINGAPE, ARMS, path=tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (fifo, "it is a named pipe, and no file"),
        (os.mkdir, "Is a directory"),
        (lambda path: path.symlink_to("precious"), "it is a link, and no file"),
    ],
    ids=["a pipe", "a folder", "a link"],
)
def test_a_lock_that_is_no_file_is_refused_and_nothing_is_written(make, words, tmp_path):
    (tmp_path / "precious").write_text("kept")
    make(tmp_path / "x.lock")
    with pytest.raises(ValueError, match=rf"x cannot be locked by .*x\.lock: {words}"):
        jb.Live(LINGAPE, ARMS, path=tmp_path / "x")
    assert (tmp_path / "precious").read_text() == "kept"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("path", [3, b"x", 1.5, ["x"], "a\0b"], ids=repr)
def test_what_is_no_name_of_a_file_is_refused(path):
    with pytest.raises(ValueError, match=r"^path must be the name of a file, got "):
        jb.Live(LINGAPE, ARMS, path=path)


@pytest.mark.parametrize(("module", "words"), [(data_files, "does not hold"), (locks, "locked by")])
def test_a_file_without_permission_is_said_to_be_that(module, words, saved, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    held = types.SimpleNamespace(**vars(os) | {"open": denied})
    monkeypatch.setattr(module, "os", held)
    with pytest.raises(ValueError, match=rf"run\.npz .*{words}.*Permission denied\)?$"):
        jb.Live(LINGAPE, ARMS, path=saved)


STOPPED = """
import os, sys, time
from jaxbandits.system import files
def never(descriptor):
    print("inside", flush=True)
    time.sleep(600)
os.fsync = never
with files.replacing({path!r}) as new:
    new.write_text("half of")
"""


def test_what_a_killed_process_was_writing_is_removed_and_what_others_write_stays(saved):
    def partial_files():
        return [path for path in saved.parent.iterdir() if path.suffix == ".partial"]

    writer = subprocess.Popen(
        [sys.executable, "-c", STOPPED.format(path=str(saved))], stdout=subprocess.PIPE, text=True
    )
    with writer:
        assert writer.stdout.readline() == "inside\n"
        (half,) = partial_files()
        jb.Live(LINGAPE, ARMS, path=saved).close()
        assert partial_files() == [half]  # of a process that still writes
        writer.kill()
        writer.wait()
    (saved.parent / ".run.npz-mine.partial").touch()  # no name of ours
    with jb.Live(LINGAPE, ARMS, path=saved) as live:
        assert live.pulls == 3
    assert [path.name for path in partial_files()] == [".run.npz-mine.partial"]


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
