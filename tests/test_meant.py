"""What was meant: errors of misspelt, misplaced or swapped arguments say it."""

from functools import partial

import numpy as np
import pytest
from counting import refused
from programs import key_of

import jaxbandits as jb
from jaxbandits.signatures import nearest

INSTANCE = jb.instances.canonical(3, gap=1.0)
HINT = r"unknown option of {} '{}'; did you mean '{}'\? allowed: "


def own(arms, *, gamma=1.0):
    return jb.uniform(arms)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: partial(jb.lingape, dleta=0.1)(INSTANCE.arms), ("lingape", "dleta", "delta")),
        (lambda: played(partial(jb.lingape, dleta=0.1)), ("lingape", "dleta", "delta")),
        (lambda: played(partial(own, gama=2.0)), ("own", "gama", "gamma")),
        (
            lambda: played(partial(jb.at_budget(jb.lingape), bugdet=3)),
            (r"at_budget\(lingape\)", "bugdet", "budget"),
        ),
        (lambda: jb.instances.soare(3, agle=0.5), ("soare", "agle", "angle")),
        (lambda: jb.instances.sphere(None, 3, dmi=2), ("sphere", "dmi", "dim")),
        (lambda: jb.instances.stressed(INSTANCE, driff=0.1), ("stressed", "driff", "drift")),
        (lambda: jb.instances.digits(tagret=1), ("digits", "tagret", "target")),
        (
            lambda: played(jb.uniform, partial(jb.instances.soare, 3, agle=0.5)),
            ("soare", "agle", "angle"),
        ),
        (
            lambda: jb.Live(partial(jb.lingape, dleta=0.1), INSTANCE.arms),
            ("lingape", "dleta", "delta"),
        ),
    ],
)
def test_a_misspelt_option_is_named_with_the_one_that_was_meant(call, message):
    refused(call, HINT.format(*message))


def played(algorithm, instance=INSTANCE, **options):
    return jb.simulate(instance, algorithm, replications=2, **options)


def test_every_constructor_of_instances_says_what_was_meant():
    for name in jb.instances.__all__:
        build = getattr(jb.instances, name)
        if isinstance(build, type):
            continue
        with pytest.raises(ValueError, match=f"unknown option of {name} 'nonsense'"):
            build(nonsense=1)


def test_other_faults_of_a_call_stay_those_of_python():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'dim'"):
        jb.instances.soare()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"delta": 0.1, "v0": 2},
            r"top_two needs arms: .* functools.partial\(jb.top_two, delta=0.1, v0=2\) and give",
        ),
        ({}, "top_two needs arms: give jb.top_two itself to simulate"),
    ],
)
def test_a_constructor_called_without_arms_says_how_options_are_bound(options, message):
    with pytest.raises(TypeError, match=message):
        jb.top_two(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.1}, r"no argument 'delta'; .*: functools.partial\(lingape, delta=0.1\)"),
        ({"dleta": 0.1}, r"no argument 'dleta'; .*: functools.partial\(lingape, delta=0.1\)"),
        ({"bacth": 8}, "unknown argument of simulate 'bacth'; did you mean 'batch'"),
        ({"xyz": 8}, "unknown argument of simulate 'xyz'; allowed: algorithm, batch"),
    ],
)
def test_an_option_of_the_algorithm_is_bound_and_not_given_to_simulate(options, message):
    with pytest.raises(TypeError, match=message):
        played(jb.lingape, **options)


@pytest.mark.parametrize(
    "swapped",
    [
        (jb.lingape, INSTANCE),
        (own, INSTANCE),
        (partial(jb.lingape, delta=0.1), partial(jb.instances.soare, 3)),
    ],
)
def test_swapped_arguments_are_named(swapped):
    message = "instance and algorithm are swapped: got (lingape|own) as the instance"
    refused(lambda: jb.simulate(*swapped, replications=2), message)


def test_two_instances_are_not_swapped():
    refused(lambda: played(INSTANCE), "algorithm must be a constructor, got Instance")


def test_a_misspelt_attribute_is_named_with_the_one_that_was_meant():
    with pytest.raises(AttributeError, match=r"'jaxbandits' has no .*; did you mean 'lingape'\?"):
        jb.lingapee  # noqa: B018
    with pytest.raises(AttributeError, match=r"jaxbandits\.instances' .*; did you mean 'soare'\?"):
        jb.instances.soar  # noqa: B018
    assert not hasattr(jb, "xyz")
    assert not hasattr(jb, "__wrapped__")


def test_swapped_letters_are_nearer_than_other_ones():
    assert nearest("dmi", ["mix", "dim"]) == "dim"
    assert nearest("delt", ["delta", "dim"]) == "delta"
    assert nearest("q", ["delta", "dim"]) is None


FIELDS = {
    "done": (False, "a Move of arrays: done is False, write"),
    "answer": (None, "a Move whose answer is one array, got None"),
    "arm": ([1, 2], r"a Move whose arm is one array, got \[1, 2\]"),
}


def faulty(arms, *, field):
    """`uniform` with one field of its moves that is no array."""
    inner = jb.uniform(arms)

    def ask(key, state):
        return inner.ask(key, state)._replace(**{field: FIELDS[field][0]})

    return inner._replace(ask=ask)


@pytest.mark.parametrize("field", FIELDS)
def test_a_sweep_names_a_faulty_field_before_anything_is_played(field):
    parts = {"right": partial(jb.lingape, delta=0.1), "wrong": partial(faulty, field=field)}
    key_of(0)  # making a key compiles, once
    refused(
        lambda: jb.sweep({"a": INSTANCE}, parts, replications=2, horizon=5, progress=False),
        r"\[algorithms\.wrong\] algorithm faulty: ask must return " + FIELDS[field][1],
    )


def branching(arms):
    """`uniform` with a branch that depends on a traced value."""
    inner = jb.uniform(arms)

    def ask(key, state):
        move = inner.ask(key, state)
        return move if move.arm > 0 else inner.ask(key, state)

    return inner._replace(ask=ask)


@pytest.mark.parametrize(
    ("use", "instead"),
    [(np.asarray, "use jax.numpy in place of NumPy"), ([0, 1].__getitem__, r"write jnp.asarray\(")],
)
def test_numpy_and_lists_of_a_traced_value_are_named(use, instead):
    def numeric(arms):
        inner = jb.uniform(arms)

        def ask(key, state):
            move = inner.ask(key, state)
            return move._replace(arm=use(move.arm))

        return inner._replace(ask=ask)

    message = r"^algorithm \w+: ask cannot be compiled: `return move.*` \(test_meant.py, line \d+\)"
    message += f" needs a value that is known only while the program runs; {instead}"
    with pytest.raises(ValueError, match=message):
        played(numeric, horizon=5)


def test_a_branch_on_a_traced_value_is_named():
    refused(
        lambda: played(branching, horizon=5),
        "algorithm branching: ask cannot be compiled: `return move if .*` .*; write jnp.where",
    )
