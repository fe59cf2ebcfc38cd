"""The interface of pytrec_eval, with NumPy alone: no compiler, no other package.

Change one line of a script, `import pytrec_eval`:

>>> from tfrankmetrics.integrations import pytrec_eval
>>> qrel = {"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 1}}
>>> evaluator = pytrec_eval.RelevanceEvaluator(qrel, {"map", "ndcg"})
>>> evaluator.evaluate({"q1": {"d1": 0.2, "d2": 0.7}, "q2": {"d2": 0.3}})["q1"]["map"]
0.5

The values are those of trec_eval: tied documents are ordered by descending id.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tfrankmetrics.evaluation.evaluate_run import evaluate_run
from tfrankmetrics.rules import listed, shortened

# The metric of each measure of a whole list, and of those with cutoffs.
_WHOLE: Final = {
    "map": "map",
    "ndcg": "ndcg",
    "recip_rank": "mrr",
    "Rprec": "r_precision",
    "bpref": "bpref",
}
_WITH_CUTOFFS: Final = {
    "map_cut": "map",
    "ndcg_cut": "ndcg",
    "P": "precision",
    "recall": "recall",
    "success": "hit_rate",
}
_CUTOFFS: Final = (5, 10, 15, 20, 30, 100, 200, 500, 1000)

supported_measures: Final = frozenset(_WHOLE | _WITH_CUTOFFS)
"""The names of the measures, to which cutoffs may be added, as in "ndcg_cut.5,10"."""


class RelevanceEvaluator:
    """Evaluates runs against the judgments of queries.

    Args:
        query_relevance: The relevance of each judged document, `{query: {id: int}}`.
        measures: Names of `supported_measures`. Add cutoffs as in "P_10" or "P.5,10".
            Without one, the cutoffs are 5, 10, 15, 20, 30, 100, 200, 500 and 1000, and
            1, 5 and 10 of `success`.
        relevance_level: The lowest relevance of a relevant document; no effect on ndcg.
            Default 1.
        judged_docs_only_flag: If True, documents without a judgment are removed from
            the runs. Default False.

    Raises:
        ValueError: A measure is none of `supported_measures`.
    """

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        if relevance_level < 1:
            raise ValueError(
                "`relevance_level` must be at least 1. Received: "
                f"{shortened(relevance_level)}."
            )
        self._qrels = {q: judged for q, judged in query_relevance.items() if judged}
        self._metrics = _metrics_of(measures)
        self._options: dict[str, Any] = {
            "unjudged": "drop" if judged_docs_only_flag else "irrelevant"
        }
        if any("ndcg" not in metric for metric in self._metrics.values()):
            self._options["relevance_threshold"] = relevance_level

    def evaluate(
        self, scores: Mapping[str, Mapping[str, float]]
    ) -> dict[str, dict[str, float]]:
        """The values of each measure for each query, `{query: {measure: value}}`.

        Args:
            scores: The run, `{query: {id: score}}`. Queries without judgments are left
                out of the result.

        >>> evaluator = RelevanceEvaluator({"q1": {"d1": 2, "d2": 1}}, {"P.1,2"})
        >>> evaluator.evaluate({"q1": {"d2": 0.7, "d3": 0.2}, "q2": {"d1": 0.5}})
        {'q1': {'P_1': 1.0, 'P_2': 0.5}}
        """
        if not all(isinstance(query, str) for query in scores):
            raise ValueError(
                "The ids of queries must be text. Received: "
                f"{shortened([*scores])}. Convert them with str()."
            )
        run = with_finite_scores({q: scores[q] for q in scores if q in self._qrels})
        # Without any document, which evaluate_run refuses.
        if not self._metrics or not any(run.values()):
            return {query: dict.fromkeys(self._metrics, 0.0) for query in run}
        values: Any = evaluate_run(
            {query: self._qrels[query] for query in run},
            run,
            [*dict.fromkeys(self._metrics.values())],
            convention="trec_eval",
            per_query=True,
            **self._options,
        )
        return {
            query: {
                measure: float(values[metric][row])
                for measure, metric in self._metrics.items()
            }
            for row, query in enumerate(values["query"])
        }


def with_finite_scores(
    run: Mapping[str, Mapping[str, float]],
) -> dict[str, dict[str, float]]:
    """A run in which a score of -inf, which means not retrieved here, is the lowest."""
    lowest = float(np.finfo(np.float32).min)
    return {
        query: {item: max(score, lowest) for item, score in scores.items()}
        for query, scores in run.items()
    }


def _metrics_of(measures: Iterable[str]) -> dict[str, str]:
    """The metric of each measure with its cutoff: `ndcg@5` of `ndcg_cut_5`."""
    metrics = {}
    cutoffs_of = collections.defaultdict(set)
    for measure in measures:
        match = re.fullmatch(r"(\w+?)(?:[._]([1-9]\d*(?:,[1-9]\d*)*))?", measure)
        name, cutoffs = match.groups() if match else (measure, None)
        if name in _WITH_CUTOFFS:
            cutoffs_of[name].update(map(int, cutoffs.split(",") if cutoffs else ()))
        elif name in _WHOLE and cutoffs is None:
            metrics[measure] = _WHOLE[name]
        else:
            raise ValueError(
                f"A measure must be one of {listed(sorted(supported_measures))}, to "
                "which cutoffs may be added, as in 'ndcg_cut_10'. Received: "
                f"{shortened(measure)}."
            )
    for name, cutoffs in cutoffs_of.items():
        default = (1, 5, 10) if name == "success" else _CUTOFFS
        for k in sorted(cutoffs) or default:
            metrics[f"{name}_{k}"] = f"{_WITH_CUTOFFS[name]}@{k}"
    return metrics


def compute_aggregated_measure(measure: str, values: Sequence[float]) -> float:
    """The mean of a measure over queries.

    Args:
        measure: The name of the measure, with or without a cutoff.
        values: The value of each query.

    Raises:
        ValueError: The measure is none of `supported_measures`.
    """
    _metrics_of([measure])  # raises an error
    return float(np.mean(values))


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Reads the lines of a run, `query Q0 id rank score name`.

    >>> parse_run(["q1 Q0 d1 1 0.5 bm25"])
    {'q1': {'d1': 0.5}}

    Args:
        f_run: The lines, such as an open file.

    Raises:
        ValueError: A line has no six fields, or a document occurs twice in a query.
    """
    run: dict[str, dict[str, float]] = {}
    for query, _, document, _, score, _ in _fields_of(f_run, 6):
        _add_document(run, query, document, float(score))
    return run


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Reads the lines of judgments, `query 0 id relevance`.

    >>> parse_qrel(["q1 0 d1 2"])
    {'q1': {'d1': 2}}

    Args:
        f_qrel: The lines, such as an open file.

    Raises:
        ValueError: A line has no four fields, or a document occurs twice in a query.
    """
    qrel: dict[str, dict[str, int]] = {}
    for query, _, document, relevance in _fields_of(f_qrel, 4):
        _add_document(qrel, query, document, int(relevance))
    return qrel


def _fields_of(lines: Iterable[str], number: int) -> Iterable[list[str]]:
    for row, line in enumerate(lines, start=1):
        fields = line.split()
        if len(fields) != number:
            raise ValueError(
                f"A line must have {number} fields. Received: {shortened(line)} in "
                f"line {row}."
            )
        yield fields


def _add_document(table: dict, query: str, document: str, value: float) -> None:
    documents = table.setdefault(query, {})
    if document in documents:
        raise ValueError(
            "A document must occur once in a query. Received: "
            f"{shortened(document)} twice in {shortened(query)}."
        )
    documents[document] = value
