"""Statistics: pure functions on the score table."""
