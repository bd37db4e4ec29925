"""Ticks of logarithmic axes: few round values; imported where matplotlib is.

matplotlib names its minor ticks where an axis is short, and these names touch.
"""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.ticker import Formatter, Locator, MaxNLocator

DIGITS = (1,), (1, 3), (1, 2, 5)  # in each decade, from few ticks to many
LEAST, MOST = 3, 7  # ticks along an axis; fewer decades than `LEAST` are divided by `DIGITS`
BINS = 4  # at most, of a range that is too short for any of `DIGITS`
PLAIN = 1e-3, 1e5  # between these, values are written without a power of ten


class LogTicks(Locator):
    """At every decade, every second one, ..., or at a few values within a decade.

    >>> LogTicks().tick_values(8.0, 1500.0)
    [10.0, 100.0, 1000.0]
    >>> LogTicks().tick_values(300.0, 4000.0)
    [300.0, 1000.0, 3000.0]
    >>> LogTicks().tick_values(1100.0, 1700.0)
    [1200.0, 1400.0, 1600.0]
    """

    def __call__(self) -> list[float]:
        """The ticks of the axis as it is."""
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Ticks between two values above 0, in any order."""
        low, high = sorted((float(vmin), float(vmax)))
        if not 0 < low < high:
            return [low]
        for digits in DIGITS:
            found = _within(digits, low, high)
            if len(found) >= LEAST:
                return found[:: math.ceil(len(found) / MOST)].tolist()
        found = np.asarray(MaxNLocator(BINS, steps=[1, 2, 5, 10]).tick_values(low, high))
        return found[(low <= found) & (found <= high)].tolist()


class LogWords(Formatter):
    r"""All ticks of an axis as plain numbers or, far from 1, all by powers of ten.

    >>> LogWords().format_ticks([300.0, 1000.0])
    ['300', '1000']
    >>> LogWords().format_ticks([1e5, 3e5, 1e6])
    ['$10^{5}$', '$3\\times10^{5}$', '$10^{6}$']
    """

    def __call__(self, x: float, pos: int | None = None) -> str:
        """One value, as the pointer of an interactive figure shows it."""
        return f"{x:g}"

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """What stands at the ticks."""
        shown = np.asarray(values, float)
        low, high = PLAIN
        plain = bool(((low <= shown) & (shown <= high)).all())
        return [f"{x:g}" if plain else _power(x) for x in shown.tolist()]


def _within(digits: Sequence[int], low: float, high: float) -> np.ndarray:
    """The values with these first digits from `low` to `high`, exact as Python reads them."""
    exponents = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    found = np.array([float(f"{digit}e{k}") for k in exponents for digit in digits])
    return found[(low <= found) & (found <= high)]


def _power(x: float) -> str:
    mantissa, exponent = f"{x:.5e}".split("e")
    short = f"{float(mantissa):g}"
    power = f"10^{{{int(exponent)}}}"
    return f"${power}$" if short == "1" else rf"${short}\times{power}$"
