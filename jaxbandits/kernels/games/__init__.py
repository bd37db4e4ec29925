"""Identification as a game between a learner and nature."""
