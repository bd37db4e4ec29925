"""Designs and roundings as the package offers them: what they refuse, in what precision."""

import jax
import numpy as np
import pytest

import jaxbandits as jb

ARMS, WEIGHTS = np.eye(3), np.array([0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jb.rounding.regret(ARMS, [0.5, 0.5], 9), r"shape \(3,\), got \(2,\)"),
        (lambda: jb.rounding.regret(ARMS[0], WEIGHTS, 9), r"arms must be a table \[K, d\]"),
        (lambda: jb.rounding.regret(ARMS, 2 * WEIGHTS, 9), "weights must be non-negative with sum"),
        (lambda: jb.rounding.regret(ARMS, WEIGHTS, -1), "total must be .*got -1"),
        (
            lambda: jb.rounding.regret(ARMS, WEIGHTS, 9, form="random"),
            "form must be one of 'greedy', 'swap', got 'random'",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("form", ["greedy", "swap"])
def test_regret_rounding_of_independent_arms_is_near_the_shares(form):
    counts = jb.rounding.regret(ARMS, WEIGHTS, 1000, form=form)
    assert counts.dtype == np.int64
    assert counts.sum() == 1000
    assert np.abs(counts - 1000 * WEIGHTS).max() <= 6  # 4 d draws are chosen one by one
    assert not jax.config.jax_enable_x64
