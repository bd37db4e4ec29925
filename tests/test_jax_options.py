"""What an entry returns does not depend on JAX's options, wherever a user has set them.

`pytest -n 0 -m slow tests/test_jax_options.py` sets each of them in a process of its own.
"""

import json
import subprocess
import sys
import threading
from pathlib import Path

import entries
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import compilations
from run_settings import child

import jaxbandits as jb
from jaxbandits.system.jax_options import ALL, ALWAYS, CONFIG, WIDTH, pinned

# Another value of each option that is pinned; some versions of JAX lack some.
PINNED = {
    "jax_enable_x64": True,
    "jax_default_matmul_precision": "bfloat16",
    "jax_threefry_partitionable": False,
    "jax_default_prng_impl": "rbg",
    "jax_enable_custom_prng": True,
    "jax_random_seed_offset": 7,
    "jax_high_dynamic_range_gumbel": True,
    "jax_safer_randint": False,
    "jax_accurate_erf_inv": True,
    "jax_numpy_rank_promotion": "raise",
    "jax_numpy_dtype_promotion": "strict",
    "jax_legacy_prng_key": "error",
    "jax_softmax_custom_jvp": True,
    "jax_scan3": True,
    "jax_debug_nans": True,
    "jax_debug_infs": True,
    "jax_debug_key_reuse": True,
    "jax_error_checking_behavior_nan": "raise",
    "jax_error_checking_behavior_divide": "raise",
    "jax_error_checking_behavior_oob": "raise",
    "jax_disable_jit": True,
    "jax_transfer_guard_host_to_device": "disallow",
    "jax_transfer_guard_device_to_device": "disallow",
    "jax_transfer_guard_device_to_host": "disallow",
}
# Options that stay the caller's and might matter, as they change what is traced or lowered.
NOT_PINNED = {
    "eager_constant_folding": True,
    "jax_transfer_guard": "disallow",  # sets the three above
    "jax_default_device": "cpu",
    "jax_check_static_indices": True,
    "jax_check_tracer_leaks": True,
    "jax_embedded_constants_max_bytes": 0,
    "jax_enable_checks": True,
    "jax_explicit_x64_dtypes": "error",
    "jax_threefry_gpu_kernel_lowering": True,
    "jax_use_direct_linearize": False,
    "jax_use_shardy_partitioner": False,
    "jax_use_simplified_jaxpr_constants": True,
    "jax_auto_pcast": False,
    "jax_custom_jvp3": True,
    "jax_custom_vjp3": True,
    "jax_mutable_array_checks": False,
    "jax_refs_to_pins": True,
    "jax_remat3": True,
    "jax_thread_guard": True,
}
# Entries that follow an option of the caller: a `jit` that is none, the width of numbers.
OF_THE_CALLER = {"jax_disable_jit": ["in jit"], "jax_enable_x64": ["by hand"]}
QUICK = {
    "jax_threefry_partitionable": False,
    "jax_numpy_rank_promotion": "raise",
    "jax_numpy_dtype_promotion": "strict",
}


# Parts of the names of options that change no operation: what they report, where programs run or
# are kept, how processes find one another, and how well XLA optimises.
NO_MATTER = (
    *(
        "cache",
        "log",
        "traceback",
        "dump",
        "pprint",
        "debug_leaked",
        "frames",
        "warn_bytes",
        "pgle",
    ),
    *("distributed", "topology", "collectives", "cross_host", "share_binary", "preemption", "mtls"),
    *("platform", "backend", "visible_devices", "num_cpu", "process", "dispatch", "recoverability"),
    *("optimization", "effort", "fitting", "xla", "magma", "proxy", "serialization", "export"),
    *("pallas", "mosaic", "ragged", "jax2tf", "bcoo", "source", "pjrt", "transfer", "most_opt"),
    *("check_vma", "mesh", "shmap", "sort_devices", "f16", "emit_pipeline", "remat_pass"),
    *("debug_info", "runtime_errors", "rgv3", "cpp_shard", "ppermute", "logistic", "dtype_bits"),
    *("dynamic_shapes", "vmap_primitive", "pmap", "collective_id"),
    *(
        "custom_vjp_",
        "_vjp3",
        "bwd_checks",
        "barrier",
        "array_garbage",
    ),  # of derivatives, of memory
)
# Assertions of the caller, which JAX raises: nothing is to be traced, or played.
ASSERTED = ("jax_no_tracing", "jax_no_execution")


def digests(options, *more):
    """What `entries` prints in a new process with these options of JAX."""
    known = {name: value for name, value in options.items() if hasattr(CONFIG, name)}
    settings = [f"{name}={json.dumps(value)}" for name, value in known.items()]
    path = Path(entries.__file__)
    done = subprocess.run(
        [sys.executable, path, *more, *settings],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_each_pinned_option_is_tried():
    assert PINNED.keys() == (WIDTH | ALWAYS).keys()


def test_a_block_that_cannot_be_entered_leaves_those_before_it(monkeypatch):
    class Refused:
        def __enter__(self):
            raise OSError("refused")

    blocks = [jax.numpy_rank_promotion("raise"), jax.debug_nans(True), Refused()]
    monkeypatch.setattr(type(ALL), "changes", lambda options: blocks)
    with pytest.raises(OSError, match="refused"), pinned():
        pass
    assert (CONFIG.jax_numpy_rank_promotion, CONFIG.jax_debug_nans) == ("allow", False)


def test_each_option_of_jax_is_pinned_or_tried_or_changes_no_operation():
    decided = {*PINNED, *NOT_PINNED, *ASSERTED}
    left = [name for name in jax.config.values if name not in decided]
    assert [name for name in left if not any(part in name for part in NO_MATTER)] == []


def test_options_of_a_user_change_no_numbers_in_a_new_process():
    assert digests(QUICK) == entries.digests(entries.QUICK)


@pytest.fixture(scope="module")
def usual():
    return digests({}, "all")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), (PINNED | NOT_PINNED).items())
def test_no_option_of_jax_changes_a_number(name, value, usual):
    if not hasattr(CONFIG, name):
        pytest.skip(f"JAX {jax.__version__} has no option {name}")
    found, wanted = digests({name: value}, "all"), dict(usual)
    for own in OF_THE_CALLER.get(name, ()):
        assert found.pop(own) != wanted.pop(own)
    assert found == wanted


@pytest.mark.parametrize("name", [x for x in PINNED if x != "jax_enable_x64"])
def test_another_option_compiles_nothing(name):
    """Options are part of the keys of JAX's caches, so a pinned one is never seen there."""
    if not hasattr(CONFIG, name):
        pytest.skip(f"JAX {jax.__version__} has no option {name}")
    key = jax.random.key(3, impl="threefry2x32")

    def called():
        live = jb.Live(jb.lin_ts, np.eye(2))
        live.tell(0.5)
        return jax.tree.leaves(jb.instances.sphere(key, 4, 2)), live.ask()

    usual, before = called(), getattr(CONFIG, name)
    try:
        jax.config.update(name, PINNED[name])
        with compilations() as seen:
            found = called()
        assert getattr(CONFIG, name) == PINNED[name]
    finally:
        jax.config.update(name, before)
    assert entries.digest(found) == entries.digest(usual)
    assert seen == []


def _fail_inside():
    assert jnp.zeros(()).dtype == jnp.float64
    assert not CONFIG.jax_debug_nans
    raise KeyError


def test_the_options_of_the_caller_hold_again_after_a_block_and_after_an_error():
    with jax.numpy_rank_promotion("raise"), jax.debug_nans(True), jax.enable_x64(False):
        with pytest.raises(KeyError), pinned():
            _fail_inside()
        assert CONFIG.jax_debug_nans
        with pytest.raises(ValueError, match="broadcast"):
            jnp.zeros((2, 2)) + jnp.zeros(2)


def test_a_mesh_of_the_caller_reaches_nothing():
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    usual = entries.own()
    with jax.set_mesh(mesh):
        found = entries.own()
    assert entries.digest(found) == entries.digest(usual)


def test_width_stays_the_callers_where_it_is_asked_for():
    with jax.enable_x64(False), jax.numpy_rank_promotion("raise"), pinned(width=False):
        assert (jnp.zeros((2, 2)) + jnp.zeros(2)).dtype == jnp.float32


def test_each_thread_is_pinned_by_itself():
    found = []

    def look():
        with pinned():
            found.append(jnp.zeros(()).dtype)
        found.append(jnp.zeros(()).dtype)

    with pinned():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == [jnp.float64, jnp.float32]


def test_a_raw_key_of_another_generator_stays_that_generators():
    with jax.default_prng_impl("rbg"):
        raw = jax.random.PRNGKey(5)
        by_raw = jb.instances.sphere(raw, 4, 2)
    by_typed = jb.instances.sphere(jax.random.key(5, impl="rbg"), 4, 2)
    np.testing.assert_array_equal(by_raw.arms, by_typed.arms)


PLATFORM = """
import jaxbandits as jb
try:
    jb.instances.soare(2)
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize(("platform", "reason"), [("xyz", "known backends"), ("cuda", "there")])
def test_a_platform_that_is_not_there_is_one_line(platform, reason):
    found = child(PLATFORM, JAX_PLATFORMS=platform)
    start = f"JAX_PLATFORMS must name devices of this machine, such as 'cpu', got '{platform}': "
    assert found.startswith(start)
    assert reason in found
    assert found.count("\n") == 1
