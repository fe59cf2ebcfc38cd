"""Ranks among all candidates of a catalog, of any number."""
