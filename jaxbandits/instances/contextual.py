"""Contextual instances: labelled examples, of which a few are shown each round."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

import jax
import numpy as np
from jaxtyping import Float, Int

from ..feature_tables import check_arms, is_concrete, require
from ..parameters import Chance, chance, check, size
from ..precision import check_real, owned
from ..types import Rows, Table
from ..whole_numbers import EXACT_BELOW, are_whole
from .data.idx import Part, read_folder
from .options import Pair, checked

Replications: TypeAlias = Int[Table, "*R"] | int
Number: TypeAlias = Float[Table, ""] | np.floating
Averages: TypeAlias = Float[np.ndarray, "*R"]


class RegretRuns(Protocol):
    """What `average_reward` needs of `Runs`."""

    pulls: np.ndarray
    rounds: np.ndarray
    regret: np.ndarray | None
    replication: np.ndarray


@dataclasses.dataclass(frozen=True)
class Labelled:
    """Labelled examples: each round shows `shown` of them, drawn uniformly with replacement.

    The reward of the example that is chosen is 1 with probability `high` if its label is the
    target, else with probability `low`. Arms are the positions 0, 1, ... among the examples shown.
    The regret of a choice is the difference to the best example shown. Replications share the
    table of features, whatever their targets.

    Attributes:
      features: `[N, f]` features of the examples, which a learner sees.
      labels: int `[N]`.
      classes: int `[C]` the labels that occur, in order.
      target: int `[]`, or None: replication r has target `classes[r % C]`, so that all classes
        are equally frequent.
      high, low: `[]` the two probabilities.
      shown: K (static).

    >>> problem = labelled([[0.0], [1.0], [2.0]], [0, 1, 1], target=1, shown=2)
    >>> problem.classes, problem.shown
    (array([0, 1]), 2)
    """

    features: Float[Table, "N f"]
    labels: Int[Table, " N"]
    classes: Int[Table, " C"]
    target: Int[Table, ""] | np.integer | None
    high: Number
    low: Number
    shown: int

    @property
    def arms(self) -> Float[Table, "N f"]:
        """The features, with which an algorithm's constructor is called."""
        return self.features

    def target_of(self, replication: Replications) -> Int[Table, "*R"]:
        """The target class of one or several replications."""
        if self.target is not None:
            return np.broadcast_to(self.target, np.shape(replication))
        return self.classes[np.asarray(replication) % len(self.classes)]

    def best_average(self, replication: Replications = 0) -> Averages:
        """Expected reward of a round for the best example shown, in one or several replications.

        With p the share of the target class it is `high - (high - low) (1 - p)^K`: only where
        none of the K examples shown is of that class is `low` the best.
        """
        return self.high - (self.high - self.low) * (1.0 - self._share(replication)) ** self.shown

    def random_average(self, replication: Replications = 0) -> Averages:
        """Expected reward of a round for a random choice, in one or several replications."""
        return self.low + (self.high - self.low) * self._share(replication)

    def average_reward(self, runs: RegretRuns) -> Float[np.ndarray, "R T"]:
        """Expected reward of a round, on average up to each of `runs.rounds`.

        It is the mean reward of the best choice less the regret. Like the average of the rewards,
        `runs.info["reward"]` over the number of rounds, it is unbiased, and with the paper's
        probabilities its variance is smaller.

        Raises:
          ValueError: runs without a regret, or that ended before the last of those rounds.
        """
        require(runs.regret is not None, "runs must have a regret: give simulate a horizon")
        least = int(runs.pulls.min(initial=runs.rounds[-1]))
        require(
            least == runs.rounds[-1],
            f"runs must go on to round {runs.rounds[-1]}, got one that ended after {least}",
        )
        return self.best_average(runs.replication)[:, None] - runs.regret / runs.rounds

    def _share(self, replication):
        target = np.asarray(self.target_of(replication))
        return (self.labels == target[..., None]).mean(-1)


jax.tree_util.register_dataclass(
    Labelled,
    data_fields=["features", "labels", "classes", "target", "high", "low"],
    meta_fields=["shown"],
)


@checked
def labelled(
    features: Rows,
    labels: Rows,
    *,
    target: int | None = None,
    shown: Pair = 10,
    high: Chance = 0.75,
    low: Chance = 0.25,
) -> Labelled:
    """Labelled examples as a contextual instance (Kveton et al., 2020, Section 5.2).

    Args:
      features: `[N, f]`; float32 and float64 keep their precision.
      labels: `[N]` whole numbers.
      target: the class with reward probability `high`; None: each in turn, by replication.
      shown: K, the number of examples shown in a round.
      high, low: probability of a reward for an example of the class, and for any other; 1 and 0
        for rewards without noise.
    Returns:
      A `Labelled`, for `simulate(..., horizon=...)` and algorithms that take a context.
    Raises:
      ValueError: wrong shapes, NaN, features that are traced, labels that are no whole
        numbers, a target that does not occur, a probability outside [0, 1], `high` not above `low`.

    >>> instance = labelled([[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1], target=1, shown=2)
    >>> round(float(instance.best_average()), 4), float(instance.random_average())
    (0.4688, 0.375)
    """
    known = is_concrete(features) and is_concrete(labels)
    require(
        known, "features and labels must be known: all replications share them, no key draws them"
    )
    check_real("features", features)
    features = _floats(features)
    check_arms(features)
    check_real("labels", labels)
    labels = np.asarray(labels)
    fits = labels.shape == features.shape[:1]
    require(fits, f"labels must have shape {features.shape[:1]}, got {labels.shape}")
    require(_whole(labels), f"labels must be whole numbers, got an array of {labels.dtype}")
    require(low < high, f"high must be above low, got {high} and {low}")
    classes = np.unique(labels).astype(np.int64)
    occurs = target is None or (np.ndim(target) == 0 and target in classes)
    require(occurs, f"target must be one of the labels {classes.tolist()}", target)
    return Labelled(
        features,
        labels.astype(np.int64),
        classes,
        None if target is None else np.int64(target),
        np.float64(high),
        np.float64(low),
        int(shown),
    )


def entered(problem: Labelled) -> Labelled:
    """The problem with all fields checked, for `dataclasses.replace` checks none.

    Raises:
      ValueError: names the field, what it was and what is allowed.
    """
    check_real("features", problem.features)
    check_arms(problem.features)
    check_real("labels", problem.labels)
    features, labels = map(np.asarray, (problem.features, problem.labels))
    fits = labels.shape == features.shape[:1]
    require(fits, f"labels must have shape {features.shape[:1]}, got {labels.shape}")
    require(_whole(labels), f"labels must be whole numbers, got an array of {labels.dtype}")
    classes = np.unique(labels)
    same = np.array_equal(classes, problem.classes)
    require(same, f"classes must be the labels that occur, {classes.tolist()}, got others")
    target = problem.target
    occurs = target is None or (np.ndim(target) == 0 and target in classes)
    require(occurs, f"target must be one of the labels {classes.tolist()}", target)
    check("shown", size(2), problem.shown)
    for name, value in (("high", problem.high), ("low", problem.low)):
        check(name, chance, value)
    fine = features.dtype in (np.float32, np.float64) and labels.dtype == np.int64
    if fine:
        return problem
    return dataclasses.replace(problem, features=_floats(features), labels=labels.astype(np.int64))


def _whole(labels):
    exact = labels.dtype.kind != "f" or (np.abs(labels) < EXACT_BELOW).all()
    return bool(exact) and are_whole(labels)


def _floats(features):
    table = np.asarray(features)
    return owned(table, np.float32 if table.dtype == np.float32 else np.float64)


@checked
def images(
    path: Path | str,
    *,
    target: int | None = None,
    part: Part | None = None,
    checksum: bool = True,
    shown: Pair = 10,
    high: Chance = 0.75,
    low: Chance = 0.25,
) -> Labelled:
    """Images from a local folder, such as MNIST or Fashion-MNIST (Kveton et al., 2020).

    Args:
      path: a folder with `train-images-idx3-ubyte.gz` and `train-labels-idx1-ubyte.gz`, or with
        the `t10k` ones, compressed or not. Nothing is downloaded.
      target, shown, high, low: as of `labelled`.
      part: "train" or "t10k"; by default the training images where the folder has them.
      checksum: whether the files must be those of MNIST or Fashion-MNIST; False for other images
        in the same format.
    Returns:
      A `Labelled`; features are float32, pixels divided by 255.
    Raises:
      ValueError: as of `labelled`, and for a missing, damaged or unknown file.

    >>> import struct, tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> pixels = struct.pack(">4i", 2051, 2, 2, 2) + bytes(2 * 4)  # two images of 2 x 2
    >>> labels = struct.pack(">2i", 2049, 2) + bytes([3, 7])
    >>> _ = (folder / "train-images-idx3-ubyte").write_bytes(pixels)
    >>> _ = (folder / "train-labels-idx1-ubyte").write_bytes(labels)
    >>> images(folder, checksum=False).classes
    array([3, 7])
    """
    require(part in (None, "train", "t10k"), "part must be 'train' or 't10k'", part)
    found, labels = read_folder(path, part=part, checksum=checksum)
    pixels = found.reshape(len(found), -1).astype(np.float32) / np.float32(255)
    return labelled(pixels, labels, target=target, shown=shown, high=high, low=low)


@checked
def digits(
    *, target: int | None = None, shown: Pair = 10, high: Chance = 0.75, low: Chance = 0.25
) -> Labelled:
    """The 1,797 digits of 8 x 8 pixels in scikit-learn, a small stand-in for MNIST.

    Args:
      target, shown, high, low: as of `labelled`.
    Returns:
      A `Labelled`; features are float32 in [0, 1].
    Raises:
      ValueError: as of `labelled`, and where scikit-learn is not installed.

    >>> digits(target=3).features.shape
    (1797, 64)
    """
    return labelled(*_digits(), target=target, shown=shown, high=high, low=low)


@functools.cache
def _digits():
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise ValueError("digits needs scikit-learn: pip install scikit-learn") from None
    pixels, labels = load_digits(return_X_y=True)
    return pixels.astype(np.float32) / np.float32(16), labels


CONSTRUCTORS: tuple[Callable[..., Labelled], ...] = (labelled, images, digits)
