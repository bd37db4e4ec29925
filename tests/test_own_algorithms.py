"""Algorithms of users: a fault is named before compiling, or with its round."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from counting import refused
from programs import key_of

import jaxbandits as jb
from jaxbandits.core import Algorithm, Move
from jaxbandits.engine.protocol import different

ARMS = np.eye(6, 2) + 0.1
INSTANCE = jb.instances.tabular(ARMS, np.linspace(0.0, 1.0, 6))


class State(NamedTuple):
    counts: Any  # int [K]
    sums: Any  # float [K]


def sound(arms, *, stop=40):
    """Arms in turn, and the best mean after `stop` draws."""
    num_arms = arms.shape[0]

    def init(key):
        return State(jnp.zeros(num_arms, int), jnp.zeros(num_arms))

    def ask(key, state):
        total = state.counts.sum()
        mean = state.sums / jnp.maximum(state.counts, 1)
        return Move(total % num_arms, None, total >= stop, jnp.argmax(mean))

    def tell(state, move, total):
        here = jnp.arange(num_arms) == move.arm
        return State(state.counts + here, state.sums + jnp.where(here, total, 0.0))

    return Algorithm(init, ask, tell)


def unsound(arms, *, init=None, ask=None, tell=None):
    """`sound`, with the results of some functions changed."""
    inner = sound(arms)

    def changed(function, change):
        return (lambda *args: change(function(*args))) if change else function

    changes = (changed(f, g) for f, g in zip(inner, (init, ask, tell), strict=True))
    return Algorithm(*changes)


def moves(**fields):
    return partial(unsound, ask=lambda move: move._replace(**fields))


STILL = Move(np.zeros((), int), None, np.array(False), np.zeros((), int))


def takes(name):
    """`sound`, with one function that takes other arguments than it is given."""
    return lambda arms: sound(arms)._replace(**{name: lambda one, two, three, four: None})


SHAPES = {
    "no algorithm": (lambda arms: 3, "its constructor must return an Algorithm, got 3"),
    "text in the state": (partial(unsound, init=lambda s: (s, "x")), "init must return arrays"),
    "no move": (partial(unsound, ask=tuple), "ask must return a Move, got tuple"),
    "no answer": (moves(answer=None), "whose answer is one array, got None"),
    "half an arm": (moves(arm=np.ones(())), r"whose arm is an integer .*got float64\[\]"),
    "a table of arms": (moves(arm=np.ones((2, 2), int)), r"got int64\[2,2\]"),
    "half a count": (moves(count=np.ones(())), r"whose count is None or integers .*got float64"),
    "too many counts": (
        moves(count=np.ones(6, int)),
        r"integers of the shape \[\] of arm, got int64\[6\]",
    ),
    "done as a number": (moves(done=np.zeros((), int)), r"done is a single bool, got int64\[\]"),
    "done for each arm": (moves(done=np.zeros(6, bool)), r"single bool, got bool\[6\]"),
    "half an answer": (moves(answer=np.zeros(())), r"bool mask of length 6, got float64\[\]"),
    "a mask of others": (moves(answer=np.zeros(5, bool)), r"of length 6, got bool\[5\]"),
    "another type": (
        partial(unsound, tell=lambda s: s._replace(counts=s.counts.astype(float))),
        r"tell must return a state like that of init: "
        r"state.counts is float64\[6\], and int64\[6\] in that of init",
    ),
    "another shape": (
        partial(unsound, tell=lambda s: s._replace(sums=s.sums[:5])),
        r"state.sums is float64\[5\], and float64\[6\]",
    ),
    "a leaf too few": (partial(unsound, tell=lambda s: s._replace(sums=None)), "sums is missing"),
    "a bare tuple": (
        partial(unsound, tell=tuple),
        "like that of init: it is of the type tuple, and State in that of init",
    ),
    "an array for a move": (
        partial(unsound, ask=lambda move: move.arm),
        r"ask must return a Move, got an array int64\[\]",
    ),
    "nothing for a move": (
        partial(unsound, ask=lambda move: None),
        r"ask must return a Move, got None; did you forget `return`\?",
    ),
    "nothing": (
        partial(unsound, tell=lambda s: None),
        r"tell returned None; did you forget `return`\?",
    ),
    "a dict that grew": (
        lambda arms: sound(arms)._replace(
            init=lambda key: {"n": jnp.zeros(2)},
            ask=lambda key, state: STILL,
            tell=lambda state, move, total: state | {"m": jnp.zeros(2)},
        ),
        r"state\['m'\] is new",
    ),
    "a dict of others": (
        lambda arms: sound(arms)._replace(
            init=lambda key: {"n": jnp.zeros(2)},
            ask=lambda key, state: STILL,
            tell=lambda state, move, total: {"m": jnp.zeros(2)},
        ),
        r"it is PyTreeDef\(\{'m': \*\}\), and PyTreeDef\(\{'n': \*\}\) in that of init",
    ),
    "a Python arm": (moves(arm=0), r"a Move of arrays: arm is 0, write jnp.asarray\(0\)"),
    "a Python done": (moves(done=False), r"done is False, write jnp.asarray\(False\)"),
    "a Python answer": (moves(answer=1), r"answer is 1, write jnp.asarray\(1\)"),
    "a table in info": (
        moves(info={"n": np.zeros(3)}),
        r"whose info has single numbers, got .*\(3,\).* for 'n'",
    ),
    "ask of three": (takes("ask"), r"ask is called with 2 arguments \(key and state.* takes \("),
    "init of none": (takes("init"), r"init is called with 1 arguments \(key\), and takes \("),
    "tell of four": (takes("tell"), r"tell is called with 3 arguments \(state, move and total\)"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_wrong_interface_is_named_before_compiling(name):
    build, message = SHAPES[name]
    key_of(0)  # making a key compiles, once
    refused((INSTANCE, build), "algorithm.*: .*" + message)


def test_an_additional_leaf_is_named():
    leaf = np.zeros(2)
    assert different({"a": leaf}, {"a": leaf, "b": leaf}) == "state['b'] is new"
    assert different({"a": leaf}, {"a": leaf}) is None


def test_an_error_that_the_algorithm_raises_is_passed_on():
    def broken(state):
        raise TypeError("mine")

    for name in Algorithm._fields:
        build = partial(unsound, **{name: broken})
        for play in (partial(jb.simulate, INSTANCE, build, replications=2), partial(live, build)):
            with pytest.raises(TypeError, match="mine") as caught:
                play()
            own = "unsound" if name == "ask" else "sound"  # it is called after its `ask`
            assert f"algorithm {own}: this was raised in its {name}" in caught.value.__notes__


def late(arms, *, fault=0, phased=False):
    """`sound`, with the fault of this number in its fifth move; the number is traced."""
    inner = sound(arms)

    def at(state, number, wrong, right):
        now = (state.counts.sum() == 4 * (6 if phased else 1)) & (fault == number)
        return jnp.where(now, wrong, right)

    def ask(key, state):
        move = inner.ask(key, state)
        if phased:
            each = jnp.ones(6, int).at[3].set(at(state, 5, -2, 1))
            drawn = at(state, 1, 99, at(state, 2, -1, 2))
            move = move._replace(arm=jnp.arange(6).at[2].set(drawn), count=each)
        else:
            move = move._replace(arm=at(state, 1, 99, at(state, 2, -1, move.arm)))
        return move._replace(answer=at(state, 3, 6, move.answer))

    def tell(state, move, total):
        if not phased:
            return inner.tell(state, move, at(state, 4, jnp.nan, total))
        return State(state.counts + move.count, state.sums + total)

    return Algorithm(inner.init, ask, tell)


WRONG = {
    1: "ask draws arm 99, and there are 6: 0 to 5",
    2: "ask draws arm -1, and there are 6: 0 to 5",
    3: "ask answers 6, and there are 6: 0 to 5",
    4: r"tell makes state\.sums nan",
}


def test_the_first_fault_is_named_with_its_round():
    """One program for all, because the fault is a number."""
    plain, watched = (
        jb.simulate(INSTANCE, partial(late, fault=np.int64(0)), replications=50, debug=debug)
        for debug in (False, True)
    )
    for name in ("pulls", "answer", "arm_pulls", "stopped", "correct"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(watched, name))
    assert watched.info == {}
    for fault, wrong in WRONG.items():
        with pytest.raises(ValueError, match=f"^algorithm late: replication 0, round 5: {wrong}$"):
            jb.simulate(INSTANCE, partial(late, fault=np.int64(fault)), replications=50, debug=True)


def test_the_first_fault_of_phases_is_named_too():
    build = partial(late, phased=True)
    for fault, wrong in {1: WRONG[1], 5: "ask draws an arm -2 times, a count below 0"}.items():
        with pytest.raises(ValueError, match=f"replication 0, round 5: {wrong}"):
            jb.simulate(INSTANCE, partial(build, fault=np.int64(fault)), replications=3, debug=True)


@pytest.mark.parametrize(
    ("fault", "phased"), [(1, False), (2, False), (1, True), (2, True), (5, True)]
)
def test_impossible_draws_are_refused_without_debug(fault, phased):
    message = (
        "algorithm late: replication 0 has drawn arms that do not exist, or fewer than 0 times; "
        "there are 6: 0 to 5; .*debug"
    )
    build = partial(late, fault=np.int64(fault), phased=phased)
    with pytest.raises(ValueError, match=message):
        jb.simulate(INSTANCE, build, replications=50, max_pulls=99)


@pytest.mark.parametrize("answer", [6, -1])
def test_answers_that_do_not_exist_are_refused_without_debug(answer):
    build = partial(answering, answer=np.int64(answer))
    message = f"replication 0 ends with the answer {answer}, which is none of the targets"
    with pytest.raises(ValueError, match=message):
        jb.simulate(INSTANCE, build, replications=3)
    # Answers before the end are not checked.
    runs = jb.simulate(INSTANCE, build, replications=3, max_pulls=20)
    assert runs.summary()["cut_short"] == 3


@pytest.mark.parametrize(
    ("count", "drawn"), [(np.full(4, 2**62), 0), (np.full(4, 2, np.uint64), 40)]
)
def test_counts_of_any_integer_type_are_added_up_without_overflow(count, drawn):
    """Four times 2^62 is 0 in 64 bits."""

    def ask(key, state):
        return Move(jnp.arange(4), jnp.asarray(count), jnp.array(False), jnp.array(0))

    def build(arms):
        return jb.Algorithm(lambda key: (), ask, lambda state, move, total: ())

    runs = jb.simulate(jb.instances.canonical(4, gap=1.0), build, replications=2, max_pulls=40)
    assert runs.pulls.tolist() == [drawn, drawn]
    assert not runs.stopped.any()


def answering(arms, *, answer):
    """`sound`, with an answer that is a number, so that others share the program."""
    late = lambda move: jnp.where(move.done | (move.arm > 3), answer, 0)  # noqa: E731
    return unsound(arms, ask=lambda move: move._replace(answer=late(move)))


def test_the_algorithm_of_the_documentation_runs():
    text = (Path(jb.__file__).parents[1] / "docs" / "how_to" / "own_algorithm.md").read_text()
    (block,) = (part for part in text.split("```python\n") if "def explore_then_commit" in part)
    names = {"jb": jb, "instance": jb.instances.soare(5, angle=0.3), "partial": partial}
    exec(block.split("```")[0], names)
    runs = names["runs"]
    assert (runs.arm_pulls == 50).all()
    assert (runs.info["each"] == 50).all()
    assert 0.4 < runs.correct.mean() < 0.95


def live(build):
    """Play live to the end, and give the answer."""
    run = jb.Live(build, ARMS)
    while not run.done:
        run.tell(1.0 if np.ndim(run.ask()) == 0 else run.ask().astype(float))
    return run.answer


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (moves(done=np.zeros(6, bool)), r"whose done is a single bool, got bool\[6\]"),
        (partial(late, fault=np.int64(1)), "ask for arms from 0 to 5, it asks for 99"),
        (
            partial(late, fault=np.int64(5), phased=True),
            "ask for arms 0 times or more, it asks for one -2 times",
        ),
    ],
)
def test_a_live_run_refuses_faulty_algorithms_too(build, message):
    with pytest.raises(ValueError, match=message):
        live(build)


def test_rewards_that_are_not_finite_are_named():
    class Broken(NamedTuple):
        means: Any

        def reward(self, key, arm):
            return jnp.where(self.means[arm] > 0.5, jnp.inf, self.means[arm])

    arms = np.eye(2)
    with pytest.warns(UserWarning, match="variance 0"):
        instance = jb.instances.simulated(arms, Broken(np.array([0.0, 0.1])), noise_var=1.0)
    means = np.array([0.0, 1.0])  # others than those of the draws, or the change is refused
    later = instance.simulator._replace(means=means)
    changed = dataclasses.replace(instance, simulator=later, means=means, values=means)
    with pytest.raises(ValueError, match="round 2: the reward is inf"):
        jb.simulate(changed, sound, replications=2, debug=True)


def test_faults_are_named_with_late_rewards_too():
    widened = partial(unsound, tell=lambda state: state._replace(counts=state.counts * 1.0))
    with pytest.raises(ValueError, match="tell must return a state like that of init"):
        jb.simulate(jb.instances.stressed(INSTANCE, delay=3), widened, replications=2)


def test_debug_refuses_an_algorithm_that_never_stops_too():
    with pytest.raises(ValueError, match="lin_ucb never stops: give `horizon`"):
        jb.simulate(INSTANCE, partial(jb.lin_ucb, alpha=0.5), replications=2, debug=True)
