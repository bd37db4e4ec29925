"""Confidence radii, sets and stopping statistics."""
