"""D-optimal designs by Frank-Wolfe with away steps (Wolfe, Atwood), one problem after another.

Points are moved into or out of the design one at a time, and the inverse follows by rank-one
updates. The start has as many points as the rank (Kumar, Yildirim, 2005).
"""

import numpy as np

from ..build import numba


def in_numpy(arms, active, tol):
    """Weights `[R, K]`, a row for each of the active sets `[R, K]`."""
    weights = np.zeros(active.shape)
    for row, mask in zip(weights, active, strict=True):
        row[mask] = d_optimal(arms[mask], tol)
    return weights


def excess(arms, weights):
    """`max_k g_k / rank - 1` of a design on all of these arms, by textbook algebra."""
    rank = np.linalg.matrix_rank(arms)
    inverse = np.linalg.pinv((arms.T * weights) @ arms, rcond=1e-12, hermitian=True)
    return ((arms @ inverse) * arms).sum(1).max() / rank - 1.0


def d_optimal(arms, tol):
    """Weights with `max_k g_k <= (1 + tol) rank`, where `g_k = x_k^T A(w)^-1 x_k`."""
    points, start = _start(arms)
    rank = points.shape[1]
    weights = np.zeros(len(arms))
    weights[start] = 1.0 / rank
    inverse, leverage = _fresh(points, weights)
    exact = True
    while True:
        up = leverage.argmax()
        high = leverage[up]
        if high <= (1.0 + tol) * rank:
            if exact:
                return weights
            # Rounding errors of the updates may have accumulated: only a new inverse certifies.
            (inverse, leverage), exact = _fresh(points, weights), True
            continue
        down = np.where(weights > 0, leverage, np.inf).argmin()
        arm = up if high - rank >= rank - leverage[down] else down
        own, drop = leverage[arm], -weights[arm] / (1.0 - weights[arm])
        step = max((own / rank - 1.0) / (own - 1.0), drop) if own > 1.0 else drop
        weights *= 1.0 - step
        weights[arm] = weights[arm] + step if step > drop else 0.0
        direction = inverse @ points[arm]
        scale = step / (1.0 - step + step * own)
        inverse = (inverse - np.outer(scale * direction, direction)) / (1.0 - step)
        leverage = (leverage - scale * (points @ direction) ** 2) / (1.0 - step)
        exact = False


def _start(arms):
    """Coordinates in the span, and the arms chosen by Gram-Schmidt with pivoting."""
    rest, frame, start = arms.copy(), [], []
    cut = arms.size * np.finfo(float).eps * (arms**2).sum(1).max()
    for _ in range(arms.shape[1]):
        lengths = (rest**2).sum(1)
        arm = lengths.argmax()
        if lengths[arm] <= cut:
            break
        axis = rest[arm] / np.sqrt(lengths[arm])
        rest = rest - np.outer(rest @ axis, axis)
        frame.append(axis)
        start.append(arm)
    return arms @ np.array(frame).T, start


def _fresh(points, weights):
    inverse = np.linalg.inv((points.T * weights) @ points)
    return inverse, ((points @ inverse) * points).sum(1)


def efficient(weights, total):
    """Efficient rounding (Pukelsheim) to exactly `total` draws; Numba can compile it."""
    support = np.flatnonzero(weights)
    shares = weights[support]
    # A share that should be a whole number must be rounded in the same way for all arms.
    start = (total - len(support) / 2) * shares * (1.0 - 4.0 * np.finfo(np.float64).eps)
    counts = np.maximum(np.ceil(start), 0.0).astype(np.int64)
    for _ in range(counts.sum() - total):
        counts[np.where(counts > 0, (counts - 1) / shares, -np.inf).argmax()] -= 1
    for _ in range(total - counts.sum()):
        counts[(counts / shares).argmin()] += 1
    full = np.zeros(len(weights), np.int64)
    full[support] = counts
    return full


def in_numba(arms, active, tol):
    """The same as loops, compiled by Numba."""
    weights = np.zeros(active.shape)
    ascend = _numba_loop()
    for row, mask in zip(weights, active, strict=True):
        points, start = _start(arms[mask])
        columns, inner = np.ascontiguousarray(points.T), np.zeros(len(points))
        inner[start] = 1.0 / len(start)
        inverse, leverage = _fresh(points, inner)
        while leverage.max() > (1.0 + tol) * len(start):
            ascend(columns, inner, inverse, leverage, tol)
            inverse, leverage = _fresh(points, inner)
        row[mask] = inner
    return weights


_COMPILED = []


def _numba_loop():
    """Compiles at the first use, so that this file can be imported without Numba."""
    if not _COMPILED:
        _COMPILED.append(numba.njit(_ascend))
    return _COMPILED[0]


def _ascend(columns, weights, inverse, leverage, tol):
    """Takes steps in place until the updated leverages certify the design."""
    rank, num = columns.shape
    direction, cross = np.empty(rank), np.empty(num)
    while True:
        up, down = 0, -1
        for k in range(num):
            if leverage[k] > leverage[up]:
                up = k
            if weights[k] > 0 and (down < 0 or leverage[k] < leverage[down]):
                down = k
        if leverage[up] <= (1.0 + tol) * rank:
            return
        arm = up if leverage[up] - rank >= rank - leverage[down] else down
        own, drop = leverage[arm], -weights[arm] / (1.0 - weights[arm])
        step = max((own / rank - 1.0) / (own - 1.0), drop) if own > 1.0 else drop
        left, kept = 1.0 - step, weights[arm]
        scale, grow = step / (left + step * own), 1.0 / left
        direction[:], cross[:] = 0.0, 0.0
        # The outer loop is the one summed over, so that the compiler vectorises the inner loops.
        for j in range(rank):
            for i in range(rank):
                direction[i] += inverse[j, i] * columns[j, arm]
        for j in range(rank):
            for k in range(num):
                cross[k] += columns[j, k] * direction[j]
            for i in range(rank):
                inverse[j, i] = grow * (inverse[j, i] - scale * direction[j] * direction[i])
        for k in range(num):
            leverage[k] = grow * (leverage[k] - scale * cross[k] * cross[k])
            weights[k] *= left
        weights[arm] = left * kept + step if step > drop else 0.0
