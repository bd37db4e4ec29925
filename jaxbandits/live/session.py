"""`Live`: the one mutable class of the package."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np
from jax.random import fold_in
from jaxtyping import Bool, Int

from ..core import Algorithm
from ..engine.checks import size_of
from ..engine.episode import kept, root_key
from ..parameters import require
from ..signatures import hinting_at_partial
from ..system.data_files import Unreadable
from ..system.identity import Entries, entries_of
from ..system.jax_options import pinned, pinning
from ..types import Rows
from . import file, rewards
from .algorithm import LiveAlgorithm
from .constructor import describe, prepare
from .snapshot import Snapshot


class Ticket(NamedTuple):
    """One pull that was handed out; its reward is told under its number.

    Attributes:
      number: a whole number that no other ticket of the run has.
      arm: the index of the arm to pull.
    """

    number: int
    arm: int


def _number(ticket, snapshot):
    """The number of a ticket; a `Ticket` has to be for the arm that this run gave its number to."""
    if not isinstance(ticket, Ticket):
        return ticket
    number = rewards.index("ticket", ticket.number, snapshot.issued)
    arm = snapshot.tickets.get(number, ticket.arm)
    if arm != ticket.arm:
        other = f"whose number {number} is for arm {arm}"
        raise ValueError(f"ticket must be one of this run, {other}, got {ticket}")
    return number


class Live:
    """An algorithm that asks what to pull and is told real rewards.

    Algorithms come in two kinds. A sequential one (`lingape`) wants one pull at a time: `ask`
    returns the arm, `tell(reward)` answers. A phased one (`gse`, `rage`) wants an allocation:
    `ask` returns int64 `[K]`, the draws of each arm still missing, `tell(rewards, arm=k)` gives
    some of them, in any order and any number of calls, and the phase is over when none is
    missing. Given the rewards that a simulation draws, a live run is replication 0 of
    `simulate(..., seed=seed)`, move by move.

    A contextual one (`deep_fpl`) is shown some rows of `arms` each round: `ask(shown)` returns one
    of them, the next `tell` is its reward. Other rows may be shown instead as long as no reward was
    told. It has no tickets: threads that share it have to take turns from `ask` to `tell`. Every
    other number of rows is compiled anew.

    Where rewards arrive late or many pulls are under way at once, each is handed out with a
    `ticket` and told under its number, in any order. A sequential algorithm learns each reward
    as one of the ticket's arm, in the order of arrival; until one arrives it wants the same arm,
    so every ticket is for that. Once it has stopped, its answer stays: what is told of tickets
    still out is not learnt. A phase hands out what it wants and no more.

    With a `path`, every change is on disk before the call returns, and the next `Live` with the
    same arguments goes on from there. A call that raises has changed nothing. Threads may share
    one object. The file is locked until `close`, the end of a `with` block, or the end of the
    object or the process.

    Args:
      constructor: of an algorithm, or `functools.partial` of one with its options. It is called
        with `arms` and those of `targets, noise_var, theta_norm, family` that its signature
        names; options that are bound win.
      arms: `[K, d]` features.
      path: a file (.npz, whatever its name) to keep the run in; the folder must exist. None: memory
        only.
      seed: a whole number, 0 or above.
      targets: `[M, d]` features of what may be answered, for a transductive algorithm.
      noise_var: sub-Gaussian variance of a reward; at most 1/4 for rewards in [0, 1].
      theta_norm: a bound on the norm of the parameter, None: unknown.
      family: the generalised linear model to assume, None: the constructor's default. A warning
        says so where the algorithm can assume none and promises nothing for such rewards.
    Raises:
      ValueError: names the argument, what it was and what is allowed. For `path`: the file is in
        use, damaged, no live run, of another experiment, of an algorithm of yours whose code has
        changed, or of one of this package whose numbers have changed; it is left as it was.

    >>> from functools import partial
    >>> import numpy as np
    >>> import jaxbandits as jb
    >>> live = jb.Live(partial(jb.lingape, delta=0.1), np.eye(2), theta_norm=2.0)
    >>> while not live.done:
    ...     arm = live.ask()
    ...     live.tell([1.0, 0.0][arm])
    >>> live.answer
    0
    """

    @hinting_at_partial
    @pinning
    def __init__(
        self,
        constructor: Callable[..., Algorithm],
        arms: Rows,
        *,
        path: Path | str | None = None,
        seed: int = 0,
        targets: Rows | None = None,
        noise_var: float = 1.0,
        theta_norm: float | None = None,
        family: str | None = None,
    ) -> None:
        seed = size_of("seed", seed)
        bound, numbers = prepare(
            constructor,
            arms,
            targets=targets,
            noise_var=noise_var,
            theta_norm=theta_norm,
            family=family,
        )
        with pinned():
            key, contextual = fold_in(root_key(seed), 0), bound.is_contextual(numbers)
        self._algorithm = LiveAlgorithm(bound, numbers, key, contextual)
        self._algorithm.shapes()  # raises for moves that `ask` cannot return
        self._one_at_a_time = threading.RLock()
        self._path: Path | None = None
        self._closed = False
        self._snapshot: Snapshot
        if path is None:
            self._snapshot = self._algorithm.begin()
        else:
            description = describe(bound, numbers, seed)
            # One file has one lock, and stays where it is, whatever links lead to it.
            self._open(file.real_path(path), description, entries_of(numbers))

    def _open(self, path: Path, description: dict[str, str], entries: Entries) -> None:
        """Lock the file, and read it where it exists, else begin it."""
        self._release = file.hold(self, path)
        self._path, self._header = path, file.header_of(description, entries)
        try:
            if path.exists():
                arrays = file.load(path, description, entries)
                try:
                    self._snapshot = file.from_arrays(arrays, self._algorithm)
                except Unreadable as error:
                    raise ValueError(f"path: {path} is damaged: {error}") from None
                except ValueError as error:
                    raise ValueError(f"path: {path} cannot be resumed, {error}") from None
            else:
                self._become(self._algorithm.begin())
        except BaseException:
            self._release()
            raise

    @property
    def done(self) -> bool:
        """Whether the algorithm has stopped; a contextual one, if shown the last rows again."""
        return self._snapshot.done

    @property
    def answer(self) -> int | Bool[np.ndarray, " M"] | None:
        """What the algorithm recommends now, an index into the targets, or bool `[M]` for sets.

        None of a contextual algorithm, whose choices are all there is.
        """
        if self._algorithm.contextual:
            return None
        answer = self._snapshot.move.answer
        return int(answer) if answer.ndim == 0 else answer.copy()

    @property
    def pulls(self) -> int:
        """Rewards learnt so far, those of an unfinished phase among them."""
        return int(self._snapshot.arm_pulls.sum())

    @property
    def arm_pulls(self) -> Int[np.ndarray, " K"]:
        """How many rewards of each arm were learnt, int64 `[K]`."""
        return self._snapshot.arm_pulls.copy()

    @property
    def info(self) -> dict[str, Any]:
        """What the algorithm counts of itself, a dict of numbers, often empty."""
        return {name: x.item() for name, x in kept(self._snapshot.move.info).items()}

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        """The tickets that are out, oldest first."""
        return tuple(Ticket(*item) for item in self._snapshot.tickets.items())

    def ask(self, shown: Iterable[SupportsIndex] | None = None) -> int | Int[np.ndarray, " K"]:
        """What to pull: an arm, or int64 `[K]` draws of each arm still missing from the phase.

        Asking changes nothing: the same again until something is told, or something else is shown.

        Args:
          shown: for a contextual algorithm, the rows of `arms` to choose among; one of them is
            returned. It may be left out to be told once more what it was.
        Raises:
          ValueError: rows that do not exist, or none at all; something shown to an algorithm that
            is shown nothing.
          RuntimeError: the algorithm has stopped, or the run is closed.
        """
        if not self._algorithm.contextual:
            snapshot, name = self._going(), self._algorithm.constructor.name
            require(shown is None, f"shown must be None for {name}, which is shown nothing")
            return snapshot.asked if snapshot.one_arm else snapshot.wanted()
        with self._one_at_a_time:
            before = self._unclosed()
            after = rewards.asking(self._algorithm, before, shown)
            if after is not before:
                self._become(after)
            return self._going().asked

    def ticket(self) -> Ticket | None:
        """Hand out one pull.

        Returns:
          A ticket, or None where all that the phase wants is handed out: nothing can be learnt from
          further pulls until those rewards are told. A ticket has two fields: `number`, a whole
          number that no other ticket of the run has, and `arm`, the index of the arm to pull.
        Raises:
          ValueError: a contextual algorithm, which knows the context of one pull alone.
          RuntimeError: the algorithm has stopped, or the run is closed.
        """
        with self._one_at_a_time:
            self._check_tickets()
            after = rewards.with_ticket(self._going())
            if after is None:
                return None
            self._become(after)
            return self.tickets[-1]

    def cancel(self, ticket: SupportsIndex | Ticket) -> None:
        """Take back a ticket, given itself or by its number: its reward will not come.

        Raises:
          ValueError: no such ticket is out, or it is one of another run.
        """
        with self._one_at_a_time:
            self._check_tickets()
            snapshot = self._unclosed()
            self._become(rewards.without_ticket(snapshot, _number(ticket, snapshot))[0])

    def tell(
        self,
        reward: Any,
        *,
        arm: SupportsIndex | None = None,
        ticket: SupportsIndex | Ticket | None = None,
    ) -> None:
        """Learn rewards; finite numbers all.

        Told without a preceding `ask`, or twice after one, a reward counts too: each is learnt as
        one of the arm that `ask` would return then, or of the phase under way. Give `arm` or
        `ticket` to have a reward of another arm refused. Only a contextual algorithm, which has to
        be shown something first, takes one reward for each `ask(shown)`.

        Args:
          reward: of one pull. For a phase without a ticket: rewards of `arm`, one or a list of
            them; or, without an arm, `[K]` sums of all the draws that `ask` wants.
          arm: of a phase, the arm whose rewards these are. Elsewhere it may be given to make
            sure: another arm than the one asked for is refused.
          ticket: the ticket whose reward this is, or its number.
        Raises:
          ValueError: a reward that is no finite number, more rewards than are wanted, a ticket
            that is not out or of another run. Nothing has been learnt.
          RuntimeError: the algorithm has stopped, or the run is closed, or a contextual algorithm
            was shown nothing since its last reward.
        """
        with self._one_at_a_time:
            self._become(self._after(reward, arm, ticket))

    def _after(
        self, reward: Any, arm: SupportsIndex | None, ticket: SupportsIndex | Ticket | None
    ) -> Snapshot:
        """The snapshot that `tell` leads to."""
        if ticket is not None:
            self._check_tickets()
            require(arm is None, "arm must be None with a ticket", arm)
            snapshot = self._unclosed()
            number = _number(ticket, snapshot)
            return rewards.by_ticket(self._algorithm, snapshot, number, reward)
        snapshot = self._going()
        if snapshot.nothing_shown:
            raise RuntimeError(
                f"{self._algorithm.constructor.name} has asked for nothing: call ask(shown)"
            )
        if arm is not None:
            arm = rewards.index("arm", arm, len(snapshot.told))
        if snapshot.one_arm:
            return rewards.one(self._algorithm, snapshot, arm, reward)
        if arm is None:
            return rewards.rest(self._algorithm, snapshot, reward)
        return rewards.some(self._algorithm, snapshot, arm, reward)

    def _check_tickets(self) -> None:
        contextual, name = self._algorithm.contextual, self._algorithm.constructor.name
        require(
            not contextual, f"{name} has no tickets: it knows the context of one pull at a time"
        )

    def _unclosed(self) -> Snapshot:
        if self._closed:
            raise RuntimeError("this live run is closed")
        return self._snapshot

    def _going(self) -> Snapshot:
        """The snapshot of an algorithm that has not stopped."""
        snapshot = self._unclosed()
        if snapshot.done:
            name, answer = self._algorithm.constructor.name, self.answer
            rest = "" if answer is None else f", its answer is {answer}"
            raise RuntimeError(f"{name} has stopped: it asks for nothing{rest}")
        return snapshot

    def _become(self, snapshot: Snapshot) -> None:
        """Save first: a change that cannot be saved is not made."""
        if self._path is not None:
            file.save(self._path, self._header, file.to_arrays(snapshot))
        self._snapshot = snapshot

    def close(self) -> None:
        """Unlock the file; the answer and the counts can still be read."""
        with self._one_at_a_time:
            self._closed = True
            if self._path is not None:
                self._release()

    def __repr__(self) -> str:
        """Where the run stands, in a line."""
        parts = [f"{self.pulls:,} pulls", "done" if self.done else "not done"]
        if self.answer is not None:
            answer = self.answer
            chosen = answer if isinstance(answer, int) else np.flatnonzero(answer).tolist()
            parts.append(f"answer {chosen}")
        if self.tickets:
            parts.append(f"{len(self.tickets):,} tickets out")
        return f"Live({', '.join(parts)})"

    def __reduce__(self) -> NoReturn:
        """Two objects would write one file, each without the rewards told to the other.

        Raises:
          TypeError: always; `copy` and `pickle` end here.
        """
        raise TypeError(
            "a live run cannot be copied or pickled: share the object among threads, or close it "
            "and open its `path` again"
        )

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
