"""The error of single precision, and the drift of rank-one updates from a direct solve.

Part "precision": mean pulls and errors of one algorithm of each family in float32 and float64, on
easy and on long problems. The two precisions draw different noise, so the numbers agree only in
distribution.

Part "drift": ridge least squares by rank-one updates (`least_squares.observe` in both forms,
`kernels.spd.added`) for up to 10^7 draws, compared with a direct solve of the same counts and sums
in 50 digits; and float32 with a new inverse from the counts every so many draws.

    python -m benchmarks.numerics [--only WORD ...] [--rounds N] [--replications N]

Rows that the file already holds are not computed again.
"""

import decimal
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.random import fold_in

import jaxbandits as jb
from jaxbandits.engine.episode import Limits, root_key
from jaxbandits.engine.host_loop import HostLoop
from jaxbandits.engine.partition import prepared
from jaxbandits.kernels.estimate import least_squares
from jaxbandits.kernels.linalg import spd

from .promises import PROMISES
from .rows import command, keep, kept, stored

RESULTS = Path(__file__).parent / "results" / "numerics-cpu.json"
KEY = ("part", "name")
WIDTHS = ("float64", "float32")

# Precision -------------------------------------------------------------------------------------

DELTA, MOST, HORIZON = 0.05, 2_000_000, 4000


def _soare(angle):
    return jb.instances.soare(3, angle=angle)


def _close(gap):
    means = [gap, 0.0, -0.5, -1.0]
    return jb.instances.tabular(np.eye(4), means, theta_norm=2.0)


TASKS = {
    "lingape": (PROMISES["lingape"][1], _soare(0.3), _soare(0.05)),
    "top_two": (PROMISES["top_two"][1], _soare(0.5), _soare(0.1)),
    "lazy_track_and_stop": (jb.lazy_track_and_stop, _soare(0.5), _soare(0.2)),
    "rage": (jb.rage, _soare(0.3), _soare(0.01)),
    "xy_static": (jb.xy_static, _soare(0.3), _soare(0.05)),
    "m_lingape": (partial(jb.m_lingape, m=1, v0=0.05), _close(0.3), _close(0.1)),
    "lucb": (partial(jb.lucb, m=1), _close(0.3), _close(0.1)),
}
BUDGETS = {
    "sequential_halving": (jb.sequential_halving, jb.instances.canonical(16, gap=1.0)),
    "gse_d_opt": (partial(jb.gse, design="d_opt"), jb.instances.canonical(16, gap=1.0)),
}
REGRETS = {
    "lin_ucb": (jb.lin_ucb, _soare(0.5)),
    "glm_tsl": (jb.glm_tsl, jb.instances.logistic_cube(jax.random.key(0), 20, 3)),
}


def tasks():
    """`name -> (instance, constructor, horizon)`."""
    for name, (build, *instances) in TASKS.items():
        for size, instance in zip(("easy", "long"), instances, strict=True):
            yield f"{name} {size}", (instance, partial(build, delta=DELTA), None)
    for name, (build, instance) in BUDGETS.items():
        for budget in (320, 320_000):
            yield f"{name} {budget}", (instance, partial(build, budget=budget), None)
    for name, (build, instance) in REGRETS.items():
        yield name, (instance, build, HORIZON)


def record_of(instance, build, horizon, width, replications):
    """The `Record` of a task, from the engine, because the public interface has no float32."""
    structure, numbers = prepared(instance, build, horizon)
    with jax.enable_x64(width == "float64"):
        numbers = tuple(jnp.asarray(np.asarray(x), _narrow(x, width)) for x in numbers)
        limits = Limits(MOST, 2**31 - 1) if horizon is None else Limits(2**31 - 1, horizon)
        loop = HostLoop(
            structure,
            numbers,
            root_key(3),
            replications=replications,
            batch=None,
            limits=limits,
            rounds=[] if horizon is None else [horizon],
        )
        began = time.perf_counter()
        records = list(loop.run(range(replications)))
        seconds = time.perf_counter() - began
    return jax.tree.map(lambda *xs: np.concatenate(xs), *records), seconds


def _narrow(x, width):
    kind = np.asarray(x).dtype
    if np.issubdtype(kind, np.floating):
        return width
    return np.int32 if width == "float32" and kind == np.int64 else kind


def precision(name, task, replications):
    """A row: results in each precision, and the difference of the means in standard errors."""
    found = {"part": "precision", "name": name, "replications": replications}
    means, squares = [], []
    for width in WIDTHS:
        record, seconds = record_of(*task, width, replications)
        regret = task[2] is not None
        value = (record.regret[:, -1] if regret else record.pulls).astype(float)
        number = len(value)
        found[width] = {
            "regret_mean" if regret else "pulls_mean": float(value.mean()),
            "se": float(value.std(ddof=1) / np.sqrt(number)),
            "errors": int((~record.correct & record.stopped).sum()),
            "cut_short": 0 if regret else int((~record.stopped).sum()),
            "not_finite": int((~np.isfinite(value)).sum()),
            "seconds": round(seconds, 2),
        }
        means.append(value.mean())
        squares.append(value.var(ddof=1) / number)
    error = np.sqrt(sum(squares))
    found["ratio"] = float(means[1] / means[0])
    found["difference_in_se"] = float((means[1] - means[0]) / error) if error else 0.0
    return found


# Drift -----------------------------------------------------------------------------------------

# Rewards are multiples of 1 / GRAIN, so that their sums are exact.
DIM, GRAIN, CHUNK = 5, 256.0, 1000
MEANS = np.array([1.0, 0.9, 0.5, 0.0, -0.5, -1.0])
SHARES = {"even": np.full(6, 1 / 6), "skewed": np.array([0.01, 0.95, 0.01, 0.01, 0.01, 0.01])}
FORMS = ("arm space", "feature space", "added")
PERIODS = (100, 1000, 10_000, 100_000)


def begin(form, arms, v0):
    """The statistics before any draw; for `spd.added` the field `core` is the inverse."""
    return least_squares.ridge(arms, v0, arm_space=form == "arm space")


def observed(form, stats, arms, arm, reward):
    """The statistics after one more draw."""
    if form != "added":
        return least_squares.observe(stats, arms, arm, reward, arm_space=form == "arm space")
    one = jnp.ones((), arms.dtype)
    inverse = spd.added(stats.core, arms[arm], one)
    return stats._replace(core=inverse)


def fresh(form, stats, arms, counts, sums, v0):
    """The same statistics from counts and sums, by one inverse in the precision of the arms."""
    weights = counts.astype(arms.dtype)
    found = spd.inverse(least_squares.gram(arms, weights) + v0 * jnp.eye(DIM, dtype=arms.dtype))
    core = arms @ found.matrix @ arms.T if form == "arm space" else found.matrix
    means = arms @ (found.matrix @ (arms.T @ sums.astype(arms.dtype)))
    logdet = found.logdet - DIM * jnp.log(jnp.asarray(v0, arms.dtype))
    return stats._replace(
        core=core, means=means, variances=spd.quadratic(arms, found.matrix), logdet=logdet
    )


def kept_up(form, arms, shares, v0, rounds, period):
    """Yields `(draws, statistics, counts, sums)` at powers of 10.

    Every `period` draws the statistics are computed anew; with period 0 never.
    """
    arms = jnp.asarray(arms)
    edges = jnp.asarray(np.cumsum(shares)[:-1])
    chunk = min(CHUNK, period // 10 or CHUNK)  # stop shortly before a new inverse

    def block(carry, number):
        key = fold_in(jax.random.key(11), number)
        arm = (jax.random.uniform(key, (chunk,)) >= edges[:, None]).sum(0)
        noise = jax.random.normal(fold_in(key, 1), (chunk,))
        reward = jnp.round((jnp.asarray(MEANS)[arm] + noise) * GRAIN) / GRAIN

        def one(carry, drawn):
            stats, counts, sums = carry
            arm, reward = drawn
            stats = observed(form, stats, arms, arm, reward.astype(arms.dtype))
            return (stats, counts.at[arm].add(1), sums.at[arm].add(reward)), None

        carry = lax.scan(one, carry, (arm, reward))[0]
        if period:
            stats, counts, sums = carry
            due = ((number + 1) * chunk) % period == 0
            stats = lax.cond(due, lambda: fresh(form, stats, arms, counts, sums, v0), lambda: stats)
            carry = stats, counts, sums
        return carry, None

    @jax.jit
    def go(carry, first, last):
        return lax.fori_loop(first, last, lambda i, carry: block(carry, i)[0], carry)

    carry = begin(form, arms, v0), jnp.zeros(6, int), jnp.zeros(6)
    done, until = 0, 1000
    while until <= rounds:
        last = until // chunk - (1 if period and until % period == 0 else 0)
        carry = go(carry, done, last)
        done = last
        yield done * chunk, *carry
        until *= 10


def exact(arms, counts, sums, v0):
    """`(inverse [d, d], arms @ theta, variances, log-determinant)` in 50 digits."""
    with decimal.localcontext() as context:
        context.prec = 50
        table = np.vectorize(decimal.Decimal, otypes=[object])(arms.astype(float))
        weights = np.array([decimal.Decimal(int(n)) for n in counts], object)
        ridge = decimal.Decimal(float(v0))
        matrix = (table.T * weights) @ table
        for i in range(DIM):
            matrix[i, i] += ridge
        inverse, logdet = _inverted(matrix)
        moment = table.T @ np.array([decimal.Decimal(float(s)) for s in sums], object)
        means = table @ (inverse @ moment)
        variances = np.array([x @ inverse @ x for x in table], object)
        return inverse, means, variances, logdet - DIM * ridge.ln()


def _inverted(matrix):
    """Gauss-Jordan elimination; a positive definite matrix needs no pivoting."""
    size, logdet = len(matrix), decimal.Decimal(0)
    table = np.concatenate([matrix, np.array(np.eye(size, dtype=int), object)], 1)
    for i in range(size):
        logdet += table[i, i].ln()
        table[i] = table[i] / table[i, i]
        for j in range(size):
            if j != i:
                table[j] = table[j] - table[j, i] * table[i]
    return table[:, size:], logdet


def errors(form, arms, stats, counts, sums, v0):
    """The errors of the statistics, in units that matter to an algorithm."""
    inverse, means, variances, logdet = exact(arms, counts, sums, v0)
    truth = variances.astype(float)
    table = arms.astype(float)
    right = inverse.astype(float)
    core = np.asarray(stats.core, float)
    if form == "arm space":
        squares = np.add.outer(np.diagonal(core), np.diagonal(core)) - 2 * core
    else:
        squares = _distances(table, core)
    exactly = _distances(table, right)
    apart = ~np.eye(len(table), dtype=bool)
    found = {"distance": float(np.abs(squares / np.where(apart, exactly, 1) - 1)[apart].max())}
    if form != "added":
        kept_means = [decimal.Decimal(float(x)) for x in stats.means]
        off = (np.array(kept_means, object) - means).astype(float)
        found["variance"] = float(np.abs(np.asarray(stats.variances, float) / truth - 1).max())
        found["mean_in_sd"] = float(np.abs(off / np.sqrt(truth)).max())
        found["logdet"] = float(abs(decimal.Decimal(float(stats.logdet)) - logdet))
    return {name: x if np.isfinite(x) else None for name, x in found.items()}  # None stands for NaN


def _distances(table, inverse):
    """`||x_i - x_j||^2` of all pairs, computed without cancellation."""
    return np.array([[(x - y) @ inverse @ (x - y) for y in table] for x in table])


def drift(form, share, v0, width, period, rounds):
    """A row: errors by the number of draws."""
    began = time.perf_counter()
    with jax.enable_x64(True):
        arms = np.asarray(jb.instances.soare(DIM, angle=0.1).arms, width)
        v0 = np.asarray(v0, width)
        found = {
            str(draws): errors(form, arms, stats, np.asarray(counts), np.asarray(sums), v0)
            for draws, stats, counts, sums in kept_up(form, arms, SHARES[share], v0, rounds, period)
        }
    row = {"part": "drift", "form": form, "draws": share, "v0": float(v0), "width": width}
    return row | {
        "period": period,
        "rounds": rounds,
        "errors": found,
        "seconds": round(time.perf_counter() - began, 1),
    }


def drifts(rounds):
    """`name -> arguments of drift`; those without new inverses come first."""
    for form in FORMS:
        for width in WIDTHS:
            for share in SHARES:
                for v0 in (1.0, 1e-4):
                    plain = (share, v0) == ("skewed", 1.0)
                    if plain or (form != "added" and (share, v0) != ("even", 1e-4)):
                        name = f"{form}, {share}, v0 {v0:g}, {width}"
                        yield name, (form, share, v0, width, 0, rounds)
    for form in FORMS[:2]:
        for period in PERIODS:
            name = f"{form}, skewed, v0 1, float32, period {period}"
            yield name, (form, "skewed", 1.0, "float32", period, min(rounds, 1_000_000))


def shown(row):
    """A row as lines of text."""
    if row["part"] == "drift":
        lines = [
            f"  {draws:>9s} draws: "
            + ", ".join(f"{k} {'NaN' if v is None else f'{v:.1e}'}" for k, v in found.items())
            for draws, found in row["errors"].items()
        ]
        return "\n".join([row["name"], *lines])
    parts = [
        f"{width}: {row[width].get('pulls_mean', row[width].get('regret_mean')):.1f}, "
        f"{row[width]['errors']} errors, {row[width]['cut_short']} cut"
        for width in WIDTHS
    ]
    return f"{row['name']:28s} {'; '.join(parts)}; {row['difference_in_se']:+.1f} se"


def main(arguments=None):
    """Compute the rows that are missing."""
    parser = command(__doc__, replications=400, results=RESULTS)
    parser.add_argument("--rounds", type=int, default=10_000_000)
    asked = parser.parse_args(arguments)
    rows = kept(asked.out)
    work = [("drift", name, partial(drift, *args)) for name, args in drifts(asked.rounds)]
    work += [
        ("precision", name, partial(precision, name, task, asked.replications))
        for name, task in tasks()
    ]
    for part, name, make in work:
        words = f"{part} {name}"
        if not all(word in words for word in asked.only) or stored(rows, KEY, part=part, name=name):
            continue
        row = {"part": part, "name": name} | make()
        rows = keep(asked.out, rows, row, KEY)
        print(shown(row), flush=True)


if __name__ == "__main__":
    main()
