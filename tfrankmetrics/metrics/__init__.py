"""The metrics, one module a family: each formula, and the class that declares it."""

# isort: off
# In the order in which errors list the names of metrics.
from tfrankmetrics.metrics.dcg import DCG, NDCG
from tfrankmetrics.metrics.binary import (
    CappedRecallAtK,
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
    PFound,
    RankBiasedPrecision,
)
from tfrankmetrics.metrics.whole_list import (
    AverageRelevancePosition,
    BPref,
    CoverageError,
    FirstRelevantRank,
    OrderedPairAccuracy,
    PerQueryAUC,
)
from tfrankmetrics.metrics.subtopics import AlphaDCG, PrecisionIA
from tfrankmetrics.metrics.propensity import (
    PropensityScoredNDCG,
    PropensityScoredPrecision,
    inverse_propensity,
)
from tfrankmetrics.metrics.diagnostics import (
    HoleAtK,
    JudgedAtK,
    RBPResidual,
    TiedQueries,
)
# isort: on

__all__ = [
    "DCG",
    "NDCG",
    "AlphaDCG",
    "AverageRelevancePosition",
    "BPref",
    "CappedRecallAtK",
    "CoverageError",
    "ExpectedReciprocalRank",
    "F1AtK",
    "FirstRelevantRank",
    "HitRateAtK",
    "HoleAtK",
    "JudgedAtK",
    "MeanAveragePrecision",
    "MeanReciprocalRank",
    "OrderedPairAccuracy",
    "PFound",
    "PerQueryAUC",
    "PrecisionAtK",
    "PrecisionIA",
    "PropensityScoredNDCG",
    "PropensityScoredPrecision",
    "RBPResidual",
    "RPrecision",
    "RankBiasedPrecision",
    "RecallAtK",
    "TiedQueries",
    "inverse_propensity",
]
