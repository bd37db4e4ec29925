"""Sweeps as data: what a TOML table may contain, and which cells follow from it."""

import os
import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from run_settings import HALVING

import jaxbandits as jb
from jaxbandits.sweeps import check, parse, planned, read, run, sweep
from jaxbandits.sweeps.cells import _problem
from jaxbandits.sweeps.description import attributes
from jaxbandits.sweeps.store import Store
from jaxbandits.system.identity import describe
from jaxbandits.system.traces import TraceCache


def table(**changes):
    base = {
        "replications": 3,
        "instances": {"basis": {"name": "canonical", "dim": 3, "gap": 2.0}},
        "algorithms": {"SH": {"name": "sequential_halving", "budget": 30}},
    }
    return base | changes


def tables(instance=None, algorithm=None, **changes):
    """The base table with options of its two parts changed."""
    base = table(**changes)
    if instance:
        base["instances"]["basis"] |= instance
    if algorithm:
        base["algorithms"]["SH"] |= algorithm
    return base


def bounded(axes=None, **options):
    """A table with an algorithm under `at_budget`."""
    bound = {"name": "at_budget"} | options
    return table(algorithms={"LinGapE": bound}, axes=axes or {})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (tables({"name": "canonicl"}), r"basis.*unknown instance 'canonicl'.*'canonical'"),
        (tables(None, {"name": "rag"}), r"SH.*unknown algorithm 'rag'.*'rage'"),
        (tables({"gapp": 1.0}), r"basis.*option of canonical 'gapp'.*'gap'"),
        (tables(None, {"delta": 0.1}), r"SH.*option of sequential_halving 'delta'"),
        (tables(replicatons=5), r"unknown key 'replicatons'.*'replications'"),
        (tables(axes={"bugdet": [1]}), r"unknown axis 'bugdet'.*'budget'"),
        (tables(axes={"delta": [0.1]}), "unknown axis 'delta'"),
        (tables(axes={"gap": 0.5}), r"gap must be a list"),
        (tables(axes={"gap": []}), r"gap must be a list of values, got \[\]"),
        (tables(axes={"gap": [0.5, "a"]}), "all numbers, all text or all flags"),
        (tables(axes={"gap": [0.5, 0.5]}), "twice"),
        (tables(axes={"gap": [float("nan"), 0.5]}), r"gap must be without NaN, got \[nan, 0.5\]"),
        (tables(replications=0), "replications must be"),
        (tables(replications=True), "replications must be"),
        (tables(seed=-1), "seed must be"),
        (tables(title=3), "title must be text, got 3"),
        (tables(title="a\tb"), "title must be of printable characters"),
        (tables(horizon=1.5), "horizon must be"),
        (tables(instances={}), "instances"),
        (tables(algorithms={}), "algorithms"),
        (tables(instances={"x": 3}), r"instances.x. must be a table"),
        (tables(instances={"x": {"dim": 3}}), "name is missing"),
        (tables(instances={"x": {"name": "canonical", "dim": 3}}), "needs the option 'gap'"),
        (tables({"redraw": 1}), "redraw must be true or false"),
        (tables(None, {"redraw": True}), "option of sequential_halving 'redraw'"),
        (bounded(), "LinGapE.*at_budget needs the option 'algorithm'"),
        (bounded(algorithm="lingap"), r"LinGapE.*algorithm of at_budget 'lingap'.*'lingape'"),
        (bounded(algorithm="at_budget"), "LinGapE.*unknown algorithm of at_budget 'at_budget'"),
        (bounded(algorithm="lingape", dleta=0.1), r"LinGapE.*of at_budget 'dleta'.*'delta'"),
        (bounded(algorithm="lingape", axes={"per_amr": [1]}), r"axis 'per_amr'.*'per_arm'"),
    ],
)
def test_structure_is_checked(bad, message):
    with pytest.raises(ValueError, match=message) as caught:
        parse(bad)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (tables({"gap": float("nan")}), r"instances.basis.*gap must be a finite number, got nan"),
        (tables({"dim": "five"}), r"instances.basis"),
        (tables({"dim": 1}), r"instances.basis.*dim must be"),
        (tables({"gap": "wide"}), r"instances.basis"),
        (tables(None, {"budget": 1}), r"algorithms.SH.*2 stages, got 1"),
        (tables(None, {"budget": float("inf")}), r"algorithms.SH.*budget"),
        (tables(axes={"budget": [30, 1]}), r"algorithms.SH.*2 stages, got 1"),
        (bounded(algorithm="lingape"), r"algorithms.LinGapE.*budget or per_arm must be given"),
        (bounded(algorithm="lingape", per_arm=0), r"algorithms.LinGapE.*per_arm must be .*got 0"),
        (bounded(algorithm="lingape", budget=9, delta=2), r"algorithms.LinGapE.*delta must be"),
        (
            tables(algorithms={"A": {"name": "lingape", "delta": 1.5}}),
            r"algorithms.A.*delta must be.*1.5",
        ),
        (
            tables(instances={"cars": {"name": "automobile", "path": "no", "num_arms": 4}}),
            r"instances.cars.*no file",
        ),
        (
            tables(instances={"ball": {"name": "sphere", "num_arms": 4, "dim": 3, "mix": -1.0}}),
            r"instances.ball.*mix must be",
        ),
    ],
)
def test_options_are_checked_before_anything_runs(bad, message):
    with pytest.raises(ValueError, match=message):
        check(parse(bad))


def test_axis_reaches_every_constructor_with_that_option():
    plan = parse(
        tables(
            instances={
                "s": {"name": "soare", "dim": 3},
                "c": {"name": "canonical", "dim": 3, "gap": 1.0},
            },
            algorithms={"L": {"name": "lingape"}, "R": {"name": "rage"}},
            axes={"noise_var": [1.0, 2.0], "angle": [0.1, 0.2]},
        )
    )
    soare, canonical = plan.instances
    point = {"noise_var": 2.0, "angle": 0.2}
    assert soare.at(point) == {"dim": 3, **point}
    assert canonical.at(point) == {"dim": 3, "gap": 1.0, "noise_var": 2.0}
    assert all(part.at(point) == {"noise_var": 2.0} for part in plan.algorithms)
    assert len(list(plan.points())) == 4


def test_axis_overrides_the_table_and_supplies_required_options():
    plan = parse(tables(axes={"budget": [10, 20]}))
    assert plan.algorithms[0].at({"budget": 20}) == {"budget": 20}
    instances = {"c": {"name": "canonical", "dim": 3}}
    assert parse(tables(instances=instances, axes={"gap": [1.0]})).axes == {"gap": (1.0,)}


def test_path_is_relative_to_the_file(tmp_path):
    (tmp_path / "data").mkdir()
    file = tmp_path / "sweep.toml"
    file.write_text(
        'replications = 2\n[instances.cars]\nname = "automobile"\npath = "data"\nnum_arms = 4\n'
        '[algorithms.SH]\nname = "sequential_halving"\nbudget = 30\n'
    )
    assert read(file).instances[0].options["path"] == str((tmp_path / "data").resolve())


def test_an_axis_of_paths_is_relative_to_the_file_and_kept_as_it_is_written(tmp_path):
    file = tmp_path / "sweep.toml"
    text = (
        'replications = 2\n[instances.cars]\nname = "automobile"\nnum_arms = 4\n'
        '[algorithms.SH]\nname = "sequential_halving"\nbudget = 30\n'
        '[axes]\npath = ["a.csv", "/b.csv"]\n'
    )
    file.write_text(text)
    plan = read(file)
    found = [one.instance_options["path"] for one in plan.combinations()]
    assert found == [str(tmp_path.resolve() / "a.csv"), "/b.csv"]
    assert plan.axes == {"path": ("a.csv", "/b.csv")}
    assert plan == parse(tomllib.loads(text))  # the folder makes no other sweep of it
    assert attributes(plan) == attributes(parse(tomllib.loads(text), folder="/")) | {
        "title": "sweep.toml"
    }
    cars = {"cars": partial(jb.instances.automobile, num_arms=4)}
    halving = {"SH": partial(jb.sequential_halving, budget=30)}
    same = planned(cars, halving, axes={"path": ["a.csv"]}, replications=2)
    assert same.instances[0].at({"path": "a.csv"})["path"] == "a.csv"


@pytest.mark.parametrize(("name", "title"), [(b"a\xff.toml", r"a\udcff.toml"), (b"a\n", r"a\n")])
def test_the_title_is_printable_whatever_the_name_of_the_file(name, title, tmp_path):
    file = tmp_path / os.fsdecode(name)
    try:
        file.write_text(
            'replications = 3\n[instances.a]\nname = "soare"\ndim = 3\n'
            '[algorithms.b]\nname = "lingape"\n'
        )
    except OSError:
        pytest.skip("this file system has no such names")
    assert read(file).title == title


def test_the_title_is_that_of_the_file_or_its_name(tmp_path):
    text = 'replications = 3\n[instances.a]\nname = "soare"\ndim = 3\n'
    text += '[algorithms.b]\nname = "lingape"\n'
    file = tmp_path / "angles.toml"
    file.write_text(text)
    assert read(file).title == "angles.toml"
    file.write_text('title = "Small angles"\n' + text)
    assert read(file).title == "Small angles"
    assert read(file) == parse(tomllib.loads(text))  # it is the same sweep


def test_sweep_equals_simulate():
    plan = parse(tables(axes={"gap": [2.0, 0.5]}, seed=7, replications=5))
    dataset = run(plan)
    algorithm = partial(jb.sequential_halving, budget=30)
    for gap in (2.0, 0.5):
        alone = jb.simulate(jb.instances.canonical(3, gap=gap), algorithm, replications=5, seed=7)
        cell = dataset.sel(instance="basis", algorithm="SH", gap=gap)
        np.testing.assert_array_equal(cell.correct, alone.correct)
        np.testing.assert_array_equal(cell.arm_pulls, alone.arm_pulls)
        assert float(cell.error_rate) == alone.summary()["error_rate"]


def test_python_and_toml_name_the_same_cells(tmp_path):
    from_python = sweep(
        {"basis": partial(jb.instances.canonical, dim=3)},
        {"SH": partial(jb.sequential_halving, budget=30)},
        axes={"gap": [2.0]},
        replications=3,
        out=tmp_path,
        progress=False,
    )
    from_toml = run(parse(tables(axes={"gap": [2.0]})), out=tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 1
    assert from_python.equals(from_toml)


def test_an_algorithm_at_a_budget_is_named_in_its_table(tmp_path):
    """Axes set its own options and those of `at_budget`; the name of a cell depends on both."""
    axes = {"delta": [0.1, 0.5], "per_arm": [5, 8]}
    plan = parse(bounded(algorithm="lingape", epsilon=0.1, axes=axes))
    (part,) = plan.algorithms
    assert part.options == {"epsilon": 0.1}
    assert part.at({"delta": 0.5, "per_arm": 8}) == {"epsilon": 0.1, "delta": 0.5, "per_arm": 8}
    dataset = run(plan, out=tmp_path)
    assert (dataset.pulls.sel(per_arm=5) == 15).all()
    assert (dataset.pulls.sel(per_arm=8) == 24).all()
    cells = {file.name for file in (tmp_path / "cells").iterdir()}
    assert len(cells) == 4
    from_python = sweep(
        {"basis": partial(jb.instances.canonical, dim=3, gap=2.0)},
        {"LinGapE": jb.at_budget(partial(jb.lingape, epsilon=0.1))},
        axes=axes,
        replications=3,
        out=tmp_path,
        progress=False,
    )
    assert from_python.equals(dataset)
    assert {file.name for file in (tmp_path / "cells").iterdir()} == cells


def random_table(**options):
    ball = {"name": "sphere", "num_arms": 6, "dim": 3, "mix": 0.5}
    return tables(instances={"ball": ball | options}, replications=6)


def built(plan):
    (instance,) = plan.instances
    return _problem(plan, instance, instance.at({}), TraceCache())[0]


def test_redraw_false_fixes_a_random_instance_by_the_seed():
    one = built(parse(random_table(redraw=False)))
    again = built(parse(random_table(redraw=False)))
    other = built(parse(random_table(redraw=False) | {"seed": 1}))
    assert isinstance(one, jb.Instance)
    np.testing.assert_array_equal(one.arms, again.arms)
    assert (one.arms != other.arms).any()


def test_random_instances_are_redrawn_by_default():
    assert not isinstance(built(parse(random_table())), jb.Instance)


def test_pulls_of_arms_are_padded_for_smaller_instances():
    plan = parse(tables(axes={"dim": [3, 5]}))
    dataset = run(plan).squeeze()
    assert dataset.num_arms.values.tolist() == [3, 5]
    assert (dataset.arm_pulls.sum("arm") == 30).all()
    assert (dataset.arm_pulls.sel(dim=3).isel(arm=slice(3, 5)) == 0).all()


def test_a_sweep_of_an_inner_function_is_played_but_not_stored(tmp_path):
    def local(arms):
        return jb.sequential_halving(arms, budget=30)

    plan = {"basis": jb.instances.canonical(3, gap=1.0)}, {"local": local}
    assert sweep(*plan, replications=2, progress=False).sizes["replication"] == 2
    with pytest.raises(ValueError, match="inner function"):
        sweep(*plan, replications=2, progress=False, out=tmp_path)


def test_a_constructor_without_a_module_is_played():
    made = {"halving": jb.sequential_halving}
    exec("def mine(arms):\n    return halving(arms, budget=30)", made)
    assert made["mine"].__module__ is None
    basis = jb.instances.canonical(3, gap=1.0)
    found = jb.compare({"mine": made["mine"]}, basis, replications=2, bounds=False)
    assert found.table.pulls_mean.tolist() == [30.0]
    options = found.dataset.attrs["options"]
    assert '"constructor": "__main__.mine"' in options


def test_names_that_are_no_text_and_no_number_are_refused():
    basis = partial(jb.instances.canonical, dim=3, gap=1.0)
    halving = partial(jb.sequential_halving, budget=30)
    with pytest.raises(ValueError, match=r"names of instances must be .* got \('a', 1\)"):
        sweep({("a", 1): basis}, {"SH": halving}, replications=2)
    with pytest.raises(ValueError, match=r"names of algorithms must be .* got None"):
        sweep({"a": basis}, {None: halving}, replications=2)
    found = sweep({1: basis}, {30: halving}, replications=2, progress=False)
    assert found.algorithm.values.tolist() == [30]


def test_describe_distinguishes_instances():
    one, other = (jb.instances.canonical(3, gap=gap) for gap in (1.0, 2.0))
    assert describe(one) == describe(jb.instances.canonical(3, gap=1.0)) != describe(other)


def test_other_data_is_another_cell(tmp_path):
    stored = Store(tmp_path)
    assert stored.path({"data": "a"}) != stored.path({"data": "b"})


@pytest.mark.parametrize("values", [0.5, "ab", None])
def test_an_axis_from_python_is_a_list(values):
    basis, halving = (
        partial(jb.instances.canonical, dim=3),
        partial(jb.sequential_halving, budget=9),
    )
    with pytest.raises(ValueError, match="gap must be a list of values"):
        sweep({"a": basis}, {"b": halving}, replications=1, axes={"gap": values})
    found = sweep(
        {"a": basis}, {"b": halving}, replications=1, axes={"gap": np.ones(1)}, progress=False
    )
    assert found.gap.values.tolist() == [1.0]


def test_the_demo_is_a_valid_sweep():
    file = Path(jb.__file__).parent / "cli" / "demo.toml"
    plan = parse(tomllib.loads(file.read_text()))
    check(plan)
    assert len(plan.algorithms) >= 2
    assert plan.axes


def test_an_axis_may_have_the_name_of_a_column():
    sphere = {"sphere": partial(jb.instances.sphere, dim=2)}
    halving = {"halving": partial(jb.sequential_halving, budget=30)}
    sizes = {"axes": {"num_arms": [3, 4]}, "replications": 4, "progress": False}
    dataset = jb.sweep(sphere, halving, **sizes)
    assert dataset.num_arms.values.tolist() == [3, 4]
    assert dataset.pulls_mean.sel(num_arms=4).shape == (1, 1)


def test_an_axis_with_the_name_of_anything_else_in_the_results_is_refused():
    def mine(arms, *, why="a", seconds=1.0):
        raise AssertionError("it is not called")

    basis = {"basis": jb.instances.canonical(3, gap=1.0)}
    for axis in ({"why": ["a"]}, {"seconds": [1.0]}):
        with pytest.raises(ValueError, match=r"\[axes\] (why|seconds) .* rename .* error_rate,"):
            sweep(basis, {"mine": mine}, axes=axis, replications=2)


def oracles(**algorithms):
    """A sweep of XY-oracle on Soare's instance, whose best arm is the first."""
    return {
        "replications": 4,
        "instances": {"soare": {"name": "soare", "dim": 2, "angle": 0.5}},
        "algorithms": {key: {"name": "xy_oracle"} | table for key, table in algorithms.items()},
    }


@pytest.mark.slow
def test_an_oracle_knows_theta_of_the_instance_or_that_of_the_table():
    table = oracles(told={}, same={"theta": [1.0, 0.0]}, other={"theta": [0.0, 1.0]})
    pulls = run(parse(table)).pulls
    np.testing.assert_array_equal(pulls.sel(algorithm="told"), pulls.sel(algorithm="same"))
    assert (pulls.sel(algorithm="told") != pulls.sel(algorithm="other")).any()


def test_theta_of_an_oracle_must_have_the_shape_of_the_instance():
    assert [part.label for part in parse(oracles(told={})).algorithms] == ["told"]
    with pytest.raises(ValueError, match=r"theta must have shape \(2,\), got \(1,\)"):
        run(parse(oracles(wrong={"theta": [1.0]})))


@pytest.mark.parametrize("path", [3, 1.5, True, ["x"]])
def test_a_path_that_is_none_is_named(path):
    table = {"name": "automobile", "num_arms": 5, "path": path}
    table = tomllib.loads(HALVING) | {"replications": 4, "instances": {"cars": table}}
    plan = parse(table)
    with pytest.raises(ValueError, match=r"^\[instances\.cars\] path must be the name of a file"):
        check(plan)
