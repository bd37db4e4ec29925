"""Kernels for GPUs, as far as they can be tested without one; see `benchmarks.gpu_agreement`.

What the kernels compute is tested in `test_one_lane`: there a CPU plays the same text.
"""

import re
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

import jaxbandits as jb
from jaxbandits.compilers import cpp, cuda
from jaxbandits.compilers.cpp import program
from jaxbandits.compilers.cuda import launching, nvrtc
from jaxbandits.core import Algorithm, Move
from jaxbandits.engine import checks, device_loop
from jaxbandits.kernels.shared_call import once_for_equal

SOARE = jb.instances.soare(3, angle=0.5)
LINGAPE = partial(jb.lingape, delta=0.1)

# The compiler is no dependency of the tests: its package is large, and of use to GPUs alone.
needs_nvrtc = pytest.mark.skipif(
    nvrtc.found_library() is None, reason="needs NVRTC, of jax[cuda13] or a CUDA toolkit"
)


def play(build, monkeypatch, texts, **options):
    """Simulate with engine "cuda" on a CPU, and keep the texts of the kernels."""

    def call(source, *others):
        texts.append(launching.kernel_text(source, launching.Launch()))
        return cpp.ONE_LANE.call(source, *others)

    monkeypatch.setitem(device_loop.FUSED, "cuda", cuda.GPU._replace(call=call))
    monkeypatch.setattr("jaxbandits.engine.api.check_engine", lambda *_: None)
    return jb.simulate(SOARE, build, replications=20, engine="cuda", **options)


@pytest.fixture(scope="module")
def kernel():
    """The text of the kernel that a simulation of LinGapE launches."""
    texts = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert play(LINGAPE, monkeypatch, texts).meta["engine"] == "cuda"
    (text,) = texts
    return text


def test_a_kernel_has_a_parameter_for_each_table_and_one_lane_to_a_thread(kernel):
    (parameters,) = re.findall(r"__global__ .* run\((.*)\)", kernel)
    names = re.findall(r"void \*(\w+)", parameters)
    assert len(names) == len(set(names)) == parameters.count("*")
    for start in ("in", "out"):
        used = {int(k) for k in re.findall(rf"\b{start}\[(\d+)\]", kernel)}
        assert max(used) < sum(name.startswith(f"{start}_") for name in names)
    assert "thread_local" not in kernel
    assert "blockIdx.x * blockDim.x + threadIdx.x" in kernel


def test_long_loops_stay_loops(kernel):
    lines = kernel.splitlines()
    loops = [k for k, line in enumerate(lines) if line.startswith("for (")]
    assert loops
    for k in loops:
        found = re.match(r"for \(i64 \w+ = 0; \w+ < (\d+);", lines[k])
        few = found is not None and int(found[1]) <= launching.WRITTEN_OUT
        found = re.fullmatch(r"#pragma unroll (\d+)", lines[k - 1])
        assert (found is None) == few, lines[k]
        assert few or int(found[1]) in (1, *launching.SIDE_BY_SIDE)


NESTED = """\
for (i64 i_1 = 0; i_1 < 20; i_1++) {
for (i64 i_2 = 0; i_2 < 20; i_2++) {
a[i_1] += b[i_2];
}}
for (i64 i_3 = 0; i_3 < 12; i_3++) {
}
for (;;) {
if (!x) break;
}"""


@pytest.mark.parametrize(("more", "many"), [(0, 10), (launching.FEW_LINES, 1)])
def test_entries_of_the_innermost_loops_are_side_by_side_in_short_programs(more, many):
    lines = launching._rolled(NESTED + more * "\n").split("\n")
    pragmas = [line for line in lines if line.startswith("#")]
    short = [] if many > 1 else [1]  # in a long program, twelve iterations are many
    assert pragmas == [f"#pragma unroll {n}" for n in (1, many, *short, 1)]


@pytest.mark.parametrize(("iterations", "many"), [(16, 8), (50, 10), (63, 9), (77, 7), (71, 8)])
def test_no_iteration_is_left_over_where_that_can_be(iterations, many):
    assert launching._side_by_side(iterations) == many


def source_with(on_chip):
    return program.Source(1, 1, [], [], 1, [], 0, on_chip, True)


@pytest.mark.parametrize(
    ("on_chip", "capability", "launch"),
    [
        (0, "9.0", (128, 0)),
        (1600, "9.0", (128, 204_800)),
        (3200, "9.0", (64, 204_800)),
        (3200, "8.0", (128, 0)),
        (1600, "8.0", (64, 102_400)),
        (1600, "8.6", (128, 0)),
    ],
)
def test_a_block_has_as_many_lanes_as_fit_on_the_chip(on_chip, capability, launch):
    """Where 64 do not, the arrays are in the memory of each thread."""
    source = source_with(on_chip)
    found = launching.launch_of(source, capability)
    assert found == launch
    text = launching.kernel_text(source, found)
    assert ("#define CHIP_LANES" in text) == (launch[1] > 0)
    assert f"__launch_bounds__({launch[0]}, {1 if launch[1] else launching.BLOCKS})" in text


@pytest.mark.parametrize(("bytes", "chunks"), [(549, 7), (100, 16), (4400, 2), (50_000, 2)])
def test_a_launch_plays_fewer_chunks_of_large_lanes(bytes, chunks):
    lanes = jax.ShapeDtypeStruct((bytes, 128), jnp.bool_)
    assert device_loop._burst("cuda", lanes) == chunks


@pytest.fixture
def launched(monkeypatch):
    """`(step, carry) -> (line of the program that launches a kernel, text of the kernel)`."""
    texts = []

    def to_ptx(text, architecture):
        texts.append(text)
        return f"PTX for {architecture}"

    def lowered(step, carry):
        lanes = carry[0].shape[-1]
        burst = cpp.repeated(step, lanes, lambda carry: carry[0] > 0, 5, cuda.GPU)
        text = jax.jit(burst).trace(carry).lower(lowering_platforms=("cuda",)).as_text()
        (call,) = [line for line in text.splitlines() if launching.LAUNCH in line]
        return call, *texts

    monkeypatch.setattr(launching, "to_ptx", to_ptx)
    gpu = SimpleNamespace(compute_capability="9.0")
    monkeypatch.setattr(launching.jax, "devices", lambda *_: [gpu])
    return lowered


def test_the_launch_is_part_of_the_program_and_works_in_place(launched):
    lanes = 3 * cuda.LANES_PER_BLOCK
    step = lambda carry: ((carry[0] + 1.0, carry[1] * 2), carry[1])  # noqa: E731
    call, _ = launched(step, (jnp.zeros(lanes), jnp.zeros((2, lanes), int)))
    assert "PTX for 90" in call
    assert call.count("#stablehlo.output_operand_alias<") == 2
    assert re.search(r"grid_x = 3 : i32", call)


def test_large_tables_are_in_the_memory_of_a_block(launched):
    lanes = 2 * cuda.LANES_PER_BLOCK
    step = lambda carry: ((carry[0] + carry[1][0, 0], carry[1] * 2), carry[0])  # noqa: E731
    call, text = launched(step, (jnp.zeros(lanes), jnp.zeros((20, 20, lanes))))
    for name, number in [("grid_x", 4), ("block_x", 64), ("shared_mem_bytes", 64 * 20 * 20 * 8)]:
        assert f"{name} = {number} : i32" in call
    assert "#define CHIP_LANES 64\n" in text
    assert text.count("ON_CHIP(3200)") == text.count("on_chip + 0 * CHIP_LANES") == 1


@pytest.mark.parametrize(("given", "expected"), [("8.0", 80), ("9.0", 90), ("10.0", 90)])
def test_newer_gpus_get_a_program_that_older_drivers_know(given, expected):
    assert cuda.architecture(given) == expected


@pytest.mark.parametrize(("given", "expected"), [("9.5", "8.0"), ("8.4", "8.0"), ("7.8", "7.8")])
def test_the_version_of_a_program_is_one_that_older_drivers_know(given, expected):
    head = "//\n.version {}\n.target sm_90\n// .version 1.1\n"
    assert nvrtc._relabelled(head.format(given)) == head.format(expected)


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setattr(nvrtc, "found_library", lambda: None)
    with pytest.raises(cuda.NoCompiler, match=r"NVRTC.* comes with jax\[cuda13\]"):
        cuda.to_ptx("no program", 90)


def test_a_broken_compiler_is_named(monkeypatch, tmp_path):
    path = tmp_path / "libnvrtc.so"
    path.write_text("no library")
    monkeypatch.setattr(nvrtc, "found_library", lambda: path)
    with pytest.raises(cuda.NoCompiler, match="cannot be loaded"):
        cuda.to_ptx("another", 90)


@pytest.mark.parametrize("folder", [*nvrtc.IN_PACKAGES, "toolkit/lib64"])
def test_the_compiler_is_found_in_packages_and_in_a_toolkit(monkeypatch, tmp_path, folder):
    path = tmp_path / folder / "libnvrtc.so.13"
    path.parent.mkdir(parents=True)
    path.write_text("")
    monkeypatch.setattr(nvrtc.sys, "path", [str(tmp_path)])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    assert nvrtc.found_library.__wrapped__() == path
    path.unlink()
    assert nvrtc.found_library.__wrapped__() is None


def test_a_cpu_refuses_it():
    with pytest.raises(ValueError, match="for a GPU of NVIDIA, the device is a cpu"):
        jb.simulate(SOARE, LINGAPE, replications=3, engine="cuda")


def test_a_gpu_without_the_compiler_refuses_it(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(checks, "found_library", lambda: None)
    with pytest.raises(ValueError, match="needs NVIDIA's run-time compiler"):
        jb.simulate(SOARE, LINGAPE, replications=3, engine="cuda")


def first_of(order):
    """An algorithm that draws the arm that `order(state) [K]` names first."""

    def build(arms):
        def ask(key, state):
            first = order(state)[0]
            return Move(arm=first, count=None, done=state.min() > 5, answer=first)

        return Algorithm(
            lambda key: jnp.zeros(len(arms)),
            ask,
            lambda state, move, total: state.at[move.arm].add(1.0),
        )

    return build


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (
            lambda x: jax.lax.top_k(-x, 2)[1].astype(int),
            r"do not know the operation 'top_k'.*'xla'",
        ),
        (once_for_equal(jnp.argsort), "designs that lanes share.*'xla' computes them once"),
    ],
    ids=["unknown", "shared"],
)
def test_xla_plays_what_is_not_for_a_kernel(monkeypatch, order, message):
    texts = []
    with pytest.warns(RuntimeWarning, match=message):
        runs = play(first_of(order), monkeypatch, texts, max_pulls=40)
    assert runs.meta["engine"] == "xla"
    assert (runs.arm_pulls == 6).all()
    assert not texts


@needs_nvrtc
@pytest.mark.parametrize("architecture", [80, 90])
def test_nvrtc_compiles_a_simulation(kernel, architecture):
    ptx = cuda.to_ptx(kernel, architecture)
    assert ".version 8.0" in ptx
    assert f".target sm_{architecture}" in ptx
    assert ".entry run(" in ptx


@needs_nvrtc
def test_nvrtc_names_the_first_error():
    with pytest.raises(cuda.NoCompiler, match="undefined"):
        cuda.to_ptx("__device__ int f() { return nothing; }", 90)
