"""Environments, which turn a move into rewards."""
