"""The named instances of the papers, as functions of sizes and numbers."""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from ..parameters import Finite, Nonnegative, Normal, Positive, Size, choice, require
from ..precision import double, floats, is_traced, numpy_for
from ..types import Key
from .instance import Instance, glm, linear
from .options import Pair, Triple, check_room, checked

DEVIATIONS: dict[str, float] = {"normal_std": 0.09, "normal_var": 0.3}  # of angles about pi/4
# Hundredths, the end excluded.
WEIGHTS: dict[str, tuple[int, int]] = {"program": (-10, 10), "paper": (-30, 31)}
DRAWS: int = 32  # sets of weights to choose from
COSINES: int = 2**22  # numbers of a table of them, which is of all pairs up to 2,048 arms
MOST_FACTORS: int = 60  # whose layouts no memory holds
TIED: float = 1e-5  # the largest gap that counts as a tie


@checked
@double
def soare(
    dim: Pair, *, angle: Finite = 0.1, scale: Positive = 1.0, noise_var: Normal = 1.0
) -> Instance:
    """The d axes, and one arm at a small angle to the best of them (Soare et al., 2014).

    Arms `e_1 .. e_d` and `(cos angle, sin angle, 0, ..)`, theta = scale e_1.

    Args:
      dim: d, at least 2; K = d + 1.
      angle: of the disturbing arm; the gap is `scale (1 - cos angle)`.
      scale: 2 in the LinGapE and RAGE papers, 1 in the GSE paper.
      noise_var: variance of a reward.

    >>> soare(5).arms.shape
    (6, 5)
    """
    check_room(dim + 1, dim, dim=dim)
    basis = np.eye(dim)
    arms = _stacked(basis, _between(basis[:1], basis[1:2], angle))
    return linear(arms, scale * basis[0], noise_var=noise_var)


def _between(rows, others, angle):
    """Each row turned by an angle towards the other, which is orthogonal to it."""
    cosine, sine = floats(jnp.cos(angle)), floats(jnp.sin(angle))
    return cosine * rows + sine * others


def _stacked(*tables):
    """Tables one below the other; nothing is compiled for those of NumPy."""
    return jnp.concatenate(tables) if is_traced(tables) else np.concatenate(tables)


@checked
@double
def canonical(dim: Pair, *, gap: Finite, noise_var: Normal = 1.0) -> Instance:
    """The standard basis, theta = (gap, 0, ..): the K-armed bandit with one good arm.

    >>> canonical(3, gap=0.5).means
    array([0.5, 0. , 0. ])
    """
    check_room(dim, dim, dim=dim)
    basis = np.eye(dim)
    return linear(basis, gap * basis[0], noise_var=noise_var)


@checked
@double
def sphere(
    key: Key, num_arms: Pair, dim: Size, *, mix: Nonnegative = 0.01, noise_var: Normal = 1.0
) -> Instance:
    """Arms uniform on the unit sphere, theta close to one of the closest pair (Tao et al., 2018).

    (i, j) is the closest pair, i < j; `theta = x_i + mix (x_j - x_i)`, so arm i is best.

    Args:
      key: a JAX random key; the same key gives the same instance.
      num_arms, dim: K and d.
      mix: 0 in the RAGE paper, 0.01 in the GSE paper.
      noise_var: variance of a reward.

    >>> import jax
    >>> instance = sphere(jax.random.key(0), 6, 3)
    >>> (instance.arms**2).sum(1).round(6)
    array([1., 1., 1., 1., 1., 1.])
    """
    check_room(num_arms, dim, num_arms=num_arms, dim=dim)
    raw = jax.random.normal(key, (num_arms, dim))
    arms = floats(raw / jnp.linalg.norm(raw, axis=1, keepdims=True))
    first, second = map(floats, _closest(arms))
    return linear(arms, first + mix * (second - first), noise_var=noise_var)


@jax.jit  # one program
def _closest(arms):
    """The closest pair of arms on a sphere, by some rows of the table of cosines at a time."""
    number, dim = arms.shape
    rows = min(number, max(1, COSINES // number))

    def closest_of(begin):
        index = begin + jnp.arange(rows)
        cosines = jax.lax.dynamic_slice(arms, (begin, 0), (rows, dim)) @ arms.T
        cosines = jnp.where(index[:, None] < jnp.arange(number), cosines, -jnp.inf)
        i, j = jnp.unravel_index(jnp.argmax(cosines), cosines.shape)
        return cosines[i, j], index[i], j

    if rows == number:
        _, i, j = closest_of(0)
    else:
        begins = np.minimum(np.arange(0, number, rows), number - rows)
        largest, first, second = jax.lax.map(closest_of, jnp.asarray(begins))
        best = jnp.argmax(largest)
        i, j = first[best], second[best]
    return arms[i], arms[j]


@checked
@double
def moderate_gaps(
    key: Key,
    num_arms: Triple,
    *,
    spread: Annotated[str, choice("uniform", *DEVIATIONS)] = "uniform",
    noise_var: Normal = 1.0,
) -> Instance:
    """Many arms of moderate gaps in the plane, and an informative arm (Fiez et al., 2019).

    Arms, in this order: e_1, the best; `(cos 3pi/4, sin 3pi/4)`, the most informative; and K - 2
    arms `(cos a_i, sin a_i)` with random angles; theta = e_1, so that their gaps are `1 - cos a_i`.

    Args:
      key: a JAX random key.
      num_arms: K, at least 3.
      spread: law of the angles. "uniform": `0.78 + 0.1 U(0, 1)`, gaps of 0.289 to 0.363.
        "normal_std": normal about pi/4 with standard deviation 0.09. "normal_var": with variance
        0.09; of 1000 arms the nearest then has a gap of some 1e-4.
      noise_var: variance of a reward.
    Raises:
      ValueError: fewer than 3 arms, an unknown spread.
    Deviations:
      The paper prints angles from N(pi/4, 0.09), the authors' program draws uniform ones. These are
      the default, as their gaps are moderate for any K. The program's second arm is
      (-0.707, 0.707), here it has unit length as in the paper; psi* moves by 2 in 10,000.

    >>> moderate_gaps(jax.random.key(0), 4).arms[:2].round(3)
    array([[ 1.   ,  0.   ],
           [-0.707,  0.707]])
    """
    check_room(num_arms, 2, num_arms=num_arms)
    angles = _angles(key, num_arms - 2, spread)
    arms = _directions(_stacked(np.array([0.0, 0.75 * np.pi]), angles))
    return linear(arms, np.eye(2)[0], noise_var=noise_var)


@checked
@double
def corner(key: Key, num_arms: Triple, *, noise_var: Normal = 1.0) -> Instance:
    """The corner case of d = 2, where OD-LinBAI plays one round (Azizi et al., 2022).

    Arms e_1; `(cos a_i, sin a_i)` for i = 2 .. K - 1, with a_i normal about pi/4, standard
    deviation 0.09; and `(cos 3pi/4, sin 3pi/4)`. theta = e_1, so that arm 0 is best. These are
    the arms of `moderate_gaps` with spread "normal_std" in another order (Yang and Tan, 2022).

    Args:
      key: a JAX random key.
      num_arms: K, at least 3; 3 to 24 in the paper.
      noise_var: variance of a reward.

    >>> corner(jax.random.key(0), 3).means.round(1)
    array([ 1. ,  0.7, -0.7])
    """
    check_room(num_arms, 2, num_arms=num_arms)
    first, last = np.zeros(1), np.full(1, 0.75 * np.pi)
    arms = _directions(_stacked(first, _angles(key, num_arms - 2, "normal_std"), last))
    return linear(arms, np.eye(2)[0], noise_var=noise_var)


def _angles(key, num, spread):
    if spread == "uniform":
        return 0.78 + 0.1 * floats(jax.random.uniform(key, (num,)))
    return np.pi / 4 + DEVIATIONS[spread] * floats(jax.random.normal(key, (num,)))


def _directions(angles):
    both = floats(jnp.cos(angles)), floats(jnp.sin(angles))
    return numpy_for(angles).stack(both, axis=1)


@checked
@double
def multivariate(
    key: Key,
    factors: Size,
    *,
    weights: Annotated[str, choice(*WEIGHTS)] = "program",
    noise_var: Normal = 1.0,
) -> Instance:
    """Layouts of a page: two choices for each of D slots, with interactions (Fiez et al., 2019).

    A layout w in {-1, 1}^D is the arm `(1, w_1 .. w_D, w_1 w_2, w_1 w_3 .. w_{D-1} w_D)`, so that
    K = 2^D and d = 1 + D + D (D - 1) / 2. Layout k holds the binary digits of k, -1 for 0, the
    first slot first. The design of least `max ||z - z'||^2` is uniform.

    Args:
      key: a JAX random key.
      factors: D, the number of slots.
      weights: of the entries of theta. "program": uniform on {-0.10, -0.09 .. 0.09}, the weight
        of w_1 w_2 halved. "paper": uniform on {-0.30, -0.29 .. 0.30}, all weights of pairs halved.
      noise_var: variance of a reward.
    Raises:
      ValueError: no factor, unknown weights.
    Deviations:
      The paper and the authors' program differ as described at `weights`; the figure was made with
      those of the program, the default. Rewards lie on a grid: one draw in ten to fifty has two
      best layouts and is rejected, as by the program. The first of 32 independent draws without a
      tie is taken, or the first of all if all are tied (a probability below 1e-31).

    >>> multivariate(jax.random.key(0), 2).arms
    array([[ 1., -1., -1.,  1.],
           [ 1., -1.,  1., -1.],
           [ 1.,  1., -1., -1.],
           [ 1.,  1.,  1.,  1.]])
    """
    pairs = factors * (factors - 1) // 2
    check_room(2 ** min(factors, MOST_FACTORS), 1 + factors + pairs, factors=factors)
    digits = np.arange(2**factors)[:, None] >> np.arange(factors - 1, -1, -1) & 1
    layouts = 2.0 * digits - 1.0
    first, second = np.triu_indices(factors, 1)
    pairs = layouts[:, first] * layouts[:, second]
    arms = np.concatenate([np.ones((len(layouts), 1)), layouts, pairs], axis=1)
    halved = slice(1 + factors, 2 + factors if weights == "program" else None)
    hundredths = floats(jax.random.randint(key, (DRAWS, arms.shape[1]), *WEIGHTS[weights]))
    factor = np.ones(arms.shape[1])
    factor[halved] = 0.5
    thetas = hundredths / 100.0 * factor
    best = numpy_for(key).sort(floats(jnp.matmul(thetas, arms.T)), axis=1)
    theta = thetas[(best[:, -1] - best[:, -2] > TIED).argmax()]
    return linear(arms, theta, noise_var=noise_var)


@checked
@double
def transductive(dim: Pair, *, angle: Finite = 0.1, noise_var: Normal = 1.0) -> Instance:
    """The axes as arms; half of them, each with a neighbour, as targets (Fiez et al., 2019).

    h = dim/2; targets e_j and `cos(angle) e_j + sin(angle) e_{h+j}` for j = 1 .. h, theta = e_1.

    >>> transductive(6).targets.shape
    (6, 6)
    """
    check_room(2 * dim, dim, dim=dim)
    require(dim % 2 == 0, f"dim must be even, got {dim}")
    basis = np.eye(dim)
    low, high = basis[: dim // 2], basis[dim // 2 :]
    targets = _stacked(low, _between(low, high, angle))
    return linear(basis, basis[0], noise_var=noise_var, targets=targets)


@checked
@double
def logistic_cube(
    key: Key,
    num_arms: Size,
    dim: Size,
    *,
    half_width: Positive = 0.5,
    theta_var: Positive | None = None,
) -> Instance:
    """Logistic rewards, arms uniform on a cube, theta ~ N(0, theta_var I).

    Args:
      key: a JAX random key.
      num_arms, dim: K and d.
      half_width: arms are uniform on [-half_width, half_width]^d: 0.5 in the GSE paper, 1 in
        the GLM-TSL paper.
      theta_var: variance of a coordinate of theta, 3/d by default. The GLM-TSL paper prints
        3/d^2, but the properties it states (unit variance of x^T theta) need 3/d.

    >>> import jax
    >>> logistic_cube(jax.random.key(0), 5, 2).family
    'logistic'
    """
    check_room(num_arms, dim, num_arms=num_arms, dim=dim)
    theta_var = 3.0 / dim if theta_var is None else theta_var
    arms_key, theta_key = jax.random.split(key)
    shape = (num_arms, dim)
    arms = jax.random.uniform(arms_key, shape, minval=-half_width, maxval=half_width)
    return glm(arms, jnp.sqrt(theta_var) * jax.random.normal(theta_key, (dim,)))


@checked
@double
def classic_top_m(num_arms: Pair, m: Size, *, angle: Finite, noise_var: Normal = 0.25) -> Instance:
    """The Top-m instance of Reda et al. (2021): d = K - 1, theta = e_1.

    Rows e_1; e_1 + e_a for a = 2 .. m; `cos(angle) e_1 + sin(angle) e_{m+1}`; e_{a-1} for the
    rest. The m first means are 1, the next is cos(angle), the others 0.

    >>> classic_top_m(4, 2, angle=0.5).means.round(3)
    array([1.   , 1.   , 0.878, 0.   ])
    """
    check_room(num_arms, num_arms - 1, num_arms=num_arms)
    require(m <= num_arms - 2, f"m must be at most num_arms - 2 = {num_arms - 2}, got {m}")
    basis = np.eye(num_arms - 1)
    good = basis[:m].copy()
    good[1:, 0] = 1.0
    near = _between(basis[:1], basis[m : m + 1], angle)
    return linear(_stacked(good, near, basis[m:]), basis[0], noise_var=noise_var)
