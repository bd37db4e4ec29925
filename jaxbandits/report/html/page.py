"""The page: sections of each folder's results, in one file that needs no other."""

from collections.abc import Sequence
from pathlib import Path

from ...system.files import replacing
from .. import reading
from ..reading import Results
from .claims import claims
from .facts import environment, what_was_run
from .figures import figures
from .markup import Html, element, join
from .tables import tables

PAGE = "report.html"
# Forbids the page to fetch anything, in case a label is ever taken for mark-up.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
NOTE = (
    "Means are shown with their standard errors, and with the digits that those justify; quantiles "
    "have three digits; intervals of error rates are exact, 95%. A run cut short counts as neither "
    "right nor wrong; a mean over such runs is a lower bound, marked by ≥."
)


def write(folder: Path | str) -> Path:
    """Write `folder/report.html` in one step.

    Args:
      folder: holds `results.nc`, or sub-folders that do (two levels down); `claims.json` beside
        one is shown too.
    Returns:
      The path of the page.
    Raises:
      ValueError: a file is missing, damaged or not of a sweep; nothing is written then.
    """
    text = build(reading.find(folder), Path(folder).resolve().name)
    path = Path(folder) / PAGE
    with replacing(path) as new:
        new.write_bytes(text.encode())
    return path


def build(found: Sequence[Results], name: str) -> Html:
    """The text of the page.

    Args:
      found: `reading.Results` of each folder.
      name: of the folder above them.
    """
    if len(found) == 1:
        title, body = _title(found[0]), _sections(found[0], "run-0", "h2")
    else:
        title = f"Results in {name}"
        body = join(_contents(found), *[_one_of_many(*item) for item in enumerate(found)])
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        Html('<meta charset="utf-8">\n'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">\n'),
        Html('<link rel="icon" href="data:,">\n'),  # or a browser asks the server for one
        element("title", title),
        element("style", Html(style)),
    )
    main = element("main", element("h1", title), body)
    return join(Html("<!DOCTYPE html>\n"), element("html", head, element("body", main), lang="en"))


def _title(results: Results) -> str:
    return results.dataset.attrs.get("experiment", f"Results of {results.name}")


def _contents(found: Sequence[Results]) -> Html:
    links = [
        element("li", element("a", results.name, href=f"#run-{i}"))
        for i, results in enumerate(found)
    ]
    return element("nav", element("ul", *links), aria_label="Contents")


def _one_of_many(i: int, results: Results) -> Html:
    title = f"{results.name}: {results.dataset.attrs.get('experiment', 'a sweep')}"
    content = _sections(results, f"run-{i}", "h3")
    return element("section", element("h2", title), content, id=f"run-{i}")


def _sections(results: Results, prefix: str, level: str) -> Html:
    parts = [("What was run", what_was_run(results))]
    if results.claims:
        parts.append(("Claims", claims(results.claims)))
    parts += [
        ("Figures", element("div", *figures(results, prefix), class_="figures")),
        ("Cells", join(*tables(results), element("p", NOTE, class_="note"))),
        ("Environment", environment(results)),
    ]
    return join(*[join(element(level, title), content) for title, content in parts])
