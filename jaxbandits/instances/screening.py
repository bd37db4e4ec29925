"""Drugs screened on patients: a synthetic table, and simulators on Boolean networks of genes."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..kernels import selection
from ..kernels.linalg import spd
from ..parameters import Normal, choice, require
from ..precision import double, floats, numpy_for
from ..system.data_files import given_path
from ..types import Key, Rows, Table
from .data.local_files import find_file, named_table
from .gene_networks import (
    RULES,
    SWEEPS,
    Attractor,
    Network,
    attractor,
    cosine,
    filled,
)
from .genes import read_calls, read_network
from .instance import Instance, recorded
from .options import Pair, checked
from .simulator_means import DRAWS
from .simulators import Draws, SizeOfSet, check_draws, simulated

SOURCE: str = "it is part of the data of Reda, Kaufmann and Delahaye-Duriez (2021)"
# Means of the ten drugs of the paper, whose features and rewards we may not distribute.
MEANS: tuple[float, ...] = (
    *(0.49150, 0.48488, 0.48174, 0.47798, 0.46501),
    *(0.38178, 0.38260, 0.39274, 0.39677, 0.39856),
)
DIM: int = 71  # of features
COMMON: float = 0.25  # the weight of the part that all features share
PATIENTS: int = 18
LOWEST: float = 0.30  # score
HIGHEST: float = 0.54
PATIENT_STD: float = 0.035
SHARE: float = 0.6  # of a patient's effect in a score
NOISE_STD: float = 0.035
# Of the network that was inferred for epilepsy.
GENES: int = 101
REGULATED: int = 54  # genes with regulators
EDGES: int = 84  # regulations
NEGATIVE: int = 5
MOST: int = 5  # regulators of a gene
TARGET: int = 50  # genes
# Genes that are determined, least and most.
OF_PATIENT: tuple[int, int] = (18, 29)
OF_DRUG: tuple[int, int] = (10, 32)

Dynamics: TypeAlias = Annotated[str, choice(*SWEEPS)]


class Profile(NamedTuple):
    """Which genes are known, and which of these are active."""

    known: Bool[Table, "*S G"]
    active: Bool[Table, "*S G"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Screen:
    """A simulator of the effect of a drug on the genes of a random patient."""

    network: Network
    patients: Profile  # [P, G]
    drugs: Profile  # [K, G]
    target: Profile  # [G] the state that a good drug leads to
    dynamics: str = dataclasses.field(default="asynchronous", metadata={"static": True})

    def start(self, key: Key, arm: Int[Array, ""]) -> Profile:
        """A uniformly random patient, overwritten by the genes of the drug: [G]."""
        number = self.patients.known.shape[0]
        index = (jax.random.uniform(key) * number).astype(int)
        row = partial(selection.at, arm=jnp.minimum(index, number - 1))
        patient = jax.tree.map(row, self.patients)
        drug = jax.tree.map(partial(selection.at, arm=arm), self.drugs)
        known = patient.known | drug.known
        return Profile(known, jnp.where(drug.known, drug.active, patient.active))

    def outcome(self, key: Key, arm: Int[Array, ""]) -> Attractor:
        """The final state of the network; undetermined genes begin at random."""
        patient_key, coins_key, order_key = jax.random.split(key, 3)
        start = filled(coins_key, *self.start(patient_key, arm))
        return attractor(self.network, order_key, start, self.dynamics)

    def reward(self, key: Key, arm: Int[Array, ""]) -> Float[Array, ""]:
        """Cosine between that state and the target, in [0, 1]."""
        return cosine(self.outcome(key, arm).state, *self.target)


@checked
def boolean_drugs(
    path: Path | str,
    *,
    dynamics: Dynamics = "asynchronous",
    means: Rows | None = None,
    noise_var: Normal = 0.25,
    draws: Draws = DRAWS,
    m: SizeOfSet = 1,
) -> Instance:
    """Ten drugs on a Boolean network of 101 genes, simulated for each pull (Reda et al., 2021).

    A pull draws one of 18 patients, overwrites the patient's known genes by those that the drug
    determines, fills the others with fair coins, updates the network until nothing changes and
    scores that state by its cosine with the state of healthy people on 50 genes. Means are
    estimated from draws, with a standard error of about `0.04 / sqrt(draws)`. They are exactly
    linear in the 71 features, and `theta` is the solution of least norm; it and `theta_norm` are
    those of the estimates.

    Args:
      path: a folder with `features_71x10.csv`, `grn/report_model1_solution.net` (see
        `read_network`) and `rewards_cosine_10drugs_18samples.txt` (see `read_calls`), where the
        patients, the drugs and the target are taken from.
      dynamics: "asynchronous": genes one after the other, in a new random order for each of at
        most 200 sweeps; every simulation that was checked reached a fixed state. "synchronous":
        all genes at once, for at most 40 steps; most simulations cycle.
      means: `[10]` of the drugs, where they are known.
      noise_var: the variance given to the learner.
      draws: simulations of each drug for its mean, or "until settled", as in `simulated`.
      m: how many best drugs are sought: draws have to settle which these are, as in `simulated`.
    Raises:
      ValueError: a missing or malformed file, files that do not fit each other, or best drugs that
        are not settled.
    Deviations:
      The paper's solver searches for some fixed state that can be reached, and it is not
      documented which one it returns. Here the unknown genes and the order of updates are random.
      Fixed states, masks and scores are those of the paper, but their frequencies are not: all
      drugs have similar scores, and the good ones are not separated from the bad ones. The
      paper's own figure uses its table: `drug_repurposing`.
    Reference:
      C. Reda, E. Kaufmann, A. Delahaye-Duriez, "Top-m identification for linear bandits", AISTATS
      2021, appendix B. https://arxiv.org/abs/2103.10070

    >>> boolean_drugs("nowhere")
    Traceback (most recent call last):
        ...
    ValueError: path: no file nowhere; it is part of the data of Reda, ...
    """
    folder = given_path(path)
    require(not folder.is_file(), f"path must be a folder, got the file {path}")
    file = find_file(path, "features_71x10.csv", SOURCE)
    names, features = named_table(file, labelled=True)
    genes = read_network(find_file(folder, "grn/report_model1_solution.net", SOURCE))
    log = find_file(folder, "rewards_cosine_10drugs_18samples.txt", SOURCE)
    patients, drugs, target = _profiles(log, names, genes.names)
    screen = Screen(genes.network, patients, drugs, target, dynamics)
    return _with_theta(
        simulated(features.T, screen, means=means, noise_var=noise_var, draws=draws, m=m)
    )


# Folders below that of its path, whose files are part of what a sweep knows a cell by.
boolean_drugs.reads_below = ("grn",)  # ty: ignore[missing-attribute] functions can have any


def _profiles(file, drugs, genes):
    """Patients, drugs in this order, and target, from a log of each drug on each patient."""
    calls = read_calls(file, genes)
    rows = [[i for i, name in enumerate(calls.drugs) if name == drug] for drug in drugs]
    number = len(calls.drugs) // len(drugs)
    whole = len(calls.drugs) == number * len(drugs) and all(len(row) == number for row in rows)
    require(whole, f"path: {file} does not try each of {', '.join(drugs)} on the same patients")
    rows = np.array(rows)
    # A patient is the same in all rows of the table [K, P, G], a drug in all columns, the target in
    # both.
    tables = calls.initial[rows], calls.drug[rows].swapaxes(0, 1), calls.target[None, rows.ravel()]
    tables = (*tables[:2], tables[2].swapaxes(0, 1))
    for name, table in zip(("patient", "drug", "target"), tables, strict=True):
        require((table == table[0]).all(), f"path: {file} changes a {name} from call to call")
    patients, signatures, target = (Profile(t[0] >= 0, t[0] == 1) for t in tables)
    return patients, signatures, Profile(target.known[0], target.active[0])


@double
def _with_theta(instance):
    """The instance with the theta of least norm that gives its means, for independent arms."""
    arms = jnp.asarray(instance.arms)
    weights = spd.inverse(arms @ arms.T).matrix @ jnp.asarray(instance.means)
    theta = arms.T @ weights
    norm = jnp.sqrt(jnp.maximum(0.0, (theta**2).sum()))
    return dataclasses.replace(instance, theta=theta, theta_norm=norm)


@checked
@double
def drugs(key: Key, *, noise_var: Normal = 0.25) -> Instance:
    """Stand-in for ten drugs scored on eighteen patients, with the means of Reda et al. (2021).

    Features are ten unit vectors in R^71: normal ones plus a common one of weight 1/4. Drug a
    scores `mean_a + 0.6 patient_i + noise_ai` on patient i, normal with standard deviations of
    0.035, clipped to [0.30, 0.54] and shifted to the mean of the paper's drug. A pull draws a
    patient. The first five drugs are good, 0.066 above the others.

    Args:
      key: a JAX random key.
      noise_var: the variance given to the learner; that of the rewards is about a hundred times
        smaller.
    Raises:
      ValueError: a variance not above 0.
    Deviations:
      Features and rewards are synthetic, as we may not distribute the data; see `drug_repurposing`
      for these. Stopping times depend on the means, on K and on the inner products of the arms;
      those of M-LinGapE are within some percent of those on the data.
    Reference:
      See `boolean_drugs`.

    >>> instance = drugs(jax.random.key(0))
    >>> instance.arms.shape, instance.samples.shape, instance.means[4:6]
    ((10, 71), (10, 18), array([0.46501, 0.38178]))
    """
    features_key, patients_key, noise_key = jax.random.split(key, 3)
    means = floats(MEANS)[:, None]
    patients = PATIENT_STD * floats(jax.random.normal(patients_key, (PATIENTS,)))
    noise = NOISE_STD * floats(jax.random.normal(noise_key, (len(MEANS), PATIENTS)))
    table = numpy_for(key).clip(means + SHARE * patients + noise, LOWEST, HIGHEST)
    table = table + means - floats(jnp.mean(table, 1, keepdims=True))
    arms = _features(features_key, len(MEANS))
    return _with_theta(recorded(arms, table, noise_var=noise_var))


def _features(key, num_arms):
    """Unit vectors that share a small common part, `[K, 71]`."""
    own_key, common_key = jax.random.split(key)
    own = floats(jax.random.normal(own_key, (num_arms, DIM)))
    arms = own + COMMON * floats(jax.random.normal(common_key, (DIM,)))
    return floats(arms / jnp.sqrt(jnp.sum(arms**2, 1, keepdims=True)))


@checked
@double
def boolean_network(
    key: Key,
    num_arms: Pair = 10,
    *,
    dynamics: Dynamics = "asynchronous",
    means: Rows | None = None,
    noise_var: Normal = 0.25,
    draws: Draws = DRAWS,
    m: SizeOfSet = 1,
) -> Instance:
    """Drugs on a random Boolean network: each pull is a simulation (after Reda et al., 2021).

    Network, patients and drugs have the sizes of those in `boolean_drugs`: 101 genes, 54 of them
    with regulators, 84 regulations of which 5 are negative, at most 5 for a gene; rules and
    everything else are uniform. The 18 patients determine 18 to 29 genes each and the drugs 10 to
    32, together 40 on average, and the target is random on 50 genes. A pull takes hundreds of
    operations, where other instances draw one number.

    Args:
      key: a JAX random key.
      num_arms: K, at most 71, so that the means are linear in the 71 features.
      dynamics, means, noise_var, draws, m: as in `boolean_drugs`.
    Raises:
      ValueError: fewer than 2 or more than 71 arms, unknown dynamics, no draws, a variance not
        above 0, or, for a key that is known, best drugs that are not settled: near ones are common.
    Deviations:
      Everything but the sizes and the rules, as we may not distribute the data.
    Reference:
      See `boolean_drugs`.

    >>> instance = boolean_network(jax.random.key(0), draws=100, m=0)  # only to look at it
    >>> instance.arms.shape, instance.simulator.network.regulators.shape
    ((10, 71), (101, 5))
    """
    require(num_arms <= DIM, f"num_arms must be at most {DIM}, got {num_arms}")
    check_draws(draws, m, num_arms)
    keys = jax.random.split(key, 5)
    target = _random_profiles(keys[3], 1, (TARGET, TARGET))
    screen = Screen(
        random_network(keys[0]),
        _random_profiles(keys[1], PATIENTS, OF_PATIENT),
        _random_profiles(keys[2], num_arms, OF_DRUG),
        Profile(target.known[0], target.active[0]),
        dynamics,
    )
    arms = _features(keys[4], num_arms)
    return _with_theta(simulated(arms, screen, means=means, noise_var=noise_var, draws=draws, m=m))


@jax.jit  # as one program: its seventy operations would be compiled one by one
def random_network(key: Key) -> Network:
    """A `Network` of the size that was inferred for epilepsy, everything else uniform.

    Genes with regulators come in pairs that activate each other, in the first slot of each, so
    that there are many fixed states, as in the inferred network. Repressors have no regulators,
    because negative feedback makes cycles.
    """
    genes_key, slots_key, names_key, signs_key, rules_key = jax.random.split(key, 5)
    order = jax.random.permutation(genes_key, GENES)
    pairs = order[:REGULATED].reshape(-1, 2)
    partner = jnp.arange(GENES).at[pairs].set(pairs[:, ::-1])  # itself where there is none
    regulated = partner != jnp.arange(GENES)
    uniforms = jax.random.uniform(slots_key, (GENES, MOST)).at[:, 0].set(2.0)
    used = _highest(jnp.where(regulated[:, None], uniforms, -1.0), EDGES)
    uniforms = jax.random.uniform(signs_key, used.shape)
    represses = _highest(jnp.where(used.at[:, 0].set(False), uniforms, -1.0), NEGATIVE)
    # No gene regulates itself or another one twice: activators have the largest of these random
    # numbers, repressors the smallest.
    uniforms = jax.random.uniform(names_key, (GENES, GENES)) - 4.0 * jnp.eye(GENES)
    uniforms = uniforms.at[jnp.arange(GENES), partner].add(-2.0)
    activators = jax.lax.top_k(uniforms, MOST)[1]
    repressors = jax.lax.top_k(jnp.where(regulated, -9.0, -uniforms), MOST)[1]
    activators = activators.at[:, 0].set(partner.astype(activators.dtype))
    rules = jax.random.randint(rules_key, (GENES,), 0, len(RULES))
    regulators = jnp.where(represses, repressors, activators)
    return Network(regulators, used & ~represses, represses, rules)


def _highest(table, number):
    """Mask of the `number` largest entries."""
    return table >= jax.lax.top_k(table.ravel(), number)[0][-1]


@partial(jax.jit, static_argnames=("number", "determined"))
def _random_profiles(key, number, determined):
    """`Profile` [number, G] with so many genes determined at random, half of them active."""
    sizes_key, genes_key, values_key = jax.random.split(key, 3)
    least, most = determined
    sizes = jax.random.randint(sizes_key, (number, 1), least, most + 1)
    orders = jax.vmap(partial(selection.tie_order, num_arms=GENES))(
        jax.random.split(genes_key, number)
    )
    active = jax.random.uniform(values_key, (number, GENES)) < 0.5
    return Profile(orders < sizes, active)
