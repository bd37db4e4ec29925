"""Problems to play: built from arrays, named in the papers, or read from local files."""

from .base import Instance, bernoulli, glm, linear, recorded, tabular
from .data import automobile, drug_repurposing
from .named import canonical, classic_top_m, logistic_cube, soare, sphere, transductive

__all__ = [
    "Instance",
    "automobile",
    "bernoulli",
    "canonical",
    "classic_top_m",
    "drug_repurposing",
    "glm",
    "linear",
    "logistic_cube",
    "recorded",
    "soare",
    "sphere",
    "tabular",
    "transductive",
]
