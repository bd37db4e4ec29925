"""Optimal designs: how to share draws so that what matters is measured best."""
