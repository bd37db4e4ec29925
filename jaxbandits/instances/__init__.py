"""Problems to play: built from arrays, named in the papers, or read from local files."""

from .base import Instance, bernoulli, glm, linear, recorded, tabular
from .data import automobile, drug_repurposing
from .named import (
    canonical,
    classic_top_m,
    corner,
    logistic_cube,
    moderate_gaps,
    multivariate,
    soare,
    sphere,
    transductive,
)
from .news import clicks, yahoo_r6a

__all__ = [
    "Instance",
    "automobile",
    "bernoulli",
    "canonical",
    "classic_top_m",
    "clicks",
    "corner",
    "drug_repurposing",
    "glm",
    "linear",
    "logistic_cube",
    "moderate_gaps",
    "multivariate",
    "recorded",
    "soare",
    "sphere",
    "tabular",
    "transductive",
    "yahoo_r6a",
]
