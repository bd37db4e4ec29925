import against
import jax
import pytest

from jaxbandits.compilers import cpp

TARGETS = [
    pytest.param(cpp.VECTORS, id="vectors"),
    pytest.param(cpp.ONE_LANE, id="one lane", marks=[pytest.mark.slow]),
]


@pytest.fixture(autouse=True)
def double_precision():
    if cpp.compiler() is None:
        pytest.skip("no C++ compiler")
    with jax.enable_x64(True):
        yield


@pytest.fixture(autouse=True, scope="module")
def target(request):
    """For which machine `against` writes programs."""
    before, against.TARGET = against.TARGET, getattr(request, "param", cpp.VECTORS)
    yield against.TARGET
    against.TARGET = before


def pytest_generate_tests(metafunc):
    """Tests of single operations also run the programs of one lane that GPUs get."""
    if hasattr(metafunc.module, "same") or hasattr(metafunc.module, "by_native"):
        metafunc.parametrize("target", TARGETS, indirect=True, scope="module")
