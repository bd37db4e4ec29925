"""Options and defaults of all public functions, which other people's scripts rely on."""

import inspect
import json
from pathlib import Path

import pytest

import jaxbandits as jb
import jaxbandits.reproduce
import jaxbandits.sweeps

STORED = Path(__file__).parent / "defaults.json"
MODULES = {
    "jaxbandits": jb,
    "design": jb.design,
    "instances": jb.instances,
    "rounding": jb.rounding,
    "theory": jb.theory,
    "sweeps": jb.sweeps,
    "reproduce": jb.reproduce,
}


def options(function):
    """`{option: default}` as text, in order; "" where there is no default."""
    parameters = inspect.signature(function).parameters.values()
    plain = lambda p: p.replace(default=p.empty, annotation=p.empty)  # noqa: E731
    return {str(plain(p)): "" if p.default is p.empty else _shown(p.default) for p in parameters}


def _shown(default):
    return default.__name__ if inspect.isfunction(default) else repr(default)


def public():
    """`{name: options}` of all public callables of the package and its modules."""
    found = {}
    for prefix, module in MODULES.items():
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                found[f"{prefix}.{name}"] = options(thing)
            if inspect.isclass(thing):
                methods = inspect.getmembers(thing, inspect.isfunction)
                own = [(n, f) for n, f in methods if not n.startswith("_")]
                found |= {f"{prefix}.{name}.{n}": options(f) for n, f in own}
    return found


FOUND, KNOWN = public(), json.loads(STORED.read_text())


def test_no_public_name_is_lost():
    """A new name is stored at its release, when `public()` is written to the file."""
    assert len(KNOWN) > 90
    assert KNOWN.keys() <= FOUND.keys()


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_options_and_defaults_are_kept(name):
    assert FOUND[name] == KNOWN[name]
    assert list(FOUND[name]) == list(KNOWN[name])


def test_completion_offers_public_names_alone():
    assert dir(jb) == sorted([*jb.__all__, "__version__"])
