"""How soon Ctrl-C ends commands, scripts and simulations, pressed on a terminal of their own.

    python -m benchmarks.interrupts [--presses N] [--parts commands scripts algorithms]
        [--only NAME ...] [--engines xla native] [--arms K] [--dim D] [--replications R]
        [--horizon T] [--press-after SECONDS] [--add] [--out FILE]

Commands are interrupted at random times of their first two seconds: each press has to give one line
and the exit status 130. A command that has done its work by then may also end as if nobody had
pressed, with all that it shows. Scripts that call a bound, a design, a rounding or a fit are
interrupted at random times until they end: each has to end as Python ends one that Ctrl-C
interrupts, and never by a fault.

Then each algorithm is interrupted while each engine plays it. The script catches the interrupt and
ends as usual, so that it waits for what is still computed. The seconds from the press to the end of
the process are measured, and the processor time of its threads meanwhile. A press waits for the end
of one call of a compiled program at most, so the longest of these until the press is noted too, by
the processor time of a thread, which other work on the machine does not change much. What is
compiled is kept, so a second run takes less time.

Python installs its own handler only after some hundredths of a second, before which Ctrl-C kills
any command, and a package its own once it is imported: presses begin at `FIRST_PRESS`, or where the
machine is slower, once a process that imports the package would be over.
"""

import argparse
import json
import os
import pty
import random
import select
import signal
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import jaxbandits as jb
from jaxbandits.compilers.cpp import Unsupported
from jaxbandits.engine import api
from jaxbandits.engine.host_loop import HostLoop

from .contest import machine

RESULTS = Path(__file__).parent / "results" / "interrupts-cpu.json"
SEED, DELTA, PER_ARM = 5, 0.05, 20
FIRST_PRESS, LAST_PRESS = 0.15, 2.0  # seconds after a command has begun
WITHIN = {"commands": 1.0, "scripts": 0.9}  # of their own seconds, in which they are interrupted
PATIENCE = 600.0  # seconds, after which a process is killed
PRESS = b"\x03"
PLAYS, DONE, LONGEST = "playing", "all done", "longest call:"
REGRET = (
    *("deep_fl", "deep_fpl", "epsilon_greedy", "evill", "glm_fpl", "glm_tsl", "glm_ucb"),
    *("lin_ts", "lin_ucb", "log_phe", "ofu_ecolog", "ofu_glb", "rep_glm_fpl", "ucb_glm", "uniform"),
)
LOGISTIC = frozenset(REGRET) - {"lin_ts", "lin_ucb", "uniform", "epsilon_greedy"}
CONTEXTUAL = frozenset({"deep_fl", "deep_fpl", "rep_glm_fpl"})
BUDGET = ("bayes_gap", "gse", "od_linbai", "peace", "sequential_halving")
FEW = ("lin_gifa", "lucb", "m_lingape", "ugape")
CONFIDENCE = (
    *("alba", "frank_wolfe_sampling", "lazy_track_and_stop", "lin_game", "lingape", "rage"),
    *("rage_glm", "top_two", "xy_adaptive", "xy_oracle", "xy_static"),
)
NAMES = sorted({*REGRET, *BUDGET, *FEW, *CONFIDENCE})
ENGINES = ("xla", "native")
IN_TURN = "in turn"  # the engine of contextual problems, whatever is asked for
PARTS = ("commands", "scripts", "algorithms")
SWEEP = """
replications = 2000
[instances.soare]
name = "soare"
dim = 3
angle = 0.3
[algorithms.lingape]
name = "lingape"
"""
COMMANDS = {
    "demo": ["demo"],
    "run": ["run", "sweep.toml", "--out", "results"],
    "list": ["list"],
    "reproduce": ["reproduce", "lingape/table1", "--quick", "--out", "reproduced"],
    "report": ["report", "demo-results"],
}
BEGIN = """
import numpy as np
import jaxbandits as jb
arms = np.random.default_rng(0).normal(size=(40, 6))
instance = jb.instances.linear(arms, arms[0])
weights = np.full(40, 1 / 40)
"""
SCRIPTS = {
    "rage_pull_bound": "jb.theory.rage_pull_bound(instance, 0.1)",
    "oracle": "jb.design.oracle(instance)",
    "characteristic_time": "jb.theory.characteristic_time(instance)",
    "rounding": "jb.rounding.regret(arms, weights, 500)",
    "fit_glm": "jb.fit_glm(arms, np.full(40, 9.0), np.full(40, 4.0), ridge=0.1)",
}
BY_SIGNAL = -2  # the exit status of a process that SIGINT has ended


class Ended(NamedTuple):
    """How a process has ended.

    Attributes:
      status: its exit status; that of a signal is negative.
      seconds: from the press to its end; None if it was over before.
      cpu_seconds: of all its threads, from the press to its end.
      lines: what it showed after the press, or in all.
      last: the last line that it showed at any time.
    """

    status: int
    seconds: float | None
    cpu_seconds: float | None
    lines: list[str]
    last: str


def cpu_seconds(pid):
    """Processor time that a running process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def pressed(command, after, mark=None, folder=None, over=None):
    """Run a command on a terminal, press Ctrl-C there, and wait for the end: an `Ended`.

    Args:
      command: its words.
      after: seconds from its start, or from when it has shown `mark`, to the press.
      mark: text, or None.
      folder: where it runs; None: here.
      over: text after which there is no press, or None.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores it
        os.chdir(folder or ".")
        os.execvp(command[0], command)
    began = time.monotonic()
    shown, rest, press, first, used = b"", b"", None if mark else began + after, None, None
    while time.monotonic() < began + PATIENCE:
        if select.select([terminal], [], [], 0.01)[0]:
            try:
                text = os.read(terminal, 2**16)
            except OSError:  # the end of the terminal
                break
            shown, rest = shown + text, rest + (text if first else b"")
        if press is None and mark.encode() in shown:
            press = time.monotonic() + after
        ready = press is not None and time.monotonic() >= press
        if first is None and ready and not (over and over.encode() in shown):
            used = cpu_seconds(pid)
            os.write(terminal, PRESS)
            first = time.monotonic()
    else:
        os.kill(pid, 9)
    _, status, usage = os.wait4(pid, 0)
    os.close(terminal)
    # A terminal shows the key itself, and the line is cleared before it is written.
    lines = _lines(rest if first else shown)
    since = time.monotonic() - first if first else None
    spent = usage.ru_utime + usage.ru_stime - used if first else None
    last = (_lines(shown) or [""])[-1].removeprefix("^C")
    return Ended(os.waitstatus_to_exitcode(status), since, spent, lines, last)


def _lines(shown):
    """The lines that a terminal shows, without what it shows of the key."""
    lines = [x.split("\x1b[?25h")[-1] for x in shown.decode(errors="replace").splitlines()]
    return [line for line in lines if line.strip("^C \x1b[K\r")]


def uninterrupted(command, folder):
    """The seconds that a command takes which nobody interrupts, and its lines."""
    began = time.monotonic()
    ended = pressed(command, float("inf"), folder=folder)
    return time.monotonic() - began, ended.lines


def prepared(folder):
    """A folder in which each command has what it needs."""
    (Path(folder) / "sweep.toml").write_text(SWEEP)
    pressed([sys.executable, "-m", "jaxbandits", "demo"], float("inf"), folder=folder)


def presses(name, command, number, most, good, folder):
    """Rows of presses at random times of a command, at the latest at `most(its seconds)`.

    Args:
      good: `(an Ended, the lines of an uninterrupted command) -> bool`.
    """
    seconds, usual = uninterrupted(command, folder)
    begun, _ = uninterrupted([sys.executable, "-c", "import jaxbandits"], folder)
    draws, first, latest, rows = random.Random(SEED), max(FIRST_PRESS, begun), most(seconds), []
    if latest < first:
        print(f"{name} is over in {latest:.2f} s", flush=True)
        return rows
    while len(rows) < number:
        after = draws.uniform(first, latest)
        ended = pressed(command, after, folder=folder, over=DONE)
        if ended.seconds is None:  # it was over before
            continue
        shown = {"lines": ended.lines[-1:], "good": good(ended, usual)}
        row = {"after": after, **ended._asdict(), **shown}
        rows.append({name: value for name, value in row.items() if name != "last"})
        if not rows[-1]["good"]:
            print(rows[-1], flush=True)
    print(f"{name}: {sum(row['good'] for row in rows)} of {number} good", flush=True)
    return rows


def of_commands(number):
    """Presses while each command starts: one line each, and the status that a shell expects.

    One whose work is done may end as it would have ended.
    """

    def good(ended, usual):
        complete = ended.status == 0 and ended.last == usual[-1]
        said = [line for line in ended.lines if line not in usual]  # not on its way to the terminal
        return complete or (ended.status == 130 and len(said) == 1)

    def most(seconds):
        return min(LAST_PRESS, WITHIN["commands"] * seconds)

    rows = {}
    for name, words in COMMANDS.items():
        with tempfile.TemporaryDirectory() as folder:
            prepared(folder)
            words = [*words, "--force"] if name == "demo" else words
            command = [sys.executable, "-m", "jaxbandits", *words]
            rows[name] = presses(name, command, number, most, good, folder)
    return rows


def of_scripts(number):
    """Presses while scripts call functions of the package: each ends by the signal, and says so."""

    def good(ended, _):
        said = sum(line.startswith("KeyboardInterrupt") for line in ended.lines)
        return ended.status == BY_SIGNAL and said == 1

    rows = {}
    for name, call in SCRIPTS.items():
        command = [sys.executable, "-c", f"{BEGIN}{call}\nprint({DONE!r}, flush=True)"]
        rows[name] = presses(name, command, number, lambda x: WITHIN["scripts"] * x, good, None)
    return rows


def problem(name, arguments):
    """The instance and the constructor with which an algorithm plays."""
    generator = np.random.default_rng(SEED)
    arms = generator.normal(size=(arguments.arms, arguments.dim))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    theta = generator.normal(size=arguments.dim)
    theta /= np.linalg.norm(theta)
    logistic = name in LOGISTIC or name == "rage_glm"
    instance = jb.instances.glm(arms, theta) if logistic else jb.instances.linear(arms, theta)
    if name in CONTEXTUAL:
        instance = jb.instances.digits()
    options = {"per_arm": PER_ARM} if name in BUDGET else {"delta": DELTA}
    options |= {"m": 2} if name in FEW else {}
    constructor = getattr(jb, name)
    return instance, constructor if name in REGRET else partial(constructor, **options)


def timed_calls():
    """A list to which each call of a compiled program adds its seconds of a processor."""
    begin, end, found, began = HostLoop._call_inputs, HostLoop._counts, [0.0], {}

    def begins(loop, *what):
        began[threading.get_ident()] = time.process_time()
        return begin(loop, *what)

    def ends(loop, batch):
        counts = end(loop, batch)
        found.append((time.process_time() - began[threading.get_ident()]) / loop.cores)
        return counts

    HostLoop._call_inputs, HostLoop._counts = begins, ends
    return found


def played(name, engine, arguments):
    """Play an algorithm, for a process that is interrupted; says when it begins."""
    run, calls = api.Simulation.run, timed_calls()

    def says(*what):
        print(PLAYS, flush=True)
        return run(*what)

    api.Simulation.run = says
    instance, algorithm = problem(name, arguments)
    try:
        jb.simulate(
            instance,
            algorithm,
            replications=arguments.replications,
            horizon=arguments.horizon if name in REGRET else None,
            engine="auto" if engine == IN_TURN else engine,
            progress=False,
        )
    except (KeyboardInterrupt, Unsupported) as error:
        print(error)
    print(LONGEST, max(calls))


def until_the_prompt(name, engine, arguments):
    """A row with the seconds from Ctrl-C to the end of a process that plays an algorithm."""
    command = [sys.executable, "-m", "benchmarks.interrupts", "--alone", name, engine]
    for option in ("arms", "dim", "replications", "horizon"):
        command += [f"--{option}", str(getattr(arguments, option))]
    ended = pressed(command, arguments.press_after, PLAYS)
    longest = [float(x.split()[-1]) for x in ended.lines if x.startswith(LONGEST)]
    row = {"algorithm": name, "engine": engine, "longest_call": max(longest, default=None)}
    row |= ended._asdict()
    row.pop("last")
    row |= {"lines": [x for x in ended.lines if not x.startswith(LONGEST)][-1:]}
    print(json.dumps(row), flush=True)
    return row


def of_algorithms(arguments):
    """Rows of `until_the_prompt`."""
    pairs = [
        (name, engine)
        for name in arguments.only
        for engine in ([IN_TURN] if name in CONTEXTUAL else arguments.engines)
    ]
    return [until_the_prompt(*pair, arguments) for pair in pairs]


def joined(old, new):
    """Rows of algorithms of two calls; of a pair that both have, the new one."""
    rows = {(row["algorithm"], row["engine"]): row for row in [*old, *new]}
    return [rows[pair] for pair in sorted(rows)]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--presses", type=int, default=20)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=ENGINES)
    parser.add_argument("--arms", type=int, default=200)
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--horizon", type=int, default=2000)
    parser.add_argument("--press-after", type=float, default=2.0, help="seconds of playing")
    parser.add_argument("--add", action="store_true", help="to what the file has")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--alone", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.alone:
        played(*chosen.alone, chosen)
        return
    found = json.loads(chosen.out.read_text()) if chosen.add and chosen.out.exists() else {}
    sizes = {name: getattr(chosen, name) for name in ("arms", "dim", "replications", "horizon")}
    here = machine("cpu")
    found |= {"machine": here, "sizes": sizes}

    def noted(rows):  # `--add` joins rows of several machines
        return [row | {"processor": here["processor"]} for row in rows]

    if "commands" in chosen.parts:
        found["commands"] = {k: noted(x) for k, x in of_commands(chosen.presses).items()}
    if "scripts" in chosen.parts:
        found["scripts"] = {k: noted(x) for k, x in of_scripts(chosen.presses).items()}
    if "algorithms" in chosen.parts:
        found["algorithms"] = joined(found.get("algorithms", []), noted(of_algorithms(chosen)))
        for column in ("seconds", "cpu_seconds", "longest_call"):
            print(f"{column}: {max(row[column] or 0.0 for row in found['algorithms']):.2f} at most")
    chosen.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
