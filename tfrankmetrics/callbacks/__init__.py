"""Callbacks that evaluate a model while it trains and add the values to its logs."""
