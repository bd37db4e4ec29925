"""Loops that several algorithms share; an algorithm gives the rules."""
