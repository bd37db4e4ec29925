"""Labelled examples of which a few are shown each round: the contextual problems."""

import dataclasses
import functools

import jax
import numpy as np

from ..feature_tables import check_arms, check_real, is_concrete, require
from ..parameters import chance, check, size
from .data.idx import read_folder


@dataclasses.dataclass(frozen=True)
class Labelled:
    """Labelled examples: each round shows `shown` of them, drawn uniformly with replacement.

    The reward of the example that is chosen is 1 with probability `high` if its label is the
    target, else with probability `low`. Arms are the places 0, 1, ... of what is shown. The
    regret of a choice is counted against the best example shown. Replications share the table
    of features, whatever their targets.

    Attributes:
      features: `[N, f]` what a learner sees of the examples.
      labels: int `[N]`.
      classes: int `[C]` the labels that occur, in order.
      target: int `[]`, or None: replication r has target `classes[r % C]`, so that the classes
        come equally often.
      high, low: `[]` the two probabilities.
      shown: K (static).
    """

    features: jax.Array
    labels: jax.Array
    classes: jax.Array
    target: jax.Array | None
    high: jax.Array
    low: jax.Array
    shown: int

    @property
    def arms(self):
        """The table a constructor is called with."""
        return self.features

    def target_of(self, replication):
        """The target class of replication r, or of each of an array of them."""
        if self.target is not None:
            return np.broadcast_to(self.target, np.shape(replication))
        return self.classes[np.asarray(replication) % len(self.classes)]

    def best_average(self, replication=0):
        """Expected reward a round of who knows the labels, in replication r (or an array).

        With p the share of the target class it is `high - (high - low) (1 - p)^K`: only where
        none of the K examples shown is of that class is `low` the best.
        """
        return self.high - (self.high - self.low) * (1.0 - self._share(replication)) ** self.shown

    def random_average(self, replication=0):
        """Expected reward a round of a uniformly random choice, in replication r (or an array)."""
        return self.low + (self.high - self.low) * self._share(replication)

    def average_reward(self, runs):
        """Expected reward a round up to each of `runs.rounds`, float `[R, T]`.

        The mean of what the best choice gets, less the regret: as the average of the rewards
        themselves it is unbiased, and with the paper's probabilities it varies less. Those are
        `runs.info["reward"]` over the number of rounds.

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


def labelled(features, labels, *, target=None, shown=10, high=0.75, low=0.25):
    """Labelled examples as a contextual problem (Kveton et al., 2020, Section 5.2).

    Args:
      features: `[N, f]`; float32 and float64 stay what they are.
      labels: `[N]` whole numbers.
      target: the class that pays; None: each in turn, by replication.
      shown: K, how many examples a round shows.
      high, low: probability of a reward for an example of the class, and for any other; 1 and 0
        for rewards without noise.
    Returns:
      A `Labelled`, for `simulate(..., horizon=...)` and algorithms that take a context.
    Raises:
      ValueError: wrong shapes, NaN, features that are drawn from a key, labels that are no whole
        numbers, a target that does not occur, a probability outside [0, 1], `high` not above `low`.

    >>> world = labelled([[0.0], [1.0], [2.0], [3.0]], [0, 0, 0, 1], target=1, shown=2)
    >>> round(float(world.best_average()), 4), float(world.random_average())
    (0.4688, 0.375)
    """
    known = is_concrete(features) and is_concrete(labels)
    require(
        known, "features and labels must be known: all replications share them, no key draws them"
    )
    check_real("features", features)
    features = _floats(features)
    check_arms(features)
    labels = np.asarray(labels)
    fits = labels.shape == features.shape[:1]
    require(fits, f"labels must have shape {features.shape[:1]}, got {labels.shape}")
    require(_whole(labels), f"labels must be whole numbers, got an array of {labels.dtype}")
    check("shown", size(2), shown)
    for name, value in (("high", high), ("low", low)):
        check(name, chance, value)
    require(low < high, f"high must be above low, got {high} and {low}")
    classes = np.unique(labels).astype(np.int64)
    known = target is None or (np.ndim(target) == 0 and target in classes)
    require(known, f"target must be one of the labels {classes.tolist()}, got {target!r}")
    return Labelled(
        features,
        labels.astype(np.int64),
        classes,
        None if target is None else np.int64(target),
        np.float64(high),
        np.float64(low),
        int(shown),
    )


def _whole(labels):
    if labels.dtype.kind != "f":
        return labels.dtype.kind in "iub"
    return bool((np.abs(labels) < 2.0**53).all() and (labels % 1 == 0).all())


def _floats(features):
    table = np.asarray(features)
    return table if table.dtype in (np.float32, np.float64) else table.astype(np.float64)


def images(path, *, target=None, part=None, checksum=True, shown=10, high=0.75, low=0.25):
    """Images from a local folder, such as MNIST or Fashion-MNIST (Kveton et al., 2020).

    Args:
      path: a folder with `train-images-idx3-ubyte.gz` and `train-labels-idx1-ubyte.gz`, or with
        the `t10k` ones; not compressed they do as well. Nothing is downloaded.
      target, shown, high, low: as of `labelled`.
      part: "train" or "t10k"; by default the training images where the folder has them.
      checksum: whether they must hold what those of MNIST or Fashion-MNIST do; False for other
        images in such files.
    Returns:
      A `Labelled`; features are float32, pixels divided by 255.
    Raises:
      ValueError: as of `labelled`, and for a missing, damaged or unknown file.
    """
    require(part in (None, "train", "t10k"), f"part must be 'train' or 't10k', got {part!r}")
    found, labels = read_folder(path, part=part, checksum=checksum)
    pixels = found.reshape(len(found), -1).astype(np.float32) / np.float32(255)
    return labelled(pixels, labels, target=target, shown=shown, high=high, low=low)


def digits(*, target=None, shown=10, high=0.75, low=0.25):
    """The 1,797 digits of 8 x 8 pixels that scikit-learn brings along, a small stand-in for MNIST.

    Args:
      target, shown, high, low: as of `labelled`.
    Returns:
      A `Labelled`; features are float32 in [0, 1].
    Raises:
      ValueError: as of `labelled`, and where scikit-learn is not installed.
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


CONSTRUCTORS = (labelled, images, digits)
