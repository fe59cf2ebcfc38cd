"""A slow oracle in plain Python: each metric by its definition, one list at a time.

It shares no code with the package. Tied items are put in every possible order,
one after the other, and the results averaged.
"""

import itertools
import math
import statistics


def evaluate(name, labels, scores, *, mask=None, weights=None, k=None, **options):
    """The value and the weight of one query; None for a list that is all padding."""
    if mask is None:
        mask = [label >= 0 for label in labels]
    if weights is None:
        weights = [1.0] * len(labels)
    items = [
        (score, max(float(label), 0.0), float(weight))
        for label, score, weight, counts in zip(labels, scores, weights, mask)
        if counts
    ]
    if not items:
        return None
    worth = _worth(name, options)
    total = sum(worth(label) for _, label, _ in items)
    if total == 0:
        query_weight = statistics.fmean(weight for _, _, weight in items)
        value = 1.0 if options.get("empty") == "one" else 0.0
        return value, 0.0 if options.get("empty") == "skip" else query_weight
    query_weight = sum(worth(label) * weight for _, label, weight in items) / total
    found = [item for item in items if item[0] != -math.inf]
    missed = [item for item in items if item[0] == -math.inf]
    values = [
        _value(name, order, missed, query_weight, k, worth, options)
        for order in _orders(found)
    ]
    return statistics.fmean(values), query_weight


def mean(name, labels, scores, *, masks=None, weights=None, **options):
    """The weighted mean over the lists; NaN if none counts."""
    masks = [None] * len(labels) if masks is None else masks
    weights = [None] * len(labels) if weights is None else weights
    results = [
        evaluate(name, label, score, mask=mask, weights=weight, **options)
        for label, score, mask, weight in zip(labels, scores, masks, weights)
    ]
    counted = [result for result in results if result is not None]
    total = sum(weight for _, weight in counted)
    if not total:
        return math.nan
    return sum(value * weight for value, weight in counted) / total


def _worth(name, options):
    if name in ("ndcg", "dcg"):
        gain = options.get("gain", "exponential")
        if callable(gain):
            return gain
        return (lambda x: x) if gain == "linear" else (lambda x: 2.0**x - 1.0)
    if name == "err":
        return lambda label: (2.0**label - 1.0) / 2.0 ** options.get("max_label", 4.0)
    threshold = options.get("relevance_threshold", 1.0)
    return lambda label: 1.0 if label >= threshold else 0.0


def _orders(items):
    """Every order that sorts the scores, NaN last; ties in each possible way."""

    def key(item):
        return (1, 0.0) if math.isnan(item[0]) else (0, -item[0])

    items = sorted(items, key=key)
    groups = [list(group) for _, group in itertools.groupby(items, key)]
    for parts in itertools.product(*(itertools.permutations(g) for g in groups)):
        yield [item for part in parts for item in part]


def _value(name, order, missed, query_weight, k, worth, options):
    """One order of what was found; `missed` has no rank, as its score is -inf."""
    depth = len(order) if k is None else min(k, len(order))
    worths = [worth(label) for _, label, _ in order]
    # An item's weight counts relative to its query's weight.
    weights = [w / query_weight if query_weight else 0.0 for _, _, w in order + missed]
    hits = sum(worths[:depth])
    relevant = sum(worth(label) for _, label, _ in order + missed)
    if name == "precision":
        divisor = k if k and options.get("denominator") == "k" else depth
        return hits / divisor if divisor else 0.0
    if name == "f1":
        divisor = k if k and options.get("denominator") == "k" else depth
        precision, recall = (hits / divisor if divisor else 0.0), hits / relevant
        return 2 * precision * recall / (precision + recall) if hits else 0.0
    if name == "r_precision":
        return sum(worths[: min(depth, int(relevant))]) / relevant
    if name == "rbp":
        b = options.get("persistence", 0.8)
        return (1 - b) * sum(x * b**place for place, x in enumerate(worths[:depth]))
    if name == "err":
        value, goes_on = 0.0, 1.0
        for rank, chance in enumerate(worths[:depth], 1):
            value += goes_on * chance / rank
            goes_on *= 1 - chance
        return value
    if name == "recall":
        return hits / relevant
    if name == "hit_rate":
        return float(hits > 0)
    if name == "mrr":
        return next((1 / i for i, x in enumerate(worths[:depth], 1) if x), 0.0)
    if name == "map":
        total = sum(
            sum(worths[:rank]) / rank * weights[rank - 1] * worths[rank - 1]
            for rank in range(1, depth + 1)
        )
        denominator = options.get("denominator", "relevant")
        divisor = {
            "relevant": relevant,
            "min(k, relevant)": min(math.inf if k is None else k, relevant),
            "hits": hits,
        }[denominator]
        return total / divisor if divisor else 0.0
    gains = [worth(x) * w for (_, x, _), w in zip(order + missed, weights)]
    dcg = _dcg(gains[:depth], options)
    if name == "dcg":
        return dcg
    if options.get("ideal") == "retrieved":
        gains = gains[: len(order)]
    ideal = _dcg(sorted(gains, reverse=True)[:k], options)
    return dcg / ideal if ideal else 0.0


def _dcg(gains, options):
    discount = options.get("discount", "log2")
    if discount == "log2":
        discounts = [1 / math.log2(1 + rank) for rank in range(1, len(gains) + 1)]
    elif discount == "jarvelin":
        discounts = [1 / max(1.0, math.log2(rank)) for rank in range(1, len(gains) + 1)]
    else:
        discounts = [discount(float(rank)) for rank in range(1, len(gains) + 1)]
    return sum(gain * factor for gain, factor in zip(gains, discounts))
