import jax
import pytest


@pytest.fixture(autouse=True)
def double_precision():
    """Run the tests in float64; the kernels follow the caller's precision."""
    with jax.enable_x64(True):
        yield
