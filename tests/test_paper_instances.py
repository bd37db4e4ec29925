"""Fixed instances of a paper, by the figures that were published for them."""

import numpy as np
import pytest

import jaxbandits as jb
from benchmarks import paper_instances as paper
from jaxbandits.theory import characteristic_time


def slow(*row):
    return pytest.param(*row, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "sizes", "published", "decimals"),
    [
        ("many_arms", (10,), 10.949, 3),
        ("many_arms", (10, "normal_std"), 13.321, 3),
        ("many_arms", (10, "normal_var"), 19.799, 3),
        ("multivariate", (3,), 953.13, 2),
        ("multivariate", (3, "paper"), 1171.86, 2),
        slow("sphere", (20,), 57.717, 3),
        slow("many_arms", (100,), 11.202, 3),
        slow("many_arms", (100, "normal_std"), 18.234, 3),
        slow("many_arms", (100, "normal_var"), 157.22, 2),
        slow("multivariate", (4,), 114.01, 2),
        slow("multivariate", (4, "paper"), 113.41, 2),
        slow("multivariate", (5,), 2758.7, 1),
        slow("multivariate", (5, "paper"), 118.96, 2),
        slow("sphere", (50,), 51.752, 3),
        slow("sphere", (100,), 53.852, 3),
    ],
)
def test_characteristic_times_are_the_published_ones(name, sizes, published, decimals):
    bound = characteristic_time(getattr(paper, name)(*sizes))
    half_a_digit = 0.5 * 10.0**-decimals
    np.testing.assert_allclose(bound, published, rtol=1e-6, atol=half_a_digit)


@pytest.mark.parametrize(
    ("name", "sizes", "published"),
    [
        ("sphere", (20,), 25.743),
        slow("sphere", (50,), 29.516),
        slow("sphere", (100,), 31.898),
        slow("many_arms", (10,), 4.0),
        slow("many_arms", (100, "normal_var"), 4.0),
        slow("multivariate", (3,), 16.0),
        slow("multivariate", (4,), 24.0),
        slow("multivariate", (5, "paper"), 36.0),
    ],
)
def test_values_of_optimal_xy_designs_are_the_published_ones(name, sizes, published):
    instance = getattr(paper, name)(*sizes)
    design = jb.design.xy_optimal(instance.arms, instance.targets, tol=1e-6)
    assert design.converged
    np.testing.assert_allclose(design.value, published, rtol=2e-6, atol=5e-4)
