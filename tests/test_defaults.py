"""Options and defaults of all public functions, which other people's scripts rely on."""

import inspect
import json
import pkgutil
from importlib import import_module
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


def listed_modules():
    """Modules directly in the package that list their public names."""
    names = [m.name for m in pkgutil.iter_modules(jb.__path__) if m.name != "__main__"]
    modules = [import_module(f"jaxbandits.{name}") for name in names]
    return [module for module in modules if "__all__" in vars(module)]


def test_completion_offers_public_names_alone():
    modules = listed_modules()
    assert dir(jb) == sorted([*jb.__all__, "__version__"])
    assert {jb.algorithms, jb.core, jb.plot, jb.results, *MODULES.values()} <= {jb, *modules}
    offered = {module.__name__: dir(module) for module in modules}
    assert offered == {module.__name__: sorted(module.__all__) for module in modules}


def test_a_name_that_a_public_module_does_not_have_is_answered_by_the_nearest():
    for module in listed_modules():
        name = max(module.__all__, key=len)
        with pytest.raises(AttributeError, match=f"has no .*; did you mean '{name}'"):
            getattr(module, name[:-1])
    assert inspect.ismodule(jb.rounding.np)  # what is not listed stays readable
