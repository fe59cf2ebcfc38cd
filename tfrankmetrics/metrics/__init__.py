"""The metrics, one module a family: each formula, and the class that declares it."""

# isort: off
# In the order in which errors list the names of metrics.
from tfrankmetrics.metrics.dcg import DCG, NDCG
from tfrankmetrics.metrics.binary import (
    F1AtK,
    HitRateAtK,
    MeanAveragePrecision,
    MeanReciprocalRank,
    PrecisionAtK,
    RecallAtK,
    RPrecision,
)
from tfrankmetrics.metrics.user_models import (
    ExpectedReciprocalRank,
    RankBiasedPrecision,
)
from tfrankmetrics.metrics.whole_list import (
    AverageRelevancePosition,
    BPref,
    OrderedPairAccuracy,
    PerQueryAUC,
)
from tfrankmetrics.metrics.subtopics import AlphaDCG, PrecisionIA
# isort: on

__all__ = [
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
    "RecallAtK",
]
