"""Figure 2: neural bandits on labelled images."""

import math
from functools import partial

import xarray

from ... import instances
from ...engine.results import standard_error
from ..accuracies import checked
from ..base import Experiment, below, claim, from_files
from ..regrets import less
from ..rules import listed, together

DEEP, PLAIN = "DeepFPL", "DeepFL"
SHARES = (1, 2, 5, 10, 20)
REP = tuple(f"repGLM-FPL {m}%" for m in SHARES)
FOLDERS = {"MNIST": ("mnist",), "Fashion-MNIST": ("fashion-mnist", "fashion_mnist", "fashion")}
ROUNDS = 10_000  # of the paper
TRAIN = "train-images-idx3-ubyte"
TEST = "t10k-images-idx3-ubyte"


def rewarded(text, names, least):
    """The average reward of each is at least so much, in every panel."""

    def rule(dataset):
        measured, verdicts = {"least": least}, []
        last = dataset.average_reward.isel(round=-1)
        for name in (name for name in listed(names) if name in dataset.algorithm):
            cells = last.sel(algorithm=name)
            panels = cells.stack(panel=[d for d in cells.dims if d != "replication"])
            for panel in panels.panel.values:
                values = panels.sel(panel=panel).dropna("replication").values
                mean = float(values.mean()) if values.size else math.nan
                error = standard_error(values)
                verdict = below(mean, error, least)
                verdicts.append(None if verdict is None else not verdict)
                where = ", ".join(map(str, panel))
                measured[f"{name}, {where}"] = {"average": mean, "standard_error": error}
        return claim(text, measured, together(verdicts or [None]))

    return rule


def in_the_end(rule, rounds=ROUNDS):
    """The rule, open where fewer rounds break it: exploring costs first and pays later."""

    def patient(dataset):
        found, played = rule(dataset), int(dataset["round"][-1])
        early = played < rounds and found["holds"] is False
        holds = None if early else found["holds"]
        return found | {"measured": {"rounds": played, **found["measured"]}, "holds": holds}

    return patient


def with_rewards(dataset, plan):
    """The dataset with the average expected reward, and that of who knows the labels."""
    runs = dataset["replication"].values
    best = xarray.concat(
        [
            xarray.DataArray(part.build(**part.options).best_average(runs), dims="replication")
            for part in plan.instances
        ],
        dim="instance",
    ).assign_coords(instance=dataset.instance, replication=dataset.replication)
    reward = best - dataset.regret / dataset["round"]
    return dataset.assign(average_reward=reward.transpose(*dataset.regret.dims), best_average=best)


def _from_folder(folder):
    """The image sets that a folder has; digits where it has none."""
    found = {
        name: partial(instances.images, path=str(place))
        for name, place in ((name, _place(folder, inner)) for name, inner in FOLDERS.items())
        if place is not None
    }
    return found or {"digits": instances.digits}


def _place(folder, inner):
    """The folder of an image set, or None."""
    places = [folder / name for name in inner]
    return next((place for place in places if _has(place, TRAIN) or _has(place, TEST)), None)


def _has(place, name):
    return any((place / f"{name}{end}").is_file() for end in ("", ".gz"))


def _stands_in(folder):
    """What the figure is short of."""
    places = {} if folder is None else {n: _place(folder, inner) for n, inner in FOLDERS.items()}
    known = {name: place for name, place in places.items() if place is not None}
    if not known:
        return "scikit-learn's 8 x 8 digits"
    tests = [name for name, place in known.items() if not _has(place, TRAIN)]
    return f"test images of {' and '.join(tests)}" if tests else ""


RULES = (
    rewarded("DeepFPL learns nearly optimal policies: an average reward of 0.5.", DEEP, 0.5),
    less("DeepFPL is ahead of DeepFL, which does not explore.", DEEP, PLAIN),
    less("DeepFPL is ahead of repGLM-FPL, however long that learns first.", DEEP, REP),
    rewarded("All learn: they are ahead of random choices (0.3).", (DEEP, PLAIN, *REP), 0.3),
)
IMAGES = Experiment(
    title="Neural bandits on labelled images, Kveton et al. (2020), Figure 2",
    claims=checked(*map(in_the_end, RULES)),
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
