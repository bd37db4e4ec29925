"""Bandit instances: built from arrays, named in the papers, or read from local files."""

from ..signatures import publish
from .contextual import Labelled, digits, images, labelled
from .data.local_files import automobile, drug_repurposing, electric_motor
from .instance import (
    Instance,
    bernoulli,
    glm,
    linear,
    recorded,
    tabular,
)
from .news import clicks, yahoo_r6a
from .papers import (
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
from .screening import boolean_drugs, boolean_network, drugs
from .simulators import simulated
from .stress import stressed
from .synthetic import cars, motor

__all__ = [
    "Instance",
    "Labelled",
    "automobile",
    "bernoulli",
    "boolean_drugs",
    "boolean_network",
    "canonical",
    "cars",
    "classic_top_m",
    "clicks",
    "corner",
    "digits",
    "drug_repurposing",
    "drugs",
    "electric_motor",
    "glm",
    "images",
    "labelled",
    "linear",
    "logistic_cube",
    "moderate_gaps",
    "motor",
    "multivariate",
    "recorded",
    "simulated",
    "soare",
    "sphere",
    "stressed",
    "tabular",
    "transductive",
    "yahoo_r6a",
]

publish(globals())
