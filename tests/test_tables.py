"""Tables of records keep every number and its type."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandits.engine.tables import columns_of, empty_tables, records_of

LANES = 5
RNG = np.random.default_rng(0)
RECORDS = {
    "id": RNG.integers(-(2**62), 2**62, LANES),
    "stopped": RNG.random(LANES) < 0.5,
    "answer": RNG.random((3, LANES)) < 0.5,
    "small": RNG.integers(-100, 100, (2, 2, LANES)).astype(np.int32),
    "words": RNG.integers(0, 2**32, LANES, np.uint32),
    "curve": RNG.normal(size=(0, LANES)),
    "value": RNG.normal(size=LANES),
    "half": RNG.normal(size=LANES).astype(jnp.bfloat16),
    "single": RNG.normal(size=(2, LANES)).astype(np.float32),
}


def test_records_come_back_from_their_tables():
    with jax.enable_x64(True):
        tables = {name: np.asarray(x).T for name, x in jax.jit(columns_of)(RECORDS).items()}
    one = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[:-1], x.dtype), RECORDS)
    for name, found in records_of(tables, one).items():
        assert found.dtype == RECORDS[name].dtype
        np.testing.assert_array_equal(found, np.moveaxis(RECORDS[name], -1, 0), err_msg=name)
    empty = empty_tables(one, (7,))
    assert {name: (x.shape[1:], x.dtype) for name, x in empty.items()} == {
        name: (x.shape[1:], x.dtype) for name, x in tables.items()
    }
    assert all(len(x) == 7 for x in empty.values())
