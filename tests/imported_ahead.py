"""The second process of the tests imports some packages before it needs them.

Where no bytecode is stored yet, as after `pip install --no-compile`, all processes would compile
the same modules at the same time. While the first process compiles JAX, the second one compiles
these; then each finds what the other has stored.
"""

import contextlib
import importlib
import os

PACKAGES = (
    "pandas",
    "xarray",
    "distributed",
    "matplotlib.pyplot",
    "statsmodels.api",
    "sklearn.cluster",
    "cvxpy",
)
if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
    for name in PACKAGES:
        with contextlib.suppress(ImportError):  # then the tests that need it will say so
            importlib.import_module(name)
