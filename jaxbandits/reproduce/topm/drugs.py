"""Figure 5 of the Top-m paper: the rewards of ten drugs, a baseline, hit scores, and the misfit."""

import csv
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np
from jaxtyping import Float

from ... import instances
from ...instances import Instance
from ...instances.data.local_files import find_file, named_table
from ..calculation import ROW, Calculation, Numbers, is_recorded
from ..claims import Finding, checked, claim

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

RANKS = (1, 2, 5, 10)  # r of the hit scores
GOOD = 5  # drugs, the first ones
SOURCE = "it is part of the data of Reda, Kaufmann and Delahaye-Duriez (2021)"
FOLDER = "drug_repurposing"
LOG = "rewards_cosine_10drugs_18samples.txt"
SIGNATURES, NAMES = "epilepsy_signatures_nonbinarized.csv", "epilepsy_scores.csv"
PHENOTYPE = "epilepsy_phenotype_nonbinarized.csv"
# The end of a call in the log: the drug, and three numbers of which the last is its baseline.
VERDICT: re.Pattern[str] = re.compile(
    r"\('Arm: ', \([^,]*, '([^']*)'\), '[^']*', \([^,)]*, [^,)]*, ([^,)]*)\)"
)
MISFIT = 20.9  # Appendix B
SCORED = {"rewards": "mean", "baseline": "baseline"}
ROUNDED_SCORE = 1e-6  # of a score, which is at most 1
STAND_IN = "on made-up drugs and genes: the recorded ones are not ours to give"


def baseline(
    signature: Float[np.ndarray, " G"], phenotype: Float[np.ndarray, " G"]
) -> Float[np.ndarray, ""]:
    """Algorithm 3, the score of L1000 CDS2: `1 - cosine`, over the genes known in both.

    Args:
      signature: by gene, the change of activity due to the drug; NaN: unknown.
      phenotype: that of patients relative to controls.
    """
    known = ~(np.isnan(signature) | np.isnan(phenotype))
    first, second = signature[known], phenotype[known]
    return 1.0 - first @ second / np.sqrt((first @ first) * (second @ second))


def hit_score(scores: Float[np.ndarray, " K"], good: np.ndarray, rank: int) -> float:
    """The share of good drugs among the `rank` of the highest scores."""
    best = np.argsort(-np.asarray(scores), kind="stable")[:rank]
    return float(np.asarray(good)[best].mean())


def misfits(instance: Instance) -> Float[np.ndarray, " K"]:
    """By drug, the mean reward less the one that is nearest to it and linear in the features."""
    arms, means = np.asarray(instance.arms), np.asarray(instance.means)
    theta, *_ = np.linalg.lstsq(arms, means)
    return means - arms @ theta


def row(rewards: Sequence[float], good: bool, misfit: float, score: float, again: float) -> Numbers:
    """A drug: one reward for each patient."""
    return {
        "reward": list(rewards),
        "mean": float(np.mean(rewards)),
        "good": int(good),
        "misfit": misfit,
        "baseline": score,
        "baseline_again": again,
    }


def _rows(
    instance: Instance, scores: Float[np.ndarray, " K"], again: Float[np.ndarray, " K"]
) -> list[partial[Numbers]]:
    numbers = zip(np.asarray(instance.samples), misfits(instance), scores, again, strict=True)
    return [
        partial(row, rewards.tolist(), i < GOOD, *map(float, rest))
        for i, (rewards, *rest) in enumerate(numbers)
    ]


def made_up(number: int) -> Numbers:
    """A made-up drug; the phenotype has nothing to do with it."""
    instance = instances.drugs(jax.random.key(0))
    arms = np.asarray(instance.arms)
    phenotype = np.random.default_rng(0).normal(size=arms.shape[1])
    scores = np.array([baseline(arm, phenotype) for arm in arms])
    return _rows(instance, scores, scores)[number]()


def recorded(folder: Path) -> dict[str, partial[Numbers]]:
    """The paper's ten drugs; the first five are antiepileptic."""
    inner = folder / FOLDER
    folder = inner if inner.is_dir() else folder
    instance = instances.drug_repurposing(folder)
    names, _ = named_table(find_file(folder, "features_71x10.csv", SOURCE), labelled=True)
    logged = logged_baselines(find_file(folder, LOG, SOURCE))
    scores = np.array([logged[name] for name in names])
    return dict(zip(names, _rows(instance, scores, recalculated(folder, names)), strict=True))


def logged_baselines(file: Path) -> Mapping[str, float]:
    """By drug, the baseline score in the log of the simulator."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return {found[1]: float(found[2]) for line in lines if (found := VERDICT.match(line))}


def recalculated(folder: Path, names: Sequence[str]) -> Float[np.ndarray, " K"]:
    """Algorithm 3 on the real-valued signatures and the phenotype that are published."""
    numbers = {name: code for code, (name, *_) in _table(folder, NAMES)[1].items()}
    codes, signatures = _table(folder, SIGNATURES)
    phenotype = {gene: float(value) for gene, (value, *_) in _table(folder, PHENOTYPE)[1].items()}
    wanted = np.array([phenotype.get(gene, np.nan) for gene in signatures])
    table = np.array([[float(x or "nan") for x in row_] for row_ in signatures.values()])
    return np.array([baseline(table[:, codes.index(numbers[name])], wanted) for name in names])


def _table(folder: Path, file: str) -> tuple[list[str], dict[str, list[str]]]:
    """Header and rows by their first entry, as texts."""
    with find_file(folder, file, SOURCE).open(newline="") as stream:
        (_, *header), *rows = [line for line in csv.reader(stream) if line]
    return header, {name: rest for name, *rest in rows}


def _hits(dataset: "Dataset", name: str) -> dict[str, float]:
    good, scores = dataset.good.values, dataset[name].values
    return {f"r = {rank}": hit_score(scores, good, rank) for rank in RANKS}


@claim(
    "The five drugs of the highest mean rewards are the five antiepileptic ones.",
    'Appendix B: "in order to check that our method yields correct results with respect to known '
    'therapeutic indications"',
)
def good_drugs_lead(dataset: "Dataset") -> Finding:
    """The hit score at 5 is 1."""
    hits = _hits(dataset, "mean")
    return Finding(hits, hits[f"r = {GOOD}"] == 1.0)


@claim("The hit score of the mean rewards is at least that of the baseline at each r.")
def no_worse_than_the_baseline(dataset: "Dataset") -> Finding:
    """Algorithm 3 is the baseline."""
    found = {label: _hits(dataset, name) for label, name in SCORED.items()}
    pairs = zip(*(hits.values() for hits in found.values()), strict=True)
    return Finding(found, all(ours >= theirs for ours, theirs in pairs))


@claim(
    "The means of the rewards are not linear in the features: the best fit misses them.",
    f'Appendix B: "the linear dependency between features and scores does not hold", {MISFIT}',
)
def not_linear(dataset: "Dataset") -> Finding:
    """A misfit of rounding alone is none."""
    misfit = float(np.linalg.norm(dataset.misfit.values))
    return Finding({"misfit": misfit, "in the paper": MISFIT}, misfit > ROUNDED_SCORE)


@claim("Algorithm 3 on the published signatures and phenotype gives the logged baseline scores.")
def baseline_repeats(dataset: "Dataset") -> Finding:
    """On recorded drugs alone."""
    if not is_recorded(dataset):
        return Finding({}, None, ["the recorded drugs"])
    scores, again = dataset.baseline.values, dataset.baseline_again.values
    largest = float(np.abs(scores - again).max())
    measured = {
        "largest difference": largest,
        "correlation": float(np.corrcoef(scores, again)[0, 1]),
    }
    return Finding(measured, largest < ROUNDED_SCORE)


def _boxes(dataset: "Dataset", ax: "Axes") -> None:
    """Rewards of each drug, their mean, and the baseline."""
    places = np.arange(dataset.sizes[ROW])
    ax.boxplot(dataset.reward.values.T, positions=places, widths=0.6)
    good = dataset.good.values == 1
    for mask, colour, label in ((good, "C2", "antiepileptic"), (~good, "C3", "proconvulsant")):
        means = dataset["mean"].values[mask]
        ax.plot(places[mask], means, "D", color=colour, label=f"mean, {label}")
    ax.plot(places, dataset.baseline.values, "s", color="C0", label="baseline")
    ax.set_xticks(places, dataset.row.values.tolist(), rotation=45, ha="right")
    ax.set_ylabel("score")
    hits = {label: _hits(dataset, name).values() for label, name in SCORED.items()}
    texts = [f"{label} {', '.join(f'{hit:.1f}' for hit in found)}" for label, found in hits.items()]
    ranks = ", ".join(map(str, RANKS))
    ax.set_title(f"Hit scores at r = {ranks}:\n{'; '.join(texts)}")


SCORES = Calculation(
    title="Scores of ten drugs on eighteen patients, Réda et al. (2021), Figure 5",
    rows={f"drug {i + 1}": partial(made_up, i) for i in range(2 * GOOD)},
    claims=checked(good_drugs_lead, no_worse_than_the_baseline, not_linear, baseline_repeats),
    draw=_boxes,
    from_folder=recorded,
    stand_in=STAND_IN,
)
EXPERIMENTS = {"topm/fig5": SCORES}
