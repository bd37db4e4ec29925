"""A day of the Yahoo! click log: a linear model of its clicks, and a sample of its rows.

A line holds the time, the article shown, whether it was clicked, the features of the user and the
pool of articles with theirs:

    1241160900 109513 0 |user 2:0.1 .. 6:0.2 1:1.0 |109498 2:0.3 .. 1:1.0 |109513 2:0.4 .. 1:1.0
"""

import functools
import gzip
import itertools
import re
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ...messages import reason
from ...parameters import require
from ...system.data_files import given_path

SIDE: int = 6  # features of a user and of an article: a constant and five weights
BLOCK: int = 20_000  # rows that are read at a time
POOL: int = 10_000  # rows kept as candidates
RIDGE: float = 0.01
NAMES: tuple[str, ...] = ("ydata-fp-td-clicks-v1_0.20090501", "ydata-fp-td-clicks-v1_0.20090501.gz")
# Time, article shown and click, the user's features, and those of the article with that number.
LINE: re.Pattern[bytes] = re.compile(rb"\S+ (\S+) ([01]) \|user ([^|]*)\|(?:[^|]*\|)*?\1 ([^|]*)")
SOURCE: str = (
    "it is 1 May 2009 of R6A, Yahoo! Front Page Today Module User Click Log, which Yahoo! Webscope"
    " licenses to researchers (webscope.sandbox.yahoo.com)"
)


class ClickLog(NamedTuple):
    """A model and a sample of a log.

    Attributes:
      theta: `[36]` ridge estimate of the reward in the product features.
      features: `[P, 36]` a uniform sample of rows and, first, the one of the largest mean.
      rows, left_out: the number of rows in the estimate, and of rows without features.
    """

    theta: Float[np.ndarray, " 36"]
    features: Float[np.ndarray, "P 36"]
    rows: int
    left_out: int


def read_click_log(path: Path | str, *, signed: bool = False) -> ClickLog:
    """The `ClickLog` of a file, read once in a process.

    A row's feature is the outer product of the user's and the shown article's features in the
    order 1 .. 6, 1 being the constant; theta is `(X^T X + 0.01 I)^-1 X^T y`. Features that a row
    does not list are 0, numbers above 6 are ignored, and rows without both constants are left
    out. The file is read twice, 20,000 rows at a time: for theta, then for the candidates, rows
    whose mean `x^T theta` is possible for the rewards. The sample is the same in every call.

    Args:
      path: the log as text or gzip, or the folder that holds it.
      signed: whether y is 1 for a click and -1 for none, instead of 1 and 0.
    Raises:
      ValueError: the file is missing, damaged, or has a line of another format.
    """
    path = given_path(path)
    files = [path / name for name in NAMES] if path.is_dir() else [path]
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        raise ValueError(f"path: no file {files[0]}; {SOURCE}")
    facts = file.stat()
    return _read(file.resolve(), (facts.st_mtime_ns, facts.st_size), signed)


@functools.lru_cache(maxsize=2)
def _read(file, stamp, signed):
    theta, rows, left_out = _fit(file, signed)
    require(rows > 0, f"path: {file} has no row with features")
    return ClickLog(theta, _sample(file, theta, -1.0 if signed else 0.0), rows, left_out)


def _fit(file, signed):
    gram, moment, rows, lines = RIDGE * np.eye(SIDE**2), np.zeros(SIDE**2), 0, 0
    for features, clicks, num_lines in _blocks(file):
        gram += features.T @ features
        moment += features.T @ (2.0 * clicks - 1.0 if signed else clicks)
        rows, lines = rows + len(features), lines + num_lines
    return np.linalg.solve(gram, moment), rows, lines - rows


def _sample(file, theta, least):
    """The row of the largest mean, and a uniform sample of `POOL` rows.

    Each row gets a random number, and the rows with the least numbers are kept.
    """
    draw = np.random.default_rng(0).random
    pool_numbers, pool = np.empty(0), np.empty((0, SIDE**2))
    best = -np.inf, pool
    for features, _, _ in _blocks(file):
        numbers, means = draw(len(features)), features @ theta
        possible = (means >= least) & (means <= 1.0)
        features, numbers, means = features[possible], numbers[possible], means[possible]
        if means.max(initial=-np.inf) > best[0]:
            best = means.max(), features[[means.argmax()]]
        pool_numbers = np.concatenate([pool_numbers, numbers])
        pool = np.concatenate([pool, features])
        kept = np.sort(np.argsort(pool_numbers)[:POOL])
        pool_numbers, pool = pool_numbers[kept], pool[kept]
    return np.concatenate([best[1], pool])


def _blocks(file):
    """`(features [n, 36], clicks [n], number of lines)` of the rows that have features."""
    try:
        with file.open("rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
        with gzip.open(file) if zipped else file.open("rb") as stream:
            articles, start = {}, 1
            while lines := list(itertools.islice(stream, BLOCK)):
                yield _parsed(lines, start, articles, file)
                start += len(lines)
    except (EOFError, zlib.error, OSError) as error:
        raise ValueError(f"path: {file} cannot be read: {reason(error)}") from None


def _parsed(lines, start, articles, file):
    rows = []
    for number, line in enumerate(lines, start):
        try:
            rows.append(_row(line, articles))
        except ValueError as error:
            raise ValueError(
                f"path: {file} line {number} is not of the log: {reason(error)}"
            ) from None
    users, shown, clicks = map(np.array, zip(*rows, strict=True))
    features = np.einsum("ni,nj->nij", users, shown).reshape(-1, SIDE**2)
    broken = ~np.isfinite(features).all(1)
    number = start + broken.argmax()
    where = f"path: {file} line {number}"
    require(not broken.any(), f"{where} is not of the log: it holds NaN or infinity")
    has_features = features[:, 0] > 0
    return features[has_features], clicks[has_features], len(lines)


def _row(line, articles):
    """Features of the user and of the article shown, and 1.0 for a click."""
    found = LINE.match(line)
    if found is None:
        raise ValueError("it needs a time, an article, 0 or 1, a user, and the article in the pool")
    _, click, user, article = found.groups()
    if article not in articles:  # a day repeats some fifty
        articles[article] = _vector(article)
    return _vector(user), articles[article], float(click)


def _vector(text):
    vector = [0.0] * SIDE
    for pair in text.split():
        number, value = pair.split(b":")
        if 1 <= int(number) <= SIDE:
            vector[int(number) - 1] = float(value)
    return vector
