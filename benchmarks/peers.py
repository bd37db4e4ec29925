"""CPU time and regret of other public programs and of this package, on the same problems.

Each program runs in an interpreter of its own, in which its user has installed it; both sides play
in turn, `ROUNDS` times, and the median of the CPU seconds per round counts. The loop of a peer
calls its policy and draws a reward, nothing else. What compiles is called once before it is timed.

    python -m benchmarks.peers --smpybandits PYTHON --obp PYTHON --logbexp PYTHON FOLDER

An option that is missing leaves its problems out; the rows of the file are kept.
"""

import argparse
import json
import math
import statistics
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jaxbandits as jb
from jaxbandits.intervals import standard_error

from .contest import machine

RESULTS = Path(__file__).parent / "results" / "peers-cpu.json"
ROUNDS, HORIZON, RUNS, SLOW_RUNS, OUR_RUNS, SEED = 5, 1000, 20, 6, 1000, 7
MEANS = np.linspace(0.1, 0.9, 10).round(3).tolist()
DELTA, BOUND, RIDGE = 0.05, 4.0, 1.0  # of the logistic problem: BOUND on the norm of theta

# A program reads `problem`, and has a function `play(seed)` that gives the regret of one run. The
# first line of its output is what it says of itself; numbers follow.
HEAD = """
import json, sys, time
import numpy as np
problem = json.loads(sys.argv[1])
means = np.array(problem.get("means", []))
"""
TAIL = """
play(0)
print(version)
began = time.process_time()
regrets = [play(1 + seed) for seed in range(problem["runs"])]
seconds = time.process_time() - began
print(json.dumps({"seconds": seconds, "regrets": regrets}))
"""
SMPYBANDITS = """
from importlib import metadata
from SMPyBandits import Policies
from SMPyBandits.Arms import Bernoulli
version = "SMPyBandits " + metadata.version("SMPyBandits")
arms = [Bernoulli(mean) for mean in means]

def play(seed):
    np.random.seed(seed)
    policy = getattr(Policies, problem["policy"])(len(arms))
    policy.startGame()
    regret = 0.0
    for _ in range(problem["horizon"]):
        arm = policy.choice()
        policy.getReward(arm, arms[arm].draw())
        regret += means.max() - means[arm]
    return regret
"""
OBP = """
from importlib import metadata
from types import ModuleType
# Policies that are learnt off-line need torch; those played here do not.
names = ("torch", "torch.nn", "torch.optim", "torch.utils", "torch.utils.data")
modules = {name: ModuleType(name) for name in names}
sys.modules |= modules
for name, module in modules.items():
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(modules[parent], own, module)
    for word in ("Tensor", "Module", "Dataset", "DataLoader", "device"):
        setattr(module, word, type(word, (), {}))
from obp.policy import LinUCB
version = "obp " + metadata.version("obp")
context = np.ones((1, 1))

def play(seed):
    rng = np.random.default_rng(seed)
    policy = LinUCB(dim=1, n_actions=len(means), epsilon=problem["alpha"], random_state=seed)
    regret = 0.0
    for _ in range(problem["horizon"]):
        arm = int(policy.select_action(context)[0])
        policy.update_params(action=arm, reward=float(rng.random() < means[arm]), context=context)
        regret += means.max() - means[arm]
    return regret
"""
LOGBEXP = """
sys.path.insert(0, problem["folder"])
from logbexp.algorithms.ecolog import EcoLog
from logbexp.bandit.logistic_env import LogisticBanditEnv
version = "logbexp 1.0"
theta = np.array(problem["theta"])

def play(seed):
    np.random.seed(seed)
    world = LogisticBanditEnv(theta, "fixed_discrete", len(problem["arms"]), 1.0)
    world.arm_set.arm_list = np.array(problem["arms"])
    learner = EcoLog(problem["bound"], 1.0, len(theta), problem["delta"])
    total = 0.0
    for _ in range(problem["horizon"]):
        arm = learner.pull(world.arm_set)
        reward, regret = world.interact(arm)
        learner.learn(arm, reward)
        total += regret
    return total
"""


class Match(NamedTuple):
    """A problem, our side of it, and the other program."""

    problem: str
    theirs: str
    ours: str
    instance: Any
    algorithm: Any
    python: str
    program: str
    facts: dict[str, Any]


def matches(asked):
    """The matches whose programs are there."""
    arms = "10 Bernoulli arms, means 0.1 to 0.9, 1,000 rounds"
    bernoulli = jb.instances.bernoulli(means=MEANS)
    facts = {"means": MEANS, "horizon": HORIZON, "runs": RUNS}
    if asked.smpybandits:
        for policy, ours, build in (
            ("Uniform", "uniform", jb.uniform),
            ("UCB", "lin_ucb, disjoint", partial(jb.lin_ucb, disjoint=True)),
        ):
            more = {"policy": policy}
            yield Match(
                arms, policy, ours, bernoulli, build, asked.smpybandits, SMPYBANDITS, facts | more
            )
    if asked.obp:
        build = partial(jb.lin_ucb, disjoint=True, alpha=1.0)
        facts = {**facts, "alpha": 1.0}
        theirs, ours = "LinUCB, one constant feature", "lin_ucb, disjoint, alpha 1"
        yield Match(arms, theirs, ours, bernoulli, build, asked.obp, OBP, facts)
    if asked.logbexp:
        python, folder = asked.logbexp
        yield logistic(python, folder)


def logistic(python, folder):
    """Twenty arms in the unit ball of five dimensions, and a theta of length 3."""
    rng = np.random.default_rng(SEED)
    points = rng.normal(size=(20, 5))
    points *= (rng.random((20, 1)) ** 0.2) / np.linalg.norm(points, axis=1, keepdims=True)
    theta = np.full(5, 3.0 / math.sqrt(5))
    facts = {"arms": points.tolist(), "theta": theta.tolist(), "bound": BOUND, "delta": DELTA}
    return Match(
        "logistic, 20 arms in 5 dimensions, 1,000 rounds",
        "adaECOLog",
        "ofu_ecolog, ridge 1",
        jb.instances.glm(points, theta),
        partial(jb.ofu_ecolog, theta_norm=BOUND, delta=DELTA, ridge=RIDGE),
        python,
        LOGBEXP,
        facts | {"horizon": HORIZON, "runs": SLOW_RUNS, "folder": str(folder)},
    )


def theirs(match):
    """`(what the program says of itself, CPU seconds, regrets)` of one call."""
    command = [match.python, "-c", HEAD + match.program + TAIL, json.dumps(match.facts)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    *_, version, numbers = told.strip().splitlines()
    found = json.loads(numbers)
    return version, found["seconds"], found["regrets"]


def ours(match, number):
    """`(CPU seconds, regrets)` of one call."""
    began = time.process_time()
    runs = jb.simulate(
        match.instance, match.algorithm, replications=number, horizon=HORIZON, seed=SEED, cores=1
    )
    return time.process_time() - began, runs.regret[:, -1]


def played(match):
    """A row: microseconds of a round on both sides, and regrets."""
    seconds = {"theirs": [], "ours": [], "ours, one run": []}
    ours(match, OUR_RUNS)
    ours(match, 1)
    for _ in range(ROUNDS):
        version, spent, peer = theirs(match)
        seconds["theirs"].append(spent / match.facts["runs"] / HORIZON)
        spent, regret = ours(match, OUR_RUNS)
        seconds["ours"].append(spent / OUR_RUNS / HORIZON)
        seconds["ours, one run"].append(ours(match, 1)[0] / HORIZON)
    return {
        "problem": match.problem,
        "program": version,
        "theirs": match.theirs,
        "ours": match.ours,
        "microseconds_a_round": {
            name: float(f"{1e6 * statistics.median(x):.3g}") for name, x in seconds.items()
        },
        "runs": {"theirs": match.facts["runs"], "ours": OUR_RUNS},
        "regret": {"theirs": _mean(peer), "ours": _mean(regret)},
    }


def _mean(values):
    """A mean and its standard error."""
    return [round(float(np.mean(values)), 2), round(standard_error(values), 2)]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smpybandits", help="an interpreter that imports SMPyBandits")
    parser.add_argument("--obp", help="an interpreter that imports obp")
    parser.add_argument(
        "--logbexp", nargs=2, help="an interpreter with SciPy, and a folder that holds logbexp"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args(arguments)
    rows = json.loads(asked.out.read_text())["rows"] if asked.out.exists() else []
    for match in matches(asked):
        row = played(match)
        print(row, flush=True)
        same = {key: row[key] for key in ("problem", "theirs")}
        rows = [old for old in rows if any(old[k] != v for k, v in same.items())] + [row]
        table = {"machine": machine("cpu"), "rows": rows}
        asked.out.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
