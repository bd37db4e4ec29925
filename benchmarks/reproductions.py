"""The pages on the papers' figures: `docs/reproductions/`.

    jaxbandits reproduce --all --out DIR           # or single ones, at any size
    python -m benchmarks.reproductions --from DIR  # keeps their claims, numbers and pictures
    python -m benchmarks.reproductions             # writes the pages from what is kept

What is kept of a run stands in `benchmarks/results/reproductions.json`; a run of fewer replications
or points than the one that is kept does not replace it. Explanations are written by hand, in
`docs/reproductions/notes.toml`. A paper has `about`. An experiment has `text`, what differs from
the paper; `paper`, its numbers; and `claims`: by the text of a claim or its beginning, why it may
not hold. This is shown where it does not.
"""

import argparse
import json
import sys
import tomllib
from pathlib import Path

import xarray

from jaxbandits.report.measured import measured_text
from jaxbandits.reproduce import EXPERIMENTS

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "results" / "reproductions.json"
PAGES = ROOT / "docs" / "reproductions"
PICTURES, NOTES = PAGES / "pictures", PAGES / "notes.toml"
WIDTH, COLOURS = 1000, 64  # of a picture, in pixels
INCH = 110  # pixels of a page
PAPERS = {
    "lingape": ("LinGapE", "L. Xu, J. Honda, M. Sugiyama, AISTATS 2018"),
    "rage": ("RAGE", "T. Fiez, L. Jain, K. Jamieson, L. Ratliff, NeurIPS 2019"),
    "topm": ("Top-m", "C. Reda, E. Kaufmann, A. Delahaye-Duriez, AISTATS 2021"),
    "gse": ("GSE", "M. J. Azizi, B. Kveton, M. Ghavamzadeh, IJCAI 2022"),
    "glm": ("GLM-TSL and GLM-FPL", "B. Kveton et al., AISTATS 2020"),
}
VERDICTS = {False: "fails", None: "open", True: "holds"}
MARKS = {"fails": "**fails**", "open": "open", "holds": "holds"}
UNKNOWN = "No explanation is known."


# What a run leaves behind.


def played(name, folder):
    """What is kept of the run of an experiment in a folder."""
    experiment = EXPERIMENTS[name]
    with xarray.open_dataset(folder / "results.nc") as dataset:
        facts = dataset.attrs
        points = {axis: dataset[axis].values.tolist() for axis in experiment.axes}
        algorithms = dataset.algorithm.values.tolist()
        replications = int(dataset.replications.max())
    claims = json.loads((folder / "claims.json").read_text())
    horizon = facts.get("horizon")
    return {
        "title": facts["experiment"],
        "claims": claims,
        "replications": replications,
        "horizon": None if horizon is None or experiment.horizon is None else int(horizon),
        "points": points,
        "left_out": [one for one in experiment.algorithms if one not in algorithms],
        "data": facts.get("data", "{}"),
        **{key: round(float(facts[key]), 1) for key in ("seconds", "compile_seconds")},
        **{key: str(facts[key]) for key in ("engine", "device", "jax")},
    }


def whole(name):
    """The size of an experiment in its paper."""
    experiment = EXPERIMENTS[name]
    return {
        "replications": experiment.replications,
        "horizon": experiment.horizon,
        "points": {axis: list(values) for axis, values in experiment.axes.items()},
    }


def smaller(name, kept):
    """How a run is smaller than the paper's, as phrases."""
    wanted = whole(name)
    found = [
        f"{kept[size]:,} {text} instead of {wanted[size]:,}"
        for size, text in (("replications", "replications"), ("horizon", "rounds"))
        if kept[size] is not None and kept[size] < wanted[size]
    ]
    for axis, values in wanted["points"].items():
        some = kept["points"].get(axis, [])
        if len(some) < len(values):
            found.append(f"{axis} {_listed(some)} of {_listed(values)}")
    if kept["left_out"]:
        found.append(f"without {_listed(kept['left_out'])}")
    return found


def size(kept):
    """A number that grows with the size of a run."""
    product = kept["replications"] * (kept["horizon"] or 1)
    for values in kept["points"].values():
        product *= max(1, len(values))
    return product


def keep(folder):
    """Take over what `folder` holds of each experiment, unless a larger run is kept."""
    from PIL import Image

    known = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in EXPERIMENTS:
        there = folder / name
        if not (there / "claims.json").exists():
            continue
        found = played(name, there)
        if name in known and size(known[name]) > size(found):
            print(f"{name}: a larger run is kept")
            continue
        known[name] = found
        picture_file = Image.open(there / "figure.png")
        dots = picture_file.info["dpi"][0]
        known[name]["shown_pixels"] = round(picture_file.width / dots * INCH)
        image = picture_file.convert("RGB")
        image.thumbnail((WIDTH, 4 * WIDTH))
        image.quantize(COLOURS).save(PICTURES / picture(name), optimize=True)
        print(f"{name}: kept")
    ordered = {name: known[name] for name in EXPERIMENTS if name in known}
    KEPT.write_text(json.dumps(ordered, indent=1, allow_nan=False) + "\n")


def picture(name):
    """The file of the picture of an experiment."""
    return name.replace("/", "_") + ".png"


# Pages.


def page(paper, kept, notes):
    """The page of one paper."""
    title, source = PAPERS[paper]
    about = notes.get(paper, {}).get("about", "").strip()
    parts = [f"# {title}\n\n{source}.\n", f"{about}\n" if about else ""]
    mine = (name for name in EXPERIMENTS if name.split("/")[0] == paper)
    parts += [section(name, kept.get(name), notes.get(name, {})) for name in mine]
    return "\n".join(filter(None, parts))


def section(name, found, note):
    """What is known of one experiment."""
    figure = name.split("/")[1]
    command = f"```text\njaxbandits reproduce {name} --out {figure}\n```\n"
    if found is None:
        parts = [f"## {figure}\n\nNot played yet.\n"]
    else:
        width = f":width: {found['shown_pixels']}px"
        parts = [
            f"## {figure}: {found['title']}\n",
            f"```{{image}} pictures/{picture(name)}\n:alt: {found['title']}\n{width}\n```\n",
            f"{played_text(name, found)}\n",
            claims_table(found["claims"]),
            reasons(found["claims"], note.get("claims", {})),
        ]
    if note.get("text"):
        parts.append(f"**Differences and why.** {note['text'].strip()}\n")
    if note.get("paper"):
        parts.append(f"**The paper's numbers.** {note['paper'].strip()}\n")
    if found is not None:
        parts.append(numbers(found["claims"], found["replications"]))
    return "\n".join(filter(None, [*parts, command]))


def played_text(name, found):
    """How large the run was and how long it took."""
    minutes = (found["seconds"] + found["compile_seconds"]) / 60
    how = smaller(name, found)
    text = f"Smaller than the paper's: {'; '.join(how)}." if how else "Played at the paper's size."
    return (
        f"{text} {found['replications']:,} replications, {minutes:.0f} minutes "
        f"({found['seconds'] / 60:.0f} of them playing, the rest compiling), engine "
        f"{found['engine']}, {found['device']}."
    )


def claims_table(claims):
    """Verdicts, those that fail first."""
    rows = [
        f"| {MARKS[VERDICTS[one['holds']]]} | {one['claim'].replace('|', chr(92) + '|')} |"
        for holds in VERDICTS
        for one in claims
        if one["holds"] is holds
    ]
    return "| Verdict | The paper says |\n| --- | --- |\n" + "\n".join(rows) + "\n"


def reasons(claims, known):
    """Why claims fail, and why open ones may; an open one without a reason is left out."""
    rows = [
        f"- {MARKS[VERDICTS[holds]]}: {one['claim']} {reason(one, known) or UNKNOWN}"
        for holds in (False, None)
        for one in claims
        if one["holds"] is holds and (holds is False or reason(one, known))
    ]
    return "**Claims that do not hold, and why.**\n\n" + "\n".join(rows) + "\n" if rows else ""


def reason(claim, known):
    """What the notes say of a claim; None where they say nothing."""
    found = (why for text, why in known.items() if claim["claim"].startswith(text))
    return next((" ".join(why.split()) for why in found), None)


def numbers(claims, replications):
    """What each verdict rests on, folded away."""
    blocks = [f"- {one['claim']} {measured(one['measured'], replications)}" for one in claims]
    return ":::{dropdown} Measured numbers\n" + "\n".join(blocks) + "\n:::\n"


def measured(found, replications):
    """Measured numbers as code, in which no character is mark-up."""
    return f"`{measured_text(found, replications).replace('`', chr(39))}`" if found else ""


def _listed(values):
    return ", ".join(map(str, values))


def index(kept):
    """Counts of verdicts by experiment, failures first-class."""
    rows, sums, minutes = [], dict.fromkeys(VERDICTS.values(), 0), 0.0
    for name in EXPERIMENTS:
        link = f"[{name}]({name.split('/')[0]}.md)"
        if name not in kept:
            rows.append(f"| {link} | | | | not played yet | |")
            continue
        found = kept[name]
        counts = dict.fromkeys(VERDICTS.values(), 0)
        for one in found["claims"]:
            counts[VERDICTS[one["holds"]]] += 1
        for verdict, number in counts.items():
            sums[verdict] += number
        took = (found["seconds"] + found["compile_seconds"]) / 60
        minutes += took
        small = "smaller" if smaller(name, found) else "the paper's"
        shown = " | ".join(str(counts[v]) for v in ("holds", "fails", "open"))
        rows.append(f"| {link} | {shown} | {small} | {took:.0f} |")
    rows.append(
        f"| **all** | **{sums['holds']}** | **{sums['fails']}** | **{sums['open']}** | | "
        f"**{minutes:.0f}** |"
    )
    failed = [
        f"- [{name}]({name.split('/')[0]}.md): {one['claim']}"
        for name, found in kept.items()
        for one in found["claims"]
        if one["holds"] is False
    ]
    return INDEX.format(
        rows="\n".join(rows),
        failed="\n".join(failed) or "None.",
        papers="\n".join(PAPERS),
    )


INDEX = """# Reproductions

Five papers, each of their figures and tables: what the paper says, what was measured, and whether
it holds. A claim *fails* on evidence alone: the interval of what was measured excludes it. It is
*open* where the run was too small to tell, or did not include what the claim is about.

| Experiment | Hold | Fail | Open | Size | Minutes |
| --- | --- | --- | --- | --- | --- |
{rows}

Minutes are those of two cores, compiling included. The pages are written by
`python -m benchmarks.reproductions` from the results of `jaxbandits reproduce`.

## Claims that fail

These are findings: the pages of the papers say why, where that is known.

{failed}

```{{toctree}}
:hidden:

{papers}
```
"""


def pages():
    """`{file: text}` of all pages."""
    kept = json.loads(KEPT.read_text())
    notes = tomllib.loads(NOTES.read_text()) if NOTES.exists() else {}
    return {
        "index.md": index(kept),
        **{f"{paper}.md": page(paper, kept, notes) for paper in PAPERS},
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="folder", type=Path, help="results of `reproduce`")
    options = parser.parse_args(arguments)
    if options.folder is not None:
        keep(options.folder)
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text)


if __name__ == "__main__":
    sys.exit(main())
