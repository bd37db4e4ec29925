"""Odd inputs of one kind, wherever they can be given: refused by one line, or taken as meant."""

import dataclasses
import datetime
import functools
import inspect
import os
import re
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax.experimental import sparse as jax_sparse
from scipy import sparse

import jaxbandits as jb
from jaxbandits.engine import checkpoints, checks
from jaxbandits.instances import canonical, linear, options, recorded, soare, tabular
from jaxbandits.instances.fields import entered
from jaxbandits.live import rewards
from jaxbandits.messages import LONGEST, brief
from jaxbandits.parameters import size, whole
from jaxbandits.sweeps import check, planned, read
from jaxbandits.sweeps.grid import require_shard
from jaxbandits.theory.given import plain

PLANE = np.eye(2)
MASKED = "must have all entries, got a masked array that lacks 1"
TEXT = "must be real numbers, got text"
COMPLEX = "must be real numbers, got complex ones"
DATES = "must be real numbers, got dates"
LENGTHS = "must be real numbers, got lengths of time"


def objects(*entries):
    return np.array(entries, object)


# What is no table of numbers [2, 2], and why.
ODD_TABLES = {
    "a masked row": ([np.ma.array([1.0, 0.0], mask=[False, True]), [0.0, 1.0]], MASKED),
    "a masked entry": ([[np.ma.masked, 0.0], [0.0, 1.0]], MASKED),
    "masked rows in a tuple": ((np.ma.array([1.0, 0.0], mask=[True, False]), [0.0, 1.0]), MASKED),
    "a masked entry among objects": (objects([np.ma.masked, 0.0], [0.0, 1.0]), MASKED),
    "text among objects": (objects([1, "0"], [0, 1]), TEXT),
    "bytes among objects": (objects([1, b"0"], [0, 1]), TEXT),
    "text in a list": ([[1.0, "0"], [0.0, 1.0]], TEXT),
    "text of variable length": (np.array([["1", "0"], ["0", "1"]], np.dtypes.StringDType()), TEXT),
    "lengths of time": (np.array([[1, 0], [0, 1]], "m8[s]"), LENGTHS),
    "a length of time in a list": ([[np.timedelta64(1, "s"), 0], [0, 1]], LENGTHS),
    "a length of Python's time": (objects([datetime.timedelta(1), 0], [0, 1]), LENGTHS),
    "dates": (np.array([[1, 0], [0, 1]], "M8[s]"), DATES),
    "a date of Python": (objects([datetime.date(2026, 1, 1), 0], [0, 1]), DATES),
    "complex numbers in a list": ([[1j, 0], [0, 1]], COMPLEX),
    "complex numbers among objects": (objects([1j, 0], [0, 1]), COMPLEX),
    "nothing": (objects([None, 0], [0, 1]), "must be real numbers, got None"),
    "a column of pandas that lacks one": (
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0.0, 1.0]}),
        "must be real numbers, got NAType",
    ),
    "a sparse array of JAX": (
        jax_sparse.BCOO.fromdense(jnp.eye(2)),
        "must be a full array, got a sparse BCOO",
    ),
    "a sparse array of SciPy": (sparse.csr_array(PLANE), "must be a full array, got a sparse csr"),
}
# Functions of a table [2, 2], and what they call it.
TAKE_TABLES = {
    "linear": (lambda x: linear(x, [1.0, 0.0]), "arms"),
    "targets": (lambda x: linear(PLANE, [1.0, 0.0], targets=x), "targets"),
    "tabular": (lambda x: tabular(x, [1.0, 0.0]), "arms"),
    "bernoulli": (lambda x: jb.instances.bernoulli(x, [1.0, 0.0]), "arms"),
    "glm": (lambda x: jb.instances.glm(x, [1.0, 0.0]), "arms"),
    "samples": (lambda x: recorded(PLANE, x, noise_var=1.0), "samples"),
    "labelled": (lambda x: jb.instances.labelled(x, [0, 1], shown=2), "features"),
    "a constructor": (lambda x: jb.uniform(x), "arms"),
    "Live": (lambda x: jb.Live(jb.rage, x), "arms"),
    "Live's targets": (lambda x: jb.Live(jb.rage, PLANE, targets=x), "targets"),
    "d_optimal": (lambda x: jb.design.d_optimal(x), "arms"),
    "xy_optimal": (lambda x: jb.design.xy_optimal(PLANE, x), "targets"),
    "rounding": (lambda x: jb.rounding.regret(x, [0.5, 0.5], 4), "arms"),
    "fit_glm": (lambda x: jb.fit_glm(x, [2, 2], [1, 1]), "arms"),
}
# Functions of a vector of two numbers.
TAKE_VECTORS = {
    "theta": (lambda x: linear(PLANE, x), "theta"),
    "means": (lambda x: tabular(PLANE, x), "means"),
    "means alone": (lambda x: tabular(means=x), "means"),
    "values": (lambda x: tabular(PLANE, [1.0, 0.0], targets=PLANE, values=x), "values"),
    "labels": (lambda x: jb.instances.labelled(PLANE, x, shown=2), "labels"),
    "active": (lambda x: jb.design.d_optimal(PLANE, active=x), "active"),
    "weights": (lambda x: jb.rounding.efficient(x, 4), "weights"),
    "counts": (lambda x: jb.fit_glm(PLANE, x, [1, 1]), "counts"),
    "sums": (lambda x: jb.fit_glm(PLANE, [2, 2], x), "sums"),
    "init": (lambda x: jb.fit_glm(PLANE, [2, 2], [1, 1], init=x), "init"),
}


def refused(call, message):
    """The one line of the `ValueError` of a call begins with this."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as error:
        call()
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("odd", ODD_TABLES)
@pytest.mark.parametrize("taker", TAKE_TABLES)
def test_what_is_no_table_of_numbers_is_refused(taker, odd):
    (call, name), (table, message) = TAKE_TABLES[taker], ODD_TABLES[odd]
    refused(lambda: call(table), f"{name} {message}")


@pytest.mark.parametrize("odd", [one for one in ODD_TABLES if "sparse" not in one])
@pytest.mark.parametrize("taker", TAKE_VECTORS)
def test_what_is_no_vector_of_numbers_is_refused(taker, odd):
    (call, name), (table, _) = TAKE_VECTORS[taker], ODD_TABLES[odd]
    row = table["a"] if isinstance(table, pd.DataFrame) else table[0]
    refused(lambda: call(row), f"{name} must ")


def test_masks_without_effect_and_exact_numbers_are_taken():
    whole = [np.ma.array([1.0, 0.0], mask=[False, False]), (Fraction(1, 2), Decimal("0.5"))]
    assert linear(whole, [1, Fraction(1, 4)]).means.tolist() == [1.0, 0.625]
    frame = pd.DataFrame({"a": pd.array([1, 0], dtype="Int64"), "b": [0.0, 1.0]})
    assert linear(frame, pd.Series([0.5, 0.25])).means.tolist() == [0.5, 0.25]
    assert jb.fit_glm(frame, [2, 2], [1, 1]).theta.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("odd", [[np.ma.masked], [np.timedelta64(1)], objects("1"), ["1"], [1j]])
def test_rewards_of_live_use_are_checked_entry_by_entry(odd):
    refused(lambda: rewards.numbers(odd), "reward must be a finite number, got ")


KEY = jax.random.key(0)
ARMS = {"arms": PLANE, "means": [0.5, 0.4]}
# Every constructor of instances with what it needs, and the files of those that read some.
NEEDED = {
    "automobile": {"key": KEY, "path": "nowhere", "num_arms": 3},
    "bernoulli": ARMS,
    "boolean_drugs": {"path": "nowhere"},
    "boolean_network": {"key": KEY},
    "canonical": {"dim": 3, "gap": 1.0},
    "cars": {"key": KEY, "num_arms": 3},
    "classic_top_m": {"num_arms": 4, "m": 2, "angle": 0.5},
    "clicks": {"key": KEY},
    "corner": {"key": KEY, "num_arms": 3},
    "digits": {},
    "drug_repurposing": {"path": "nowhere"},
    "drugs": {"key": KEY},
    "electric_motor": {"key": KEY, "path": "nowhere", "num_arms": 3},
    "glm": {"arms": PLANE, "theta": [0.5, 0.4]},
    "images": {"path": "nowhere"},
    "labelled": {"features": PLANE, "labels": [0, 1], "shown": 2},
    "linear": {"arms": PLANE, "theta": [0.5, 0.4]},
    "logistic_cube": {"key": KEY, "num_arms": 3, "dim": 2},
    "moderate_gaps": {"key": KEY, "num_arms": 3},
    "motor": {"key": KEY, "num_arms": 3},
    "multivariate": {"key": KEY, "factors": 2},
    "recorded": {"arms": PLANE, "samples": PLANE, "noise_var": 1.0},
    "simulated": {"arms": PLANE, "simulator": (), "noise_var": 1.0},
    "soare": {"dim": 3},
    "sphere": {"key": KEY, "num_arms": 3, "dim": 2},
    "stressed": {"instance": linear(PLANE, [0.5, 0.4])},
    "tabular": ARMS,
    "transductive": {"dim": 4},
    "yahoo_r6a": {"key": KEY, "path": "nowhere", "num_arms": 3},
}
GIVEN_OTHERWISE = {
    *("key", "path", "instance", "simulator"),
    *("arms", "theta", "means", "targets", "values", "samples", "features", "labels"),
    *("target", "part", "checksum"),  # of `labelled`, which says what occurs
}
OPTIONS = [
    (name, option)
    for name in NEEDED
    for option in inspect.signature(getattr(jb.instances, name)).parameters
    if option not in GIVEN_OTHERWISE
]
# Never one number, or one word.
NO_OPTION = {
    "complex": 1j,
    "NaN": np.nan,
    "several numbers": [1.0, 5.0],
    "a table": np.eye(7),
    "text": "one",
    "masked": np.ma.masked,
    "a length of time": np.timedelta64(2, "s"),
    "text as an object": np.array("2", object),
    "a dict": {},
    "complex in an array": np.array(2 + 0j),
}


def test_every_constructor_of_instances_is_in_the_table():
    named = {name for name in jb.instances.__all__ if name[0].islower()}
    assert named == set(NEEDED)


@pytest.mark.parametrize("odd", NO_OPTION)
@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_options_of_instances_are_checked(name, option, odd):
    if option == "variance_ratio" and odd == "several numbers":
        pytest.skip("one for each arm is allowed")
    build = getattr(jb.instances, name)
    refused(lambda: build(**NEEDED[name] | {option: NO_OPTION[odd]}), f"{option} must be ")


@pytest.mark.parametrize(
    ("call", "message"),
    {
        "dim": (lambda: soare(None), "dim must be a whole number, 2 or above, got None"),
        "gap": (lambda: canonical(2, gap=None), "gap must be a finite number, got None"),
        "an angle without end": (
            lambda: soare(2, angle=np.inf),
            "angle must be a finite number, got inf",
        ),
        "a word": (
            lambda: jb.instances.moderate_gaps(KEY, 4, spread=["uniform"]),
            "spread must be one of 'uniform', 'normal_std', 'normal_var', got ['uniform']",
        ),
        "a subnormal variance": (
            lambda: soare(2, noise_var=5e-324),
            "noise_var must be a finite number, 2.2e-308 or above, the least of full precision, "
            "got 5e-324",
        ),
        "a variance too small for a run": (
            lambda: jb.simulate(soare(2, noise_var=1e-300), jb.rage, replications=1),
            "noise_var must be 0, or a number from 1e-250 to 1e+250, so that its products with "
            "numbers of draws fit double precision, got 1e-300",
        ),
        "a variance too large for a run": (
            lambda: jb.simulate(soare(2, noise_var=1e300), jb.rage, replications=1),
            "noise_var must be 0, or a number from 1e-250 to 1e+250, ",
        ),
        "a subnormal variance of an algorithm": (
            lambda: jb.lingape(PLANE, noise_var=1e-300),
            "noise_var must be a number from 1e-250 to 1e+250, ",
        ),
        "a subnormal variance in live use": (
            lambda: jb.Live(jb.rage, PLANE, noise_var=1e-300),
            "noise_var must be a number from 1e-250 to 1e+250, ",
        ),
        "a seed beyond 32 bits": (
            lambda: jb.instances.stressed(soare(2), deviation=0.1, seed=2**32),
            "seed must be a whole number from 0 to 4,294,967,295, got 4294967296",
        ),
    }.values(),
)
def test_what_an_option_of_an_instance_may_be_is_said(call, message):
    refused(call, message)


def test_numbers_of_any_real_type_are_taken_as_options():
    sizes = [np.int8(3), np.uint8(3), np.array(3), jnp.array(3)]
    assert {soare(dim).arms.shape for dim in sizes} == {(4, 3)}
    angles = [0.5, np.float32(0.5), Fraction(1, 2), Decimal("0.5"), np.array(0.5), jnp.array(0.5)]
    assert {soare(3, angle=angle).arms[3, 0] for angle in angles} == {np.cos(0.5)}


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: canonical(500_000, gap=1.0), "dim"),
        (lambda: soare(500_000), "dim"),
        (lambda: jb.instances.transductive(500_000), "dim"),
        (lambda: jb.instances.classic_top_m(500_000, 2, angle=0.1), "num_arms"),
        (lambda: jb.instances.multivariate(KEY, 2**31 - 1), "factors"),
        (lambda: jb.instances.sphere(KEY, 10**6, 10**6), "num_arms and dim"),
        (lambda: jb.instances.logistic_cube(KEY, 10**6, 10**6), "num_arms and dim"),
        (lambda: tabular(means=np.zeros(500_000)), "means"),
        (lambda: jb.instances.bernoulli(means=np.zeros(500_000)), "means"),
        (lambda: jb.instances.clicks(KEY, 2**31 - 1), "num_arms"),
        (lambda: jb.instances.corner(KEY, 2**31 - 1), "num_arms"),
        (lambda: jb.instances.moderate_gaps(KEY, 2**31 - 1), "num_arms"),
        (lambda: jb.instances.cars(KEY, 2**31 - 1), "num_arms"),
        (lambda: jb.instances.motor(KEY, 2**31 - 1), "num_arms"),
    ],
)
def test_bytes_are_counted_before_a_table_is_built(monkeypatch, call, names):
    monkeypatch.setattr(options, "memory_bytes", lambda: 2**34)
    refused(call, f"{names} must be small enough for this machine: a table [")


def test_the_bytes_that_a_table_takes_are_said(monkeypatch):
    monkeypatch.setattr(options, "memory_bytes", lambda: 2**34)
    refused(
        lambda: canonical(50_000, gap=1.0),
        "dim must be small enough for this machine: a table [50000, 50000] takes 55.9 GiB while "
        "it is built, more than the memory of 16 GiB, got 50000",
    )


SMALL = soare(2)
DEVICE = jax.devices()[0]


class Bound:
    """A constructor that is an object, without a name of its own."""

    def __call__(self, arms, *, delta=0.1):
        return jb.uniform(arms)


def simulated_by(**options):
    return lambda: jb.simulate(SMALL, jb.lingape, **{"replications": 2} | options)


def swept(instances=None, algorithms=None, **options):
    parts = instances or {"s": SMALL}, algorithms or {"l": jb.lingape}
    return lambda: jb.sweep(*parts, **{"replications": 2, "progress": False} | options)


REFUSED = {
    "a device twice": (simulated_by(devices=[DEVICE] * 2), "devices must be different ones, got ["),
    "a flag as devices": (simulated_by(devices=True), "devices must be 'all', a number, or some"),
    **{
        f"engine {engine!r} in {where}": (
            call(engine=engine),
            f"engine must be one of 'auto', 'xla', 'native', 'cuda', got {engine!r}",
        )
        for engine in ([], {}, None, 1j)
        for where, call in {"simulate": simulated_by, "a sweep": swept}.items()
    },
    "engines in an array": (simulated_by(engine=np.array(["xla"] * 2)), "engine must be one of"),
    "debug": (simulated_by(debug=[]), "debug must be one of False, True, got []"),
    "progress": (
        simulated_by(progress="bar"),
        "progress must be None, True, False or a callable `(done, total)`, got 'bar'",
    ),
    "resume": (swept(resume=[]), "resume must be one of False, True, got []"),
    "bounds": (swept(bounds="no"), "bounds must be one of False, True, got 'no'"),
    "a table of sizes": (
        simulated_by(replications=np.eye(2)),
        "replications must be a whole number, 1 or above, got array([[1., 0.], [0., 1.]])",
    ),
    "a length of time as a size": (
        simulated_by(replications=np.timedelta64(3, "s")),
        "replications must be a whole number, 1 or above, got np.timedelta64(3,'s')",
    ),
    "a table as an option": (
        lambda: jb.simulate(SMALL, partial(jb.lingape, delta=np.eye(2)), replications=1),
        "delta must be a number in (0, 1), 1e-250 or above, got array([[1., 0.], [0., 1.]])",
    ),
    "names that are one as text": (
        swept({1: SMALL, "1": SMALL}),
        "names of instances must differ as text, got '1' and 1",
    ),
    "names of algorithms that are one as text": (
        swept(algorithms={0.5: jb.lingape, "0.5": jb.rage}),
        "names of algorithms must differ as text, got '0.5' and 0.5",
    ),
    "NaN as a name": (
        swept({np.nan: SMALL}),
        "names of instances must be text or numbers, got nan",
    ),
    "no name": (swept({"": SMALL}), "names of instances must be of printable characters, got ''"),
    "a name of two lines": (
        swept({"a\nb": SMALL}),
        r"names of instances must be of printable characters, got 'a\nb'",
    ),
    "names of a comparison": (
        lambda: jb.compare({1: jb.lingape, "1": jb.rage}, SMALL, replications=1),
        "names of algorithms must differ as text, got '1' and 1",
    ),
    "NaN as a name of a comparison": (
        lambda: jb.compare({np.nan: jb.lingape}, SMALL, replications=1),
        "names of algorithms must be text or numbers, got nan",
    ),
    "an axis of 10^8 points": (
        swept(axes={"delta": range(10**8)}),
        "[axes] delta must have at most 100,000 values, as many as a sweep may have cells, got "
        "100,000,000",
    ),
    "an axis of 10^8 equal points of NumPy": (
        swept(axes={"delta": np.broadcast_to(0.1, 10**8)}),
        "[axes] delta must have at most 100,000 values, ",
    ),
    "a complex number on an axis": (
        swept(axes={"delta": [0.1j]}),
        "[axes] delta must be all numbers, all text or all flags, got [0.1j]",
    ),
}


LUCB = partial(jb.lucb, m=1)
HALVING = partial(jb.sequential_halving, budget=20)


@functools.cache
def live(build=LUCB):
    return jb.Live(build, PLANE)


# Arguments that are a whole number, of which 1 is allowed, and some that are a real number.
FROM_TABLES = ("m", "budget", "max_iterations", "total")  # options, which 1.0 may be as well
WHOLE = {
    "replications": lambda x: planned({"s": SMALL}, {"l": jb.lingape}, replications=x),
    "seed": lambda x: planned({"s": SMALL}, {"l": jb.lingape}, replications=1, seed=x),
    "max_pulls": lambda x: checks.size_of("max_pulls", x),
    "batch": lambda x: checks.size_or_none("batch", x),
    "devices": checks.devices_of,
    "m": lambda x: jb.lucb.complete(PLANE, m=x),
    "budget": lambda x: jb.gse.convert({"budget": x}),
    "shown": lambda x: options.check_option(size(1), shown=x),
    "delay": lambda x: jb.instances.stressed(SMALL, delay=x),
    "max_iterations": lambda x: jb.design.wynn(PLANE, max_iterations=x),
    "total": lambda x: jb.rounding.efficient([0.5, 0.5], x),
    "arm": lambda x: rewards.index("arm", x, 2),
    "shard": lambda x: require_shard((x, 1), None),
}
REAL = {
    "delta": lambda x: jb.rage.convert({"delta": x}),
    "epsilon": lambda x: jb.lingape.convert({"epsilon": x}),
    "v0": lambda x: jb.m_lingape.convert({"v0": x}),
    "noise_var": lambda x: soare(2, noise_var=x),
    "theta_norm": lambda x: jb.Live(jb.lingape, PLANE, theta_norm=x),
    "tol": lambda x: jb.design.d_optimal(PLANE, tol=x),
    "ridge": lambda x: jb.fit_glm(PLANE, [2, 2], [1, 1], ridge=x),
    "variance_ratio": lambda x: jb.instances.stressed(SMALL, variance_ratio=x),
    "gap": lambda x: check(
        planned({"s": partial(canonical, dim=3)}, {"l": jb.rage}, replications=1, axes={"gap": [x]})
    ),
}
FLAGS = {"Python": True, "NumPy": np.True_, "an array": np.array(True), "JAX": jnp.array(True)}


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("name", [*WHOLE, *REAL])
def test_a_flag_is_no_number(name, flag):
    with pytest.raises(ValueError, match=rf"{name} must be .*True"):
        (WHOLE | REAL)[name](FLAGS[flag])


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_number_is_an_integer_of_any_kind(name):
    for one in (1, np.int8(1), np.array(1), jnp.array(1)):
        WHOLE[name](one)
    reals = [1.0, np.float64(1.0), np.array(1.0)]
    if name in FROM_TABLES:
        for one in reals:
            WHOLE[name](one)
        reals = [1.5]
    for odd in (*reals, True, "1", [1], 1j, np.ma.masked):
        with pytest.raises(ValueError, match=f"^{name} must be "):
            WHOLE[name](odd)


def test_an_option_may_be_a_whole_number_that_came_from_a_table():
    for budget in (1e4, np.float32(1e4), jnp.array(1e4)):
        assert jb.gse.convert({"budget": budget})["budget"] == 10_000
    for odd in (True, 10000.5, np.inf, np.nan, "1e4"):
        refused(lambda odd=odd: jb.gse.convert({"budget": odd}), "budget must be a whole number")


def test_an_axis_of_flags_is_for_options_that_are_flags():
    def axis(values):
        build = partial(jb.gse, budget=60)
        return planned({"s": SMALL}, {"g": build}, replications=1, axes={"reuse": values}).axes

    for flags in ([False, True], np.array([False, True]), [np.False_, np.True_]):
        assert axis(flags) == {"reuse": (False, True)}
    refused(
        lambda: axis([True, 2.0]),
        "[axes] reuse must be all numbers, all text or all flags, got [True, 2.0]",
    )


@pytest.mark.parametrize("odd", [[True, 4], ["3", 4], np.array([True]), "1", [1j], {3: 4}, np.nan])
def test_recorded_rounds_are_numbers(odd):
    with pytest.raises(ValueError, match=r"^record must be "):
        checkpoints.check(odd, 100)


def test_recorded_rounds_may_be_listed_in_any_way():
    for rounds in ([3, 4], range(3, 5), np.array([3.0, 4.0]), (np.int8(3), np.array(4))):
        checkpoints.check(rounds, 100)
        assert checkpoints.rounds_of(rounds, 100).tolist() == [3, 4]


NO_DICTS = {"a list": [("a", 1)], "a tuple": (), "text": "abc", "a number": 3, "a set": {"a"}}


@pytest.mark.parametrize("odd", NO_DICTS)
@pytest.mark.parametrize("name", ["instances", "algorithms", "axes", "only"])
def test_what_is_no_dict_by_name_is_refused(name, odd):
    parts = {"instances": {"s": SMALL}, "algorithms": {"l": jb.lingape}} | {name: NO_DICTS[odd]}
    refused(lambda: planned(**parts, replications=2), f"{name} must be a dict of ")


def test_restrictions_of_a_part_are_a_dict_too():
    refused(
        swept(axes={"delta": [0.1]}, only={"l": [0.1]}),
        "only['l'] must be a dict of lists by name, got [0.1]",
    )


@pytest.mark.parametrize("odd", [None, 3, ["x"], b"x", "a\0b", 1.5, "", "half \ud800"])
def test_what_is_no_name_of_a_file_is_refused(odd):
    refused(lambda: jb.load(odd), "path must be the name of a file, got ")
    if odd is not None:
        refused(swept(out=odd), "out must be the name of a file, got ")


@pytest.mark.parametrize(
    ("call", "message"),
    {
        "a family in live use": (
            lambda: jb.Live(LUCB, PLANE, family="poison"),
            "family must be one of 'gaussian', 'logistic', 'poisson', 'probit', got 'poison'; did "
            "you mean 'poisson'?",
        ),
        "an engine": (simulated_by(engine="nativ"), "engine must be one of 'auto', 'xla', 'nati"),
        "a threshold": (
            lambda: jb.lingape.convert({"threshold": "pairwize"}),
            "threshold must be one of ",
        ),
        "a named number": (
            lambda: jb.m_lingape.convert({"v0": "papre"}),
            "v0 must be a finite number above 0",
        ),
    }.values(),
)
def test_the_nearest_name_is_said(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as error:
        call()
    assert "; did you mean '" in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jb.Live(LUCB, PLANE, horizon=3), "unknown argument of Live 'horizon'; "),
        (
            lambda: jb.Live(LUCB, PLANE, delta=0.1),
            "Live has no argument 'delta'; bind the option of the algorithm: "
            "functools.partial(lucb, delta=0.1)",
        ),
        (
            swept(delta=0.1),
            "sweep has no argument 'delta'; bind the option of the algorithm: "
            "functools.partial(lingape, delta=0.1)",
        ),
        (
            lambda: jb.compare({"l": jb.lingape}, SMALL, replication=3),
            "unknown argument of compare 'replication'; did you mean 'replications'?",
        ),
    ],
)
def test_an_argument_of_something_else_is_named(call, message):
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: live().cancel(99),
            "ticket must be one that was handed out, got 99",
        ),
        (lambda: live().tell(1.0, ticket=True), "ticket must be one that was handed out, got True"),
        (lambda: live().tell(1.0, arm=True), "arm must be a whole number from 0 to 1, got True"),
        (
            lambda: live(HALVING).tell(1.0, arm=0.0),
            "arm must be a whole number from 0 to 1, got 0.0: write 0",
        ),
        (swept(until={"regret_se": 1}), "[until] regret_se is for sweeps with a horizon, and this"),
        (
            swept(until={"pulls_se": 1.0}, horizon=9),
            "[until] pulls_se is for sweeps without a horizon, and this one has 9: give regret_se",
        ),
    ],
)
def test_what_is_missing_is_said(call, message):
    refused(call, message)


@pytest.mark.parametrize("odd", REFUSED)
def test_odd_arguments_are_refused_by_one_line(odd):
    refused(*REFUSED[odd])


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.uint64])
def test_sizes_may_be_integers_of_numpy(kind):
    given = checks.size_of("replications", kind(100))
    assert type(given) is int
    assert given + checks.REPLICATIONS_PER_CELL == 100 + checks.REPLICATIONS_PER_CELL
    plan = planned({"s": SMALL}, {"l": jb.lingape}, replications=kind(100), seed=kind(7))
    assert [type(number) for number in (plan.replications, plan.seed)] == [int, int]
    assert type(whole().convert(kind(100))) is int
    assert type(plain(kind(100))) is int


@pytest.mark.parametrize("tenth", [Fraction(1, 10), Decimal("0.1")])
def test_exact_fractions_on_an_axis_and_as_options_are_numbers(tenth):
    plan = planned({"s": SMALL}, {"l": jb.lingape}, replications=1, axes={"delta": [tenth]})
    assert plan.axes == {"delta": (0.1,)}
    plan = planned({"s": SMALL}, {"l": partial(jb.lingape, delta=tenth)}, replications=1)
    assert plan.algorithms[0].options == {"delta": 0.1}


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda arms: jb.uniform(arms), "a lambda"),
        (swept, "the inner function inside"),
    ],
)
def test_what_has_no_name_of_its_own_is_called_what_it_is(tmp_path, build, what):
    def inside(arms):
        return jb.uniform(arms)

    build = inside if build is swept else build
    refused(
        swept(algorithms={"a": build}, out=tmp_path, max_pulls=9),
        f"{what} cannot be recognised in another",
    )


def test_an_object_that_is_called_is_known_by_its_class(tmp_path):
    plan = swept(algorithms={"a": Bound()}, out=tmp_path, max_pulls=9)
    assert plan().equals(plan())
    assert len(list((tmp_path / "cells").iterdir())) == 1


def test_a_sweep_file_may_begin_with_a_mark_of_its_encoding(tmp_path):
    text = 'replications = 1\n[instances.s]\nname = "soare"\ndim = 2\n'
    file = tmp_path / "sweep.toml"
    file.write_text(text + '[algorithms.l]\nname = "lingape"\n', encoding="utf-8-sig")
    assert read(file).replications == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 5000, "not valid TOML: lists or tables nested too deep"),
        ("x = " + "[" * 5000 + "]" * 5000, "not valid TOML: lists or tables nested too deep"),
        ("[instances.s]\nname = \n", "not valid TOML: Invalid value (at line 2, column 8)"),
    ],
)
def test_a_sweep_file_that_cannot_be_read_is_named(tmp_path, text, message):
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    refused(lambda: read(file), f"{file}: {message}")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "it is a named pipe, and no file"),
        (os.mkdir, "it is a folder, and no file"),
        (lambda file: os.symlink("/dev/zero", file), "it is a device, and no file"),
        (lambda file: file.write_bytes(b"x = 1 # \xff"), "it is no text in UTF-8"),
    ],
)
def test_a_sweep_file_is_a_file_of_text(tmp_path, make, message):
    file = tmp_path / "sweep.toml"
    make(file)
    refused(lambda: read(file), f"{file}: {message}")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_of_a_sweep_file_may_end_as_on_other_systems(tmp_path, end):
    file = tmp_path / "sweep.toml"
    lines = ["replications = 1", "[instances.s]", 'name = "soare"', "dim = 2"]
    file.write_bytes(end.join([*lines, "[algorithms.l]", 'name = "lingape"']).encode())
    assert read(file).replications == 1


def test_a_size_beyond_memory_in_a_sweep_file_is_named(tmp_path):
    file = tmp_path / "sweep.toml"
    text = 'replications = 1\n[instances.s]\nname = "soare"\ndim = 1000000\n'
    file.write_text(text + '[algorithms.l]\nname = "lingape"\n')
    refused(
        lambda: check(read(file)),
        "[instances.s] dim must be small enough for this machine: a table [1000001, 1000000] takes "
        "2.24e+04 GiB",
    )


LOGGED = recorded(PLANE, [[0.0, 1.0], [1.0, 0.0]], noise_var=0.25)
COINS = jb.instances.bernoulli(PLANE, [0.5, 0.4])
HEAVY = jb.instances.stressed(linear(PLANE, [0.5, 0.4]), df=3.0, drift=0.1)
PICTURES = jb.instances.labelled(np.eye(3), [0, 1, 1], shown=2)
# Fields that `dataclasses.replace` sets, which checks nothing.
REPLACED = {
    "means of another length": (SMALL, {"means": [1.0]}, "means must have shape (3,), got (1,)"),
    "means that are text": (SMALL, {"means": ["1"] * 3}, "means must be real numbers, got text"),
    "a mask": (SMALL, {"means": np.ma.masked_equal([1.0, 0.0, 0.5], 0.0)}, f"means {MASKED}"),
    "NaN": (SMALL, {"theta": [1.0, np.nan]}, "theta must be finite, got NaN"),
    "arms that are a vector": (SMALL, {"arms": [1.0]}, "arms must be a table [K, d], got shape"),
    "targets of other features": (SMALL, {"targets": np.eye(3)}, "targets must have the arms' 2"),
    "values of another length": (SMALL, {"values": np.ones(2)}, "values must have shape (3,)"),
    "a variance of text": (SMALL, {"noise_var": "1"}, "noise_var must be real numbers, got text"),
    "two variances": (SMALL, {"noise_var": [1.0, 2.0]}, "noise_var must be 0, or a finite number"),
    "a variance below 0": (SMALL, {"noise_var": -1.0}, "noise_var must be 0, or a finite num"),
    "a subnormal variance": (SMALL, {"noise_var": 5e-324}, "noise_var must be 0, or a finite "),
    "a variance for no run": (
        SMALL,
        {"noise_var": 1e-300},
        "noise_var must be 0, or a number from",
    ),
    "two norms": (SMALL, {"theta_norm": [1.0, 2.0]}, "theta_norm must be a number, 0 or above"),
    "rewards that nobody knows": (SMALL, {"rewards": "x"}, "rewards must be one of 'normal', "),
    "rewards that are no name": (SMALL, {"rewards": []}, "rewards must be one of 'normal', "),
    "a family that nobody knows": (SMALL, {"family": "x"}, "family must be one of 'gaussian', "),
    "no records": (SMALL, {"rewards": "recorded"}, "samples must be given for rewards 'reco"),
    "no simulator": (SMALL, {"rewards": "simulated"}, "simulator must be given for rewards 'sim"),
    "another simulator": (
        SMALL,
        {"rewards": "simulated", "simulator": 3.0},
        "simulator must have a method `reward(key, arm)`, got none",
    ),
    "records of fewer arms": (LOGGED, {"samples": [[1.0]]}, "samples must be a table [2, N], got"),
    "NaN records": (LOGGED, {"samples": [[np.nan], [1.0]]}, "samples must be finite, got NaN"),
    "a chance of 2": (COINS, {"means": [2.0, 0.0]}, "means must lie in [0, 1] for bernoulli rewar"),
    "no variances": (SMALL, {"rewards": "student"}, "stress must be given for rewards 'student"),
    "stress that is none": (SMALL, {"stress": 3}, "stress must be a Stress, got 3"),
    "one degree of freedom": (
        HEAVY,
        {"stress": dataclasses.replace(HEAVY.stress, df=1.0)},
        "stress.df must be a finite number above 1, got 1.0",
    ),
    "variances of fewer arms": (
        HEAVY,
        {"stress": dataclasses.replace(HEAVY.stress, variances=np.ones(1))},
        "stress.variances must have shape (2,), got (1,)",
    ),
    "half a round of delay": (
        HEAVY,
        {"stress": dataclasses.replace(HEAVY.stress, delay=0.5)},
        "stress.delay must be a whole number from 0 to 100,000, got 0.5",
    ),
    "labels of fewer pictures": (
        PICTURES,
        {"labels": [0]},
        "labels must have shape (3,), got (1,)",
    ),
    "labels that are no classes": (
        PICTURES,
        {"labels": np.array([0, 1, 2])},
        "classes must be the labels that occur, [0, 1, 2], got others",
    ),
    "a target that does not occur": (
        PICTURES,
        {"target": 7},
        "target must be one of the labels [0, 1], got 7",
    ),
    "a chance above 1": (PICTURES, {"high": 2.0}, "high must be a number in [0, 1], got 2.0"),
    "one picture shown": (PICTURES, {"shown": 1}, "shown must be a whole number, 2 or above, got"),
}


@pytest.mark.parametrize("odd", REPLACED)
def test_fields_that_were_replaced_are_checked_before_a_run(odd):
    problem, fields, message = REPLACED[odd]
    build = jb.deep_fpl if problem is PICTURES else jb.uniform
    replaced = dataclasses.replace(problem, **fields)
    horizon = 5 if problem is PICTURES else None
    refused(lambda: jb.simulate(replaced, build, replications=2, horizon=horizon), message)


def test_fields_of_other_types_are_made_double_precision():
    given = np.float32([1.0, 0.25, 0.5])
    for means in (given, given.tolist(), jnp.array(given), given.astype(object)):
        made = entered(dataclasses.replace(SMALL, means=means, values=means, noise_var=1))
        assert (made.means.dtype, made.noise_var.dtype) == (float, float)
        assert made.means.tolist() == [1.0, 0.25, 0.5]
    assert entered(SMALL) is SMALL


def test_bounds_check_fields_that_were_replaced():
    replaced = dataclasses.replace(SMALL, means=np.ones(2), values=["a"])
    for bound in (
        jb.theory.characteristic_time,
        partial(jb.theory.pull_lower_bound, delta=0.1),
        partial(jb.theory.gse_error_bound, budget=100),
        partial(jb.theory.lucb_complexity, m=1),
        jb.design.oracle,
    ):
        with pytest.raises(ValueError, match=r"must (have shape|be real numbers)"):
            bound(replaced)


HUGE = [np.eye(100), list(range(10**6)), "x" * 10**6, {"a\nb": np.eye(3)}, jnp.eye(40), 10**5000]


class Broken:
    """What cannot even be shown."""

    def __repr__(self):
        raise ValueError("no")


@pytest.mark.parametrize("value", [*HUGE, Broken(), SMALL, DEVICE, Bound()], ids=type)
def test_what_was_given_is_one_short_line_in_a_message(value):
    text = brief(value)
    assert len(text.splitlines()) == 1
    assert 0 < len(text) <= LONGEST


def test_no_message_shows_what_was_given_in_another_way():
    """An array, or an object of a user, may have several lines, or thousands of characters."""
    files = Path(jb.__file__).parent.rglob("*.py")
    other = re.compile(r"""got \{[^{}"']*!r[^{}]*\}""")
    found = {file.name: other.findall(file.read_text()) for file in files}
    assert {name: shown for name, shown in found.items() if shown} == {}


@pytest.mark.parametrize("key", [3, None, "key", np.uint32(3), jax.random.split(KEY), PLANE])
def test_a_random_instance_needs_a_key(key):
    refused(
        lambda: jb.instances.sphere(key, 4, 2), "key must be one key of JAX, jax.random.key(0) "
    )


@pytest.mark.parametrize("kind", [np.int8, np.int64, bool])
def test_features_of_whole_numbers_are_floats_to_an_algorithm(kind):
    with jax.enable_x64(True):
        moves = []
        for arms in (np.eye(2, dtype=kind), np.eye(2), jnp.eye(2, dtype=kind)):
            algorithm = jb.lingape(arms, theta_norm=1.0)
            moves.append(algorithm.ask(KEY, algorithm.init(KEY)))
        chex.assert_trees_all_equal(*moves)


def test_a_column_of_text_is_named():
    table = pd.DataFrame({"price": [1.0, 2.0], "id": ["a", "b"]})
    with pytest.raises(ValueError, match=r"arms must be real numbers, got .* in column 'id'"):
        jb.instances.linear(table, [1.0, 1.0])
    assert jb.instances.linear(table[["price"]], [1.0]).arms.shape == (2, 1)
