"""Metrics as one SQL statement, from the formulas themselves.

`sql_columns.py` is an array library whose arrays are expressions of SQL. A formula
computes with `SqlLists`, and what it returns is written as a statement.
"""
