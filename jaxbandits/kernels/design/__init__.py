"""Optimal designs: shares of draws that measure the directions of interest best."""
