import jax
import pytest

from jaxbandits.kernels import tracing


@pytest.fixture(autouse=True)
def double_precision():
    """Run the tests in float64; the kernels follow the caller's precision."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def changed(monkeypatch):
    """`monkeypatch` for what kernels use: earlier traces are forgotten, and so are the test's."""
    tracing._inlined.cache_clear()
    yield monkeypatch
    tracing._inlined.cache_clear()
