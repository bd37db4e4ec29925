"""How soon Ctrl-C ends a command and a simulation, pressed on a terminal of its own.

    python -m benchmarks.interrupts [--presses N] [--only NAME ...] [--arms K] [--dim D]
        [--replications R] [--horizon T] [--press-after SECONDS] [--out FILE]

A command is interrupted at random times of its first two seconds: each press has to give one line
and the exit status 130. Then each algorithm is interrupted while it plays, and the seconds from
there to the end of the process are measured. What is compiled is kept, so a second run takes less
time. Python installs its own handler only after some hundredths of a second, before which Ctrl-C
kills any command: presses begin at `FIRST_PRESS`.
"""

import argparse
import json
import os
import pty
import random
import select
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import jaxbandits as jb

RESULTS = Path(__file__).parent / "results" / "interrupts-cpu.json"
SEED, DELTA, PER_ARM = 5, 0.05, 20
FIRST_PRESS, LAST_PRESS = 0.15, 2.0  # seconds after a command has begun
PATIENCE = 600.0  # seconds, after which a process is killed
PRESS = b"\x03"
PLAYS = "playing"
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


class Ended(NamedTuple):
    """How a process has ended.

    Attributes:
      status: its exit status; that of a signal is negative.
      seconds: from the press to its end.
      lines: what it showed after the press.
    """

    status: int
    seconds: float
    lines: list[str]


def pressed(command, after, mark=None, folder=None):
    """Run a command on a terminal, press Ctrl-C there, and wait for the end: an `Ended`.

    Args:
      command: its words.
      after: seconds from its start, or from when it has shown `mark`, to the press.
      mark: text, or None.
      folder: where it runs; None: here.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder or ".")
        os.execvp(command[0], command)
    began = time.monotonic()
    shown, rest, press, first = b"", b"", None if mark else began + after, None
    while time.monotonic() < began + PATIENCE:
        if select.select([terminal], [], [], 0.01)[0]:
            try:
                text = os.read(terminal, 2**16)
            except OSError:  # the end of the terminal
                break
            shown, rest = shown + text, rest + (text if first else b"")
        if press is None and mark.encode() in shown:
            press = time.monotonic() + after
        if first is None and press is not None and time.monotonic() >= press:
            os.write(terminal, PRESS)
            first = time.monotonic()
    else:
        os.kill(pid, 9)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    # A terminal shows the key itself, and the line is cleared before it is written.
    lines = [line.split("\x1b[?25h")[-1] for line in rest.decode(errors="replace").splitlines()]
    seconds = time.monotonic() - (first or time.monotonic())
    return Ended(status, seconds, [line for line in lines if line.strip("^C \x1b[K\r")])


def first_seconds(number):
    """Presses at random times while a command starts: times, statuses and lines."""
    draws = random.Random(SEED)
    command = [sys.executable, "-m", "jaxbandits", "demo"]
    rows = []
    for _ in range(number):
        after = draws.uniform(FIRST_PRESS, LAST_PRESS)
        with tempfile.TemporaryDirectory() as folder:
            ended = pressed(command, after, folder=folder)
        good = ended.status == 130 and len(ended.lines) == 1
        rows.append({"after": after, **ended._asdict(), "good": good})
        print(f"pressed after {after:.2f} s: {ended.status}, {len(ended.lines)} lines", flush=True)
    return rows


def played(name, arguments):
    """Play an algorithm, for a process that is interrupted; says when it begins."""
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
    told = []

    def says(done, total):
        if not told:
            told.append(print(PLAYS, flush=True))

    jb.simulate(
        instance,
        getattr(jb, name) if name in REGRET else partial(getattr(jb, name), **options),
        replications=arguments.replications,
        horizon=arguments.horizon if name in REGRET else None,
        progress=says,
    )
    print("finished")


def until_the_prompt(name, arguments):
    """A row with the seconds from Ctrl-C to the end of a process that plays an algorithm."""
    command = [sys.executable, "-m", "benchmarks.interrupts", "--alone", name]
    for option in ("arms", "dim", "replications", "horizon"):
        command += [f"--{option}", str(getattr(arguments, option))]
    ended = pressed(command, arguments.press_after, PLAYS)
    print(f"{name:24} {ended.seconds:6.2f} s, exit status {ended.status}", flush=True)
    return {"algorithm": name, "seconds": ended.seconds, "status": ended.status}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--presses", type=int, default=20)
    parser.add_argument("--only", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--arms", type=int, default=200)
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--horizon", type=int, default=2000)
    parser.add_argument("--press-after", type=float, default=0.5, help="seconds of playing")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.alone:
        played(chosen.alone, chosen)
        return
    presses = first_seconds(chosen.presses)
    rows = [until_the_prompt(name, chosen) for name in chosen.only]
    print(f"{sum(row['good'] for row in presses)} of {len(presses)} presses: one line and 130")
    if rows:
        print(f"longest: {max(row['seconds'] for row in rows):.2f} s to the prompt")
    sizes = {name: getattr(chosen, name) for name in ("arms", "dim", "replications", "horizon")}
    found = {"sizes": sizes, "presses": presses, "algorithms": rows}
    chosen.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
