"""Revisions: numbers of an earlier revision are named, and not mixed with new ones."""

from functools import partial

import pytest

import jaxbandits as jb
from jaxbandits.instances.environments.finite import LAWS
from jaxbandits.instances.environments.stressed import delayed, drifted
from jaxbandits.sweeps import until
from jaxbandits.sweeps.cells import cells_of
from jaxbandits.sweeps.spec import planned
from jaxbandits.system.revisions import revised, revisions_of

LINES = ("sizes in units of the noise: others went wrong", "ties are drawn")
TABLE = jb.instances.linear([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
HALVING = partial(jb.sequential_halving, budget=12)


def cell(instance=TABLE, algorithm=HALVING, **more):
    return cells_of(planned({"i": instance}, {"a": algorithm}, **({"replications": 4} | more)))[0]


def test_without_a_revision_the_key_is_the_one_of_before():
    assert "revisions" not in cell().spec
    assert cell().revisions == {}


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
    "a rule": (
        until.RULES["error_width"],
        {"until": {"error_width": 0.1}},
        "until error_width",
    ),
    "all rules": (until.enough, {"until": {"error_width": 0.1}}, "until"),
}


@pytest.fixture
def revise(monkeypatch):
    """A function that gives something revisions until the test ends."""
    return lambda thing, *lines: monkeypatch.setattr(thing, "revisions", lines, raising=False)


@pytest.mark.parametrize("case", CHANGED)
def test_each_part_of_a_cell_counts_under_its_name(case, revise):
    thing, parts, name = CHANGED[case]
    before = cell(**parts)
    assert before.revisions == {}
    for number in (1, 2):
        revise(thing, *LINES[:number])
        after = cell(**parts)
        ((found, lines),) = after.revisions.items()
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
