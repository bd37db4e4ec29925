"""Readers of local data files. Nothing is downloaded."""
