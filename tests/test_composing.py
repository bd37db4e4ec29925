"""Public kernels inside of the caller's `jit`, `vmap`, `scan`, `shard_map` and `grad`."""

import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from params import params

import jaxbandits as jb

RNG = np.random.default_rng(5)
ARMS = RNG.normal(size=(6, 2))
OTHERS = RNG.normal(size=(6, 2))
WEIGHTS = np.array([0.4, 0.25, 0.15, 0.1, 0.1, 0.0])
COUNTS = np.array([10.0, 20.0, 5.0, 8.0, 2.0, 3.0])
SUMS = np.array([4.0, 15.0, 2.0, 7.0, 1.0, 1.0])
THETA = np.array([1.0, 0.3])


class Kernel(NamedTuple):
    function: Any  # its docstring says how it composes
    call: Any  # function of a table, which may be traced
    table: np.ndarray
    near: float | None  # tolerance of single against double precision; None: in a slow test
    grad: str | None = "no derivative"  # error of its derivative; None: there is one


def _instance(arms, theta=THETA):
    theta = theta.astype(arms.dtype)
    means = arms @ theta
    return jb.instances.Instance(arms, arms, means, means, theta, np.ones(()))


def _by_name(name, *, near=1e-4, **options):
    function = getattr(jb.design, name)
    return Kernel(function, lambda arms: function(arms, **options), ARMS, near)


KERNELS = {
    "d_optimal": _by_name("d_optimal")._replace(grad=None),
    "log_det": Kernel(
        jb.design.log_det, lambda arms: jb.design.log_det(arms, WEIGHTS), ARMS, 1e-5, None
    ),
    "g_optimal_fw": _by_name("g_optimal_fw", near=None),
    "wynn": _by_name("wynn"),
    "fedorov": _by_name("fedorov", near=None),
    "wolfe_atwood": _by_name("wolfe_atwood"),
    "greedy_allocation": _by_name("greedy_allocation", total=20),
    "xy_optimal": Kernel(
        jb.design.xy_optimal, lambda arms: jb.design.xy_optimal(arms, arms[:3]), ARMS, None, None
    ),
    "xy_frank_wolfe": Kernel(
        jb.design.xy_frank_wolfe,
        lambda arms: jb.design.xy_frank_wolfe(arms, arms[:1], max_iterations=9),
        ARMS,
        1e-4,
    ),
    "oracle": Kernel(
        jb.design.oracle,
        lambda arms: jb.design.oracle(_instance(arms), tol=1e-3),
        ARMS,
        None,
        None,
    ),
    "efficient": Kernel(
        jb.rounding.efficient, lambda w: jb.rounding.efficient(w, 10**9), WEIGHTS, 20
    ),
    "largest_remainder": Kernel(
        jb.rounding.largest_remainder,
        lambda w: jb.rounding.largest_remainder(w, 10**9),
        WEIGHTS,
        20,
    ),
    "regret": Kernel(jb.rounding.regret, lambda w: jb.rounding.regret(ARMS, w, 500), WEIGHTS, 0),
    "regret by swaps": Kernel(
        jb.rounding.regret,
        lambda w: jb.rounding.regret(ARMS, w, 500, form="swap"),
        WEIGHTS,
        None,
    ),
    "fit_glm": Kernel(jb.fit_glm, lambda sums: jb.fit_glm(ARMS, COUNTS, sums), SUMS, 1e-4, None),
    "characteristic_time": Kernel(
        jb.theory.characteristic_time,
        lambda arms: jb.theory.characteristic_time(_instance(arms), tol=1e-3),
        ARMS,
        None,
        None,
    ),
    "pull_lower_bound": Kernel(
        jb.theory.pull_lower_bound,
        lambda arms: jb.theory.pull_lower_bound(_instance(arms), 0.05),
        ARMS,
        None,
        None,
    ),
}


IN_BOTH = ("d_optimal", "fit_glm", "efficient")  # always lowered with 64-bit numbers allowed too


def _dtypes(tree):
    return {np.dtype(leaf.dtype).name for leaf in jax.tree.leaves(tree)}


@pytest.mark.parametrize(
    ("name", "x64", "whole"),
    [
        *((name, False, "int32") for name in KERNELS),
        *(
            pytest.param(name, True, "int64", marks=[pytest.mark.slow] * (name not in IN_BOTH))
            for name in KERNELS
        ),
    ],
)
def test_a_traced_kernel_has_the_precision_of_its_arrays(name, x64, whole):
    """In a `shard_map` over a `scan` that calls it; lowered, but not compiled."""
    kernel = KERNELS[name]
    mesh = jax.make_mesh((1,), ("lots",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("lots")

    def everywhere(tables):
        return jax.lax.map(kernel.call, tables)

    sharded = jax.jit(jax.shard_map(everywhere, mesh=mesh, in_specs=spec, out_specs=spec))
    with jax.enable_x64(x64):
        lowered = sharded.lower(jnp.asarray(kernel.table, jnp.float32)[None])
    assert _dtypes(lowered.out_info) <= {"float32", whole, "bool"}


def test_an_instance_may_be_built_in_the_same_trace():
    """Without `jax_enable_x64`, where no part of a program can be in double precision."""

    def value(theta):
        return jb.design.oracle(jb.instances.linear(ARMS, theta)).value

    assert jax.eval_shape(value, jnp.ones(2)).dtype == jnp.float32


def test_rounding_in_a_shard_map_equals_rounding_outside():
    mesh = jax.make_mesh((1,), ("lots",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("lots")

    def rounded(weights):
        return jax.vmap(lambda row: jb.rounding.largest_remainder(row, 17))(weights)

    sharded = jax.jit(jax.shard_map(rounded, mesh=mesh, in_specs=spec, out_specs=spec))
    found = sharded(jnp.asarray([WEIGHTS, WEIGHTS[::-1]], jnp.float32))
    wanted = jb.rounding.largest_remainder(WEIGHTS, 17)
    np.testing.assert_array_equal(found, [wanted, wanted[::-1]])


def _same(one, two, near):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), atol=near, rtol=near)


NEAR = [name for name, kernel in KERNELS.items() if kernel.near is not None]
# Their relatives are always tested: other designs, roundings and bounds.
RELATED = ("wynn", "wolfe_atwood", "largest_remainder", "xy_frank_wolfe", "regret")
RELATED += ("greedy_allocation",)


@pytest.mark.parametrize("name", params(NEAR, slow=RELATED))
def test_single_precision_in_jit_and_vmap_is_near_double_outside(name):
    kernel = KERNELS[name]
    design = kernel.table is ARMS and name != "log_det"
    tables = jnp.stack([jnp.asarray(kernel.table, jnp.float32)] * 2).at[1].mul(0 if design else 1)
    many = jax.jit(jax.vmap(kernel.call))(tables)
    found = many
    assert _dtypes(many) <= {"float32", "int32", "bool"}
    alone = kernel.call(kernel.table)
    assert _dtypes(alone) <= {"float64", "int64", "bool"}
    assert all(isinstance(leaf, np.ndarray | np.generic) for leaf in jax.tree.leaves(alone))
    if hasattr(alone, "converged"):  # steps, and the last decrement, depend on rounding
        many, alone = ((found[0], found[1], found.converged) for found in (many, alone))
    _same(jax.tree.map(lambda leaf: leaf[0], many), alone, kernel.near)
    if design:  # arms that are all zero have no optimum; untraced ones are refused, see below
        weights, value, bound, _, converged = (leaf[1] for leaf in found)
        assert np.isfinite(weights).all()
        assert value >= bound
        assert not converged or name == "xy_frank_wolfe"  # which then has nothing to compare
    if name in ("efficient", "largest_remainder", "regret"):
        assert int(many[0].sum()) == alone.sum()


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if k.near is None])
def test_single_precision_of_slow_kernels_is_near_double(name):
    kernel = KERNELS[name]
    found = jax.jit(kernel.call)(jnp.asarray(kernel.table, jnp.float32))
    alone = kernel.call(kernel.table)
    values = (found, alone) if not hasattr(found, "value") else (found.value, alone.value)
    _same(*values, 3e-3)


@pytest.mark.parametrize("name", [n for n, k in KERNELS.items() if k.grad is not None])
def test_a_missing_derivative_is_refused_with_a_hint(name):
    kernel = KERNELS[name]

    def loss(table):
        return sum(leaf.astype(float).sum() for leaf in jax.tree.leaves(kernel.call(table)))

    table = jnp.asarray(kernel.table, jnp.float32)
    many = jax.vmap(jax.grad(loss))
    for derivative in (jax.grad(loss), jax.jit(jax.grad(loss)), lambda table: many(table[None])):
        with pytest.raises(TypeError, match=r"has no derivative.*stop_gradient"):
            jax.eval_shape(derivative, table)
    held = jax.grad(lambda table: loss(jax.lax.stop_gradient(table)) + table.sum())
    jax.eval_shape(held, table)


@pytest.mark.parametrize("name", ["d_optimal", "xy_optimal", "oracle"])
def test_the_value_of_a_design_has_a_derivative_and_its_weights_have_none(name):
    kernel = KERNELS[name]
    table = jnp.asarray(kernel.table, jnp.float32)
    for outer in (lambda f: f, jax.jit):
        jax.eval_shape(outer(jax.grad(lambda table: kernel.call(table).value)), table)
        with pytest.raises(TypeError, match="weights of a design have no derivative"):
            jax.eval_shape(outer(jax.grad(lambda t: kernel.call(t).weights[0])), table)
    if name == "d_optimal":
        return  # all derivatives of its value are 0
    second = jax.jacrev(jax.grad(lambda table: kernel.call(table).value))
    with pytest.raises(TypeError, match="weights of a design have no derivative"):
        jax.eval_shape(second, table)


def _slope(function, point, direction, step):
    return (function(point + step * direction) - function(point - step * direction)) / (2 * step)


def test_the_derivative_of_the_largest_determinant_is_that_at_fixed_weights():
    def largest(arms):
        fixed = jb.design.d_optimal(jax.lax.stop_gradient(arms), tol=1e-7).weights
        return jb.design.log_det(arms, fixed)

    with jax.enable_x64(True):
        slopes = np.asarray(jax.grad(largest)(jnp.asarray(ARMS)))
        wanted = _slope(largest, ARMS, OTHERS, 1e-5)
    np.testing.assert_allclose((slopes * OTHERS).sum(), wanted, rtol=1e-5)


def test_the_derivatives_of_a_fit_are_those_of_the_minimum():
    def number(arms, sums):
        found = jb.fit_glm(arms, COUNTS, sums, ridge=0.2)
        return (
            (found.theta**2).sum() + found.hessian[0, 1] + found.inverse[0, 0] + found.factor[1, 0]
        )

    with jax.enable_x64(True):
        tables = jnp.asarray(ARMS), jnp.asarray(SUMS)
        slopes = list(map(np.asarray, jax.jit(jax.grad(number, argnums=(0, 1)))(*tables)))
    along = (slopes[0] * OTHERS).sum(), slopes[1] @ WEIGHTS
    wanted = (
        _slope(lambda arms: number(arms, SUMS), ARMS, OTHERS, 1e-5),
        _slope(lambda sums: number(ARMS, sums), SUMS, WEIGHTS, 1e-5),
    )
    np.testing.assert_allclose(along, wanted, rtol=1e-6)


def test_a_fit_has_second_derivatives():
    def theta(sums):
        return jb.fit_glm(ARMS, COUNTS, sums, family="gaussian").theta[0] ** 2

    with jax.enable_x64(True):
        bend = np.asarray(jax.jit(jax.hessian(theta))(jnp.asarray(SUMS)))
    row = np.linalg.solve((ARMS.T * COUNTS) @ ARMS, ARMS.T)[0]
    np.testing.assert_allclose(bend, 2.0 * np.outer(row, row), rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_the_derivative_of_the_characteristic_time_is_that_of_the_optimum():
    def time(arms, theta):
        return jb.theory.characteristic_time(_instance(arms, theta), tol=1e-7).value

    def wide(arms, targets):
        return jb.design.xy_optimal(arms, targets, tol=1e-7).value

    for function, point in ((time, (ARMS, THETA)), (wide, (ARMS, ARMS[:3] + 0.1))):
        moves = [OTHERS[: len(one)] if one.ndim == 2 else WEIGHTS[:2] for one in point]
        with jax.enable_x64(True):
            slopes = jax.jit(jax.grad(function, argnums=(0, 1)))(*map(jnp.asarray, point))
            slopes = list(map(np.asarray, slopes))
        for i, move in enumerate(moves):
            nearby = lambda x, i=i: float(function(*(x if i == j else point[j] for j in (0, 1))))  # noqa: E731, B023
            wanted = _slope(nearby, point[i], move, 1e-4)
            np.testing.assert_allclose((slopes[i] * move).sum(), wanted, rtol=1e-4)


def test_untraced_numbers_are_in_double_precision_even_inside_a_trace():
    wanted, volume = jb.rounding.efficient(WEIGHTS, 10**9), jb.design.log_det(ARMS, WEIGHTS)

    def inside(x):
        found = jb.rounding.efficient(WEIGHTS, 10**9)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, wanted)
        assert jb.design.log_det(ARMS, WEIGHTS) == volume
        return x

    jax.eval_shape(inside, 1.0)
    jax.vmap(inside)(jnp.ones(2))


def test_where_nothing_is_compared_any_design_is_optimal():
    found = KERNELS["xy_frank_wolfe"].call(ARMS)
    assert (float(found.value), float(found.bound), bool(found.converged)) == (0.0, 0.0, True)
    np.testing.assert_allclose(found.weights, 1 / 6)


@pytest.mark.slow
def test_where_nothing_is_compared_the_certified_design_has_value_0():
    found = jb.design.xy_optimal(ARMS, ARMS[:1])
    assert (float(found.value), float(found.bound), bool(found.converged)) == (0.0, 0.0, True)


ZEROS = np.zeros((6, 2))
REFUSED = {
    "no arm but zeros": (lambda: jb.design.d_optimal(ZEROS), "arms must .*got zeros"),
    "no active arm but zeros": (
        lambda: jb.design.wynn(np.vstack([ARMS, ZEROS]), active=np.arange(12) > 5),
        "arms must .*got zeros",
    ),
    "zeros to compare by": (lambda: jb.design.xy_optimal(ZEROS, ARMS), "arms must .*got zeros"),
    "zeros to draw": (lambda: jb.design.greedy_allocation(ZEROS, 9), "arms must .*got zeros"),
    "complex arms": (
        lambda: jb.design.d_optimal(ARMS + 1j),
        "arms must be real numbers, got complex ones",
    ),
    "complex traced arms": (
        lambda: jax.eval_shape(jb.design.fedorov, ARMS + 1j),
        "arms must be real numbers, got complex ones",
    ),
    "words": (lambda: jb.rounding.efficient(["a", "b"], 3), "weights must be real numbers"),
    "ragged arms": (
        lambda: jb.design.d_optimal([[1.0, 0.0], [1.0]]),
        "arms must be a table of numbers: ",
    ),
    "arms with a mask": (
        lambda: jb.design.d_optimal(np.ma.masked_equal(ARMS, ARMS[0, 0])),
        "arms must have all entries, got a masked array that lacks",
    ),
    "sums with a mask": (
        lambda: jb.fit_glm(ARMS, COUNTS, np.ma.masked_equal(SUMS, SUMS[0])),
        "sums must have all entries",
    ),
    "complex sums": (lambda: jb.fit_glm(ARMS, COUNTS, 1j * SUMS), "sums must be real numbers"),
    "more successes than draws": (
        lambda: jb.fit_glm(ARMS, SUMS, COUNTS),
        r"sums must be between 0 and the counts for family 'logistic' .*got 10 for the 4 draws of",
    ),
    "fewer successes than none": (
        lambda: jb.fit_glm(ARMS, COUNTS, -SUMS, family="probit"),
        "sums must be between 0 and the counts for family 'probit'",
    ),
    "fewer events than none": (
        lambda: jb.fit_glm(ARMS, COUNTS, -SUMS, family="poisson"),
        "sums must be 0 or above, .* for family 'poisson'",
    ),
    "a sum without a draw": (
        lambda: jb.fit_glm(ARMS, np.eye(6)[0], SUMS, family="gaussian"),
        "sums must be 0 where counts are for family 'gaussian' .*got 15 for the 0 draws of arm 1",
    ),
    "more draws than integers": (
        lambda: jax.eval_shape(lambda w: jb.rounding.efficient(w, 2**31), WEIGHTS),
        "total must be at most 2147483647 in this precision",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_input_without_a_design_or_a_fit_is_refused(name):
    call, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        call()


ON_HOST = (
    jb.design.ratios,
    jb.theory.gse_error_bound,
    jb.theory.sequential_halving_error_bound,
    jb.theory.lucb_complexity,
    jb.theory.top_m_pull_bound,
    jb.theory.glm_tsl_regret_bound,
    jb.theory.rage_pull_bound,
    jb.theory.design_value_bounds,
)


@pytest.mark.parametrize("function", ON_HOST, ids=lambda function: function.__name__)
def test_functions_computed_on_the_host_refuse_traced_arguments(function):
    with pytest.raises(TypeError, match="must be known numbers, got a traced array"):
        jax.eval_shape(function, ARMS)


@pytest.mark.parametrize("name", KERNELS)
def test_a_docstring_says_how_it_composes(name):
    text = inspect.getdoc(KERNELS[name].function)
    assert "Composes:" in text
    said = text[text.index("Composes:") :]
    other = "As `" in said.split("\n")[1]
    assert other or all(f"{key}: " in said for key in ("jit, vmap", "grad", "float32"))
