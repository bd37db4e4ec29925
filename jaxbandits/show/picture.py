"""The class of the figures that are returned; imported only where one is made."""

import sys
from typing import Any

import matplotlib
import matplotlib.figure

# What journals ask for: letters that can be searched and edited, in files of vector graphics.
EMBEDDED: dict[Any, Any] = {"pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "none"}


class Figure(matplotlib.figure.Figure):
    """A figure of matplotlib whose files hold letters as text, and that a notebook shows once."""

    def savefig(self, *args: Any, **options: Any) -> None:
        """Write a file; see `matplotlib.figure.Figure.savefig`.

        Fonts are embedded as TrueType in PDF and PostScript, and SVG has text, unless `rcParams`
        say otherwise.
        """
        usual = matplotlib.rcParamsDefault
        unset = {k: v for k, v in EMBEDDED.items() if matplotlib.rcParams[k] == usual[k]}
        with matplotlib.rc_context(unset):
            super().savefig(*args, **options)

    def _ipython_display_(self) -> None:
        """Display the figure as any is, and keep pyplot from showing it again below the cell."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None and "inline" in matplotlib.get_backend():
            pyplot.close(self)
        raise NotImplementedError  # IPython goes on with its other ways
