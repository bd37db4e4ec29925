"""Damaged files and files of somebody else: what was written is read, or one line says why not."""

import contextlib
import dataclasses
import io
import json
import os
import zipfile
from functools import partial

import h5py
import numpy as np
import pytest
import xarray
from pages import CLAIMS, example, stored
from test_results import runs

import jaxbandits as jb
from jaxbandits.engine.results import Runs
from jaxbandits.report import reading
from jaxbandits.sweeps import folder, parse, store
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.dataset import read_ours, write
from jaxbandits.sweeps.stated import JSON, NEEDED, PLAIN, check_stated
from jaxbandits.system import data_files
from jaxbandits.system.data_files import Unreadable

META = {"seed": 3, "engine": "xla", "seconds": 0.5}


def tables_of(some):
    """The arrays of a file of runs, by name."""
    stream = io.BytesIO()
    some.write(stream)
    stream.seek(0)
    with np.load(stream) as stored:
        return dict(stored)


def packed(arrays, save=np.savez_compressed):
    stream = io.BytesIO()
    save(stream, **arrays)
    stream.seek(0)
    return stream


def refusal(stream):
    """The text of the one line with which an open file is refused, or None."""
    try:
        jb.load(stream)
    except ValueError as error:
        text = str(error)
        assert text.startswith("path: ")
        assert "\n" not in text
        assert "pickle" not in text
        return text
    return None


REGRET, SETS = tables_of(runs(regret=True)), tables_of(runs(sets=True))
LONGER = {name: x for name, x in (REGRET | SETS).items() if name != "header"}


@pytest.mark.parametrize("name", sorted(LONGER))
def test_tables_of_other_lengths_kinds_and_axes_are_refused(name):
    arrays = SETS if name == "answer" else REGRET
    table = arrays[name]
    changed = [
        table[:-1],
        np.concatenate([table, table[-1:]]),
        table.astype("U9"),
        table.astype(complex),
        table.astype("datetime64[s]" if table.dtype.kind == "i" else "V8"),
        table[None],
        table[..., None],
        table.reshape(-1)[0],
    ]
    if name in ("arm_pulls", "answer", "regret"):
        changed.append(table[:, :0] if name == "arm_pulls" else table[:, 0] * 1.5)
    if name != "regret" and not name.startswith("info"):
        changed.append(table.astype(float))
    for one in changed:
        text = refusal(packed(arrays | {name: one}))
        assert text is not None, one
        assert name in text or "replication" in text or "rounds" in text
    rest = {other: x for other, x in arrays.items() if other != name}
    optional = name.startswith("info")
    assert (refusal(packed(rest)) is None) == optional


def at(name, index, value):
    """Tables of which one entry is another; a function of the table where `value` is one."""
    table = REGRET[name].copy()
    table[index] = value
    return {name: table}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (at("pulls", 3, 10**6), "'arm_pulls' do not sum to 'pulls' in replication [3]"),
        (at("arm_pulls", (3, 0), 10**6), "'arm_pulls' do not sum to 'pulls'"),
        ({"pulls": -REGRET["pulls"], "arm_pulls": -REGRET["arm_pulls"]}, "'pulls' holds a number"),
        (
            {"arm_pulls": REGRET["arm_pulls"] + [[200, -200, 0]]},
            "'arm_pulls' holds a number below 0",
        ),
        (at("answer", 0, -2), "'answer' holds one that is no index"),
        (
            at("pulls", 0, -5) | at("arm_pulls", 0, [-5, 0, 0]),
            "'pulls' holds a number below 0",
        ),
        (at("rounds", 4, REGRET["pulls"].max()), "'rounds' go on after the last pull"),
        (at("replication", 0, -1), "'replication' holds a number below 0"),
        (at("replication", 1, 0), "'replication' must increase"),
        ({"replication": REGRET["replication"][::-1]}, "'replication' must increase"),
        (at("rounds", 0, 0), "'rounds' must begin at 1"),
        (at("rounds", 1, 1), "'rounds' must increase"),
        (at("rounds", 4, 10**6), "'rounds' go on after the last pull"),
        (at("regret", (3, 2), np.nan), "'regret' holds one that is not finite"),
        (at("regret", (3, 2), np.inf), "'regret' holds one that is not finite"),
        (
            {"rounds": REGRET["rounds"][:0], "regret": REGRET["regret"][:, :0]},
            "'rounds' must begin",
        ),
        ({"other": np.zeros(40)}, "'other', which runs have not"),
        ({"other/x": np.zeros(40)}, "'other/x', which runs have not"),
        ({"facts/broken": np.zeros(40)}, "'facts/broken' must hold truth values"),
        ({"info/phases": np.zeros(40, object)}, "'info/phases' in it holds objects of Python"),
    ],
    ids=str,
)
def test_entries_that_no_run_can_have_are_refused(change, words):
    assert words in refusal(packed(REGRET | change))


DEEP = "[" * 5000


@pytest.mark.parametrize(
    "header",
    [
        *("", "1", "null", "[1]", '"x"', "{", "{}", DEEP, f'{{"a": {DEEP}'),
        '{"format": 1}',
        '{"meta": {}}',
        *(
            f'{{"format": {x}, "meta": {{}}}}'
            for x in ('"1"', "null", "true", "[1]", "1.0", "1e999")
        ),
        *(f'{{"format": 1, "meta": {x}}}' for x in ("null", "[]", '"x"', "3")),
        '{"format": 1' + "0" * 10**6 + ', "meta": {}}',
        '{"format": 1, "format": 1, "meta": {}}',
        '{"format": 1, "meta": {"seed": 1, "seed": 2}}',
        '{"format": 1, "meta": {"engine": "\\ud800"}}',
        '{"format": 1, "meta": {"engine": 3}}',
        '{"format": 1, "meta": {"cell": null}}',
        *(f'{{"format": 1, "meta": {{"seconds": {x}}}}}' for x in ('"1"', "-1", "NaN", "Infinity")),
        *(f'{{"format": 1, "meta": {{"compile_seconds": {x}}}}}' for x in ("null", "[]", "true")),
    ],
    ids=lambda header: header[:50],
)
def test_headers_of_another_type_are_refused(header):
    assert refusal(packed(REGRET | {"header": np.array(header)}))
    assert refusal(packed(REGRET | {"header": np.frombuffer(header.encode() + b"\0", np.uint8)}))


def test_a_header_may_hold_whatever_json_can(tmp_path):
    meta = META | {"note": "Z\u00fcrich \U0001f600", "limit": float("inf"), "list": [1, None, {}]}
    header = json.dumps({"format": 1, "meta": meta})
    assert jb.load(packed(REGRET | {"header": np.array(header)})).meta == meta


def alike(one, two):
    """Whether two `Runs` are equal in all that they hold."""
    first, second = tables_of(one), tables_of(two)
    return first.keys() == second.keys() and all(
        first[name].dtype == second[name].dtype and np.array_equal(first[name], second[name])
        for name in first
    )


def test_a_file_cut_or_changed_at_any_byte_is_refused_or_right():
    """Also its table of contents, where another length of a comment would leave arrays out."""
    some = runs(4, regret=True)
    whole, wrong = packed(tables_of(some)).getvalue(), []
    flips = (0x01, 0x10, 0xFF)  # one for each byte; of the tables, every third byte
    contents = whole.index(b"PK\1\2")
    places = [*range(0, contents, 3), *range(contents, len(whole))]
    changed = [whole[:at] + bytes([whole[at] ^ flips[at % 3]]) + whole[at + 1 :] for at in places]
    cut = [whole[:length] for length in range(0, len(whole), 7)]
    refused = 0
    for data in cut + changed:
        if refusal(io.BytesIO(data)):
            refused += 1
        elif not alike(jb.load(io.BytesIO(data)), some):
            wrong.append(data)
    assert not wrong
    assert refused > len(cut) + len(changed) / 2


def bomb(size):
    """A file of some kilobytes whose pulls are so many bytes when unpacked, by what it says."""
    stream = packed(REGRET | {"pulls": np.zeros(2**16, np.int64)})
    small = (2**19 + 128).to_bytes(4, "little")  # in the table of contents
    data = stream.getvalue()
    assert data.count(small) >= 1
    return io.BytesIO(data.replace(small, size.to_bytes(4, "little")))


def test_a_file_that_unpacks_to_more_than_the_memory_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr(data_files, "memory_bytes", lambda: 2**30)
    assert "it holds 4 GiB of data, and this machine has a memory of 1 GiB" in refusal(
        bomb(2**32 - 2**16)
    )


def test_an_array_is_not_unpacked_before_all_shapes_fit(monkeypatch):
    read, names = zipfile.ZipFile.read, []

    def counted(archive, member):
        names.append(member.filename)
        return read(archive, member)

    monkeypatch.setattr(zipfile.ZipFile, "read", counted)
    assert "'pulls' has 65536 entries where 'replication' has 40" in refusal(
        packed(REGRET | {"pulls": np.zeros(2**16, np.int64)})
    )
    assert names == ["header.npy"]


def test_other_archives_are_refused():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("header.npy", b"x")
    assert "packed in an unknown way" in refusal(stream)
    stream = io.BytesIO(packed(REGRET).getvalue())
    with zipfile.ZipFile(stream, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("pulls.npy", archive.read("pulls.npy"))
    assert "its table of contents is damaged" in refusal(stream)
    long = io.BytesIO()
    with zipfile.ZipFile(long, "w") as archive:
        archive.writestr("x" * 1000 + ".npy", b"x")
    assert len(refusal(long)) < 250


@pytest.mark.parametrize("name", ["replication", "regret", "info/phases", "answer"])
def test_arrays_in_the_order_of_columns_or_with_other_bytes_first_are_read(name):
    table = (SETS if name == "answer" else REGRET)[name]
    arrays = SETS if name == "answer" else REGRET
    other = np.asfortranarray(table).astype(table.dtype.newbyteorder())
    found, expected = (jb.load(packed(arrays | {name: x})) for x in (other, table))
    assert found.replication.flags.writeable
    np.testing.assert_array_equal(found.regret, expected.regret)
    np.testing.assert_array_equal(found.answer, expected.answer)


def test_a_longer_header_of_an_array_is_read():
    """NumPy writes the second version of its format where a header is long."""
    stream = packed(REGRET)
    with zipfile.ZipFile(stream, "a") as archive, archive.open("info/other.npy", "w") as member:
        np.lib.format.write_array(member, REGRET["pulls"], version=(2, 0))
    stream.seek(0)
    np.testing.assert_array_equal(jb.load(stream).info["other"], REGRET["pulls"])


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(tmp_path, monkeypatch):
    """Between the look at a path and its opening."""
    check = data_files.check_regular
    late = lambda file: check(file) if isinstance(file, int) else None  # noqa: E731
    monkeypatch.setattr(data_files, "check_regular", late)
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(ValueError, match=r"x\.npz does not hold saved runs \(it is a named pipe"):
        jb.load(tmp_path / "x.npz")


def test_the_last_recorded_round_may_be_the_last_pull():
    rounds = np.array([*range(1, 5), REGRET["pulls"].min()])
    assert refusal(packed(REGRET | {"rounds": rounds})) is None


def test_replications_without_a_pull_can_be_read():
    none = {"pulls": SETS["pulls"] * 0, "arm_pulls": SETS["arm_pulls"] * 0}
    assert refusal(packed(SETS | none)) is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"info": {"things": np.array([{}] * 40, object)}}, "'info/things' must hold "),
        ({"pulls": np.zeros(0, int)}, "'pulls' has 0 entries where 'replication' has 40"),
        ({"correct": np.full(40, np.nan)}, "'correct' must hold truth values"),
        ({"stopped": np.full(40, 0.5)}, "'stopped' must hold truth values"),
        ({"regret": np.zeros((40, 3))}, "it has no 'rounds'"),
    ],
)
def test_tables_that_do_not_fit_each_other_make_no_runs(changed, message):
    with pytest.raises(ValueError, match=f"^Runs: {message}"):
        dataclasses.replace(runs(), **changed)


def test_the_file_of_a_live_run_is_called_one(tmp_path):
    with jb.Live(partial(jb.lucb, m=1), np.eye(2), path=tmp_path / "live.npz"):
        pass
    with pytest.raises(ValueError, match=r"live.npz does not hold .* of a live run: give it to jb"):
        jb.load(tmp_path / "live.npz")


def test_a_damaged_cell_is_named_once(tmp_path):
    def play():
        return jb.sweep({"s": jb.instances.soare(2)}, HALVED, replications=9, **QUIET, out=tmp_path)

    play()
    (file,) = (tmp_path / "cells").iterdir()
    file.write_bytes(file.read_bytes()[:-99])
    with pytest.raises(ValueError, match=r"\.npz: it does not hold saved runs") as error:
        play()
    assert str(error.value).count(str(file)) == 1


HALVED = {"h": partial(jb.sequential_halving, budget=20)}
QUIET = {"progress": False}
VALUES = np.array([0.1, 0.9, 0.5, 0.9])
INDICES, MASKS = np.array([1, 3, 2, 0]), np.array([[0, 1, 0, 1], [0, 1, 1, 0], [1, 1, 1, 1]]) == 1


@pytest.mark.parametrize(
    ("answer", "correct", "accuracy", "wrong"),
    {
        "right": (INDICES, [1, 1, 0, 0], False, None),
        "inverted": (INDICES, [0, 0, 1, 1], False, "4 of 4 replications (number 0 first)"),
        "one wrong": (INDICES, [1, 1, 1, 0], False, "1 of 4 replications (number 2 first)"),
        "within epsilon perhaps": (INDICES, [1, 1, 1, 0], True, None),
        "the best within any epsilon": (INDICES, [1, 0, 1, 0], True, "1 of 4 replications (num"),
        "no answer": (-np.ones(2, int), [1, 0], False, None),
        "sets": (MASKS, [1, 0, 1], False, None),
        "sets inverted": (MASKS, [0, 1, 0], False, "3 of 3 replications (number 0 first)"),
    }.values(),
)
def test_flags_are_compared_with_the_answers(answer, correct, accuracy, wrong):
    number = len(answer)
    pulls = np.full((number, 4), 2)
    flags, stopped = np.array(correct) == 1, np.ones(number, bool)
    runs = Runs(np.arange(number), pulls.sum(1), answer, flags, stopped, pulls)
    expected = pytest.raises(Unreadable) if wrong else contextlib.nullcontext()
    with expected as error:
        store.check_flags(runs, VALUES, accuracy)
    if wrong:
        assert str(error.value).startswith(f"'correct' contradicts 'answer' in {wrong}")


def test_a_stored_cell_whose_flags_are_inverted_is_refused(tmp_path):
    def play():
        return jb.sweep({"s": jb.instances.soare(2)}, HALVED, replications=9, **QUIET, out=tmp_path)

    play()
    (file,) = (tmp_path / "cells").iterdir()
    runs = jb.load(file)
    dataclasses.replace(runs, correct=~runs.correct).save(file)
    with pytest.raises(ValueError, match=r"'correct' contradicts 'answer' in 9 of 9 replications"):
        play()


def test_runs_without_replications_can_be_read():
    assert len(jb.load(packed(tables_of(runs(0, errors=0, cut=0))))) == 0


PLAN = {
    "replications": 20,
    "instances": {"soare": {"name": "soare", "dim": 2}},
    "algorithms": {"GSE": {"name": "gse", "budget": 20}},
    "axes": {"angle": [0.5, 0.25]},
}


def of_results(file):
    """The lines with which each reader of results refuses a file; none where it is read."""

    def opened():
        with read_ours(file) as dataset:
            dataset.load()

    found = []
    for read in (lambda: reading.find(file.parent), opened):
        try:
            read()
        except ValueError as error:
            found.append(str(error))
    for text in found:
        assert text.startswith(f"{file}: ")
        assert "\n" not in text
    return found


WRONG = {
    **{name: ("", "[", "1", "null", '"x"', DEEP, 3, [1, 2], '{"a": 1}', "[[]]") for name in JSON},
    **{name: ("x", "7", 1.5, -1, [1, 2], np.nan, 1e300) for name in ("seed", "replications")},
    **{name: (3, [1, 2], 1.5) for name in ("title", "experiment", "jax", "command")},
    **{name: ("x", [1.0, 2.0], np.nan, np.inf) for name in ("seconds", "confidence")},
    "compile_seconds": (None, True, {}),
}
WRONG["confidence"] += (0, 1, 1.5, -0.5)
WRONG["independent"] += ('{"gap": 3}', '{"gap": [["a"]]}')
WRONG["until"] = (*WRONG["until"][:-2], '{"error_width": "x"}', '{"error_width": true}', "[[]]")
WRONG["record"] = (*(x for x in WRONG["record"] if x != '"x"'), "[true]")
WRONG["options"] += ('{"a": {"only": 3}}', '{"a": {"only": {"gap": 1}}}')
WRONG["revisions"] += ('{"a": {"b": 1}}', '{"a": {"b": [1]}}')


@pytest.mark.parametrize("name", WRONG)
def test_an_attribute_of_another_type_is_named(name):
    check_stated(example().attrs)
    for value in WRONG[name]:
        with pytest.raises(ValueError, match=f"^the attribute {name!r} is not "):
            check_stated({name: value})


def test_attributes_may_say_whatever_a_sweep_writes():
    check_stated(
        {
            "independent": '{"gap": [["a", 1]]}',
            "until": '{"error_width": 1}',
            "record": "[1, 2]",
            "entries": '{"digest": [1.5, "x", [true]]}',
            "whole_axes": '{"gap": [0.5, "x"]}',
            "options": '{"a": {"only": {"gap": [0.5]}, "delta": 1}}',
            "revisions": '{"a": {"b": ["why"], "c": []}}',
            "confidence": np.float64(0.975),
            "seconds": np.int64(0),
            "seed": np.int64(0),
            "title": "",
            "of somebody else": object(),
        }
    )
    check_stated({"record": '"log"', "seed": 2**63})


@pytest.mark.parametrize(("name", "value"), [("axes", DEEP), ("until", "[]"), ("seed", 1.5)])
def test_every_reader_of_results_names_the_attribute(name, value, tmp_path):
    file = stored(tmp_path, example()) / "results.nc"
    assert not of_results(file)
    dataset = example().assign_attrs({name: value})
    write(dataset, file)
    lines = of_results(file)
    assert len(lines) == 2
    assert all(f"attribute {name!r} is not" in line for line in lines)
    with pytest.raises(ValueError, match=f"attribute {name!r} is not"):
        jb.plot.sweep(dataset)


def test_all_attributes_are_of_a_known_type():
    """Those that a sweep writes; one without an entry would be read unchecked."""
    dataset = jb.sweep(
        {"basis": jb.instances.canonical(2, gap=1.0)},
        {"halving": partial(jb.sequential_halving, budget=4)},
        replications=2,
        progress=False,
    )
    assert dataset.attrs.keys() <= JSON.keys() | PLAIN.keys()


@pytest.mark.parametrize("name", NEEDED)
def test_an_attribute_that_is_missing_is_named(name, tmp_path):
    dataset = example()
    del dataset.attrs[name]
    lines = of_results(stored(tmp_path, dataset) / "results.nc")
    assert f"not the results of a sweep: it has no attribute {name!r}" in lines[0]
    assert "it holds something else and is not overwritten" in lines[1]


def strings(dataset, name):
    return dataset.assign({name: dataset[name].astype(str)})


@pytest.mark.parametrize(
    "dataset",
    [
        *(example().drop_vars(name) for name in ("pulls", "correct", "stopped")),
        *(strings(example(), name) for name in ("pulls", "correct", "stopped")),
        example().assign(pulls=example().pulls + 0.5),
        example().assign(pulls=example().pulls.assign_attrs(units="days since 2000-01-01")),
        example().isel(replication=slice(0)),
        example().isel(instance=slice(0)),
        example().assign(correct=example().correct * 2),
    ],
    ids=range(11),
)
def test_tables_of_results_that_are_missing_or_of_another_kind_are_named(dataset, tmp_path):
    file = stored(tmp_path, dataset) / "results.nc"
    with pytest.raises(ValueError, match=r"results\.nc: not the results of a sweep: ") as caught:
        reading.find(tmp_path)
    assert "\n" not in str(caught.value)
    assert file.exists()


def test_results_without_labels_are_not_taken_for_those_of_a_sweep(tmp_path):
    for name in ("instance", "algorithm", "gap"):
        file = stored(tmp_path, example().drop_vars(name)) / "results.nc"
        assert f"has no labels of the dimension {name!r}" in of_results(file)[-1]


def test_results_cut_or_changed_at_any_byte_are_refused_or_right(tmp_path):
    """One changed byte can make HDF5 read for ever, or tell of other numbers."""
    expected = example(instances=("one",))
    file = stored(tmp_path, expected) / "results.nc"
    whole, generator = file.read_bytes(), np.random.default_rng(0)
    for at in np.unique(generator.integers(0, len(whole), 40)).tolist():
        file.write_bytes(whole[:at])
        assert len(of_results(file)) == 2
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert len(of_results(file)) == 2
    seal = len(whole) - len(data_files.SEAL) - 10  # without its beginning it is none
    file.write_bytes(whole[:seal] + b"?" + whole[seal + 1 :])
    assert len(of_results(file)) == 2


def test_results_that_another_program_has_written_are_read(tmp_path):
    file = stored(tmp_path, example()) / "results.nc"
    with xarray.open_dataset(file) as found:
        changed = found.load().assign_attrs(title="another")
    changed.to_netcdf(file, engine="h5netcdf")
    assert not of_results(file)
    sealed = stored(tmp_path, changed) / "results.nc"
    assert data_files.SEAL in sealed.read_bytes()
    with h5py.File(sealed, "a") as inside:
        inside.attrs["title"] = "a third one, which is longer than the one before"
    assert not of_results(sealed)


@pytest.mark.parametrize("how", ["a link", "its bytes", "a view"])
def test_results_that_take_numbers_from_other_files_are_refused(how, tmp_path):
    """They would be shown on a page that is given away."""
    file = stored(tmp_path, example()) / "results.nc"
    (tmp_path / "secret").write_bytes(b"a password" * 100)
    with h5py.File(tmp_path / "other.nc", "w") as other:
        other["pulls"] = np.arange(4)
    with h5py.File(file, "a") as inside:
        if how == "a link":
            inside["secret"] = h5py.ExternalLink(str(tmp_path / "other.nc"), "pulls")
        elif how == "its bytes":
            place = [(str(tmp_path / "secret"), 0, 80)]
            inside.create_dataset("secret", (10,), np.int64, external=place)
        else:
            layout = h5py.VirtualLayout((4,), np.int64)
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.nc"), "pulls", (4,))
            inside.create_virtual_dataset("secret", layout)
    assert all("its 'secret' lies in another file" in line for line in of_results(file))
    assert len(of_results(file)) == 2


def test_results_larger_than_the_memory_are_refused_before_they_are_read(tmp_path, monkeypatch):
    file = stored(tmp_path, example()) / "results.nc"
    monkeypatch.setattr(data_files, "memory_bytes", lambda: 1000)
    lines = of_results(file)
    assert len(lines) == 2
    assert all("and this machine has a memory of 9.31e-07 GiB" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "from line 1, column 2 on"),
        (DEEP, "nested too deeply"),
        ("[" * 101 + "]" * 101, "nested too deeply"),
        ("1" + "0" * 10**5, "too many digits"),
        ("[1e999]", "the number '1e999' in it is too large"),
        ('[{"b": 0, "a": 1, "a": 2}]', "it has the name 'a' twice"),
        ('["\\ud800"]', "characters that are no text"),
        ("{}", "must be a list of objects"),
        *((json.dumps([{**CLAIMS[0], "holds": x}]), "must be a list") for x in (1, 0, "x", [])),
        *((json.dumps([{**CLAIMS[0], "claim": x}]), "must be a list") for x in (None, 3, [])),
        (
            json.dumps(
                [{**CLAIMS[0], "measured": {"a": 1, "standard_error": 1, "replications": "x"}}]
            ),
            "claim 1 has 'replications' that is no number, 'x'",
        ),
        (
            json.dumps([{**CLAIMS[0], "measured": [{"a": 10**400}]}]),
            "claim 1 has a number beyond 1e+300",
        ),
        (
            json.dumps([{**CLAIMS[0], "measured": {"not_played": 3}, "holds": None}]),
            "claim 1 has 'not_played' that is no list of texts, 3",
        ),
        (json.dumps([{**CLAIMS[0], "paper": 3}]), "claim 1 has 'paper' that is no text"),
    ],
    ids=range(19),
)
def test_claims_that_are_none_are_refused(text, words, tmp_path):
    file = tmp_path / "claims.json"
    file.write_text(json.dumps(CLAIMS))
    assert reading._claims(file) == CLAIMS
    file.write_text(text)
    with pytest.raises(ValueError, match=r"claims\.json: ") as caught:
        reading._claims(file)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    file.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"claims\.json: .* it is no text in UTF-8"):
        reading._claims(file)
    file.unlink()
    file.symlink_to(file.name)
    with pytest.raises(ValueError, match=r"claims\.json: .*symbolic links"):
        reading._claims(file)


@pytest.mark.parametrize("name", ["results.nc", "claims.json", "runs.npz"])
def test_nobody_waits_at_a_pipe(name, tmp_path):
    stored(tmp_path, example(), CLAIMS)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(ValueError, match=rf"{name}.*it is a named pipe, and no file"):
        jb.load(tmp_path / name) if name == "runs.npz" else reading.find(tmp_path)
    if name == "results.nc":
        plan = parse(PLAN)
        with (
            pytest.raises(ValueError, match=r"results\.nc: it is a named pipe, and no file; it is"),
            folder.for_results(tmp_path, plan, cells_of(plan)),
        ):
            pass
