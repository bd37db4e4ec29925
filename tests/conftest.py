"""Shape checks on the kernels, and a way to run a share of the tests."""

import pytest
from jaxtyping import install_import_hook

# Before anything imports the package, so that every kernel is checked whoever calls it.
install_import_hook("jaxbandits.kernels", "beartype.beartype")


def pytest_addoption(parser):
    parser.addoption("--part", default="1/1", help="i/n: every n-th of the selected tests, from i")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    part, parts = map(int, config.getoption("part").split("/"))
    chosen = items[part - 1 :: parts] or items
    left_out = set(items) - set(chosen)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = chosen
