"""The public names, for type checkers and editors; `__init__.py` imports them."""

from tfrankmetrics.callbacks.lists_callback import EvaluateLists
from tfrankmetrics.callbacks.retrieval_callback import EvaluateRetrieval
from tfrankmetrics.callbacks.rows_callback import EvaluateRows
from tfrankmetrics.comparison.compare import compare
from tfrankmetrics.comparison.comparison import Comparison
from tfrankmetrics.conventions import CONVENTIONS
from tfrankmetrics.evaluation.accumulator import Accumulator
from tfrankmetrics.evaluation.evaluate import evaluate
from tfrankmetrics.evaluation.evaluate_rows import evaluate_rows
from tfrankmetrics.evaluation.evaluate_run import evaluate_run
from tfrankmetrics.evaluation.padded_lists import to_lists
from tfrankmetrics.evaluation.read_trec import read_trec
from tfrankmetrics.explanation.explain import (
    explain,
    explain_retrieval,
    explain_rows,
    explain_run,
)
from tfrankmetrics.explanation.explanation import Explanation
from tfrankmetrics.inputs.mistakes import RankingWarning
from tfrankmetrics.keras.many import RankingMetrics
from tfrankmetrics.metrics.base import (
    ItemMetric,
    SubtopicMetric,
    TopKMetric,
    WholeListMetric,
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
from tfrankmetrics.metrics.binary import (
    CappedRecallAtK,
    CompletenessAtK,
    F1AtK,
    HitRateAtK,
    MeanAveragePrecision,
    MeanReciprocalRank,
    PrecisionAtK,
    RecallAtK,
    RPrecision,
)
from tfrankmetrics.metrics.dcg import DCG, NDCG
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.diagnostics import (
    HoleAtK,
    JudgedAtK,
    RBPResidual,
    TiedQueries,
)
from tfrankmetrics.metrics.gains import BinaryGain, LabelGain
from tfrankmetrics.metrics.propensity import (
    PropensityScoredNDCG,
    PropensityScoredPrecision,
    inverse_propensity,
)
from tfrankmetrics.metrics.subtopics import (
    AlphaDCG,
    AlphaNDCG,
    PrecisionIA,
    SubtopicRecall,
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
from tfrankmetrics.options import Options
from tfrankmetrics.ranking.items import DataGain, ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.results.metric_values import (
    QueryValues,
    RunCounts,
    RunValues,
    SlicedValues,
)
from tfrankmetrics.retrieval.evaluate_retrieval import evaluate_retrieval
from tfrankmetrics.retrieval.retrieve import Retrieved, retrieve
from tfrankmetrics.sql.as_sql import as_sql

__version__: str

__all__ = [
    "CONVENTIONS",
    "DCG",
    "NDCG",
    "Accumulator",
    "AlphaDCG",
    "AlphaNDCG",
    "AttentionWeightedRankFairness",
    "AverageRelevancePosition",
    "BPref",
    "BinaryGain",
    "CappedRecallAtK",
    "CatalogCoverage",
    "Comparison",
    "CompletenessAtK",
    "CoverageError",
    "DataGain",
    "EvaluateLists",
    "EvaluateRetrieval",
    "EvaluateRows",
    "ExpectedReciprocalRank",
    "Explanation",
    "ExposureEntropy",
    "ExposureGini",
    "F1AtK",
    "FirstRelevantRank",
    "GroupAUC",
    "HitRateAtK",
    "HoleAtK",
    "IntraListDiversity",
    "ItemGain",
    "ItemMetric",
    "JudgedAtK",
    "LabelGain",
    "MeanAveragePrecision",
    "MeanPopularity",
    "MeanReciprocalRank",
    "Novelty",
    "Options",
    "OrderedPairAccuracy",
    "PFound",
    "PerQueryAUC",
    "PrecisionAtK",
    "PrecisionIA",
    "PropensityScoredNDCG",
    "PropensityScoredPrecision",
    "QueryValues",
    "RBPResidual",
    "RPrecision",
    "RankBiasedPrecision",
    "RankedLists",
    "RankingMetrics",
    "RankingWarning",
    "RecallAtK",
    "Retrieved",
    "RunCounts",
    "RunValues",
    "SlicedValues",
    "SubtopicMetric",
    "SubtopicRecall",
    "TiedQueries",
    "TopKMetric",
    "WholeListMetric",
    "as_sql",
    "compare",
    "evaluate",
    "evaluate_retrieval",
    "evaluate_rows",
    "evaluate_run",
    "explain",
    "explain_retrieval",
    "explain_rows",
    "explain_run",
    "inverse_propensity",
    "metric",
    "read_trec",
    "retrieve",
    "to_lists",
]
