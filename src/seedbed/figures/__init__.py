"""Figures: tables in, matplotlib figures out."""
