"""Cumulative regret: draw well, for ever."""
