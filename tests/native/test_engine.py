"""The native engine plays every algorithm as XLA does, with any number of lanes and devices."""

import itertools
import os
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import program_sizes
import pytest
from cases import CASES, REPRESENTATIVES
from params import params
from programs import simulate
from run_settings import SETTINGS, assert_all_the_same

import jaxbandits as jb
from jaxbandits.compilers import cpp
from jaxbandits.compilers.cpp import build, compiling
from jaxbandits.compilers.cuda import NoCompiler
from jaxbandits.core import Algorithm, Move
from jaxbandits.engine import checks, choices, device_loop, host_loop
from jaxbandits.engine.episode import MoveTraits
from jaxbandits.engine.partition import prepared
from jaxbandits.engine.traits import Sizes, Traits, has_loops, shapes_of, sizes
from jaxbandits.instances.contextual import Labelled

FIXED = {case.name for case in CASES if case.fixed}
# Whether a fit to separable rewards counts as converged depends on the last bits.
SEPARABLE = ("gse_logistic", "ofu_ecolog")
RANDOM = (SETTINGS["random"][0], SETTINGS["random"][1], {})
PLAYED = {case.name: (case.instance, case.build, case.options) for case in CASES}
PLAYED["random instances"] = RANDOM
SOARE = jb.instances.soare(3, angle=0.5)
LINGAPE = partial(jb.lingape, delta=0.1)


@pytest.fixture
def programs(monkeypatch):
    """The programs that a test compiles, by their engine."""
    found, whole = {}, host_loop.program

    def noted(structure, shape, *others):
        return found.setdefault(shape.engine, whole(structure, shape, *others))

    monkeypatch.setattr(host_loop, "program", noted)
    return found


@pytest.mark.parametrize("name", params(PLAYED, always=[*REPRESENTATIVES, "random instances"]))
def test_replications_are_those_of_xla(name, programs):
    instance, algorithm, options = PLAYED[name]
    ours, other = (
        simulate(instance, algorithm, replications=96, engine=engine, **options)
        for engine in ("native", "xla")
    )
    # Contextual instances are played one lane after another, see `schedules`.
    is_contextual = isinstance(instance, Labelled)
    assert ours.meta["engine"] == ("in turn" if is_contextual else "native")
    assert other.meta["engine"] == ("in turn" if is_contextual else "xla")
    # Numbers differ in their last bits, which rarely changes a choice.
    same = (ours.arm_pulls == other.arm_pulls).all(1)
    assert same.mean() >= 0.97, same.mean()
    differ = ours.arm_pulls.std(0).max() > 0
    assert differ == (name not in FIXED), "if no reward changes the draws, the case is `fixed`"
    for key, values in ours.info.items():
        alike = np.isclose(values[same], other.info[key][same], rtol=1e-9, atol=0)
        assert alike.mean() >= (0.97 if name in SEPARABLE else 1.0), key
    for field in ("pulls", "answer", "correct", "stopped"):
        np.testing.assert_array_equal(getattr(ours, field)[same], getattr(other, field)[same])
    if ours.regret is not None:
        np.testing.assert_allclose(ours.regret[same], other.regret[same], rtol=1e-12)
    program_sizes.check(name, programs)


@pytest.mark.optimised
def test_rounding_does_not_decide_between_arms_that_were_drawn_equally_often():
    instance = jb.instances.soare(5, angle=0.3)
    ours, other = (
        simulate(instance, LINGAPE, replications=96, engine=engine) for engine in ("native", "xla")
    )
    np.testing.assert_array_equal(ours.arm_pulls, other.arm_pulls)


@pytest.mark.parametrize("name", params(["lingape", "gse_uniform", "glm_tsl"], slow=["glm_tsl"]))
def test_batch_and_devices_change_nothing(name):
    assert len(jax.devices()) == 4
    instance, build, options = PLAYED[name]
    ways = [
        {"batch": batch, "devices": devices}
        for batch, devices in itertools.product([1, 64, None], [None, 4])
    ]
    assert_all_the_same(instance, build, ways, engine="native", **options)


def test_calls_that_differ_in_numbers_share_their_program(monkeypatch):
    algorithm = partial(jb.sequential_halving, budget=100)
    jb.simulate(jb.instances.canonical(4, gap=1.0), algorithm, replications=3, engine="native")

    def refuse(*args):
        raise AssertionError("compiled again")

    monkeypatch.setattr(build, "_compiled", refuse)
    other = partial(jb.sequential_halving, budget=90)
    runs = jb.simulate(jb.instances.canonical(4, gap=2.0), other, replications=3, engine="native")
    assert (runs.pulls <= 90).all()


def test_an_unknown_or_impossible_engine_is_refused(monkeypatch):
    play = partial(jb.simulate, SOARE, LINGAPE, replications=3)
    with pytest.raises(
        ValueError, match="engine must be one of 'auto', 'xla', 'native', 'cuda', got 'fast'"
    ):
        play(engine="fast")
    monkeypatch.setattr(checks, "compiler", lambda: None)
    with pytest.raises(ValueError, match="needs a C"):
        play(engine="native")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with pytest.raises(ValueError, match="for a CPU, the device is a gpu"):
        play(engine="native")


def ranking(arms):
    """An algorithm with an operation for which the compiler has no rule."""

    def ask(key, state):
        nearest = jax.lax.top_k(state, 1)[0][0].astype(int)
        return Move(arm=nearest, count=None, done=nearest < 0, answer=nearest)

    return Algorithm(lambda key: jnp.zeros(3), ask, lambda state, move, total: state + 1.0)


def test_an_operation_without_a_rule_is_named():
    with pytest.raises(cpp.Unsupported, match="'top_k'"):
        jb.simulate(SOARE, ranking, replications=3, max_pulls=20, engine="native")


def test_the_environment_names_the_compiler(monkeypatch):
    monkeypatch.setenv("CXX", os.path.join(os.sep, "nowhere", "compiler"))
    assert cpp.compiler() is None


def test_a_compiler_that_is_not_found_is_named_once(monkeypatch, recwarn):
    named = os.path.join(os.sep, "nowhere", "another compiler")
    monkeypatch.setenv("CXX", named)
    text = f"CXX names the C++ compiler {named!r}, which is not found: XLA plays"
    for _ in range(2):
        runs = simulate(SOARE, LINGAPE)
        assert runs.meta["engine"] == "xla"
    reason = f"native needs a C++ compiler: CXX names {named!r}, which is not found"
    assert runs.meta["engine_reason"] == reason
    (warning,) = recwarn
    assert str(warning.message).startswith(text)
    assert warning.category is RuntimeWarning
    with pytest.raises(ValueError, match=r"engine 'native' needs .*found none: CXX names '.*'$"):
        simulate(SOARE, LINGAPE, engine="native")


def test_a_compiler_that_never_ends_is_killed_and_xla_plays(monkeypatch, tmp_path):
    path = tmp_path / "compiler"
    path.write_text("#!/bin/sh\ncase $1 in --version) echo 1;; *) exec sleep 60;; esac\n")
    path.chmod(0o700)
    monkeypatch.setenv("CXX", str(path))
    monkeypatch.setattr(compiling, "MOST_SECONDS", 0.3)
    monkeypatch.setattr(choices, "_failed", {})
    killed = f"the C\\+\\+ compiler {path} was killed after 0.3 s without a result; XLA plays this"
    new = jb.instances.soare(11)  # of a shape that no other test has compiled
    with pytest.warns(RuntimeWarning, match=killed):
        runs = jb.simulate(new, partial(jb.lingape, delta=0.31), replications=3, max_pulls=30)
    assert runs.meta["engine"] == "xla"


def test_auto_is_native_on_a_cpu_and_the_default():
    for algorithm in (LINGAPE, partial(jb.gse, budget=40)):
        chosen = simulate(SOARE, algorithm)
        assert (chosen.meta["engine"], chosen.meta["engine_reason"]) == ("native", "fastest")
        native = simulate(SOARE, algorithm, engine="native")
        assert native.meta["engine_reason"] == "asked"
        np.testing.assert_array_equal(chosen.arm_pulls, native.arm_pulls)


def sizes_of(instance, build):
    """What the choice of an engine depends on."""
    structure, numbers = prepared(instance, build, None)
    with jax.enable_x64(True):
        return sizes(structure, shapes_of(numbers), 0)


@pytest.mark.parametrize(
    ("build", "own", "replications", "engine"),
    [
        (jb.rage, False, 1000, "native"),
        (jb.rage, False, 1001, "xla"),  # computes a design once for all lanes
        (jb.rage, True, 1001, "native"),  # each lane has arms, and designs, of its own
        (partial(jb.gse, budget=40), False, 10**6, "native"),
        (jb.lingape, False, 10**6, "native"),
    ],
)
def test_auto_counts_designs_that_lanes_have_in_common(build, own, replications, engine):
    instance = partial(jb.instances.sphere, num_arms=5, dim=3) if own else SOARE
    known = sizes_of(instance, build)
    assert known.own == own
    assert choices.automatic(known, "cpu", replications).engine == engine


def test_auto_counts_large_designs_in_common_sooner():
    def engine(build, replications, table):
        known = sizes_of(SOARE, build)
        return choices.automatic(known, "cpu", replications, largest_table=lambda: table).engine

    large, few = choices.SHARED_BYTES, choices.FEW_OF_LARGE
    assert engine(jb.rage, few + 1, large) == "xla"
    assert engine(jb.rage, few, large) == engine(jb.rage, few + 1, large - 1) == "native"
    assert engine(LINGAPE, few + 1, large) == "native"


def test_auto_plays_very_large_lanes_one_by_one(monkeypatch):
    algorithms = LINGAPE, partial(jb.gse, budget=40)
    side_by_side = [simulate(SOARE, algorithm) for algorithm in algorithms]
    monkeypatch.setattr(choices, "ALONE_BYTES", 0)
    for algorithm, usual in zip(algorithms, side_by_side, strict=True):
        alone = simulate(SOARE, algorithm)
        assert (usual.meta["engine"], alone.meta["engine"]) == ("native", "in turn")
        np.testing.assert_array_equal(alone.arm_pulls, usual.arm_pulls)
    # Lanes share its designs.
    assert choices.automatic(sizes_of(SOARE, jb.rage), "cpu", 12).engine == "native"


@pytest.mark.parametrize(("lane", "most"), [(2**16, 0), (2**17, 1), (2**18, 3), (2**20, 15)])
def test_auto_plays_large_lanes_one_by_one_where_most_would_be_empty(lane, most):
    known = sizes_of(SOARE, LINGAPE)._replace(lane=lane)
    engines = [choices.automatic(known, "cpu", number).engine for number in range(1, 40)]
    assert engines == ["in turn"] * most + ["native"] * (39 - most)


@pytest.mark.parametrize(("tables", "most"), [(2**19, 0), (2**20, 1), (2**21, 3), (2**30, 4)])
def test_auto_plays_a_few_lanes_that_read_large_tables_one_by_one(tables, most):
    known = sizes_of(SOARE, LINGAPE)._replace(tables=tables)
    engines = [choices.automatic(known, "cpu", number).engine for number in range(1, 40)]
    assert engines == ["in turn"] * most + ["native"] * (39 - most)


def test_tables_count_with_all_their_entries():
    few, many = (
        sizes_of(jb.instances.linear(np.eye(dim), np.arange(dim)), LINGAPE).tables
        for dim in (3, 30)
    )
    assert 9 * 8 <= few <= many - 891 * 8


def test_auto_is_xla_without_a_compiler(monkeypatch):
    monkeypatch.setattr(choices, "compiler", lambda: None)
    runs = simulate(SOARE, LINGAPE, engine="auto")
    assert runs.meta["engine"] == "xla"
    assert runs.meta["engine_reason"].startswith("native needs a C++ compiler: found none")


@pytest.mark.parametrize(
    ("error", "warned", "reasons"),
    [
        (cpp.Unsupported("this operation"), 0, ["native lacks this operation"] * 2),
        (
            ChildProcessError("the compiler failed"),
            1,
            [f"native {how}: the compiler failed" for how in ("failed", "has failed before")],
        ),
        (
            NoCompiler("NVRTC failed"),
            1,
            [f"native {how}: NVRTC failed" for how in ("failed", "has failed before")],
        ),
    ],
    ids=["unsupported", "failed", "failed on a GPU"],
)
def test_auto_is_xla_where_no_native_program_can_be_had(monkeypatch, error, warned, reasons):
    whole = host_loop.program

    def program(structure, shape, *others):
        if shape.engine == "native":
            raise error
        return whole(structure, shape, *others)

    monkeypatch.setattr(host_loop, "program", program)
    monkeypatch.setattr(choices, "_failed", {})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for reason in reasons:  # it is not tried a second time
            runs = simulate(SOARE, LINGAPE)
            assert (runs.meta["engine"], runs.meta["engine_reason"]) == ("xla", reason)
    assert [str(one.message).partition("; ")[0] for one in found] == [str(error)] * warned
    with pytest.raises(type(error), match=str(error)):
        simulate(SOARE, LINGAPE, engine="native")


@pytest.mark.parametrize(
    ("one_arm", "lane", "library", "engine"),
    [
        (True, 500, "nvrtc", "cuda"),
        (True, 500, None, "xla"),
        (True, 100_000, "nvrtc", "xla"),
        (False, 500, "nvrtc", "xla"),
    ],
)
def test_auto_on_a_gpu(monkeypatch, one_arm, lane, library, engine):
    monkeypatch.setattr(choices, "found_library", lambda: library)
    traits = Traits(MoveTraits(one_arm, True, True))
    assert choices.automatic(Sizes(lane, 10, False, traits), "cuda", 100).engine == engine


@pytest.mark.filterwarnings("ignore:lin_ucb assumes linear means")
@pytest.mark.parametrize(("build", "engine"), [(jb.glm_tsl, "cuda"), (jb.lin_ucb, "xla")])
def test_auto_on_a_gpu_counts_loops_of_large_lanes(monkeypatch, build, engine):
    """XLA lets all lanes wait in each step of a fit."""
    monkeypatch.setattr(choices, "found_library", lambda: "nvrtc")
    monkeypatch.setattr(choices, "THREAD_BYTES", 0)
    key = jax.random.key(3, impl="threefry2x32")
    cube = jb.instances.logistic_cube(key, num_arms=6, dim=2)
    structure, numbers = prepared(cube, build, 50)
    of_a_round = structure, shapes_of(numbers), 1
    with jax.enable_x64(True):
        looping = partial(has_loops, *of_a_round)
        assert choices.automatic(sizes(*of_a_round), "cuda", 100, looping).engine == engine


def _rotated(key):
    """Arms that are drawn by an operation without a rule for C++."""
    arms, _ = jnp.linalg.qr(jax.random.normal(key, (4, 4)))
    return jb.instances.linear(arms, jnp.array([1.0, 0.0, 0.0, 0.0]))


def test_xla_draws_instances_that_have_no_rule():
    with pytest.raises(cpp.Unsupported, match=r"qr|householder"):
        jax.jit(cpp.renewed(lambda n: jnp.linalg.qr(n * jnp.eye(3))[0], 16))(
            np.ones(16, bool), np.zeros((3, 3, 16)), np.arange(16.0)
        )
    play = partial(simulate, _rotated, partial(jb.sequential_halving, budget=40), replications=40)
    native, xla = play(engine="native"), play(engine="xla")
    np.testing.assert_array_equal(native.arm_pulls, xla.arm_pulls)
    np.testing.assert_array_equal(native.correct, xla.correct)


def test_large_lanes_are_started_by_xla(monkeypatch):
    play = partial(simulate, jb.instances.soare(3), partial(jb.sequential_halving, budget=40))
    usual = play(engine="native")
    host_loop.program.cache_clear()
    monkeypatch.setattr(device_loop, "STARTED_BYTES", 0)
    monkeypatch.setattr(device_loop, "renewed", None)
    monkeypatch.setenv("JAXBANDITS_CACHE", "off")
    by_xla = play(engine="native")
    host_loop.program.cache_clear()
    np.testing.assert_array_equal(by_xla.arm_pulls, usual.arm_pulls)


PLACES = ("draw", "init", "ask")


@pytest.mark.parametrize(
    "places",
    params([PLACES, *((place,) for place in PLACES)], always=["draw, init, ask"], name=", ".join),
)
def test_callbacks_of_constants_are_called(places):
    calls = []

    def here(place):
        if place in places:
            jax.debug.callback(lambda _: calls.append(place), 3)

    def drawn(key):
        here("draw")
        return jb.instances.sphere(key, 5, 3)

    def algorithm(arms):
        whole = jb.sequential_halving(arms, budget=30)

        def init(key):
            here("init")
            return whole.init(key)

        def ask(key, state):
            here("ask")
            return whole.ask(key, state)

        return Algorithm(init, ask, whole.tell)

    runs = simulate(drawn, algorithm)
    jax.effects_barrier()
    assert runs.meta["engine"] == "native"
    assert set(calls) == set(places)
