"""Figure 2: neural bandits on labelled images."""

import dataclasses
import itertools
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import xarray

from ... import instances
from ..claims import (
    Finding,
    average_reward,
    checked,
    claim,
    compare,
    final_regret,
    in_the_end,
    on_a_part,
    reward_difference,
)
from ..experiment import Builders, Experiment, from_files
from ..measures import average_not_run, average_rewards, error_of, not_run

if TYPE_CHECKING:
    from ...sweeps import Sweep

DEEP, PLAIN = "DeepFPL", "DeepFL"
SHARES = (1, 2, 5, 10, 20)
REP = tuple(f"repGLM-FPL {m}%" for m in SHARES)
FOLDERS = {"MNIST": ("mnist",), "Fashion-MNIST": ("fashion-mnist", "fashion_mnist", "fashion")}
ROUNDS = 10_000  # of the paper
ALIKE = 0.01  # average rewards that differ by less are comparable
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


def problems_not_played(dataset: xarray.Dataset) -> list[str]:
    """The paper's image sets and activations that were not run."""
    sets = [name for name in FOLDERS if name not in dataset.instance.values]
    return sets + average_not_run(dataset, {})


LEAD = dataclasses.replace(reward_difference, missing=problems_not_played)


@claim(
    "The best share of repGLM-FPL depends on the problem: each of the five is behind another one "
    "in one of the problems at least.",
    paper='Section 5.2: "the best setting of m in repGLM-FPL depends on the problem"',
)
def _best_share_differs(dataset: xarray.Dataset) -> Finding:
    """Refuted where one share is ahead of all others in every problem."""
    absent = [*not_run(dataset, REP), *problems_not_played(dataset)]
    if not_run(dataset, REP):
        return Finding({}, None, absent)
    rewards = {name: dict(average_rewards(dataset, name)) for name in REP}
    problems = list(rewards[REP[0]])
    leads = {pair: dict(average_rewards(dataset, *pair)) for pair in itertools.permutations(REP, 2)}

    def ahead(one: str, other: str, problem: str) -> bool:
        return leads[one, other][problem].above(0.0) is True

    def others(name: str) -> list[tuple[str, str]]:
        return [(one, problem) for one in REP if one != name for problem in problems]

    each_behind = all(any(ahead(one, name, at) for one, at in others(name)) for name in REP)
    one_ahead = any(all(ahead(name, one, at) for one, at in others(name)) for name in REP)
    best = {at: max(REP, key=lambda name, at=at: rewards[name][at].value) for at in problems}
    measured = {
        name: {at: {"average": one.value, **error_of(one)} for at, one in found.items()}
        for name, found in rewards.items()
    }
    ours = "; ".join(f"{name.split()[-1]} is best on {at}" for at, name in best.items())
    whole = Finding(measured, each_behind or (False if one_ahead else None), ours=ours)
    return on_a_part(whole, absent)


CLAIMS = (
    compare(
        "DeepFPL learns nearly optimal policies: an average reward of 0.5.",
        average_reward,
        DEEP,
        least=0.5,
        paper='Section 5.2: "achieves high average rewards of at least 0.5"',
    ),
    compare(
        "DeepFPL is ahead of DeepFL, which does not explore.",
        final_regret,
        DEEP,
        PLAIN,
        most=1.0,
        paper='Section 5.2: "DeepFPL outperforms DeepFL"',
    ),
    compare(
        "DeepFPL is ahead of repGLM-FPL, however long that learns first.",
        final_regret,
        DEEP,
        REP,
        most=1.0,
        paper='Section 5.2: "DeepFPL outperforms all variants of repGLM-FPL"',
    ),
    _best_share_differs,
    compare(
        "repGLM-FPL 1% and 5% are comparable in two of the problems at least: their average "
        f"rewards differ by at most {ALIKE}.",
        LEAD,
        REP[0],
        REP[2],
        least=-ALIKE,
        most=ALIKE,
        at_least=2,
        paper='Section 5.2: "1% and 5% exploration is comparable in the first two plots"',
    ),
    compare(
        f"repGLM-FPL 5% is ahead of repGLM-FPL 1% by more than {ALIKE} in one of the problems at "
        "least.",
        LEAD,
        REP[2],
        REP[0],
        least=ALIKE,
        at_least=1,
        paper='Section 5.2: "5% exploration is superior in the last plot"',
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
