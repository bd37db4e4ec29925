"""Networks and logs of simulations read from files, and the instance made of them."""

import dataclasses
import os
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_instances import check

import jaxbandits as jb
from jaxbandits.instances.gene_networks import cosine, updated
from jaxbandits.instances.genes import read_calls, read_network
from jaxbandits.system.identity import digest_files

make = jb.instances
KEY = jax.random.key(0)
digest_of = partial(digest_files, below=make.boolean_drugs.reads_below)


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
GENES = ("B", "A", "C")  # the log has them in alphabetical order, except in the state
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
    with pytest.warns(UserWarning, match="variance 0"):
        instance = check(make.boolean_drugs(write(tmp_path), draws=50, noise_var=0.1, m=0))
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
        after = jax.jit(jax.vmap(partial(updated, jax.tree.map(jnp.asarray, network))))(states)
        target = calls.target[0]
        score = jax.jit(jax.vmap(cosine, (0, None, None)))
        found = score(states, jnp.asarray(target >= 0), jnp.asarray(target == 1))
    np.testing.assert_array_equal(after, calls.state == 1)  # all are fixed points
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
    drugs = check(make.boolean_drugs(folder, draws=3000, m=0))
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


def test_another_network_has_another_digest(tmp_path):
    before = digest_of(write(tmp_path))
    assert digest_of(write(tmp_path)) == before
    assert digest_of(write(tmp_path, net="B[]{}(5); A[]{}(8); C[]{}(9);\n")) != before


def test_drugs_need_a_folder(tmp_path):
    (file := tmp_path / "features_71x10.csv").write_text("a,b")
    with pytest.raises(ValueError, match="path must be a folder, got the file"):
        make.boolean_drugs(file)
