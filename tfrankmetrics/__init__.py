"""Ranking metrics for TensorFlow and Keras.

Keras `Metric` classes and plain array functions for NDCG, DCG, MAP, MRR,
precision, recall and hit rate over padded lists: exact under tied scores, the
same numbers in `fit`, in `evaluate` and on arrays.
"""

from tfrankmetrics.conventions import CONVENTIONS
from tfrankmetrics.evaluate import evaluate
from tfrankmetrics.metrics import (
    DCG,
    NDCG,
    ExpectedReciprocalRank,
    F1AtK,
    HitRateAtK,
    MeanAveragePrecision,
    MeanReciprocalRank,
    PrecisionAtK,
    RankBiasedPrecision,
    RecallAtK,
    RPrecision,
)
from tfrankmetrics.ranking_metrics import RankingMetrics
from tfrankmetrics.rows import evaluate_rows
from tfrankmetrics.trec import read_trec

__version__ = "0.1.0"

__all__ = [
    "CONVENTIONS",
    "DCG",
    "NDCG",
    "ExpectedReciprocalRank",
    "F1AtK",
    "HitRateAtK",
    "MeanAveragePrecision",
    "MeanReciprocalRank",
    "PrecisionAtK",
    "RPrecision",
    "RankBiasedPrecision",
    "RankingMetrics",
    "RecallAtK",
    "evaluate",
    "evaluate_rows",
    "read_trec",
]
