"""What rewards and tickets do to the `Snapshot` of a live run; each returns a new one."""

import operator
from collections.abc import Iterable
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Float, Int

from ..feature_tables import LARGEST_ENTRY, require
from ..messages import brief
from ..precision import check_real
from ..whole_numbers import is_whole, shown
from .algorithm import LiveAlgorithm
from .snapshot import Snapshot


def with_ticket(snapshot: Snapshot) -> Snapshot | None:
    """One more pull handed out, as the last of the tickets; None where none is free."""
    arm = snapshot.move.arm
    if not snapshot.one_arm:
        free = snapshot.wanted() - snapshot.handed_out()
        if not free.any():
            return None
        arm = free.argmax()
    tickets = snapshot.tickets | {snapshot.issued: int(arm)}
    return snapshot._replace(tickets=tickets, issued=snapshot.issued + 1)


def without_ticket(snapshot: Snapshot, ticket: SupportsIndex) -> tuple[Snapshot, int]:
    """`(snapshot, arm)` after the ticket of that number was told or cancelled.

    Raises:
      ValueError: no such ticket is out.
    """
    number = index("ticket", ticket, snapshot.issued)
    out = number in snapshot.tickets
    require(out, f"ticket must be one that is out, {number} is already told or cancelled")
    tickets = {k: v for k, v in snapshot.tickets.items() if k != number}
    return snapshot._replace(tickets=tickets), snapshot.tickets[number]


def by_ticket(
    algorithm: LiveAlgorithm, snapshot: Snapshot, ticket: SupportsIndex, reward: Any
) -> Snapshot:
    """The ticket's reward learnt; where the algorithm has stopped, only the ticket is removed."""
    reward = numbers(reward, ())
    snapshot, arm = without_ticket(snapshot, ticket)
    if snapshot.done:
        return snapshot
    learn = _one if snapshot.one_arm else some
    return learn(algorithm, snapshot, arm, reward)


def asking(
    algorithm: LiveAlgorithm, snapshot: Snapshot, shown: Iterable[SupportsIndex] | None
) -> Snapshot:
    """Asked for one of the rows `shown`; None: those shown last."""
    if shown is None:
        known = not snapshot.nothing_shown
        require(known, "shown must be given: nothing was shown since the last reward")
        return snapshot
    try:
        listed = list(shown)
        rows = [operator.index(row) for row in listed] if all(map(is_whole, listed)) else []
    except TypeError:
        raise ValueError(f"shown must be a list of rows of the arms, got {brief(shown)}") from None
    last = len(snapshot.told) - 1
    fits = bool(rows) and min(rows) >= 0 and max(rows) <= last
    require(fits, f"shown must be a list of rows of the arms, 0 to {last}", shown)
    if snapshot.shown is not None and np.array_equal(rows, snapshot.shown):
        return snapshot
    return algorithm.show(snapshot, np.array(rows, np.int64))


def one(algorithm: LiveAlgorithm, snapshot: Snapshot, arm: int | None, reward: Any) -> Snapshot:
    """The pull that a sequential algorithm asked for; `arm` None or that one."""
    asked = snapshot.asked
    require(arm in (None, asked), f"arm must be {asked}, the one asked for, got {arm}")
    return _one(algorithm, snapshot, asked, numbers(reward, ()))


def _one(algorithm: LiveAlgorithm, snapshot: Snapshot, arm: int, reward: Any) -> Snapshot:
    move = snapshot.move
    if snapshot.shown is None:  # a ticket's arm need not be the one asked for now
        move = move._replace(arm=move.arm.dtype.type(arm))
    arm_pulls = snapshot.arm_pulls.copy()
    arm_pulls[arm] += 1
    return algorithm.learn(snapshot._replace(arm_pulls=arm_pulls), move, reward)


def some(algorithm: LiveAlgorithm, snapshot: Snapshot, arm: int, reward: Any) -> Snapshot:
    """Rewards of one arm of a phase, a number or `[n]`."""
    found = np.atleast_1d(numbers(reward))
    free = (snapshot.wanted() - snapshot.handed_out())[arm]
    require(
        found.ndim == 1 and len(found) <= free,
        f"reward must hold at most {free} rewards of arm {arm}, those wanted without a ticket, "
        f"got shape {found.shape}",
    )
    sums, counts = np.zeros_like(snapshot.sums), np.zeros_like(snapshot.told)
    sums[arm], counts[arm] = found.sum(), len(found)
    return _add(algorithm, snapshot, sums, counts)


def rest(algorithm: LiveAlgorithm, snapshot: Snapshot, reward: Any) -> Snapshot:
    """The sums `[K]` of all that the phase still wants."""
    sums, wanted = numbers(reward, snapshot.sums.shape), snapshot.wanted()
    out = len(snapshot.tickets)
    require(not out, f"reward must come with an arm or a ticket while {out} tickets are out")
    require(not sums[wanted == 0].any(), "reward must be 0 for arms of which none is wanted")
    return _add(algorithm, snapshot, sums, wanted)


def _add(
    algorithm: LiveAlgorithm,
    snapshot: Snapshot,
    sums: Float[np.ndarray, " K"],
    counts: Int[np.ndarray, " K"],
) -> Snapshot:
    """The sums of `counts` draws added to the phase, which ends where none is missing."""
    snapshot = snapshot._replace(
        arm_pulls=snapshot.arm_pulls + counts,
        told=snapshot.told + counts,
        sums=snapshot.sums + sums,
    )
    if snapshot.wanted().any():
        return snapshot
    return algorithm.learn(snapshot, snapshot.move, snapshot.sums[snapshot.move.arm])


def numbers(reward: Any, shape: tuple[int, ...] | None = None) -> Float[np.ndarray, "..."]:
    """`reward` as float64; raises unless it is finite and, where one is given, of that shape."""
    try:
        check_real("reward", reward)
        found = np.asarray(reward, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"reward must be a finite number, got {brief(reward)}") from None
    fits = shape is None or found.shape == shape
    hint = "; give arm=k for rewards of one arm" if shape else ""
    require(fits, f"reward must have shape {shape} here, got {found.shape}{hint}")
    if not (np.abs(found) <= LARGEST_ENTRY).all():  # NaN is not either
        finite = np.isfinite(found).all()
        wanted = f"at most {LARGEST_ENTRY:.2g}, for squares" if finite else "a finite number"
        raise ValueError(f"reward must be {wanted}, got {brief(reward)}")  # slow text: only here
    return found


def index(name: str, value: SupportsIndex, size: int) -> int:
    """`value` as a whole number in [0, size)."""
    if not is_whole(value, 0, size - 1):
        none = f"got {brief(value)}, and there is none"
        raise ValueError(
            f"{name} must be a whole number from 0 to {size - 1}, got {shown(value)}"
            if size
            else f"{name} must be one that was handed out, {none}"
        )
    return operator.index(value)
