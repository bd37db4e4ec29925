"""Results of simulations, for import: `Runs`, files of them, and paired comparisons."""

from .engine.results import Runs, first_of, joined, load, paired_difference

__all__: list[str] = ["Runs", "first_of", "joined", "load", "paired_difference"]
