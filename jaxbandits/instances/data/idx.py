"""IDX files, the format of MNIST and its kin: read, checked, never downloaded.

A file is a big-endian header, then unsigned bytes. Images: the number 2051, how many, rows,
columns. Labels: 2049, how many.
"""

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np

from ...parameters import require

IMAGES, LABELS = 2051, 2049
GZIP = b"\x1f\x8b"
PARTS = ("train", "t10k")  # the larger first
SOURCE = "files of MNIST or Fashion-MNIST, gzip or not, belong there; nothing is downloaded"
# MD5 of what the files of MNIST and of Fashion-MNIST hold, however it is compressed.
KNOWN = {
    "train-images-idx3-ubyte": (
        "6bbc9ace898e44ae57da46a324031adb",
        "f4a8712d7a061bf5bd6d2ca38dc4d50a",
    ),
    "train-labels-idx1-ubyte": (
        "a25bea736e30d166cdddb491f175f624",
        "9018921c3c673c538a1fc5bad174d6f9",
    ),
    "t10k-images-idx3-ubyte": (
        "2646ac647ad5339dbf082846283269ea",
        "8181f5470baa50b63fa0f6fddb340f0a",
    ),
    "t10k-labels-idx1-ubyte": (
        "27ae3e4e09519cfbb04c329615203637",
        "15d484375f8d13e6eb1aabb0c3f46965",
    ),
}


def read_idx(path):
    """The numbers of an IDX file, uint8: images `[N, rows, columns]`, or labels `[N]`.

    Args:
      path: a file, compressed by gzip or not, whatever its name.
    Raises:
      ValueError: no such file, not one of the two kinds, or not as long as its header says.
    """
    path = Path(path)
    require(path.is_file(), f"path: no file {path}")
    return _parsed(_content(path), path)


def _content(path):
    """The bytes of a file, unpacked."""
    data = path.read_bytes()
    if data[:2] != GZIP:
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"path: {path} is damaged: {error}") from None


def _parsed(data, path):
    magic = int.from_bytes(data[:4], "big")
    known = len(data) >= 4 and magic in (IMAGES, LABELS)
    require(known, f"path: {path} is no IDX file of images ({IMAGES}) or labels ({LABELS})")
    axes = 3 if magic == IMAGES else 1
    begin = 4 + 4 * axes
    require(len(data) >= begin, f"path: {path} ends within its header")
    shape = tuple(np.frombuffer(data, ">u4", axes, offset=4).astype(int).tolist())
    require(0 not in shape, f"path: {path} is empty, its header says {shape}")
    size, expected = len(data) - begin, int(np.prod(shape, dtype=object))
    require(size == expected, f"path: {path} holds {size} bytes, its header says {shape}")
    return np.frombuffer(data, np.uint8, offset=begin).reshape(shape)


def check_sum(path, data):
    """Raise unless the content of a file is known under its name; other names pass."""
    known, found = KNOWN.get(path.name.removesuffix(".gz")), hashlib.md5(data).hexdigest()
    require(
        known is None or found in known,
        f"path: {path} is not that file of MNIST or Fashion-MNIST, the MD5 of what it holds is "
        f"{found}; checksum=False reads it all the same",
    )


def read_folder(path, *, part=None, checksum=True):
    """Images `[N, rows, columns]` and labels `[N]`, uint8, of a folder of IDX files.

    Args:
      path: the folder.
      part: "train" or "t10k"; by default the training images where the folder has them.
      checksum: whether they must hold what those of MNIST or of Fashion-MNIST do.
    Raises:
      ValueError: a missing, damaged or unknown file, or as many labels as there are images not.
    """
    folder = Path(path)
    files = _files(folder, PARTS if part is None else (part,))
    contents = [_content(file) for file in files]
    images, labels = (_parsed(*pair) for pair in zip(contents, files, strict=True))
    require(images.ndim == 3, f"path: {files[0]} does not hold images")
    require(labels.ndim == 1, f"path: {files[1]} does not hold labels")
    same = len(images) == len(labels)
    require(same, f"path: {folder} has {len(images)} images and {len(labels)} labels")
    if checksum:
        for file, data in zip(files, contents, strict=True):
            check_sum(file, data)
    return images, labels


def _files(folder, parts):
    """Those of images and of labels, of the first part of which there is any."""
    for part in parts:
        names = [f"{part}-{kind}-ubyte" for kind in ("images-idx3", "labels-idx1")]
        found = [_file(folder, name) for name in names]
        missing = [f"{name}.gz" for name, file in zip(names, found, strict=True) if file is None]
        if not missing:
            return found
        if len(missing) == 1:
            raise ValueError(f"path: {folder} lacks {missing[0]}; {SOURCE}")
    wanted = " and ".join(missing)
    raise ValueError(f"path: no IDX files in {folder}, such as {wanted}; {SOURCE}")


def _file(folder, name):
    """The file of that name, packed or not, or None."""
    places = [folder / f"{name}{end}" for end in (".gz", "")]
    return next((place for place in places if place.is_file()), None)
