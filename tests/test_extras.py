"""A missing package is named together with the command that installs it."""

import sys
from functools import partial

import pytest
from run_settings import SOARE, simulate

import jaxbandits as jb
from jaxbandits.report.html import rendering
from jaxbandits.system.extras import PACKAGES, needed_by

HALVING = {"halving": partial(jb.sequential_halving, budget=40)}


def play(**options):
    return jb.sweep({"soare": SOARE}, HALVING, replications=20, **options)


@pytest.mark.parametrize(
    ("package", "what", "call"),
    [
        ("xarray", "to_xarray", lambda: simulate("sequential", 20).to_dataframe()),
        ("matplotlib.figure", "a figure", lambda: simulate("sequential", 20).plot()),
        ("xarray", "sweep", play),
        ("h5netcdf", "sweep", lambda: play(out="nowhere")),
        ("xarray", "compare", lambda: jb.compare(HALVING, SOARE, replications=20)),
        ("jinja2", "a report", rendering.environment.__wrapped__),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_missing_package_is_named_before_anything_is_played(monkeypatch, package, what, call):
    def refuse(*args, **options):
        raise AssertionError("played")

    name = package.partition(".")[0]
    assert name in PACKAGES
    runs = simulate("sequential", 20)  # compiled, and played before
    monkeypatch.setattr(f"{__name__}.simulate", lambda *_: runs)
    monkeypatch.setattr("jaxbandits.sweeps.grid.planned", refuse)
    monkeypatch.setitem(sys.modules, package, None)
    command = rf"{what} needs {name}: pip install 'jaxbandits\[sweep\]'"
    with pytest.raises(ModuleNotFoundError, match=command):
        call()


def test_other_missing_modules_are_not_explained_away():
    message = "No module named 'no_such_package'"
    with pytest.raises(ModuleNotFoundError, match=message), needed_by("this"):
        import no_such_package  # noqa: F401
