"""From metrics and ranked lists to the values of queries, and their means."""
