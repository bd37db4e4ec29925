"""Compiled libraries and their folder: each failure gives one line and damages nothing."""

import ctypes
import errno
import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import pytest
from programs import jax_keeps_programs

import jaxbandits as jb
from jaxbandits.compilers import cpp
from jaxbandits.compilers.cpp import build, compiling
from jaxbandits.engine import choices

SOURCE = 'extern "C" int run() {{ return {number}; }}'


@pytest.fixture
def library_folder(tmp_path):
    """The folder of libraries within the folder that JAX was given for its programs."""
    with jax_keeps_programs(tmp_path / "programs"):
        yield tmp_path / "programs" / build.FOLDER


def run_program(number=7, name="tiny"):
    """The result of a program that is compiled, or loaded if it was kept."""
    return build._library(name, SOURCE.format(number=number)).run()


def fake_compiler(tmp_path, lines, monkeypatch):
    """A shell script as the compiler; it also answers `--version`."""
    path = tmp_path / "fake-c++"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec echo fake 1\n{lines}\n')
    path.chmod(0o700)
    monkeypatch.setenv("CXX", str(path))
    return path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_library_is_kept_and_open_to_the_user_alone(library_folder, monkeypatch):
    assert run_program() == 7
    (kept,) = library_folder.iterdir()
    assert kept.name == f"tiny.{build.digest(kept.read_bytes())}.so"
    assert stat.S_IMODE(library_folder.stat().st_mode) == stat.S_IMODE(kept.stat().st_mode) == 0o700
    made = kept.stat().st_ino
    monkeypatch.setattr(build, "compile_to", None)
    assert run_program(8) == 7  # found by its name, not compiled
    assert kept.stat().st_ino == made


def test_the_name_of_a_library_depends_on_all_it_was_compiled_from(monkeypatch):
    names = []
    monkeypatch.setattr(build, "_libraries", {})

    def library(name, source, often):
        names.append(name)
        raise InterruptedError

    monkeypatch.setattr(build, "_library", library)
    changes = {
        "FLAGS": "-O3",
        "LEVELS": {True: "-O3"},
        "QUICKER": "-fno-inline",
        "_version": lambda path: "another",
        "features": lambda: ("avx9",),
        "HEADERS": (Path(__file__),),
    }

    def register(source="one"):
        with pytest.raises(InterruptedError):
            build.register(source)

    register()
    register("another")
    for name, value in changes.items():
        with monkeypatch.context() as changed:
            changed.setattr(compiling, name, value)
            register()
    register()
    assert names[0] == names[-1]
    assert len(set(names)) == len(names) - 1


@pytest.mark.parametrize("harm", ["cut short", "another byte", "empty", "others may write"])
def test_a_damaged_library_is_compiled_again(library_folder, harm):
    run_program(1)
    (kept,) = library_folder.iterdir()
    whole = kept.read_bytes()
    if harm == "others may write":
        kept.chmod(0o777)
    else:
        other = {"cut short": whole[: len(whole) // 2], "empty": b""}
        kept.write_bytes(other.get(harm, whole[:-1] + bytes([whole[-1] ^ 1])))
    with pytest.warns(RuntimeWarning, match="compiled anew: .*(damaged|others may write)"):
        assert run_program(2) == 2
    (kept,) = library_folder.iterdir()
    assert kept.name == f"tiny.{build.digest(kept.read_bytes())}.so"
    assert run_program(3) == 2


@pytest.mark.parametrize("harm", ["a file", "others may write", "anybody may replace", "read only"])
def test_an_unsafe_folder_is_refused(library_folder, harm, monkeypatch):
    library_folder.parent.mkdir()
    if harm == "a file":
        library_folder.write_text("")
    elif harm == "others may write":
        library_folder.mkdir()
        library_folder.chmod(0o770)
    elif harm == "anybody may replace":
        library_folder.parent.chmod(0o777)
    else:

        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied", str(library_folder))

        monkeypatch.setattr(build, "private_folder", refuse)
    with pytest.warns(RuntimeWarning, match=f"not kept: .*{library_folder.parent}") as warned:
        assert run_program(4) == 4
    assert len(warned) == 1
    assert "\n" not in str(warned[0].message)
    assert not library_folder.is_dir() or not any(library_folder.iterdir())


def test_a_library_that_cannot_be_stored_still_runs(library_folder, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device", str(library_folder))

    monkeypatch.setattr(build.os, "replace", full)
    with pytest.warns(RuntimeWarning, match="not kept: .*No space left"):
        assert run_program(5) == 5
    assert files(library_folder) == []


FAILURES = {
    "fails": ("echo 'x.cc:1: fatal error: no space' >&2; exit 1", "failed with status 1: x.cc:1"),
    "fails without a word": ("exit 3", "failed with status 3"),
    "writes nothing": ("exit 0", "reported success but wrote no library"),
    "writes garbage": ('while [ "$1" != -o ]; do shift; done; echo no > "$2"', "is no library"),
    "hangs": ("sleep 60", "was killed after 0.3 s"),
}


@pytest.mark.parametrize("how", FAILURES)
def test_a_failing_compiler_is_reported(library_folder, how, tmp_path, monkeypatch):
    lines, message = FAILURES[how]
    path = fake_compiler(tmp_path, lines, monkeypatch)
    if how == "hangs":
        monkeypatch.setattr(compiling, "MOST_SECONDS", 0.3)
    began = time.monotonic()
    with pytest.raises(OSError, match=message) as error:
        build.register("no program")
    assert time.monotonic() - began < 30
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert files(library_folder) == []


def test_a_missing_or_broken_compiler_is_reported(tmp_path, monkeypatch):
    path = fake_compiler(tmp_path, "", monkeypatch)
    path.write_text("")  # an empty file cannot be executed
    with pytest.raises(OSError, match="does not start"):
        build.register("anything")
    monkeypatch.setenv("CXX", os.path.join(os.sep, "nowhere", "compiler"))
    assert cpp.compiler() is None
    with pytest.raises(OSError, match=r"no C\+\+ compiler"):
        build.register("anything")


def test_without_a_compiler_of_the_system_that_of_a_package_is_taken(
    library_folder, tmp_path, monkeypatch
):
    package, called = tmp_path / "ziglang", tmp_path / "called"
    package.mkdir()
    (package / "__init__.py").touch()
    zig, real = package / "zig", compiling.compiler()
    to_real = f'"$1 $2 $3" in "cc -xc++ -nostdlib++") shift 3; exec {real} "$@"'
    zig.write_text(f'#!/bin/sh\necho "$ZIG_LOCAL_CACHE_DIR" > {called}\ncase {to_real};; esac\n')
    zig.chmod(0o700)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(compiling, "COMPILERS", ("no-such-compiler",))
    compiling._in_package.cache_clear()
    try:
        assert compiling.compiler() == str(zig)
        assert run_program() == 7
        assert Path(called.read_text().strip()).parent.parent == library_folder
        assert len(files(library_folder)) == 1
    finally:
        monkeypatch.undo()
        compiling._in_package.cache_clear()
    assert compiling.compiler() == real


# The rest of the package is not imported, because that takes seconds.
CHILD = """
import importlib, sys, types, warnings
for name, folder in (
    ("jaxbandits", sys.argv[1]),
    ("jaxbandits.compilers", sys.argv[1] + "/compilers"),
    ("jaxbandits.compilers.cpp", sys.argv[1] + "/compilers/cpp"),
):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
import jax
build = importlib.import_module("jaxbandits.compilers.cpp.build")
warnings.simplefilter("error")
jax.config.update("jax_compilation_cache_dir", sys.argv[2])
print("begins", flush=True)
print(build._library("tiny", sys.argv[3]).run())
"""


def child(library_folder, **environment):
    package = Path(build.__file__).parents[2]
    given = [str(package), str(library_folder.parent), SOURCE.format(number=6)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    return subprocess.Popen([sys.executable, "-c", CHILD, *given], env=environment, **pipes)


@pytest.mark.parametrize(
    "sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_compiler_leaves_nothing_behind(library_folder, sent, tmp_path, monkeypatch):
    began = tmp_path / "began"
    path = fake_compiler(tmp_path, f"echo $$ > {began}; exec sleep 60", monkeypatch)
    process = child(library_folder, CXX=str(path))
    while not (began.exists() and began.read_text()):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    time.sleep(0.5)  # so that the process waits for the compiler
    process.send_signal(sent)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == -sent
    if sent == signal.SIGINT:
        assert errors.splitlines()[-1] == "KeyboardInterrupt"
        assert not Path(f"/proc/{began.read_text().strip()}").exists()
        assert files(library_folder) == []
    else:  # SIGTERM ends the process before it can clear up
        os.kill(int(began.read_text()), signal.SIGKILL)
        (left,) = library_folder.iterdir()
        assert left.name.startswith(build.MAKING)
        os.utime(left, (0, 0))
    monkeypatch.delenv("CXX")
    assert run_program(9) == 9
    assert len(files(library_folder)) == 1  # what was left behind is gone


@pytest.mark.optimised
def test_two_processes_may_compile_the_same_program(library_folder):
    other = child(library_folder)
    assert other.stdout.readline() == "begins\n"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_program(6) == 6
        assert other.communicate(timeout=60) == ("6\n", "")
        assert len(files(library_folder)) == 1
        assert run_program(7) == 6


def test_no_library_is_kept_in_the_cloud(monkeypatch):
    class Config:
        jax_compilation_cache_dir = "gs://bucket/programs"

    monkeypatch.setattr(build.jax, "config", Config)
    assert build._folder() is None


def test_without_room_for_a_library_xla_plays(library_folder, monkeypatch):
    def full(*args, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(build.tempfile, "TemporaryDirectory", full)
    monkeypatch.setattr(choices, "_failed", {})
    halving = partial(jb.sequential_halving, budget=37)
    instance = jb.instances.canonical(23, gap=1.0)  # no other test has compiled this program
    with pytest.warns(RuntimeWarning, match="could not be written: No space left.*XLA plays this"):
        runs = jb.simulate(instance, halving, replications=3)
    assert runs.meta["engine"] == "xla"


def test_a_stored_library_that_does_not_load_is_compiled_anew(library_folder, monkeypatch):
    """Such as one that needs a newer C library."""
    assert run_program() == 7
    whole, refused = ctypes.CDLL, []

    def load(path):
        if not refused:
            refused.append(path)
            raise OSError("version `GLIBC_9.99' not found")
        return whole(path)

    monkeypatch.setattr(build.ctypes, "CDLL", load)
    assert not build.library_at_hand("tiny")
    refused.clear()
    assert run_program() == 7
    assert len(refused) == 1


def test_a_folder_of_another_compiler_may_vanish_while_it_is_looked_at(library_folder):
    """The program is kept, and nothing is said."""
    library_folder.mkdir(parents=True, mode=0o700)
    (library_folder / f"{build.MAKING}gone").symlink_to("nowhere")  # it is listed, and not there
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_program() == 7
    assert len(list(library_folder.glob("tiny.*.so"))) == 1
