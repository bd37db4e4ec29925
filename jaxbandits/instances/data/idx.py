"""IDX files, the format of MNIST and Fashion-MNIST: read and checked, never downloaded.

A file is a big-endian header, then unsigned bytes. Images: 2051, their number, rows,
columns. Labels: 2049, their number.
"""

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import UInt8

from ...messages import reason
from ...parameters import require
from ...system.data_files import given_path

Part: TypeAlias = Literal["train", "t10k"]

IMAGES: int = 2051
LABELS: int = 2049
GZIP: bytes = b"\x1f\x8b"
PARTS: tuple[Part, ...] = ("train", "t10k")  # the larger first
SOURCE: str = "files of MNIST or Fashion-MNIST, gzip or not, belong there; nothing is downloaded"
# MD5 of the unpacked files of MNIST and of Fashion-MNIST.
KNOWN: dict[str, tuple[str, ...]] = {
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


def read_idx(path: Path | str) -> UInt8[np.ndarray, "..."]:
    """The numbers of an IDX file, uint8: images `[N, rows, columns]`, or labels `[N]`.

    Args:
      path: a file, compressed by gzip or not, whatever its name.
    Raises:
      ValueError: the file is missing, of another kind, or not as long as its header says.
    """
    path = given_path(path)
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
        raise ValueError(f"path: {path} is damaged: {reason(error)}") from None


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


def check_sum(path: Path, data: bytes) -> None:
    """Raise if a file has the name of a known one but another content."""
    known, found = KNOWN.get(path.name.removesuffix(".gz")), hashlib.md5(data).hexdigest()
    require(
        known is None or found in known,
        f"path: {path} is not that file of MNIST or Fashion-MNIST, the MD5 of what it holds is "
        f"{found}; checksum=False reads it all the same",
    )


def read_folder(
    path: Path | str, *, part: Part | None = None, checksum: bool = True
) -> tuple[UInt8[np.ndarray, "N rows columns"], UInt8[np.ndarray, " N"]]:
    """Images `[N, rows, columns]` and labels `[N]`, uint8, of a folder of IDX files.

    Args:
      path: the folder.
      part: "train" or "t10k"; by default the training images where the folder has them.
      checksum: whether the files must be those of MNIST or of Fashion-MNIST.
    Raises:
      ValueError: a missing, damaged or unknown file, or different numbers of images and labels.
    """
    folder = given_path(path)
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
    """The files of images and of labels of the first part that is there."""
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
    files = [folder / f"{name}{end}" for end in (".gz", "")]
    return next((file for file in files if file.is_file()), None)
