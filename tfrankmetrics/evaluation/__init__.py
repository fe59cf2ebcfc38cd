"""`evaluate`, `evaluate_rows` and `evaluate_run`: arrays and tables in, numbers out."""
