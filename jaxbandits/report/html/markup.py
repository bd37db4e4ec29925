"""HTML by small functions: text is escaped unless it is mark-up already."""

import html
import re
from collections.abc import Iterable, Sequence

# Characters that no page may hold: control characters but tab and line feed, halves of pairs.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def escape(text: object) -> str:
    """Text that is no mark-up anywhere in a page, in an attribute too."""
    return html.escape(FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(text)))


class Html(str):
    """Mark-up, which `element` leaves as it is."""


def element(name: str, *children: object, **attributes: str) -> Html:
    """An element; `class_` stands for `class`, `aria_label` for `aria-label`.

    Args:
      name: of the tag.
      children: `Html`, or anything else as text.
      attributes: values are text.
    Returns:
      `Html`.
    """
    facts = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
    )
    return Html(f"<{name}{facts}>{join(*children)}</{name}>")


def join(*children: object) -> Html:
    """The children one after the other, text escaped."""
    return Html("".join(c if isinstance(c, Html) else escape(c) for c in children))


def table(
    caption: str, header: Sequence[str], lines: Iterable[Sequence[str]], *, num_labels: int
) -> Html:
    """A table that scrolls inside its own box.

    Args:
      caption: what it shows.
      header: names of the columns.
      lines: cells of each row, in the order of the header.
      num_labels: how many columns from the left name the row.
    """
    head = element(
        "tr",
        *[element("th", name, scope="col", class_="label") for name in header[:num_labels]],
        *[element("th", name, scope="col") for name in header[num_labels:]],
    )
    rows = [
        element(
            "tr",
            *[element("th", cell, scope="row") for cell in line[:num_labels]],
            *[element("td", cell) for cell in line[num_labels:]],
        )
        for line in lines
    ]
    whole = element(
        "table",
        element("caption", element("span", caption)),
        element("thead", head),
        element("tbody", *rows),
    )
    # Reached by the keyboard too, because it may scroll.
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """A list of `(name, text)`."""
    items = [join(element("dt", name), element("dd", text)) for name, text in pairs]
    return element("dl", *items)
