"""How a metric's value of one query came about, rank by rank."""
