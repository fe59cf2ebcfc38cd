"""Ranking metrics for Keras, TensorFlow, JAX, PyTorch and NumPy.

Keras `Metric` classes and array functions for NDCG, MAP, MRR, precision, recall and a
dozen more. They are exact under tied scores, and return the same values in `fit`, in
`evaluate` and on arrays. The input may be labels and scores, ids, scores of a
catalog, or tables.

The public interface is `__all__` of this package and of its modules `options`,
`testing`, `tfma` and `beam`. All other modules may change.

Each name is imported when it is first used, and TensorFlow only when it is needed.
`__init__.pyi` shows type checkers and editors where they come from. Tests enforce three
rules:

*   Outside of `keras/` and `tfma/`, only `arrays/tensorflow.py` and
    `inputs/read_tensors.py` import TensorFlow when they are imported, and only
    `arrays/jax.py` imports JAX.
*   A metric's class does not know Keras. Its objects are of its twin, a subclass that
    `keras/twin.py` makes with the first object; therefore use `isinstance(metric,
    NDCG)` instead of `type(metric) is NDCG`. `hooks.py` is the only connection.
*   Keras must find the classes when it loads a model: `keras/backends.py` registers
    them when Keras is imported.
"""

import importlib

from tfrankmetrics import hooks
from tfrankmetrics.keras import backends, twin

__version__ = "0.1.0"

_NAMES = {
    "callbacks.lists_callback": ["EvaluateLists"],
    "callbacks.retrieval_callback": ["EvaluateRetrieval"],
    "callbacks.rows_callback": ["EvaluateRows"],
    "comparison.compare": ["compare"],
    "comparison.comparison": ["Comparison"],
    "conventions": ["CONVENTIONS"],
    "evaluation.evaluate": ["evaluate"],
    "evaluation.evaluate_rows": ["evaluate_rows"],
    "evaluation.evaluate_run": ["evaluate_run"],
    "evaluation.files": ["read_trec"],
    "evaluation.padded_lists": ["to_lists"],
    "explanation.explain": [
        "explain",
        "explain_retrieval",
        "explain_rows",
        "explain_run",
    ],
    "explanation.explanation": ["Explanation"],
    "inputs.mistakes": ["RankingWarning"],
    "keras.many": ["RankingMetrics"],
    "metrics.base": ["ItemMetric", "SubtopicMetric", "TopKMetric", "WholeListMetric"],
    "metrics.beyond": [
        "AttentionWeightedRankFairness",
        "CatalogCoverage",
        "ExposureEntropy",
        "ExposureGini",
        "IntraListDiversity",
        "MeanPopularity",
        "Novelty",
    ],
    "metrics.binary": [
        "CappedRecallAtK",
        "F1AtK",
        "HitRateAtK",
        "MeanAveragePrecision",
        "MeanReciprocalRank",
        "PrecisionAtK",
        "RPrecision",
        "RecallAtK",
    ],
    "metrics.dcg": ["DCG", "NDCG"],
    "metrics.declared": ["metric"],
    "metrics.diagnostics": ["HoleAtK", "JudgedAtK", "RBPResidual", "TiedQueries"],
    "metrics.gains": ["BinaryGain", "LabelGain"],
    "metrics.propensity": [
        "PropensityScoredNDCG",
        "PropensityScoredPrecision",
        "inverse_propensity",
    ],
    "metrics.subtopics": ["AlphaDCG", "PrecisionIA"],
    "metrics.user_models": ["ExpectedReciprocalRank", "PFound", "RankBiasedPrecision"],
    "metrics.whole_list": [
        "AverageRelevancePosition",
        "BPref",
        "CoverageError",
        "FirstRelevantRank",
        "GroupAUC",
        "OrderedPairAccuracy",
        "PerQueryAUC",
    ],
    "options": ["Options"],
    "ranking.items": ["ItemGain"],
    "ranking.ranked_lists": ["RankedLists"],
    "ranking.recommended": ["Recommended"],
    "results.metric_values": ["QueryValues", "RunCounts", "RunValues", "SlicedValues"],
    "retrieval.evaluate_retrieval": ["evaluate_retrieval"],
    "retrieval.retrieve": ["Retrieved", "retrieve"],
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(each for each in _MODULES if _is_available(each))
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not _is_available(name):
        raise AttributeError(backends.lacks_keras(f"`{name}`"))
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def _is_available(name: str) -> bool:
    """Whether a name can be imported: some need Keras."""
    needs_keras = _MODULES[name].startswith(("callbacks.", "keras."))
    return not needs_keras or backends.can_make_metrics()


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]  # type: ignore[misc]


hooks.class_of_objects, hooks.register = twin.twin_of, backends.register
backends.register_soon()
