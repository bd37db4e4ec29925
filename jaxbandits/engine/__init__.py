"""Simulation: many replications of one algorithm, compiled and run side by side."""
