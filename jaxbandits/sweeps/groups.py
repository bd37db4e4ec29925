"""Which cells of a sweep are simulated side by side.

Cells that differ in numbers alone share their program. Simulated together they also share its
lanes, of which fewer are then idle while a cell comes to its end: 100 replications of each of 200
cells took half the time of one cell after the other. But tables in which the cells differ, and the
designs made from them, are then carried by every lane: on a CPU large tables make a round slower,
by a quarter where a lane carries 9 KB, and designs of their own by a factor of 3.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .cells import SIMULATED, Cell
from .spec import Sweep

if TYPE_CHECKING:
    from ..engine.api import Simulation

SMALL_BYTES = 1024  # what a lane may carry of its own without being slower
MOST_BYTES: int = 2**22  # and what it may on any device: a data set is too large
FEW = 128  # replications of a cell that leave more lanes idle than large tables cost


@dataclasses.dataclass(frozen=True)
class Group:
    """Cells that are simulated by one `Simulation`."""

    cells: tuple[Cell, ...]

    def simulation(self, plan: Sweep, replications: int, **how: Any) -> "Simulation":
        """A `Simulation` of all its cells, of which so many replications are wanted."""
        from ..engine.api import Simulation

        settings = {name: getattr(plan, name) for name in SIMULATED}
        planned = plan.replications * len(self.cells)
        settings |= how | {"replications": replications, "planned": planned}
        return Simulation([cell.prepared for cell in self.cells], **settings)


def title_of(cells: Sequence[Cell]) -> str:
    """What progress calls cells that share a program."""
    first, number = cells[0].title, len(cells)
    return first if number == 1 else f"{number} cells: {first}, ..."


def groups_of(plan: Sweep, cells: Iterable[Cell]) -> list[Group]:
    """The distinct cells in groups, in order of their first cells.

    The groups depend on the whole sweep and not on what is left of it, so that a sweep that is
    resumed or shared by machines simulates each cell by the same program.
    """
    from ..engine.traits import shapes_of

    distinct = {cell.identity: cell for cell in cells}
    families: dict[Any, list[Cell]] = {}
    for cell in distinct.values():
        structure, numbers = cell.prepared
        families.setdefault((structure, shapes_of(numbers)), []).append(cell)
    groups = []
    for members in families.values():
        together = len(members) > 1 and _worth_it(plan, members)
        groups += [Group(tuple(members))] if together else [Group((cell,)) for cell in members]
    return groups


def _worth_it(plan: Sweep, cells: Sequence[Cell]) -> bool:
    """Whether these cells are faster side by side."""
    import jax

    from ..engine.stack import own_bytes
    from ..engine.traits import traits_of

    carried = own_bytes([cell.prepared for cell in cells])
    if carried > MOST_BYTES:
        return False
    if jax.default_backend() != "cpu" or carried <= SMALL_BYTES:
        return True
    return plan.replications <= FEW and traits_of(*cells[0].prepared).moves.one_arm
