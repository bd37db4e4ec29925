"""Worlds: what turns a move into rewards."""
