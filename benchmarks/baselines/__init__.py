"""The algorithms as loops in NumPy, Numba and C, written to be fast in those languages."""
