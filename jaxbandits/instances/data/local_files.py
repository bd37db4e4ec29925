"""Instances from local files. Nothing is downloaded: errors name the source of a missing file."""

import csv
import dataclasses
import functools
import io
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...feature_tables import check_entries
from ...kernels import sampling
from ...messages import reason
from ...parameters import Normal, choice, require
from ...precision import double, is_traced
from ...system.data_files import Unreadable, given_path, read_text
from ...types import Key
from ..instance import Instance, recorded, tabular
from ..options import Pair, checked

# Columns of curb weight, width, engine size, city and highway miles per gallon, and price.
CAR_FEATURES: tuple[int, ...] = (13, 11, 16, 23, 24)
CAR_PRICE: int = 25
CAR_COLUMNS: int = 26
CAR_FILE: str = "imports-85.data"
MOTOR_FILES: tuple[str, ...] = ("measures_v2.csv", "pmsm_temperature_data.csv")  # the later first
MISSING: tuple[str, ...] = ("drop", "impute")
SENSORS: tuple[str, ...] = (
    *("ambient", "coolant", "u_d", "u_q", "motor_speed", "torque", "i_d", "i_q", "pm"),
    *("stator_yoke", "stator_tooth", "stator_winding"),
)
MOTOR_SOURCE: str = "it is the Electric Motor Temperature data set (Paderborn, on Kaggle)"


Missing: TypeAlias = Annotated[Literal["drop", "impute"], choice(*MISSING)]
Sensor: TypeAlias = Annotated[str, choice(*SENSORS)]
FeaturesAndValues: TypeAlias = tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]


def find_file(path: Path | str, name: str, source: str) -> Path:
    """The file `path`, or the file `name` in the folder `path`.

    Raises:
      ValueError: there is none; it names the `source` of the file.
    """
    path = given_path(path)
    file = path / name if path.is_dir() else path
    require(file.is_file(), f"path: no file {file}; {source}")
    return file


def _rows_of(file):
    """The rows of a csv file that are not empty, as text."""
    try:
        return [row for row in csv.reader(io.StringIO(read_text(file), newline="")) if row]
    except (Unreadable, csv.Error) as error:
        raise ValueError(f"path: {file} cannot be read: {error}") from None


def _unit_range(table):
    """Each column rescaled to [0, 1]."""
    low, high = table.min(0), table.max(0)
    return (table - low) / (high - low)


@checked
def read_automobile(path: Path | str, *, missing: Missing = "drop") -> FeaturesAndValues:
    """Features `[n, 5]` and prices `[n]` of the cars, each rescaled to [0, 1].

    Args:
      path: `imports-85.data` of the UCI Automobile data set, or the folder that holds it.
      missing: "drop" the cars without a price, or "impute" the mean price.
    Returns:
      Curb weight, width, engine size, city and highway miles per gallon; and the price.
    Raises:
      ValueError: the file is missing, or a row does not look like that data set.
    """
    file = find_file(path, CAR_FILE, "it is the UCI Automobile data set (1987)")
    rows = _rows_of(file)
    wrong = next((i for i, row in enumerate(rows) if len(row) != CAR_COLUMNS), None)
    require(wrong is None, f"path: {file} row {wrong} does not have {CAR_COLUMNS} columns")
    columns = [*CAR_FEATURES, CAR_PRICE]
    unknown = lambda c, cell: c == CAR_PRICE and cell.strip() == "?"  # noqa: E731
    numbers = [["nan" if unknown(c, row[c]) else row[c] for c in columns] for row in rows]
    try:
        table = np.array(numbers, dtype=float).reshape(-1, len(columns))
    except ValueError as error:
        raise ValueError(f"path: {file} holds a value that is no number: {reason(error)}") from None
    priced = np.isfinite(table[:, -1])
    require(priced.any(), f"path: {file} is too small")
    # Some copies of the file have 0 for what is missing.
    above = (table[priced, -1] > 0).all()
    require(above, f"path: {file} has a price that is not above 0; a missing one must be '?'")
    if missing == "drop":
        table = table[priced]
    table[:, -1] = np.where(np.isfinite(table[:, -1]), table[:, -1], np.nanmean(table[:, -1]))
    _check_varies(table, file)
    table = _unit_range(table)
    return table[:, :-1], table[:, -1]


def _check_varies(table, file):
    check_entries(f"path: {file} must hold finite numbers", table)
    fine = len(table) >= 2 and (np.ptp(table, axis=0) > 0).all()
    require(fine, f"path: {file} is too small, or a column of it has only one value")


@checked
def automobile(
    key: Key,
    path: Path | str,
    num_arms: Pair,
    *,
    noise_var: Normal = 0.1,
    missing: Missing = "drop",
) -> Instance:
    """Cars of the UCI data set as arms: mean reward the rescaled price (Azizi et al., 2022).

    The arms are drawn without replacement for each key; the means are not linear in the
    five features.

    Args:
      key: a JAX random key.
      path: `imports-85.data`, or the folder that holds it.
      num_arms: K.
      noise_var: variance of a reward.
      missing: "drop" the cars without a price, or "impute" the mean price, as in the published
        program.
    Raises:
      ValueError: a missing or malformed file, or more arms than cars.

    >>> import jax
    >>> import numpy as np
    >>> from pathlib import Path
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "imports-85.data"  # 26 columns, the last the price
    >>> np.savetxt(path, np.random.default_rng(0).uniform(1, 9, size=(8, 26)), delimiter=",")
    >>> automobile(jax.random.key(0), path, 5).arms.shape
    (5, 5)
    """
    features, prices = read_automobile(path, missing=missing)
    return _draw_rows(key, features, prices, num_arms, noise_var)


@checked
def read_electric_motor(path: Path | str, *, target: Sensor = "pm") -> FeaturesAndValues:
    """Features `[n, 11]` and the target `[n]` of all records, each rescaled to [0, 1].

    Args:
      path: a csv with a header that names the sensors, or the folder that holds
        `pmsm_temperature_data.csv` or `measures_v2.csv`; columns are found by their names.
      target: which sensor is the target; the others are the features, in the order ambient,
        coolant, u_d, u_q, motor_speed, torque, i_d, i_q, pm, stator_yoke, stator_tooth,
        stator_winding.
    Raises:
      ValueError: the file is missing, lacks a sensor, or holds a value that is no number.
    """
    newer, older = MOTOR_FILES
    newer = given_path(path) / newer
    file = find_file(newer if newer.is_file() else path, older, MOTOR_SOURCE)
    table = _motor_table(str(file.resolve()), file.stat().st_mtime_ns, file.stat().st_size)
    column = SENSORS.index(target)
    return np.delete(table, column, axis=1), table[:, column]


@functools.lru_cache(maxsize=1)  # a million rows take seconds to read
def _motor_table(file, changed, size):
    try:
        with open(file, encoding="utf-8-sig") as stream:
            header = [name.strip() for name in stream.readline().split(",")]
            first = len(stream.readline().split(","))
    except (OSError, UnicodeDecodeError):
        raise ValueError(f"path: {file} cannot be read as text in UTF-8") from None
    missing = next((name for name in SENSORS if name not in header), None)
    require(missing is None, f"path: {file} has no column {missing!r}")
    # With commas in the numbers, say, columns would be those of something else.
    message = f"path: {file} has {len(header)} columns by its header, and {first} in the row below"
    require(first == len(header), message)
    columns = [header.index(name) for name in SENSORS]
    try:
        table = np.loadtxt(file, delimiter=",", skiprows=1, usecols=columns, ndmin=2)
    except ValueError as error:
        raise ValueError(f"path: {file} holds a value that is no number: {reason(error)}") from None
    _check_varies(table, file)
    table = _unit_range(table)
    table.setflags(write=False)
    return table


@checked
def electric_motor(
    key: Key,
    path: Path | str,
    num_arms: Pair,
    *,
    noise_var: Normal = 0.1,
    target: Sensor = "pm",
) -> Instance:
    """Records of a motor's sensors as arms: mean reward a temperature (Azizi et al., 2022).

    The arms are drawn without replacement for each key; the means are not linear in the
    eleven other sensors.

    Args:
      key: a JAX random key.
      path: `pmsm_temperature_data.csv` or `measures_v2.csv`, or the folder that holds one.
      num_arms: K.
      noise_var: variance of a reward.
      target: the sensor whose rescaled value is the mean reward. The paper says "engine
        temperature", read here as "pm", that of the magnets; its program takes "motor_speed".
    Raises:
      ValueError: a missing or malformed file, or more arms than records.

    >>> import jax
    >>> import numpy as np
    >>> import pandas as pd
    >>> from pathlib import Path
    >>> import tempfile
    >>> table = np.random.default_rng(0).normal(size=(20, 12))
    >>> path = Path(tempfile.mkdtemp()) / "measures_v2.csv"
    >>> pd.DataFrame(table, columns=SENSORS).to_csv(path, index=False)
    >>> electric_motor(jax.random.key(0), path, 5).arms.shape
    (5, 11)
    """
    features, values = read_electric_motor(path, target=target)
    return _draw_rows(key, features, values, num_arms, noise_var)


_distinct = jax.jit(sampling.distinct, static_argnums=(1, 2))  # else each call compiles its loop


@double
def _draw_rows(key, features, means, num_arms, noise_var):
    most = len(means)
    require(num_arms <= most, f"num_arms must be at most {most}, got {num_arms}")
    rows = _distinct(key, most, num_arms)
    as_array = jnp.asarray if is_traced(rows) else np.asarray
    features, means, rows = (as_array(x) for x in (features, means, rows))
    return tabular(features[rows], means[rows], noise_var=noise_var)


@checked
def drug_repurposing(path: Path | str, *, noise_var: Normal = 0.25) -> Instance:
    """Ten drugs scored on eighteen patients (Reda et al., 2021); a pull draws a patient.

    The means are exactly linear in the 71 features, so `theta` is the solution of least norm.

    Args:
      path: a folder with `features_71x10.csv` (genes by drugs) and `rewards_named.csv`
        (patients by drugs), headers with the drugs' names.
      noise_var: the variance given to the learner; that of the recorded rewards is about a hundred
        times smaller.
    Raises:
      ValueError: a missing file, or tables whose drugs differ.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> folder = Path(tempfile.mkdtemp())
    >>> genes = pd.DataFrame({"drug a": [0.5, 0.2], "drug b": [0.1, 0.9]}, index=["g1", "g2"])
    >>> genes.to_csv(folder / "features_71x10.csv")
    >>> patients = pd.DataFrame({"drug a": [0.6, 0.8], "drug b": [0.2, 0.4]})
    >>> patients.to_csv(folder / "rewards_named.csv", index=False)
    >>> drug_repurposing(folder).means.round(2)
    array([0.7, 0.3])
    """
    source = "it is part of the data of Reda, Kaufmann and Delahaye-Duriez (2021)"
    names, features = named_table(find_file(path, "features_71x10.csv", source), labelled=True)
    reward_names, rewards = named_table(
        find_file(path, "rewards_named.csv", source), labelled=False
    )
    require(names == reward_names, "path: the two tables do not name the same drugs")
    instance = recorded(features.T, rewards.T, noise_var=noise_var)
    theta, *_ = np.linalg.lstsq(features.T, instance.means)
    norm = np.asarray(np.linalg.norm(theta))
    return dataclasses.replace(instance, theta=theta, theta_norm=norm)


def named_table(
    file: Path, *, labelled: bool
) -> tuple[list[str], Float[np.ndarray, "rows columns"]]:
    """Header and numbers of a csv file; `labelled`: the first column holds row names."""
    header, *rows = [row[labelled:] for row in _rows_of(file)] or [[]]
    require(
        header and rows,
        f"path: {file} is not a table of numbers: it has no columns, or no row below their names",
    )
    wrong = next((i for i, row in enumerate(rows) if len(row) != len(header)), None)
    require(wrong is None, f"path: {file} row {wrong} does not have {len(header)} columns")
    try:
        return header, np.array(rows, dtype=float)
    except ValueError as error:
        raise ValueError(f"path: {file} is not a table of numbers: {reason(error)}") from None
