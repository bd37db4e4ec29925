"""Several processes that run one simulation, joined by `jax.distributed`.

Each runs the replications r with r % processes == its own index, so that all know their shares
without asking. Their results are exchanged in the end, and all have the whole.
"""

import contextlib
import hashlib
import io
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias, TypeVar

import jax
import numpy as np
from jaxtyping import Int

from ..system.data_files import Archive
from ..system.jax_options import pinned
from .results import Runs, joined, load

T = TypeVar("T")
Ids: TypeAlias = Int[np.ndarray, " R"]  # of replications
RunsByCell: TypeAlias = dict[int, Runs]


class Alone:
    """One process, which runs everything."""

    alone: bool = True
    index: int = 0
    count: int = 1

    def leading(
        self, context: Callable[[], AbstractContextManager[T]]
    ) -> AbstractContextManager[T | None]:
        """The context manager that `context` makes, entered by the first process."""
        return context()

    def meet(self) -> None:
        """Wait until all processes have come here."""

    def agree(self, view: Callable[[], str]) -> None:
        """Raise unless the text that `view` makes is the same in all processes."""

    def share(self, replications: Sequence[int] | Ids) -> Ids:
        """Those of the replications that this process runs."""
        return np.asarray(replications, np.int64)

    def gathered(self, runs: RunsByCell | None) -> RunsByCell:
        """The results of all processes, given those of this one."""
        return {} if runs is None else runs


class Team(Alone):
    """One of several processes; all of them make the same calls in the same order."""

    alone: bool = False

    def __init__(self) -> None:
        self.index: int = jax.process_index()
        self.count: int = jax.process_count()

    @contextlib.contextmanager
    def leading(self, context: Callable[[], AbstractContextManager[T]]) -> Generator[T | None]:
        """The context manager that `context` makes, entered by the first process.

        Raises:
          RuntimeError: the first process could not enter it; there, what it raised itself.
        """
        with contextlib.ExitStack() as stack:
            entered, failure = None, None
            if self.index == 0:
                try:
                    entered = stack.enter_context(context())
                except Exception as error:
                    failure = error
            try:
                _exchanged(None if failure else np.zeros(1, np.uint8))
            except RuntimeError:
                if failure is None:
                    raise
            if failure is not None:
                raise failure
            yield entered

    def meet(self) -> None:
        """Wait until all processes have come here."""
        from jax.experimental.multihost_utils import sync_global_devices

        sync_global_devices("jaxbandits")

    def share(self, replications: Sequence[int] | Ids) -> Ids:
        """Those of the replications that this process runs."""
        replications = np.asarray(replications, np.int64)
        return replications[replications % self.count == self.index]

    def agree(self, view: Callable[[], str]) -> None:
        """Raise unless the text that `view` makes is the same in all processes.

        Raises:
          ValueError: it is not.
        """
        mine = np.frombuffer(hashlib.sha256(view().encode()).digest(), np.uint8)
        if len({row.tobytes() for row in _exchanged(mine)}) > 1:
            raise ValueError(
                "out: the processes do not see the same stored replications; they need one folder "
                "that nobody else writes to"
            )

    def gathered(self, runs: RunsByCell | None) -> RunsByCell:
        """The results of all processes, given those of this one.

        Args:
          runs: None where this one has failed, so that the others do not wait for it.
        Raises:
          RuntimeError: another process has failed.
        """
        found: dict[int, list[Runs]] = {}
        for packed in _exchanged(None if runs is None else _packed(runs)):
            for cell, part in _unpacked(packed).items():
                found.setdefault(cell, []).append(part)
        return {cell: joined(parts) for cell, parts in found.items()}


def team_of(devices: object) -> Alone:
    """A `Team` where `devices` is "all" and there are other processes, else `Alone`."""
    several = isinstance(devices, str) and jax.process_count() > 1
    return Team() if several else Alone()


def _packed(runs: Mapping[int, Runs]) -> np.ndarray:
    """Bytes, uint8 [n]."""
    whole, parts = io.BytesIO(), {}
    for cell, part in runs.items():
        stream = io.BytesIO()
        part.write(stream)
        parts[str(cell)] = np.frombuffer(stream.getvalue(), np.uint8)
    np.savez(whole, **parts)
    return np.frombuffer(whole.getvalue(), np.uint8)


def _unpacked(packed):
    parts = Archive(io.BytesIO(packed.tobytes()))
    return {int(name): load(io.BytesIO(parts[name].tobytes())) for name in parts.facts}


def _exchanged(mine):
    """The bytes of every process, in their order; None says that this one has failed."""
    from jax.experimental.multihost_utils import process_allgather

    with pinned():
        lengths = process_allgather(np.int64(-1 if mine is None else mine.size))
    lengths = np.atleast_1d(lengths)
    if (lengths < 0).any():
        raise RuntimeError(
            f"devices: process {int(lengths.argmin())} of this simulation has failed"
        )
    padded = np.zeros(lengths.max(), np.uint8)
    padded[: mine.size] = mine
    rows = process_allgather(padded)
    return [row[:length] for row, length in zip(rows, lengths, strict=True)]
