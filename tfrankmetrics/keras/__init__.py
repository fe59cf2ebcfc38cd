"""Keras: state and configs, `RankingMetrics`, and guards against misuse in `fit`."""
