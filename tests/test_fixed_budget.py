"""Accuracies of fixed-budget algorithms against those of an independent calculation."""

import pytest

from benchmarks import fixed_budget

CELLS = {" ".join(cell[:3]): cell for cell in fixed_budget.cells()}
FEW = ("figure 7 K = 3 OD-LinBAI",)
MANY = [name for name in CELLS if "K = 128" not in name and "K = 64" not in name]


@pytest.mark.parametrize("name", [*FEW, *(pytest.param(n, marks=pytest.mark.slow) for n in MANY)])
def test_accuracy_agrees(name):
    assert abs(fixed_budget.measured(CELLS[name], 2000)["deviations"]) < 4


def test_a_wrong_accuracy_does_not_agree():
    *rest, figure, many = CELLS[FEW[0]]
    assert abs(fixed_budget.measured((*rest, figure + 0.1, many), 2000)["deviations"]) > 4
