"""Ranking metrics for TensorFlow and Keras.

Keras `Metric` classes and array functions for NDCG, MAP, MRR, precision, recall and a
dozen more: exact under tied scores, with the same numbers in `fit`, in `evaluate` and
on arrays. The input may be labels and scores, ids, scores of a catalogue, or tables.

The public interface is `__all__` of this package, of `tfrankmetrics.options`, of
`tfrankmetrics.tfma` and of `tfrankmetrics.beam`. All other modules may change.
"""

# isort: off
from tfrankmetrics import tensorflow_version  # noqa: F401 (first, for its checks)
from tfrankmetrics import metrics

# isort: on
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
from tfrankmetrics.metrics import *  # noqa: F403 (its `__all__`, below)
from tfrankmetrics.metrics.base import SubtopicMetric, TopKMetric, WholeListMetric
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import BinaryGain, LabelGain
from tfrankmetrics.options import Options
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.results.values import QueryValues, RunCounts, RunValues, SlicedValues
from tfrankmetrics.retrieval.evaluation import evaluate_retrieval

__version__ = "0.1.0"

__all__ = [
    "CONVENTIONS",
    "BinaryGain",
    "Comparison",
    "EvaluateLists",
    "EvaluateRetrieval",
    "EvaluateRows",
    "ItemGain",
    "LabelGain",
    "Options",
    "QueryValues",
    "RankedLists",
    "RankingMetrics",
    "RankingWarning",
    "RunCounts",
    "RunValues",
    "SlicedValues",
    "SubtopicMetric",
    "TopKMetric",
    "WholeListMetric",
    "compare",
    "evaluate",
    "evaluate_retrieval",
    "evaluate_rows",
    "evaluate_run",
    "metric",
    "read_trec",
]
__all__ += metrics.__all__


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
