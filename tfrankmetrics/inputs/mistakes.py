"""Checks for data that are probably a mistake, but yield plausible values."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.columns.frames import is_column_of_frame
from tfrankmetrics.columns.values import from_pytorch

# Their lines are on the call stack between a warning and the user's code.
LIBRARIES = {__name__.partition(".")[0], "keras", "tf_keras", "tensorflow"}
MOST_VALUES = 10_000  # enough of the data to tell
MANY = 20  # fewer items may be alike by chance
LONG = 200  # items of a list that may be the rows of several queries
MANY_RELEVANT = 2 * MANY  # items of such a list
FLAT_RULE = "Labels and scores of the shape [N] are the list of one query."
SINGLE_ITEMS_REMEDY = (
    "To evaluate rows of several queries, use evaluate_rows with the id of the query "
    "of each row."
)


class RankingWarning(UserWarning):
    """A warning about data or results that are probably a mistake.

    To make it an error:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RankingWarning)
    """


def refuse_columns(y_true: Any, y_pred: Any) -> None:
    """Raises ValueError for columns of a frame, whose rows are of many queries."""
    for name, data in (("y_true", y_true), ("y_pred", y_pred)):
        if is_column_of_frame(data):
            raise ValueError(
                "Each query is a list, and the rows of a frame usually belong to many "
                f"queries. Received: {name} is a column of {len(data)} rows. Call "
                "evaluate_rows or explain_rows with the ids of the queries. If all "
                "rows belong to one query, pass column.to_numpy()."
            )


def refuse_signed_labels(labels: Any, remedy: str) -> None:
    """Raises ValueError for labels of -1 and +1, where -1 would be padding."""
    numbers = _flat(labels)
    if numbers is None or not _are_signs(numbers[:MOST_VALUES]):
        return
    is_negative = numbers == -1
    if is_negative.any() and not is_negative.all() and _are_signs(numbers):
        raise ValueError(
            "Labels must not be only -1 and 1, since a label below 0 marks padding: "
            "nothing but relevant items would be left. Received: only -1 and 1. If -1 "
            f"means not relevant, pass labels > 0. If it marks padding, {remedy}."
        )


class BatchCheck:
    """A check of data that come in batches; this one finds nothing."""

    def add(self, y_true: Any) -> None:
        """Records the facts of a batch."""

    def refuse_mistakes(self) -> None:
        """Raises ValueError for a mistake that only all batches together show."""


class DistinctLabels(BatchCheck):
    """The different labels of many batches, while they may all be -1 and 1."""

    def __init__(self) -> None:
        self._distinct = np.empty(0)

    def add(self, y_true: Any) -> None:
        """Adds the labels of a batch, until there is a label other than -1 and 1."""
        if not isinstance(y_true, Mapping) and _are_signs(self._distinct):
            numbers = _flat(y_true)
            others = np.zeros(1) if numbers is None else np.unique(numbers)
            self._distinct = np.union1d(self._distinct, others)

    def refuse_mistakes(self) -> None:
        """Raises ValueError if all labels were -1 and 1."""
        remedy = 'pass {"labels": labels, "mask": labels >= 0}'
        refuse_signed_labels(self._distinct, remedy)


def warn_if_swapped(y_true: Any, y_pred: Any) -> None:
    """Warns if the labels look like scores and the scores look like labels."""
    labels, scores = (_sample(data) for data in (y_true, y_pred))
    if labels.size < 4 or scores.size < 4:
        return
    are_labels = _are_grades(scores).all() and np.unique(scores).size > 1
    if are_labels and (labels % 1 != 0).mean() > 0.5:
        warn(
            "Labels come before scores. Received: labels most of which are fractions, "
            f"and scores that are whole numbers from 0 to {scores.max():.0f}. They are "
            "probably swapped."
        )


def warn_if_queries_are_labels(distinct_ids: Any, labels: Any) -> None:
    """Warns if the query ids look like labels and the labels look like ids."""
    ids = _sample(distinct_ids)
    if ids.size < 2 or not _are_grades(ids).all():
        return
    grades = np.unique(_sample(labels))
    are_ids = (grades % 1 == 0).all() and not _are_grades(grades).all()
    if are_ids and grades.size > 2 * ids.size:
        warn(
            "Query ids identify queries, and labels state how relevant an item is. "
            "Received: query ids that are only whole numbers from 0 to "
            f"{ids.max():.0f}, and {grades.size} different labels. They are probably "
            "swapped."
        )


def warn_if_ids_are_fractions(ids: Any) -> None:
    """Warns if query ids are fractions, which scores are."""
    numbers = _sample(ids)
    if numbers.size > 1 and (numbers % 1 != 0).mean() > 0.5:
        warn(
            "Query ids identify queries. Received: query ids that are fractions, such "
            f"as {numbers[numbers % 1 != 0][0]:g}. The order of the columns is "
            "query_ids, labels, scores; they are probably mixed up."
        )


def warn_if_flat(y_true: Any, labels: Array) -> None:
    """Warns of one long list with many relevant items, passed as one dimension.

    `labels` are those of the lists, `[B, N]`, 0 for padding.
    """
    queries, size = labels.shape
    if queries != 1 or size < LONG or np.ndim(y_true) != 1:
        return
    relevant = np.count_nonzero(labels)
    if relevant >= MANY_RELEVANT:
        warn(
            f"{FLAT_RULE} Received: {size:,} items, {relevant:,} of them with a label "
            "above 0. If they belong to several queries, use evaluate_rows with the id "
            "of the query of each row. If all belong to one query, pass [labels] and "
            "[scores]."
        )


def warn_if_rankings(scores: Array) -> None:
    """Warns of integer scores `[B, N]` that are N successive numbers in each list."""
    queries, size = scores.shape
    if xp.dtype_of(scores).kind not in "iu" or queries * size < 2 * MANY or size < 4:
        return
    some = np.sort(np.asarray(scores[: max(2, MOST_VALUES // size)]), axis=1)
    lowest = some[0, 0]
    if lowest in (0, 1) and (some == lowest + np.arange(size)).all():
        warn(
            "Scores must be higher for better items. Received: integers that are the "
            f"numbers {lowest} to {lowest + size - 1} in each list, as of argsort. If "
            "they are the positions of the items, best first, pass inputs='ids' and "
            "the ids of the relevant items. If they are ranks, pass "
            "lower_is_better=True. If they are scores, pass them as floats."
        )


def warn_if_ranks(
    queries_of_rows: Callable[[], np.ndarray], scores: np.ndarray, name: Any = None
) -> None:
    """Warns of scores that are the ranks 1, 2, ... of the rows of each query.

    `queries_of_rows` returns the number of the query of each row, and `name` is the
    name of the column of scores. If that contains "rank" or "position", the rows may be
    in any order.
    """
    words = re.findall(r"[a-z]+", str(name).lower())
    are_called_ranks = not {"rank", "ranks", "ranking", "position"}.isdisjoint(words)
    some = scores[:MOST_VALUES]
    if len(scores) < (2 if are_called_ranks else MANY):
        return
    if not ((some >= 1) & (some == np.floor(some))).all():
        return
    queries = queries_of_rows()
    order = np.argsort(queries, kind="stable")
    if are_called_ranks:
        order = np.lexsort((scores, queries))
    queries, scores = queries[order], scores[order]
    starts = np.flatnonzero(np.append(True, queries[1:] != queries[:-1]))
    lengths = np.diff(starts, append=len(queries))
    ranks = np.arange(len(queries)) - np.repeat(starts, lengths) + 1
    if lengths.max() > 1 and (scores == ranks).all():
        warn(
            "The highest score ranks first. Received: scores that are 1, 2, ... in "
            "each query, as if they were ranks, whose lowest is the best. Pass the "
            "scores of the model, or lower_is_better=True."
        )


class ScoreCounts(NamedTuple):
    """How many scores there are, and how many of them are NaN."""

    number: int = 0
    nan: int = 0

    @classmethod
    def of(cls, scores: Any) -> ScoreCounts:
        """The counts of an array of scores, without padding."""
        numbers = np.asarray(scores)
        return cls(numbers.size, int(np.count_nonzero(np.isnan(numbers))))

    def merged(self, other: ScoreCounts) -> ScoreCounts:
        """The counts of both."""
        return ScoreCounts(self.number + other.number, self.nan + other.nan)

    def warn(self, where: str = "") -> None:
        """Warns of scores that are NaN, as those of a model that has diverged."""
        if self.nan:
            warn(
                f"Scores must be numbers. Received{where}: NaN for {self.nan:,} of "
                f"{self.number:,} scores. NaN ranks below every number, and several of "
                "them are tied, so that a model that returns only NaN has the value of "
                "a random order."
            )


def warn_if_lists_have_one_item(num_lists: int, longest: int) -> None:
    """Warns if all lists contain one item, so that nothing is ranked."""
    if longest == 1 and num_lists > 2 * MANY:
        warn(
            f"A list must contain all items of a query. Received: {num_lists:,} lists "
            f"of one item each, in which nothing can be ranked. {SINGLE_ITEMS_REMEDY}"
        )


def warn_if_relevant_are_excluded(relevant: int, excluded: int) -> None:
    """Warns if a tenth of the relevant items, or all of a few, are excluded."""
    if excluded >= (relevant if relevant < MANY else relevant / 10) > 1:
        warn(
            "`exclude` removes items from the ranking that are not candidates, such as "
            f"those of the training data. Received: {excluded:,} of {relevant:,} "
            "relevant items are excluded, and treated as missed. Remove the relevant "
            "items from `exclude`."
        )


def warn_if_no_ids(relevant: Any) -> None:
    """Warns if relevant ids are probably a 0 or 1 for each item."""
    relevant = from_pytorch(relevant)
    ids = _sample(relevant)
    try:
        is_long = np.ndim(relevant) == 2 and np.shape(relevant)[1] > 2
    except ValueError:  # lists of unequal length
        return
    if is_long and ids.size > 0 and ((ids == 0) | (ids == 1)).all():
        warn(
            "With inputs='ids', `y_true` must hold the ids of the relevant items. "
            "Received: zeros and ones, in lists of more than two. If they indicate "
            "which items are relevant, pass them as labels, with scores and without "
            "`inputs`."
        )


def warn_if_no_id_matches(relevant: np.ndarray, recommended: np.ndarray) -> None:
    """Warns if no recommended id, of any query, is a relevant one of any query."""
    relevant, recommended = (ids[ids >= 0] for ids in (relevant, recommended))
    if min(relevant.size, recommended.size) < MANY:
        return
    some = recommended[:MOST_VALUES]  # which are enough, unless none of them matches
    if not np.isin(some, relevant).any() and not np.isin(recommended, relevant).any():
        warn(
            "Relevant and recommended ids must be those of the same items. Received: "
            f"{recommended.size:,} recommended ids, none of which is among the "
            f"{relevant.size:,} relevant ids of any query, so that all values are 0. "
            "They are probably numbered differently."
        )


def warn_of_labels(shape: tuple[int, ...]) -> None:
    """Warns of ids that repeat, in rows as long as the catalogue."""
    warn(
        "Relevant items must be passed as their positions among the candidates. "
        f"Received: shape {shape}, a number for each candidate, some of them twice in "
        "a row. They are probably labels. Pass the positions of the relevant "
        "candidates, and the labels of these as `relevance`."
    )


def warn_if_all_judged(reads_judgments: bool, judged: Any) -> None:
    """Warns if `judged` is computed on lists without possible unjudged items."""
    if reads_judgments and judged is None:
        warn(
            "`judged` requires a mask, which distinguishes unjudged items (labels "
            "below 0) from padding. Received: no mask, so that such items are padding, "
            "and all others are treated as judged. Pass a mask, or use evaluate_rows "
            "or evaluate_run."
        )


def warn_if_nothing_found(retrieved: int, unjudged: int) -> None:
    """Warns if no predicted item of any query was judged."""
    if retrieved > 0 and unjudged == retrieved:
        warn(
            "Unjudged items are treated as not relevant. Received: predictions without "
            "a judged item, so that all values are 0. The item ids of `qrels` and "
            "`run` are probably different."
        )


def warn_if_invalid(sums: np.ndarray, name: str, more_causes: str, hint: str) -> None:
    """Warns if an update has made the sums of a metric NaN or infinite."""
    if np.isfinite(sums).all():
        return
    warn(
        f"The result of {name!r} is NaN, since an update received invalid values: "
        f"{more_causes}a label or weight that is NaN or infinite, a negative weight, "
        "weights whose sum overflows, or gains that overflow, as of labels above 1,023 "
        f"with gain='exponential'. {hint}Pass the same data to tfrankmetrics.evaluate "
        "to get an error that names the value."
    )


def _are_signs(numbers: np.ndarray) -> bool:
    return bool(((numbers == 1) | (numbers == -1)).all())


def _are_grades(numbers: np.ndarray) -> np.ndarray:
    return (numbers >= 0) & (numbers <= 4) & (numbers % 1 == 0)


def warn(message: str) -> None:
    """Warns at the line of the user's code: the first one outside of libraries."""
    level, frame = 1, sys._getframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RankingWarning, stacklevel=level)


def _flat(data: Any) -> np.ndarray | None:
    """All values in one dimension; None if they are not numbers."""
    data = from_pytorch(getattr(data, "flat_values", data))  # of a ragged tensor
    try:
        numbers = np.asarray(data)
    except ValueError:  # lists of unequal length
        numbers = np.empty(0, object)
    if numbers.dtype == object:
        try:
            numbers = np.concatenate([np.ravel(row) for row in data])
        except (TypeError, ValueError):
            return None
    return numbers.ravel() if numbers.dtype.kind in "iuf" else None


def _sample(data: Any) -> np.ndarray:
    """Some of the finite values; none if these are not numbers."""
    numbers = _flat(data)
    if numbers is None:
        return np.empty(0)
    numbers = numbers[:MOST_VALUES]
    return numbers[np.isfinite(numbers)]
