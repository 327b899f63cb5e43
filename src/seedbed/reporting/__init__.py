"""Reporting: claims, tables, text and rendering."""
