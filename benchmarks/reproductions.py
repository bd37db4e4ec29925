"""The pages on the papers' figures: `docs/reproductions/`.

    jaxbandits reproduce --all --out DIR           # or single ones, at any size
    python -m benchmarks.reproductions --from DIR  # keeps their cells, claims and pictures
    python -m benchmarks.reproductions             # writes the pages from what is kept
    python -m benchmarks.reproductions --again     # judges the cells that are kept once more

What is kept of a run: its claims and their numbers, in `benchmarks/results/reproductions.json`, and
its cells, in `benchmarks/results/reproductions/`, unless it takes less than ten minutes. From the
cells, also those of a run that did not end, `reproduce` goes on: copy that folder and name the copy
as `--out`. A run of fewer replications or points than the one that is kept does not replace it. A
run on recorded data (`--data`) is kept beside that on what stands in for them, under the name of
the experiment with ", recorded". Explanations are written by hand, in
`docs/reproductions/notes.toml`. A paper has `about`. An experiment has `text`, what differs from
the paper; `paper`, its numbers; and `claims`: by the text of a claim or its beginning, why it may
not hold. This is shown where it does not.
"""

import argparse
import json
import math
import re
import shutil
import sys
import tempfile
import textwrap
import tomllib
import zipfile
from operator import itemgetter
from pathlib import Path

import xarray

from jaxbandits.report.measured import measured_text
from jaxbandits.reproduce import EXPERIMENTS, Calculation, reproduce
from jaxbandits.reproduce.calculation import ROW, is_recorded
from jaxbandits.sweeps.store import CELLS

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "results" / "reproductions.json"
STORED = ROOT / "benchmarks" / "results" / "reproductions"
MOST_STORED = 20 * 2**20  # bytes
SHORT = 600.0  # seconds: a run that takes less is played again rather than its cells kept
RECORDED = ", recorded"
WRAPPED = 110  # letters of a line of an explanation
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


def experiment_of(name):
    """The experiment whose run is kept under a name."""
    return EXPERIMENTS[name.removesuffix(RECORDED)]


def names():
    """All names under which a run can be kept, those of an experiment one after the other."""
    for name, experiment in EXPERIMENTS.items():
        yield name
        if experiment.from_folder is not None:
            yield name + RECORDED


def cells_of(name):
    """The folder of the cells that are kept under a name."""
    return STORED / name.replace(RECORDED, "_recorded")


def played(name, folder):
    """What is kept of the run of an experiment in a folder."""
    experiment = experiment_of(name)
    claims = json.loads((folder / "claims.json").read_text())
    with xarray.open_dataset(folder / "results.nc") as dataset:
        facts = dataset.attrs
        if isinstance(experiment, Calculation):
            rows = dataset[ROW].values.tolist()
            data = "recorded" if is_recorded(dataset) else "{}"
            return calculated(name, facts, rows) | {"claims": claims, "data": data}
        points = {axis: dataset[axis].values.tolist() for axis in experiment.axes}
        algorithms = dataset.algorithm.values.tolist()
        replications = int(dataset.replications.max())
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


def calculated(name, facts, rows):
    """What is kept of a calculation, its claims aside."""
    wanted = experiment_of(name).rows
    number = facts.get("replications")
    return {
        "title": facts["experiment"],
        "replications": None if number is None else int(number),
        "horizon": None,
        "points": {},
        # Rows of recorded data have names of their own.
        "left_out": [one for one in wanted if one not in rows] if len(rows) < len(wanted) else [],
        "seconds": round(float(facts["seconds"]), 1),
        "compile_seconds": 0.0,
        **dict.fromkeys(("engine", "device", "jax"), ""),
    }


def whole(name):
    """The size of an experiment in its paper."""
    experiment = experiment_of(name)
    if isinstance(experiment, Calculation):
        return {"replications": experiment.replications, "horizon": None, "points": {}}
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
    product = (kept["replications"] or 1) * (kept["horizon"] or 1)
    for values in kept["points"].values():
        product *= max(1, len(values))
    return product


def keep(folder):
    """Take over what `folder` holds of each experiment, unless a larger run is kept."""
    for name in EXPERIMENTS:
        if (folder / name / CELLS).is_dir():
            keep_run(name, folder / name)
    stored = sum(file.stat().st_size for file in STORED.rglob("*.npz"))
    if stored > MOST_STORED:
        raise SystemExit(f"{STORED}: {stored:,} bytes, and at most {MOST_STORED:,} are kept")


def keep_run(name, folder):
    """Take over the run of an experiment in a folder, its cells even where it has not ended."""
    known = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not (folder / "claims.json").exists():
        if experiment_of(name).from_folder is not None:
            print(f"{name}: not kept, since nothing says yet whether its data are recorded")
            return
        keep_cells(name, folder)
        print(f"{name}: cells are kept; the run has not ended")
        return
    found = played(name, folder)
    name += "" if found["data"] == "{}" else RECORDED
    if name in known and size(known[name]) > size(found):
        print(f"{name}: a larger run is kept")
        return
    known[name] = found | {"shown_pixels": keep_picture(name, folder)}
    ordered = {name: known[name] for name in names() if name in known}
    KEPT.write_text(json.dumps(ordered, indent=1, allow_nan=False) + "\n")
    if is_short(found):
        shutil.rmtree(cells_of(name), ignore_errors=True)
    else:
        keep_cells(name, folder)
    print(f"{name}: kept")


def is_short(found):
    """Whether a run took so little time that its cells are not kept."""
    return found["seconds"] + found["compile_seconds"] < SHORT


def keep_cells(name, folder):
    """Copy the cells, in place of those that were kept.

    Rows that are calculated from recorded data may hold these, which are not ours to distribute.
    """
    shutil.rmtree(cells_of(name), ignore_errors=True)
    if name.endswith(RECORDED) and isinstance(experiment_of(name), Calculation):
        return
    cells_of(name).joinpath(CELLS).mkdir(parents=True)
    for file in (folder / CELLS).iterdir():
        copy = packed if file.suffix == ".npz" else shutil.copy2
        copy(file, cells_of(name) / CELLS / file.name)


def packed(source, target):
    """Copy a cell. Most of it are pulls of each arm, which take two thirds of the room by LZMA."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as new:
        for entry in old.infolist():
            same = zipfile.ZipInfo(entry.filename, entry.date_time)  # so that bytes are the same
            same.compress_type = zipfile.ZIP_LZMA
            new.writestr(same, old.read(entry))


def keep_picture(name, folder):
    """Copy the picture, and return how many pixels wide it is shown."""
    from PIL import Image

    PICTURES.mkdir(parents=True, exist_ok=True)
    picture_file = Image.open(folder / "figure.png")
    dots = picture_file.info["dpi"][0]
    image = picture_file.convert("RGB")
    image.thumbnail((WIDTH, 4 * WIDTH))
    image.quantize(COLOURS).save(PICTURES / picture(name), optimize=True)
    return round(picture_file.width / dots * INCH)


def judge_again(data):
    """Judge the runs whose cells are all kept once more, by the claims as they are now."""
    known = json.loads(KEPT.read_text())
    for name in names():
        recorded = name.endswith(RECORDED)
        whole_run = name in known and not smaller(name, known[name])
        from_cells = cells_of(name).is_dir()
        of_data = recorded and isinstance(experiment_of(name), Calculation)
        if not whole_run or (recorded and data is None):
            continue
        if not (from_cells or of_data or is_short(known[name])):
            continue
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder)
            if from_cells:
                shutil.copytree(cells_of(name) / CELLS, out / CELLS)
            before = set((out / CELLS).iterdir()) if from_cells else set()
            plain = name.removesuffix(RECORDED)
            reproduce(plain, out, data=data if recorded else None, progress=True)
            if new := set((out / CELLS).iterdir()) - before:
                print(f"{name}: {len(new)} cells were played")
            keep_run(plain, out)


def picture(name):
    """The file of the picture of an experiment."""
    return str(cells_of(name).relative_to(STORED)).replace("/", "_") + ".png"


# Pages.


def page(paper, kept, notes):
    """The page of one paper."""
    title, source = PAPERS[paper]
    about = notes.get(paper, {}).get("about", "").strip()
    parts = [f"# {title}\n\n{source}.\n", f"{about}\n" if about else ""]
    mine = (name for name in EXPERIMENTS if name.split("/")[0] == paper)
    parts += [section(name, kept, notes.get(name, {})) for name in mine]
    return "\n".join(filter(None, parts))


def section(name, kept, note):
    """What is known of one experiment, on recorded data first."""
    figure, runs = name.split("/")[1], [name + RECORDED, name]
    found = [(run, kept[run]) for run in runs if run in kept]
    parts = [f"## {figure}: {found[0][1]['title']}\n" if found else f"## {figure}\n"]
    parts += [part for run in found for part in shown(*run, note)] or ["Not played yet.\n"]
    if note.get("text"):
        parts.append(f"**Differences and why.** {note['text'].strip()}\n")
    if note.get("paper"):
        parts.append(f"**The paper's numbers.** {note['paper'].strip()}\n")
    parts += [numbers(run["claims"], run["replications"]) for _, run in found]
    parts.append(f"```text\njaxbandits reproduce {name} --out {figure}\n```\n")
    return "\n".join(filter(None, parts))


def shown(name, found, note):
    """The picture of a run, how large it was, and its claims."""
    title = found["title"]
    image = f"```{{image}} pictures/{picture(name)}\n:alt: {title}\n"
    return [
        f"{image}:width: {found['shown_pixels']}px\n```\n",
        f"{played_text(name, found)}\n",
        *claims_tables(found["claims"]),
        reasons(found["claims"], note.get("claims", {})),
    ]


def played_text(name, found):
    """How large the run was and how long it took."""
    minutes = (found["seconds"] + found["compile_seconds"]) / 60
    how = smaller(name, found)
    done = "Played" if found["engine"] else "Calculated"
    text = f"Smaller than the paper's: {'; '.join(how)}." if how else f"{done} at the paper's size."
    if not found["engine"]:
        number = found["replications"]
        draws = "" if number is None else f" {number:,} random instances a row,"
        return f"{text}{draws} {minutes:.0f} minutes." if draws else text
    return (
        f"{text} {found['replications']:,} replications, {minutes:.0f} minutes "
        f"({found['seconds'] / 60:.0f} of them playing, the rest compiling), engine "
        f"{found['engine']}, {found['device']}."
    )


def claims_tables(claims):
    """Verdicts on what the paper says, and on what we expected besides; those that fail first."""
    said = [one for one in claims if one.get("paper")]
    expected = [one for one in claims if not one.get("paper")]
    columns = {"Verdict": verdict, "Claim": itemgetter("claim"), "Ours": ours}
    paper = {**columns, "The paper": itemgetter("paper")}
    tables = [("What the paper says", said, paper), ("What we expected besides", expected, columns)]
    return [f"**{title}.**\n\n{table(rows, shown)}" for title, rows, shown in tables if rows]


def table(claims, columns):
    """A table of claims with a column for each function."""
    lines = [columns, ["---"] * len(columns)]
    for holds in VERDICTS:
        mine = [one for one in claims if one["holds"] is holds]
        lines += [[cell(one) for cell in columns.values()] for one in mine]
    text = [" | ".join(cell.replace("|", r"\|") for cell in line) for line in lines]
    return "".join(f"| {line} |\n" for line in text)


def verdict(claim):
    """The mark of a claim's verdict."""
    return MARKS[VERDICTS[claim["holds"]]]


def ours(claim):
    """The number that decides, as code, in which no character is mark-up."""
    text = claim.get("ours", "").replace("`", "'")
    return f"`{text}`" if text else "see below"


def reasons(claims, known):
    """Why claims fail, and why open ones may; an open one without a reason is left out."""
    rows = [
        item(f"{MARKS[VERDICTS[holds]]}: {one['claim']} {reason(one, known) or UNKNOWN}")
        for holds in (False, None)
        for one in claims
        if one["holds"] is holds and (holds is False or reason(one, known))
    ]
    return "**Claims that do not hold, and why.**\n\n" + "\n".join(rows) + "\n" if rows else ""


def item(text):
    """An item of a list in lines that can be read as a file; none begins as an item would."""
    together = re.sub(r" (?=(?:[-+*#>]|\d+[.)]) )", "\0", text)
    lines = textwrap.wrap(
        together, WRAPPED, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False
    )
    return "\n".join(lines).replace("\0", " ")


def reason(claim, known):
    """What the notes say of a claim; None where they say nothing."""
    found = (why for text, why in known.items() if claim["claim"].startswith(text))
    return next((" ".join(why.split()) for why in found), None)


def numbers(claims, replications):
    """What each verdict rests on, folded away."""
    number = math.inf if replications is None else replications
    blocks = [item(f"{one['claim']} {measured(one['measured'], number)}") for one in claims]
    return ":::{dropdown} Measured numbers\n" + "\n".join(blocks) + "\n:::\n"


def measured(found, replications):
    """Measured numbers as code, in which no character is mark-up."""
    return f"`{measured_text(found, replications).replace('`', chr(39))}`" if found else ""


def _listed(values):
    return ", ".join(map(str, values))


def index(kept):
    """Counts of verdicts by experiment, failures first-class."""
    rows, sums, minutes = [], dict.fromkeys(VERDICTS.values(), 0), 0.0
    for name in names():
        link = f"[{name}]({name.split('/')[0]}.md)"
        if name not in kept:
            if name.endswith(RECORDED):
                continue
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

Five papers, with the figures and tables of their results: what the paper says, what was measured,
and whether it holds. The page of each paper says what stands in for data that are not ours to
distribute, and what is left out and why. A claim *fails* on evidence alone: the interval of what
was measured excludes it. It is *open* where the run was too small to tell, or did not include what
the claim is about.

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
    parser.add_argument("--again", action="store_true", help="judge what is kept once more")
    parser.add_argument("--data", type=Path, help="recorded data, for --again")
    options = parser.parse_args(arguments)
    if options.folder is not None:
        keep(options.folder)
    if options.again:
        judge_again(options.data)
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text)


if __name__ == "__main__":
    sys.exit(main())
