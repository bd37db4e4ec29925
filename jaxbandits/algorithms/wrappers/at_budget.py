"""Any algorithm, stopped at a budget: how fixed-confidence rules are compared at equal cost."""

import functools
from collections.abc import Callable

from ...conditions import one_budget
from ...core import Algorithm
from ...feature_tables import require
from ...parameters import Count
from .budgeted import Answer, Budgeted


def at_budget(
    algorithm: Callable[..., Algorithm],
    budget: Count | None = None,
    *,
    per_arm: Count | None = None,
    answer: Answer = "inner",
) -> functools.partial[Algorithm]:
    """Any algorithm at a fixed budget B (as LinGapE by Azizi, Kveton, Ghavamzadeh, 2022).

    The sampling rule goes on until B draws are made, whatever the stopping rule says; the answer
    is the recommendation after them. The options are still those of the algorithm, but an option of
    the stopping rule no longer stops it: `delta`, for one, now only weighs exploring against
    testing.

    Args:
      algorithm: a constructor, or `functools.partial` of one with its options.
      budget: total draws B; traced, so that another budget compiles nothing.
      per_arm: instead of it, the draws per arm: a budget of `per_arm K`. Either may be bound later.
      answer: "inner", the algorithm's own recommendation, or "most_pulled", the arm drawn most;
        of arms drawn equally often the algorithm's recommendation if it is one of them, else one of
        them at random.
    Returns:
      A constructor again, with the options of the algorithm and these three.
    Raises:
      ValueError: an algorithm that has a budget bound already; both `budget` and `per_arm`. When
        it is played: a bad option; neither of the two, or both once bound later; "most_pulled"
        where answers are sets or targets.
    Deviations:
      An algorithm that draws one arm a round makes B draws exactly. A phase that would exceed B
      is cut to the rest in proportion (largest remainders), and each of its arms keeps one draw;
      where the rest is too small for that, the phase is left out, and the rest, fewer than K draws,
      is not used. Before the first phase an answer that is an index is one at random. A phased
      algorithm that stops because one candidate is left stops here too. An algorithm with a
      `budget` of its own is given B, and one with a `horizon` too, unless it has one.
    Setting:
      any algorithm, stopped at a budget.
    Assumptions:
      those of the algorithm. Arms without features: as for the algorithm.
    Guarantee:
      none: the stopping rule is not used.
    Cost:
      that of the algorithm.
    Reference:
      M. J. Azizi, B. Kveton, M. Ghavamzadeh, "Fixed-budget best-arm identification in structured
      bandits", IJCAI 2022, Section 8. https://arxiv.org/abs/2106.04763
    Example:
      >>> from functools import partial
      >>> import jaxbandits as jb
      >>> algorithm = jb.at_budget(partial(jb.lingape, delta=0.1), 80)
      >>> runs = jb.simulate(jb.instances.soare(3, angle=0.5), algorithm, replications=10)
      >>> set(runs.pulls.tolist())
      {80}
    """
    if budget is not None and per_arm is not None:
        one_budget(budget, per_arm)
    given = {"budget": budget, "per_arm": per_arm, "answer": None if answer == "inner" else answer}
    own = {name: value for name, value in given.items() if value is not None}
    if not isinstance(algorithm, functools.partial):
        require(callable(algorithm), "algorithm must be a constructor", algorithm)
        return functools.partial(Budgeted(algorithm), **own)
    bound = sorted({"budget", "per_arm"} & algorithm.keywords.keys())
    require(not bound, f"algorithm must leave the budget to at_budget, it binds {bound}")
    options = algorithm.keywords | own
    return functools.partial(Budgeted(algorithm.func), *algorithm.args, **options)
