"""Synthetic drugs: the table, and random Boolean networks."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import QUICK
from test_instances import check

import jaxbandits as jb
from jaxbandits.instances import screening

make = jb.instances
TOP = partial(jb.m_lingape, m=5, threshold="heuristic", delta=0.05)
KEY = jax.random.key(0)


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
    return make.boolean_network(KEY, draws=300, m=0)


@pytest.mark.slow
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
            jax.random.split(KEY, 300), np.arange(300) % 10
        )
    assert ends.fixed.all()
    assert instance.means.std() > 0.005  # drugs differ


def test_a_drug_is_applied_to_a_uniformly_drawn_patient(random_drugs):
    instance = random_drugs
    screen = jax.tree.map(jnp.asarray, instance.simulator)
    with jax.enable_x64(True):
        draw = jax.jit(jax.vmap(screen.start))
        found = jax.tree.map(np.asarray, draw(jax.random.split(KEY, 900), np.arange(900) % 10))
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


def test_bad_options_are_named():
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


def test_the_table_of_synthetic_drugs():
    with jax.enable_x64(True):
        keys = jax.random.split(KEY, 50)
        drawn = jax.tree.map(np.asarray, jax.jit(jax.vmap(make.drugs))(keys))
    assert drawn.arms.shape == (50, 10, 71)
    assert drawn.samples.shape == (50, 10, 18)
    np.testing.assert_allclose(drawn.means, np.tile(screening.MEANS, (50, 1)), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(drawn.arms, axis=2), 1.0)
    np.testing.assert_allclose(np.einsum("nkd,nd->nk", drawn.arms, drawn.theta), drawn.means)
    sizes = np.linalg.svd(drawn.arms, compute_uv=False)
    assert sizes.min() > 0.5  # the features are independent, which makes the means linear
    assert sizes.max() < 1.75
    assert 0.03 < drawn.samples.std(2).mean() < 0.045
    assert 0.27 < drawn.samples.min() < drawn.samples.max() < 0.57
    rest = drawn.samples - drawn.means[:, :, None]
    common = np.mean([np.corrcoef(table)[np.triu_indices(10, 1)].mean() for table in rest])
    assert 0.1 < common < 0.4  # patients differ


@pytest.mark.slow
def test_synthetic_drugs_take_as_many_pulls_as_the_real_ones():
    drugs = check(make.drugs(KEY))
    runs = jb.simulate(drugs, TOP, replications=30, seed=1, engine=QUICK)
    assert runs.stopped.all()
    assert abs(runs.pulls.mean() / 7630 - 1) < 0.1
    assert runs.correct.all()
