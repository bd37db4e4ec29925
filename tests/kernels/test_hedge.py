import jax
import numpy as np
import pytest
from compiled import compiled

from jaxbandits.kernels.games import hedge

weights_of, learn = compiled(hedge.weights), compiled(hedge.learn)
at, put, start = compiled(hedge.at), compiled(hedge.put), compiled(hedge.start, "num_actions")


@jax.jit
def all_rounds(losses):
    """Weights and own loss of each round, and the learner after the last."""

    def step(learner, loss):
        weights = hedge.weights(learner)
        return hedge.learn(learner, weights, loss), (weights, weights @ loss)

    end, (weights, own) = jax.lax.scan(step, hedge.start(losses.shape[1]), losses)
    return weights, own, end


@pytest.mark.parametrize("shared", [False, True])
def test_each_slot_has_a_learner_and_a_new_owner_a_new_one(shared):
    """Where sets share a slot, the latest set to use it begins with a new learner."""
    table = hedge.many(3, 2, shared=shared)
    one, other = np.array([True, False]), np.array([False, True])
    slot = np.asarray(1)
    learner = learn(at(table, slot, one), np.array([0.5, 0.5]), np.array([0.0, 1.0]))
    table = put(table, slot, learner, one)
    np.testing.assert_array_equal(at(table, slot, one).losses, [0.0, 1.0])
    np.testing.assert_array_equal(at(table, np.asarray(0), one).losses, [0.0, 0.0])
    found = at(table, slot, other)
    np.testing.assert_array_equal(found.losses, [0.0, 0.0] if shared else [0.0, 1.0])
    assert (found.mixability == hedge.FIRST) == shared


def as_published(losses):
    """Weights by the published formulas, and the final mixability gap."""
    sums, gaps, found = np.zeros(losses.shape[1]), 0.01, []
    for loss in losses:
        rate = np.log(len(sums)) / gaps
        weights = np.exp(-rate * (sums - sums.min()))
        weights = weights / weights.sum()
        mixed = -np.log(weights @ np.exp(-rate * (loss - loss.min()))) / rate + loss.min()
        found.append(weights)
        sums, gaps = sums + loss, gaps + weights @ loss - mixed
    return np.array(found), gaps


@pytest.mark.parametrize("drift", [0.0, 0.3])
def test_weights_follow_the_published_formulas(drift):
    losses = np.random.default_rng(0).normal(size=(300, 5)) + drift * np.arange(5)
    weights, _, end = all_rounds(losses)
    expected, gaps = as_published(losses)
    np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(end.mixability, gaps, rtol=1e-10)
    np.testing.assert_allclose(end.losses, losses.sum(0))


@pytest.mark.parametrize("seed", range(3))
def test_regret_is_at_most_twice_the_mixability(seed):
    """The theorem behind the rate (de Rooij et al., 2014, Lemma 3)."""
    rng = np.random.default_rng(seed)
    good = (np.arange(1000)[:, None] // 50) % 4 == np.arange(4)  # the best action changes
    losses = rng.random((1000, 4)) - good
    _, own, end = all_rounds(losses)
    assert own.sum() - losses.sum(0).min() <= 2 * end.mixability


def test_the_gap_is_finite_when_all_weight_was_on_the_losing_action():
    """The published sum under the logarithm underflows to zero in double precision."""
    learner = hedge.Hedge(np.array([0.0, 1e4]), np.asarray(0.01))
    weights = weights_of(learner)
    np.testing.assert_array_equal(weights, [1.0, 0.0])
    after = learn(learner, weights, np.array([2e4, 0.0]))
    # The soft minimum rises from 0 to 1e4, and the own loss is 2e4.
    np.testing.assert_allclose(after.mixability, 0.01 + 1e4, rtol=1e-12)


def test_a_learner_with_one_action_gives_it_all_weight():
    learner = learn(start(1), np.ones(1), np.array([3.0]))
    np.testing.assert_array_equal(weights_of(learner), [1.0])
    assert float(learner.mixability) == 0.01


def test_losses_of_zero_change_nothing():
    learner = hedge.Hedge(np.array([0.3, 0.1, 2.0]), np.asarray(0.4))
    after = learn(learner, weights_of(learner), np.zeros(3))
    np.testing.assert_array_equal(after.losses, learner.losses)
    assert float(after.mixability) == float(learner.mixability)
