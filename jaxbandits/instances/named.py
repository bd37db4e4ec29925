"""The named problems of the papers, as functions of sizes and numbers."""

import jax
import jax.numpy as jnp

from ..options import count, nonnegative, positive, require, size
from ..precision import double
from .base import check_option, glm, linear


@double
def soare(dim, *, angle=0.1, scale=1.0, noise_var=1.0):
    """e_1 .. e_d and `(cos angle, sin angle, 0, ..)`, theta = scale e_1 (Soare et al., 2014).

    Args:
      dim: d, at least 2; K = d + 1.
      angle: of the disturbing arm; the gap is `scale (1 - cos angle)`.
      scale: 2 in the LinGapE and RAGE papers, 1 in the GSE paper.
      noise_var: variance of a reward.

    >>> soare(5).arms.shape
    (6, 5)
    """
    check_option(size(2), dim=dim)
    check_option(positive, scale=scale)
    extra = jnp.zeros(dim).at[0].set(jnp.cos(angle)).at[1].set(jnp.sin(angle))
    arms = jnp.concatenate([jnp.eye(dim), extra[None]])
    return linear(arms, scale * jnp.eye(dim)[0], noise_var=noise_var)


@double
def canonical(dim, *, gap, noise_var=1.0):
    """The standard basis, theta = (gap, 0, ..): the K-armed bandit with one good arm.

    >>> canonical(3, gap=0.5).means
    array([0.5, 0. , 0. ])
    """
    check_option(size(2), dim=dim)
    return linear(jnp.eye(dim), gap * jnp.eye(dim)[0], noise_var=noise_var)


@double
def sphere(key, num_arms, dim, *, mix=0.01, noise_var=1.0):
    """Arms uniform on the unit sphere, theta close to one of the closest pair (Tao et al., 2018).

    (i, j) is the closest pair, i < j; `theta = x_i + mix (x_j - x_i)`, so arm i is best.

    Args:
      key: a JAX random key; the same key gives the same instance.
      num_arms, dim: K and d.
      mix: 0 in the RAGE paper, 0.01 in the GSE paper.
      noise_var: variance of a reward.
    """
    check_option(size(2), num_arms=num_arms)
    check_option(size(1), dim=dim)
    check_option(nonnegative, mix=mix)
    raw = jax.random.normal(key, (num_arms, dim))
    arms = raw / jnp.linalg.norm(raw, axis=1, keepdims=True)
    cosines = jnp.where(jnp.triu(jnp.ones((num_arms, num_arms), bool), 1), arms @ arms.T, -jnp.inf)
    i, j = jnp.unravel_index(jnp.argmax(cosines), cosines.shape)
    return linear(arms, arms[i] + mix * (arms[j] - arms[i]), noise_var=noise_var)


@double
def transductive(dim, *, angle=0.1, noise_var=1.0):
    """Basis arms, and targets e_1 .. e_h with their neighbours at `angle` (Fiez et al., 2019).

    h = dim/2; targets e_j and `cos(angle) e_j + sin(angle) e_{h+j}` for j = 1 .. h, theta = e_1.

    >>> transductive(6).targets.shape
    (6, 6)
    """
    check_option(size(2), dim=dim)
    require(dim % 2 == 0, f"dim must be even, got {dim}")
    basis = jnp.eye(dim)
    low, high = basis[: dim // 2], basis[dim // 2 :]
    targets = jnp.concatenate([low, jnp.cos(angle) * low + jnp.sin(angle) * high])
    return linear(basis, basis[0], noise_var=noise_var, targets=targets)


@double
def logistic_cube(key, num_arms, dim, *, half_width=0.5, theta_var=None):
    """Logistic rewards, arms uniform on a cube, theta ~ N(0, theta_var I).

    Args:
      key: a JAX random key.
      num_arms, dim: K and d.
      half_width: arms are uniform on [-half_width, half_width]^d: 0.5 in the GSE paper, 1 in
        the GLM-TSL paper.
      theta_var: variance of a coordinate of theta, 3/d by default. The GLM-TSL paper prints
        3/d^2, but the properties it states (unit variance of x^T theta) need 3/d.
    """
    check_option(count(1), num_arms=num_arms)
    check_option(size(1), dim=dim)
    check_option(positive, half_width=half_width)
    check_option(positive, theta_var=theta_var)
    theta_var = 3.0 / dim if theta_var is None else theta_var
    arms_key, theta_key = jax.random.split(key)
    shape = (num_arms, dim)
    arms = jax.random.uniform(arms_key, shape, minval=-half_width, maxval=half_width)
    return glm(arms, jnp.sqrt(theta_var) * jax.random.normal(theta_key, (dim,)))


@double
def classic_top_m(num_arms, m, *, angle, noise_var=0.25):
    """The Top-m instance of Reda et al. (2021): d = K - 1, theta = e_1.

    Rows e_1; e_1 + e_a for a = 2 .. m; `cos(angle) e_1 + sin(angle) e_{m+1}`; e_{a-1} for the
    rest. The m first means are 1, the next is cos(angle), the others 0.

    >>> classic_top_m(4, 2, angle=0.5).means.round(3)
    array([1.   , 1.   , 0.878, 0.   ])
    """
    check_option(size(2), num_arms=num_arms)
    check_option(size(1), m=m)
    require(m <= num_arms - 2, f"m must be at most num_arms - 2 = {num_arms - 2}, got {m}")
    basis = jnp.eye(num_arms - 1)
    good = basis[:m].at[1:, 0].set(1.0)
    near = jnp.cos(angle) * basis[:1] + jnp.sin(angle) * basis[m : m + 1]
    return linear(jnp.concatenate([good, near, basis[m:]]), basis[0], noise_var=noise_var)
