"""Linear algebra of small matrices, written for many lanes at once."""
