"""Provenance: what ran where, with which code, and proof of it."""
