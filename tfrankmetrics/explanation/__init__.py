"""How the value of a metric for one query is computed, rank by rank."""
