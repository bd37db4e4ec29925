"""Figure 2: neural bandits on labelled images."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import xarray

from ... import instances
from ..claims import average_reward, checked, compare, final_regret, in_the_end
from ..experiment import Builders, Experiment, from_files

if TYPE_CHECKING:
    from ...sweeps import Sweep

DEEP, PLAIN = "DeepFPL", "DeepFL"
SHARES = (1, 2, 5, 10, 20)
REP = tuple(f"repGLM-FPL {m}%" for m in SHARES)
FOLDERS = {"MNIST": ("mnist",), "Fashion-MNIST": ("fashion-mnist", "fashion_mnist", "fashion")}
ROUNDS = 10_000  # of the paper
TRAIN = "train-images-idx3-ubyte"
TEST = "t10k-images-idx3-ubyte"


def with_rewards(dataset: xarray.Dataset, sweep: "Sweep") -> xarray.Dataset:
    """The dataset with the average expected reward, and that of who knows the labels."""
    runs = dataset["replication"].values
    best = xarray.concat(
        [
            xarray.DataArray(part.build(**part.options).best_average(runs), dims="replication")
            for part in sweep.instances
        ],
        dim="instance",
    ).assign_coords(instance=dataset.instance, replication=dataset.replication)
    reward = best - dataset.regret / dataset["round"]
    return dataset.assign(average_reward=reward.transpose(*dataset.regret.dims), best_average=best)


def _from_folder(folder: Path) -> Builders:
    """The image sets that a folder has; digits where it has none."""
    found = {name: partial(instances.images, path=str(path)) for name, path in _sets(folder)}
    return found or {"digits": instances.digits}


def _sets(folder: Path) -> Iterable[tuple[str, Path]]:
    """`(name, folder)` of the image sets that there are below a folder."""
    for name, inner in FOLDERS.items():
        paths = [folder / one for one in inner]
        path = next((path for path in paths if _has(path, TRAIN) or _has(path, TEST)), None)
        if path is not None:
            yield name, path


def _has(folder: Path, name: str) -> bool:
    return any((folder / f"{name}{end}").is_file() for end in ("", ".gz"))


def _stands_in(folder: Path | None) -> str:
    """What is run in place of the paper's image sets."""
    known = {} if folder is None else dict(_sets(folder))
    if not known:
        return "scikit-learn's 8 x 8 digits"
    tests = [name for name, path in known.items() if not _has(path, TRAIN)]
    return f"test images of {' and '.join(tests)}" if tests else ""


CLAIMS = (
    compare(
        "DeepFPL learns nearly optimal policies: an average reward of 0.5.",
        average_reward,
        DEEP,
        least=0.5,
    ),
    compare(
        "DeepFPL is ahead of DeepFL, which does not explore.", final_regret, DEEP, PLAIN, most=1.0
    ),
    compare(
        "DeepFPL is ahead of repGLM-FPL, however long that learns first.",
        final_regret,
        DEEP,
        REP,
        most=1.0,
    ),
    compare(
        "All learn: they are ahead of random choices (0.3).",
        average_reward,
        (DEEP, PLAIN, *REP),
        least=0.3,
    ),
)
IMAGES = Experiment(
    title="Neural bandits on labelled images, Kveton et al. (2020), Figure 2",
    claims=checked(*(in_the_end(claim, ROUNDS) for claim in CLAIMS)),
    quantities=("reward",),
    **from_files("glm/fig2.toml"),
    from_folder=_from_folder,
    stand_in=_stands_in,
    extended=with_rewards,
    quick={
        "algorithms": (DEEP, PLAIN, REP[2]),
        "axes": {"activation": ("relu",)},
        "replications": 20,
        "horizon": 1000,
    },
)
