"""Constructors around another constructor."""
