import jax
import pytest


@pytest.fixture(autouse=True)
def double_precision():
    """The kernels compute in the caller's precision; here float64 unless a test says otherwise."""
    with jax.enable_x64(True):
        yield
