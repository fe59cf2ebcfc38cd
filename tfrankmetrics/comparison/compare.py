"""`compare`: which model is better, and whether the difference is significant."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tfrankmetrics.arguments import ArrayLike, SlicesLike
from tfrankmetrics.columns.numbered_ids import Ids
from tfrankmetrics.columns.read_column import as_objects, is_frame
from tfrankmetrics.columns.slices import (
    Slices,
    columns_by_query,
    columns_of_slices,
    slices_of,
    values_by_id,
)
from tfrankmetrics.comparison.comparison import Comparison
from tfrankmetrics.comparison.estimates import Difference, JudgeBias, Mean
from tfrankmetrics.comparison.models import (
    Model,
    read_models,
    samples_of,
    side_by_side,
    with_common_queries,
)
from tfrankmetrics.comparison.people import corrected_by_people
from tfrankmetrics.comparison.query_tables import PerQuery
from tfrankmetrics.comparison.samples import Arms, Corrected, Sample, difference
from tfrankmetrics.comparison.significance import (
    adjusted,
    intervals,
    significance_test,
)
from tfrankmetrics.results.metric_values import counts_by_name
from tfrankmetrics.rules import NotNegative, Positive, check_option, listed

Test = Literal["randomization", "t", "bootstrap", "wilcoxon"]
Correction = Literal["holm", "bonferroni", "bh"]
Pairs = Literal["first", "all"]
Unpaired = Literal["error", "drop"]


def compare(
    values: Mapping[str, Mapping[str, ArrayLike]],
    *,
    people: Mapping[str, Mapping[str, ArrayLike]] | None = None,
    by: SlicesLike | None = None,
    test: Test | None = None,
    correction: Correction | None = "holm",
    pairs: Pairs = "all",
    seed: int = 0,
    resamples: int = 10_000,
    paired: bool = True,
    unpaired: Unpaired = "error",
) -> Comparison:
    """Compares models on the same queries, or the arms of an A/B test.

    >>> from tfrankmetrics import evaluate
    >>> labels = [[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]]
    >>> a = evaluate(labels, [[3, 2, 1]] * 4, ["mrr"], per_query=True)
    >>> b = evaluate(labels, [[1, 3, 2]] * 4, ["mrr"], per_query=True)
    >>> compare({"A": a, "B": b})
    metric  queries                     A (a)                    B (b)
    mrr           4  0.7500 [0.3573, 1.0000]*  0.6667 [0.1431, 1.0000]
    Mean [95% interval]. * or bold: best. a: significantly better than (a) (p < 0.05).
    <BLANKLINE>
    metric  models  difference        95% interval      p  wins  losses  ties
    mrr     B - A      -0.0833  [-0.9202, +0.7841]  0.750     2       2     0
    Paired randomization test.
    Too few queries differ for p < 0.05 in any outcome: B - A, mrr (4: p >= 0.125).

    For each metric, the result contains the mean of each model with its 95% interval.
    For each pair of models, it contains the difference with its 95% interval, the
    p-value of a paired test, and the number of queries in which the second model is
    better, worse or equal.

    Queries are paired by their ids, the key "query" of the values, or by position
    without ids. A query whose value is NaN, or whose weight is 0, is excluded. The
    weights of queries apply to all means, intervals and tests. Intervals do not depend
    on `test`; the page "Validation" states how often they cover the mean.

    Args:
        values: For each model, the result of `evaluate`, `evaluate_rows` or
            `evaluate_run` with `per_query=True`. With one model, there are only means.
        people: For values from the grades of a judge, such as a language model: the
            same metrics from people's grades of some of the queries, at least 10, which
            were chosen at random. Queries are matched by id, or by position with NaN
            where people did not grade. All results are then those of people, to whose
            precision the judge adds (prediction-powered inference).
        by: A slice for each query: a dict `{query: slice}`, or a column or a dict of
            columns in the order of the first model. Or the keys of slice columns in the
            first model's values, which were computed with `by`. The models are also
            compared in each slice.
        test: "randomization" (the default) randomly swaps the models within queries.
            "t" is the paired t-test. "bootstrap" draws queries with replacement.
            "wilcoxon" is the signed-rank test, with equal queries by Pratt's rule. With
            `people`, only "t" is possible, and with `paired=False` only "t" (the
            default, Welch's t-test) and "bootstrap".
        correction: "holm" (the default) or "bonferroni" adjusts the p-values for the
            number of comparisons: all metrics, all pairs of models, and all slices.
            "bh" limits the share of false discoveries instead (Benjamini and
            Hochberg). None leaves the p-values unadjusted.
        pairs: The models to compare: "all" pairs (the default), or the "first" model
            with each other one, which is fewer comparisons to adjust p-values for.
        seed: The seed of the random swaps or draws.
        resamples: The number of random swaps or draws.
        paired: False for models with different queries, as in an A/B test.
        unpaired: How to treat queries that are missing from some models: as an "error"
            (the default), or "drop" excludes them, and the result reports how many.

    Returns:
        A `Comparison`, which prints as a table.

    Raises:
        ValueError: The models differ in their queries or metrics, an id occurs twice,
            "wilcoxon" receives weighted queries, people graded fewer than 10 queries,
            or an argument is not one of those above.
        ImportError: SciPy is not installed. `tfrankmetrics[compare]` includes it.
    """
    test = _checked_test(test, people, paired)
    _check_options(correction, pairs, seed, resamples, unpaired)
    models, samples, slices, dropped = _read(values, by, paired, unpaired)
    if test == "wilcoxon":
        _require_equal_weights(models[0].metrics, samples)
    if people is not None:
        samples, more = corrected_by_people(people, by, models, samples, unpaired)
        dropped += more
    run_test = functools.partial(
        significance_test, test=test, resamples=resamples, seed=seed
    )
    means: list[Mean] = []
    differences: list[Difference] = []
    judge: list[JudgeBias] = []
    for key, queries in _parts(slices):
        parts = {
            model.name: sample.of(queries)
            for model, sample in zip(models, samples, strict=True)
        }
        for name, part in parts.items():
            means += _means(key, name, part, models[0])
            judge += _judge_biases(key, (name,), part, models[0])
        for names in _pairs_to_compare([*parts], pairs):
            of = difference(*(parts[name] for name in names), paired=paired)
            differences += _differences(key, names, of, models[0], run_test(of))
            judge += _judge_biases(key, names, of, models[0])
    differences = _with_adjusted_p(differences, correction)
    return Comparison(
        means,
        differences,
        judge,
        test=test,
        correction=correction,
        dropped=dropped,
        per_query=PerQuery(models, slices, paired),
        notes=_notes(values, differences),
    )


def _checked_test(test: Any, people: Any, paired: Any) -> Test:
    """The test, by default the first one that suits the data."""
    if test is not None:
        check_option("compare", "test", test, Test)
    check_option("compare", "paired", paired, bool)
    if not paired and people is not None:
        raise ValueError(
            "`people` requires models with the same queries. Received: paired=False. "
            "Compare the values by people with paired=False."
        )
    if people is None and paired:
        return test or "randomization"
    choices = ["t"] if people is not None else ["t", "bootstrap"]
    if test not in (None, *choices):
        argument = "`people`" if people is not None else "paired=False"
        raise ValueError(
            f"`test` with {argument} must be {' or '.join(map(repr, choices))}. "
            f"Received: test={test!r}."
        )
    return test or "t"


def _check_options(
    correction: Any, pairs: Any, seed: Any, resamples: Any, unpaired: Any
) -> None:
    check_option("compare", "correction", correction, Correction | None)
    check_option("compare", "pairs", pairs, Pairs)
    check_option("compare", "unpaired", unpaired, Unpaired)
    check_option("compare", "resamples", resamples, Positive)
    check_option("compare", "seed", seed, NotNegative)


def _read(
    values: Any, by: Any, paired: bool, unpaired: str
) -> tuple[list[Model], list[Any], Slices | None, int]:
    """Models on the same rows of queries, samples, slices, how many were dropped."""
    models = read_models(values, by)
    if paired:
        columns = _slice_columns(by, next(iter(values.values())), models[0])
        models, is_common, num_unpaired = with_common_queries(models, unpaired)
        columns = {name: each.of(is_common) for name, each in columns.items()}
        samples, dropped = samples_of(models, unpaired)
    else:
        models, num_unpaired, dropped = side_by_side(models), 0, 0
        columns = _slice_columns(by, _columns_of_all(values, models[0]), models[0])
        samples = [samples_of([model], unpaired)[0][0] for model in models]
    slices = slices_of(columns) if columns else None
    return models, samples, slices, dropped + num_unpaired


def _require_equal_weights(metrics: Sequence[str], samples: Sequence[Sample]) -> None:
    """Raises ValueError for weighted queries, which ranks do not represent."""
    weights = np.concatenate([each.weights for each in samples])
    is_weighted = ((weights > 0) & (weights < weights.max(axis=0, initial=0))).any(0)
    if is_weighted.any():
        weighted = itertools.compress(metrics, is_weighted)
        raise ValueError(
            'test="wilcoxon" requires queries of equal weights. Received: weighted '
            f'queries for {listed([*weighted])}. Pass test="randomization", which uses '
            "the weights."
        )


def _notes(values: Mapping, differences: Sequence[Difference]) -> list[str]:
    """Lines below the means: unmatched queries, and where NDCG and DCG disagree."""
    notes = counts_by_name(values)
    rounded = {
        (each.metric, each.models): round(each.difference, 12)
        for each in differences
        if each.slice is None and not math.isnan(each.difference)
    }
    differing = [
        f"{' - '.join(reversed(pair))}, n{metric}"
        for (metric, pair), difference in rounded.items()
        if difference * rounded.get((f"n{metric}", pair), 0) < 0
    ]
    if differing:
        notes.append(
            f"NDCG and DCG order the models differently ({'; '.join(differing[:3])}): "
            "in NDCG, a query with few relevant items counts as much as one with many."
        )
    return notes


def _columns_of_all(
    values: Mapping[str, Mapping], first: Model
) -> dict[str, np.ndarray]:
    """The columns of all models that are not metrics, below each other."""
    keys = {*next(iter(values.values()))} - {"query", *first.metrics}
    return {
        key: np.concatenate([as_objects(each[key]) for each in values.values()])
        for key in keys
    }


def _slice_columns(by: Any, values: Mapping, first: Model) -> dict[str, Ids]:
    """The columns of slices, from `by` or from the first model's values."""
    if by is None:
        return {}
    if is_frame(by) and first.ids is not None:
        raise ValueError(
            "`by` must contain a slice for each query id. Received: a frame, whose "
            "rows may be in a different order. Pass a dict of the slice of each id, as "
            "in dict(zip(frame[ids], frame[slices])), or pass `by` to evaluate_run."
        )
    names = [by] if isinstance(by, str) else by
    keys = {*values} - {*first.metrics}
    are_keys = isinstance(names, (list, tuple)) and len(names) > 0
    are_keys = are_keys and all(isinstance(n, str) and n in keys for n in names)
    if isinstance(by, Mapping) and by and not any(map(np.ndim, by.values())):
        if first.ids is None:
            raise ValueError(
                "A dict of the slice of each query requires query ids. Received: "
                "values without the key 'query'. Pass a column with a slice for each "
                "query."
            )
        rule = "`by` must contain a slice for each query."
        columns = {"slice": values_by_id(rule, by, first.ids)}
    elif are_keys:
        columns = {name: values[name] for name in names}
    elif isinstance(by, str):
        raise ValueError(
            "`by` must be a column, or the name of slices in the first model's values. "
            f"Received: {by!r}. Also pass by={by!r} to evaluate, evaluate_rows "
            "or evaluate_run."
        )
    else:
        columns = columns_of_slices(by)
    return columns_by_query(columns, first.num_queries)


def _parts(
    slices: Slices | None,
) -> Iterator[tuple[tuple | None, np.ndarray | slice]]:
    """The queries of each slice, and at last all queries, with the key None."""
    if slices is not None:
        order, ranges = slices.grouped()
        for key, queries in zip(slices.keys, ranges, strict=True):
            yield key, order[queries]
    yield None, slice(None)


def _pairs_to_compare(names: Sequence[str], pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Each pair of models, or only those of the first model."""
    firsts = names if pairs == "all" else names[:1]
    return (pair for pair in itertools.combinations(names, 2) if pair[0] in firsts)


def _means(key: tuple | None, name: str, of: Any, first: Model) -> list[Mean]:
    """The mean of each metric; the first model states the metrics."""
    ends = intervals(of, first.ranges)
    columns = of.means, of.standard_errors, *ends, of.numbers
    rows = zip(first.metrics, *(each.tolist() for each in columns), strict=True)
    return [Mean(key, metric, name, *row) for metric, *row in rows]


def _differences(
    key: tuple | None,
    names: Any,
    of: Any,
    model: Model,
    tested: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> list[Difference]:
    """The difference of two models in each metric; the model states the metrics."""
    low, high = intervals(of, model.ranges)
    p, smallest_p, directions = tested
    columns = [of.means, of.standard_errors, low, high, p]
    columns += [*_counts(of, model), of.effective_numbers, smallest_p]
    values = zip(*(each.tolist() for each in columns), strict=True)
    is_opposed = (directions * of.means < 0).tolist()
    unpaired = of.numbers if isinstance(of, Arms) else np.zeros_like(of.numbers)
    rows = zip(model.metrics, values, is_opposed, unpaired.tolist(), strict=True)
    return [
        Difference(key, metric, names, *row, is_opposed=opposed, unpaired=number)
        for metric, row, opposed, number in rows
    ]


def _counts(of: Any, model: Model) -> list[np.ndarray]:
    """The numbers of wins, losses, ties and differing queries, by people if any."""
    if isinstance(of, Arms):
        none = np.zeros_like(of.numbers)
        return [none, none, none, of.numbers]
    pair = of.people if isinstance(of, Corrected) else of
    wins = (pair.second.values > pair.first.values).sum(axis=0)
    losses = (pair.second.values < pair.first.values).sum(axis=0)
    is_lower = [metric in model.lower_is_better for metric in model.metrics]
    wins, losses = np.where(is_lower, (losses, wins), (wins, losses))
    return [wins, losses, pair.numbers - wins - losses, pair.is_different.sum(axis=0)]


def _with_adjusted_p(
    differences: list[Difference], correction: Correction | None
) -> list[Difference]:
    p = adjusted(np.array([each.p for each in differences]), correction).tolist()
    return [
        each._replace(adjusted_p=adjusted_p)
        for each, adjusted_p in zip(differences, p, strict=True)
    ]


def _judge_biases(
    key: tuple | None, names: tuple[str, ...], of: Any, first: Model
) -> list[JudgeBias]:
    """By how much a judge, if there is one, overrates each mean or difference."""
    if not isinstance(of, Corrected):
        return []
    bias = of.bias
    columns = [bias.means, bias.standard_errors, *intervals(bias, first.ranges)]
    columns += [of.numbers, of.judge_of_others.numbers, of.weights]
    columns += [of.equivalent_numbers]
    rows = zip(first.metrics, *(each.tolist() for each in columns), strict=True)
    return [JudgeBias(key, metric, names, *row) for metric, *row in rows]
