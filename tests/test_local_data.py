"""Instances read from local files: small ones written here, and real ones if available."""

import os
from pathlib import Path

import jax
import numpy as np
import pytest
from counting import compilations
from test_instances import check

import jaxbandits as jb
from jaxbandits.instances import genes
from jaxbandits.instances.data import idx, local_files

make = jb.instances
PATHS = [
    *(local_files.read_automobile, local_files.read_electric_motor, make.drug_repurposing),
    *(make.boolean_drugs, idx.read_idx, idx.read_folder, genes.read_network),
]


def car(weight=2000, width=65.0, size=100, city=25, highway=30, price="10000"):
    row = ["0"] * 26
    row[13], row[11], row[16] = str(weight), str(width), str(size)
    row[23], row[24], row[25] = str(city), str(highway), price
    return ",".join(row)


CARS = [
    car(price="5000"),
    car(weight=3000, price="?"),
    car(weight=4000, width=70.0, size=300, city=15, highway=20, price="25000"),
    car(weight=3000, width=66.0, size=150, city=20, highway=28, price="15000"),
]


def test_automobile_drops_missing_prices_and_rescales(tmp_path):
    (tmp_path / "imports-85.data").write_text("\n".join(CARS) + "\n")
    for path in (tmp_path, tmp_path / "imports-85.data", str(tmp_path)):
        instance = check(make.automobile(jax.random.key(0), path, 3))
    order = np.argsort(instance.means)
    np.testing.assert_allclose(instance.means[order], [0.0, 0.5, 1.0])
    expected = [[0, 0, 0, 1, 1], [0.5, 0.2, 0.25, 0.5, 0.8], [1, 1, 1, 0, 0]]
    np.testing.assert_allclose(instance.arms[order], expected)
    assert float(instance.noise_var) == 0.1
    with pytest.raises(ValueError, match="num_arms must be at most 3, got 4"):
        make.automobile(jax.random.key(0), tmp_path, 4)
    drawn = {tuple(make.automobile(jax.random.key(0), tmp_path, 2).means)}
    with compilations() as seen:
        drawn |= {tuple(make.automobile(jax.random.key(k), tmp_path, 2).means) for k in range(40)}
    assert len(drawn) == 6  # every ordered pair, never the same car twice
    assert seen == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*CARS, "1,2,3"], "row 4 does not have 26 columns"),
        ([*CARS, car(weight="heavy")], "holds a value that is no number: .*heavy"),
        ([*CARS, car(price="0")], "has a price that is not above 0; a missing one must be"),
        (CARS[:1], "is too small"),
        ([], "is too small|no"),
    ],
    ids=["short row", "word", "price of 0", "one car", "empty"],
)
def test_malformed_cars_are_a_value_error(rows, message, tmp_path):
    (tmp_path / "imports-85.data").write_text("\n".join(rows))
    with pytest.raises(ValueError, match=rf"path: .*imports-85.data.*({message})"):
        make.automobile(jax.random.key(0), tmp_path, 2)


def test_a_missing_file_is_a_value_error(tmp_path):
    with pytest.raises(ValueError, match=r"path: no file .*imports-85.data"):
        make.automobile(jax.random.key(0), tmp_path, 2)
    with pytest.raises(ValueError, match=r"path: no file .*features_71x10.csv"):
        make.drug_repurposing(tmp_path)


@pytest.mark.parametrize(("missing", "prices"), [("drop", 3), ("impute", 4)])
def test_cars_without_a_price_are_dropped_or_imputed(missing, prices, tmp_path):
    (tmp_path / "imports-85.data").write_text("\n".join(CARS) + "\n")
    instance = make.automobile(jax.random.key(0), tmp_path, prices, missing=missing)
    expected = [0.0, 0.5, 1.0] if missing == "drop" else [0.0, 0.5, 0.5, 1.0]
    np.testing.assert_allclose(np.sort(instance.means), expected)
    with pytest.raises(ValueError, match="missing must be one of 'drop', 'impute', got 'keep'"):
        make.automobile(jax.random.key(0), tmp_path, 2, missing="keep")


SENSORS = (
    *("ambient", "coolant", "u_d", "u_q", "motor_speed", "torque", "i_d", "i_q", "pm"),
    *("stator_yoke", "stator_tooth", "stator_winding"),
)


def write_motor(folder, rows=40, *, order=(*SENSORS, "profile_id"), name="pmsm_temperature_data"):
    table = np.random.default_rng(3).normal(size=(rows, len(order)))
    lines = [",".join(order), *(",".join(map(repr, row.tolist())) for row in table)]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return table[:, [order.index(sensor) for sensor in SENSORS]]


@pytest.mark.parametrize("target", ["pm", "motor_speed"])
def test_electric_motor_rescales_columns_and_draws_rows(target, tmp_path):
    table = write_motor(tmp_path)
    unit = (table - table.min(0)) / np.ptp(table, axis=0)
    path = tmp_path / "pmsm_temperature_data.csv"
    instance = check(make.electric_motor(jax.random.key(0), path, 40, target=target))
    column = SENSORS.index(target)
    order, wanted = np.argsort(instance.means), np.argsort(unit[:, column])
    np.testing.assert_allclose(instance.means[order], unit[wanted, column])
    np.testing.assert_allclose(instance.arms[order], np.delete(unit, column, axis=1)[wanted])
    assert float(instance.noise_var) == 0.1
    with pytest.raises(ValueError, match="num_arms must be at most 40, got 41"):
        make.electric_motor(jax.random.key(0), tmp_path, 41)
    some = {tuple(make.electric_motor(jax.random.key(k), tmp_path, 5).means) for k in range(4)}
    assert len(some) == 4


def test_electric_motor_finds_columns_by_name_and_sees_a_file_that_changed(tmp_path):
    first = write_motor(tmp_path)
    now = make.electric_motor(jax.random.key(0), tmp_path, 40)
    turned = write_motor(tmp_path, 41, order=("profile_id", *SENSORS[::-1]), name="measures_v2")
    other = make.electric_motor(jax.random.key(0), tmp_path, 41)
    for instance, table in ((now, first), (other, turned)):
        means = table[:, SENSORS.index("pm")]
        expected = np.sort((means - means.min()) / np.ptp(means))
        np.testing.assert_allclose(np.sort(instance.means), expected)


NUMBERS = ",".join(["0.5"] * len(SENSORS))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([",".join(SENSORS[1:]), NUMBERS[4:]], "has no column 'ambient'"),
        ([",".join(SENSORS), NUMBERS], "is too small"),
        ([",".join(SENSORS), NUMBERS, "1,2,three"], "holds a value that is no number"),
        ([",".join(SENSORS), NUMBERS, NUMBERS.replace("0.5", "nan")], "finite numbers, got NaN"),
    ],
    ids=["no ambient", "one row", "short row", "NaN"],
)
def test_malformed_motor_records_are_a_value_error(rows, message, tmp_path):
    (tmp_path / "pmsm_temperature_data.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(ValueError, match=rf"path: .*pmsm_temperature_data.csv.*{message}"):
        make.electric_motor(jax.random.key(0), tmp_path, 2)


@pytest.mark.parametrize(("build", "dim"), [(make.cars, 5), (make.motor, 11)])
def test_synthetic_rows_have_means_that_are_not_linear(build, dim):
    """A linear model explains the means only in part; another key gives other rows."""
    found = check(build(jax.random.key(0), 3000))
    assert found.arms.shape == (3000, dim)
    assert found.arms.min() >= 0
    assert found.arms.max() <= 1
    theta, *_ = np.linalg.lstsq(found.arms, found.means)
    left = (found.means - found.arms @ theta).var() / found.means.var()
    assert 0.02 < left < 0.5
    assert np.linalg.matrix_rank(found.arms) == dim
    assert not np.array_equal(build(jax.random.key(1), 3000).means, found.means)


def write_drugs(folder, features, rewards, *, names="ABC", other="ABC"):
    rows = [",".join(["gene", *names])]
    rows += [",".join([f"g{i}", *map(str, row)]) for i, row in enumerate(features)]
    (folder / "features_71x10.csv").write_text("\n".join(rows) + "\n")
    rows = [",".join(other), *(",".join(map(str, row)) for row in rewards)]
    (folder / "rewards_named.csv").write_text("\n".join(rows) + "\n")


def test_drug_tables_are_read(tmp_path):
    rng = np.random.default_rng(2)
    features, rewards = rng.normal(size=(7, 3)), rng.random((5, 3))
    write_drugs(tmp_path, features, rewards)
    instance = check(make.drug_repurposing(tmp_path, noise_var=0.5))
    np.testing.assert_allclose(instance.arms, features.T)
    np.testing.assert_allclose(instance.samples, rewards.T)
    np.testing.assert_allclose(instance.means, rewards.mean(0))
    np.testing.assert_allclose(instance.theta, np.linalg.pinv(features.T) @ rewards.mean(0))
    np.testing.assert_allclose(instance.theta_norm, np.linalg.norm(instance.theta))
    assert (float(instance.noise_var), instance.rewards) == (0.5, "recorded")


@pytest.mark.parametrize("fault", ["names", "word", "ragged", "rows"])
def test_malformed_drug_tables_are_a_value_error(fault, tmp_path):
    features, rewards = np.ones((7, 3)).tolist(), np.ones((5, 3)).tolist()
    if fault == "word":
        features[2][1] = "high"
    if fault == "ragged":
        rewards[3] = rewards[3][:2]
    write_drugs(tmp_path, features, rewards, other="ABD" if fault == "names" else "ABC")
    if fault == "rows":
        (tmp_path / "rewards_named.csv").write_text("A,B,C\n")
    with pytest.raises(ValueError, match=r"path: |samples must be"):
        make.drug_repurposing(tmp_path)


DATA = os.environ.get("JAXBANDITS_DATA")
real = pytest.mark.skipif(DATA is None, reason="JAXBANDITS_DATA names no folder")


@real
def test_the_real_cars():
    cars = check(make.automobile(jax.random.key(0), Path(DATA) / "automobile", 201))
    np.testing.assert_array_equal(cars.arms.min(0), np.zeros(5))
    np.testing.assert_array_equal(cars.arms.max(0), np.ones(5))
    assert (cars.means.min(), cars.means.max()) == (0.0, 1.0)
    np.testing.assert_allclose(5118 + 40282 * cars.means.mean(), 13207.13, atol=0.005)
    theta, *_ = np.linalg.lstsq(cars.arms, cars.means)
    residual = cars.means - cars.arms @ theta
    assert np.linalg.matrix_rank(cars.arms) == 5
    np.testing.assert_allclose(residual.std(), 0.088, atol=0.002)
    np.testing.assert_allclose(np.abs(residual).max(), 0.37, atol=0.005)
    np.testing.assert_allclose(1 - residual.var() / cars.means.var(), 0.80, atol=0.01)
    with pytest.raises(ValueError, match="num_arms must be at most 201, got 202"):
        make.automobile(jax.random.key(0), Path(DATA) / "automobile", 202)


@real
def test_the_real_drugs():
    drugs = check(make.drug_repurposing(Path(DATA) / "drug_repurposing"))
    assert drugs.arms.shape == (10, 71)
    assert drugs.samples.shape == (10, 18)
    np.testing.assert_allclose(np.linalg.norm(drugs.arms, axis=1), 1.0, atol=1e-6)
    assert np.linalg.matrix_rank(drugs.arms) == 10
    means = [0.49150, 0.48488, 0.48174, 0.47798, 0.46501, 0.38178, 0.38260, 0.39274, 0.39677]
    np.testing.assert_allclose(drugs.means, [*means, 0.39856], atol=6e-6)
    np.testing.assert_allclose(drugs.arms @ drugs.theta, drugs.means, atol=1e-10)
    np.testing.assert_allclose(drugs.theta_norm, 1.8121, atol=1e-4)
    assert 0.0315 < drugs.samples.std(1).min() < drugs.samples.std(1).max() < 0.0535
    np.testing.assert_allclose(
        (drugs.samples.min(), drugs.samples.max()), (0.306, 0.531), atol=6e-4
    )
    assert float(drugs.noise_var) == 0.25


MOTOR = ",".join(local_files.SENSORS) + "\n"
READERS = {
    "imports-85.data": make.automobile,
    "measures_v2.csv": make.electric_motor,
    "features_71x10.csv": lambda _, path, __: make.drug_repurposing(path),
}
ODD_FILES = {
    "no text": (b"\xe9\xff,1\n", "cannot be read"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "cannot be read"),
    "gzip": (b"\x1f\x8b\x08\x00", "cannot be read"),
}


@pytest.mark.parametrize("odd", ODD_FILES)
@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_no_text_is_named(name, odd, tmp_path):
    data, message = ODD_FILES[odd]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=rf"^path: .*{name} {message}") as error:
        READERS[name](jax.random.key(0), tmp_path, 2)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no columns, or no row below"),
        ("\n\n", "has no columns, or no row below"),
        ("x\n1\n", "has no columns, or no row below"),
        (",a,b\n", "has no columns, or no row below"),
        (",a,b\nx,1,2\ny,0,5,0,7\n", "row 1 does not have 2 columns"),
        (",a,b\nx,1," + "9" * 200_000 + "\n", "cannot be read: field larger than"),
    ],
    ids=len,
)
def test_a_table_without_numbers_is_named(text, message, tmp_path):
    (tmp_path / "features_71x10.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"features_71x10\.csv .*{message}"):
        make.drug_repurposing(tmp_path)


def test_commas_in_numbers_are_no_columns(tmp_path):
    file = tmp_path / "motor.csv"
    file.write_text(MOTOR + ",".join(["0,5"] * 12) + "\n")
    with pytest.raises(ValueError, match="has 12 columns by its header, and 24 in the row below"):
        make.electric_motor(jax.random.key(0), file, 2)


def test_a_table_may_begin_with_a_mark_of_its_encoding(tmp_path):
    rows = np.random.default_rng(0).uniform(1, 9, size=(4, 12))
    lines = [",".join(map(str, row)) for row in rows.tolist()]
    (tmp_path / "a.csv").write_text(MOTOR + "\n".join(lines), encoding="utf-8-sig")
    assert local_files.read_electric_motor(tmp_path / "a.csv")[0].shape == (4, 11)


@pytest.mark.parametrize("path", [None, 3, b"x", "a\0b", ""])
@pytest.mark.parametrize("read", PATHS)
def test_what_is_no_path_is_refused(read, path):
    with pytest.raises(ValueError, match=r"^path must be the name of a file, got "):
        read(path)
