"""Generalized environments (Whiteson, Tanner, Taylor and Stone 2011): three domains, drawn anew per trial."""
