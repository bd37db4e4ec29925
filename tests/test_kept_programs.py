"""Programs that are kept: found again, never mistaken, read from safe folders alone."""

import dataclasses
import functools
import gc
import os
import stat
import subprocess
import sys
import textwrap
import threading
import warnings

import cases
import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.cli.cache import all_programs_kept
from jaxbandits.compilers.cpp import compiler
from jaxbandits.core import Algorithm
from jaxbandits.engine import host_loop, traits
from jaxbandits.engine.partition import prepared
from jaxbandits.live import algorithm as live_algorithm
from jaxbandits.system import keeping, kept_programs
from jaxbandits.system.named import text_of
from jaxbandits.theory import bounds

LINGAPE = functools.partial(jb.lingape, delta=0.1)
BUDGETED = functools.partial(jb.sequential_halving, budget=30)  # quick to compile
SOARE = jb.instances.soare(2, angle=0.5)
ENGINES = ["xla", pytest.param("native", marks=pytest.mark.skipif(not compiler(), reason="no C++"))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of programs, while JAX keeps none."""
    monkeypatch.setenv("JAXBANDITS_CACHE", str(tmp_path / "kept"))
    kept_programs._usable.cache_clear()
    kept_programs._unusable.cache_clear()
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    forget()  # what another test has played in this process would not be kept again
    yield tmp_path / "kept"
    jax.config.update("jax_enable_compilation_cache", before)
    forget()


def forget():
    """As in a new process, nothing is compiled or traced."""
    for cached in (*keeping.remembered._caches, traits._sizes, traits._traced):
        cached.cache_clear()


def play(build=LINGAPE, **options):
    return jb.simulate(SOARE, build, replications=16, batch=16, **options)


@pytest.fixture
def not_compiled(monkeypatch):
    """Makes lowering a program an error."""

    def refused(*args):
        raise AssertionError("a program was traced")

    def arm():
        forget()
        monkeypatch.setattr(host_loop, "run_queue", refused)
        monkeypatch.setattr(traits, "example_lane", refused)

    return arm


def files(folder):
    return sorted(path.name for path in (folder / "programs").iterdir())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_is_found_again_without_tracing(folder, not_compiled, engine):
    first = play(engine=engine)
    kept = files(folder)
    assert len(kept) == 2  # shapes and program
    not_compiled()
    again = play(engine=engine)
    np.testing.assert_array_equal(again.arm_pulls, first.arm_pulls)
    # Other numbers are no other program.
    assert (play(functools.partial(jb.lingape, delta=0.2), engine=engine).pulls > 0).all()
    assert files(folder) == kept


def test_another_process_finds_it(folder):
    code = """
        import sys
        from functools import partial
        import jaxbandits as jb
        from jaxbandits.engine import host_loop, traits
        if sys.argv[1] == "find":
            host_loop.run_queue = traits.example_lane = None
        algorithm = partial(jb.sequential_halving, budget=30)
        runs = jb.simulate(jb.instances.soare(2, angle=0.5), algorithm, replications=16)
        print(runs.pulls.sum())
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    printed = [
        subprocess.run([*command, what], capture_output=True, text=True, check=True).stdout
        for what in ("make", "find")
    ]
    assert printed[0] == printed[1]


ARMS = np.random.default_rng(7).normal(size=(5, 2))
ON_KNOWN_NUMBERS = {
    "a design": lambda: jb.design.wynn(ARMS, max_iterations=3).weights,
    "a rounding": lambda: jb.rounding.largest_remainder([0.2] * 5, 12),
    "a decorated function": lambda: jb.design.log_det(ARMS, [0.2] * 5),
}


@pytest.mark.parametrize("what", ON_KNOWN_NUMBERS)
def test_a_kernel_on_known_numbers_is_found_again_without_tracing(folder, monkeypatch, what):
    first = ON_KNOWN_NUMBERS[what]()
    kept, whole = files(folder), keeping.program
    assert len(kept) == 1
    forget()

    def refused():
        raise AssertionError("a kernel was traced")

    monkeypatch.setattr(keeping, "program", lambda name, _, *more: whole(name, refused, *more))
    np.testing.assert_array_equal(ON_KNOWN_NUMBERS[what](), first)
    assert files(folder) == kept


def test_a_function_and_what_decorates_it_are_two_things():
    decorated = bounds._rho
    texts = [text_of(decorated), text_of(decorated.__wrapped__)]
    assert len(set(texts)) == 2


def test_other_options_sizes_and_flags_are_other_programs(folder, monkeypatch):
    play()
    kept = files(folder)
    play(functools.partial(jb.lingape, delta=0.1, threshold="self_normalised"))
    assert len(files(folder)) == len(kept) + 2
    play(horizon=50, max_pulls=100)
    assert len(files(folder)) == len(kept) + 4
    forget()
    monkeypatch.setattr(host_loop, "_flags", lambda *_: {"xla_backend_optimization_level": 1})
    play()
    assert len(files(folder)) == len(kept) + 5  # the shapes are the same


def test_a_program_that_jax_has_kept_is_not_kept_again(folder):
    """What was read cannot be written: its functions would be missing when it is called."""
    jax.config.update("jax_enable_compilation_cache", True)

    def played():
        forget()
        with all_programs_kept():
            pulls = play(BUDGETED, engine="xla").pulls
        return pulls.sum(), {name.partition(".")[0] for name in files(folder)}

    first, both = played()
    for path in (folder / "programs").iterdir():  # as if the package had changed
        path.unlink()
    again, shapes = played()  # by JAX's own file, which is removed then
    third, new = played()
    last, kept_then = played()
    assert first == again == third == last
    assert len(shapes) == len(both) - 1
    assert both == new == kept_then


@pytest.mark.usefixtures("folder")
def test_settings_and_sources_make_other_names(monkeypatch):
    name = keeping.name_of("a part")
    assert keeping.name_of("a part") == name != keeping.name_of("another")
    with jax.enable_x64(not jax.config.jax_enable_x64):
        assert keeping.name_of("a part") != name
    with jax.threefry_partitionable(not jax.config.jax_threefry_partitionable):
        assert keeping.name_of("a part") != name
    monkeypatch.setenv("XLA_FLAGS", "--another")
    assert keeping.name_of("a part") != name
    monkeypatch.undo()
    monkeypatch.setattr(keeping, "_sources", lambda: ("other files",))
    assert keeping.name_of("a part") != name


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", [case.name for case in cases.CASES])
def test_every_algorithm_of_the_package_is_found_by_its_name(name):
    case = cases.named(name)
    structure, numbers = prepared(case.instance, case.build, case.options.get("horizon"))
    found = keeping.name_of(structure, traits.shapes_of(numbers))
    other = structure._replace(debug=True)
    assert found not in (None, keeping.name_of(other, traits.shapes_of(numbers)))


def own(step):
    """A constructor that no other process can find by its name."""

    def constructor(arms):
        inner = jb.uniform(arms)

        def tell(state, move, total):
            return inner.tell(state, move, step * total)

        return inner._replace(tell=tell)

    return constructor


def test_an_algorithm_of_the_user_is_found_by_its_text(folder, monkeypatch):
    play(own(1.0), max_pulls=50)
    kept = files(folder)
    assert len(kept) == 1
    forget()
    with monkeypatch.context() as patch:
        patch.setattr(jax.stages.Lowered, "compile", None)
        play(own(1.0), max_pulls=50)
    play(own(2.0), max_pulls=50)
    assert len(files(folder)) == 2


@dataclasses.dataclass
class Labelled:
    """A state with a part that is no array."""

    label: str
    draws: object


jax.tree_util.register_dataclass(Labelled, data_fields=["draws"], meta_fields=["label"])


def with_options(used, label="first"):
    """A constructor of which one option of two is used."""

    def constructor(arms, *, alpha=1.0, beta=7.0):
        inner = jb.uniform(arms)
        scale = alpha if used == "alpha" else beta

        def init(key):
            return Labelled(label, inner.init(key))

        def ask(key, state):
            move = inner.ask(key, state.draws)
            return move._replace(info={"scale": jax.numpy.asarray(scale)})

        def tell(state, move, total):
            return Labelled(label, inner.tell(state.draws, move, total))

        return Algorithm(init, ask, tell)

    return constructor


def test_arguments_that_are_not_used_are_not_mixed_up(folder):
    found = []
    for used, label in [("alpha", "first"), ("beta", "first"), ("beta", "second")]:
        forget()
        build = functools.partial(with_options(used, label), alpha=1.0, beta=7.0)
        found.append(set(play(build, max_pulls=40).info["scale"].tolist()))
        found.append(float(jb.Live(build, np.eye(2)).info["scale"]))
    assert found == [{1.0}, 1.0, {7.0}, 7.0, {7.0}, 7.0]


def test_a_constructor_that_reads_a_file_has_no_name(folder, tmp_path):
    file = tmp_path / "cars.csv"
    np.savetxt(file, np.random.default_rng(0).uniform(1, 9, size=(8, 26)), delimiter=",")
    source = functools.partial(jb.instances.automobile, path=file, num_arms=4)
    structure, _ = prepared(source, BUDGETED)
    assert structure.traces is None
    assert keeping.name_of(structure) is None
    assert keeping.name_of(structure._replace(files=())) is not None


def test_tables_that_a_function_of_the_user_holds_are_part_of_its_program(folder):
    """Also large ones, which a text of a program may leave out."""

    def holding(table):
        def constructor(arms):
            inner = jb.uniform(arms)

            def ask(key, state):
                move = inner.ask(key, state)
                entry = jax.numpy.asarray(table)[state[0].counts.sum()]
                return move._replace(info={"entry": entry})

            return inner._replace(ask=ask)

        return constructor

    for entry, number in [(1.0, 1), (2.0, 2), (1.0, 2)]:
        forget()
        table = np.full(2**18, entry)
        assert set(play(holding(table), max_pulls=50).info["entry"].tolist()) == {entry}
        assert len(files(folder)) == number


def test_after_an_edit_of_the_package_nothing_has_a_name(folder, monkeypatch):
    assert keeping.name_of(1) is not None
    path = next(iter(keeping.STAMPS))
    monkeypatch.setitem(keeping.STAMPS, path, (0, 0, 0))
    assert keeping.name_of(1) is None
    monkeypatch.undo()


def test_objects_of_users_may_raise_whatever_they_like(folder):
    class Odd:
        _rules = None

        def __reduce__(self):
            raise TypeError("an open file")

        def __repr__(self):
            raise KeyError("a text")

    assert keeping.name_of(Odd()) is None
    named = {"__name__": "builtins"}
    exec("def len(): pass\nclass int: pass", named)
    assert keeping.name_of(named["len"]) is None
    assert keeping.name_of(named["int"]) is None
    assert keeping.name_of(len) is None
    assert keeping.name_of(int) is not None


@pytest.mark.parametrize("named", ["~nobody-of-this-name/x", "programs"])
def test_a_folder_that_cannot_be_is_a_warning(monkeypatch, named):
    monkeypatch.setenv("JAXBANDITS_CACHE", named)
    kept_programs._usable.cache_clear()
    with pytest.warns(RuntimeWarning, match="compiled programs are not kept: "):
        assert kept_programs.folder() is None


@pytest.mark.usefixtures("folder")
def test_things_that_another_process_could_mean_otherwise_have_no_name():
    local = own(1.0)
    assert keeping.name_of(local) is None
    assert keeping.name_of([functools.partial(local, 1)]) is None
    assert keeping.name_of(object()) is None
    assert keeping.name_of(cases) is None
    rootless = own(2.0)
    rootless.__module__ = None
    assert keeping.name_of(rootless) is None
    assert keeping.name_of(own) is None  # of this module, which is no part of the package


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "harm", [pytest.param("cut short", marks=SLOW), "garbage", "others may write"]
)
def test_what_is_damaged_or_unsafe_is_compiled_anew(folder, harm):
    first = play(BUDGETED)
    kept = files(folder)
    for path in (folder / "programs").iterdir():
        data = path.read_bytes()
        if harm == "others may write":
            path.chmod(0o666)
        else:
            path.write_bytes(data[:-9] if harm == "cut short" else data[::-1])
    forget()
    with pytest.warns(RuntimeWarning, match="a kept program is compiled anew: ") as warned:
        again = play(BUDGETED)
    assert len(warned) == len(kept)
    np.testing.assert_array_equal(again.pulls, first.pulls)
    assert len(files(folder)) == len(kept)
    forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(BUDGETED)


def test_nobody_waits_at_a_pipe_in_place_of_a_program(tmp_path):
    tmp_path.chmod(0o700)
    pipe = tmp_path / kept_programs.file_name("name", b"")
    os.mkfifo(pipe, 0o600)
    with pytest.warns(RuntimeWarning, match="compiled anew: .* it is a named pipe, and no file"):
        assert kept_programs.intact([pipe], "name", "kept") is None
    assert not pipe.exists()


def test_bytes_that_are_no_program_are_compiled_anew(folder):
    play(BUDGETED)
    names = [name.partition(".")[0] for name in files(folder)]
    for path in (folder / "programs").iterdir():
        path.unlink()
    for name in names:
        kept_programs.keep(name, b"something else")
    forget()
    with pytest.warns(RuntimeWarning, match="a kept program is compiled anew: "):
        assert (play(BUDGETED).pulls > 0).all()


def test_a_folder_that_others_may_write_to_is_not_used(folder):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="compiled programs are not kept: .*JAXBANDITS_CACHE"):
        play(BUDGETED)
    assert not any(folder.iterdir())


def test_the_folder_is_the_users_alone(folder):
    play(BUDGETED)
    for path in (folder, folder / "programs", *(folder / "programs").iterdir()):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_off_keeps_nothing(folder, monkeypatch):
    monkeypatch.setenv("JAXBANDITS_CACHE", "off")
    play(BUDGETED)
    assert not folder.exists()


def test_a_folder_in_the_users_home_may_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("JAXBANDITS_CACHE", "~/programs")
    assert kept_programs.folder() == tmp_path / "programs"


def test_a_full_disk_is_a_warning(folder, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device", "a file")

    monkeypatch.setattr(kept_programs.tempfile, "mkstemp", full)
    with pytest.warns(RuntimeWarning, match="is not kept: a file: No space left"):
        assert (play(BUDGETED).pulls > 0).all()


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    """And nothing that is not ours."""
    digests = ["0" * 32, "1" * 32]
    ours = [
        f"jaxbandits-native/jaxbandits_{'.'.join(digests)}.so",
        f"programs/{'.'.join(digests)}.program",
        f"jit_f-{'0' * 64}-cache",
    ]
    others = ["thesis.tex", "programs/thesis.tex", "folder/thesis.tex", "programs/a.program"]
    for age, name in enumerate([*ours, *others]):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 10)
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    new = tmp_path / "programs" / ".new-left"
    new.write_bytes(b"")
    os.utime(new, (1e9 + 1, 1e9 + 1))
    kept_programs.prune(tmp_path, most=25)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert not new.exists()
    assert found == {*ours[:2], *others}


def test_a_program_that_is_too_large_takes_no_room_of_older_ones(tmp_path):
    """What fills the room exactly stays, and so does what another process is writing now."""
    (tmp_path / "programs").mkdir()
    names = [f"programs/{digit * 32}.{digit * 32}.program" for digit in "012"]
    for age, (name, size) in enumerate(zip(names, (10, 40, 10), strict=True)):
        (tmp_path / name).write_bytes(b"x" * size)
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    (tmp_path / "programs" / ".new-now").touch()
    kept_programs.prune(tmp_path, most=20)
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*"))
    assert left == ["programs/.new-now", names[0], names[2]]


def test_reading_counts_as_use(folder):
    kept_programs.keep("name", b"bytes")
    (path,) = (folder / "programs").iterdir()
    os.utime(path, (0, 0))
    assert kept_programs.read("name") == b"bytes"
    assert path.stat().st_mtime > 1e9


def test_live_finds_its_programs(folder, monkeypatch):
    def drawn():
        live = jb.Live(jb.lin_ts, np.eye(2), seed=1)
        arms = []
        for _ in range(3):
            arms.append(live.ask())
            live.tell(1.0)
        return arms

    first = drawn()
    kept = files(folder)
    assert len(kept) == 4  # shapes, init, ask and tell
    forget()
    for name in ("_init", "_ask", "_tell"):
        patched = functools.wraps(getattr(live_algorithm, name))(lambda *_: 1 / 0)
        monkeypatch.setattr(getattr(live_algorithm, name), "__code__", patched.__code__)
    assert drawn() == first
    assert files(folder) == kept


def test_programs_are_forgotten_before_there_are_too_many_mappings(monkeypatch):
    play(BUDGETED)
    assert host_loop.program.cache_info().currsize > 0
    monkeypatch.setattr(keeping, "MOST_MAPPINGS", 0.4)
    monkeypatch.setattr(keeping, "mappings_used", lambda: 0.3)
    keeping.make_room()
    assert host_loop.program.cache_info().currsize > 0
    monkeypatch.setattr(keeping, "mappings_used", iter([0.5, 0.1]).__next__)
    keeping.make_room()
    assert host_loop.program.cache_info().currsize == 0


def test_mappings_are_counted_once_in_some_programs(monkeypatch):
    counts = []
    monkeypatch.setattr(keeping, "mappings_used", lambda: counts.append(0.0) or 0.0)
    lowered = jax.jit(lambda x: x + 1.0).lower(1.0)
    for _ in range(2 * keeping.BETWEEN):
        keeping.compiled(lowered)
    assert len(counts) == 2


def test_garbage_is_looked_for_again_after_blocks_that_overlap():
    """A second thread may enter before the first leaves, and leave after it."""
    assert gc.isenabled()
    with keeping.collector_paused:
        assert not gc.isenabled()
    entered, left = threading.Event(), threading.Event()

    def other():
        with keeping.collector_paused:
            entered.set()
            left.wait(10)

    thread = threading.Thread(target=other)
    with keeping.collector_paused:
        thread.start()
        assert entered.wait(10)
    assert not gc.isenabled()
    left.set()
    thread.join()
    assert gc.isenabled()
    gc.disable()
    try:
        with keeping.collector_paused:
            pass
        assert not gc.isenabled()  # as the user has set it
    finally:
        gc.enable()
