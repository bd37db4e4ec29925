"""The designs for given directions by name, each with the tolerance that suits it."""

from .xy_design import xy_optimal
from .xy_frank_wolfe import xy_frank_wolfe

DESIGNS = {"interior_point": (xy_optimal, 1e-3), "frank_wolfe": (xy_frank_wolfe, 0.01)}


def named(name, tol=None):
    """The design of this name, as a function of arms, directions and which of them count."""
    solve, usual = DESIGNS[name]
    tol = usual if tol is None else tol

    def solved(arms, directions, active):
        return solve(arms, directions, active, tol=tol)

    return solved
