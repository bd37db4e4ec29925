"""Labelled examples: IDX files written here, real ones if available, and the bundled digits."""

import gzip
import hashlib
import os
import struct
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.instances.data import idx

NAMES = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
PIXELS = np.random.default_rng(0).integers(0, 256, (12, 3, 5), dtype=np.uint8)
LABELS = np.arange(12, dtype=np.uint8) % 4


def images_file(pixels):
    return struct.pack(">4I", 2051, *pixels.shape) + pixels.tobytes()


def labels_file(labels):
    return struct.pack(">2I", 2049, len(labels)) + labels.tobytes()


def write(folder, images=None, labels=None, part="t10k", end=""):
    """Write two files with these bytes, compressed if `end` is ".gz"; returns the folder."""
    for name, data in zip(NAMES, (images, labels), strict=True):
        name = name.replace("t10k", part) + end
        pack = gzip.compress if end else bytes
        (folder / name).write_bytes(pack(data))
    return folder


@pytest.mark.parametrize("end", ["", ".gz"])
def test_pixels_and_labels_are_read(end, tmp_path):
    write(tmp_path, images_file(PIXELS), labels_file(LABELS), end=end)
    np.testing.assert_array_equal(idx.read_idx(tmp_path / (NAMES[0] + end)), PIXELS)
    np.testing.assert_array_equal(idx.read_idx(tmp_path / (NAMES[1] + end)), LABELS)
    instance = jb.instances.images(tmp_path, checksum=False, shown=3)  # they are synthetic
    assert instance.features.dtype == np.float32
    np.testing.assert_allclose(instance.features, PIXELS.reshape(12, 15) / 255, rtol=1e-6)
    np.testing.assert_array_equal(instance.labels, LABELS)
    np.testing.assert_array_equal(instance.classes, [0, 1, 2, 3])


def test_training_images_come_first(tmp_path):
    write(tmp_path, images_file(PIXELS), labels_file(LABELS))
    write(tmp_path, images_file(PIXELS[:5]), labels_file(LABELS[:5]), part="train")
    assert len(jb.instances.images(tmp_path, checksum=False).labels) == 5
    assert len(jb.instances.images(tmp_path, part="t10k", checksum=False).labels) == 12
    with pytest.raises(ValueError, match="part must be 'train' or 't10k', got 'test'"):
        jb.instances.images(tmp_path, part="test")


GOOD = images_file(PIXELS), labels_file(LABELS)
BAD = {
    "another magic": (b"\0\0\x08\x04" + GOOD[0][4:], GOOD[1], "no IDX file of images"),
    "nothing": (b"", GOOD[1], "no IDX file of images"),
    "half a header": (GOOD[0][:9], GOOD[1], "ends within its header"),
    "too short": (GOOD[0][:-1], GOOD[1], r"holds 179 bytes, its header says \(12, 3, 5\)"),
    "too long": (GOOD[0], GOOD[1] + b"\0", r"holds 13 bytes, its header says \(12,\)"),
    "no images": (images_file(PIXELS[:0]), GOOD[1], "is empty"),
    "too many": (struct.pack(">4I", 2051, *[2**32 - 1] * 3), GOOD[1], "holds 0 bytes"),
    "swapped": (GOOD[1], GOOD[0], "does not hold images"),
    "two labels": (GOOD[0], GOOD[0], "does not hold labels"),
    "a label missing": (GOOD[0], labels_file(LABELS[1:]), "has 12 images and 11 labels"),
    "damaged": (gzip.compress(GOOD[0])[:-20], GOOD[1], "is damaged"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_file_is_a_value_error(name, tmp_path):
    images, labels, message = BAD[name]
    write(tmp_path, images, labels)
    with pytest.raises(ValueError, match=f"path: .*{message}"):
        jb.instances.images(tmp_path)


def test_a_missing_file_says_what_to_get(tmp_path):
    with pytest.raises(ValueError, match=r"no IDX files in .*t10k-images-idx3-ubyte.gz and t10k"):
        jb.instances.images(tmp_path)
    with pytest.raises(ValueError, match="path: no file"):
        idx.read_idx(tmp_path / "nowhere")
    write(tmp_path, *GOOD)
    (tmp_path / NAMES[1]).unlink()
    with pytest.raises(ValueError, match=r"lacks t10k-labels-idx1-ubyte.gz; .*nothing is download"):
        jb.instances.images(tmp_path)


def test_one_of_two_training_files_alone_is_an_error(tmp_path):
    """An incomplete download must not silently give the test images."""
    write(tmp_path, *GOOD)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(GOOD[0]))
    with pytest.raises(ValueError, match=r"lacks train-labels-idx1-ubyte.gz"):
        jb.instances.images(tmp_path, checksum=False)


@pytest.mark.parametrize("end", ["", ".gz"])
def test_a_file_with_a_known_name_must_have_its_checksum(end, tmp_path):
    write(tmp_path, *GOOD, end=end)
    with pytest.raises(
        ValueError, match=r"is not that file of MNIST or Fashion-MNIST.*checksum=Fa"
    ):
        jb.instances.images(tmp_path)
    assert len(jb.instances.images(tmp_path, checksum=False).labels) == 12


def test_checksums_are_those_of_uncompressed_contents(monkeypatch, tmp_path):
    """With a table of checksums that knows the files written here."""
    known = {name: (hashlib.md5(data).hexdigest(),) for name, data in zip(NAMES, GOOD, strict=True)}
    monkeypatch.setattr(idx, "KNOWN", known)
    write(tmp_path, *GOOD)
    (tmp_path / f"{NAMES[0]}.gz").write_bytes(gzip.compress(GOOD[0], 1))
    assert len(jb.instances.images(tmp_path).labels) == 12


def test_the_real_images_have_a_known_checksum():
    folder = Path(os.environ.get("JAXBANDITS_DATA", "nowhere")) / "mnist"
    if not folder.is_dir():
        pytest.skip("JAXBANDITS_DATA does not lead to MNIST")
    instance = jb.instances.images(folder, part="t10k")
    assert instance.features.shape == (10_000, 784)
    assert instance.features.max() == 1.0
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    np.testing.assert_array_equal(np.bincount(instance.labels), counts)


def test_digits_have_pixels_from_0_to_1_and_ten_classes():
    instance = jb.instances.digits(target=3)
    assert instance.features.shape == (1797, 64)
    assert instance.features.dtype == np.float32
    assert (float(instance.features.min()), float(instance.features.max())) == (0.0, 1.0)
    np.testing.assert_array_equal(instance.classes, range(10))
    assert int(instance.target_of(5)) == 3


def test_digits_without_scikit_learn_name_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    jb.instances.contextual._digits.cache_clear()
    with pytest.raises(ValueError, match="digits needs scikit-learn: pip install"):
        jb.instances.digits()


def test_average_rewards_of_the_best_and_of_a_random_choice():
    """Against the distribution of one round, by enumeration."""
    labels = np.array([0, 1, 1, 2, 2])
    instance = jb.instances.labelled(np.eye(5), labels, shown=2, high=0.9, low=0.2)
    pairs = np.stack(np.meshgrid(labels, labels), -1).reshape(-1, 2)
    for replication in range(6):
        target = int(instance.target_of(replication))
        assert target == replication % 3
        means = np.where(pairs == target, 0.9, 0.2)
        assert np.isclose(instance.best_average(replication), means.max(1).mean())
        assert np.isclose(instance.random_average(replication), means.mean())
    assert instance.best_average(np.arange(6)).shape == (6,)


def test_the_reference_values_of_ten_equal_classes():
    instance = jb.instances.labelled(np.zeros((100, 1)), np.arange(100) % 10)
    assert round(float(instance.best_average()), 4) == 0.5757
    assert np.isclose(instance.random_average(), 0.30)


POINTS = np.zeros((4, 2))
WRONG = {
    "labels": ((POINTS, [0, 1]), {}, r"labels must have shape \(4,\), got \(2,\)"),
    "halves": ((POINTS, [0, 1, 0.5, 1]), {}, "labels must be whole numbers"),
    "words": ((POINTS, list("abcd")), {}, "labels must be real numbers, got text"),
    "no table": ((POINTS[0], [0, 1]), {}, r"arms must be a table \[K, d\]"),
    "a hole": ((POINTS * np.nan, [0, 1, 0, 1]), {}, "arms must be finite"),
    "target": ((POINTS, [0, 1, 0, 1]), {"target": 7}, r"target must be one of .*\[0, 1\], got 7"),
    "one shown": ((POINTS, [0, 1, 0, 1]), {"shown": 1}, "shown must be a whole number, 2"),
    "more than certain": (
        (POINTS, [0, 1, 0, 1]),
        {"high": 1.1},
        r"high must be a number in \[0, 1\]",
    ),
    "two targets": ((POINTS, [0, 1, 0, 1]), {"target": [0, 1]}, "target must be one of the labels"),
    "endless": ((POINTS, [0, 1, np.inf, 1]), {}, "labels must be whole numbers"),
    "drawn": (
        (POINTS, jax.ShapeDtypeStruct((4,), int)),
        {},
        "features and labels must be known: all replications share them",
    ),
    "upside down": ((POINTS, [0, 1, 0, 1]), {"high": 0.2}, "high must be above low"),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_examples_are_a_value_error(name):
    args, options, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        jb.instances.labelled(*args, **options)
