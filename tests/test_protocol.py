"""Every law of the protocol, checked on every case of `cases.CASES`; `cases.law` says when."""

import functools
import io
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import at_random
import cases
import chex
import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import compilations
from params import params
from programs import REPLICATIONS, key_of, parts, programs, simulate
from test_floors import NAMES, imports

import jaxbandits as jb
from jaxbandits import algorithms
from jaxbandits.engine import episode

each = pytest.mark.parametrize("case", cases.law(), scope="module")
"""All laws of a case are checked before the next case: memory holds few programs at once."""


def test_every_algorithm_has_a_case():
    assert {case.constructor for case in cases.CASES} == set(algorithms.__all__)


def shared(name):
    """The loops and wrappers that a module of an algorithm uses, itself or by another of them."""
    own = {name} if "/wrappers/" in name else set()
    found = {n for n in imports(name) if n.startswith(SHARED) and not n.endswith("__init__")}
    return own.union(found, *map(shared, found))


SHARED = ("algorithms/loops/", "algorithms/wrappers/")


def test_every_mechanism_has_a_representative():
    chosen = [cases.named(name) for name in cases.REPRESENTATIVES]
    for fact in ("kind", "promise", "fixed", "from_the_first", "in_reward_units"):
        assert {getattr(case, fact) for case in chosen} == {
            getattr(case, fact) for case in cases.CASES
        }
    modules = [getattr(jb, case.constructor).__module__ for case in chosen]
    names = [name.partition(".")[2].replace(".", "/") for name in modules]
    wanted = {n for n in NAMES if n.startswith(SHARED) and not n.endswith("__init__")}
    assert set().union(*map(shared, names)) == wanted
    assert {name.split("/")[1] for name in names} == {
        name.split("/")[1] for name in NAMES if name.startswith("algorithms/") and "/" in name[11:]
    } - {"loops"}


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def data(tree):
    """The tree with random keys as plain numbers."""

    def plain(leaf):
        keyed = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if keyed else leaf)

    return jax.tree.map(plain, tree)


def assert_same(first, second):
    chex.assert_trees_all_equal_structs(first, second)
    chex.assert_trees_all_equal(data(first), data(second))


def assert_alike(first, second):
    """Integers, answers and keys are equal, doubles to 1e-9, single precision to 1e-4."""
    chex.assert_trees_all_equal_structs(first, second)
    leaves = zip(jax.tree.leaves(data(first)), jax.tree.leaves(data(second)), strict=True)
    for one, two in leaves:
        tolerance = {np.float64: 1e-9, np.float32: 1e-4}.get(one.dtype.type, 0)
        np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)


def sizes(case):
    """Numbers of arms and of targets."""
    if case.kind == "contextual":  # each example of the context is an arm
        return case.instance.shown, case.instance.shown
    return len(case.instance.arms), len(case.instance.targets)


OUTSIDE = """
import cases, jax
from jaxbandits.engine import episode
from programs import key_of, parts

def begun(case):
    env, algorithm = parts(case)
    run = episode.start(key_of(0), env, algorithm)
    return episode.ask(run.key, run.rounds, run.state, env, algorithm)

for case in cases.CASES:
    try:
        jax.eval_shape(lambda: begun(case))
    except Exception as error:
        print(case.name, error)
"""


def test_all_can_be_built_outside_of_enable_x64():
    """As an engineer builds them who imports the state machines: no number may need 64 bits."""
    command = [sys.executable, "-c", OUTSIDE]  # a new process: no trace in double precision yet
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


@each
def test_a_move_has_the_shapes_of_its_kind(case):
    play = programs(case.name)
    run = jax.eval_shape(play.begin, key_of(0), np.int64(0))
    traits = []

    def traced(run):
        traits.append(episode.move_traits(run, *parts(case)))
        return play.ask_one(run)

    move = jax.eval_shape(traced, run)
    num_arms, num_targets = sizes(case)
    assert traits[0].one_arm == (case.kind != "phased")
    assert traits[0].stops == (case.promise != "regret")
    assert move.arm.shape == ((num_arms,) if case.kind == "phased" else ())
    assert jnp.issubdtype(move.arm.dtype, jnp.integer)
    assert (move.count is None) == (case.kind != "phased")
    if move.count is not None:
        assert move.count.shape == move.arm.shape
        assert jnp.issubdtype(move.count.dtype, jnp.integer)
    assert (move.done.shape, move.done.dtype) == ((), jnp.bool_)
    kinds = {(): jnp.integer, (num_targets,): jnp.bool_}
    assert jnp.issubdtype(move.answer.dtype, kinds[move.answer.shape])


@each
def test_a_round_keeps_tree_shapes_and_dtypes(case):
    def one_round(run):
        env, algorithm = parts(case)
        noise = episode.phase_noise(run, env)
        return episode.step(run, env, algorithm, noise, episode.NO_LIMITS)

    before = jax.eval_shape(programs(case.name).begin, key_of(0), np.int64(0))
    after = jax.eval_shape(one_round, before)
    chex.assert_trees_all_equal_structs(before, after)
    chex.assert_trees_all_equal_shapes_and_dtypes(before, after)
    # If a number is weakly typed in only one of them, live runs compile `ask` and `tell` twice.
    before, after = ([x.weak_type for x in jax.tree.leaves(run.state)] for run in (before, after))
    assert before == after


@each
def test_paused_and_resumed_runs_equal_whole_ones(case):
    play = programs(case.name)
    begun = play.start()
    for legs in ((5, 3, 4), (25, 20, 15), (1, 1, 2)):
        whole, paused = play.advance(begun, sum(legs)), begun
        for rounds in legs:
            paused = play.advance(paused, rounds)
        least = (0 if case.one_phase else 1) if case.kind == "phased" else max(legs)
        assert int(whole.rounds[0]) > least, "an algorithm of one phase has a case with `one_phase`"
        assert_same(paused, whole)


@pytest.mark.parametrize("case", cases.law(cases.CONTEXTUAL))
def test_asking_twice_gives_the_same_answer_that_the_run_records(case):
    """Other algorithms are asked twice by `test_live`, whose programs are compiled anyway."""
    play = programs(case.name)
    runs = play.advance(play.start(), 2)
    before = data(runs.state)
    first, second = play.ask(runs), play.ask(runs)
    assert_same(first, second)
    assert_same(before, data(runs.state))
    assert_alike(first.answer, play.advance(runs, 1).answer)


@each
def test_saved_runs_continue_as_the_original(case):
    play = programs(case.name)
    runs = play.advance(play.start(), 2)
    leaves, tree = jax.tree.flatten(runs)
    keyed = [jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
    file = io.BytesIO()
    np.savez(file, *jax.tree.leaves(data(leaves)))
    file.seek(0)
    with np.load(file) as stored:
        arrays = [stored[f"arr_{i}"] for i in range(len(leaves))]
    restored = [
        jax.random.wrap_key_data(array, impl="threefry2x32") if is_key else jax.device_put(array)
        for array, is_key in zip(arrays, keyed, strict=True)
    ]
    again = jax.tree.unflatten(tree, restored)
    assert_same(again, runs)
    assert_same(play.advance(again, 30), play.advance(runs, 30))


@each
def test_runs_that_are_done_do_not_change(case):
    if case.promise == "regret":
        pytest.skip("never done")
    play = programs(case.name)
    runs = play.advance(play.start(), 100_000)
    assert runs.done.all()
    assert not runs.live.any()
    np.testing.assert_array_equal(runs.arm_pulls.sum(1), runs.pulls)
    assert_same(play.advance(runs, 7), runs)


@each
def test_vmap_equals_simulate(case):
    """Integers and answers of `jax.vmap` are those of the lanes of `simulate`.

    Those of a live run, which plays single rounds, are as well (`test_live`,
    `test_live_contextual`): the three ways to play agree.
    """
    (simulated_runs, _), _ = simulated(case.name)
    play = programs(case.name)
    runs = play.advance(play.start(), case.options.get("horizon", 100_000))
    first = slice(play.RUNS)
    np.testing.assert_array_equal(runs.pulls, simulated_runs.pulls[first])
    np.testing.assert_array_equal(runs.arm_pulls, simulated_runs.arm_pulls[first])
    if case.promise != "regret":  # which answers once more after its last round
        np.testing.assert_array_equal(runs.answer, simulated_runs.answer[first])
    same = case.promise in ("budget", "within", "certain", "regret")
    assert (len(set(runs.pulls.tolist())) == 1) == same


@each
def test_runs_can_be_saved_and_read(case):
    """What is played passes all checks of what is read, as a sweep that goes on needs."""
    for runs, _ in simulated(case.name):
        file = io.BytesIO()
        runs.write(file)
        file.seek(0)
        np.testing.assert_array_equal(jb.load(file).arm_pulls, runs.arm_pulls)
        assert (runs.pulls == case.options.get("horizon", runs.pulls)).all()


@pytest.mark.slow
@each
def test_lanes_under_vmap_equal_single_replications(case):
    """Not only integers and answers: every number of the state."""
    play = programs(case.name)
    rounds = np.int64(60 if case.promise == "regret" else 10_000)
    together = data(play.advance(play.start(), rounds))
    for r in range(play.RUNS):
        alone = play.go(play.begin(key_of(r), np.int64(r)), rounds, np.int64(r))
        assert_alike(jax.tree.map(lambda x, r=r: x[r], together), data(alone))


@functools.lru_cache(maxsize=1)
def simulated(name):
    """Runs of the case and of its other numbers, each with the compilations they took."""
    case = cases.named(name)
    done = []
    for seed, (instance, build) in enumerate([(case.instance, case.build), case.other]):
        with compilations() as seen:
            runs = simulate(instance, build, seed=seed, **case.options)
        done.append((runs, len(seen)))
    return done


def test_compilations_are_counted():
    new = jax.jit(lambda x: 3 * x + 1)
    for expected in (1, 0):
        with compilations() as seen:
            new(np.float64(2.0))
        assert len(seen) == expected


@each
def test_other_numbers_of_the_same_shapes_compile_nothing(case):
    (before, _), (after, compiled) = simulated(case.name)
    assert compiled == 0
    assert not np.array_equal(before.arm_pulls, after.arm_pulls)


@each
def test_each_kind_draws_as_often_as_it_promises(case):
    (runs, _), _ = simulated(case.name)
    assert runs.stopped.all()
    np.testing.assert_array_equal(runs.arm_pulls.sum(1), runs.pulls)
    if case.promise == "budget":
        assert set(runs.pulls) == {case.build.keywords["budget"]}
    if case.promise == "within":
        assert 0 < runs.pulls.max() <= case.build.keywords["budget"]
    if case.promise == "regret":
        assert set(runs.pulls) == {case.options["horizon"]}
        assert (np.diff(runs.regret, axis=1) >= 0).all()
    if case.kind == "regret":
        gaps = case.instance.means.max() - case.instance.means
        np.testing.assert_allclose(runs.regret[:, -1], runs.arm_pulls @ gaps, rtol=1e-9)
    if case.kind == "contextual":  # a round loses the difference of two probabilities, or nothing
        lost = runs.regret[:, -1] / (case.instance.high - case.instance.low)
        np.testing.assert_allclose(lost, np.round(lost), atol=1e-9)
        assert (lost > 0).any()
    if case.promise == "confidence":
        assert (runs.pulls >= len(case.instance.arms)).all()


MOST_PULLS = 3000


def attempt(odd, case, change=lambda made: made, options_times=1.0):
    """Runs of an odd instance, or the message with which it is refused."""
    made = change(at_random.instance(odd, case.instance))
    build = at_random.build(odd, case.build)
    build = at_random.options_in_reward_units(build, case.in_reward_units, options_times)
    options = {"seed": odd.seed, "max_pulls": MOST_PULLS} | case.options
    try:
        return simulate(made, build, **options)
    except ValueError as error:
        return str(error)


def check_laws(odd, case):
    """What holds whatever the numbers are."""
    runs = attempt(odd, case)
    if isinstance(runs, str):
        assert runs.startswith(("arms must", "budget must", "instance", "noise_var must")), runs
        return
    num_arms, num_targets = sizes(case)
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
        assert runs.answer.shape == (REPLICATIONS, num_targets)
    assert runs.arm_pulls.shape == (REPLICATIONS, num_arms)
    assert at_random.all_finite(runs.info)
    assert runs.regret is None or np.isfinite(runs.regret).all()
    if is_scale_free(case):
        columns = 2.0 ** np.array(odd.powers)
        assert_same_integers(runs, attempt(odd, case, lambda i: at_random.in_units(i, columns)))
    if cases.has_reward_units(case.instance):
        larger = attempt(odd, case, lambda i: at_random.in_reward_units(i, 2.0**5), 2.0**5)
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


# Features and noise of any size: the bias of its ridge is beyond its width in some, as it says.
BIASED = pytest.mark.filterwarnings("ignore:xy_adaptive. most answers may be wrong:RuntimeWarning")


@BIASED
@each
def test_laws_hold_for_odd_numbers(case):
    laws_at_random(case, 2)


LONG = ["alba", "frank_wolfe_sampling", "lin_game", "lucb", "ofu_glb", "peace", "top_two", "ugape"]
LONG += ["xy_adaptive_soare", "xy_static_soare"]


@pytest.mark.slow
@BIASED
@pytest.mark.parametrize(
    "case", params(cases.CASES, optimised=LONG, name=attrgetter("name")), scope="module"
)
def test_laws_hold_for_many_odd_numbers(case):
    laws_at_random(case, 300)
