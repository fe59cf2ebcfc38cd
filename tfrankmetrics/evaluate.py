"""Metrics of arrays: one call, no Keras objects, and per-query values if asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrankmetrics.arrays import first_index
from tfrankmetrics.ids import numbered_ids
from tfrankmetrics.per_query import call_compiled, values_and_weights
from tfrankmetrics.registry import Measure
from tfrankmetrics.ways_in import make_way_in, measures_for, require_values

# Of items, or of pairs of ids: enough to keep the cores busy in little memory.
NUMBERS_AT_A_TIME = 2**20


def evaluate(
    y_true: Any,
    y_pred: Any,
    metrics: Sequence[Any],
    *,
    inputs: str | None = None,
    duplicates: str | None = None,
    mask: Any = None,
    sample_weight: Any = None,
    per_query: bool = False,
    gain: str | Callable | None = None,
    discount: str | Callable | None = None,
    ideal: str | None = None,
    relevance_threshold: float | None = None,
    persistence: float | None = None,
    max_label: float | None = None,
    alpha: float | None = None,
    average: str | None = None,
    ties: str | None = None,
    seed: int | None = None,
    empty: str | None = None,
    convention: str | None = None,
) -> dict[str, Any]:
    """Computes ranking metrics of labels and scores, all at once.

    >>> labels = [[1, 0, 0], [0, 2]]  # two queries with three and two items
    >>> scores = [[0.9, 0.3, 0.1], [0.8, 0.4]]
    >>> evaluate(labels, scores, ["mrr", "precision@1"])
    {'mrr': 0.75, 'precision@1': 0.5}
    >>> evaluate(labels, scores, ["mrr"], per_query=True)
    {'mrr': array([1. , 0.5])}

    Args:
        y_true: Labels, graded or binary: `[B, N]`, `[N]` for one list, or lists
            of lists of unequal length; NumPy arrays, Python lists, dense or
            ragged tensors. For metrics of subtopics `[B, N, T]`. A label below 0
            marks padding, unless there is a mask. A dict of `labels` and `mask` is
            taken too.
        y_pred: Scores of the same form, higher ranks first. Dense scores may
            also be `[B, N, 1]`. Any float or integer dtype, compared as it is.
            NaN ranks below every number; -inf says that an item was not retrieved.
        metrics: Names (`"ndcg@10"`, `"mrr"`; also trec_eval's and ir_measures',
            as `"P@5"`) and metric objects with options of their own
            (`NDCG(k=10, gain="linear")`).
        inputs: What `y_true` and `y_pred` are: "labels" (default), as above; "ids":
            relevant ids beside recommended ids, best first; or "catalogue": relevant
            ids beside the scores of all items. `update_state` of a metric says
            more. Here ids may be of any kind, such as lists of lists of strings, and
            two flat lists of ids are those of one query.
        duplicates: How a repeated recommendation counts, with inputs="ids" only:
            "first" (default), at its first place; or "all", each time.
        mask: Booleans of the labels' shape, True for the items that count. With
            a mask, it alone decides, and a negative label is not relevant.
        sample_weight: A scalar, `[B]` or `[B, 1]` (one weight a query) or of the
            labels' shape (one an item).
        per_query: Gives the value of each query instead of their mean. (The mean
            of ARP and OPA weighs them, unless average="macro".)
        gain: For NDCG and DCG by name: "exponential", "linear" or a function.
        discount: For NDCG, DCG and alpha-DCG by name: "log2", "jarvelin" or a
            function.
        ideal: For NDCG by name: "judged" or "retrieved".
        relevance_threshold: For binary metrics by name: the lowest relevant label.
        persistence: For RBP by name: the chance that a user looks on.
        max_label: For ERR by name: the highest label that there is.
        alpha: For alpha-DCG by name: how much less a subtopic is worth each time.
        average: For ARP and OPA by name: "micro" or "macro".
        ties: For metrics by name: "expected", "stable" or "random".
        seed: An int, with ties="random" only.
        empty: For metrics by name: "zero", "one" or "skip".
        convention: For metrics by name: another tool's name, as in `CONVENTIONS`.
            Its choices hold instead of the defaults, and an option given beside it
            comes first.

    Returns:
        A dict from each metric's name to its weighted mean over the queries, a
        float (NaN if no query counts); with `per_query`, to an array `[B]`
        (`[B * T]` for sequences) that is NaN for the queries that do not count: lists
        of padding alone, those with nothing to find under `empty="skip"`, and those
        of weight 0.

    Raises:
        ValueError: A shape, dtype, metric or option is not one of those above; a
            label is NaN or +infinity; a weight is NaN, infinite or negative; or a
            gain or discount function returns what is none.
    """
    if not tf.executing_eagerly():
        raise RuntimeError(
            "evaluate() returns numbers, which a graph does not have yet. Inside "
            "tf.function, update a metric object instead."
        )
    options = {
        "gain": gain,
        "discount": discount,
        "ideal": ideal,
        "relevance_threshold": relevance_threshold,
        "persistence": persistence,
        "max_label": max_label,
        "alpha": alpha,
        "average": average,
        "ties": ties,
        "seed": seed,
        "empty": empty,
        "convention": convention,
    }
    way_in = make_way_in(inputs, duplicates)
    named = measures_for(way_in, metrics, options)
    if way_in.inputs == "ids":
        y_true, y_pred = numbered_ids(y_true, y_pred)
    lists = way_in.read(y_true, y_pred, sample_weight, mask)
    require_values(lists)

    step = max(1, NUMBERS_AT_A_TIME // max(1, lists.size_of_one))
    measures, parts = tuple(named.values()), []
    for start in range(0, max(1, int(lists.number)), step):
        part = lists._replace(
            **{
                name: field[start : start + step]
                for name, field in lists._asdict().items()
                if tf.is_tensor(field)
            }
        )
        parts.append(call_compiled(values_and_weights, measures, part, start))
    values, weights = (np.concatenate(of, axis=1) for of in zip(*parts, strict=True))
    return results(named, values, weights, per_query)


def results(
    named: dict[str, Measure], values: np.ndarray, weights: np.ndarray, per_query: bool
) -> dict[str, Any]:
    """What `evaluate` returns, from values and weights `[metrics, B]`."""
    require_finite(named, values, weights)
    if per_query:
        counted = np.where(weights != 0, values, np.nan)
        return dict(zip(named, counted, strict=True))
    with np.errstate(invalid="ignore"):  # no query: 0 / 0, NaN
        means = np.sum(weights * values, axis=1) / np.sum(weights, axis=1)
    return dict(zip(named, means.tolist(), strict=True))


def require_finite(
    named: dict[str, Measure], values: np.ndarray, weights: np.ndarray
) -> None:
    """Labels and weights are numbers by now: what is not one is a function's doing."""
    bad = ~(np.isfinite(values) & np.isfinite(weights))
    if bad.any():
        metric, query = first_index(bad)
        where = f"in query {query} for {list(named)[metric]!r}"
        options = dict(list(named.values())[metric].options)
        if "max_label" in options:
            raise ValueError(
                f"Labels must be at most `max_label`, here {options['max_label']}. "
                f"Received: a higher one, {where}."
            )
        raise ValueError(
            "Gains must be finite numbers of at least 0, and so must discounts, which "
            "must not grow with the rank. Received others, or gains too large to add "
            f"up, {where}."
        )
