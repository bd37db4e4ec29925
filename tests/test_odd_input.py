"""Odd inputs of one kind, wherever they can be given: refused by one line, or taken as meant."""

import datetime
import re
from decimal import Decimal
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax.experimental import sparse as jax_sparse
from scipy import sparse

import jaxbandits as jb
from jaxbandits.instances import linear, recorded, tabular
from jaxbandits.live import rewards

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
