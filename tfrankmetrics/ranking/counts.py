"""Ranks by counting: an item's rank is one plus the number of items that score higher.

The counts add up over the parts of a catalogue, so no sort and no scores of all items
are needed. From the counts of the relevant items this module makes what a sort would
give.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfrankmetrics.ranking.items import Items, count
from tfrankmetrics.ranking.ties import TieBreaking, TieGroups, Ties


class RankCounts(NamedTuple):
    """The counts of each judged item among all items of its query, int64 `[B, J]`."""

    above: tf.Tensor  # the items with a higher score
    tied: tf.Tensor  # the items with the same score, with itself
    # The tied items that come first, which ties="stable" and "random" need.
    tied_before: tf.Tensor | None = None


def rank_by_counts(
    counts: RankCounts,
    judged: Items,
    depth: tf.Tensor | int,
    tie_breaking: TieBreaking,
    some_ranks: tf.Tensor | None = None,
) -> tuple[Items, Ties | None]:
    """The items at ranks 1 ... D, and their ties unless these are broken.

    Only the judged items stand there. The others have the label 0.

    Args:
        counts: The counts of the judged items.
        judged: The judged items, `[B, J]`. Those that were not retrieved have no rank.
        depth: D.
        tie_breaking: How equal scores are ordered.
        some_ranks: See `RankedLists.some_ranks`.
    """
    counts = _without_missed(counts, judged.retrieved)
    order, ranks = _in_order(counts, judged, tie_breaking)
    labels = tf.gather(judged.labels, order, batch_dims=1)
    positions = tf.range(depth, dtype=tf.int64)
    ranks_above = positions + tf.zeros_like(ranks[:, :1])
    if some_ranks is not None:
        ranks_above = tf.cast(some_ranks, tf.int64) - 1
    found = _last_up_to(ranks, ranks_above)
    is_here = tf.equal(found(ranks), ranks_above)
    labels = tf.where(is_here, found(labels), 0)
    ranked = Items(labels, is_here, is_here, None)
    if not tie_breaking.is_exact:
        return ranked, None
    return ranked, _ties(counts, judged, positions, ranks_above, some_ranks is not None)


def num_judged(judged: Items, num_retrieved: tf.Tensor) -> tf.Tensor:
    """The retrieved and the missed items of a catalogue, float64 `[B]`.

    An item that is excluded and not relevant is not part of the list. A query without
    any relevant id is a list of padding.
    """
    num_missed = count(~judged.retrieved & (judged.labels > 0))
    is_list = tf.reduce_any(judged.valid, axis=1)
    # A query whose ids all have the grade 0 counts even if nothing was retrieved.
    return tf.where(is_list, tf.maximum(num_retrieved + num_missed, 1), 0)


def _without_missed(counts: RankCounts, retrieved: tf.Tensor) -> RankCounts:
    """The counts, with items that were not retrieved far below all others."""
    above = tf.where(retrieved, counts.above, tf.int64.max // 2)
    return counts._replace(above=above, tied=tf.where(retrieved, counts.tied, 1))


def _in_order(
    counts: RankCounts, judged: Items, tie_breaking: TieBreaking
) -> tuple[tf.Tensor, tf.Tensor]:
    """The judged items by rank, and the number of ranks above each, both `[B, J]`.

    With exact ties, tied items have the first ranks of their group, in any order.
    """
    if tie_breaking.ties in ("stable", "random"):
        ranks = counts.above + counts.tied_before
        order = tf.argsort(ranks, axis=1, stable=True)
        return order, tf.gather(ranks, order, batch_dims=1)
    order = tf.argsort(counts.above, axis=1, stable=True)
    if tie_breaking.gain is not None:
        best_first = tie_breaking.ties == "best"
        direction = "DESCENDING" if best_first else "ASCENDING"
        by_gain = tf.argsort(
            tie_breaking.gain(judged), axis=1, direction=direction, stable=True
        )
        above = tf.gather(counts.above, by_gain, batch_dims=1)
        order = tf.gather(by_gain, tf.argsort(above, axis=1, stable=True), batch_dims=1)
    above = tf.gather(counts.above, order, batch_dims=1)
    tied = tf.gather(counts.tied, order, batch_dims=1)
    first = tf.searchsorted(above, above, out_type=tf.int64)
    index = tf.range(tf.shape(above, out_type=tf.int64)[1])
    if tie_breaking.ties == "worst":  # the last ranks of the group
        end = tf.searchsorted(above, above, side="right", out_type=tf.int64)
        return order, above + tied - (end - index)
    return order, above + index - first


def _last_up_to(keys: tf.Tensor, values: tf.Tensor):
    """A function that gathers, for each value, from the last key that is not above it.

    `keys` `[B, J]` are sorted. Where all keys are above, it gathers from the first.
    """
    number = tf.searchsorted(keys, values, side="right")
    index = tf.maximum(number - 1, 0)
    return lambda columns: tf.gather(columns, index, batch_dims=1)


def _ties(
    counts: RankCounts,
    judged: Items,
    positions: tf.Tensor,
    ranks_above: tf.Tensor,
    are_complete: bool,
) -> Ties:
    """The groups of the judged items; every other item is a group of one."""
    order = tf.argsort(counts.above, axis=1, stable=True)
    above = tf.gather(counts.above, order, batch_dims=1)
    found = _last_up_to(above, ranks_above)
    start, tied = found(above), found(tf.gather(counts.tied, order, batch_dims=1))
    in_group = (ranks_above >= start) & (ranks_above < start + tied)
    # All ranks of a group stand side by side.
    first = tf.where(in_group, positions - (ranks_above - start), positions)
    end = tf.where(in_group, first + tied, positions + 1)
    depth = tf.shape(positions, out_type=tf.int64)[0]
    last_items, last_size = None, None
    if not are_complete:
        is_last = (counts.above < depth) & (counts.above + counts.tied >= depth)
        last_items = is_last & judged.retrieved
        size = tf.reduce_max(tf.where(last_items, counts.tied, 1), axis=1)
        last_size = tf.cast(size, tf.float64)
    groups = TieGroups(
        start=tf.cast(first, tf.int32),
        end=tf.cast(tf.minimum(end, depth), tf.int32),
        last_items=last_items,
        last_size=last_size,
    )
    return Ties(tf.reduce_any(in_group & (tied > 1)), groups)
