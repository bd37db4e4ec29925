"""The folder of a sweep: only a larger version of the same sweep replaces its results."""

import importlib
import json
import os
import shutil
import threading
import time
import tomllib
from functools import partial

import numpy as np
import pytest
import xarray
from test_cli import call, refused
from test_reproduce import EASY, NAME
from test_results import with_pulls

import jaxbandits as jb
from jaxbandits import reproduce
from jaxbandits.engine import api
from jaxbandits.sweeps import folder, names, parse, planned, run
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.dataset import assemble, write
from jaxbandits.sweeps.description import attributes, facts_of, importable, lost, readable
from jaxbandits.sweeps.store import Store
from jaxbandits.sweeps.summaries import EACH
from jaxbandits.system import locks
from jaxbandits.system.files import replacing
from jaxbandits.system.identity import described_array, differences, entries_of

SMALL = """
replications = 40
seed = 3
[instances.basis]
name = "canonical"
dim = 4
[algorithms.SH]
name = "sequential_halving"
budget = 40
[axes]
gap = [2.0, 0.2]
"""
MORE = '[algorithms.wide]\nname = "sequential_halving"\nbudget = 60\n[axes]'


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A sweep file, and the folder with its results."""
    home = tmp_path_factory.mktemp("sweep")
    file, out = home / "small.toml", home / "out"
    file.write_text(SMALL)
    assert call("run", file, "--out", out).exit_code == 0
    return file, out


def everything(out):
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("old", "new", "options", "words"),
    [
        ("", "", ["--seed", 1], ["seed 3 instead of 1"]),
        ("", "", ["--replications", 20], ["40 replications instead of 20"]),
        ("budget = 40", "budget = 50", [], ["[algorithms.SH] budget 40 instead of 50"]),
        ("dim = 4", "dim = 5", [], ["[instances.basis] dim 4 instead of 5"]),
        ('"sequential_halving"', '"gse"', [], ["jaxbandits.sequential_halving instead of"]),
        ("algorithms.SH", "algorithms.halving", [], ["algorithm 'SH'"]),
        ("instances.basis", "instances.base", [], ["instance 'basis'"]),
        ("[2.0, 0.2]", "[2.0, 0.5]", [], ["gap = 0.2"]),
        ("gap = [2.0, 0.2]", "budget = [40]\n[instances.b]\nname='soare'\ndim=4\n", [], ["budget"]),
        ("[axes]", "[until]\nerror_width = 0.5\n[axes]", [], ["until"]),
        ("seed = 3", "seed = 3\nmax_pulls = 1000", [], ["max_pulls 10,000,000 instead of 1,000"]),
        ("budget = 40", "budget = 40\nonly = {gap = [2.0]}", [], ["[algorithms.SH] at gap = 0.2"]),
    ],
)
def test_results_of_another_sweep_are_refused(finished, old, new, options, words):
    file, out = finished
    other = file.with_name("other.toml")
    other.write_text(SMALL.replace(old, new) if old else SMALL)
    if "budget = [40]" in new:
        other.write_text(other.read_text().replace("dim = 4\n", "dim = 4\ngap = 0.2\n", 1))
    before = everything(out)
    refused(call("run", other, "--out", out, *options), "results.nc", "--force", *words)
    assert everything(out) == before


def test_a_larger_version_plays_only_what_is_not_stored(finished, tmp_path, monkeypatch):
    """More replications and another algorithm: stored replications are not played again."""
    file, before = finished
    out, more, asked = tmp_path / "out", tmp_path / "more.toml", []
    shutil.copytree(before, out)
    more.write_text(SMALL.replace("[axes]", MORE).replace("= 40", "= 80", 1))
    original = api.Simulation.run

    def counted(self, waiting, *more):
        asked.extend(list(numbers) for numbers in waiting.values())
        return original(self, waiting, *more)

    monkeypatch.setattr(api.Simulation, "run", counted)
    assert call("run", more, "--out", out).exit_code == 0
    assert asked == [list(range(40, 80))] * 2 + [list(range(80))] * 2
    with xarray.open_dataset(out / "results.nc") as found:
        one = found.sel(algorithm=["SH"])
        whole = run(parse(tomllib.loads(SMALL) | {"replications": 80}), batch=80)
        np.testing.assert_array_equal(one.arm_pulls, whole.arm_pulls)
    refused(call("run", file, "--out", out), "80 replications instead of 40", "algorithm 'wide'")


@pytest.mark.parametrize(
    ("added", "words"),
    [
        (
            lambda d: xarray.concat([d, d.assign_coords(replication=d.replication + 40)], EACH),
            "80 replications instead of 40",
        ),
        (lambda d: xarray.concat([d, d], "draw"), "also the dimension 'draw'"),
        (lambda d: d.assign(mine=d.pulls * 2), "also the variable 'mine'"),
        (lambda d: xarray.concat([d, d], "algorithm"), "algorithm SH more than once"),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_others_have_added_to_results_is_not_lost(finished, added, words, tmp_path):
    file, before = finished
    out = tmp_path / "out"
    shutil.copytree(before, out)
    write(added(xarray.load_dataset(out / "results.nc")), out / "results.nc")
    refused(call("run", file, "--out", out), "results.nc", words, "--force")


def test_all_files_that_have_to_be_moved_away_are_named_at_once(finished, tmp_path):
    file, before = finished
    out = tmp_path / "out"
    shutil.copytree(before, out)
    (out / "results.nc").write_bytes(b"cut")
    refused(call("run", file, "--out", out), "results.nc", *folder.BESIDE)
    for name in ("results.nc", *folder.BESIDE):
        (out / name).unlink()
    assert call("run", file, "--out", out).exit_code == 0


def test_force_replaces_results_but_no_foreign_file(finished, tmp_path):
    file, _ = finished
    out = tmp_path / "out"
    assert call("run", file, "--out", out).exit_code == 0
    (out / "claims.json").write_text("[]")
    done = call("run", file, "--out", out, "--seed", 9, "--force")
    assert done.exit_code == 0, done.output
    with xarray.open_dataset(out / "results.nc") as found:
        assert found.attrs["seed"] == 9
    assert not (out / "claims.json").exists()  # it was about the replaced results
    assert not (out / folder.LOCK).exists()
    (out / "results.nc").write_bytes(b"of somebody else")
    refused(call("run", file, "--out", out, "--force"), "results.nc", "cannot be read")
    (out / "results.nc").unlink()
    for name in folder.BESIDE:
        for other in folder.BESIDE:
            (out / other).unlink(missing_ok=True)
        (out / name).write_bytes(b"of somebody else")
        refused(call("run", file, "--out", out), name, "--force")
        assert (out / name).read_bytes() == b"of somebody else"


def test_the_small_version_of_an_experiment_does_not_replace_the_full_one(tmp_path, monkeypatch):
    monkeypatch.setitem(reproduce.EXPERIMENTS, NAME, EASY)
    plan = EASY.sweep()
    runs = with_pulls(np.arange(20))
    whole = assemble(plan, [runs] * 3).assign_attrs(experiment=EASY.title, data="{}")
    write(whole, tmp_path / "results.nc")
    before = everything(tmp_path)
    small = call("reproduce", NAME, "--out", tmp_path, "--quick")
    refused(small, "results.nc", "20 replications instead of 6", "dim = 3", "--force")
    assert everything(tmp_path) == before
    file = tmp_path / "s.toml"
    file.write_text(SMALL)
    refused(call("run", file, "--out", tmp_path), "An angle that takes", "instead of a file")


def test_a_folder_is_for_one_sweep_at_a_time(finished):
    file, out = finished
    before = everything(out)
    one, other = (cells_of(parse(tomllib.loads(SMALL) | {"seed": seed})) for seed in (3, 4))
    with folder.locked(out, one):
        busy = call("run", file, "--out", out)
        refused(busy, "in use by another sweep", f"process {os.getpid()} on ")
        with pytest.raises(ValueError, match="in use by another sweep"):
            run(parse(tomllib.loads(SMALL)), out=out)
    with folder.locked(out, one, shared=True):
        with folder.locked(out, one, shared=True):
            assert (out / folder.LOCK).exists()
        for cells, shared in ((other, True), (one, False)):
            with (
                pytest.raises(ValueError, match="in use"),
                folder.locked(out, cells, shared=shared),
            ):
                pass
    assert everything(out) == before
    assert call("run", file, "--out", out).exit_code == 0


@pytest.mark.parametrize("left", [b"\xff{half", b'{"host": "' + 1000 * b"h" + b'"}'])
def test_a_lock_that_a_killed_process_left_is_ignored(left, tmp_path):
    """Also one longer than what is written in its place, which the other shards read."""
    cells = cells_of(parse(tomllib.loads(SMALL)))
    (tmp_path / folder.LOCK).write_bytes(left)
    with folder.locked(tmp_path, cells, shared=True), folder.locked(tmp_path, cells, shared=True):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.symlink_to("precious"), "it is a link, and no file"),
        (os.mkfifo, "it is a named pipe, and no file"),
    ],
    ids=["a link", "a pipe"],
)
@pytest.mark.parametrize("shared", [True, False])
def test_a_lock_that_is_no_file_is_refused_and_nothing_is_written(make, words, shared, tmp_path):
    """Through a link, the text of the lock would be written into a file of somebody."""
    (tmp_path / "precious").write_text("kept")
    make(tmp_path / folder.LOCK)
    with (
        pytest.raises(ValueError, match=rf"out: .*\.sweep\.lock cannot be the lock .*: {words}$"),
        folder.locked(tmp_path, [], shared=shared),
    ):
        pass
    assert (tmp_path / "precious").read_text() == "kept"


def test_what_killed_sweeps_were_writing_is_removed(tmp_path):
    (tmp_path / "cells").mkdir()
    places = (tmp_path / ".results.nc-0123abcd.partial", tmp_path / "cells/.0a1b-0123abcd.partial")
    for path in places:
        path.write_bytes(b"half")
    with (
        replacing(tmp_path / "cells" / "0a1b.npz", tidy=False) as new,
        folder.locked(tmp_path, [], shared=True),
    ):
        assert new.exists()  # another shard writes it now
        assert not any(path.exists() for path in places)


@pytest.mark.parametrize(
    ("text", "holder"),
    [
        ('{"process": 7, "host": "here"}', "process 7 on here"),
        ('{"process": 7, "host": "a\\nb"}', r"process \? on \?"),
        ('{"process": "7", "host": "here"}', r"process \? on \?"),
        ("[" * 5000, r"process \? on \?"),
        ("null", r"process \? on \?"),
    ],
    ids=range(5),
)
def test_whatever_stands_in_a_lock_the_refusal_is_one_line(text, holder, tmp_path):
    (tmp_path / folder.LOCK).write_text(text)
    file = os.open(tmp_path / folder.LOCK, os.O_RDWR)
    locks.lock(file)
    with (
        pytest.raises(ValueError, match=rf"in use by another sweep \({holder}\)$"),
        folder.locked(tmp_path, []),
    ):
        pass
    os.close(file)


def test_a_shard_waits_while_another_one_begins(tmp_path):
    cells = cells_of(parse(tomllib.loads(SMALL)))
    file = os.open(tmp_path / folder.LOCK, os.O_RDWR | os.O_CREAT)
    locks.lock(file)  # as a shard has it while it writes down whose it is
    timer = threading.Timer(0.2, os.close, [file])
    timer.start()
    with folder.locked(tmp_path, cells, shared=True):
        timer.join()
    assert list(tmp_path.iterdir()) == []


def test_a_shard_does_not_wait_long_for_another_sweep(tmp_path):
    cells = cells_of(parse(tomllib.loads(SMALL)))
    begin = time.monotonic()
    with (
        folder.locked(tmp_path, cells),
        pytest.raises(ValueError, match="in use by another sweep"),
        folder.locked(tmp_path, cells, shared=True),
    ):
        pass
    assert time.monotonic() - begin < 10 * folder.SHARING_SECONDS


def test_stored_cells_of_any_sweep_stay(tmp_path):
    """A folder that holds only cells is never overwritten: each sweep adds its own files."""
    plans = (parse(tomllib.loads(SMALL) | {"seed": seed}) for seed in (3, 4))
    one, other = ({Store(tmp_path).path(cell.spec) for cell in cells_of(plan)} for plan in plans)
    assert not one & other


def found_at(name):
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def test_constructors_that_results_name_can_be_imported():
    for kind in ("instance", "algorithm"):
        for name, build in names.constructors(kind).items():
            assert found_at(readable(build)) is build, name
    assert readable(jb.instances.soare) == "jaxbandits.instances.soare"
    assert readable(jb.lingape) == "jaxbandits.lingape"
    assert importable("found_at", __name__, found_at) == f"{__name__}.found_at"


def test_numbers_in_results_are_numbers():
    table = tomllib.loads(SMALL) | {"axes": {"gap": [1.0]}}
    bound = {"name": "at_budget", "algorithm": "lingape", "budget": 9, "delta": 0.25}
    table["algorithms"]["bound"] = bound | {"only": {"gap": [1.0]}}
    table["instances"]["soare"] = {"name": "soare", "dim": 4, "angle": 0.1}
    found = json.loads(attributes(parse(table))["options"])
    assert found["[instances.soare]"] == {
        "constructor": "jaxbandits.instances.soare", "redraw": True, "dim": 4, "angle": 0.1,
    }  # fmt: skip
    assert found["[algorithms.bound]"] == {
        "constructor": "jaxbandits.at_budget", "algorithm": "jaxbandits.lingape", "redraw": True,
        "budget": 9, "delta": 0.25, "only": {"gap": [1.0]},
    }  # fmt: skip
    for value, text in (
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (float("inf"), "inf"),
        (1j, "1j"),
    ):
        assert readable(value) == text
        assert type(readable(value)) is type(text)


def test_an_instance_with_other_data_files_is_another_sweep(tmp_path):
    plan = parse(tomllib.loads(SMALL))
    old = xarray.Dataset(coords={"instance": ["basis"], "algorithm": ["SH"], "gap": [2.0, 0.2]})
    new = attributes(plan) | {"experiment": ""}
    old.attrs = attributes(plan) | {"data": json.dumps({"basis": ["a"]})}
    assert lost(old, plan, new | {"data": json.dumps({"basis": ["a"]})}) == []
    (text,) = lost(old, plan, new | {"data": json.dumps({"basis": ["b"]})})
    assert text == "other files behind instance 'basis'"
    assert facts_of(cells_of(plan))["data"] == "{}"


def test_what_differs_in_a_table_of_numbers_is_said():
    """The first entry of a small table; of a large one, which may not be stored, only that."""

    def plan(arms, theta=(1.0, 0.0)):
        ready = jb.instances.linear(arms, theta)
        return planned({"ready": ready}, {"SH": partial(jb.uniform)}, replications=1)

    def difference(one, other):
        old = xarray.Dataset(coords={"instance": ["ready"], "algorithm": ["SH"]})
        old.attrs = attributes(one) | {"experiment": "", "data": "{}"}
        return lost(old, other, attributes(other) | {"experiment": "", "data": "{}"})

    arms = np.eye(2)
    assert difference(plan(arms), plan(arms)) == []
    texts = difference(plan(arms), plan(arms + 0.25 * arms[::-1]))
    assert texts[0] == "[instances.ready] arms[0, 1] 0.0 instead of 0.25"
    more = "an array float64 [2, 2] instead of an array float64 [3, 2]"
    assert f"[instances.ready] arms {more}" in difference(plan(arms), plan(np.eye(3, 2)))
    large = np.random.default_rng(0).normal(size=(400, 2))
    (text, *_) = difference(plan(large), plan(large + 1.0))
    assert text == (
        "[instances.ready] arms an array float64 [400, 2] instead of one with other entries"
    )


def test_an_option_of_another_kind_is_shown_without_digests():
    array = described_array(np.zeros(3))
    assert differences({"a": array}, {"a": None}, {}) == [(" a", "an array float64 [3]", "None")]
    assert differences([array, 1], [2], {}) == [("", "[an array float64 [3], 1]", "[2]")]
    assert differences({"a": {"b": 1}}, {"a": {"b": 2}}, {}) == [(" a b", "1", "2")]
    assert entries_of({"x": np.zeros(501), "y": np.arange(2)}) == {
        described_array(np.arange(2))[-1]: [0, 1]
    }
