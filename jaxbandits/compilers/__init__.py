"""How a function of one replication becomes a program for many lanes."""
