"""Options and defaults of all public functions, which other people's scripts rely on."""

import inspect
import json
from pathlib import Path

import pytest

import jaxbandits as jb

STORED = Path(__file__).parent / "defaults.json"
MODULES = {
    "jaxbandits": jb,
    "design": jb.design,
    "instances": jb.instances,
    "rounding": jb.rounding,
    "theory": jb.theory,
}


def options(function):
    """`{option: default}` as text, in order; "" where there is no default."""
    parameters = inspect.signature(function).parameters.values()
    return {
        str(p.replace(default=p.empty, annotation=p.empty)): (
            "" if p.default is p.empty else repr(p.default)
        )
        for p in parameters
    }


def public():
    """`{name: options}` of whatever the package and its public modules list and can be called."""
    found = {}
    for place, module in MODULES.items():
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and not inspect.isclass(thing):
                found[f"{place}.{name}"] = options(thing)
    return found


FOUND, KNOWN = public(), json.loads(STORED.read_text())


def test_all_are_stored():
    """Write `public()` to the file, and look at what has changed, if this is meant."""
    assert len(FOUND) > 90
    assert FOUND.keys() == KNOWN.keys()


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_options_and_defaults_are_kept(name):
    assert FOUND[name] == KNOWN[name]
    assert list(FOUND[name]) == list(KNOWN[name])
