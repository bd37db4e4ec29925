"""What twins with a likelihood-ratio stopping rule share: plain NumPy, searches by loops."""

import math

import numpy as np
from twins import Pulls, radius


class Estimate:
    """The estimate in a round: leader, rival, and the least ratio of gap^2 to squared distance."""

    def __init__(self, arms, matrix, moment):
        self.inverse = np.linalg.inv(matrix)
        self.theta = self.inverse @ moment
        self.means = arms @ self.theta
        self.leader = int(np.argmax(self.means))
        self.rival, self.ratio = nearest(arms, self.inverse, self.means, self.leader)


def nearest(arms, inverse, means, leader):
    """The arm j with the smallest `(mu_i - mu_j)^2 / ||x_i - x_j||^2`, and that ratio."""
    best, least = None, math.inf
    for j, x in enumerate(arms):
        y = arms[leader] - x
        if j != leader:
            ratio = (means[leader] - means[j]) ** 2 / (y @ inverse @ y)
            if ratio < least:
                best, least = j, ratio
    return best, least


class Ridge:
    """A twin with ridge least squares; of tied arms the one with the larger `order` wins."""

    def __init__(self, arms, order, *, threshold, **facts):
        self.pulls, self.order = Pulls(arms), order
        self.threshold, self.facts = threshold, facts

    def estimate(self):
        pulls = self.pulls
        return Estimate(pulls.arms, pulls.matrix(self.facts["v0"]), pulls.arms.T @ pulls.sums)

    def stops(self, estimate):
        width = radius(self.threshold, self.pulls, **self.facts) ** 2 * self.facts["noise_var"]
        return estimate.ratio >= width

    def first(self, values):
        """The index of the largest value; of equal values the one with the larger `order`."""
        best = [k for k, value in enumerate(values) if value == max(values)]
        return max(best, key=lambda k: self.order[k])

    def tell(self, arm, reward):
        self.pulls.see(arm, reward)
