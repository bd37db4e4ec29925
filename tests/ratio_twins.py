"""What the twins that stop by a likelihood ratio share: plain NumPy, searched by loops."""

import math

import numpy as np
from twins import Pulls, radius


class Look:
    """The estimate of a round: leader, rival, and the least ratio of gap^2 and squared distance."""

    def __init__(self, arms, matrix, moment):
        self.inverse = np.linalg.inv(matrix)
        self.theta = self.inverse @ moment
        self.means = arms @ self.theta
        self.leader = int(np.argmax(self.means))
        self.rival, self.ratio = nearest(arms, self.inverse, self.means, self.leader)


def nearest(arms, inverse, means, leader):
    """The arm j with the least `(mu_i - mu_j)^2 / ||x_i - x_j||^2`, and that ratio."""
    best, least = None, math.inf
    for j, x in enumerate(arms):
        y = arms[leader] - x
        if j != leader:
            ratio = (means[leader] - means[j]) ** 2 / (y @ inverse @ y)
            if ratio < least:
                best, least = j, ratio
    return best, least


class Ridge:
    """A twin on ridge least squares; `order` breaks ties, the larger wins."""

    def __init__(self, arms, order, *, threshold, **facts):
        self.pulls, self.order = Pulls(arms), order
        self.threshold, self.facts = threshold, facts

    def look(self):
        pulls = self.pulls
        return Look(pulls.arms, pulls.matrix(self.facts["v0"]), pulls.arms.T @ pulls.sums)

    def stops(self, look):
        width = radius(self.threshold, self.pulls, **self.facts) ** 2 * self.facts["noise_var"]
        return look.ratio >= width

    def first(self, values):
        """Where the largest value is; of equal ones that of the larger priority."""
        best = [k for k, value in enumerate(values) if value == max(values)]
        return max(best, key=lambda k: self.order[k])

    def tell(self, arm, reward):
        self.pulls.see(arm, reward)
