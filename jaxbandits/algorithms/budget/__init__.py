"""Fixed budget: a number of draws, and the smallest error at its end."""
