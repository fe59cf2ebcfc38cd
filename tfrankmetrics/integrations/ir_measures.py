"""A provider for ir_measures, which `calc_aggregate` and PyTerrier's experiments use.

Importing this module changes no values: call `install`, or use a `Provider` yourself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import ir_measures
from ir_measures import (
    AP,
    ERR,
    RBP,
    RR,
    Bpref,
    Judged,
    Measure,
    Metric,
    P,
    R,
    Rprec,
    Success,
    nDCG,
    providers,
)
from ir_measures.providers.base import NOT_PROVIDED, Choices
from ir_measures.providers.base import Any as AnyValue
from ir_measures.util import QrelsConverter, RunConverter

from tfrankmetrics.evaluation.evaluate_run import Unjudged, evaluate_run
from tfrankmetrics.integrations.pytrec_eval import with_finite_scores
from tfrankmetrics.rules import check_option

TieRule = Literal["trec_eval", "expected"]

_ANY: Final = AnyValue()


class Provider(providers.Provider):
    """Computes the measures of ir_measures with the metrics of this package.

    >>> from ir_measures import RR, nDCG
    >>> from tfrankmetrics.integrations.ir_measures import Provider
    >>> qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"a": 0.5, "b": 0.5}}
    >>> Provider(ties="expected").calc_aggregate([RR], qrels, run)
    {RR: 0.75}
    >>> Provider(ties="trec_eval").calc_aggregate([RR], qrels, run)
    {RR: 0.5}

    Args:
        ties: For equal scores: "trec_eval" (in the order of trec_eval, by descending
            id; the default), or "expected" (the mean over all orders).

    Raises:
        ValueError: `ties` is another value.
    """

    NAME = "tfrankmetrics"
    SUPPORTED_MEASURES = [  # noqa: RUF012 (as in the base class)
        P(cutoff=_ANY, rel=_ANY, judged_only=_ANY),
        RR(cutoff=_ANY, rel=_ANY, judged_only=_ANY),
        Rprec(rel=_ANY, judged_only=_ANY),
        AP(cutoff=_ANY, rel=_ANY, judged_only=_ANY),
        nDCG(cutoff=_ANY, dcg=_ANY, gains=Choices(NOT_PROVIDED), judged_only=_ANY),
        R(cutoff=_ANY, rel=_ANY, judged_only=_ANY),
        Bpref(rel=_ANY),
        Success(cutoff=_ANY, rel=_ANY, judged_only=_ANY),
        Judged(cutoff=_ANY),
        RBP(cutoff=_ANY, p=_ANY, rel=AnyValue(required=True)),
        ERR(cutoff=_ANY),
    ]

    def __init__(self, ties: TieRule = "trec_eval") -> None:
        super().__init__()
        check_option("Provider", "ties", ties, TieRule)
        self._ties: TieRule = ties

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> _Evaluator:
        return _Evaluator(measures, qrels, self._ties)


class _Evaluator(providers.Evaluator):
    def __init__(self, measures: Iterable[Measure], qrels: Any, ties: TieRule) -> None:
        judgments: Any = QrelsConverter(qrels).as_dict_of_dict()
        super().__init__([*measures], judgments.keys())
        self._qrels = {query: items for query, items in judgments.items() if items}
        # The convention does not set the option of `judged`.
        self._ties: Any = "stable" if ties == "trec_eval" else ties

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        given: Any = RunConverter(run).as_dict_of_dict()
        predictions = with_finite_scores(given)
        if not any(predictions.get(query) for query in self._qrels):
            return  # ir_measures has a value for queries without predictions
        unjudged: Unjudged
        for unjudged in ("irrelevant", "drop"):
            named = {
                _name_without_judged_only(measure): measure
                for measure in self.measures
                if _drops_unjudged(measure) == (unjudged == "drop")
            }
            if not named:
                continue
            values: Any = evaluate_run(
                self._qrels,
                predictions,
                [*named],
                convention="ir_measures",
                unjudged=unjudged,
                missing_queries="skip",
                per_query=True,
                ties=self._ties,
            )
            for row, query in enumerate(values["query"]):
                for name, measure in named.items():
                    yield Metric(query, measure, float(values[name][row]))


def _drops_unjudged(measure: Measure) -> bool:
    return bool(measure.params.get("judged_only"))


def _name_without_judged_only(measure: Measure) -> str:
    """The measure's name with its parameters, without that of `evaluate_run`."""
    kept = {name: v for name, v in measure.params.items() if name != "judged_only"}
    return str(type(measure)(**kept))


def install(ties: TieRule = "trec_eval") -> None:
    """Puts a `Provider` first in the default pipeline of ir_measures.

    `ir_measures.calc_aggregate`, `iter_calc` and PyTerrier's `Experiment` use it for
    all measures that it supports. A second call replaces the first one.

    Args:
        ties: As of `Provider`: "trec_eval" (the default) or "expected".
    """
    provider = Provider(ties)
    uninstall()
    ir_measures.DefaultPipeline.providers.insert(0, provider)


def uninstall() -> None:
    """Restores the default pipeline of ir_measures."""
    pipeline = ir_measures.DefaultPipeline
    others = (each for each in pipeline.providers if not isinstance(each, Provider))
    pipeline.providers[:] = others
