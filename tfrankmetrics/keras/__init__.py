"""What the metrics need of Keras: state, configs, misuse in `fit`, `RankingMetrics`."""
