"""A slow oracle in plain Python: each metric by its definition, one list at a time.

It shares no code with the package. Tied items are put in every possible order,
one after the other, and the results averaged.
"""

import itertools
import math
import statistics

import numpy as np

# About the places of all items: what was not retrieved follows, in every order.
OF_PLACES = ("arp", "opa", "auc")
OF_SUBTOPICS = ("precision_ia", "alpha_dcg")


def evaluate(name, labels, scores, *, mask=None, weights=None, k=None, **options):
    """The value and the weight of one query; None for a list that is all padding."""
    if mask is None:
        mask = [np.max(label) >= 0 for label in labels]
    if weights is None:
        weights = [1.0] * len(labels)
    items = [
        (score, np.maximum(label, 0.0).tolist(), float(weight))
        for label, score, weight, counts in zip(labels, scores, weights, mask)
        if counts
    ]
    if not items:
        return None
    worths = _worths(name, [label for _, label, _ in items], options)
    total = to_find = sum(worths)
    if name == "auc":
        to_find = total * (len(items) - total)
    if total:
        query_weight = sum(x * w for x, (_, _, w) in zip(worths, items)) / total
    else:
        query_weight = statistics.fmean(weight for _, _, weight in items)
    if to_find == 0:
        empty = options.get("empty", "skip" if name in OF_PLACES else "zero")
        return float(empty == "one"), 0.0 if empty == "skip" else query_weight
    items = [(*item, worth) for item, worth in zip(items, worths)]
    missed = [item for item in items if item[0] == -math.inf]
    found = [item for item in items if item[0] != -math.inf]
    values = [
        _value(name, order, missed, query_weight, k, options)
        for order in _orders(items if name in OF_PLACES else found)
    ]
    if name in ("arp", "opa") and options.get("average", "micro") == "micro":
        query_weight *= total
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


def _worths(name, labels, options):
    if name == "opa":
        return [sum(other < label for other in labels) for label in labels]
    if name in OF_SUBTOPICS:
        labels = map(max, labels)
    return list(map(_worth(name, options), labels))


def _worth(name, options):
    if name in ("ndcg", "dcg"):
        gain = options.get("gain", "exponential")
        if callable(gain):
            return gain
        return (lambda x: x) if gain == "linear" else (lambda x: 2.0**x - 1.0)
    if name == "arp":
        return lambda label: label
    if name == "err":
        return lambda label: (2.0**label - 1.0) / 2.0 ** options.get("max_label", 4.0)
    threshold = options.get("relevance_threshold", 1.0)
    return lambda label: 1.0 if label >= threshold else 0.0


def _orders(items):
    """Every order that sorts the scores, NaN late, -inf last; ties in each way."""

    def key(item):
        if item[0] == -math.inf:
            return (2, 0.0)
        return (1, 0.0) if math.isnan(item[0]) else (0, -item[0])

    items = sorted(items, key=key)
    groups = [list(group) for _, group in itertools.groupby(items, key)]
    for parts in itertools.product(*(itertools.permutations(g) for g in groups)):
        yield [item for part in parts for item in part]


def _value(name, order, missed, query_weight, k, options):
    """One order of what was found; `missed` has no rank, as its score is -inf."""
    _, labels, weights, worths = zip(*order) if order else ((), (), (), ())
    if name == "arp":
        shares = [label * weight for label, weight in zip(labels, weights)]
        if not sum(shares):
            return 0.0
        return sum(i * share for i, share in enumerate(shares, 1)) / sum(shares)
    if name in ("opa", "auc"):
        return _pairs(name, labels if name == "opa" else worths, weights)
    depth = len(order) if k is None else min(k, len(order))
    # An item's weight counts relative to its query's weight.
    weights = [w / query_weight if query_weight else 0.0 for w in weights]
    hits, relevant = sum(worths[:depth]), sum(worths) + sum(x for *_, x in missed)
    if name in OF_SUBTOPICS:
        threshold = options.get("relevance_threshold", 1.0)
        every = [label for _, label, *_ in missed] + list(labels)
        topics = [
            [label[topic] >= threshold for label in labels]
            for topic in range(len(every[0]))
            if any(label[topic] >= threshold for label in every)
        ]
        return _of_subtopics(name, topics, weights, k, depth, options)
    if name == "bpref":
        irrelevant = sum(not x for *_, x in order + missed)
        least = options.get("denominator") != "relevant"
        divisor = min(relevant, irrelevant) if least else relevant
        above = [rank - sum(worths[:rank]) for rank in range(len(order))]
        return (
            sum(
                1 - (min(n, relevant) / divisor if n else 0.0)
                for n, x in zip(above, worths)
                if x
            )
            / relevant
        )
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
    gains = [x * w for x, w in zip(worths, weights)]
    dcg = _dcg(gains[:depth], options)
    if name == "dcg":
        return dcg
    if options.get("ideal", "judged") == "judged":
        gains += [x * w / query_weight if query_weight else 0.0 for *_, w, x in missed]
    ideal = _dcg(sorted(gains, reverse=True)[:k], options)
    return dcg / ideal if ideal else 0.0


def _pairs(name, labels, weights):
    won = total = 0.0
    for (i, high), (j, low) in itertools.permutations(enumerate(labels), 2):
        if high > low:
            weight = weights[i] if name == "opa" else 1.0
            won += weight * (i < j)
            total += weight
    return won / total if total else 0.0


def _of_subtopics(name, topics, weights, k, depth, options):
    """`topics` says for each one which of the ranks are relevant to it."""
    if name == "precision_ia":
        divisor = k if k and options.get("denominator") == "k" else depth
        hits = sum(sum(ranks[:depth]) for ranks in topics)
        return hits / (divisor * len(topics)) if divisor else 0.0
    left = 1 - options.get("alpha", 0.5)
    gains = [
        sum(left ** sum(ranks[:place]) for ranks in topics if ranks[place]) * weight
        for place, weight in enumerate(weights)
    ]
    return _dcg(gains[:depth], options)


def _dcg(gains, options):
    discount = options.get("discount", "log2")
    if discount == "log2":
        discounts = [1 / math.log2(1 + rank) for rank in range(1, len(gains) + 1)]
    elif discount == "jarvelin":
        discounts = [1 / max(1.0, math.log2(rank)) for rank in range(1, len(gains) + 1)]
    else:
        discounts = [discount(float(rank)) for rank in range(1, len(gains) + 1)]
    return sum(gain * factor for gain, factor in zip(gains, discounts))
