"""Every option of the metrics: its type, its rule and its meaning.

A metric takes an option by declaring a field of one of these types. The functions that
take metrics by name accept all options, as `Options`. `rules.py` checks values by these
types. Each metric's class declares the defaults of its options. `make_measure` applies
a default unless the user or a convention sets another value.

To add an option:

1.  Declare its type here, and a rule if it needs one. Add the type to `__all__`, a key
    to `Options`, and its meaning to the docstring of `Options`.
2.  Use it as a keyword of a formula or as a field of a gain, declare it as a field of
    the class, and describe it with its default in the docstring of the class. With
    ties="expected" the value must stay exact: a power of the value is not. A metric
    that shares the formula also needs the option, or its own formula.
3.  Write its definition in `tests/oracle.py`, as a keyword of the metric's function:
    its `**_` ignores others. The tests cover every choice of a `Literal`, and two
    values of a number.
4.  Add the tool's choice to every convention in `conventions.py` that covers the
    metric. Run `make tables lint types`, and `python -m pytest -k METRIC`.

To add a choice to an option, extend its `Literal`, the table that implements it, such
as `DISCOUNTS` or `GAINS`, and the docstrings that list the choices. A choice of `ties`
is a member of `TiePolicy` in `ranking/ties.py`: extend each `match` of one there, in
`ranking/order.py`, in `ranking/counts.py` and in `metrics/measure.py`; `make types`
finds those that are forgotten. Write its definition in `in_one_order` of
`tests/oracle.py`, and run `tests/test_ties.py`, `tests/test_tie_range.py`,
`tests/test_fuzz.py` and `tests/test_explain.py`.

Options that contradict each other are a `Conflict` in `CONFLICTS`, or in the
declaration of the only metric that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict

from tfrankmetrics.item_data import (
    CategoryShares,
    ItemCategories,
    ItemData,
    ItemNumbers,
    ItemProbabilities,
    ItemVectors,
)
from tfrankmetrics.rules import Conflict, Rule, UnknownOptionError, is_finite, is_int

__all__ = [
    "Alpha",
    "Average",
    "CategoryShares",
    "ConventionName",
    "Cutoff",
    "Decay",
    "Discount",
    "Duplicates",
    "Empty",
    "Gain",
    "Graded",
    "Ideal",
    "Inputs",
    "ItemCategories",
    "ItemNumbers",
    "ItemProbabilities",
    "ItemVectors",
    "MaxLabel",
    "NumItems",
    "Options",
    "Over",
    "Persistence",
    "RelevanceThreshold",
    "Rule",
    "Separator",
    "Ties",
    "UnknownOptionError",
    "ZeroWeight",
]

TensorFunction = Callable[[Any], Any]

_ABOVE_0 = Rule("a finite number above 0", lambda x: is_finite(x) and x > 0)

# How the data are read.
Inputs = Literal["labels", "ids", "catalog"]
Duplicates = Literal["first", "all"]
# The definition of the metric.
Cutoff = Annotated[
    int | None,
    Rule(
        "None (the whole list) or an int of at least 1 (and below 2^31)",
        lambda k: k is None or (is_int(k) and 1 <= k < 2**31),
    ),
]


def gain_by_grade(gains: Any) -> dict[Any, Any]:
    """The gain of each grade, from a list of those of 0, 1, ..., a dict, or pairs."""
    if isinstance(gains, Mapping):
        return dict(gains)
    are_pairs = all(isinstance(each, (list, tuple)) for each in gains)
    return dict(gains if are_pairs else enumerate(gains))


def _are_gains(gains: Any) -> bool:
    try:
        by_grade = gain_by_grade(gains)
    except (TypeError, ValueError):  # lists that are not pairs
        return False
    numbers = [*by_grade, *by_grade.values()]
    has_each_once = 0 < len(by_grade) == len(gains)
    return has_each_once and all(is_finite(each) and each >= 0 for each in numbers)


_GradeGains = Annotated[
    Sequence[float] | Mapping[float, float],
    Rule(
        "the gain of each grade, at least 0, as in [0, 1, 3] or {0: 0, 1: 0.1, 3: 1}",
        _are_gains,
    ),
]
Gain = Literal["exponential", "linear"] | _GradeGains | TensorFunction
Discount = Literal["log2", "jarvelin"] | TensorFunction
Ideal = Literal["judged", "retrieved"]
RelevanceThreshold = Annotated[float, _ABOVE_0]
Graded = bool | Literal["relative"]
Over = Literal["first", "all"]
# 2^max_label must not overflow, and neither must its reciprocal.
MaxLabel = Annotated[
    float,
    Rule("a number above 0, at most 1000", lambda x: is_finite(x) and 0 < x <= 1000),
]
Persistence = Annotated[
    float, Rule("a number between 0 and 1", lambda x: is_finite(x) and 0 < x < 1)
]
Decay = Annotated[
    float,
    Rule("a number from 0 to below 1", lambda x: is_finite(x) and 0 <= x < 1),
]
# Alpha-DCG divides differences by alpha, which must not be too small.
Alpha = Annotated[
    float,
    Rule("a number from 0.001 to 1", lambda x: is_finite(x) and 0.001 <= x <= 1),
]
# The keys of results: names as passed, or with "_" instead of other characters.
Separator = Literal["@", "_"]
# The number of items in the catalog. `item_data.py` has the other types for metrics of
# recommended items.
NumItems = Annotated[
    int | None,
    Rule(
        "None (the width of the scores) or an int of at least 1",
        lambda n: n is None or (is_int(n) and 1 <= n < 2**31),
    ),
]
# The treatment of tied items, empty lists and queries.
Ties = Literal["expected", "stable", "best", "worst"]
Empty = Literal["zero", "one", "skip"]
ZeroWeight = Literal["keep", "mask"]
Average = Literal["micro", "macro", "items", "relevant"]
ConventionName = Literal[
    "tf_ranking",
    "keras_rs",
    "rax",
    "trec_eval",
    "ir_measures",
    "sklearn",
    "torchmetrics",
    "lightgbm",
    "kaggle",
    "xgboost",
    "catboost",
    "spark",
    "recbole",
    "recommenders",
    "recommenders_map_at_k",
    "lenskit",
    "mind",
    "tfma",
    "tfrs",
]


class Options(TypedDict, total=False):
    """Options of metrics that are passed by name, as in `evaluate(..., gain="linear")`.

    Each option applies to every metric that supports it. It must apply to at least one.
    Metric objects in the same list keep their options. If an option is not passed, a
    metric uses the value of the `convention`, if there is one, and otherwise its
    default.

    A name may contain options as well, as in `"ndcg@10(gain=linear)"`. They take
    precedence for this name. `denominator` is an option only of names and of metric
    objects, as in `"map@5(denominator=hits)"`, since its choices differ from metric to
    metric.

    >>> options: Options = {"gain": "linear", "ties": "stable"}

    Args:
        gain: The gain of a label: "exponential" (2^label - 1), "linear" (the label),
            the gain of each grade (a list of those of 0, 1, ..., or a dict; a label
            without a gain is an error, and in a graph NaN), or a function from a
            float64 tensor of labels to a tensor of gains of the same shape, finite and
            at least 0. Register a function with Keras to save models with it.
        discount: The discount of a rank: "log2" (1 / log2(1 + rank)), "jarvelin" (1 for
            ranks 1 and 2, then 1 / log2(rank)), or a function from a float64 tensor of
            ranks, starting at 1, to a tensor of discounts that do not grow with the
            rank.
        ideal: The items in the ideal order: all "judged" items, which are those with a
            label, or only "retrieved" items, whose score is not -inf.
        relevance_threshold: The lowest label of a relevant item, above 0.
        persistence: The probability that a user continues from one item to the next,
            between 0 and 1.
        graded: The gain of an item: False (1 from the threshold on, otherwise 0), True
            (its label, which should be between 0 and 1) or "relative" (its label,
            divided by the largest label of the query if that is above 1).
        max_label: The highest possible label, above 0. A higher label makes the result
            NaN; `evaluate` raises an error.
        decay: The probability that a user gives up after each item, from 0 to below 1.
        alpha: How much of its gain a subtopic loses each time it is repeated, from
            0.001 to 1.
        over: The relevant items: the "first" one, or "all" of them, whose reciprocal
            ranks are averaged.
        average: The mean over queries: "micro" (all pairs, or all units of label, are
            weighted equally) or "macro" (all queries are weighted equally). In AUC also
            "items" or "relevant" (a query is weighted by its number of items, or of
            relevant items).
        ties: How ties are broken: "expected" (the average over all orders of
            the tied items), "stable" (in the order of the list), "best" (the
            highest gain first) or "worst" (the lowest gain first), both without weights
            per item.
        empty: What a list without relevant items (all gains are 0) scores: "zero",
            "one" (only metrics whose best value is 1), or "skip", which excludes the
            list from the mean. Lists that consist entirely of padding are always
            excluded.
        zero_weight: The meaning of a weight of 0 for an item: "keep" (the item keeps
            its rank but has no gain) or "mask" (the item is masked, as in TF-Ranking
            and keras-rs). In both, the weight of a list without relevant items is the
            mean over all its items, those of weight 0 included.
        num_items: The number of items in the catalog, V, whose ids are 0 ... V - 1.
            Required unless a function is passed the scores of the whole catalog.
        popularity: The popularity of each item, at least 0, in the order of the items'
            ids, or a dict from the id of an item to it. `novelty` requires
            probabilities above 0, such as (users of the item + 1) / (users + 1).
        vectors: A vector for each item, `[V, d]`, or a dict from the id of an item to
            its vector.
        categories: The category of each item, a string or an integer, `[V]`, or a dict
            from the id of an item to its category.
        target: The share of the exposure that each category should receive: a dict from
            categories to numbers that add up to 1.
        convention: A key of `CONVENTIONS`, such as "trec_eval": uses the settings of
            that tool as defaults. Explicitly passed options take precedence.
    """

    gain: Gain
    discount: Discount
    ideal: Ideal
    relevance_threshold: RelevanceThreshold
    persistence: Persistence
    graded: Graded
    max_label: MaxLabel
    decay: Decay
    alpha: Alpha
    over: Over
    average: Average
    ties: Ties
    empty: Empty
    zero_weight: ZeroWeight
    num_items: NumItems
    popularity: ItemData
    vectors: ItemData
    categories: ItemCategories
    target: CategoryShares
    convention: ConventionName | None


CONFLICTS = (
    Conflict(
        ("average", "empty"),
        lambda chosen: chosen["average"] == "micro" and chosen["empty"] != "skip",
        "average='micro' requires empty='skip', since an empty list has the weight 0.",
        "Pass empty='skip', or average='macro'.",
    ),
)
# Without a cutoff, k is the length of the list. Of two choices that are then the same,
# one replaces the other: equal measures compare equal.
WITHOUT_CUTOFF = {("denominator", "k"): "list"}
