"""GLM-TSL and GLM-FPL, with what their regret theorems speak of counted along the way."""

import functools

from ...feature_tables import require
from .diagnosed import Watched


def watched(algorithm):
    """`glm_tsl` or `glm_fpl`, played as ever, with the events of their theorems counted.

    The theorems (Kveton et al., 2020, Sections 4.3 and 4.4) speak of the estimate and the random
    parameter that a round chooses by, in the norm `||x||` of `G^-1`, G the sum of `x x^T` so far.
    Once G is large they ask for all arms x that `near`: `|x^T (estimate - theta)| <= c_1 ||x||`,
    but for a chance of 1/n, and `shaken`: `|x^T (random - estimate)| <= c_2 ||x||`, but for 1/n
    (2/n in GLM-FPL). With a chance of 0.15 at least, `raised`: `x^T (random - estimate) > c_1
    ||x||` for the best arm. Regret is then at most in proportion to the sum of `||x||` of the arms
    drawn (`widths`), see `jaxbandits.theory.glm_tsl_regret_bound`.

    Args:
      algorithm: `glm_tsl` or `glm_fpl`, or `functools.partial` of one with its options.
    Returns:
      A constructor with the same options, and `theta`, `[d]` the truth, which a simulation
      supplies. What it makes plays as before. Its `info` has besides `rounds`, how many were
      watched, those of them that were `near`, `shaken` and `raised`, and `widths`. The first arms
      are drawn before: there is no estimate yet.
    Raises:
      ValueError: another algorithm. When it is played: a bad option, or no `horizon`, which both
        constants take; no `theta`.
    Deviations:
      `c_1` and `c_2` are those of the theorems whatever the scale `a` is, so that `raised` is rare
      where it is "informal". All rounds count after the first arms (none of arms that do not
      span), and not only those in which G is large.
    Reference:
      B. Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020,
      Sections 4.2 to 4.4. https://arxiv.org/abs/1906.08947
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> world = jb.instances.glm([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.0], family="gaussian")
      >>> algorithm = jb.watched(partial(jb.glm_tsl, a="theory", family="gaussian"))
      >>> found = jb.simulate(world, algorithm, horizon=500, replications=20).info
      >>> bool(0.14 < found["raised"].sum() / found["rounds"].sum() < 0.18)
      True
    """
    args, options = (), {}
    if isinstance(algorithm, functools.partial):
        algorithm, args, options = algorithm.func, algorithm.args, algorithm.keywords
    name = getattr(algorithm, "__name__", repr(algorithm))
    known = hasattr(algorithm, "spread")
    require(known, f"algorithm must be glm_tsl or glm_fpl, got {name}")
    return functools.partial(Watched(algorithm), *args, **options)
