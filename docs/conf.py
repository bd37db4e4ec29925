"""Settings of the documentation: `make docs` builds it into `docs/_build/html`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_extensions")]

import jaxbandits  # noqa: E402

project = "jaxbandits"
author = "the authors of jaxbandits"
copyright = author
version = release = jaxbandits.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "docstrings",
    "mathematics",
    "reference_pages",
    "signatures",
    "tutorials",
]
exclude_patterns = ["_build", "_extensions", "**.ipynb_checkpoints"]
suppress_warnings = ["config.cache"]  # functions in this file are not pickled
if tags.has("page"):  # `make docs PAGE=...`: one page, whose links lead nowhere
    slow = ("myst_nb", "reference_pages", "sphinx_click", "tutorials")
    extensions = ["myst_parser", *(name for name in extensions if name not in slow)]
    suppress_warnings += ["myst.xref_missing", "toc"]
    html_use_index = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
# `python -m benchmarks.notebooks` stores the outputs; `make docs EXECUTE=1` plays them anew.
nb_execution_mode = "off"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

default_role = "code"  # docstrings write code between single back quotes
autosummary_generate = False  # the tables need no pages of their own: `reference_pages`
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = [
    "Assumptions",
    "Composes",
    "Deviations",
    "Guarantee",
    "Cost",
    "Reference",
    "Setting",
]
python_maximum_signature_line_length = 90
python_use_unqualified_type_names = True

html_theme = "sphinx_book_theme"
html_title = "jaxbandits"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_theme_options = {
    "show_toc_level": 2,
    "show_navbar_depth": 1,
    "collapse_navbar": True,  # all pages of the reference on each page would take half the build
    "navigation_with_keys": False,
    "navbar_persistent": [],
    "home_page_in_toc": True,
    "use_download_button": False,
    "article_header_start": ["toggle-primary-sidebar"],
}
html_show_sourcelink = False
html_copy_source = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
