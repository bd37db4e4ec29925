"""The pages on algorithms, from docstrings and stored results: `python -m benchmarks.pages`.

It writes `docs/algorithms/index.md` and `docs/algorithms/deviations.md`, the table of members of
each family's page, what the command `list` shows, and every figure in the text of a page that has
a mark of its own:

    <!-- f: FILE / COLUMN=VALUE; COLUMN=VALUE / COLUMN / FORMAT -->12<!-- /f -->

FILE is the start of a file's name in `benchmarks/results` (`algorithms` for `algorithms-cpu.json`),
the second part chooses a row ("-": there are none), and COLUMN is a path within it. The formats are
those of `FORMATS`; those that begin with ± turn a standard error into half of a 95% interval. A
page that does not agree with its sources fails `tests/test_algorithm_pages.py`.
"""

import functools
import inspect
import json
import re
import sys
import textwrap
from pathlib import Path

from jaxbandits import algorithms
from jaxbandits.cli import catalogue
from jaxbandits.engine import compile_times
from jaxbandits.intervals import binomial_interval, half_width
from jaxbandits.signatures import name_of

from .algorithms import problems

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"
INDEX, DEVIATIONS = Path("algorithms/index.md"), Path("algorithms/deviations.md")
DELTA = 0.05  # of the guarantees' runs

# Title and members of each family's page.
FAMILIES = {
    "gap_based": ("Gap-based algorithms", ("lingape",)),
    "elimination": (
        "Elimination and static designs",
        ("rage", "xy_static", "xy_adaptive", "xy_oracle", "alba", "rage_glm"),
    ),
    "games": (
        "Track-and-stop, games and top two",
        ("top_two", "lazy_track_and_stop", "lin_game", "frank_wolfe_sampling"),
    ),
    "top_m": ("The m best arms", ("m_lingape", "lin_gifa", "lucb", "ugape")),
    "fixed_budget": (
        "Fixed budget",
        ("gse", "sequential_halving", "od_linbai", "peace", "bayes_gap"),
    ),
    "linear_regret": (
        "Regret in linear models",
        ("lin_ucb", "lin_ts", "epsilon_greedy", "uniform"),
    ),
    "glm_regret": (
        "Regret in generalised linear models",
        ("glm_tsl", "glm_fpl", "ucb_glm", "glm_ucb", "evill", "log_phe", "ofu_glb", "ofu_ecolog"),
    ),
    "contextual": ("Contextual problems with networks", ("deep_fpl", "deep_fl", "rep_glm_fpl")),
    "wrappers": ("Wrappers", ("at_budget", "watched")),
}
# The row of `algorithms-cpu.json` that stands for an algorithm, where its name is another.
MEASURED_AS = {"at_budget": "at_budget, lingape", "watched": "watched, glm_tsl"}
# Where an algorithm is measured on several problems, the first of these counts.
LINEAR = ("lin_ucb", "lin_ts")

# Authors, "title", where and when; what follows (an equation, an address) is left out.
PAPER = re.compile(r'^(?P<authors>[^"]+), "[^"]+", (?P<where>.*?\b(?:19|20)\d{2})')
FIGURES = ("Measured, ± 95%", "Pulls", "CPU time of a replication, of a pull")
MEMBERS = "<!-- members -->\n", "<!-- end of members -->\n"
FIGURE = re.compile(r"<!-- f: (?P<what>.*?) -->(?P<text>.*?)<!-- /f -->", re.DOTALL)
WITHOUT = "Arms without features: "
WRITTEN = "<!-- Written by `python -m benchmarks.pages`; changes here are lost. -->\n\n"


def section(function, name):
    """The text of a section of a docstring, in one line; raises if it has none."""
    text = inspect.getdoc(function) or ""
    found = re.search(rf"^{name}:\n((?:[ ]+.*\n?)+)", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"the docstring of {function.__name__} has no section {name}")
    return " ".join(found[1].split())


def paper(function):
    """Authors, venue and year of the paper of an algorithm."""
    reference = section(function, "Reference")
    found = PAPER.match(reference)
    return f"{found['authors']}, {found['where']}" if found else reference.split(". ")[0]


def family_of(name):
    """The page of an algorithm, None where it is not on one."""
    return next((page for page, (_, members) in FAMILIES.items() if name in members), None)


def others():
    """Algorithms without a family's page."""
    return [name for name in sorted(algorithms.__all__) if family_of(name) is None]


@functools.cache
def stored(start):
    """The content of a file of results: its rows, and all of it."""
    path = min(RESULTS.glob(f"{start}*.json"), key=lambda found: len(found.name))
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = content if isinstance(content, list) else content.get("rows")
    return rows, content


def measured(problem, algorithm):
    """A row of `algorithms-cpu.json`, with what follows from it."""
    rows, content = stored("algorithms")
    row = next((r for r in rows if (r["problem"], r["algorithm"]) == (problem, algorithm)), None)
    if row is None:
        raise ValueError(f"algorithms-cpu.json has no row of {algorithm!r} on {problem!r}")
    row |= {"milliseconds": 1e3 * row["cpu_seconds_a_run"]}
    bound = content["problems"][problem]["lower_bound"]
    if "errors" in row:
        row |= {"error_rate": row["errors"] / row["replications"]}
    if bound is not None:
        row |= {"ratio": row["pulls_mean"] / bound, "lower_bound": bound}
    return row


def row_of(name):
    """`(problem, row)` of an algorithm, on the first problem that it is measured on."""
    wanted = MEASURED_AS.get(name, name)
    rows = [r["problem"] for r in stored("algorithms")[0] if r["algorithm"] == wanted]
    if not rows:
        raise LookupError(f"algorithms-cpu.json has no row of {wanted!r}")
    problem = "regret, linear" if name in LINEAR else rows[0]
    return problem, measured(problem, wanted)


def percent(share):
    """A share in percent, with two digits that count."""
    return f"{100 * share:.2g}%" if share < 0.0995 else f"{100 * share:.0f}%"


def errors_of(name):
    """Wrong answers of an algorithm: those of `guarantees-cpu.json` where it is there."""
    for row in stored("guarantees")[0]:
        plain = not set(row["options"]) - {"m", "v0", "budget"}
        if (row["algorithm"], row["delta"]) == (name, DELTA) and plain:
            found = row["itself"]
            return found["errors"], found["replications"]
    row = row_of(name)[1]
    return row["errors"], row["replications"]


def result_of(name):
    """Wrong answers, or the regret, or the reward, with a 95% interval."""
    row = row_of(name)[1]
    number = row["replications"]
    if "regret" in row:
        return f"regret {row['regret']:.1f} ± {half_width(row['regret_se'], number):.1f}"
    if "average_reward" in row:
        width = half_width(row["average_reward_se"], number)
        return f"reward {row['average_reward']:.3f} ± {width:.3f}"
    errors, number = errors_of(name)
    low, high = (percent(share) for share in binomial_interval(errors, number))
    return f"{errors:,} of {number:,} wrong ({low} to {high})"


def pulls_of(name):
    """Mean pulls, as a multiple of the lower bound where it is known."""
    problem, row = row_of(name)
    if "pulls_mean" not in row:
        rounds = stored("algorithms")[1]["problems"][problem]["horizon"]
        return f"{rounds:,} rounds"
    if "ratio" in row:
        return f"{row['ratio']:.1f} times the bound"
    return f"{row['pulls_mean']:,.0f}"


def time_of(name):
    """CPU time of a replication and of a pull."""
    row = row_of(name)[1]
    replication, pull = row["milliseconds"], row["cpu_microseconds_a_draw"]
    return f"{_short(replication)} ms, {_short(pull)} µs"


def _short(number):
    """Two digits that count, without an exponent."""
    return f"{number:,.0f}" if number >= 9.95 else f"{float(f'{number:.2g}'):.10g}"


def assumptions(name):
    """`(rewards, what becomes of arms without features)`."""
    text = section(getattr(algorithms, name), "Assumptions").rstrip(".")
    rewards, marked, without = text.partition(f". {WITHOUT}")
    if not marked:
        raise ValueError(f"Assumptions of {name} must end with {WITHOUT!r} and what they are")
    return rewards, without


def cells_of(name, page=None):
    """The columns of an algorithm; `page` is the page whose table it is, None for the index."""
    function, family = getattr(algorithms, name), family_of(name)
    rewards, without = assumptions(name)
    try:
        figures = result_of(name), pulls_of(name), time_of(name)
    except LookupError:
        figures = "not yet", "", ""
    return {
        "Constructor": f"`{name}`" if page or family is None else f"[`{name}`]({family}.md)",
        "Setting": section(function, "Setting").rstrip("."),
        "Rewards": rewards,
        "Arms without features": without,
        "Guarantee": section(function, "Guarantee").rstrip("."),
        "Cost": section(function, "Cost").rstrip("."),
        **dict(zip(FIGURES, figures, strict=True)),
        "Paper": paper(function),
    }


def table(rows):
    """Rows of equal columns as a table of Markdown."""
    lines = [tuple(rows[0]), ("---",) * len(rows[0]), *(tuple(row.values()) for row in rows)]
    return "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in x) + " |\n" for x in lines
    )


def index():
    """The page with one table of all algorithms."""
    filed = [name for _, members in FAMILIES.values() for name in members]
    rows = [cells_of(name) for name in (*filed, *others())]
    pages = "".join(f"- [{title}]({page}.md)\n" for page, (title, _) in FAMILIES.items())
    tree = "".join(f"{page}\n" for page in (*FAMILIES, "deviations"))
    return (
        "# Algorithms\n\n"
        + WRITTEN
        + INTRODUCTION
        + "\n"
        + pages
        + "- [Deviations from the papers]"
        "(deviations.md)\n\n" + table(rows) + "\n" + LEGEND + problem_list() + "\n"
        "```{toctree}\n:hidden:\n\n" + tree + "```\n"
    )


INTRODUCTION = textwrap.dedent("""\
    The table has all constructors of `jaxbandits`, grouped by family. A name leads to the page of
    its family, which explains the idea, the options and the limits. The columns about setting,
    rewards, guarantee, cost and paper come from the docstrings, and all figures from stored
    measurements. [Which algorithm?](../which_algorithm.md) compares the figures.
    """)

LEGEND = textwrap.dedent("""\
    What the columns mean:

    - *Rewards*: the model under which the algorithm is defined and, where it has a guarantee, the
      guarantee is proved.
    - *Arms without features*: "as unit vectors" means that a problem without features is the
      special case of K unit vectors, which `jaxbandits.instances.bernoulli(means=...)` makes
      (it stores zeros as its theta, and an algorithm that needs a bound on the norm must be given
      `theta_norm`); "features are not used" means that the algorithm was made for
      such problems.
    - *Cost*: the order of the number of products, with K arms, M targets (the arms, unless others
      are given) and d dimensions. It says how the time grows; how long a replication takes
      depends on its number of rounds, which follows from the gaps.
    - *Measured, ± 95%*: wrong answers with their exact 95% interval (Clopper and Pearson). Where
      they are stored, 20,000 replications on small instances with delta = 0.05, some with the ridge
      v0 = 0.1, are counted (`benchmarks/results/guarantees-cpu.json`), else the replications
      described below. For the other algorithms it is the regret, or the average reward of a round;
      the number after ± is half of a 95% interval (Student's).
    - *Pulls*: the mean number in a replication, or its ratio to the lower bound of any algorithm
      with the same delta (`jaxbandits.theory.pull_lower_bound`), in the replications described
      below.
    - *CPU time*: of one replication and of one pull, many replications side by side with
      `engine="xla"`, without compiling.

    """)


def problem_list():
    """On what the algorithms were played, and on which machine."""
    _, content = stored("algorithms")
    machine = content["machine"]
    lines = ["The problems of `benchmarks/results/algorithms-cpu.json`:\n"]
    for name, problem in content["problems"].items():
        facts = [problem["described"]]
        if problem["delta"] is not None:
            facts.append(f"delta = {problem['delta']}")
        numbers = {r["replications"] for r in stored("algorithms")[0] if r["problem"] == name}
        facts.append(f"{max(numbers):,} replications")
        lines.append(f"- *{name}*: {'; '.join(facts)}.")
    lines.append(
        f"\nMeasured on {machine['processor']} ({machine['vectors']}), JAX "
        f"{machine['jax']}, {machine['date']}, by `python -m benchmarks.algorithms`. Other "
        "programs ran on the machine at the same time; CPU time is that of the process alone."
    )
    return "\n".join(lines) + "\n"


def deviations():
    """The page with the sections `Deviations` of all docstrings."""
    text = (
        "# Deviations from the papers\n\n"
        + WRITTEN
        + textwrap.dedent("""\
        Where a program departs from its paper, its docstring says so. This page collects these
        sections. "The published program" is the authors' own.
        """)
    )
    for page, (title, members) in FAMILIES.items():
        text += f"\n## {title}\n"
        text += "".join(_deviations(name, f" See [{title}]({page}.md).") for name in members)
    if others():
        text += "\n## Others\n" + "".join(_deviations(name, "") for name in others())
    return text


def _deviations(name, link):
    function = getattr(algorithms, name)
    body = textwrap.fill(_prose(section(function, "Deviations")), 100, **UNBROKEN)
    return f"\n### `{name}`\n\n{paper(function)}.{link}\n\n{body}\n"


UNBROKEN = {"break_long_words": False, "break_on_hyphens": False}


def _prose(text):
    """Escape what Markdown would read as marks, outside of code."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_<>\[\]$|])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


FORMATS = {
    "%": percent,
    ",": lambda x: f"{x:,.0f}",
    "0": lambda x: f"{x:.0f}",
    "1": lambda x: f"{x:.1f}",
    "2": lambda x: f"{x:.2f}",
    "3": lambda x: f"{x:.3f}",
    "short": _short,
    "us": lambda seconds: _short(1e6 * seconds),
}


def figure(what):
    """The text of a figure; see the module."""
    start, wanted, column, form = what.split(" / ")
    value = chosen = _chosen(what, start, wanted)
    for key in column.split("."):
        value = value[int(key) if isinstance(value, list) else key]
    if form.startswith("±"):
        value, form = half_width(value, _replications(chosen, column)), form[1:]
    return FORMATS[form](value)


def _replications(row, column):
    """How many replications a standard error of a row is computed from."""
    side = column.split(".")[1] if "runs" in row else None  # of two programs
    return row["runs"][side] if side else row["replications"]


def _chosen(what, start, chosen):
    """The row of a file of results that a mark chooses; with "-" all of the file."""
    rows, content = stored(start)
    if chosen == "-":
        return content
    wanted = dict(part.split("=", 1) for part in chosen.split("; "))
    if start == "algorithms":
        return measured(**wanted)
    rows = [row for row in rows if all(str(row[k]) == v for k, v in wanted.items())]
    if len(rows) != 1:
        raise ValueError(f"{what!r} must choose one row, it chooses {len(rows)}")
    return rows[0]


def with_figures(text):
    """The text with all its figures as they are stored."""
    return FIGURE.sub(lambda x: f"<!-- f: {x['what']} -->{figure(x['what'])}<!-- /f -->", text)


def with_members(text, page):
    """The text of a family's page with the table of its members between the two marks."""
    begin, end = MEMBERS
    before, rest = text.split(begin)
    shown = ("Constructor", "Setting", "Guarantee", *FIGURES)
    rows = [{k: cells_of(name, page)[k] for k in shown} for name in FAMILIES[page][1]]
    return before + begin + table(rows) + end + rest.split(end)[1]


def pages():
    """`{path under docs: text}` of all pages that this module writes."""
    found = {INDEX: index(), DEVIATIONS: deviations()}
    for page in FAMILIES:
        path = Path(f"algorithms/{page}.md")
        found[path] = with_members(with_figures((DOCS / path).read_text(encoding="utf-8")), page)
    for path in (Path("which_algorithm.md"), Path("peers.md")):
        found[path] = with_figures((DOCS / path).read_text(encoding="utf-8"))
    return found


def compile_seconds():
    """The text of `compile_times.STORED`: the longest first call of each constructor by engine."""
    known, found = problems(), {}
    for row in stored("compiling-")[1]["results"]:
        build = known[row["problem"]].algorithms[row["algorithm"]]
        seconds = found.setdefault(row["engine"], {})
        name = name_of(build)
        seconds[name] = max(row["cold_wall"], seconds.get(name, 0.0))
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def main():
    """Write the pages, and what the package holds of the algorithms' names and compile times."""
    compile_times.STORED.write_text(compile_seconds(), encoding="utf-8")
    catalogue.STORED.write_text(catalogue.own(), encoding="utf-8")
    for path, text in pages().items():
        file = DOCS / path
        old = file.read_text(encoding="utf-8") if file.exists() else None
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(f"{path}: {'unchanged' if text == old else 'rewritten'}")


if __name__ == "__main__":
    sys.exit(main())
