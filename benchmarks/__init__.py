"""Benchmarks of jaxbandits: its speed (see `speed`) and the correctness of its numbers."""
