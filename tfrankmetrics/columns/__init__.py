"""Columns of tables: read from frames and arrays, checked, and numbered."""
