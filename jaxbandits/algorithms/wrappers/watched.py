"""GLM-TSL and GLM-FPL, with the events of their regret theorems counted."""

import functools
from collections.abc import Callable
from typing import Any, cast

from ...core import Algorithm
from ...feature_tables import require
from ...parameters import Constructor
from .diagnosed import Diagnosed


def watched(algorithm: Callable[..., Algorithm]) -> functools.partial[Algorithm]:
    """`glm_tsl` or `glm_fpl`, which draws as before, with the events of its theorem counted.

    The theorems (Kveton et al., 2020, Sections 4.3 and 4.4) are about the estimate and the random
    parameter by which a round chooses its arm, in the norm `||x||` of `G^-1`, G the sum of `x x^T`
    so far. Once G is large, they assume three events. `near`: `|x^T (estimate - theta)| <= c_1
    ||x||` for all arms x, except with probability 1/n. `shaken`: `|x^T (random - estimate)| <= c_2
    ||x||` for all arms x, except with probability 1/n (2/n in GLM-FPL). `raised`: `x^T (random -
    estimate) > c_1 ||x||` for the best arm, with probability 0.15 at least. Regret is then at most
    in proportion to the sum of `||x||` of the arms drawn (`widths`), see
    `jaxbandits.theory.glm_tsl_regret_bound`.

    Args:
      algorithm: `glm_tsl` or `glm_fpl`, or `functools.partial` of one with its options.
    Returns:
      A constructor with the same options and `theta`, `[d]`, the true parameter, which a simulation
      supplies. The algorithm that it builds draws the same arms. Its `info` has besides: `rounds`,
      the number of rounds observed; `near`, `shaken` and `raised`, the numbers of those rounds in
      which the event happened; and `widths`. The first arms are drawn before the rounds that are
      observed: there is no estimate yet.
    Raises:
      ValueError: another algorithm. When it is played: a bad option, or no `horizon`, which both
        constants take; no `theta`.
    Deviations:
      `c_1` and `c_2` are those of the theorems whatever the scale `a` is, so that `raised` is rare
      where it is "informal". All rounds after the first arms are observed, and not only those in
      which G is large; none is where the arms do not span.
    Setting:
      `glm_tsl` or `glm_fpl`, the events of their theorems counted.
    Assumptions:
      those of the algorithm. Arms without features: as for the algorithm.
    Guarantee:
      that of the algorithm, which draws as before.
    Cost:
      that of the algorithm, and K d^2 + d^3 for a round that is observed.
    Reference:
      B. Kveton et al., "Randomized exploration in generalized linear bandits", AISTATS 2020,
      Sections 4.2 to 4.4. https://arxiv.org/abs/1906.08947
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> instance = jb.instances.glm([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.0], family="gaussian")
      >>> algorithm = jb.watched(partial(jb.glm_tsl, a="theory", family="gaussian"))
      >>> found = jb.simulate(instance, algorithm, horizon=500, replications=20).info
      >>> bool(0.14 < found["raised"].sum() / found["rounds"].sum() < 0.18)
      True
    """
    function: Any = algorithm
    args, options = (), {}
    if isinstance(algorithm, functools.partial):
        function, args, options = algorithm.func, algorithm.args, algorithm.keywords
    name = getattr(function, "__name__", repr(function))
    known = getattr(function, "deviation", None) is not None
    require(known, f"algorithm must be glm_tsl or glm_fpl, got {name}")
    return functools.partial(Diagnosed(cast("Constructor[...]", function)), *args, **options)
