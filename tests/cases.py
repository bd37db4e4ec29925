"""One case per algorithm (or variant), for the tests that check every law on every case."""

from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import numpy as np
from params import params

import jaxbandits as jb

HORIZON = 40
CUBE = partial(jb.instances.logistic_cube, num_arms=10, dim=3, half_width=1.0)


class Case(NamedTuple):
    """An algorithm on an instance, and a second such pair that differs only in numbers."""

    name: str
    instance: Any
    build: Any  # the constructor with its options
    kind: str  # "sequential", "phased", "regret" or "contextual"
    # "confidence": the error rate is at most delta; "budget": the budget is spent exactly;
    # "within": at most the budget is spent; "regret": runs to a horizon; "certain": never errs.
    promise: str
    other: tuple  # another instance and constructor, which differ only in numbers
    fixed: bool = False  # rewards do not change how often each arm is drawn
    one_phase: bool = False  # it ends after a single phase
    from_the_first: bool = False  # begins with the first independent arms, in the order given
    in_reward_units: tuple[str, ...] = ()  # its options that are in units of a reward

    @property
    def constructor(self):
        """The name of the public constructor."""
        inner = self.build.func if isinstance(self.build, partial) else self.build
        return getattr(inner, "outer", inner.__name__)

    @property
    def options(self):
        """Further arguments of `simulate`: a horizon for regret."""
        return {"horizon": HORIZON} if self.promise == "regret" else {}


def _canonical(gap=1.0, noise_var=1.0):
    return jb.instances.canonical(8, gap=gap, noise_var=noise_var)


def _budget(constructor, **options):
    def build(budget):
        return partial(constructor, budget=budget, **options)

    return (build(40), "phased", "budget", (_canonical(0.5, 2.0), build(101)))


def _at_budget(name, build, kind="sequential"):
    """A case in which `build(budget)` gives the constructor for Soare's instance."""
    return Case(name, _soare(0.5), build(40), kind, "budget", (_soare(0.7, 2.0), build(60)))


def _confidence(constructor, name, instance, other, *, kind="sequential", **options):
    def build(delta):
        return partial(constructor, delta=delta, **options)

    return Case(name, instance, build(0.1), kind, "confidence", (other, build(0.2)))


def _top_m(angle, noise_var=0.25):
    return jb.instances.classic_top_m(4, 2, angle=angle, noise_var=noise_var)


def _labelled(seed, **numbers):
    """A contextual problem: 60 examples of three classes; the context of a round holds four."""
    rng = np.random.default_rng(seed)
    points, labels = rng.normal(size=(60, 5)), np.arange(60) % 3
    return jb.instances.labelled(points, labels, shown=4, **numbers)


def _regret(build, instance, other, *, kind="regret", name=None):
    """A case in which `build(number)` gives the constructor with that value of an option."""
    name = name or build(0.5).func.__name__
    return Case(name, instance, build(0.5), kind, "regret", (other, build(0.3)))


def _contextual(constructor, option, **options):
    """A case on a contextual problem, with the value 0.5 or 0.3 of an option."""
    build = lambda number: partial(constructor, **{option: number}, **options)  # noqa: E731
    other = _labelled(2, high=0.8, low=0.1)
    return _regret(build, _labelled(1), other, kind="contextual")


def _soare(angle, noise_var=1.0):
    return jb.instances.soare(3, angle=angle, scale=2.0, noise_var=noise_var)


def _uneven(scale, noise_var=1.0):
    """An instance without symmetries, so that no two indices are equal up to rounding."""
    arms = [[1.0, 0.1, 0.0], [0.2, 0.9, -0.3], [0.0, -0.2, 1.1], [0.8, 0.5, 0.4]]
    return jb.instances.linear(arms, [scale, 0.3, -0.2], noise_var=noise_var)


def _transductive(angle, noise_var=1.0):
    return jb.instances.transductive(4, angle=angle, noise_var=noise_var)


def _logistic(angle, scale):
    instance = jb.instances.soare(3, angle=angle)
    return jb.instances.glm(instance.arms, scale * instance.theta)


CASES = (
    _confidence(jb.lingape, "lingape", _soare(0.5), _soare(0.7, 2.0)),
    _confidence(jb.lingape, "lingape_ratio", _soare(0.5), _soare(0.7, 2.0), selection="ratio"),
    _confidence(jb.frank_wolfe_sampling, "frank_wolfe_sampling", _soare(0.5), _soare(0.7, 2.0)),
    _confidence(
        jb.lazy_track_and_stop, "lazy_track_and_stop", _soare(0.5), _soare(0.7, 2.0)
    )._replace(from_the_first=True),
    _confidence(jb.lin_game, "lin_game", _soare(0.5), _soare(0.7, 2.0)),
    _confidence(jb.m_lingape, "m_lingape", _top_m(0.8), _top_m(1.0, 0.5), m=2),
    _confidence(jb.lin_gifa, "lin_gifa", _top_m(0.8), _top_m(1.0, 0.5), m=2),
    _confidence(jb.lucb, "lucb", _top_m(0.8), _top_m(1.0, 0.5), m=2),
    _confidence(jb.ugape, "ugape", _top_m(0.8), _top_m(1.0, 0.5), m=2),
    _confidence(jb.rage, "rage", _soare(0.2), _soare(0.3, 2.0), kind="phased"),
    _confidence(
        jb.rage, "rage_transductive", _transductive(0.3), _transductive(0.4, 2.0), kind="phased"
    ),
    _confidence(
        jb.rage,
        "rage_as_printed",
        _soare(0.2),
        _soare(0.3, 2.0),
        kind="phased",
        design="frank_wolfe",
        rounding="regret",
        rounding_epsilon=0.3,
    ),
    _confidence(jb.rage_glm, "rage_glm", _logistic(0.5, 1.0), _logistic(0.7, 1.5), kind="phased"),
    _confidence(
        jb.xy_static, "xy_static", _transductive(0.5), _transductive(0.6, 2.0), kind="phased"
    ),
    _confidence(jb.xy_static, "xy_static_soare", _soare(0.7), _soare(0.8, 2.0), variant="soare"),
    _confidence(jb.xy_adaptive, "xy_adaptive", _soare(0.2), _soare(0.3, 2.0), kind="phased"),
    _confidence(
        jb.xy_adaptive,
        "xy_adaptive_soare",
        _soare(0.9, 0.3),
        _soare(0.7, 0.2),
        kind="phased",
        variant="soare",
        retest=False,
    ),
    _confidence(jb.xy_oracle, "xy_oracle", _soare(0.3), _soare(0.4, 2.0), kind="phased"),
    _confidence(
        jb.xy_oracle, "xy_oracle_soare", _soare(0.7), _soare(0.8, 2.0), variant="soare"
    )._replace(promise="certain", fixed=True),
    _confidence(jb.top_two, "top_two", _uneven(1.5), _uneven(2.0, 2.0)),
    _confidence(
        jb.top_two, "top_two_tracked", _uneven(1.5), _uneven(2.0, 2.0), selection="tracked"
    ),
    _confidence(jb.alba, "alba", _soare(0.2), _soare(0.3, 2.0), kind="phased"),
    Case("gse_uniform", _canonical(), *_budget(jb.gse)),
    Case("gse_d_opt", _canonical(), *_budget(jb.gse, design="d_opt")),
    Case(
        "gse_logistic",
        CUBE(jax.random.key(1), num_arms=8),
        *_budget(jb.gse, family="logistic")[:3],
        (CUBE(jax.random.key(2), num_arms=8), partial(jb.gse, budget=101, family="logistic")),
    ),
    Case("od_linbai", _canonical(), *_budget(jb.od_linbai))._replace(promise="within"),
    Case("peace", _canonical(), *_budget(jb.peace, iterations=20))._replace(
        promise="within", fixed=True
    ),
    Case("sequential_halving", _canonical(), *_budget(jb.sequential_halving)),
    _at_budget("at_budget", partial(jb.at_budget, partial(jb.lingape, delta=0.1))),
    _at_budget("bayes_gap", lambda budget: partial(jb.bayes_gap, budget=budget)),
    Case(
        "lin_ucb",
        _soare(0.5),
        partial(jb.lin_ucb, alpha=0.5),
        "regret",
        "regret",
        (_soare(0.7, 2.0), partial(jb.lin_ucb, alpha=0.7)),
        in_reward_units=("alpha",),
    ),
    Case("lin_ts", _soare(0.5), jb.lin_ts, "regret", "regret", (_soare(0.7, 2.0), jb.lin_ts)),
    Case(
        "ucb_glm",
        CUBE(jax.random.key(3)),
        partial(jb.ucb_glm, alpha=0.5),
        "regret",
        "regret",
        (CUBE(jax.random.key(4)), partial(jb.ucb_glm, alpha=0.7)),
        from_the_first=True,
    ),
    *(
        _regret(
            lambda number, build=build, option=option: partial(build, **{option: number}),
            CUBE(jax.random.key(3)),
            CUBE(jax.random.key(4)),
        )._replace(from_the_first=True)
        for build, option in (
            (jb.glm_fpl, "a"),
            (jb.glm_ucb, "alpha"),
            (jb.epsilon_greedy, "rate"),
            (jb.evill, "a"),
            (jb.log_phe, "a"),
        )
    ),
    Case(
        "glm_tsl",
        CUBE(jax.random.key(3)),
        partial(jb.glm_tsl, a=1.0),
        "regret",
        "regret",
        (CUBE(jax.random.key(4)), partial(jb.glm_tsl, a=0.5)),
        from_the_first=True,
    ),
    Case(
        "ofu_glb",
        CUBE(jax.random.key(3)),
        partial(jb.ofu_glb, delta=0.1),
        "regret",
        "regret",
        (CUBE(jax.random.key(4)), partial(jb.ofu_glb, delta=0.2)),
    ),
    Case(
        "ofu_ecolog",
        CUBE(jax.random.key(3)),
        partial(jb.ofu_ecolog, ridge=2.0),
        "regret",
        "regret",
        (CUBE(jax.random.key(4)), partial(jb.ofu_ecolog, ridge=3.0)),
    ),
    Case("uniform", _soare(0.5), jb.uniform, "regret", "regret", (_soare(0.7, 2.0), jb.uniform)),
    _regret(
        lambda scale: jb.watched(partial(jb.glm_tsl, a=scale)),
        CUBE(jax.random.key(3)),
        CUBE(jax.random.key(4)),
        name="watched",
    )._replace(from_the_first=True),
    _contextual(jb.deep_fpl, "a", hidden=6, batch=8),
    _contextual(jb.deep_fl, "rate", hidden=6, batch=8),
    _contextual(jb.rep_glm_fpl, "a", hidden=6, batch=8, refresh=7),
)

# Cases for which the quick tests hold a law; the slow tests hold it for all others. Between them
# they run every loop and wrapper that algorithms share, and have every kind and every promise; in
# `test_protocol` it is checked. An algorithm with a loop of its own stands for others that decide
# alike. What each of the others does alone is left to its twin, its guarantee and its example,
# which are quick too.
REPRESENTATIVES = {
    "lingape": "the gap of two arms, by least squares",
    "lucb": "the gap of two arms, by sample means; the answer is a set",
    "lin_game": "a stopping statistic, tracking, a game between two learners",
    "rage": "phases of an optimal design, which lanes share",
    "xy_oracle_soare": "a fixed order of draws, from a rule that knows the truth",
    "gse_uniform": "phases that spend a budget and eliminate arms",
    "peace": "phases within a budget, whose lengths depend on the arms that are left",
    "at_budget": "a budget around an algorithm that stops",
    "lin_ucb": "regret, by least squares",
    "glm_tsl": "regret, by a fit of a generalised linear model in each round",
    "ofu_ecolog": "regret, by an update online of a logistic model",
    "watched": "an algorithm whose fits are watched",
    "rep_glm_fpl": "contexts, a network, and a model on its last layer",
}

# The laws of symmetry exclude contextual problems: the order of the examples matters there, and so
# do the axes of the features, because a network depends on them.
NOT_CONTEXTUAL = tuple(case for case in CASES if case.kind != "contextual")
CONTEXTUAL = tuple(case for case in CASES if case.kind == "contextual")


def has_reward_units(instance):
    """Whether rewards are normal, so that they can be written in another unit.

    Rewards of 0 and 1, and Poisson rewards, have none: their means decide their variances.
    """
    return getattr(instance, "rewards", None) == "normal"


def law(chosen=CASES):
    """Parameters of a law, of which all but those of representatives are marked slow."""
    names = [case.name for case in chosen if case.name in REPRESENTATIVES]
    return params(chosen, always=names, name=attrgetter("name"))


def named(name):
    """The case with this name."""
    return next(case for case in CASES if case.name == name)
