"""Every experiment at once, and experiments in shards."""

import dataclasses
import json
from functools import partial

import pytest
from test_cli import call, refused

import jaxbandits as jb
from jaxbandits import reproduce
from jaxbandits.reproduce.claims import checked, compare, few_errors, pulls

SH = partial(jb.sequential_halving, budget=30)
TINY = reproduce.Experiment(
    title="Three arms",
    instances={"basis": partial(jb.instances.canonical, dim=3)},
    algorithms={"SH": SH, "Many": partial(jb.sequential_halving, budget=60)},
    axes={"gap": (1.0, 2.0)},
    replications=6,
    quick={"algorithms": ("SH",), "axes": {"gap": (2.0,)}, "replications": 4},
    claims=checked(few_errors(), compare("SH draws less.", pulls(), "SH", "Many", most=1.0)),
    quantities=("pulls",),
)
BROKEN = dataclasses.replace(TINY, instances={"basis": partial(jb.instances.canonical, dim=0)})


@pytest.fixture
def three(monkeypatch):
    """Three experiments, of which the second is faulty."""
    others = dataclasses.replace(TINY, title="Again")
    known = {"a/one": TINY, "a/two": BROKEN, "b": others}
    monkeypatch.setattr(reproduce, "EXPERIMENTS", known)


def test_all_are_run_and_a_failure_is_named_in_the_end(three, tmp_path):
    done = call("reproduce", "--all", "--quick", "--out", tmp_path)
    assert done.exit_code == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: 1 of the experiments failed: a/two: [instances.basis] dim must")
    for name in ("a/one", "b"):
        assert {"claims.json", "figure.png", "results.nc"} <= names_in(tmp_path / name)
    assert "not played (Many): SH draws less." in done.stdout
    again = call("reproduce", "--all", "--quick", "--out", tmp_path)
    assert again.stderr.count("stored before") == 2


def test_an_unexpected_error_is_named_by_its_type(monkeypatch, tmp_path):
    def fails(*_, **__):
        raise KeyError("gap")

    monkeypatch.setattr(reproduce, "EXPERIMENTS", {"a": TINY})
    monkeypatch.setattr(reproduce, "reproduce", fails)
    done = call("reproduce", "--all", "--out", tmp_path)
    assert done.exit_code == 2
    failed = "1 of the experiments failed: a: KeyError: 'gap' (test_reproduce_all.py, line "
    assert failed in done.stderr.splitlines()[-1]


def names_in(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.slow
def test_shards_of_an_experiment_and_of_all(three, tmp_path, monkeypatch):
    for what, folder in ((["b"], "."), (["--all"], "b")):
        out = tmp_path / what[0]
        first = call("reproduce", *what, "--out", out, "--shard", "1/2")
        assert "does not hold all cells yet" in first.stdout
        assert not (out / folder / "claims.json").exists()
        monkeypatch.setitem(reproduce.EXPERIMENTS, "a/two", TINY)
        second = call("reproduce", *what, "--out", out, "--shard", "2/2")
        assert second.exit_code == 0, second.output
        claims = json.loads((out / folder / "claims.json").read_text())
        assert claims[1]["holds"] is True
        assert (out / folder / "figure.png").exists()


def test_a_name_or_all_is_needed(three, tmp_path):
    for what in ([], ["b", "--all"]):
        refused(call("reproduce", *what, "--out", tmp_path), "NAME of an experiment, or --all")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--shard", "3/2"], "shard must be i/n"),
        (["--engine", "steam"], "engine must be one of"),
        (["--replications", "0"], "replications must be"),
    ],
)
def test_what_no_experiment_can_use_is_refused_once(three, tmp_path, option, words):
    done = call("reproduce", "--all", "--out", tmp_path, *option)
    refused(done, words)
    assert "experiments failed" not in done.stderr


@pytest.mark.parametrize("name", ["../out", "a/../../b", "/tmp/x", "a//b", r"..\x"])
def test_names_of_experiments_do_not_lead_out_of_the_folder(name, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "EXPERIMENTS", {name: TINY})
    ((_, _, error),) = reproduce.reproduce_all(tmp_path / "out")
    assert str(error).endswith("cannot be the name of a folder")
    assert not names_in(tmp_path)
