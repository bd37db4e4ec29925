"""Algorithms that minimise cumulative regret; they never stop."""
