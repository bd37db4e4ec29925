"""Problems from local files. Nothing is downloaded: a missing file says where to get it."""

import csv
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from ..options import count, require
from ..precision import double
from .base import Instance, check_option, recorded, tabular

# Columns of curb weight, width, engine size, city and highway miles per gallon, and price.
CAR_FEATURES, CAR_PRICE, CAR_COLUMNS = (13, 11, 16, 23, 24), 25, 26


def find_file(path, name, source):
    """The file itself, or `name` inside a folder."""
    path = Path(path)
    file = path / name if path.is_dir() else path
    require(file.is_file(), f"path: no file {file}; {source}")
    return file


def _unit_range(table):
    """Each column moved to [0, 1]."""
    low, high = table.min(0), table.max(0)
    return (table - low) / (high - low)


def read_automobile(path):
    """Features `[n, 5]` and prices `[n]` of the cars with a price, each rescaled to [0, 1].

    Args:
      path: `imports-85.data` of the UCI Automobile data set, or the folder that holds it.
    Returns:
      Curb weight, width, engine size, city and highway miles per gallon; and the price.
    Raises:
      ValueError: the file is missing, or a row does not look like that data set.
    """
    file = find_file(path, "imports-85.data", "it is the UCI Automobile data set (1987)")
    with file.open(newline="") as stream:
        rows = [row for row in csv.reader(stream) if row]
    wrong = next((i for i, row in enumerate(rows) if len(row) != CAR_COLUMNS), None)
    require(wrong is None, f"path: {file} row {wrong} does not have {CAR_COLUMNS} columns")
    priced = [row for row in rows if row[CAR_PRICE].strip() != "?"]
    columns = [*CAR_FEATURES, CAR_PRICE]
    try:
        table = np.array([[float(row[c]) for c in columns] for row in priced])
    except ValueError as error:
        raise ValueError(f"path: {file} holds a value that is no number: {error}") from None
    require(len(table) >= 2 and (np.ptp(table, axis=0) > 0).all(), f"path: {file} is too small")
    table = _unit_range(table)
    return table[:, :-1], table[:, -1]


def automobile(key, path, num_arms, *, noise_var=0.1):
    """Cars of the UCI data set as arms: mean reward the rescaled price (Azizi et al., 2022).

    The arms are drawn without replacement, afresh for each key; the means are not linear in the
    five features. Cars without a price are left out.

    Args:
      key: a JAX random key.
      path: `imports-85.data`, or the folder that holds it.
      num_arms: K.
      noise_var: variance of a reward.
    Raises:
      ValueError: a missing or malformed file, or more arms than cars.
    """
    check_option(count(2), num_arms=num_arms)
    features, prices = read_automobile(path)
    require(num_arms <= len(prices), f"num_arms must be at most {len(prices)}, got {num_arms}")
    return _draw_rows(key, features, prices, num_arms, noise_var)


@double
def _draw_rows(key, features, means, num_arms, noise_var):
    rows = jax.random.choice(key, len(means), (num_arms,), replace=False)
    features, means = jnp.asarray(features), jnp.asarray(means)
    return tabular(features[rows], means[rows], noise_var=noise_var)


def drug_repurposing(path, *, noise_var=0.25):
    """Ten drugs scored on eighteen patients (Reda et al., 2021); a pull draws a patient.

    The means are exactly linear in the 71 features, so `theta` is the solution of least norm.

    Args:
      path: a folder with `features_71x10.csv` (genes by drugs) and `rewards_named.csv`
        (patients by drugs), headers with the drugs' names.
      noise_var: what the learner is told; the recorded rewards vary about a hundred times less.
    Raises:
      ValueError: a missing file, or tables whose drugs differ.
    """
    source = "it is part of the data of Reda, Kaufmann and Delahaye-Duriez (2021)"
    names, features = named_table(find_file(path, "features_71x10.csv", source), labelled=True)
    reward_names, rewards = named_table(
        find_file(path, "rewards_named.csv", source), labelled=False
    )
    require(names == reward_names, "path: the two tables do not name the same drugs")
    instance = recorded(features.T, rewards.T, noise_var=noise_var)
    theta, *_ = np.linalg.lstsq(features.T, instance.means)
    return Instance(
        **{**vars(instance), "theta": theta, "theta_norm": np.asarray(np.linalg.norm(theta))}
    )


def named_table(file, *, labelled):
    """Header and numbers of a csv; `labelled`: the first column holds row names."""
    with file.open(newline="") as stream:
        header, *rows = [row[labelled:] for row in csv.reader(stream) if row]
    try:
        return header, np.array(rows, dtype=float)
    except ValueError as error:
        raise ValueError(f"path: {file} is not a table of numbers: {error}") from None
