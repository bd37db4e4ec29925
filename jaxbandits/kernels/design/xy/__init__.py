"""Designs for given directions (XY designs)."""
