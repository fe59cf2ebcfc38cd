"""Keras: its base classes, state and configs, `RankingMetrics`, guards in `fit`."""
