"""What the docstrings of this package need beyond the rules of Google's style."""

import importlib
import re
from pkgutil import iter_modules

FIELDS = ("attribute", "data", "property")  # what has a comment or a docstring of one type
LABEL = re.compile(r"^  (\w[\w, ]*): (.*)$")


def as_list(lines):
    """The section Composes with an item for each `jit, vmap: text`."""
    found, inside = [], None  # None: not in that section; False: not yet in an item
    for line in lines:
        if not line.startswith(" "):
            inside = False if line == "Composes:" else None
        elif inside is not None and (label := LABEL.match(line)):
            line, inside = f"  * {label[1]}: {label[2]}", True
        elif inside:
            line = f"    {line.strip()}"
        found.append(line)
    return found


def without_type(lines):
    """A comment on a field, of which no part is a type.

    Napoleon takes what stands before a colon in the first line for the type. A colon that ends the
    line is text to it.
    """
    before, colon, after = lines[0].partition(": ") if lines else ("", "", "")
    return [f"{before}:", after, *lines[1:]] if colon else lines


def comment_on(name):
    """The comment on a constant, which stands in the module of the package that defines it.

    autodoc looks for it where the name is imported, and takes the docstring of its type instead.
    """
    from sphinx.pycode import ModuleAnalyzer

    package, _, constant = name.rpartition(".")
    for module in iter_modules(importlib.import_module(package).__path__, f"{package}."):
        comments = ModuleAnalyzer.for_module(module.name).find_attr_docs()
        if ("", constant) in comments:
            return list(comments["", constant])
    raise ValueError(f"{name}: a public constant needs a comment that begins with `#:`")


def mended(app, what, name, value, options, lines):
    if what == "data" and isinstance(value, int | float | str):
        lines[:] = comment_on(name)
    lines[:] = without_type(lines) if what in FIELDS else as_list(lines)


def setup(app):
    # Before napoleon, which turns sections into lists of fields.
    app.connect("autodoc-process-docstring", mended, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
