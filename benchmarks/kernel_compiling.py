"""Seconds to trace and compile the public kernels inside a `jit` of the caller.

    python -m benchmarks.kernel_compiling [--only WORD ...] [--dims D ...]

A row is one kernel with 4 d arms in d dimensions: alone, under `vmap` of three problems, and its
gradient in the arms or the sums of rewards where it has one (of `log_det` for `d_optimal`, whose
value is d). Nothing is kept from the row before. CPU seconds, the least of some measurements, and
the equations of the trace, those of inner functions included.
"""

import argparse
import gc
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandits as jb
from jaxbandits.compilers.jaxprs import operations

from .contest import save

RESULTS = Path(__file__).parent / "results" / "kernel-compiling-cpu.json"
DIMS, ARMS_PER_DIM, PROBLEMS, REPEATS = (5, 20), 4, 3, 3
# What is differentiated of a result, by kernel.
SCALARS = {
    "d_optimal": lambda arms, found: jb.design.log_det(arms, found.weights),
    "xy_optimal": lambda arms, found: found.value,
    "fit_glm, logistic": lambda sums, found: found.theta[0],
    "fit_glm, poisson": lambda sums, found: found.theta[0],
}


def kernels(dim):
    """`{name: (function of one array, the array)}`."""
    rng = np.random.default_rng(0)
    arms = jnp.asarray(rng.normal(size=(ARMS_PER_DIM * dim, dim)))
    weights = jnp.full(len(arms), 1.0 / len(arms))
    counts = jnp.full(len(arms), 20.0)
    sums = counts * (0.3 + 0.4 * jnp.asarray(rng.random(len(arms))))
    design, fit = jb.design, partial(jb.fit_glm, arms, counts, ridge=0.1)
    return {
        "d_optimal": (design.d_optimal, arms),
        "xy_optimal": (lambda x: design.xy_optimal(x, arms), arms),
        "g_optimal_fw": (design.g_optimal_fw, arms),
        "rounding.efficient": (lambda w: jb.rounding.efficient(w, 1000), weights),
        "fit_glm, logistic": (partial(fit, family="logistic"), sums),
        "fit_glm, poisson": (partial(fit, family="poisson"), sums),
    }


def ways(name, function, array):
    """`{way: (function, array)}`: alone, under `vmap`, and the gradient where there is one."""

    def scalar(x):
        held = jax.lax.stop_gradient(x) if name == "d_optimal" else x
        return SCALARS[name](x, function(held))

    many = jnp.stack([array] * PROBLEMS)
    found = {"plain": (function, array), "vmap": (jax.vmap(function), many)}
    return found | ({"grad": (jax.grad(scalar), array)} if name in SCALARS else {})


def measured(function, array, repeats=REPEATS):
    """Seconds to trace and to compile, and the number of equations."""
    rows = []
    for _ in range(repeats):
        jax.clear_caches()
        gc.collect()
        marks = [time.process_time()]
        traced = jax.jit(function).trace(array)
        marks.append(time.process_time())
        traced.lower().compile()
        marks.append(time.process_time())
        rows.append(np.diff(marks))
    tracing, compiling = np.min(rows, axis=0).round(2)
    equations = operations(traced.jaxpr.jaxpr)
    return {"tracing": float(tracing), "compiling": float(compiling), "equations": equations}


def main(arguments=None):
    """Measure, print and store the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="names with one of these words")
    parser.add_argument("--dims", nargs="*", type=int, default=DIMS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    rows = []
    with jax.enable_x64(True):
        for dim in asked.dims:
            for name, kernel in kernels(dim).items():
                if asked.only and not any(word in name for word in asked.only):
                    continue
                for way, problem in ways(name, *kernel).items():
                    found = measured(*problem, asked.repeats)
                    rows.append({"kernel": name, "dim": dim, "way": way, **found})
                    print(rows[-1], flush=True)
    save(asked.out, rows, "cpu")
    return rows


if __name__ == "__main__":
    main()
