"""Readers of an inferred gene network, and of a log of simulations with it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int8

from ..messages import reason
from ..parameters import require
from ..system.data_files import given_path
from .gene_networks import RULES, Network

GENE: re.Pattern[str] = re.compile(r"([^\s\[\]{}();]+)\[[^\]]*\]\{[^}]*\}\((.*)\)")
SIGNS: dict[str, bool] = {"positive": True, "negative": False}
VALUES: dict[str, int] = {"|": -1, "0": 0, "1": 1}
PARTS: tuple[str, ...] = ("initial", "drug", "masked", "state", "target")
VERDICT: re.Pattern[str] = re.compile(r"\('Arm: ', \([^,]*, '([^']*)'\), '[^']*', \(([^,)]*),")


class Genes(NamedTuple):
    """A network and the names of its genes, in the order of its rows."""

    names: tuple[str, ...]
    network: Network  # of NumPy arrays


class Calls(NamedTuple):
    """N calls of a simulator: 1 active, 0 not, -1 undetermined; genes as in the network."""

    drugs: tuple[str, ...]  # N names
    initial: Int8[np.ndarray, "N G"]  # the patient
    drug: Int8[np.ndarray, "N G"]  # its signature
    masked: Int8[np.ndarray, "N G"]  # the patient, overwritten by the signature
    state: Int8[np.ndarray, "N G"]  # where the network stopped
    target: Int8[np.ndarray, "N G"]
    scores: Float[np.ndarray, " N"]


def read_network(path: Path | str) -> Genes:
    """A network in the `.net` format: genes with one rule each, and signed regulations.

    Statements end with a semicolon: `GENE[..]{..}(rule)` with a rule from 0 to 17, and
    `regulator<TAB>target<TAB>positive` or `negative`. Directives and what follows `//` are
    skipped.

    Args:
      path: the file.
    Returns:
      `Genes`, in the order of the file.
    Raises:
      ValueError: names file and line: the file is missing, a statement is of neither kind, a
        rule or a sign is unknown, a gene or a regulation is repeated, or a gene has no rule.
    """
    rules: dict[str, int] = {}
    edges: dict[tuple[str, ...], tuple[int, bool]] = {}
    for file, number, line in _lines(path):
        line = line.partition("//")[0].strip()
        require(not line or line.endswith(";"), _wrong(file, number, "does not end with ;"))
        for statement in filter(None, map(str.strip, line.split(";"))):
            if not statement.startswith("directive "):
                try:
                    _read_statement(statement, rules, edges, number)
                except ValueError as error:
                    raise ValueError(_wrong(file, number, error)) from None
    require(rules, f"path: {path} has no genes")
    for pair, (number, _) in edges.items():
        missing = [gene for gene in pair if gene not in rules]
        require(
            not missing, _wrong(path, number, f"names the gene {missing[:1]}, which has no rule")
        )
    return Genes(tuple(rules), _network(rules, edges))


def _lines(path):
    """`(file, number, line)` of a text file; a byte order mark is skipped."""
    file = given_path(path)
    require(file.is_file(), f"path: no file {file}")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"path: {file} is not text: {reason(error)}") from None
    return [(file, number, line) for number, line in enumerate(text.splitlines(), 1)]


def _wrong(file: Path | str, number: int, what: object) -> str:
    return f"path: {file} line {number} {what}"


def _read_statement(text, rules, edges, number):
    """Put a gene into `rules`, or a regulation into `edges` with the number of its line."""
    if gene := GENE.fullmatch(text):
        name, rule = gene.groups()
        known = rule.isdecimal() and int(rule) < len(RULES)
        require(known, f"gives {name} the rule {rule!r}, not one of 0 .. {len(RULES) - 1}")
        require(name not in rules, f"lists the gene {name} a second time")
        rules[name] = int(rule)
        return
    parts = text.split("\t")
    require(len(parts) == 3, f"is neither a gene nor a regulation: {text[:80]!r}")
    *pair, sign = map(str.strip, parts)
    require(sign in SIGNS, f"has the sign {sign!r}, neither positive nor negative")
    require(tuple(pair) not in edges, f"lists a second time that {pair[0]} regulates {pair[1]}")
    edges[tuple(pair)] = number, SIGNS[sign]


def _network(rules, edges):
    index = {name: i for i, name in enumerate(rules)}
    regulators_of = [
        [(index[a], plus) for (a, b), (_, plus) in edges.items() if b == name] for name in rules
    ]
    shape = len(rules), max(1, *map(len, regulators_of))
    regulators, signs = np.zeros(shape, int), np.zeros(shape, int)
    for row, found in enumerate(regulators_of):
        for slot, (regulator, plus) in enumerate(found):
            regulators[row, slot], signs[row, slot] = regulator, 1 if plus else -1
    return Network(regulators, signs > 0, signs < 0, np.array(list(rules.values())))


def read_calls(path: Path | str, names: Sequence[str]) -> Calls:
    """The log of a simulator: six lines for each call, the last with the drug and its score.

    The first five are `values<TAB>label` with a character for each gene, `|` where it is
    undetermined. Genes are in alphabetical order, except in the state, which has the network's.

    Args:
      path: the file.
      names: of the genes, in the order of the columns to return.
    Returns:
      `Calls`.
    Raises:
      ValueError: names file and line: the file is missing, or a line is not what it should be.
    """
    lines = [entry for entry in _lines(path) if entry[2].strip()]
    require(lines, f"path: {path} is empty")
    alphabetical = np.argsort(np.argsort(names))
    rows, drugs, scores = [], [], []
    for position, (file, number, line) in enumerate(lines):
        part = position % (len(PARTS) + 1)
        if part < len(PARTS):
            row = _values(file, number, line, len(names))
            rows.append(row if PARTS[part] == "state" else row[alphabetical])
            continue
        verdict = VERDICT.match(line)
        if verdict is None:
            raise ValueError(
                _wrong(file, number, f"does not name a drug and its score: {line[:80]!r}")
            )
        drugs.append(verdict[1])
        try:
            scores.append(float(verdict[2]))
        except ValueError:
            raise ValueError(_wrong(file, number, f"has the score {verdict[2]!r}")) from None
    left = len(lines) % (len(PARTS) + 1)
    require(not left, f"path: {path} ends within a call, after {left} of 6 lines")
    tables = np.array(rows, np.int8).reshape(len(drugs), len(PARTS), len(names))
    return Calls(tuple(drugs), *tables.swapaxes(0, 1), np.array(scores))


def _values(file, number, line, num_genes):
    text = line.split("\t")[0]
    try:
        row = np.array([VALUES[letter] for letter in text], np.int8)
    except KeyError as error:
        raise ValueError(_wrong(file, number, f"holds {error}, not one of 0, 1, |")) from None
    require(
        len(row) == num_genes, _wrong(file, number, f"has {len(row)} genes instead of {num_genes}")
    )
    return row
