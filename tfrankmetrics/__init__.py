"""Ranking metrics for TensorFlow and Keras.

Keras `Metric` classes and plain array functions for NDCG, MAP, MRR, precision,
recall and a dozen more, of labels beside scores, ids, catalogues and tables: exact
under tied scores, the same numbers in `fit`, in `evaluate` and on arrays.
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
from tfrankmetrics.subtopic_metrics import AlphaDCG, PrecisionIA
from tfrankmetrics.trec import read_trec
from tfrankmetrics.whole_list_metrics import (
    AverageRelevancePosition,
    BPref,
    OrderedPairAccuracy,
    PerQueryAUC,
)

__version__ = "0.1.0"

__all__ = [
    "CONVENTIONS",
    "DCG",
    "NDCG",
    "AlphaDCG",
    "AverageRelevancePosition",
    "BPref",
    "ExpectedReciprocalRank",
    "F1AtK",
    "HitRateAtK",
    "MeanAveragePrecision",
    "MeanReciprocalRank",
    "OrderedPairAccuracy",
    "PerQueryAUC",
    "PrecisionAtK",
    "PrecisionIA",
    "RPrecision",
    "RankBiasedPrecision",
    "RankingMetrics",
    "RecallAtK",
    "evaluate",
    "evaluate_rows",
    "read_trec",
]
