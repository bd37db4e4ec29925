"""Drugs on Boolean networks: made-up ones, files written here, and the real data where they are."""

import dataclasses
import os
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_instances import check
from worlds import assert_same_runs

import jaxbandits as jb
from jaxbandits.envs.finite import finite
from jaxbandits.instances import screening
from jaxbandits.instances.gene_files import read_calls, read_network
from jaxbandits.kernels.boolean_network import all_at_once, cosine
from jaxbandits.sweeps.store import describe, digest_files

make = jb.instances
TOP = partial(jb.m_lingape, m=5, threshold="heuristic", delta=0.05)
KEY = jax.random.key(0)


class Dial(NamedTuple):
    """A simulator whose reward tells the arm and the key."""

    scale: Any

    def reward(self, key, arm):
        return self.scale[arm] + jax.random.uniform(key)


DIAL = make.simulated(np.eye(3), Dial(np.array([10.0, 20.0, 30.0])), noise_var=1.0, draws=500)


def test_means_are_those_of_the_draws():
    instance = check(DIAL)
    np.testing.assert_allclose(instance.means - [10, 20, 30], 0.5, atol=5 * 0.29 / np.sqrt(500))
    again = make.simulated(np.eye(3), Dial(np.array([10.0, 20.0, 30.0])), noise_var=1.0, draws=500)
    np.testing.assert_array_equal(instance.means, again.means)
    other = make.simulated(np.eye(3), DIAL.simulator, noise_var=1.0, draws=500, seed=1)
    assert (instance.means != other.means).all()
    assert len(set((instance.means % 1).round(12))) == 3  # the arms have draws of their own
    for options, message in (({"draws": 0}, "draws must be .*got 0"), ({"seed": -1}, "seed .*-1")):
        with pytest.raises(ValueError, match=message):
            make.simulated(np.eye(3), DIAL.simulator, noise_var=1.0, **options)
    with pytest.raises(ValueError, match=r"noise_var .*got 0"):
        make.simulated(np.eye(3), DIAL.simulator, noise_var=0.0)


@pytest.mark.parametrize("counts", [[3, 0, 40], [0, 0, 0], [0, 1, 0]], ids=str)
def test_a_batch_is_the_sum_of_its_draws(counts):
    with jax.enable_x64(True):
        env = finite(DIAL)
        arms = jnp.array([2, 0, 1])
        move = jb.Move(arms, jnp.asarray(counts), jnp.array(False), 0)
        total = jax.jit(lambda key: env.reward(env.noise(key, (3,), True), move))(KEY)
        expected, number = np.zeros(3), 0
        for entry, count in enumerate(counts):
            for _ in range(count):
                draw = Dial(DIAL.simulator.scale).reward(
                    jax.random.fold_in(KEY, number), arms[entry]
                )
                expected[entry] += draw
                number += 1
    np.testing.assert_allclose(total, expected, rtol=1e-12)


def test_single_moves_have_keys_of_their_own():
    with jax.enable_x64(True):
        env = finite(DIAL)
        noise = env.noise(KEY, (4,), False)
        keys = jax.random.split(KEY, 4)
        one = jb.Move(jnp.array(1), None, jnp.array(False), 0)
        several = jb.Move(jnp.array([1, 0, 2, 1]), None, jnp.array(False), 0)
        expected = jnp.array([20.0, 10.0, 30.0, 20.0]) + jax.vmap(jax.random.uniform)(keys)
        np.testing.assert_allclose(env.reward(noise, several), expected)
        np.testing.assert_allclose(env.reward(noise[3], one), expected[3])


SMALL = partial(make.boolean_network, num_arms=4, draws=100)


LEARNERS = {
    "one arm a round": partial(jb.m_lingape, m=2, threshold="heuristic", delta=0.1),
    "phases": partial(jb.sequential_halving, budget=60),
}


NATIVE = {"engine": "native"}


@pytest.mark.parametrize(
    ("simulator", "learner", "others"),
    [
        ("dial", "one arm a round", [NATIVE, {"batch": 8}]),
        ("dial", "phases", [NATIVE]),
        pytest.param("network", "phases", [NATIVE, {"batch": 8}], marks=pytest.mark.slow),
        pytest.param("network", "one arm a round", [NATIVE, {"batch": 8}], marks=pytest.mark.slow),
    ],
)
def test_replications_depend_on_nothing_else(simulator, learner, others):
    dial = Dial(np.array([0.0, 0.05, 0.1, 0.1]))
    instance = (
        SMALL(jax.random.key(1))
        if simulator == "network"
        else make.simulated(np.eye(4), dial, noise_var=0.25)
    )
    play = partial(jb.simulate, instance, LEARNERS[learner], seed=3, max_pulls=120, replications=24)
    runs = play()
    for other in others:
        assert_same_runs(runs, play(**other))
    assert len({tuple(row) for row in runs.arm_pulls}) > 5


@pytest.mark.slow
def test_redrawn_networks():
    draw = partial(SMALL, draws=20)
    runs = jb.simulate(draw, partial(jb.sequential_halving, budget=16), replications=8, batch=8)
    assert (runs.pulls == 16).all()


def test_cells_are_told_apart():
    instance = SMALL(jax.random.key(1))
    text = str(describe(instance))
    assert text == str(describe(SMALL(jax.random.key(1))))
    screen = instance.simulator
    changed = screen.network._replace(rules=(screen.network.rules + 1) % 18)
    for other in (
        dataclasses.replace(screen, network=changed),
        dataclasses.replace(screen, dynamics="synchronous"),
    ):
        assert text != str(describe(dataclasses.replace(instance, simulator=other)))
    assert "simulator" not in describe(make.canonical(3, gap=1.0))


def test_another_network_is_another_cell(tmp_path):
    before = digest_files(write(tmp_path))
    assert digest_files(write(tmp_path)) == before
    assert digest_files(write(tmp_path, net="B[]{}(5); A[]{}(8); C[]{}(9);\n")) != before


def networks(num):
    with jax.enable_x64(True):
        draw = jax.jit(jax.vmap(screening.random_network))
        return jax.tree.map(np.asarray, draw(jax.random.split(KEY, num)))


def test_random_networks():
    regulators, activates, represses, rules = networks(60)
    used = activates | represses
    degrees = used.sum(-1)
    assert not (activates & represses).any()
    np.testing.assert_array_equal(degrees.sum(1), 84)
    np.testing.assert_array_equal((degrees == 0).sum(1), 47)
    np.testing.assert_array_equal(represses.sum((1, 2)), 5)
    assert degrees.max() <= 5
    assert 0.5 < (degrees == 1).sum() / (degrees > 0).sum() < 0.65
    times = np.bincount(rules.ravel(), minlength=18)
    assert ((times - times.mean()) ** 2 / times.mean()).sum() < 50  # chi-square, 17 degrees
    for n in range(60):
        edges = {}
        for gene, slot in np.argwhere(used[n]):
            edges.setdefault(gene, []).append(regulators[n, gene, slot])
        assert all(len(set(mine)) == len(mine) and gene not in mine for gene, mine in edges.items())
        assert all(gene in edges[regulators[n, gene, 0]] for gene in edges)  # pairs
        assert all(degrees[n, g] == 0 for g in regulators[n][represses[n]])


@pytest.fixture(scope="module")
def random_drugs():
    return make.boolean_network(KEY, draws=300)


def test_boolean_network(random_drugs):
    instance = check(random_drugs)
    screen = instance.simulator
    np.testing.assert_allclose(instance.arms @ instance.theta, instance.means, atol=1e-12)
    np.testing.assert_allclose(instance.theta_norm, np.linalg.norm(instance.theta))
    assert (instance.rewards, float(instance.noise_var), instance.arms.shape) == (
        "simulated",
        0.25,
        (10, 71),
    )
    assert screen.target.known.sum() == 50
    together = (screen.patients.known[:, None] | screen.drugs.known).sum(-1)
    assert together.min() >= 16
    assert 36 < together.mean() < 44
    with jax.enable_x64(True):
        ends = jax.jit(jax.vmap(jax.tree.map(jnp.asarray, screen).outcome))(
            jax.random.split(KEY, 300), jnp.arange(300) % 10
        )
    assert ends.fixed.all()
    assert instance.means.std() > 0.005  # drugs differ


def test_what_a_drug_is_put_on(random_drugs):
    instance = random_drugs
    screen = jax.tree.map(jnp.asarray, instance.simulator)
    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(screen.start))(jax.random.split(KEY, 900), jnp.arange(900) % 10)
    patients, drugs = instance.simulator.patients, instance.simulator.drugs
    values = np.where(drugs.known[:, None], drugs.active[:, None], patients.active)
    masks = drugs.known[:, None] | patients.known
    times = np.zeros(18, int)
    for i in range(900):
        same = (masks[i % 10] == found.known[i]).all(-1)
        same &= (values[i % 10] == found.active[i])[:, found.known[i]].all(-1)
        times[np.flatnonzero(same)[0]] += 1
    assert times.sum() == 900
    assert ((times - 50) ** 2 / 50).sum() < 50  # chi-square with 17 degrees: 1e-4 beyond 46


def test_bad_numbers_are_named():
    for options, message in (
        ({"num_arms": 1}, "num_arms must be .*got 1"),
        ({"num_arms": 72}, "num_arms must be at most 71, got 72"),
        ({"dynamics": "slow"}, "dynamics .*'synchronous'.*got 'slow'"),
        ({"draws": 0}, "draws .*got 0"),
        ({"noise_var": -1.0}, "noise_var .*got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            make.boolean_network(KEY, **options)
    with pytest.raises(ValueError, match=r"noise_var .*got 0"):
        make.drugs(KEY, noise_var=0.0)


def test_the_table_of_made_up_drugs():
    with jax.enable_x64(True):
        keys = jax.random.split(KEY, 50)
        drawn = jax.tree.map(np.asarray, jax.jit(jax.vmap(make.drugs))(keys))
    assert drawn.arms.shape == (50, 10, 71)
    assert drawn.samples.shape == (50, 10, 18)
    np.testing.assert_allclose(drawn.means, np.tile(screening.MEANS, (50, 1)), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(drawn.arms, axis=2), 1.0)
    np.testing.assert_allclose(np.einsum("nkd,nd->nk", drawn.arms, drawn.theta), drawn.means)
    sizes = np.linalg.svd(drawn.arms, compute_uv=False)
    assert (sizes.min(), sizes.max()) > (0.5, 1.1)
    assert sizes.max() < 1.75
    assert 0.03 < drawn.samples.std(2).mean() < 0.045
    assert 0.27 < drawn.samples.min() < drawn.samples.max() < 0.57
    rest = drawn.samples - drawn.means[:, :, None]
    common = np.mean([np.corrcoef(table)[np.triu_indices(10, 1)].mean() for table in rest])
    assert 0.1 < common < 0.4  # patients differ


def test_made_up_drugs_take_as_long_as_the_real_ones():
    drugs = check(make.drugs(KEY))
    runs = jb.simulate(drugs, TOP, replications=30, seed=1)
    assert runs.stopped.all()
    assert abs(runs.pulls.mean() / 7630 - 1) < 0.1
    assert runs.correct.all()


NET = "\ufeffdirective updates async;\n// a comment\nA[]{}(0); B[-]{x}(17); C-1[]{}(8); \n"
EDGES = "A\tB\tpositive;\nB\tB\tnegative; // itself\n\nC-1\tB\tpositive;\n"


def test_a_network_is_read(tmp_path):
    (tmp_path / "x.net").write_text(NET + EDGES, encoding="utf-8")
    names, network = read_network(tmp_path / "x.net")
    assert names == ("A", "B", "C-1")
    np.testing.assert_array_equal(network.rules, [0, 17, 8])
    np.testing.assert_array_equal(network.regulators[1], [0, 1, 2])
    np.testing.assert_array_equal(network.activates, [[0] * 3, [1, 0, 1], [0] * 3])
    np.testing.assert_array_equal(network.represses, [[0] * 3, [0, 1, 0], [0] * 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NET + "A\tB\tpositive\n", "line 4 does not end with ;"),
        (NET + "A\tB\tmaybe;\n", "line 4 has the sign 'maybe'"),
        (NET + "A\tD\tpositive;\n", r"line 4 names the gene \['D'\], which has no rule"),
        (NET + EDGES + "A\tB\tnegative;\n", "line 8 lists a second time that A regulates B"),
        (NET + "A[]{}(3);\n", "line 4 lists the gene A a second time"),
        (NET + "D[]{}(18);\n", "line 4 gives D the rule '18', not one of 0 .. 17"),
        (NET + "D[]{}(0..17);\n", "line 4 gives D the rule '0..17'"),
        (NET + "A B positive;\n", "line 4 is neither a gene nor a regulation: 'A B positive'"),
        ("directive x;\n", "has no genes"),
        (b"\xff\xfe\x00", "is not text"),
    ],
)
def test_malformed_networks_are_named(text, message, tmp_path):
    (tmp_path / "x.net").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=rf"path: .*x.net {message}"):
        read_network(tmp_path / "x.net")
    with pytest.raises(ValueError, match=r"path: no file .*y.net"):
        read_network(tmp_path / "y.net")


FOLDER = ("features_71x10.csv", "grn/report_model1_solution.net")
LOG = "rewards_cosine_10drugs_18samples.txt"
GENES = ("B", "A", "C")  # the log has them in alphabetical order, but for the state
TARGET = "01|"


def call(initial, drug, masked, state, name, score="0.5", target=TARGET):
    rows = zip(
        (initial, drug, masked, state, target), ("initial", "drug", "m", "s", "t"), strict=True
    )
    lines = [f"{row}\t{label}" for row, label in rows]
    return [*lines, f"('Arm: ', (3, '{name}'), 'scores = ', ({score}, 1.0, 0.1))"]


CALLS = [
    *call("1||", "|0|", "10|", "100", "X"),
    *call("1||", "1|1", "1|1", "111", "Y", "0.25"),
    *call("00|", "|0|", "00|", "000", "X"),
    *call("00|", "1|1", "101", "011", "Y"),
]


def write(
    folder, log=CALLS, net="B[]{}(4); A[]{}(8); C[]{}(9);\nA\tB\tpositive;\n", header="g,Y,X"
):
    (folder / "grn").mkdir(exist_ok=True)
    (folder / FOLDER[0]).write_text(f"{header}\nf1,1.0,0.0\nf2,0.5,2.0\n")
    (folder / FOLDER[1]).write_text(net)
    (folder / LOG).write_text("\n".join(log))
    return folder


def test_a_log_is_read(tmp_path):
    calls = read_calls(write(tmp_path) / LOG, GENES)
    assert calls.drugs == ("X", "Y", "X", "Y")
    np.testing.assert_array_equal(calls.scores, [0.5, 0.25, 0.5, 0.5])
    np.testing.assert_array_equal(calls.initial[0], [-1, 1, -1])  # of B, A, C
    np.testing.assert_array_equal(calls.drug[:2], [[0, -1, -1], [-1, 1, 1]])
    np.testing.assert_array_equal(calls.masked[3], [0, 1, 1])
    np.testing.assert_array_equal(calls.state[3], [0, 1, 1])
    np.testing.assert_array_equal(calls.target, [[1, 0, -1]] * 4)


def test_an_instance_from_files(tmp_path):
    instance = check(make.boolean_drugs(write(tmp_path), draws=50, noise_var=0.1))
    screen = instance.simulator
    np.testing.assert_array_equal(instance.arms, [[1.0, 0.5], [0.0, 2.0]])  # Y, then X
    np.testing.assert_array_equal(screen.drugs.known, [[0, 1, 1], [1, 0, 0]])
    np.testing.assert_array_equal(screen.drugs.active, [[0, 1, 1], [0, 0, 0]])
    np.testing.assert_array_equal(screen.patients.known, [[0, 1, 0], [1, 1, 0]])
    np.testing.assert_array_equal(screen.patients.active, [[0, 1, 0], [0, 0, 0]])
    np.testing.assert_array_equal(screen.target, [[1, 1, 0], [1, 0, 0]])
    # A has no regulators and a rule that makes it false: B copies it.
    np.testing.assert_array_equal(instance.means, [0.0, 0.0])
    assert float(instance.noise_var) == 0.1


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (CALLS[:-1], "ends within a call, after 5 of 6 lines"),
        (["1|\tinitial", *CALLS[1:]], "line 1 has 2 genes instead of 3"),
        ([*CALLS[:7], "1?1\tdrug", *CALLS[8:]], r"line 8 holds '\?', not one of"),
        ([*CALLS[:5], "('Arm: ', ())", *CALLS[6:]], "line 6 does not name a drug and its score"),
        ([*CALLS[:5], CALLS[5].replace("0.5", "high"), *CALLS[6:]], "line 6 has the score 'high'"),
        ([], "is empty"),
        (CALLS[:18], "does not try each of Y, X on the same patients"),
        (CALLS[:12] * 2 + CALLS[:6], "does not try each of Y, X"),
        ([*CALLS[:18], *call("01|", "1|1", "111", "011", "Y")], "changes a patient"),
        ([*CALLS[:18], *call("00|", "1|0", "100", "011", "Y")], "changes a drug"),
        ([*CALLS[:18], *call("00|", "1|1", "101", "011", "Y", target="00|")], "changes a target"),
    ],
)
def test_malformed_logs_are_named(log, message, tmp_path):
    with pytest.raises(ValueError, match=rf"path: .*{LOG} {message}"):
        make.boolean_drugs(write(tmp_path, log))


def test_missing_files_are_named(tmp_path):
    write(tmp_path)
    for name in (LOG, *FOLDER[::-1]):
        (tmp_path / name).unlink()
        with pytest.raises(ValueError, match=rf"path: no file .*{name}"):
            make.boolean_drugs(tmp_path)


DATA = os.environ.get("JAXBANDITS_DATA")
real = pytest.mark.skipif(DATA is None, reason="JAXBANDITS_DATA names no folder")


@pytest.fixture(scope="module")
def folder():
    return Path(DATA) / "drug_repurposing"


@real
def test_the_real_network_and_the_recorded_calls(folder):
    names, network = read_network(folder / FOLDER[1])
    used = network.activates | network.represses
    free = ~used.any(1)
    assert (len(names), used.sum(), network.represses.sum(), free.sum()) == (101, 84, 5, 47)
    assert (network.rules[free] >= 9).sum() == 23
    calls = read_calls(folder / LOG, names)
    assert calls.state.shape == (180, 101)
    states = jnp.asarray(calls.state == 1)
    with jax.enable_x64(True):
        after = jax.jit(jax.vmap(partial(all_at_once, jax.tree.map(jnp.asarray, network))))(states)
        target = calls.target[0]
        score = jax.jit(jax.vmap(cosine, (0, None, None)))
        found = score(states, jnp.asarray(target >= 0), jnp.asarray(target == 1))
    np.testing.assert_array_equal(after, calls.state == 1)  # all are at rest
    np.testing.assert_allclose(found, calls.scores, atol=1e-12)
    masked = np.where(calls.drug >= 0, calls.drug, calls.initial)
    np.testing.assert_array_equal(masked, calls.masked)
    table = make.drug_repurposing(folder)
    recorded = dict(zip(_named(folder), table.samples, strict=True))
    for name, scores in recorded.items():
        mine = [s for drug, s in zip(calls.drugs, calls.scores, strict=True) if drug == name]
        np.testing.assert_allclose(mine, scores, atol=1e-12)


def _named(folder):
    return (folder / "rewards_named.csv").read_text().splitlines()[0].split(",")


@real
def test_the_real_drugs_simulated(folder):
    drugs = check(make.boolean_drugs(folder, draws=3000))
    assert ((drugs.means > 0.39) & (drugs.means < 0.446)).all()  # 0.40 to 0.44, and 4 deviations
    np.testing.assert_allclose(drugs.arms, make.drug_repurposing(folder).arms)
    np.testing.assert_allclose(drugs.arms @ drugs.theta, drugs.means, atol=1e-12)
    masks = (drugs.simulator.patients.known[:, None] | drugs.simulator.drugs.known).sum(-1)
    assert (masks.min(), masks.max(), round(masks.mean())) == (16, 56, 40)
    keys, arms = jax.random.split(KEY, 2000), jnp.arange(2000) % 10
    with jax.enable_x64(True):
        screen = jax.tree.map(jnp.asarray, drugs.simulator)
        assert jax.jit(jax.vmap(screen.outcome))(keys, arms).fixed.all()
        other = dataclasses.replace(screen, dynamics="synchronous")
        assert jax.jit(jax.vmap(other.outcome))(keys, arms).fixed.mean() < 0.05


class Pair(NamedTuple):
    """A simulator whose reward has the wrong shape, or is not a number."""

    scale: np.ndarray
    factor: np.ndarray

    def reward(self, key, arm):
        return self.scale[arm] * self.factor


@pytest.mark.parametrize(
    ("simulator", "message"),
    [
        (Pair(np.ones(3), np.ones(2)), r"must be a single number, got shape \(2,\)"),
        (Pair(np.ones(3), np.array(np.nan)), "its rewards must be finite"),
        (lambda key, arm: 1.0, "must be a pytree of arrays, got function"),
        ({"scale": np.ones(3)}, "must have a method"),
    ],
)
def test_what_is_no_simulator(simulator, message):
    with pytest.raises(ValueError, match=f"simulator:? .*{message}"):
        make.simulated(np.eye(3), simulator, noise_var=1.0, draws=4)


def test_drugs_need_a_folder(tmp_path):
    (file := tmp_path / "features_71x10.csv").write_text("a,b")
    with pytest.raises(ValueError, match="path must be a folder, got the file"):
        make.boolean_drugs(file)
