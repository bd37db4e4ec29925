"""Compilers that turn a function of one replication into a program for many lanes."""
