"""Algorithms: one file each, written once over stacked seeds."""
