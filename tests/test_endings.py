"""How runs end: at an answer, at a horizon, or cut short, and then for which reason."""

import dataclasses
import inspect
import json
from functools import partial

import at_random
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from counting import compilations, refused
from params import params
from programs import key_of

import jaxbandits as jb
from jaxbandits import algorithms
from jaxbandits.engine import reasons
from jaxbandits.engine.api import check_ending
from jaxbandits.engine.partition import prepared
from jaxbandits.engine.results import joined
from jaxbandits.engine.traits import traits_of
from jaxbandits.instances.environments.finite import finite
from jaxbandits.report import table

MEANS = np.array([0.5, 0.45, 0.4, 0.3])
GAPS = MEANS.max() - MEANS
PLAIN = jb.instances.tabular(np.eye(4), MEANS)
TIED = jb.instances.linear(np.eye(3), [0.5, 0.5, 0.1])
LOGISTIC = jb.instances.glm(np.eye(3), [1.0, 0.0, -1.0])


def stepwise(arms, *, end=1e9, answer=0, phase=None, poison=1e9, epsilon=0.0, note=None):
    """Draws the arms in turn, or `phase` (counts, or a number of arms) in each round.

    Args:
      end: rounds after which it is done.
      poison: rounds after which its state becomes NaN.
      note: name in `info` for the number of rounds.
    """
    num_arms = arms.shape[0]

    def init(key):
        return jnp.zeros(())

    def ask(key, rounds):
        arm, count = rounds.astype(int) % num_arms, None
        if phase is not None:
            arm = jnp.arange(num_arms)
            count = jnp.asarray(phase) if np.ndim(phase) else None
        info = {} if note is None else {note: rounds.astype(int)}
        return jb.Move(arm, count, rounds >= end, jnp.asarray(answer), info)

    def tell(rounds, move, total):
        return jnp.where(rounds + 1 >= poison, jnp.nan, rounds + 1)

    return jb.Algorithm(init, ask, tell)


# Both numbers are bound, so that other values of them share the compiled programs.
STEPS = partial(stepwise, end=1e9, poison=1e9)


def endless(arms, *, never=lambda: jnp.array(False)):
    """Is never done; `never` gives the value of `done`."""
    return stepwise(arms)._replace(ask=lambda key, state: _never(arms, key, state, never))


def _never(arms, key, state, never):
    return stepwise(arms).ask(key, state)._replace(done=never())


def simulate(build, instance=PLAIN, **options):
    return jb.simulate(instance, build, **{"replications": 3} | options)


def assert_consistent(runs, horizon, atol=1e-9):
    """Every round up to the horizon is a draw of an arm, and the regret is that of the arms."""
    assert set(runs.pulls) == {horizon}
    assert (runs.arm_pulls.sum(1) == horizon).all()
    np.testing.assert_allclose(runs.regret[:, -1], runs.arm_pulls @ GAPS, atol=atol)
    assert runs.rounds[-1] == horizon


@pytest.mark.parametrize("engine", ["xla", pytest.param("native", marks=pytest.mark.slow)])
def test_after_phases_the_answer_is_drawn_until_the_horizon(engine):
    halving = partial(jb.sequential_halving, budget=40)
    runs = simulate(halving, replications=50, horizon=1000, engine=engine)
    alone = simulate(halving, replications=50, engine=engine)
    np.testing.assert_array_equal(runs.answer, alone.answer)
    here = np.arange(4) == runs.answer[:, None]
    np.testing.assert_array_equal(runs.arm_pulls, alone.arm_pulls + 960 * here)
    assert_consistent(runs, 1000)
    late = runs.rounds >= 40
    slopes = np.diff(runs.regret[:, late]) / np.diff(runs.rounds[late])
    np.testing.assert_allclose(slopes, np.repeat(GAPS[runs.answer][:, None], late.sum() - 1, 1))
    assert 20 < (GAPS[runs.answer] > 0).sum() < 50
    with compilations() as seen:  # a phase is cut in proportion where it meets the horizon
        short = simulate(halving, replications=50, horizon=25, engine=engine)
    assert_consistent(short, 25, atol=GAPS.sum())  # whole draws of the last phase
    assert len(seen) == 0
    early = np.isin(short.rounds, runs.rounds)
    same = np.isin(runs.rounds, short.rounds)
    np.testing.assert_allclose(short.regret[:, early], runs.regret[:, same])


@pytest.mark.parametrize("engine", ["xla", "native"])
def test_after_its_end_a_sequential_algorithm_draws_its_answer(engine):
    build = partial(STEPS, answer=3)
    runs = simulate(partial(build, end=40.0), horizon=100, engine=engine)
    assert_consistent(runs, 100)
    np.testing.assert_array_equal(runs.arm_pulls, [[10, 10, 10, 70]] * 3)
    drawn = np.where(np.arange(100) < 40, GAPS[np.arange(100) % 4], GAPS[3])
    np.testing.assert_allclose(runs.regret, [drawn.cumsum()] * 3)
    whole = simulate(partial(build, end=500.0), horizon=100, engine=engine)
    np.testing.assert_array_equal(whole.arm_pulls, [[25] * 4] * 3)
    at_once = simulate(partial(build, end=0.0), horizon=100, engine=engine)
    np.testing.assert_array_equal(at_once.arm_pulls, [[0, 0, 0, 100]] * 3)
    np.testing.assert_allclose(at_once.regret, [0.2 * np.arange(1, 101)] * 3)


@pytest.mark.parametrize("phase", [4, (4, 0, 2, 1)], ids=["batch", "counts"])
def test_the_horizon_counts_single_draws_for_phases_too(phase):
    runs = simulate(partial(stepwise, phase=phase, end=3.0, answer=1), horizon=50)
    assert_consistent(runs, 50)
    counts = np.array([1] * 4 if phase == 4 else phase)
    np.testing.assert_array_equal(
        runs.arm_pulls[0], 3 * counts + (50 - 3 * counts.sum()) * np.eye(4)[1]
    )
    cut = simulate(partial(stepwise, phase=phase, end=3.0, answer=1), horizon=9)
    assert_consistent(cut, 9, atol=GAPS.sum())
    np.testing.assert_allclose(cut.regret, runs.regret[:, :9])
    assert (cut.arm_pulls <= 3 * counts).all()


NEVER = {
    "lin_ucb": (TIED, jb.lin_ucb),
    "glm_tsl": (LOGISTIC, jb.glm_tsl),
    "a constant": (PLAIN, endless),
    "zeros": (PLAIN, partial(endless, never=lambda: jnp.zeros((), bool))),
    "inside jit": (PLAIN, partial(endless, never=jax.jit(lambda: jnp.array(False)))),
}


@pytest.mark.parametrize("name", NEVER)
def test_an_algorithm_that_never_stops_needs_a_horizon(name):
    refused(NEVER[name], "never stops: give `horizon` or `at_budget`")


def check_end(instance, build, horizon=None, max_pulls=10_000_000):
    """Raise the error that `simulate` would raise, without compiling."""
    check_ending(prepared(instance, build, horizon), max_pulls, horizon, "mixed")


def test_an_algorithm_that_never_stops_may_be_bounded():
    for instance, build in NEVER.values():
        check_end(instance, build, horizon=20)
        check_end(instance, build, max_pulls=500)
        check_end(instance, jb.at_budget(build, 20))
    check_end(PLAIN, partial(stepwise, end=5.0))
    check_end(PLAIN, partial(endless, never=lambda: jnp.array(True)))
    runs = simulate(endless, max_pulls=70)
    assert runs.pulls.tolist() == [70] * 3
    assert runs.summary()["reasons"] == {"max_pulls": 3}


def test_a_sweep_with_a_cell_that_never_ends_is_refused():
    algorithms_ = {"endless": endless, "stepwise": partial(stepwise, end=5.0)}
    with compilations() as seen, pytest.raises(ValueError, match=r"endless.* never stops"):
        jb.sweep({"plain": PLAIN}, algorithms_, replications=3, progress=False)
    assert seen == []


def draws_targets(key, same):
    arms = jax.random.normal(key, (3, 2))
    return jb.instances.linear(arms, arms[0], targets=None if same else -arms)


def five_rounds(arms, targets=None):
    return stepwise(arms, end=5.0)


NO_ARM = {
    "a set": (
        PLAIN,
        partial(jb.m_lingape, m=2, theta_norm=1.0),
        "horizon must be None for .*which is a set",
    ),
    "a target": (
        jb.instances.transductive(4),
        jb.rage,
        "horizon must be None for .*which is a target",
    ),
    "a drawn target": (
        partial(draws_targets, same=False),
        five_rounds,
        "horizon must be None for .*which is a target",
    ),
    "an example": (
        jb.instances.labelled(np.eye(8), np.arange(8) % 2, shown=4, target=1),
        jb.at_budget(partial(jb.deep_fl, hidden=4), 20),
        "algorithm must not stop on a contextual instance, .* its answer is no arm of later rounds",
    ),
}


@pytest.mark.parametrize("name", NO_ARM)
def test_an_answer_that_is_no_arm_cannot_be_drawn(name):
    instance, build, message = NO_ARM[name]
    refused((instance, build, {"horizon": 50}), message)


def test_answers_known_to_be_arms_can_be_drawn():
    check_end(partial(draws_targets, same=True), five_rounds, horizon=50)
    check_end(PLAIN, five_rounds, horizon=50)


def reasons_of(build, instance=PLAIN, **options):
    return simulate(build, instance, **{"max_pulls": 60} | options).summary()["reasons"]


def test_a_run_that_is_cut_short_has_a_reason():
    assert reasons_of(STEPS) == {"max_pulls": 3}
    assert reasons_of(STEPS, TIED) == {"tied": 3}
    assert reasons_of(partial(STEPS, poison=50.0)) == {"nan": 3}
    assert reasons_of(partial(STEPS, poison=50.0, end=10.0)) == {}
    phases = partial(STEPS, phase=(4, 0, 2, 1))
    assert reasons_of(phases) == {"max_pulls": 3}
    assert reasons_of(partial(phases, poison=5.0)) == {"nan": 3}


def waiting(arms):
    """Ends at a random round; where it is cut short before, its state becomes NaN later."""

    def init(key):
        return jnp.zeros(()), jax.random.uniform(key, maxval=12800.0)

    def ask(key, state):
        return stepwise(arms).ask(key, state[0])._replace(done=state[0] >= state[1])

    def tell(state, move, total):
        return stepwise(arms, poison=6440.0).tell(state[0], move, total), state[1]

    return jb.Algorithm(init, ask, tell)


@pytest.mark.parametrize("batch", params([8, 512], slow=["8"]))
def test_nan_after_the_end_of_a_run_is_no_reason(batch):
    """A lane whose run has ended waits for the others, longer if there are more lanes."""
    runs = simulate(waiting, replications=1500, max_pulls=6400, batch=batch)
    cut = 1500 - int(runs.stopped.sum())
    assert 600 < cut < 900
    assert runs.summary()["reasons"] == {"max_pulls": cut}


def test_flags_give_a_reason_by_their_names():
    def codes(stopped=False, **flags):
        flags = {name: np.array([0, number]) for name, number in flags.items()}
        return reasons.codes_of(np.full(2, stopped), flags).tolist()

    assert codes() == codes(phases=3) == codes(stalled=2) == [1, 1]
    assert codes(unsolved=2) == [1, 6]
    assert codes(unfitted=1) == codes(unconverged=1, capped=1) == codes(nonfinite=9) == [1, 7]
    assert codes(capped=1) == [1, 8]
    assert codes(idle=1) == [1, 9]
    assert codes(hidden=1, unspanned=1) == [1, 10]
    assert codes(invalid=1) == codes(unspanned=1) == codes(unspanned=1, unsolved=1) == [1, 5]
    assert codes(tied=1, unsolved=1) == [1, 3]
    assert codes(broken=1, tied=1) == [1, 2]
    assert codes(stopped=True, unsolved=3, unconverged=1, tied=1, capped=1) == [0, 0]
    assert codes(stopped=True, broken=1) == [0, 2]
    assert codes(stopped=True, skipped=1) == [0, 4]
    assert codes(stopped=True, invalid=2) == [0, 5]


def test_ties_are_a_reason_only_where_one_answer_is_sought():
    runs = simulate(partial(stepwise, epsilon=0.1), TIED, max_pulls=60)
    assert runs.summary()["reasons"] == {"max_pulls": 3}
    env = finite(TIED)
    sets = [[True, False, False], [True, True, False], [True, True, True], [False] * 3]
    tied = [bool(env.tied(jnp.array(answer))) for answer in sets]
    assert tied == [True, False, False, False]
    assert bool(env.tied(jnp.array(0)))
    assert not bool(finite(TIED, epsilon=1e-3).tied(jnp.array(0)))
    assert not bool(finite(TIED, identifies=False).tied(jnp.array(0)))
    assert not bool(finite(PLAIN).tied(jnp.array(0)))
    nearly = jb.instances.tabular(np.eye(2), [0.1 + 0.2, 0.3])
    assert nearly.means[0] != nearly.means[1]
    assert bool(finite(nearly).tied(jnp.array(0)))


def test_ties_are_no_reason_for_an_algorithm_that_never_stops():
    runs = simulate(partial(jb.lin_ucb, alpha=1.0), TIED, max_pulls=60)
    assert runs.summary()["reasons"] == {"max_pulls": 3}


@pytest.mark.parametrize(
    ("phase", "horizon"),
    [
        (None, None),
        ([1, 1, 1, 1], 25),
        pytest.param(None, 25, marks=pytest.mark.slow),
        pytest.param([1, 1, 1, 1], None, marks=pytest.mark.slow),
    ],
)
def test_nan_is_reported_for_runs_that_stop_by_themselves(phase, horizon):

    def build(arms, *, poison):
        inner = stepwise(arms, end=9.0, phase=phase)

        def tell(state, move, total):
            rounds = inner.tell(state[0], move, total)
            return rounds, jnp.where(rounds >= poison, jnp.nan, state[1])

        return jb.Algorithm(
            lambda key: (inner.init(key), jnp.zeros(())),
            lambda key, state: inner.ask(key, state[0]),
            tell,
        )

    for poison, counts in ((7.0, {"nan": 3}), (50.0, {})):
        runs = simulate(partial(build, poison=poison), horizon=horizon)
        assert runs.stopped.all()
        assert runs.summary()["reasons"] == counts


@pytest.mark.parametrize("horizon", [None, 300])
def test_a_run_of_rounds_without_draws_ends(horizon):
    """After three rounds it asks for no draw at all, for ever."""

    def idle(arms):
        inner = stepwise(arms)

        def ask(key, rounds):
            count = jnp.where(rounds < 3, 1, 0) * jnp.ones(4, int)
            return inner.ask(key, rounds)._replace(arm=jnp.arange(4), count=count)

        return inner._replace(ask=ask, tell=lambda rounds, move, total: rounds + 1)

    runs = simulate(idle, horizon=horizon)
    assert (runs.pulls == 12).all()
    if horizon is None:
        assert runs.summary()["reasons"] == {"idle": 3}


NEARLY = np.array([[1.0, 1.0], [2.0, 2.0 + 1e-9], [-1.0, -1.0 + 1e-9], [3.0, 3.0]])


def sometimes_with(key, *, arms):
    """An instance with these arms at probability 1/2, else with arms in general position."""
    fine = np.random.default_rng(0).normal(size=(4, 2))
    here = jnp.where(jax.random.bernoulli(key), arms, fine)
    return jb.instances.tabular(here, np.array([1.0, 0.0, -1.0, 0.5]))


@pytest.mark.parametrize(
    ("build", "arms", "hidden"),
    [
        pytest.param(jb.rage, NEARLY, True, marks=pytest.mark.slow),
        (jb.rage, np.round(NEARLY), True),  # which requires arms that span
        pytest.param(partial(jb.gse, budget=60), NEARLY, True, marks=pytest.mark.slow),
        pytest.param(jb.at_budget(jb.rage, 60), np.round(NEARLY), True, marks=pytest.mark.slow),
        (partial(jb.gse, budget=60), np.round(NEARLY), False),  # which does not
    ],
)
def test_drawn_arms_that_hide_a_direction_are_reported(build, arms, hidden):
    """Fixed arms of this kind are refused; drawn ones are reported for each replication."""
    runs = simulate(build, partial(sometimes_with, arms=arms), replications=30, max_pulls=3000)
    flagged = runs.facts["hidden"]
    assert 5 < flagged.sum() < 25 if hidden else not flagged.any()
    assert (runs.pulls[flagged] == 0).all()
    assert not runs.stopped[flagged].any()
    assert (runs.reason[flagged] == 10).all()
    assert (runs.pulls[~flagged] > 0).all()


def test_a_regret_run_on_drawn_arms_that_do_not_span_is_refused():
    arms = jnp.asarray(np.round(NEARLY))
    build = jb.glm_tsl
    with pytest.raises(ValueError, match="replication 0 drew arms that do not span"):
        simulate(build, lambda key: jb.instances.glm(arms, jnp.ones(2)), horizon=5)


def test_ties_are_no_reason_where_max_pulls_cuts_a_budget():
    build = jb.at_budget(stepwise, 100)
    assert reasons_of(build, TIED) == {"max_pulls": 3}


def test_ties_are_found_for_each_drawn_instance():
    def instance(key):
        high = jax.random.bernoulli(key)
        return jb.instances.tabular(np.eye(2), jnp.array([0.5, jnp.where(high, 0.5, 0.3)]))

    runs = simulate(stepwise, instance, replications=40, max_pulls=60)
    counts = runs.summary()["reasons"]
    assert counts["tied"] + counts["max_pulls"] == sum(counts.values()) == 40
    assert 5 < counts["tied"] < 35


def test_reasons_are_saved_and_loaded(tmp_path):
    runs = simulate(STEPS, TIED, max_pulls=60)
    runs.save(tmp_path / "new.npz")
    again = jb.load(tmp_path / "new.npz")
    assert again.reason.tolist() == [3] * 3
    assert again.facts.keys() == {"tied", "broken", "idle", "hidden"}
    before = dataclasses.replace(runs, facts={}, replication=runs.replication + 3)
    before.save(tmp_path / "old.npz")  # as earlier versions wrote it
    old = jb.load(tmp_path / "old.npz")
    assert old.reason.tolist() == [1] * 3
    assert joined([old, again]).reason.tolist() == [3, 3, 3, 1, 1, 1]
    assert joined([again, old]).reason.tolist() == [3, 3, 3, 1, 1, 1]
    labelled = runs.to_xarray().reason
    assert labelled.attrs["flag_meanings"].split()[3] == "tied"
    assert labelled.attrs["flag_values"].tolist() == sorted(reasons.NAMES)


def test_codes_never_change_their_meaning():
    assert reasons.NAMES == {
        0: "", 1: "max_pulls", 2: "nan", 3: "tied", 4: "skipped", 5: "rank", 6: "unsolved",
        7: "unfitted", 8: "capped", 9: "idle", 10: "hidden",
    }  # fmt: skip


def test_a_sweep_counts_reasons(tmp_path):
    build = {"stepwise": STEPS, "short": partial(STEPS, end=5.0)}
    instances = {"plain": PLAIN, "tied": jb.instances.tabular(np.eye(4), MEANS * 0.0)}
    options = {"replications": 3, "max_pulls": 60, "progress": False}
    found = jb.sweep(instances, build, **options)
    long = found.reasons.sel(algorithm="stepwise")
    assert long.sel(instance="plain", why="max_pulls") == long.sel(instance="tied", why="tied") == 3
    assert found.reasons.sum() == 6
    assert (found.reason.sel(algorithm="short") == 0).all()
    header, lines = table.rows(found)
    column = [line[header.index("reasons")] for line in lines]
    assert column == ["3 max_pulls", "-", "3 tied", "-"]
    header, _ = table.rows(found.sel(algorithm=["short"]))
    assert "reasons" not in header
    page = _page(found, tmp_path)
    assert "3 max_pulls" in page
    assert "3 tied" in page
    assert "reasons" in table.rows(found)[0]
    without = found.drop_vars(["reason", "reasons", "why"])  # as earlier versions wrote it
    assert "reasons" not in table.rows(without)[0]
    assert "max_pulls</td>" not in _page(without, tmp_path)


def _page(dataset, folder):
    from jaxbandits.report import write
    from jaxbandits.sweeps.dataset import write as save

    assert json.loads(dataset.attrs["axes"]) == []
    save(dataset, folder / "results.nc")
    return write(folder).read_text(encoding="utf-8")


def test_the_summary_adds_up_counts_and_averages_the_rest():
    runs = simulate(partial(stepwise, end=5.0, note="phases"))
    more = {"width": np.array([0.5, 1.5, 4.0]), "late": np.array([True, False, True])}
    digest = dataclasses.replace(runs, info=runs.info | more).summary()["info"]
    assert digest == {"phases": 15, "width": 2.0, "late": 2}
    assert isinstance(digest["late"], int)


def having(option):
    """Names of the constructors with an option."""
    signatures = {name: inspect.signature(getattr(jb, name)) for name in algorithms.__all__}
    return [name for name, signature in signatures.items() if option in signature.parameters]


OF_A_BUDGET, OF_SETS = having("budget"), having("m")
# Contextual algorithms need a contextual instance.
CONSTRUCTORS = [n for n in algorithms.__all__ if not getattr(getattr(jb, n), "contextual", False)]


def few(name, num_arms, m=1):
    """An instance of few arms and a constructor for it."""
    options = {"budget": 9} if name in OF_A_BUDGET else {"m": m} if name in OF_SETS else {}
    if name not in ("at_budget", "watched"):
        build = partial(getattr(jb, name), **options)
    if name in ("at_budget", "uniform"):
        build = jb.at_budget(jb.rage if name == "at_budget" else jb.uniform, 9)
    if name == "watched":
        build = jb.watched(jb.glm_tsl)
    return jb.instances.glm(np.eye(num_arms), 2.0 * np.eye(num_arms)[0]), build


def small(name, num_arms):
    """`prepared` for one or two arms."""
    return prepared(*few(name, num_arms), 20)


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_one_arm_or_two_are_enough(name):
    """Only traced, not compiled; an algorithm that answers a set needs an arm outside of it."""
    if name in OF_SETS:
        with pytest.raises(ValueError, match="m must be below the 1 arms, got 1"):
            small(name, 1)
    else:
        traits_of(*small(name, 1))
    traits_of(*small(name, 2))


def check_runs(name, num_arms, m=1):
    """Check what holds for every run, on few arms."""
    instance, build = few(name, num_arms, m)
    regret = name == "watched" or ".regret." in getattr(jb, name).__module__
    regret = regret and name != "uniform"  # which is at a budget here
    how = {"horizon": 20} if regret else {"max_pulls": 20_000}
    runs = jb.simulate(instance, build, replications=20, batch=8, **how)
    np.testing.assert_array_equal(runs.arm_pulls.sum(1), runs.pulls)
    assert (runs.arm_pulls >= 0).all()
    assert at_random.all_finite(runs.info)
    if name in OF_SETS:
        assert (runs.answer.sum(1) == m).all()
    else:
        assert ((runs.answer >= 0) & (runs.answer < num_arms)).all()
    if regret:
        assert (runs.pulls == 20).all()
        assert (runs.regret >= 0).all()
        assert num_arms > 1 or (runs.regret == 0).all()
    else:
        assert runs.pulls.max() <= (9 if name in (*OF_A_BUDGET, "uniform") else 20_000)
        assert num_arms > 1 or runs.correct.all()
        assert runs.correct[runs.stopped].sum() >= 0.5 * runs.stopped.sum()


ALWAYS = ("1-lingape", "2-gse", "1-rage")
PLAYED = {f"{number}-{name}": (name, number) for name in CONSTRUCTORS for number in (1, 2)}


@pytest.mark.parametrize("name", params(PLAYED, always=ALWAYS))
def test_one_arm_or_two_are_played(name):
    name, num_arms = PLAYED[name]
    if name not in OF_SETS or num_arms > 1:
        check_runs(name, num_arms)


@pytest.mark.parametrize("name", params(OF_SETS, always=("m_lingape",)))
def test_a_set_of_all_arms_but_one_can_be_answered(name):
    check_runs(name, 4, m=3)


FIRST = ["rage", "alba", "xy_adaptive", "xy_static"]


@pytest.mark.parametrize("name", params(FIRST, always=["xy_static"]))
def test_an_answer_before_the_first_phase_prefers_no_arm(name):
    instance, build = jb.instances.canonical(8, gap=0.5), getattr(jb, name)
    runs = jb.simulate(instance, build, replications=400, max_pulls=1)
    assert not runs.pulls.any()
    assert not runs.stopped.any()
    assert scipy.stats.chisquare(np.bincount(runs.answer, minlength=8)).pvalue > 1e-4


def test_a_single_target_is_answered_without_a_draw():
    alone = jb.instances.linear(np.eye(2), [1.0, 0.5], targets=[[1.0, 1.0]])
    runs = simulate(jb.rage, alone)
    assert runs.pulls.tolist() == runs.answer.tolist() == [0] * 3
    assert runs.stopped.all()
    assert runs.correct.all()
    for variant in ("rage", "soare"):
        for build in (jb.xy_static, jb.xy_adaptive, jb.xy_oracle):
            one = jb.instances.linear(np.ones((1, 1)), [1.0])
            options = {"theta": np.ones(1)} if build is jb.xy_oracle else {}
            with jax.enable_x64(True):
                algorithm = build(one.arms, variant=variant, **options)
                move = algorithm.ask(key_of(0), algorithm.init(key_of(1)))
            assert bool(move.done)
            assert int(move.answer) == 0
            assert not np.asarray(move.count).any()
