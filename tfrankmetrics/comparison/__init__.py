"""Which model is better: means, differences, intervals and tests."""
