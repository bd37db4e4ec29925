"""Mean pulls are above the lower bound, and near it where delta is tiny."""

from functools import partial

import numpy as np
import pytest

import jaxbandits as jb

SOARE = jb.instances.soare(4, angle=0.6, scale=4.0)
TINY = 1e-40
SLOW = pytest.mark.slow
ALGORITHMS = [
    pytest.param(partial(jb.lingape, v0=0.01), marks=SLOW),
    pytest.param(partial(jb.lin_game, v0=0.01), marks=SLOW),
    pytest.param(partial(jb.top_two, v0=0.01), marks=SLOW),
    pytest.param(partial(jb.top_two, v0=0.01, selection="tracked"), marks=SLOW),
    partial(jb.frank_wolfe_sampling, v0=0.01),
    pytest.param(jb.lazy_track_and_stop, marks=SLOW),
]


def over_the_bound(build, delta):
    """Mean pulls divided by the lower bound for algorithms whose error rate is at most delta."""
    runs = jb.simulate(SOARE, partial(build, delta=delta), replications=100, seed=7)
    assert runs.stopped.all()
    assert runs.correct.all() or delta > TINY
    return runs.pulls.mean() / jb.theory.pull_lower_bound(SOARE, delta)


@pytest.mark.parametrize(
    "build", ALGORITHMS, ids=lambda build: getattr(build, "func", build).__name__
)
def test_pulls_are_near_the_lower_bound(build):
    assert over_the_bound(build, 0.05) > 1.0
    assert 1.0 < over_the_bound(build, TINY) < 1.55


def test_equal_shares_are_far_from_the_lower_bound():
    arms, means = np.asarray(SOARE.arms), np.asarray(SOARE.means)
    best, inverse = means.argmax(), np.linalg.inv(arms.T @ arms / len(arms))
    lengths = [(y := arms[best] - x) @ inverse @ y for x in arms]
    worst = max(lengths[j] / (means[best] - means[j]) ** 2 for j in range(len(arms)) if j != best)
    assert worst > 2.5 * jb.theory.characteristic_time(SOARE).value
