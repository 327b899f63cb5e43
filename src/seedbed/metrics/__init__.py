"""Metrics: pure functions on episode and step tables."""
