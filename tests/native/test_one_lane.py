"""The programs that GPUs get, compiled for a CPU, play as XLA does."""

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from params import params
from programs import simulate

from jaxbandits.compilers import cpp
from jaxbandits.compilers.cpp import program
from jaxbandits.engine import checks
from jaxbandits.engine.device_loop import ENGINES

QUICK = ("lingape", "gse_uniform")
SLOW = [case.name for case in cases.NOT_CONTEXTUAL if case.name not in QUICK]


@pytest.fixture
def one_lane(monkeypatch):
    monkeypatch.setattr(checks, "ENGINES", (*ENGINES, "one lane"))


@pytest.mark.parametrize("name", params([*QUICK, *SLOW], slow=SLOW))
def test_replications_are_those_of_xla(one_lane, name):
    case = cases.named(name)
    ours, other = (
        simulate(case.instance, case.build, replications=96, engine=engine, **case.options)
        for engine in ("one lane", "xla")
    )
    assert ours.meta["engine"] == "one lane"
    same = (ours.arm_pulls == other.arm_pulls).all(1)
    assert same.mean() >= 0.97
    np.testing.assert_array_equal(ours.answer[same], other.answer[same])


def watched():
    """`ONE_LANE`, and the list of the sources that it is called with."""
    sources = []

    def call(source, *others):
        sources.append(source)
        return cpp.ONE_LANE.call(source, *others)

    return cpp.ONE_LANE._replace(call=call), sources


def test_large_tables_are_in_the_memory_of_all_lanes():
    def function(v, at):
        table = jnp.outer(v, v) + jnp.sort(v)
        return table.at[at].add(1.0)[::-1].cumsum(0), table[at], jnp.argsort(v)

    rng = np.random.default_rng(3)
    lanes = 5
    args = jnp.asarray(rng.normal(size=(40, lanes))), jnp.asarray(rng.integers(0, 40, lanes))
    target, sources = watched()
    found = jax.jit(cpp.natively(function, lanes, target=target))(*args)
    expected = jax.vmap(function, -1, -1)(*args)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)
    (source,) = sources
    assert source.scratch >= 40 * 40 * program.WORD
    assert "Spread<vf64>" in source.text


def test_large_tables_that_are_carried_are_on_the_chip_and_are_not_copied():
    def step(carry):
        table, total = carry
        table = table - jnp.outer(table[0], table[:, 0]) / 400
        return (table, total + table.sum()), jnp.ones((), int)

    rng = np.random.default_rng(4)
    lanes, steps = 3, 7
    carry = jnp.asarray(rng.normal(size=(20, 20, lanes))), jnp.zeros(lanes)
    target, sources = watched()
    play = cpp.repeated(step, lanes, lambda carry: carry[1] < jnp.inf, steps, target)
    (table, total), played = jax.jit(play)(carry)
    expected = carry
    for _ in range(steps):
        expected, _ = jax.vmap(step, -1, (-1, 0))(expected)
    np.testing.assert_allclose(table, expected[0], rtol=1e-12)
    np.testing.assert_allclose(total, expected[1], rtol=1e-12)
    np.testing.assert_array_equal(played, steps)
    (source,) = sources
    assert source.on_chip == 20 * 20 * program.WORD
    # The table itself, and its next entries, which all depend on its first row and column.
    assert source.text.count("[400]") == 1
