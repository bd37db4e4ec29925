"""A part of the package that somebody has replaced: seen, played, and told from the right one."""

import functools
import sys

import numpy as np
import pytest
from run_settings import child

import jaxbandits as jb
from jaxbandits import replaced
from jaxbandits.algorithms.confidence import xy_static
from jaxbandits.engine import episode
from jaxbandits.instances.instance import Instance
from jaxbandits.kernels.allocate import pair_shares
from jaxbandits.kernels.confidence import radius
from jaxbandits.sweeps import description

RIGHT = radius.static
SOARE = jb.instances.soare(2, angle=0.5)


def double(*args):
    return 2 * RIGHT(*args)


def play(**options):
    return jb.simulate(SOARE, jb.xy_static, replications=4, engine="xla", **options)


def test_what_is_replaced_is_named_with_what_is_there_now(monkeypatch):
    whole = replaced.state()
    assert replaced.look() == {}
    places = {
        (radius, "static"): double,  # a function of a user in its place
        (radius, "soare"): radius.least_squares,  # another one of the package
        (radius, "REFINEMENTS"): 13,
        (xy_static, "radius"): None,  # what a module has imported
        (Instance, "__repr__"): repr,  # of a class
        (episode, "BLOCK"): 16,
    }
    for (holder, name), value in places.items():
        with monkeypatch.context() as patch:
            patch.setattr(holder, name, value)
            owner = getattr(holder, "__qualname__", "")
            module = getattr(holder, "__module__", holder.__name__)
            assert replaced.look() == {".".join(filter(None, [module, owner, name])): value}
            assert replaced.state() != whole
        assert replaced.look() == {}
        assert replaced.state() == whole
    with monkeypatch.context() as patch:
        patch.delattr(radius, "REFINEMENTS")
        assert replaced.look() == {f"{radius.__name__}.REFINEMENTS": replaced.MISSING}
    with monkeypatch.context() as patch:
        patch.setitem(radius.THRESHOLDS, "pairwise", double)
        assert replaced.look() == {f"{radius.__name__}.THRESHOLDS.pairwise": double}
    for part, value in (("__code__", double.__code__), ("__defaults__", (1,))):
        with monkeypatch.context() as patch:
            patch.setattr(RIGHT, part, value)
            assert replaced.look() == {f"{radius.__name__}.static": value}
    assert replaced.look() == {}


def test_the_same_replacement_is_the_same_state(monkeypatch):
    def states():
        for value in (double, 3):
            with monkeypatch.context() as patch:
                patch.setattr(radius, "static", value)
                replaced.look()
                yield replaced.state()

    first = [*states()]
    assert len({*first, 0}) == 3
    assert [*states()] == first


RELOADED = """
import importlib
import jaxbandits as jb
from jaxbandits import replaced
from jaxbandits.kernels.confidence import radius
assert (replaced.look(), replaced.state()) == ({}, 0)
importlib.reload(radius)
assert replaced.look() == {}
new = replaced.state()
assert new != 0
right, radius.static = radius.static, None
assert [*replaced.look()] == ["jaxbandits.kernels.confidence.radius.static"]
radius.static = right
assert replaced.look() == {}
assert replaced.state() == new
"""


def test_what_was_traced_before_a_reload_is_not_taken():
    child(RELOADED)


def test_all_that_decides_numbers_is_noted():
    """Whatever a module is called, unless it is said to decide no number."""
    assert all([jb.design.g_optimal_fw, jb.theory.pull_lower_bound, jb.fit_glm])  # imports them
    imported = [name for name in sys.modules if name.startswith("jaxbandits.")]
    wanted = {name for name in imported if replaced._counts(name.split(".")[1:])}
    assert wanted - {*replaced._noted} == {"jaxbandits.replaced"}  # which notes the others
    rooms = {name.split(".")[1] for name in replaced._noted}
    assert {"algorithms", "design", "instances", "kernels", "theory", "core", "glm"} <= rooms


def test_what_is_replaced_is_played(monkeypatch):
    right, again = play(), play()
    monkeypatch.setattr(radius, "static", double)
    wider = play()
    monkeypatch.setattr(radius, "static", RIGHT)
    assert (wider.pulls > right.pulls).all()
    for runs in (again, play()):
        np.testing.assert_array_equal(runs.pulls, right.pulls)


def test_so_it_is_under_a_kernel_of_a_user(monkeypatch):
    """Which takes part in a trace of the package's own functions."""

    def mine(arms):
        return jb.xy_static(arms, delta=0.05)

    def pulls():
        return jb.simulate(SOARE, mine, replications=4, engine="xla").pulls

    right = pulls()
    monkeypatch.setattr(radius, "static", double)
    assert (pulls() > right).all()


def test_a_table_of_the_host_is_computed_anew(monkeypatch):
    values = {"selection": "ratio", "ratios": None, "arms": np.eye(3)}
    right = pair_shares.completed(values)["ratios"]
    monkeypatch.setattr(pair_shares, "by_linear_programs", np.zeros_like)
    replaced.look()
    assert not pair_shares.completed(values)["ratios"].any()
    monkeypatch.undo()
    replaced.look()
    np.testing.assert_array_equal(pair_shares.completed(values)["ratios"], right)


PLAYED = """
import jaxbandits as jb
from jaxbandits.kernels.confidence import radius
right = radius.static
if {wide}:
    radius.static = lambda *args: 2 * right(*args)
soare = jb.instances.soare(2, angle=0.5)
runs = jb.simulate(soare, jb.xy_static, replications=4, engine="{engine}")
print(runs.pulls.tolist())
"""


@pytest.mark.parametrize("engine", ["xla", "native"])
def test_a_later_process_does_not_find_its_programs(engine, tmp_path):
    found = [
        child(PLAYED.format(wide=wide, engine=engine), JAXBANDITS_CACHE=str(tmp_path / "kept"))
        for wide in (True, False, True, False)
    ]
    assert found[0] == found[2] != found[1] == found[3]


def swept(out):
    return jb.sweep(
        {"soare": SOARE}, {"static": jb.xy_static}, replications=4, out=out, engine="xla"
    )


def test_cells_of_a_sweep_are_others(monkeypatch, tmp_path):
    right = swept(tmp_path)
    monkeypatch.setattr(radius, "static", double)
    wider = swept(tmp_path)
    assert (wider.pulls > right.pulls).all()
    monkeypatch.undo()
    np.testing.assert_array_equal(swept(tmp_path).pulls, right.pulls)
    assert len([*(tmp_path / "cells").glob("*.npz")]) == 2
    for one, other in ((right, wider), (wider, right)):  # as the command looks before it overwrites
        assert description._other_code(one, other.attrs) == ["[algorithms.static]"]
        assert not description._other_code(one, one.attrs)


def test_what_has_no_description_is_refused_by_its_name(monkeypatch, tmp_path):
    monkeypatch.setattr(radius, "REFINEMENTS", (x for x in range(3)))
    with pytest.raises(ValueError, match=r"radius\.REFINEMENTS") as caught:
        swept(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_live_file_is_not_continued_with_another_part(monkeypatch, tmp_path):
    file = tmp_path / "live.npz"
    build = functools.partial(jb.lucb, m=1, delta=0.1)
    options = {"constructor": build, "arms": np.eye(3), "path": file}
    with jb.Live(**options) as live:
        live.tell(1.0)
    monkeypatch.setattr(radius, "static", double)
    where = r"replaced left out there, jaxbandits\.kernels\.confidence\.radius\.static here"
    with pytest.raises(ValueError, match=where), jb.Live(**options):
        pass
    monkeypatch.undo()
    with jb.Live(**options) as live:
        assert live.pulls == 1
