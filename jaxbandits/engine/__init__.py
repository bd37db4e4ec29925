"""Simulation: many replications of one algorithm, compiled and played side by side."""
