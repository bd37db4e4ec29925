"""Boolean networks against their rules written as logic, and against updates gene by gene."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxbandits.compilers.cpp import natively
from jaxbandits.compilers.lanewise import lanewise
from jaxbandits.instances import gene_networks as kernel
from jaxbandits.instances.gene_networks import Network

GENES, MOST, LANES = 12, 4, 16
LOGIC = [
    lambda all_a, any_a, no_r, some_r: all_a and no_r,
    lambda all_a, any_a, no_r, some_r: any_a and no_r,
    lambda all_a, any_a, no_r, some_r: all_a and some_r,
    lambda all_a, any_a, no_r, some_r: (no_r and any_a) or (some_r and all_a),
    lambda all_a, any_a, no_r, some_r: all_a,
    lambda all_a, any_a, no_r, some_r: all_a or (no_r and any_a),
    lambda all_a, any_a, no_r, some_r: any_a and some_r,
    lambda all_a, any_a, no_r, some_r: (any_a and some_r) or all_a,
    lambda all_a, any_a, no_r, some_r: any_a,
    lambda all_a, any_a, no_r, some_r: no_r,
    lambda all_a, any_a, no_r, some_r: no_r or (some_r and all_a),
    lambda all_a, any_a, no_r, some_r: no_r or (any_a and some_r),
    lambda all_a, any_a, no_r, some_r: some_r,
    lambda all_a, any_a, no_r, some_r: no_r or all_a,
    lambda all_a, any_a, no_r, some_r: no_r or all_a or (some_r and any_a),
    lambda all_a, any_a, no_r, some_r: some_r or all_a,
    lambda all_a, any_a, no_r, some_r: no_r or any_a,
    lambda all_a, any_a, no_r, some_r: some_r or any_a,
]


def plain(rule, activators, repressors):
    """The next value of a gene; `some_r`: some repressor is silent, or there is none."""
    all_a, any_a = bool(activators) and all(activators), any(activators)
    no_r = not any(repressors)
    some_r = not (repressors and all(repressors))
    value = LOGIC[rule](all_a, any_a, no_r, some_r)
    if activators and not repressors:
        return bool(value and any_a)
    if repressors and not activators:
        return bool(value or no_r)
    return bool(value)


def network(seed, *, most=MOST, positive=0.7):
    """A random network of NumPy arrays; a gene may regulate itself."""
    rng = np.random.default_rng(seed)
    regulators = np.array([rng.permutation(GENES)[:most] for _ in range(GENES)])
    used = np.arange(most) < rng.integers(0, most + 1, (GENES, 1))
    activates = rng.random((GENES, most)) < positive
    return Network(regulators, used & activates, used & ~activates, rng.integers(0, 18, GENES))


def next_value(net, state, gene):
    """The next value of a gene, with its regulators looked up one by one."""
    seen = [bool(state[r]) for r in net.regulators[gene]]
    activators = [x for x, yes in zip(seen, net.activates[gene], strict=True) if yes]
    repressors = [x for x, yes in zip(seen, net.represses[gene], strict=True) if yes]
    return plain(net.rules[gene], activators, repressors)


def walk(net, state, orders):
    """Update gene by gene until a sweep changes nothing; returns `(state, fixed, sweeps)`."""
    state = list(state)
    for number, order in enumerate(orders, 1):
        before = list(state)
        for gene in order:
            state[gene] = next_value(net, state, gene)
        if state == before:
            return state, True, number
    return state, False, len(orders)


updated_all = jax.jit(kernel.updated)


def stacked(nets):
    return jax.tree.map(lambda *x: np.stack(x), *nets)


@pytest.mark.parametrize("sizes", list(itertools.product(range(3), range(3))), ids=str)
def test_rules_equal_logic_for_all_states_of_their_regulators(sizes):
    """18 genes, one for each rule, with the same activators and repressors."""
    num_a, num_r = sizes
    number = num_a + num_r
    slots = np.arange(4)
    regulators = np.tile(slots + 18, (18, 1))  # regulators are genes 18 to 21
    own = (np.tile(slots < num_a, (18, 1)), np.tile((slots >= num_a) & (slots < number), (18, 1)))
    empty = np.zeros((4, 4), bool)
    tables = [np.concatenate([x, empty]) for x in own]
    net = Network(np.concatenate([regulators, np.zeros((4, 4), int)]), *tables, np.arange(22) % 18)
    for values in itertools.product([False, True], repeat=number):
        state = np.zeros(22, bool)
        state[18 : 18 + number] = values
        expected = [plain(rule, values[:num_a], values[num_a:]) for rule in range(18)]
        found = updated_all(net, state)
        np.testing.assert_array_equal(found[:18], expected)
        if number == 0:
            np.testing.assert_array_equal(found[:18], np.arange(18) >= 9)


def test_the_rules_are_18_different_monotone_functions():
    """None of them is constant."""
    table = kernel.RULES
    assert (np.diff(table, axis=1) >= 0).all()
    assert len({tuple(row) for row in table}) == 18
    assert not {(0, 0, 0), (3, 3, 3)} & {tuple(row) for row in table}


def test_updated_gene_changes_one_gene_by_its_rule():
    net, update = network(0), jax.jit(kernel.updated_gene)
    rng = np.random.default_rng(1)
    for gene in range(GENES):
        state = rng.random(GENES) < 0.5
        found = update(net, state, gene)
        state[gene] = next_value(net, state, gene)
        np.testing.assert_array_equal(found, state)


PLAIN_SWEEPS = 30  # sweeps that are repeated in Python


@jax.jit
def limits(nets, keys, starts, sweeps):
    """Final states, and the priorities that order the genes in the first sweeps."""
    end = jax.vmap(lambda net, key, start: kernel.attractor(net, key, start, sweeps=sweeps))
    priorities = jax.vmap(lambda key, sweep: kernel.update_order(key, sweep, GENES), (None, 0))
    return end(nets, keys, starts), jax.vmap(priorities, (0, None))(keys, jnp.arange(PLAIN_SWEEPS))


@pytest.mark.parametrize("sweeps", [1, 2, 200])
def test_sweeps_equal_updates_gene_by_gene(sweeps):
    keys = jax.random.split(jax.random.key(2), 40)
    nets = [network(seed, positive=0.9) for seed in range(40)]
    starts = np.random.default_rng(3).random((40, GENES)) < 0.5
    ends, priorities = jax.tree.map(np.asarray, limits(stacked(nets), keys, starts, sweeps))
    for i, net in enumerate(nets):
        state, fixed, number = walk(net, starts[i], np.argsort(priorities[i, :sweeps], axis=1))
        if number == PLAIN_SWEEPS:
            continue  # no fixed point within these sweeps
        np.testing.assert_array_equal(ends.state[i], state)
        assert (bool(ends.fixed[i]), int(ends.sweeps[i])) == (fixed, number)
        is_fixed_point = all(state[g] == next_value(net, state, g) for g in range(GENES))
        assert is_fixed_point or not fixed
    if sweeps == 200:
        assert 20 < ends.fixed.sum() < 40
        assert (ends.sweeps[~ends.fixed] == 200).all()


def test_synchronous_updates_equal_a_plain_loop():
    limit = jax.jit(jax.vmap(lambda net, start: kernel.attractor(net, KEY, start, "synchronous")))
    nets = [network(seed) for seed in range(40)]
    starts = np.random.default_rng(4).random((40, GENES)) < 0.5
    ends = jax.tree.map(np.asarray, limit(stacked(nets), starts))
    for i, net in enumerate(nets):
        state, fixed, steps = list(starts[i]), False, 0
        while not fixed and steps < 40:
            after = [next_value(net, state, g) for g in range(GENES)]
            state, fixed, steps = after, after == state, steps + 1
        np.testing.assert_array_equal(ends.state[i], state)
        assert (bool(ends.fixed[i]), int(ends.sweeps[i])) == (fixed, steps)
    assert 0 < ends.fixed.sum() < 40


KEY = jax.random.key(0)


def test_both_compilers_find_the_attractors_of_vmap():
    net = jax.tree.map(jnp.asarray, network(7, positive=0.95))

    def one(key, start):
        return tuple(kernel.attractor(net, key, start))

    keys = jax.random.split(KEY, LANES)
    starts = np.random.default_rng(6).random((GENES, LANES)) < 0.5
    expected = jax.jit(jax.vmap(one, (0, -1), -1))(keys, starts)
    lanes = jax.jit(lambda unit, *args: lanewise(one, LANES, unit)(*args))(1.0, keys, starts)
    native = jax.jit(natively(one, LANES))(keys, starts)
    for found in (lanes, native):
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, y)
    assert len(set(np.asarray(expected[2]).tolist())) > 1  # sweeps


def test_update_orders_are_uniform():
    """All 24 orders of 4 genes are equally frequent; 101 genes have distinct priorities."""
    priorities = jax.jit(jax.vmap(lambda i: kernel.update_order(KEY, i, 101)))(jnp.arange(4800))
    orders = np.argsort(np.argsort(priorities[:, 30:34], axis=1), axis=1) @ [64, 16, 4, 1]
    _, times = np.unique(orders, return_counts=True)
    assert len(times) == 24
    assert ((times - 200) ** 2 / 200).sum() < 60  # chi-square of 23: 1e-4 beyond 53
    assert all(len(set(row)) == 101 for row in np.asarray(priorities[:200]))


def test_unknown_genes_are_filled_by_fair_coin_flips():
    known, active = np.arange(50) < 20, np.arange(50) % 2 == 0
    fill = jax.jit(jax.vmap(kernel.filled, (0, None, None)))
    states = np.asarray(fill(jax.random.split(KEY, 2000), known, active))
    assert (states[:, :20] == active[:20]).all()
    assert np.abs(states[:, 20:].mean(0) - 0.5).max() < 5 * 0.5 / np.sqrt(2000)
    assert np.abs(np.corrcoef(states[:, 20:].T)[np.triu_indices(30, 1)]).max() < 0.12


def test_cosine_compares_the_known_genes():
    rng = np.random.default_rng(5)
    score = jax.jit(kernel.cosine)
    for _ in range(20):
        state, known, active = (rng.random(30) < p for p in (0.6, 0.5, 0.4))
        q, target = state[known].astype(float), (active & known)[known].astype(float)
        expected = q @ target / (np.linalg.norm(q) * np.linalg.norm(target))
        np.testing.assert_allclose(score(state, known, active), expected)
    nothing, all_ = np.zeros(30, bool), np.ones(30, bool)
    for case in ((nothing, all_, all_), (all_, all_, nothing), (all_, nothing, all_)):
        assert float(score(*case)) == 0.0
    assert float(score(all_, all_, all_)) == 1.0
