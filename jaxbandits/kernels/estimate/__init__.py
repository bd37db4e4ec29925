"""Estimates of the parameter from rewards: least squares, likelihoods, networks."""
