"""A few runs of each kind, with only the core dependencies: `python tests/smoke.py`.

For versions of Python and JAX with which the full test suite is not run, and for wheels. With
`--sweep` also what the extra of this name is for.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import environment  # noqa: F401  before JAX: the programs compile with few optimisations
import jax

import jaxbandits as jb
from jaxbandits.engine import host_loop, traits
from jaxbandits.system import keeping

SOARE = jb.instances.soare(2, angle=0.5)
LOGISTIC = jb.instances.glm([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
RUNS = {
    "lingape": (SOARE, partial(jb.lingape, delta=0.1), {}),
    "gse": (SOARE, partial(jb.gse, budget=60), {}),
    "glm_tsl": (LOGISTIC, jb.glm_tsl, {"horizon": 40}),
}


SWEEP = """
replications = 8
[instances.soare]
name = "soare"
dim = 2
angle = 0.5
[algorithms.LinGapE]
name = "lingape"
"""


def sweep():
    """A sweep, its figure and its report by the command line, and a figure of runs."""
    command = Path(sys.executable).with_name("jaxbandits")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sweep.toml").write_text(SWEEP)
        out = folder / "out"
        subprocess.run([command, "run", folder / "sweep.toml", "--out", out], check=True)
        subprocess.run([command, "report", out], check=True)
        assert {"results.nc", "figure.png", "report.html"} <= {path.name for path in out.iterdir()}
    runs = jb.simulate(SOARE, partial(jb.lingape, delta=0.1), replications=8)
    assert runs.plot() is not None


def forget():
    """Forget compiled programs, as at the start of another process."""
    keeping.remembered.forget()
    traits._sizes.cache_clear()
    traits._traced.cache_clear()


def programs_are_kept():
    """Runs of programs that are read from disk, which must not be traced."""
    instance, algorithm, _ = RUNS["lingape"]
    whole = host_loop.run_queue
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        os.environ["JAXBANDITS_CACHE"] = folder
        for engine in ("xla", "native"):
            forget()
            play = partial(jb.simulate, instance, algorithm, replications=8, engine=engine)
            first = play()
            forget()
            host_loop.run_queue = None
            assert (play().arm_pulls == first.arm_pulls).all(), engine
            host_loop.run_queue = whole


def main():
    """Check that both engines agree and that a second call gives the same runs."""
    programs_are_kept()
    os.environ["JAXBANDITS_CACHE"] = "off"
    for name, (instance, algorithm, options) in RUNS.items():
        play = partial(jb.simulate, instance, algorithm, replications=8, **options)
        first, again, native = play(), play(), play(engine="native")
        assert (first.pulls == again.pulls).all(), name
        assert (first.arm_pulls == again.arm_pulls).all(), name
        assert (first.arm_pulls == native.arm_pulls).mean() > 0.8, name
        assert first.arm_pulls.sum() == first.pulls.sum(), name
    fit = jb.fit_glm([[1.0, 0.0], [0.0, 1.0]], [10, 10], [7, 2])
    assert fit.converged, fit
    assert jb.design.d_optimal(SOARE.arms).converged
    if "--sweep" in sys.argv:
        sweep()
    print(f"smoke: python {sys.version.split()[0]}, jax {jax.__version__}: fine")


if __name__ == "__main__":
    main()
