"""Templates of the page. Text is escaped unless a function here has made it mark-up."""

import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...system.extras import needed_by

if TYPE_CHECKING:
    from jinja2 import Environment

# Characters that no page may hold: control characters but tab and line feed, halves of pairs.
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def cleaned(value: Any) -> Any:
    """What a template shows of a value: text without forbidden characters, mark-up as it is."""
    if hasattr(value, "__html__"):
        return value
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", str(value))


@functools.cache
def environment() -> "Environment":
    """The templates of this folder; each expression in them is cleaned and escaped."""
    with needed_by("a report"):
        import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        finalize=cleaned,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(template: str, **values: Any) -> str:
    """The text of a template of this folder."""
    return environment().get_template(template).render(**values)
