import jax
import pytest

from jaxbandits.compilers.cpp import compiler


@pytest.fixture(autouse=True)
def double_precision():
    if compiler() is None:
        pytest.skip("no C++ compiler")
    with jax.enable_x64(True):
        yield
