"""Environments: pure dynamics over noise tapes, and the lanes that run them."""
