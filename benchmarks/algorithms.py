"""Every algorithm on a common problem of its kind: errors or regret, draws, and CPU time.

A problem is a kind of question with one instance or one distribution of instances. All algorithms
of a problem get the same replications, with the same noise, and have their default options where
nothing else is said. CPU time is that of one process for a second call, which compiles nothing. So
it includes what `simulate` does outside the compiled program.

    python -m benchmarks.algorithms [--only WORD ...] [--out FILE]

A row is stored as soon as it is measured, and not measured again; `--only` measures anew the rows
whose problem and algorithm contain all of the words.
"""

import json
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxbandits as jb
from jaxbandits.intervals import binomial_interval, standard_error

from .contest import machine
from .rows import command

RESULTS = Path(__file__).parent / "results" / "algorithms-cpu.json"
SEED, DELTA, M, LANES, HORIZON = 3, 0.05, 2, 64, 1000
SOARE = jb.instances.soare(5, angle=0.3)
PLAIN = jb.instances.linear(np.eye(6), np.array([0.9, 0.7, 0.7, 0.5, 0.5, 0.5]), noise_var=0.25)
BOUNDED = SOARE, PLAIN  # instances of one best arm whose lower bound is known


class Problem(NamedTuple):
    """What is asked, on which instance, and of which algorithms."""

    described: str
    instance: Any
    replications: int
    algorithms: dict[str, Any]
    horizon: int | None = None
    delta: float | None = None


def _confidence():
    names = ("lingape", "top_two", "lin_game", "frank_wolfe_sampling", "lazy_track_and_stop")
    names += ("rage", "xy_static", "xy_adaptive", "xy_oracle", "alba")
    found = {name: partial(getattr(jb, name), delta=DELTA) for name in names}
    found["lingape, ratio"] = partial(jb.lingape, delta=DELTA, selection="ratio")
    for name in ("lingape", "top_two"):
        build = found[name]
        found[f"{name}, heuristic"] = partial(build, threshold="heuristic")
        found[f"{name}, v0 0.1"] = partial(build, v0=0.1)
    found["lingape, det"] = partial(jb.lingape, delta=DELTA, threshold="self_normalised_det")
    found["top_two, tracked"] = partial(jb.top_two, delta=DELTA, selection="tracked")
    found["rage, regret rounding"] = partial(jb.rage, delta=DELTA, rounding="regret")
    found["rage, frank_wolfe"] = partial(jb.rage, delta=DELTA, design="frank_wolfe")
    found["xy_adaptive, basis"] = partial(jb.xy_adaptive, delta=DELTA, begin="basis")
    return found


def _no_features():
    names = ("top_two", "lingape", "lazy_track_and_stop")
    found = {name: partial(getattr(jb, name), delta=DELTA) for name in names}
    for name in ("lucb", "ugape"):
        found[name] = partial(getattr(jb, name), delta=DELTA, m=1)
    return found


def _budget_no_features():
    found = {"sequential_halving": partial(jb.sequential_halving, per_arm=20)}
    for name in ("uniform", "top_two", "lingape"):
        found[f"at_budget, {name}"] = jb.at_budget(getattr(jb, name), per_arm=20)
    return found


def _top_m():
    options = {"delta": DELTA, "m": M}
    names = ("m_lingape", "lin_gifa", "lin_game", "lucb", "ugape")
    found = {name: partial(getattr(jb, name), **options) for name in names}
    found["m_lingape, ratio"] = partial(jb.m_lingape, selection="ratio", **options)
    found["m_lingape, heuristic"] = partial(jb.m_lingape, threshold="heuristic", **options)
    found["m_lingape, largest_variance"] = partial(
        jb.m_lingape, selection="largest_variance", **options
    )
    found["lin_gifa, individual"] = partial(jb.lin_gifa, indices="individual", **options)
    return found


def _budget():
    names = ("gse", "sequential_halving", "od_linbai", "peace", "bayes_gap")
    found = {name: partial(getattr(jb, name), per_arm=20) for name in names}
    found["gse, d_opt"] = partial(jb.gse, per_arm=20, design="d_opt")
    found["peace, rho"] = partial(jb.peace, per_arm=20, objective="rho")
    for name in ("lingape", "top_two", "lin_ucb", "uniform"):
        found[f"at_budget, {name}"] = jb.at_budget(getattr(jb, name), per_arm=20)
    return found


def _regret():
    names = ("glm_tsl", "glm_fpl", "glm_ucb", "ucb_glm", "evill", "log_phe", "ofu_ecolog")
    names += ("ofu_glb", "epsilon_greedy", "lin_ucb", "lin_ts", "uniform")
    found = {name: getattr(jb, name) for name in names}
    found["evill, a 0.5"] = partial(jb.evill, a=0.5)
    found["ofu_ecolog, ridge 1"] = partial(jb.ofu_ecolog, ridge=1.0)
    found["ofu_glb, ellipsoid"] = partial(jb.ofu_glb, form="ellipsoid")
    found["watched, glm_tsl"] = jb.watched(jb.glm_tsl)
    return found


def _linear_regret():
    found = {name: getattr(jb, name) for name in ("lin_ucb", "lin_ts", "uniform")}
    found["lin_ucb, proved"] = partial(jb.lin_ucb, alpha="self_normalised_det")
    found["lin_ts, theory"] = partial(jb.lin_ts, scale="theory")
    return found


def problems():
    """All problems, by name."""
    cube = partial(jb.instances.logistic_cube, num_arms=20, dim=5, half_width=1.0)
    sphere = partial(jb.instances.sphere, num_arms=16, dim=5, mix=0.01, noise_var=1.0)
    round_cube = partial(_gaussian_cube, num_arms=20, dim=5)
    deep = {name: getattr(jb, name) for name in ("deep_fpl", "deep_fl", "rep_glm_fpl")}
    return {
        "best arm": Problem(
            "Soare's instance, 6 arms in 5 dimensions, angle 0.3, variance 1",
            SOARE,
            1000,
            _confidence(),
            delta=DELTA,
        ),
        "best arm, logistic": Problem(
            "the arms of Soare's instance in 3 dimensions, angle 0.3, logistic rewards",
            jb.instances.glm(jb.instances.soare(3, angle=0.3).arms, [1.0, 0.0, 0.0]),
            1000,
            {"rage_glm": partial(jb.rage_glm, delta=DELTA)},
            delta=DELTA,
        ),
        "top m": Problem(
            "the classic instance of Reda et al. (2021), 6 arms in 5 dimensions, m = 2, angle "
            "0.9, variance 0.25",
            jb.instances.classic_top_m(6, M, angle=0.9),
            1000,
            _top_m(),
            delta=DELTA,
        ),
        "budget": Problem(
            "16 arms on the sphere in 5 dimensions, drawn anew for each replication, theta near "
            "one of the closest two (mix 0.01), variance 1, 20 draws per arm",
            sphere,
            1000,
            _budget(),
        ),
        "best arm, no features": Problem(
            "6 arms without features, means 0.9, 0.7, 0.7, 0.5, 0.5, 0.5, variance 0.25",
            PLAIN,
            1000,
            _no_features(),
            delta=DELTA,
        ),
        "budget, no features": Problem(
            "16 arms without features, one better than the others by 1, variance 1, 20 draws per "
            "arm",
            jb.instances.canonical(16, gap=1.0),
            1000,
            _budget_no_features(),
        ),
        "regret, logistic": Problem(
            "20 arms in the cube in 5 dimensions, half width 1, logistic rewards, drawn anew for "
            "each replication, 1,000 rounds",
            cube,
            64,
            _regret(),
            horizon=HORIZON,
        ),
        "regret, linear": Problem(
            "the same arms and parameters with linear means and normal noise of variance 1, "
            "1,000 rounds",
            round_cube,
            64,
            _linear_regret(),
            horizon=HORIZON,
        ),
        "contextual": Problem(
            "scikit-learn's digits, ten shown in each round, 1,000 rounds",
            jb.instances.digits(),
            20,
            deep,
            horizon=HORIZON,
        ),
    }


def _gaussian_cube(key, num_arms, dim):
    """The arms and the parameter of a logistic cube, with linear means and normal noise."""
    logistic = jb.instances.logistic_cube(key, num_arms, dim, half_width=1.0)
    return jb.instances.linear(logistic.arms, logistic.theta)


def lower_bound(problem):
    """The least mean number of draws that its delta allows; None but for one linear best arm."""
    if problem.delta is None or not any(problem.instance is x for x in BOUNDED):
        return None
    return float(jb.theory.pull_lower_bound(problem.instance, problem.delta))


def measured(problem, build):
    """The columns that hold figures."""
    settings = {"seed": SEED, "horizon": problem.horizon, "batch": LANES, "engine": "xla"}
    settings |= {"cores": 1}

    def play(number):
        began = time.process_time()
        runs = jb.simulate(problem.instance, build, replications=number, **settings)
        return runs, time.process_time() - began

    play(min(LANES, problem.replications))  # compiles
    runs, seconds = play(problem.replications)
    assert not runs.meta["compile_seconds"], "the second call must not compile"
    number = len(runs)
    return {
        "replications": number,
        **(_of_answers(runs) if problem.horizon is None else _of_rounds(runs, problem.instance)),
        "cpu_seconds_a_run": _figures(seconds / number),
        "cpu_microseconds_a_draw": _figures(1e6 * seconds / runs.pulls.sum()),
    }


def _of_answers(runs):
    """Errors, with the exact 95% interval of Clopper and Pearson, and draws."""
    wrong = int((~runs.correct & runs.stopped).sum())
    low, high = binomial_interval(wrong, len(runs))
    return {
        "errors": wrong,
        "cut_short": int((~runs.stopped).sum()),
        "error_low": _figures(low),
        "error_high": _figures(high),
        "pulls_mean": _figures(runs.pulls.mean()),
        "pulls_se": _figures(standard_error(runs.pulls)),
    }


def _of_rounds(runs, instance):
    """Regret at the horizon; of a contextual problem, the average reward of a round."""
    contextual = hasattr(instance, "average_reward")
    name = "average_reward" if contextual else "regret"
    last = (instance.average_reward(runs) if contextual else runs.regret)[:, -1]
    return {
        name: _figures(last.mean()),
        f"{name}_se": _figures(standard_error(last)),
    }


def _figures(number, digits=4):
    return float(f"{float(number):.{digits}g}")


def main(arguments=None):
    """Measure the rows that are missing, or those asked for."""
    parser = command(__doc__, replications=0, results=RESULTS)
    asked = parser.parse_args(arguments)
    rows = json.loads(asked.out.read_text())["rows"] if asked.out.exists() else []
    have = {(row["problem"], row["algorithm"]): row for row in rows}
    for name, problem in problems().items():
        for algorithm, build in problem.algorithms.items():
            chosen = all(word in f"{name} {algorithm}" for word in asked.only)
            if not chosen or (not asked.only and (name, algorithm) in have):
                continue
            if asked.replications:
                problem = problem._replace(replications=asked.replications)
            row = {"problem": name, "algorithm": algorithm, **measured(problem, build)}
            have[name, algorithm] = row
            print(row, flush=True)
            jax.clear_caches()
            _save(asked.out, have)


def _save(path, have):
    """Write the rows in the order of the problems."""
    all_problems = problems()
    described = {
        name: {
            "described": problem.described,
            "delta": problem.delta,
            "horizon": problem.horizon,
            "lower_bound": lower_bound(problem),
        }
        for name, problem in all_problems.items()
    }
    order = [(name, algorithm) for name, p in all_problems.items() for algorithm in p.algorithms]
    rows = [have[key] for key in order if key in have]
    table = {"machine": machine("cpu"), "seed": SEED, "problems": described, "rows": rows}
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
