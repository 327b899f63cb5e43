"""A policy from anywhere, evaluated once, outside a study: what ``seedbed evaluate`` does."""
