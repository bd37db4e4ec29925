"""The random instances of RAGE's experiments, one fixed instance for each size.

Published figures of single instances (psi*, rho of all differences, stopping times) belong to draws
of `numpy.random.RandomState(43)`, which JAX cannot reproduce. NumPy draws them again here, with the
arms in the order of the authors' program.
"""

import numpy as np

import jaxbandits as jb

SEED = 43


def many_arms(num_arms, spread="uniform"):
    """`moderate_gaps`: K - 2 arms at random angles, then e_1, then the most informative arm.

    The last arm is (-0.707, 0.707) for the "uniform" angles of the program, and has length 1 for
    the paper's normal ones ("normal_std", "normal_var").
    """
    random, num = np.random.RandomState(SEED), num_arms - 2
    if spread == "uniform":
        angles, last = 0.78 + 0.1 * random.rand(num), [-0.707, 0.707]
    else:
        deviation = {"normal_std": 0.09, "normal_var": 0.3}[spread]
        angles = np.pi / 4 + deviation * random.randn(num)
        last = [np.cos(0.75 * np.pi), np.sin(0.75 * np.pi)]
    arms = np.vstack([np.column_stack([np.cos(angles), np.sin(angles)]), [1.0, 0.0], last])
    return jb.instances.linear(arms, [1.0, 0.0])


def sphere(num_arms, dim=9):
    """Normal vectors of length 1; theta is the arm of smaller index of the closest pair."""
    raw = np.random.RandomState(SEED).randn(num_arms, dim)
    arms = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    cosines = np.where(np.triu(np.ones((num_arms, num_arms), bool), 1), arms @ arms.T, -2.0)
    best, _ = np.unravel_index(cosines.argmax(), cosines.shape)
    return jb.instances.linear(arms, arms[best])


def multivariate(factors, weights="program"):
    """Layouts in binary order, with the first random weights that have a unique best layout.

    "program": weights -0.10 .. 0.09, and only the first weight of a pair is halved; "paper":
    weights -0.30 .. 0.30, and all weights of pairs are halved.
    """
    layouts = np.array([[2 * int(x) - 1 for x in f"{k:0{factors}b}"] for k in range(2**factors)])
    pairs = [layouts[:, k] * layouts[:, j] for k in range(factors) for j in range(k + 1, factors)]
    arms = np.column_stack([np.ones(len(layouts)), layouts, *pairs])
    random = np.random.RandomState(SEED)
    low, high, last = (-10, 10, 2 + factors) if weights == "program" else (-30, 31, None)
    while True:
        theta = random.randint(low, high, arms.shape[1]) / 100
        theta[1 + factors : last] *= 0.5
        second, first = np.sort(arms @ theta)[-2:]
        if first - second >= 1e-5:
            return jb.instances.linear(arms, theta)
