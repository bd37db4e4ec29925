"""Signals: a command ends in one line at any time, and none is lost."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest

from jaxbandits.system import interrupts, progress
from jaxbandits.system.interrupts import Interrupts, interruptible
from jaxbandits.system.progress import Progress

COMMAND = """
import runpy, sys
class Says:
    def find_spec(name, *_):
        if name == "jax":
            print("JAX", flush=True)
sys.meta_path.insert(0, Says)
sys.argv = ["jaxbandits", "report", "."]
runpy.run_module("jaxbandits", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("number", "how"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")]
)
def test_a_signal_while_jax_is_imported_ends_a_command_in_a_line(number, how):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", COMMAND], text=True, **pipes) as child:
        assert child.stdout.readline() == "JAX\n"
        child.send_signal(number)
        _, errors = child.communicate(timeout=60)
    assert errors == f"{how}; {interrupts.GOES_ON}\n"
    assert child.returncode == 128 + number


class Left(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def left(monkeypatch):
    """The exit statuses with which the process would have ended."""
    found = []

    def leave(status):
        found.append(status)
        raise Left

    monkeypatch.setattr(os, "_exit", leave)
    return found


def frames(*files):
    found = None
    for file in files:
        found = SimpleNamespace(f_code=SimpleNamespace(co_filename=file), f_back=found)
    return found


IMPORT = frames("main.py", interrupts.IMPORTING, "jax/core.py")


def test_an_import_that_is_interrupted_ends_a_command_with_nothing_to_store(
    left, monkeypatch, capfd
):
    monkeypatch.setattr(interrupts, "ENGINE", ("jaxbandits.nowhere", "Simulation"))
    with pytest.raises(Left):
        Interrupts()(signal.SIGTERM, IMPORT)
    with pytest.raises(KeyboardInterrupt):
        Interrupts()(signal.SIGTERM, frames("main.py"))
    assert left == [143]
    assert capfd.readouterr().err == f"terminated; {interrupts.GOES_ON}\n"


def test_a_second_signal_ends_a_command_at_once(left):
    for frame in (frames("main.py"), IMPORT):
        found = Interrupts()
        with pytest.raises((KeyboardInterrupt, Left)):
            found(signal.SIGINT, frames("main.py"))
        with pytest.raises(Left):
            found(signal.SIGTERM, frame)
    assert left == [130, 130]


DONE = """
import atexit, os, runpy, sys, time

def wait(write=os.write, now=time.monotonic):  # the signal comes meanwhile
    write(1, b"DONE\\n")
    until = now() + 0.3
    while now() < until:
        pass

class Late:
    def __del__(self, wait=wait):  # when Python has taken its handlers away
        wait()

class Early:
    def find_spec(name, *_):
        if name == "click":
            atexit.register(wait)

_, when, what = sys.argv
if when == "late":
    sys.kept = Late()
else:
    sys.meta_path.insert(0, Early)
sys.argv = ["jaxbandits", "list", what]
runpy.run_module("jaxbandits", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(
    ("when", "what", "status"),
    [("early", "instances", 0), ("late", "instances", 0), ("late", "what?", 2)],
)
def test_a_signal_once_a_command_has_done_its_work_changes_nothing(when, what, status):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", DONE, when, what], text=True, **pipes) as child:
        while child.stdout.readline() not in ("DONE\n", ""):
            pass
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == status
    assert len(errors.splitlines()) == bool(status)


def test_a_second_signal_while_one_is_held_back_ends_a_command_at_once(left):
    with interruptible(), interrupts.held_back():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Left):
            signal.raise_signal(signal.SIGINT)
    assert left == [143]


def test_an_import_that_is_interrupted_after_playing_ends_first(monkeypatch, left):
    monkeypatch.setattr(interrupts, "ENGINE", (__name__, "Left"))
    with interruptible() as found:
        found(signal.SIGINT, IMPORT)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(30)
    assert found.first == signal.SIGINT
    assert not left
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


def test_a_signal_that_python_drops_is_raised_again():
    """As one that comes in a function that the collector of garbage calls."""

    def collecting(phase, _):
        if phase == "start" and not came:
            came.append(True)
            signal.raise_signal(signal.SIGINT)

    def collected():
        gc.collect()
        kept.append("going on")
        time.sleep(30)

    came, kept = [], []
    gc.callbacks.append(collecting)
    try:
        with interruptible(), pytest.raises(KeyboardInterrupt):
            collected()
    finally:
        gc.callbacks.remove(collecting)
    assert kept == ["going on"]


DROPPED = """
import gc, signal, time
from jaxbandits.system import jax_options
from jax._src.lib import _xla_gc_callback

def callback(phase, _):
    if phase == "start":
        signal.raise_signal(signal.SIGINT)

callback.__module__ = _xla_gc_callback.__module__
gc.disable()
gc.callbacks.append(callback)
gc.collect()
gc.callbacks.remove(callback)
print("going on", flush=True)
time.sleep(30)
"""


def test_ctrl_c_in_a_callback_of_jax_ends_a_script_a_moment_later():
    done = subprocess.run(
        [sys.executable, "-c", DROPPED], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout) == (-2, "going on\n")
    assert "ignored" not in done.stderr
    assert done.stderr.endswith("KeyboardInterrupt\n")


SCRIPT = """
import sys
from jaxbandits.system import interrupts, jax_options
import atexit
import jax
interrupts.goes_on(lambda: print("waited", flush=True))
atexit.register(lambda: print("last", flush=True))
{}
"""


@pytest.mark.parametrize(
    ("ending", "status", "shown"),
    [("raise KeyboardInterrupt", -2, "last\n"), ("", 0, "last\nwaited\n")],
)
def test_a_script_does_not_take_down_what_computes(ending, status, shown):
    text = SCRIPT.format(ending)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, shown)


COMPILING = """
import atexit, time
from jaxbandits.system import interrupts

def compiles():
    time.sleep(0.5)  # until the script waits for it
    print("compiles", flush=True)
    time.sleep(1)  # until the script has ended, or waits for its end
    print("still compiles", flush=True)
    time.sleep(60)

atexit.register(interrupts.end_in_order)
{}
"""
ENDS = "with interrupts.held_back('traces'): interrupts.waited_for(compiles)"
CATCHES = """
try:
    interrupts.waited_for(compiles)
except KeyboardInterrupt:
    pass
"""
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def pressed(code, *marks, **options):
    """A script that Ctrl-C interrupts whenever it prints one of these: its end and its errors."""
    with subprocess.Popen([sys.executable, "-c", code], **PIPES, **options) as script:
        for mark in marks:
            assert script.stdout.readline() == f"{mark}\n"
            script.send_signal(signal.SIGINT)
        _, errors = script.communicate(timeout=30)  # less than it would go on
    return script.returncode, errors.splitlines()


def test_ctrl_c_ends_a_script_that_compiles():
    status, lines = pressed(COMPILING.format(ENDS), "compiles")
    assert (status, lines[0], lines[-1]) == (-2, interrupts.COMPILES, "KeyboardInterrupt")


def test_a_second_ctrl_c_ends_the_wait_of_a_script_for_what_compiles():
    status, lines = pressed(COMPILING.format(CATCHES), "compiles", "still compiles")
    assert (status, lines) == (-2, [interrupts.COMPILES])


def test_nothing_compiles_after_a_signal_that_is_held_back():
    begun = []

    def compiles():
        signal.raise_signal(signal.SIGINT)
        interrupts.waited_for(partial(begun.append, True))

    with interruptible(), interrupts.held_back(), pytest.raises(KeyboardInterrupt):
        compiles()
    assert not begun


TWO_PRESSES = """
from functools import partial
import jaxbandits as jb
from jaxbandits.system import keeping
make = keeping.waited_for
def waited_for(compile):
    print("compiles", flush=True)
    return make(compile)
keeping.waited_for = waited_for
instance = jb.instances.soare(3, angle=0.5)
jb.simulate(instance, partial(jb.rage, delta=0.1), replications=9, engine="xla")
"""


@pytest.mark.slow
def test_a_second_ctrl_c_ends_a_script_at_once_while_xla_compiles(tmp_path):
    environment = os.environ | {"JAXBANDITS_CACHE": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", TWO_PRESSES], env=environment, **PIPES) as script:
        assert script.stdout.readline() == "compiles\n"
        began = time.monotonic()
        script.send_signal(signal.SIGINT)
        time.sleep(0.3)
        script.send_signal(signal.SIGINT)
        _, errors = script.communicate(timeout=60)
    assert time.monotonic() - began < 3.0
    assert script.returncode == -2
    assert errors.startswith((interrupts.COMPILES, interrupts.TRACES))
    assert "Fatal" not in errors


class Clock:
    """Stands for `threading.Timer`: it goes off when it is told to."""

    def __init__(self, seconds, function):
        self.seconds, self.goes_off, self.on = seconds, function, False

    def start(self):
        self.on = True

    def cancel(self):
        self.on = False


@pytest.fixture
def clocks(monkeypatch):
    """The timers that were made, where bars can be shown, without `rich`."""
    found = []
    monkeypatch.setattr(threading, "Timer", lambda *what: found.append(Clock(*what)) or found[-1])
    monkeypatch.setattr(progress, "on_screen", lambda: True)
    monkeypatch.setattr(Progress, "_open", lambda self, items: None)
    return found


def test_progress_that_nobody_asked_for_is_shown_after_a_second(clocks, capsys):
    shown = Progress(None)
    shown.wait("compiling rage")
    shown.show("replications", 3, 9)
    assert capsys.readouterr().err == ""
    (clock,) = clocks
    assert clock.on
    assert clock.seconds == 1.0
    clock.goes_off()
    shown.show("replications", 4, 9)
    assert capsys.readouterr().err == "\rreplications 3/9\rreplications 4/9"
    shown.close()


def test_progress_of_a_short_task_is_not_shown(clocks, capsys):
    with Progress(None, items="cells", number=1) as shown:
        shown.show("replications", 3, 9)
        shown.finish("all")
    (clock,) = clocks
    assert not clock.on
    clock.goes_off()  # it was about to
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("shown", "lines"), [(True, 1), (None, 0)])
def test_a_line_says_once_that_minutes_are_left(monkeypatch, capsys, shown, lines):
    monkeypatch.setattr(Progress, "_open", lambda self, items: None)
    now = iter([100.0, 110.0, 125.0, 150.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    bar = progress.Bar("replications", shown, "rage")
    for done in (16, 40, 66, 116):
        bar(done, 1016)
    said = [x for x in capsys.readouterr().err.splitlines() if x.startswith("rage:")]
    # 50 in 25 seconds, 950 are left
    text = "rage: about 8 minutes more for 1,016 replications; Ctrl-C returns those that are done"
    assert said == [text] * lines


def test_no_line_says_that_seconds_are_left(monkeypatch, capsys):
    monkeypatch.setattr(Progress, "_open", lambda self, items: None)
    now = iter([0.0, 30.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    bar = progress.Bar("replications", True, "rage")
    bar(10, 100)
    bar(40, 100)
    assert "more" not in capsys.readouterr().err


def test_progress_is_not_shown_in_pipes(monkeypatch, capsys):
    monkeypatch.setattr(threading, "Timer", pytest.fail)
    with Progress(None) as shown:
        shown.show("replications", 3, 9)
    assert capsys.readouterr().err == ""
