"""Which cells of a sweep are played side by side.

Cells that differ in numbers alone share their program. Played in one go they also share its
lanes, of which fewer then idle while a cell comes to its end: 100 replications of each of 200
cells took half the time of one after the other. What they do not share any more are the
tables in which they differ, and the designs made from them: on a CPU large tables slow a round
down, by a quarter where a lane carries 9 KB, and designs of their own by a factor of 3.
"""

import dataclasses

from .cells import SIMULATED

SMALL_BYTES = 1024  # what a lane may carry of its own without being slower
MOST_BYTES = 2**22  # and what it may on any device: a data set it may not
FEW = 128  # replications of a cell that leave more lanes idle than large tables cost


@dataclasses.dataclass(frozen=True)
class Group:
    """Cells that are played by one `Simulation`."""

    cells: tuple

    @property
    def title(self):
        """What a reader calls them."""
        first, number = self.cells[0].title, len(self.cells)
        return first if number == 1 else f"{number} cells: {first}, ..."

    def simulation(self, plan, replications, **how):
        """A `Simulation` of all its cells, of which so many replications are to be played."""
        from ..engine.api import Simulation

        settings = {name: getattr(plan, name) for name in SIMULATED}
        settings |= how | {"replications": replications}
        return Simulation([cell.world for cell in self.cells], **settings)


def groups_of(plan, cells):
    """The distinct cells in groups, in order of their first cells.

    It depends on the whole sweep and not on what is left of it, so that a sweep that is resumed
    or shared by machines plays each cell by the same program.
    """
    from ..engine.host_loop import shapes_of

    distinct, families = {cell.identity: cell for cell in cells}, {}
    for cell in distinct.values():
        world, numbers = cell.world
        families.setdefault((world, shapes_of(numbers)), []).append(cell)
    groups = []
    for members in families.values():
        together = len(members) > 1 and _worth_it(plan, members)
        groups += [Group(tuple(members))] if together else [Group((cell,)) for cell in members]
    return groups


def _worth_it(plan, cells):
    import jax

    from ..engine.host_loop import traits_of
    from ..engine.stack import own_bytes

    carried = own_bytes([cell.world for cell in cells])
    if carried > MOST_BYTES:
        return False
    if jax.default_backend() != "cpu" or carried <= SMALL_BYTES:
        return True
    return plan.replications <= FEW and not traits_of(*cells[0].world).phased
