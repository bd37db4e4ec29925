"""Every key of a sweep file has an effect, and keys without effect are refused."""

import copy
import datetime
import functools
import json

import numpy as np
import pytest
from test_results import runs

import jaxbandits as jb
from jaxbandits.sweeps import parse, run, spec
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.until import RULES, enough

BASE = {
    "replications": 104,
    "instances": {"basis": {"name": "canonical", "dim": 3, "gap": 0.2}},
    "algorithms": {"SH": {"name": "sequential_halving", "budget": 30}},
}
REGRET = {
    "replications": 3,
    "horizon": 400,
    "instances": BASE["instances"],
    "algorithms": {"even": {"name": "uniform"}},
}
DATE = datetime.date(2026, 1, 2)


def changed(table, path, value):
    """The table with another value at a path such as `instances.basis.dim`."""
    table = copy.deepcopy(table)
    *folders, last = path.split(".")
    inner = table
    for name in folders:
        inner = inner.setdefault(name, {})
    inner[last] = value
    return table


@functools.cache
def _results(text):
    dataset = run(parse(json.loads(text))).drop_vars(["seconds", "compile_seconds"])
    return dataset.drop_attrs()


def results(table):
    """Results of a sweep, without times and attributes."""
    return _results(json.dumps(table, sort_keys=True))


def differ(table, path, value):
    return not results(table).identical(results(changed(table, path, value)))


CHANGES = {
    "replications": (BASE, 103),
    "seed": (BASE, 1),
    "max_pulls": (BASE, 10),
    "instances": (BASE, {"basis": {"name": "canonical", "dim": 3, "gap": 5.0}}),
    "algorithms": (BASE, {"SH": {"name": "sequential_halving", "budget": 40}}),
    "axes": (BASE, {"gap": [0.4]}),
    "until": (BASE, {"error_width": 0.9}),
    "horizon": (REGRET, 300),
    "record": (REGRET, "log"),
}


@pytest.mark.parametrize("key", sorted({*spec.TOP_LEVEL} - {"title"}))
def test_each_top_level_key_changes_the_results(key):
    table, value = CHANGES[key]
    assert differ(table, key, value)


def test_the_recorded_rounds_are_those_of_the_file():
    rounds = {
        str(record): results(changed(REGRET, "record", record))["round"].values
        for record in ("log", "even", "mixed", [7, 400])
    }
    assert rounds["[7, 400]"].tolist() == [7, 400]
    assert rounds["even"][:3].tolist() == [4, 8, 12]
    assert rounds["log"][:3].tolist() == [1, 2, 3]
    assert 80 < len(rounds["mixed"]) < 110
    assert cells_of(parse(changed(REGRET, "record", "log")))[0].spec["record"] == "log"


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_of_until_ends_a_cell(rule):
    some = runs(regret=True)
    assert enough(some, {rule: 1e9}, 400)
    assert not enough(some, {rule: 1e-9}, 400)


BALL = changed(BASE, "instances.basis", {"name": "sphere", "num_arms": 5, "dim": 2, "mix": 0.5})
BOUND = {"name": "at_budget", "algorithm": "lingape", "budget": 30}
PART_KEYS = {
    "instances.basis.name": (BASE, "soare", {"instances.basis": {"name": "soare", "dim": 3}}),
    "instances.basis.dim": (BASE, 4, {}),
    "instances.basis.redraw": (BALL, False, {}),
    "instances.basis.only": (changed(BASE, "axes.dim", [3, 4]), {"dim": [4]}, {}),
    "algorithms.SH.name": (BASE, "gse", {}),
    "algorithms.SH.budget": (BASE, 31, {}),
    "algorithms.SH.only": (changed(BASE, "axes.dim", [3, 4]), {"dim": [4]}, {}),
    "algorithms.SH.algorithm": (changed(BASE, "algorithms.SH", BOUND), "lin_ucb", {}),
}


@pytest.mark.parametrize("path", PART_KEYS)
def test_each_key_of_a_table_changes_what_is_played(path):
    table, value, more = PART_KEYS[path]
    other = changed(table, path, value)
    for where, part in more.items():
        other = changed(other, where, part)
    one, two = (cells_of(parse(x)) for x in (table, other))
    described = [
        [cell and (cell.spec, str(cell.prepared)) for cell in cells] for cells in (one, two)
    ]
    assert described[0] != described[1]


def test_a_fixed_instance_is_the_same_in_every_replication():
    """Without `redraw` a cell holds an instance instead of a function that draws one."""
    fixed, drawn = (
        cells_of(parse(changed(BALL, "instances.basis.redraw", x))) for x in (False, True)
    )
    assert isinstance(fixed[0].problem, jb.Instance)
    assert callable(drawn[0].problem)


@pytest.mark.parametrize(
    ("table", "path", "value", "message"),
    [
        (BASE, "record", "log", "record is for sweeps with a horizon"),
        (BASE, "record", "mixed", "record is for sweeps with a horizon"),
        (REGRET, "record", "logs", r"record must be one of .*'log'.*got 'logs'"),
        (REGRET, "record", [0, 5], "record must be whole numbers that increase, from 1"),
        (REGRET, "max_pulls", 10, "max_pulls is for sweeps without a horizon"),
        (BASE, "recrod", "log", "unknown key 'recrod'; did you mean 'record'"),
        (BASE, "instance", {}, "unknown key 'instance'; did you mean 'instances'"),
        (BASE, "instances.basis.redraw", False, r"basis\] redraw is for random instances"),
        (BALL, "instances.basis.redrwa", False, r"basis\].*'redrwa'; did you mean 'redraw'"),
        (BASE, "algorithms.SH.olny", {}, r"SH\] .*'olny'; did you mean 'only'"),
        (BASE, "instances.basis", {"nmae": "soare"}, r"name is missing; is it meant by 'nmae'\?"),
        (BASE, "algorithms.SH", {"name": "at_budget", "algoritm": "gse"}, "meant by 'algoritm'"),
        (BASE, "instances.basis.name", ["soare"], r"unknown instance \['soare'\]"),
        (BASE, "algorithms.SH.name", {"a": 1}, r"unknown algorithm {'a': 1}"),
        (BASE, "algorithms.SH", BOUND | {"algorithm": ["gse"]}, r"algorithm of at_budget \['gse'"),
        (BASE, "instances.basis.gap", DATE, r"basis\] gap must be text, numbers or lists, got "),
        (BASE, "instances.basis.gap", {"a": 1}, "gap must be text, numbers or lists, got {"),
        (BASE, "axes.gap", [DATE], "gap must be all numbers, .* or all flags, got .datetime.date"),
        (BASE, "instances", {"a\x00b": {"name": "soare", "dim": 2}}, "printable.*got 'a.x00b'"),
        (BASE, "algorithms", {"a\nb": {"name": "lingape"}}, r"printable.*got 'a\\nb'"),
        (BASE, "axes.budget", range(200_000), "200,000 cells, and a sweep at most 100,000"),
    ],
)  # fmt: skip
def test_keys_and_values_without_effect_are_refused(table, path, value, message):
    value = list(value) if isinstance(value, range) else value
    with pytest.raises(ValueError, match=message):
        parse(changed(table, path, value))


def test_an_axis_of_text_is_for_options_that_take_names():
    table = changed(BASE, "algorithms.SH", {"name": "lingape"})
    names = cells_of(parse(changed(table, "axes.selection", ["greedy", "ratio"])))
    assert [cell.point["selection"] for cell in names] == ["greedy", "ratio"]
    for axis, message in (
        ({"selection": ["greedy", "x"]}, r"SH\] selection must be one of 'greedy', .*got 'x'"),
        ({"delta": ["small"]}, r"SH\] delta must be a number in \(0, 1\), .*got 'small'"),
        ({"gap": ["wide"]}, r"basis\] gap must be a finite number, got 'wide'"),
        ({"dim": [2**40]}, r"basis\] dim must be at most 2147483647, got 1099511627776"),
        ({"dim": [2**70]}, r"axes\] dim must have whole numbers below 2\*\*63, got 11805916207174"),
    ):
        with pytest.raises(ValueError, match=message):
            cells_of(parse(table | {"axes": axis}))


def test_checking_many_cells_is_announced(capsys, monkeypatch):
    monkeypatch.setattr("jaxbandits.sweeps.cells.MANY", 50)
    from jaxbandits.sweeps import check

    plan = parse(changed(BASE, "axes.gap", np.linspace(0.1, 1, 60).tolist()))
    assert len(check(plan, progress=True)) == 60
    assert capsys.readouterr().err == "checking 60 cells\n"
    check(parse(BASE), progress=True)
    assert capsys.readouterr().err == ""
