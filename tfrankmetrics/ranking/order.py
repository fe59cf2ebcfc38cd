"""The order of scores: every sort by score happens here.

For each setting of `ties` and `seed`, lists are sorted once, whatever the number of
metrics, and a second time only in a batch with NaN. All of it is deterministic and made
of plain TensorFlow ops, so the graph optimizer merges equal rankings within one graph.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfrankmetrics.graphs import known_size
from tfrankmetrics.ranking import ties
from tfrankmetrics.ranking.items import (
    ItemGain,
    Items,
    is_retrieved,
    lowest_score,
    select,
    without_negative_zero,
)
from tfrankmetrics.ranking.ties import TieBreaking, TieGroups, Ties


def rank_by_score(
    scores: tf.Tensor,
    depth: tf.Tensor | int,
    tie_breaking: TieBreaking,
    first_query: tf.Tensor | int,
    items_at: Callable[[tf.Tensor], Items],
    gain_of: Callable[[ItemGain], tf.Tensor],
    judged: tf.Tensor,
    judged_of: Callable[[tf.Tensor], tf.Tensor] = lambda where: where,
) -> tuple[Items, Ties | None]:
    """The items at ranks 1 ... D, and their ties unless these are broken.

    NaN ranks below every number, and items that were not retrieved rank below NaN.

    Args:
        scores: `[B, N]`; `lowest_score` for items that were not retrieved.
        depth: D.
        tie_breaking: How equal scores are ordered.
        first_query: Number of queries ranked before these.
        items_at: A function from the positions of items, `[B, D]`, to these items.
        gain_of: A function from a gain to the gain of each item, `[B, N]`.
        judged: Which judged items were retrieved, bool `[B, J]`.
        judged_of: A function from a boolean for each item, `[B, N]`, to a boolean for
            each judged item, `[B, J]`.
    """
    before = _order_of_ties(scores, tie_breaking, first_query, gain_of)

    def sort(keys):
        if not tie_breaking.is_exact:
            return keys, *_in_one_order(keys, depth, before)
        return keys, *_top_items(keys, depth)

    keys, order, sorted_keys = sort(scores)
    may_have_nan = None
    if scores.dtype.is_floating:
        # The sum is also NaN for infinity minus infinity: then the second sort is
        # unnecessary, but changes nothing.
        may_have_nan = tf.reduce_any(tf.math.is_nan(tf.reduce_sum(scores, axis=1)))

    def again_if_nan():
        """The sort, repeated for NaN: to replace it in every batch would be slow."""
        if may_have_nan is None:
            return keys, order, sorted_keys
        return tf.cond(
            may_have_nan,
            lambda: sort(_nan_as_number(scores)),
            lambda: (keys, order, sorted_keys),
            name="again_if_nan",
        )

    if not tie_breaking.is_exact or scores.shape[1] == 0:
        return items_at(again_if_nan()[1]), None
    ranked, size = items_at(order), known_size(scores)
    is_cut = size is None or size != depth
    may_exist = tf.reduce_any(ties.are_tied(sorted_keys))
    if may_have_nan is not None:
        may_exist |= may_have_nan

    def find():
        keys, order, sorted_keys = again_if_nan()
        groups = ties.groups_of(keys, sorted_keys, judged_of if is_cut else None)
        return items_at(order), groups

    def skip():  # never read, and so made of what there is
        if not is_cut:
            return ranked, TieGroups(order, order, None, None)
        no_sizes = tf.zeros(tf.shape(order)[:1], tf.float64)
        return ranked, TieGroups(order, order, judged, no_sizes)

    ranked, groups = tf.cond(may_exist, find, skip)
    return ranked, Ties(may_exist, groups)


def _order_of_ties(
    scores: tf.Tensor,
    tie_breaking: TieBreaking,
    first_query: tf.Tensor | int,
    gain_of: Callable[[ItemGain], tf.Tensor],
) -> tf.Tensor | None:
    """The order that tied items keep, `[B, N]`; None for that of the list."""
    if tie_breaking.ties == "random":
        seed = tie_breaking.seed or 0
        return ties.random_order(is_retrieved(scores), seed, first_query)
    if tie_breaking.gain is None:
        return None
    best_first = tie_breaking.ties == "best"
    return tf.argsort(
        gain_of(tie_breaking.gain),
        direction="DESCENDING" if best_first else "ASCENDING",
        stable=True,
    )


def _nan_as_number(scores: tf.Tensor) -> tf.Tensor:
    """Scores with a number below all others in place of NaN.

    That number is the lowest of the dtype. To free it, lists with NaN count the lowest
    number as equal to the second lowest.
    """
    lowest = scores.dtype.as_numpy_dtype(scores.dtype.min)
    second = np.nextafter(lowest, np.zeros_like(lowest))
    is_nan = tf.math.is_nan(scores)
    has_nan = tf.reduce_any(is_nan, axis=1, keepdims=True)
    numbers = tf.where(has_nan & tf.equal(scores, lowest), second, scores)
    return tf.where(is_nan, lowest, numbers)


def _in_one_order(
    keys: tf.Tensor, depth: tf.Tensor | int, before: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """The positions of the D largest keys, and these keys, both `[B, D]`.

    Equal keys keep the order that they have in the list, or in `before` `[B, N]`.
    """
    keys = without_negative_zero(keys)
    if before is None:
        return _top_items(keys, depth)
    order, sorted_keys = _top_items(tf.gather(keys, before, batch_dims=1), depth)
    return tf.gather(before, order, batch_dims=1), sorted_keys


def _top_items(keys: tf.Tensor, depth: tf.Tensor | int) -> tuple[tf.Tensor, tf.Tensor]:
    """The positions of the D largest keys, and these keys, both `[B, D]`."""
    sorted_keys, order = tf.math.top_k(keys, depth)
    if keys.shape[1] is None or keys.shape[1] != depth:
        # This changes no value. But if the values of a top_k are sliced, as in
        # `ties.are_tied`, XLA turns it back into a full sort, unless an op stands in
        # between. This op is cheaper than gathering the keys.
        lowest = lowest_score(keys.dtype)
        sorted_keys = select(is_retrieved(sorted_keys), sorted_keys, lowest)
    return order, sorted_keys
