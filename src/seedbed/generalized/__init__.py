"""Methodologies for generalized environments (Whiteson, Tanner, Taylor and Stone 2011): who tunes on what."""
