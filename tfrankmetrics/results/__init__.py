"""The results of the functions, and their display."""
