"""Formulas, typeset by KaTeX in the browser; its files are in `_static/katex`, for use offline."""

from docutils import nodes

FILES = ("katex/katex.min.js", "formulas.js")
STYLE = "katex/katex.min.css"


def _inline(translator, node):
    tex = translator.encode(node.astext())
    translator.body.append(f'<span class="formula">{tex}</span>')
    raise nodes.SkipNode


def _display(translator, node):
    if node["number"]:
        translator.body.append(f'<span class="eqno">({node["number"]})</span>')
    tex = translator.encode(node.astext())
    translator.body.append(f'<div class="formula">{tex}</div>\n')
    raise nodes.SkipNode


def _load(app, pagename, templatename, context, doctree):
    """Only pages with formulas fetch what draws them."""
    formulas = (nodes.math, nodes.math_block)
    if doctree and next(doctree.findall(lambda node: isinstance(node, formulas)), None):
        app.add_css_file(STYLE)
        for name in FILES:
            app.add_js_file(name, loading_method="defer")


def setup(app):
    app.add_html_math_renderer("katex", (_inline, None), (_display, None))
    app.config.html_math_renderer = "katex"
    app.connect("html-page-context", _load)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
