"""Results of the array functions beyond plain dicts: per query, by slice, of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.arguments import DataFrame
from tfrankmetrics.columns.slices import Slices
from tfrankmetrics.compute.computed import Computed
from tfrankmetrics.compute.sums import count_queries, means_of
from tfrankmetrics.installation import require
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.results.flat_values import flat_values, parts_of_slice
from tfrankmetrics.results.plot_axes import axes_for, chosen_metrics, without_tex
from tfrankmetrics.results.text_tables import (
    MOST_ROWS,
    Cell,
    ShownAsTable,
    Table,
    label_of_all,
)
from tfrankmetrics.rules import listed, shortened

NUM_QUERIES = "num_queries"  # a key of results


class RunCounts(NamedTuple):
    """Counts of matched and unmatched queries and items in `evaluate_run`.

    >>> from tfrankmetrics import evaluate_run
    >>> run = {"q": {"a": 0.9, "b": 0.3}}
    >>> evaluate_run({"q": {"a": 1}}, run, ["mrr"]).counts.unjudged
    1

    Args:
        queries: The queries that were judged.
        without_predictions: How many of them have no predictions.
        without_judgments: The queries with predictions but without judgments. They are
            excluded.
        retrieved: The predicted items of the judged queries.
        unjudged: How many of them were not judged.
        missing_queries: The treatment of judged queries without predictions.
        nan_scores: How many scores of the judged queries are NaN, which ranks below
            every number.
    """

    queries: int
    without_predictions: int
    without_judgments: int
    retrieved: int
    unjudged: int
    missing_queries: str = "zero"
    nan_scores: int = 0


class QueryValues(dict):
    """The values of each query, a dict of arrays, for `compare`.

    >>> from tfrankmetrics import evaluate
    >>> labels, scores = [[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]]
    >>> values = evaluate(labels, scores, ["mrr"], sample_weight=[1, 3], per_query=True)
    >>> values
    {'mrr': array([1. , 0.5])}
    >>> values.weights
    {'mrr': array([1., 3.])}

    It can be used like any other dict. It also keeps the weights that `compare`
    requires for weighted means. A copy by `dict(values)` lacks them.

    Attributes:
        weights: The weight of each query in the mean of each metric, a dict of arrays.
        lower_is_better: The metrics whose lower values are better, such as ARP.
        by: The keys of columns with slices, from `by=`.
        counts: The `RunCounts` of `evaluate_run`, or None.
        ranges: The lowest and the highest possible value of each metric, a dict.
        without_relevant: Which queries have a value although no item is relevant, for
            each metric, a dict of boolean arrays.
    """

    def __init__(
        self,
        values: Mapping[str, np.ndarray],
        weights: Mapping[str, np.ndarray],
        lower_is_better: frozenset[str] = frozenset(),
        by: tuple[str, ...] = (),
        counts: RunCounts | None = None,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        without_relevant: Mapping[str, np.ndarray] | None = None,
    ):
        super().__init__(values)
        self.without_relevant = dict(without_relevant or {})
        self.ranges = dict(ranges or {})
        self.weights = dict(weights)
        self.lower_is_better = lower_is_better
        self.by = by
        self.counts = counts

    def __repr__(self) -> str:
        """Like that of a dict, with the first and the last values of long arrays."""
        with np.printoptions(threshold=MOST_ROWS):
            return super().__repr__()


class Values(dict):
    """The metrics by name, a dict.

    It prints numbers with six digits, as a Series of pandas does. The values are exact.

    >>> from tfrankmetrics import evaluate
    >>> values = evaluate([[0, 0, 1]], [[3, 2, 1]], ["mrr"])
    >>> values
    {'mrr': 0.333333}
    >>> values["mrr"]
    0.3333333333333333
    """

    def __repr__(self) -> str:
        def rounded(value: Any) -> Any:
            return float(f"{value:.6g}") if isinstance(value, float) else value

        return repr({name: rounded(value) for name, value in self.items()})


class RunValues(Values):
    """The metrics of a run, a dict. It also prints the number of unmatched queries.

    >>> from tfrankmetrics import evaluate_run
    >>> qrels = {"q": {"a": 1}, "r": {"b": 1}}
    >>> values = evaluate_run(qrels, {"q": {"a": 0.9}}, ["mrr"])
    >>> values
    {'mrr': 0.5}
    1 of 2 judged queries has no predictions and is counted as an empty result.
    >>> values.counts.without_predictions
    1

    Attributes:
        counts: The `RunCounts`.
    """

    def __init__(self, values: Mapping[str, float], counts: RunCounts):
        super().__init__(values)
        self.counts = counts

    def __repr__(self) -> str:
        return "\n".join(filter(None, [super().__repr__(), described(self.counts)]))


def counts_by_name(values: Mapping[str, Any]) -> list[str]:
    """The unmatched queries and NaN scores of each model that has any."""
    counts = {name: getattr(each, "counts", None) for name, each in values.items()}
    texts = {name: each and described(each) for name, each in counts.items()}
    return [f"{name}: {text}" for name, text in texts.items() if text]


def described(counts: RunCounts) -> str:
    """The unmatched queries and NaN scores in words; empty without any."""
    sentences = []
    if counts.without_predictions:
        number = counts.without_predictions
        result = "an empty result" if number == 1 else "empty results"
        does = {"zero": f"counted as {result}", "skip": "left out"}[
            counts.missing_queries
        ]
        sentences.append(
            f"{number} of {counts.queries} judged queries {_verb('has', number)} no "
            f"predictions and {_verb('is', number)} {does}."
        )
    if counts.without_judgments:
        number = counts.without_judgments
        sentences.append(
            f"{number} {'query' if number == 1 else 'queries'} with predictions "
            f"{_verb('was', number)} not judged and {_verb('is', number)} left out."
        )
    if counts.nan_scores:
        sentences.append(
            f"{counts.nan_scores:,} of {counts.retrieved:,} scores "
            f"{_verb('is', counts.nan_scores)} NaN, which ranks below every number."
        )
    return " ".join(sentences)


def _verb(singular: str, number: int) -> str:
    plural = {"has": "have", "is": "are", "was": "were"}
    return singular if number == 1 else plural[singular]


# The metrics of some queries, and the number of these.
ValuesAndNumber = tuple[Values, int]


def sliced_values(
    named: Mapping[str, Measure],
    values: np.ndarray,
    weights: np.ndarray,
    slices: Slices,
    computed: Computed,
    counts: RunCounts | None = None,
) -> SlicedValues:
    """The metrics of each slice, from the values and weights `[metrics, B]`."""
    means = means_of(named, values, weights) | computed.over_all()
    whole = Values(means), count_queries(weights)
    order, places = slices.grouped()
    values, weights = values.take(order, axis=1), weights.take(order, axis=1)
    of_slices = {}
    for number, (key, place) in enumerate(zip(slices.keys, places, strict=True)):
        part = weights[:, place]
        means = means_of(named, values[:, place], part) | computed.over_all(number)
        of_slices[key] = Values(means), count_queries(part)
    return SlicedValues(slices.names, whole, of_slices, counts)


class SlicedValues(ShownAsTable, Mapping):
    """The metrics of each slice of the queries, and of all.

    >>> from tfrankmetrics import evaluate
    >>> labels, scores = [[1, 0], [0, 1], [0, 1]], [[2.0, 1.0]] * 3
    >>> result = evaluate(labels, scores, ["mrr"], by={"language": ["de", "de", "en"]})
    >>> result
    language  queries     mrr
    de              2  0.7500
    en              1  0.5000
    all             3  0.6667
    >>> result["en"]
    {'mrr': 0.5}

    It is a mapping from each slice to a dict of its metrics. A slice of several
    columns, such as `by=["language", "market"]`, is a tuple of their values.

    Attributes:
        by: The names of the slice columns, a tuple.
        whole: The metrics of all queries, a dict.
        num_queries: The number of queries of each slice, a dict. A query is counted if
            it is included in any of the metrics.
        counts: The `RunCounts` of `evaluate_run`, or None.
    """

    def __init__(
        self,
        by: tuple[str, ...],
        whole: ValuesAndNumber,
        slices: Mapping[tuple, ValuesAndNumber],
        counts: RunCounts | None = None,
    ):
        self.by, self.counts = by, counts
        self.whole, self._all_queries = whole
        self._values, self.num_queries = {}, {}
        for key, of_slice in slices.items():
            name = key[0] if len(key) == 1 else key
            self._values[name], self.num_queries[name] = of_slice

    def __getitem__(self, key: Any) -> dict[str, float]:
        if key not in self._values:
            raise KeyError(
                f"A key must be a slice by {listed(self.by)}. Received: "
                f"{shortened(key)}. `whole` contains the values of all queries."
            )
        return self._values[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def to_dicts(self) -> list[dict[str, Any]]:
        """A dict for each slice, and a last one for all queries."""
        return [dict(zip(self._header, row, strict=True)) for row in self._rows()]

    def to_flat_dict(self) -> dict[str, float]:
        """The metrics of all queries and of each slice, in one dict for trackers.

        >>> from tfrankmetrics import evaluate
        >>> by = {"country": ["DE", "FR"]}
        >>> result = evaluate([[1, 0], [0, 1]], [[2, 1]] * 2, ["mrr@5"], by=by)
        >>> result.to_flat_dict()
        {'mrr_5': 0.75, 'mrr_5/country:DE': 1.0, 'mrr_5/country:FR': 0.5}

        Every character of a name other than letters, digits, `_`, `-`, `.`, `:` and
        spaces becomes `_`. MLflow accepts these keys.

        Raises:
            ValueError: Two keys become equal.
        """
        numbers = [([name], value) for name, value in self.whole.items()]
        for key, values in self.items():
            of_slice = parts_of_slice(self.by, self._labels(key))
            numbers += [([name, *of_slice], each) for name, each in values.items()]
        return flat_values(numbers)

    @property
    def _header(self) -> list[str]:
        return [*self.by, "queries", *self.whole]

    def _rows(self) -> list[tuple]:
        """The labels, the number of queries and the values of each slice and of all."""
        return [
            *((*self._labels(k), self.num_queries[k], *self[k].values()) for k in self),
            (*self._of_all, self._all_queries, *self.whole.values()),
        ]

    def _table(self) -> Table:
        number = len(self.by)
        rows = [
            [
                *(Cell(str(label)) for label in row[:number]),
                Cell(f"{row[number]:,}"),
                *(Cell(f"{value:.4f}") for value in row[number + 1 :]),
            ]
            for row in self._rows()
        ]
        notes = [*filter(None, [self.counts and described(self.counts)])]
        return Table(self._header, rows, number, notes)

    @property
    def _of_all(self) -> tuple:
        """The labels of the row for all queries."""
        return (label_of_all(map(self._labels, self)), *[""] * (len(self.by) - 1))

    def _labels(self, key: Any) -> tuple:
        return key if len(self.by) > 1 else (key,)

    def to_pandas(self) -> DataFrame:
        """A pandas frame with a row for each slice, and a last row for all queries.

        Its index contains the slices, and "all".
        """
        pandas = require("pandas", "`to_pandas`")
        # A column of slices may have the name of another column.
        rows = [row[len(self.by) :] for row in self._rows()]
        columns = ["queries", *self.whole]
        if len(self.by) > 1:
            index = pandas.MultiIndex.from_tuples([*self, self._of_all], names=self.by)
        else:
            keys, name = [*self, *self._of_all], next(iter(self.by))
            index = pandas.Index(keys, name=name, tupleize_cols=False)
        return pandas.DataFrame(rows, index, columns)

    def plot(self, *metrics: str) -> np.ndarray:
        """Plots the metrics of each slice, with those of all queries as dashed lines.

        Args:
            *metrics: The metrics to plot, side by side; by default all.

        Returns:
            The axes of Matplotlib, an array with one for each metric.
        """
        chosen = chosen_metrics(metrics, [*self.whole])
        names = [
            f"{', '.join(map(str, self._labels(key)))} ({self.num_queries[key]:,})"
            for key in self
        ]
        axes = axes_for(chosen, names)
        for axis, metric in zip(axes, chosen, strict=True):
            axis.barh(range(len(self)), [self[key][metric] for key in self], height=0.6)
            axis.axvline(self.whole[metric], color="black", linestyle="--")
        axes[0].set_ylabel(without_tex(f"{', '.join(self.by)} (queries)"))
        axes[0].figure.suptitle("By slice (dashed: all queries)", fontsize=10)
        return axes
