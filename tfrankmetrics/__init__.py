"""Ranking metrics for TensorFlow and Keras.

Keras `Metric` classes and array functions for NDCG, MAP, MRR, precision, recall and a
dozen more: exact under tied scores, with the same numbers in `fit`, in `evaluate` and
on arrays. The input may be labels and scores, ids, scores of a catalogue, or tables.

The public interface is `__all__` of this package, of `tfrankmetrics.options`, of
`tfrankmetrics.tfma` and of `tfrankmetrics.beam`. All other modules may change.

Each name is imported when it is first used, and TensorFlow when something needs it.
"""

import importlib
from typing import TYPE_CHECKING

from tfrankmetrics.keras import registration

if TYPE_CHECKING:
    from tfrankmetrics.callbacks.lists import EvaluateLists
    from tfrankmetrics.callbacks.retrieval import EvaluateRetrieval
    from tfrankmetrics.callbacks.rows import EvaluateRows
    from tfrankmetrics.comparison.differences import compare
    from tfrankmetrics.comparison.result import Comparison
    from tfrankmetrics.conventions import CONVENTIONS
    from tfrankmetrics.evaluation.lists import evaluate
    from tfrankmetrics.evaluation.rows import evaluate_rows
    from tfrankmetrics.evaluation.runs import evaluate_run
    from tfrankmetrics.evaluation.trec import read_trec
    from tfrankmetrics.inputs.mistakes import RankingWarning
    from tfrankmetrics.keras.many import RankingMetrics
    from tfrankmetrics.metrics.base import SubtopicMetric, TopKMetric, WholeListMetric
    from tfrankmetrics.metrics.binary import (
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
    from tfrankmetrics.metrics.diagnostics import JudgedAtK, TiedQueries
    from tfrankmetrics.metrics.gains import BinaryGain, LabelGain
    from tfrankmetrics.metrics.propensity import (
        PropensityScoredNDCG,
        PropensityScoredPrecision,
        inverse_propensity,
    )
    from tfrankmetrics.metrics.subtopics import AlphaDCG, PrecisionIA
    from tfrankmetrics.metrics.user_models import (
        ExpectedReciprocalRank,
        PFound,
        RankBiasedPrecision,
    )
    from tfrankmetrics.metrics.whole_list import (
        AverageRelevancePosition,
        BPref,
        OrderedPairAccuracy,
        PerQueryAUC,
    )
    from tfrankmetrics.options import Options
    from tfrankmetrics.ranking.items import ItemGain
    from tfrankmetrics.ranking.ranked_lists import RankedLists
    from tfrankmetrics.results.values import (
        QueryValues,
        RunCounts,
        RunValues,
        SlicedValues,
    )
    from tfrankmetrics.retrieval.evaluation import evaluate_retrieval

__version__ = "0.1.0"

_NAMES = {
    "callbacks.lists": ["EvaluateLists"],
    "callbacks.retrieval": ["EvaluateRetrieval"],
    "callbacks.rows": ["EvaluateRows"],
    "comparison.differences": ["compare"],
    "comparison.result": ["Comparison"],
    "conventions": ["CONVENTIONS"],
    "evaluation.lists": ["evaluate"],
    "evaluation.rows": ["evaluate_rows"],
    "evaluation.runs": ["evaluate_run"],
    "evaluation.trec": ["read_trec"],
    "inputs.mistakes": ["RankingWarning"],
    "keras.many": ["RankingMetrics"],
    "metrics": [
        "DCG",
        "NDCG",
        "AlphaDCG",
        "AverageRelevancePosition",
        "BPref",
        "ExpectedReciprocalRank",
        "F1AtK",
        "HitRateAtK",
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
        "RPrecision",
        "RankBiasedPrecision",
        "RecallAtK",
        "TiedQueries",
        "inverse_propensity",
    ],
    "metrics.base": ["SubtopicMetric", "TopKMetric", "WholeListMetric"],
    "metrics.declared": ["metric"],
    "metrics.gains": ["BinaryGain", "LabelGain"],
    "options": ["Options"],
    "ranking.items": ["ItemGain"],
    "ranking.ranked_lists": ["RankedLists"],
    "results.values": ["QueryValues", "RunCounts", "RunValues", "SlicedValues"],
    "retrieval.evaluation": ["evaluate_retrieval"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # All metrics are declared before one of them, or its name, is used.
    importlib.import_module(f"{__name__}.metrics")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


registration.register_soon()
