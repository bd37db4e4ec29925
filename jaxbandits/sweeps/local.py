"""Groups of cells on this machine, one after the other."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..engine.results import Runs
from ..system.cores import usable_cores
from ..system.progress import Progress
from .ahead import MOST, Ahead
from .cell_progress import Keep, OpenCells, Work, continued
from .groups import Group, title_of
from .spec import Sweep

if TYPE_CHECKING:
    from ..engine.api import Simulation

CHECKPOINT_SECONDS = 20.0  # of work that a killed sweep loses at most, besides a call of the lanes


def run(plan: Sweep, work: Work, keep: Keep, display: Progress, how: dict[str, Any]) -> None:
    """Simulate the open cells of all groups until they are complete.

    Args:
      plan: the `Sweep`.
      work: the groups, with the cells of each that are not complete.
      keep: what takes the runs.
      display: shows the progress.
      how: options of the `Simulation`.
    """
    from ..engine.multihost import team_of

    makers = [functools.partial(_made, plan, *item, how) for item in work]
    alone = team_of(how.get("devices")).alone  # else all processes do the same in one order
    threads = min(MOST, how.get("cores") or usable_cores()) if alone else 0
    with Ahead(makers, threads) as ahead:
        for number, (_, open_cells) in enumerate(work):
            title = title_of([open_cell.cell for open_cell in open_cells.values()])
            compiling = functools.partial(display.wait, f"compiling {title}")
            take = functools.partial(ahead.take, number, compiling)
            _run(plan, title, open_cells, keep, display, take)


def _made(plan: Sweep, group: Group, open_cells: OpenCells, how: dict[str, Any]) -> "Simulation":
    """The `Simulation` of what a group still needs."""
    number = sum(len(f.missing()) for f in open_cells.values())
    return group.simulation(plan, number, **continued(open_cells, how))


def _run(
    plan: Sweep,
    title: str,
    open_cells: OpenCells,
    keep: Keep,
    display: Progress,
    take: "Callable[[], Simulation]",
) -> None:
    """Simulate the open cells of one group."""
    most, simulation = plan.replications * len(open_cells), None
    display.show(title, sum(map(len, open_cells.values())), most)

    def keep_number(number: int, runs: Runs) -> None:
        keep(open_cells[number], runs)

    while waiting := {n: f.missing() for n, f in open_cells.items() if f.result is None}:
        known = sum(map(len, open_cells.values()))
        simulation = simulation or take()
        display.show(title, known, most)
        report = functools.partial(_report, display, title, known, most)
        found = simulation.run(waiting, report, keep_number, CHECKPOINT_SECONDS)
        if not simulation.team.alone:
            for number, runs in found.items():
                if open_cells[number].result is None:
                    keep(open_cells[number], runs, ours=False)


def _report(
    display: Progress, title: str, known: int, most: int, done: int | None, total: int
) -> None:
    """Show `done` of `total` replications, besides those that were known before."""
    if done is not None:
        display.show(title, known + done, most)
