"""Revisions: numbers of an earlier revision are named, and not mixed with new ones."""

from functools import partial

import pytest
from test_cli import call, refused

import jaxbandits as jb
from jaxbandits import load
from jaxbandits.engine import api
from jaxbandits.instances.environments.finite import LAWS
from jaxbandits.instances.environments.stressed import delayed, drifted
from jaxbandits.live import file
from jaxbandits.sweeps import description, until
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.spec import planned
from jaxbandits.sweeps.store import Store
from jaxbandits.system.revisions import revised, revisions_of

LINES = ("sizes in units of the noise: others went wrong", "ties are drawn")
TABLE = jb.instances.linear([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
HALVING = partial(jb.sequential_halving, budget=12)


def cell(instance=TABLE, algorithm=HALVING, **more):
    return cells_of(planned({"i": instance}, {"a": algorithm}, **({"replications": 4} | more)))[0]


def test_without_a_revision_the_key_is_the_one_of_before():
    assert "revisions" not in cell().spec
    assert cell().revised == {}


# By case, what has changed, what a cell is made of, and the name under which it counts.
CHANGED = {
    "an algorithm": (jb.sequential_halving, {}, "jaxbandits.algorithms.sequential_halving.*"),
    "one at a budget": (
        jb.lingape,
        {"algorithm": partial(jb.at_budget(jb.lingape, 12), delta=0.1)},
        "jaxbandits.algorithms.lingape.*",
    ),
    "an instance": (
        jb.instances.soare,
        {"instance": partial(jb.instances.soare, dim=2)},
        "jaxbandits.instances.named.soare",
    ),
    "a stressed instance": (
        jb.instances.soare,
        {"instance": jb.instances.stressed(partial(jb.instances.soare, dim=2), df=3.0)},
        "jaxbandits.instances.named.soare",
    ),
    "a law": (LAWS["normal"], {}, "normal rewards"),
    "the law of a drawn instance": (
        LAWS["normal"],
        {"instance": partial(jb.instances.sphere, num_arms=3, dim=2)},
        "normal rewards",
    ),
    "a law under stress": (
        LAWS["student"],
        {"instance": jb.instances.stressed(TABLE, df=3.0)},
        "student rewards",
    ),
    "a drift": (drifted, {"instance": jb.instances.stressed(TABLE, drift=0.1)}, "drift"),
    "a delay": (delayed, {"instance": jb.instances.stressed(TABLE, delay=2)}, "delay"),
    "a rule": (until.RULES["pulls_se"], {"until": {"pulls_se": 0.1}}, "until pulls_se"),
    "all rules": (until.enough, {"until": {"pulls_se": 0.1}}, "until"),
}


@pytest.fixture
def revise(monkeypatch):
    """A function that gives something revisions until the test ends."""
    return lambda thing, *lines: monkeypatch.setattr(thing, "revisions", lines, raising=False)


@pytest.mark.parametrize("case", CHANGED)
def test_each_part_of_a_cell_counts_under_its_name(case, revise):
    thing, parts, name = CHANGED[case]
    before = cell(**parts)
    assert before.revised == {}
    for number in (1, 2):
        revise(thing, *LINES[:number])
        after = cell(**parts)
        ((found, lines),) = after.revised.items()
        assert found.startswith(name.rstrip("*"))
        assert lines == LINES[:number]
        assert after.spec == before.spec | {"revisions": {found: number}}


def test_a_wrapper_counts_beside_what_is_in_it(revise):
    at_budget = jb.at_budget(jb.lingape, 12)
    revise(type(at_budget.func), "order of ties")
    revise(jb.lingape, *LINES)
    assert revisions_of([at_budget, {"delta": 0.1}]) == {
        "at_budget": ("order of ties",),
        "jaxbandits.algorithms.lingape.lingape": LINES,
    }


def test_a_constructor_of_a_user_may_have_revisions():
    @revised("halved")
    def mine(arms): ...

    assert [*revisions_of(partial(mine, each=2)).values()] == [("halved",)]


def test_an_attribute_of_a_user_that_is_no_tuple_of_lines_is_no_revision():
    def mine(arms): ...

    mine.revisions = 3
    assert [*revisions_of(mine).values()] == [()]


def everything_revised():
    """All of the package that may have revisions, by name."""
    own = {name: getattr(jb, name) for name in jb.algorithms.__all__}
    instances = {name: getattr(jb.instances, name) for name in jb.instances.__all__}
    wrappers = {"at_budget": jb.at_budget(jb.lingape, 9).func}
    rest = {"drift": drifted, "delay": delayed, "until": until.enough}
    return own | instances | wrappers | LAWS | until.RULES | rest


@pytest.mark.parametrize("name", everything_revised())
def test_revisions_are_lines(name):
    lines = getattr(everything_revised()[name], "revisions", ())
    assert isinstance(lines, tuple)
    for line in lines:
        assert len(line) > 20, line
        assert "\n" not in line


ARMS = [[1.0, 0.0], [0.0, 1.0]]
BUILD = partial(jb.sequential_halving, budget=12)


@pytest.fixture
def live_file(tmp_path, monkeypatch):
    """A live run that another version of the package, but no other revision, has written."""
    with monkeypatch.context() as patch:
        patch.setattr(file, "VERSION", "9.9")
        with jb.Live(BUILD, ARMS, path=tmp_path / "run.npz") as run:
            run.tell(1.0, arm=0)
    return tmp_path / "run.npz"


def test_another_version_continues_a_sweep(tmp_path, monkeypatch):
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    file.write_text(TOML.format(replications=4))
    assert call("run", file, "--out", out).exit_code == 0
    file.write_text(TOML.format(replications=6))
    for module in (api, description):
        monkeypatch.setattr(module, "VERSION", "9.9")
    done = call("run", file, "--out", out)
    assert done.exit_code == 0, done.output
    runs = [load(path) for path in (out / "cells").iterdir()]
    assert sorted(map(len, runs)) == [4, 6]  # the second continues the first


def test_another_version_continues_a_live_run(live_file):
    with jb.Live(BUILD, ARMS, path=live_file) as run:
        assert run.pulls == 1


def test_a_live_run_of_an_earlier_revision_is_refused_with_the_reason(live_file, revise):
    revise(jb.sequential_halving, *LINES)
    contents = live_file.read_bytes()
    message = (
        r"run\.npz cannot be continued, sequential_halving has changed: sizes in units of the "
        r"noise: others went wrong; ties are drawn; jaxbandits 9\.9 goes on with it, or begin "
        "another file$"
    )
    with pytest.raises(ValueError, match=message):
        jb.Live(BUILD, ARMS, path=live_file)
    assert live_file.read_bytes() == contents


def test_a_live_run_of_a_later_revision_is_refused(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(jb.sequential_halving, "revisions", LINES)
        jb.Live(BUILD, ARMS, path=tmp_path / "run.npz").close()
        with jb.Live(BUILD, ARMS, path=tmp_path / "run.npz") as run:
            assert run.pulls == 0
    with pytest.raises(ValueError, match="sequential_halving is of a later revision, 2; "):
        jb.Live(BUILD, ARMS, path=tmp_path / "run.npz")


def test_the_wording_of_a_line_is_no_part_of_the_key(tmp_path, revise):
    for line in ("ties are drawn at random", "ties are drawn"):
        revise(jb.sequential_halving, line)
        with jb.Live(BUILD, ARMS, path=tmp_path / "run.npz") as run:
            assert run.pulls == 0


def stored_sweep(out, **more):
    settings = {"replications": 4, "progress": False, "out": out} | more
    return jb.sweep({"i": TABLE}, {"a": HALVING}, **settings)


EARLIER = (
    r"out: 1 stored cell is of an earlier revision and played anew "
    r"\(sequential_halving has changed: {}\); the old files stay$"
)


def test_cells_of_an_earlier_revision_are_named_and_played_anew(tmp_path, revise):
    before = stored_sweep(tmp_path)
    (old,) = files = {*(tmp_path / "cells").iterdir()}
    contents = old.read_bytes()
    for number in (1, 2):
        revise(jb.sequential_halving, *LINES[:number])
        rest = "; ".join(LINES[number - 1 : number])
        with pytest.warns(RuntimeWarning, match=EARLIER.format(rest)):
            found = stored_sweep(tmp_path)
        assert len({*(tmp_path / "cells").iterdir()}) == len(files) + number
        assert (found.pulls == before.pulls).all()
        stored_sweep(tmp_path)  # which is found, and says nothing
    assert old.read_bytes() == contents


def test_parts_of_an_earlier_revision_are_not_mixed_with_new_ones(tmp_path, revise):
    store, one = Store(tmp_path), cell()
    runs = jb.simulate(TABLE, HALVING, replications=2)
    store.add(one.spec, runs)
    revise(jb.sequential_halving, *LINES)
    assert store.begun(cell().spec) is None
    with pytest.warns(RuntimeWarning, match=EARLIER.format("; ".join(LINES))):
        stored_sweep(tmp_path)
    revise(jb.sequential_halving)
    assert len(store.begun(one.spec)) == 2


TOML = """
replications = {replications}
[instances.i]
name = "canonical"
dim = 2
gap = 1.0
[algorithms.a]
name = "sequential_halving"
budget = 12
"""


def test_results_of_an_earlier_revision_are_not_replaced_without_a_word(tmp_path, revise):
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    file.write_text(TOML.format(replications=4))
    assert call("run", file, "--out", out).exit_code == 0
    revise(jb.sequential_halving, *LINES)
    refused(
        call("run", file, "--out", out), "results.nc", f"sequential_halving has changed: {LINES[0]}"
    )
    file.write_text(TOML.format(replications=6))
    assert call("run", file, "--out", out, "--force").exit_code == 0
    # Another algorithm whose numbers have changed does not make results those of another sweep.
    revise(jb.lingape, *LINES)
    file.write_text(TOML.format(replications=6) + "[algorithms.b]\nname = 'lingape'\ndelta = 0.1\n")
    assert call("run", file, "--out", out).exit_code == 0
