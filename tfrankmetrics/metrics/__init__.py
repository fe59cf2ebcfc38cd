"""The metrics, one module per family: each formula, and the class that declares it."""

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
    GroupAUC,
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
from tfrankmetrics.metrics.beyond import (
    AttentionWeightedRankFairness,
    CatalogCoverage,
    ExposureEntropy,
    ExposureGini,
    IntraListDiversity,
    MeanPopularity,
    Novelty,
)
# isort: on

__all__ = [
    "DCG",
    "NDCG",
    "AlphaDCG",
    "AttentionWeightedRankFairness",
    "AverageRelevancePosition",
    "BPref",
    "CappedRecallAtK",
    "CatalogCoverage",
    "CoverageError",
    "ExpectedReciprocalRank",
    "ExposureEntropy",
    "ExposureGini",
    "F1AtK",
    "FirstRelevantRank",
    "GroupAUC",
    "HitRateAtK",
    "HoleAtK",
    "IntraListDiversity",
    "JudgedAtK",
    "MeanAveragePrecision",
    "MeanPopularity",
    "MeanReciprocalRank",
    "Novelty",
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
