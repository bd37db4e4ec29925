"""Measurements of jaxbandits against plain NumPy, Numba and C; see `speed`."""
