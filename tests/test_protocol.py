"""Every law on every case."""

import functools
import io
from operator import attrgetter

import at_random
import cases
import chex
import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from params import params

import jaxbandits as jb
from jaxbandits import driver

# Of a family whose other members are tested every time; each has a twin that is, too.
LONG = (
    *("glm_ucb", "epsilon_greedy", "evill", "log_phe", "ofu_glb", "glm_fpl", "lin_ts"),
    *("top_two_tracked", "lingape_ratio", "lin_gifa", "od_linbai", "gse_logistic"),
    *("rage_transductive", "rage_as_printed", "xy_oracle", "xy_oracle_soare"),
    *("xy_adaptive_soare", "xy_static", "xy_static_soare"),
    *("rage_glm", "lazy_track_and_stop", "peace", "alba"),
)
# Lanes are held against the plain loop for every case; under `vmap` alone, and for pauses, these
# are enough.
VMAPPED = ("lingape", "m_lingape", "lin_ucb", "ucb_glm", "gse_d_opt", "xy_adaptive", "bayes_gap")


def each(**some):
    """All laws of a case, then the next: memory has room for the programs of some at once."""
    names = params(cases.CASES, name=attrgetter("name"), **some)
    return pytest.mark.parametrize("case", names, scope="module")


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@functools.lru_cache(maxsize=1)
def played(name):
    return cases.Played(next(case for case in cases.CASES if case.name == name))


def data(tree):
    """The tree with keys as plain numbers."""

    def plain(leaf):
        keyed = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if keyed else leaf)

    return jax.tree.map(plain, tree)


def assert_same(first, second):
    chex.assert_trees_all_equal_structs(first, second)
    chex.assert_trees_all_equal(data(first), data(second))


def assert_alike(first, second):
    """Integers, answers and keys equal, floats to 1e-9."""
    chex.assert_trees_all_equal_structs(first, second)
    leaves = zip(jax.tree.leaves(data(first)), jax.tree.leaves(data(second)), strict=True)
    for one, two in leaves:
        tolerance = 1e-9 if np.issubdtype(one.dtype, np.floating) else 0
        np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)


@each(slow=LONG)
def test_a_move_has_the_shapes_of_its_kind(case):
    run = jax.eval_shape(played(case.name).start, cases.key_of(0))
    num_arms, num_targets = len(case.instance.arms), len(case.instance.targets)
    env, algorithm = cases.play(case.instance, case.build)
    one_arm, stops = driver.kind(run, env, algorithm)
    asked = lambda run: driver.ask(run.key, run.rounds, run.state, env, algorithm)[1]  # noqa: E731
    move = jax.eval_shape(asked, run)
    assert one_arm == (case.kind != "phased")
    assert stops == (case.promise != "regret")
    assert move.arm.shape == ((num_arms,) if case.kind == "phased" else ())
    assert jnp.issubdtype(move.arm.dtype, jnp.integer)
    assert (move.count is None) == (case.kind != "phased")
    if move.count is not None:
        assert move.count.shape == move.arm.shape
        assert jnp.issubdtype(move.count.dtype, jnp.integer)
    assert (move.done.shape, move.done.dtype) == ((), jnp.bool_)
    kinds = {(): jnp.integer, (num_targets,): jnp.bool_}
    assert jnp.issubdtype(move.answer.dtype, kinds[move.answer.shape])


@each(slow=LONG)
def test_a_round_keeps_tree_shapes_and_dtypes(case):
    env, algorithm = cases.play(case.instance, case.build)

    def one_round(run):
        noise = driver.phase_noise(run, env)
        return driver.play(run, env, algorithm, noise, driver.NO_LIMITS)

    before = jax.eval_shape(played(case.name).start, cases.key_of(0))
    after = jax.eval_shape(one_round, before)
    chex.assert_trees_all_equal_structs(before, after)
    chex.assert_trees_all_equal_shapes_and_dtypes(before, after)


@each(always=VMAPPED)
def test_vmap_equals_a_loop(case):
    play, keys = played(case.name), [cases.key_of(r) for r in range(4)]
    ends = case.promise != "regret"
    together = play.advance_all(play.start_all(jnp.stack(keys)), 10_000 if ends else 60)
    alone = [play.advance(play.start(key), 10_000 if ends else 60) for key in keys]
    same = case.promise in ("budget", "within", "certain", "regret")
    assert (len({int(run.pulls) for run in alone}) == 1) == same
    for lane, run in enumerate(alone):
        assert_alike(jax.tree.map(lambda x, lane=lane: x[lane], together), run)


@each(always=VMAPPED)
def test_pause_and_resume_equals_one_go(case):
    play = played(case.name)
    begun = play.start(cases.key_of(0))
    for legs in ((5, 3, 4), (25, 20, 15), (1, 1, 2)):
        whole, paused = play.advance(begun, sum(legs)), begun
        for rounds in legs:
            paused = play.advance(paused, rounds)
        assert int(whole.rounds) > (1 if case.kind == "phased" else max(legs))
        assert_same(paused, whole)


@each(slow=LONG)
def test_asking_twice_gives_one_answer_that_the_run_records(case):
    play = played(case.name)
    run = play.advance(play.start(cases.key_of(0)), 2)
    before = data(run.state)
    key = driver.ask_key(run.key, run.rounds)
    first, second = play.ask(key, run.state), play.ask(key, run.state)
    assert_same(first, second)
    assert_same(before, data(run.state))
    assert_alike(first.answer, play.advance(run, 1).answer)


@each(slow=LONG)
def test_a_saved_run_goes_on_as_if_nothing_had_happened(case):
    play = played(case.name)
    run = play.advance(play.start(cases.key_of(1)), 2)
    leaves, tree = jax.tree.flatten(run)
    keyed = [jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
    file = io.BytesIO()
    np.savez(file, *jax.tree.leaves(data(leaves)))
    file.seek(0)
    with np.load(file) as stored:
        arrays = [stored[f"arr_{i}"] for i in range(len(leaves))]
    restored = [
        jax.random.wrap_key_data(array, impl="threefry2x32") if is_key else jnp.asarray(array)
        for array, is_key in zip(arrays, keyed, strict=True)
    ]
    again = jax.tree.unflatten(tree, restored)
    assert_same(again, run)
    assert_same(play.advance(again, 30), play.advance(run, 30))


@each(slow=LONG)
def test_a_run_that_is_done_plays_no_more(case):
    if case.promise == "regret":
        pytest.skip("never done")
    play = played(case.name)
    run = play.advance(play.start(cases.key_of(0)), 100_000)
    assert bool(run.done)
    assert not bool(run.live)
    assert int(run.arm_pulls.sum()) == int(run.pulls)
    assert_same(play.advance(run, 7), run)


@each(slow=LONG)
def test_simulating_equals_advancing_one_by_one(case):
    """The lanes of `simulate` against the plain loop, integers and answers equal."""
    (runs, _), _ = simulated(case.name)
    for replication in range(3):
        run = played(case.name).start(cases.key_of(replication))
        run = played(case.name).advance(run, case.options.get("horizon", 100_000))
        assert int(run.pulls) == runs.pulls[replication]
        np.testing.assert_array_equal(run.arm_pulls, runs.arm_pulls[replication])
        if case.promise != "regret":  # which answers once more after its last round
            np.testing.assert_array_equal(run.answer, runs.answer[replication])


@functools.lru_cache(maxsize=1)
def simulated(name):
    """Runs of the case and of its other numbers, each with the compilations they took."""
    case = next(case for case in cases.CASES if case.name == name)
    done = []
    for seed, (instance, build) in enumerate([(case.instance, case.build), case.other]):
        with cases.compilations() as seen:
            runs = jb.simulate(instance, build, replications=6, seed=seed, **case.options)
        done.append((runs, len(seen)))
    return done


@each(slow=LONG)
def test_other_numbers_of_the_same_shapes_compile_nothing(case):
    (before, first), (after, second) = simulated(case.name)
    assert first >= 1  # the program that plays; so the counter does count
    assert second == 0
    assert not np.array_equal(before.arm_pulls, after.arm_pulls)


@each(slow=LONG)
def test_what_each_kind_spends(case):
    (runs, _), _ = simulated(case.name)
    assert runs.stopped.all()
    np.testing.assert_array_equal(runs.arm_pulls.sum(1), runs.pulls)
    if case.promise == "budget":
        assert set(runs.pulls) == {case.build.keywords["budget"]}
    if case.promise == "within":
        assert 0 < runs.pulls.max() <= case.build.keywords["budget"]
    if case.promise == "regret":
        assert set(runs.pulls) == {case.options["horizon"]}
        gaps = case.instance.means.max() - case.instance.means
        np.testing.assert_allclose(runs.regret[:, -1], runs.arm_pulls @ gaps, rtol=1e-9)
        assert (np.diff(runs.regret, axis=1) >= 0).all()
    if case.promise == "confidence":
        assert (runs.pulls >= len(case.instance.arms)).all()


# These depend on the unit of rewards: gaps halved from 2 on, a prior, a width, a ridge of sigma/20.
IN_REWARD_UNITS = {
    *("rage", "rage_transductive", "rage_as_printed", "bayes_gap", "lin_ucb", "lin_ts"),
    *("m_lingape", "lin_gifa"),
}
MOST_PULLS = 3000


def attempt(odd, case, change=lambda made: made):
    """Runs of an odd instance, or the refusal."""
    made = change(at_random.instance(odd, case.instance))
    options = {"replications": 6, "seed": odd.seed, "max_pulls": MOST_PULLS} | case.options
    try:
        return jb.simulate(made, at_random.build(odd, case.build), **options)
    except ValueError as error:
        return str(error)


def check_laws(odd, case):
    """What holds whatever the numbers are."""
    runs = attempt(odd, case)
    if isinstance(runs, str):
        assert runs.startswith(("arms must", "budget must", "instance", "noise_var must")), runs
        return
    num_arms, num_targets = len(case.instance.arms), len(case.instance.targets)
    np.testing.assert_array_equal(runs.arm_pulls.sum(1), runs.pulls)
    assert (runs.arm_pulls >= 0).all()
    assert runs.pulls.max() <= MOST_PULLS
    if case.promise in ("budget", "within"):
        assert runs.stopped.all()
        budget = at_random.build(odd, case.build).keywords["budget"]
        assert runs.pulls.max() <= budget
        assert case.promise == "within" or runs.pulls.min() == budget
    if runs.answer.ndim == 1:
        assert (runs.answer >= 0).all()
        assert (runs.answer < num_targets).all()
    else:
        assert runs.answer.shape == (6, num_targets)
    assert runs.arm_pulls.shape == (6, num_arms)
    assert at_random.all_finite(runs.info)
    assert runs.regret is None or np.isfinite(runs.regret).all()
    if is_scale_free(case):
        columns = 2.0 ** np.array(odd.powers)
        assert_same_integers(runs, attempt(odd, case, lambda i: at_random.in_units(i, columns)))
    if case.instance.rewards == "normal" and case.name not in IN_REWARD_UNITS:
        larger = attempt(odd, case, lambda i: at_random.in_reward_units(i, 2.0**5))
        assert_same_integers(runs, larger)


def is_scale_free(case):
    """Whether its algorithm says that units of columns change nothing."""
    build = case.build
    function, keywords = getattr(build, "func", build), getattr(build, "keywords", {})
    return getattr(function, "scale_free", lambda **_: False)(**keywords)


def assert_same_integers(first, second):
    for name in ("pulls", "arm_pulls", "answer", "stopped"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def laws_at_random(case, examples):
    @hypothesis.settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @hypothesis.given(at_random.oddities(case.instance.arms.shape[1]))
    def law(odd):
        check_laws(odd, case)

    law()


@each(slow=LONG)
def test_laws_hold_for_odd_numbers(case):
    laws_at_random(case, 2)


@pytest.mark.slow
@each()
def test_laws_hold_for_many_odd_numbers(case):
    laws_at_random(case, 300)
