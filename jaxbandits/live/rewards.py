"""What rewards and tickets do to the `Standing` of a live run; each returns a new one."""

import operator

import numpy as np

from ..feature_tables import LARGEST_ENTRY, check_real, require


def with_ticket(standing):
    """One more pull handed out, as the last of the tickets; None where none is free."""
    arm = standing.move.arm
    if not standing.one_arm:
        free = standing.wanted() - standing.handed_out()
        if not free.any():
            return None
        arm = free.argmax()
    tickets = standing.tickets | {standing.issued: int(arm)}
    return standing._replace(tickets=tickets, issued=standing.issued + 1)


def without_ticket(standing, ticket):
    """`(standing, arm)` after the ticket of that number came back.

    Raises:
      ValueError: no such ticket is out.
    """
    number = index("ticket", ticket, standing.issued)
    out = number in standing.tickets
    require(out, f"ticket must be one that is out, {number} is already told or cancelled")
    tickets = {k: v for k, v in standing.tickets.items() if k != number}
    return standing._replace(tickets=tickets), standing.tickets[number]


def by_ticket(player, standing, ticket, reward):
    """The ticket's reward learnt, or only taken note of where the algorithm has stopped."""
    reward = numbers(reward, ())
    standing, arm = without_ticket(standing, ticket)
    if standing.done:
        return standing
    learn = _one if standing.one_arm else some
    return learn(player, standing, arm, reward)


def asking(player, standing, shown):
    """Asked for one of the rows `shown`; None: those shown last."""
    if shown is None:
        require(standing.shown.size, "shown must be given: nothing was shown since the last reward")
        return standing
    try:
        mask = any(isinstance(row, bool) for row in shown)
        rows = [] if mask else [operator.index(row) for row in shown]
    except TypeError:
        raise ValueError(f"shown must be a list of rows of the arms, got {shown!r}") from None
    last = len(standing.told) - 1
    fits = bool(rows) and min(rows) >= 0 and max(rows) <= last
    require(fits, f"shown must be a list of rows of the arms, 0 to {last}, got {shown!r}")
    if np.array_equal(rows, standing.shown):
        return standing
    return player.show(standing, np.array(rows, np.int64))


def one(player, standing, arm, reward):
    """The pull that a sequential algorithm asked for; `arm` None or that one."""
    asked = standing.asked
    require(arm in (None, asked), f"arm must be {asked}, the one asked for, got {arm}")
    return _one(player, standing, asked, numbers(reward, ()))


def _one(player, standing, arm, reward):
    move = standing.move
    if standing.shown is None:  # a ticket's arm need not be the one asked for now
        move = move._replace(arm=move.arm.dtype.type(arm))
    arm_pulls = standing.arm_pulls.copy()
    arm_pulls[arm] += 1
    return player.learn(standing._replace(arm_pulls=arm_pulls), move, reward)


def some(player, standing, arm, reward):
    """Rewards of one arm of a phase, a number or `[n]`."""
    found = np.atleast_1d(numbers(reward))
    free = (standing.wanted() - standing.handed_out())[arm]
    require(
        found.ndim == 1 and len(found) <= free,
        f"reward must hold at most {free} rewards of arm {arm}, those wanted without a ticket, "
        f"got shape {found.shape}",
    )
    sums, counts = np.zeros_like(standing.sums), np.zeros_like(standing.told)
    sums[arm], counts[arm] = found.sum(), len(found)
    return _add(player, standing, sums, counts)


def rest(player, standing, reward):
    """The sums `[K]` of all that the phase still wants."""
    sums, wanted = numbers(reward, standing.sums.shape), standing.wanted()
    out = len(standing.tickets)
    require(not out, f"reward must come with an arm or a ticket while {out} tickets are out")
    require(not sums[wanted == 0].any(), "reward must be 0 for arms of which none is wanted")
    return _add(player, standing, sums, wanted)


def _add(player, standing, sums, counts):
    """The sums of `counts [K]` draws in the phase, which ends where none is missing."""
    standing = standing._replace(
        arm_pulls=standing.arm_pulls + counts,
        told=standing.told + counts,
        sums=standing.sums + sums,
    )
    if standing.wanted().any():
        return standing
    return player.learn(standing, standing.move, standing.sums[standing.move.arm])


def numbers(reward, shape=None):
    """`reward` as float64; raises unless finite and, where it is given, of that shape."""
    try:
        check_real("reward", reward)
        found = np.asarray(reward, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"reward must be a finite number, got {reward!r}") from None
    fits = shape is None or found.shape == shape
    require(fits, f"reward must have shape {shape} here, got {found.shape}")
    require(np.isfinite(found).all(), f"reward must be a finite number, got {reward!r}")
    fits = (np.abs(found) <= LARGEST_ENTRY).all()
    require(fits, f"reward must be at most {LARGEST_ENTRY:.2g}, for squares, got {reward!r}")
    return found


def index(name, value, size):
    """`value` as a whole number in [0, size)."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    told = f"{name} must be a whole number from 0, below {size}, got {value!r}"
    require(0 <= number < size, told)
    return number
