"""Slow definitions of the metrics in plain Python, for one list at a time.

They share no code with the package. Tied items are put in every possible order, and the
values are averaged. `METRICS` has a function of one order of the items for each metric.
`GAINS` has a function of the label for each metric with graded gains.

All numbers are fractions, so no sum or product is rounded. Only logarithms and powers
with broken exponents are floats first.
"""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np


@dataclasses.dataclass
class Item:
    """A judged item. Its weight is relative to the weight of its query."""

    score: float
    label: Fraction | list
    weight: Fraction
    is_judged: bool
    gain: Fraction = Fraction(0)


@dataclasses.dataclass
class Order:
    """One order of the retrieved items, and the items that were not retrieved."""

    ranked: list
    not_retrieved: list
    k: int | None

    @property
    def top(self):
        """The items at ranks 1 to k."""
        return self.ranked[: self.k]

    @property
    def top_gain(self):
        """The sum of the gains at ranks 1 to k."""
        return sum(item.gain for item in self.top)

    @property
    def total_gain(self):
        """The sum of the gains of all judged items."""
        return sum(item.gain for item in self.ranked + self.not_retrieved)

    def precision_denominator(self, denominator):
        """The denominator of precision: min(k, length of the list), or k."""
        return self.k if self.k and denominator == "k" else len(self.top)


def ratio(numerator, denominator):
    return numerator / denominator if denominator else Fraction(0)


def sum_of_discounted(gains, discount):
    functions = {
        "log2": lambda rank: 1 / math.log2(1 + rank),
        "jarvelin": lambda rank: 1 / max(1.0, math.log2(rank)),
    }
    function = functions.get(discount, discount)
    discounts = (Fraction(function(float(rank))) for rank in itertools.count(1))
    return sum(gain * share for gain, share in zip(gains, discounts))


def dcg(order, *, discount="log2", **_):
    return sum_of_discounted([x.gain * x.weight for x in order.top], discount)


def ndcg(order, *, discount="log2", ideal="judged", **_):
    items = order.ranked + (order.not_retrieved if ideal == "judged" else [])
    best = sorted((x.gain * x.weight for x in items), reverse=True)[: order.k]
    return ratio(dcg(order, discount=discount), sum_of_discounted(best, discount))


def average_precision(order, *, denominator="relevant", **_):
    total = found = Fraction(0)
    for rank, item in enumerate(order.top, 1):
        found += item.gain
        weight = 1 if denominator == "hits" else item.weight
        total += found / rank * weight * item.gain
    items = order.ranked + order.not_retrieved
    largest = sorted((item.weight * item.gain for item in items), reverse=True)
    divisors = {
        "relevant": order.total_gain,
        "min(k, relevant)": sum(largest[: order.k]),
        "min(retrieved, relevant)": sum(largest[: len(order.top)]),
        "hits": order.top_gain,
    }
    return ratio(total, divisors[denominator])


def reciprocal_rank(order, *, over="first", **_):
    found = [Fraction(1, rank) for rank, x in enumerate(order.top, 1) if x.gain]
    if over == "all":
        return sum(found, Fraction(0)) / order.total_gain
    return found[0] if found else Fraction(0)


def precision(order, *, denominator="list", **_):
    return ratio(order.top_gain, order.precision_denominator(denominator))


def recall(order, *, denominator="relevant", **_):
    most = order.total_gain
    if order.k and denominator == "min(k, relevant)":
        most = min(most, order.k)
    return order.top_gain / most


def capped_recall(order, **_):
    return recall(order, denominator="min(k, relevant)")


def completeness(order, **_):
    return Fraction(order.top_gain == order.total_gain)


def f1(order, **options):
    p, r = precision(order, **options), recall(order)
    return ratio(2 * p * r, p + r)


def hit_rate(order, **_):
    return Fraction(order.top_gain > 0)


def r_precision(order, **_):
    return sum(x.gain for x in order.top[: int(order.total_gain)]) / order.total_gain


def propensity_scored_precision(order, **_):
    return ratio(order.top_gain, _best_sum(order, lambda rank: Fraction(1)))


def propensity_scored_ndcg(order, **_):
    found = sum(x.gain * _log2(rank) for rank, x in enumerate(order.top, 1))
    return ratio(found, _best_sum(order, _log2))


def _log2(rank):
    return Fraction(1 / math.log2(1 + rank))


def _best_sum(order, discount):
    gains = sorted((x.gain for x in order.ranked + order.not_retrieved), reverse=True)
    return sum(gain * discount(rank) for rank, gain in enumerate(gains[: order.k], 1))


def _weight_by_best(name, gains, k):
    """The denominator of PSP and PSnDCG, by which micro averages weigh queries."""
    everything = Order([Item(0.0, 0, 1, True, gain) for gain in gains], [], k)
    if name == "psp":
        return _best_sum(everything, lambda rank: Fraction(1))
    number = len([gain for gain in gains if gain > 0][:k])
    binary = sum(_log2(rank) for rank in range(1, number + 1))
    return ratio(_best_sum(everything, _log2), binary)


def rank_biased_precision(order, *, persistence=0.8, graded=False, **_):
    goes_on = Fraction(persistence)
    seen = (goes_on**above for above in itertools.count())
    value = (1 - goes_on) * sum(x.gain * p for x, p in zip(order.top, seen))
    largest = max(x.gain for x in order.ranked + order.not_retrieved)
    return value / max(1, largest) if graded == "relative" else value


def expected_reciprocal_rank(order, **_):
    value, p_continue = Fraction(0), Fraction(1)
    for rank, item in enumerate(order.top, 1):
        value += p_continue * item.gain / rank
        p_continue *= 1 - item.gain
    return value


def pfound(order, *, decay=0.15, **_):
    value, p_continue = Fraction(0), Fraction(1)
    for item in order.top:
        value += p_continue * item.gain
        p_continue *= (1 - item.gain) * (1 - Fraction(decay))
    return value


def average_relevance_position(order, **_):
    weights = [item.label * item.weight for item in order.ranked]
    return ratio(sum(i * weight for i, weight in enumerate(weights, 1)), sum(weights))


def _pairs(values, weights):
    """The share of pairs in the right order, weighted by the higher item's weight."""
    correct = total = Fraction(0)
    for (i, high), (j, low) in itertools.permutations(enumerate(values), 2):
        if high > low:
            correct += weights[i] * (i < j)
            total += weights[i]
    return ratio(correct, total)


def ordered_pair_accuracy(order, **_):
    return _pairs([x.label for x in order.ranked], [x.weight for x in order.ranked])


def area_under_the_curve(order, **_):
    return _pairs([x.gain for x in order.ranked], [1] * len(order.ranked))


def binary_preference(order, *, denominator="min(relevant, irrelevant)", **_):
    irrelevant = sum(not item.gain for item in order.ranked + order.not_retrieved)
    divisor = order.total_gain
    if denominator != "relevant":
        divisor = min(order.total_gain, irrelevant)
    value, above = Fraction(0), 0
    for item in order.ranked:
        if item.gain:
            value += 1 - ratio(min(above, order.total_gain), divisor)
        above += not item.gain
    return value / order.total_gain


def tied_queries(order, **_):
    differ = (
        (one.label, one.label * one.weight) != (other.label, other.label * other.weight)
        for one, other in itertools.product(order.top, order.ranked)
        if _key(one.score) == _key(other.score)
    )
    return Fraction(any(differ))


def unjudged_share(order, *, denominator="list", **_):
    unjudged = sum(not item.is_judged for item in order.top)
    return ratio(Fraction(unjudged), order.precision_denominator(denominator))


def rbp_residual(order, *, persistence=0.8, **_):
    goes_on, residual = Fraction(persistence), Fraction(1)
    for above, item in enumerate(order.top):
        residual -= (1 - goes_on) * goes_on**above * item.is_judged
    return residual


def _ranks_of_relevant(order):
    return [Fraction(rank) for rank, item in enumerate(order.ranked, 1) if item.gain]


def first_relevant_rank(order, **_):
    return min(_ranks_of_relevant(order))


def coverage_error(order, **_):
    return max(_ranks_of_relevant(order))


def _topics(order, relevance_threshold):
    """For each subtopic with a relevant item: whether each ranked item is relevant."""
    labels = [item.label for item in order.ranked + order.not_retrieved]
    return [
        [item.label[topic] >= relevance_threshold for item in order.ranked]
        for topic in range(len(labels[0]))
        if any(label[topic] >= relevance_threshold for label in labels)
    ]


def intent_aware_precision(order, *, relevance_threshold=1.0, denominator="list", **_):
    topics = _topics(order, relevance_threshold)
    hits = sum(sum(ranks[: order.k]) for ranks in topics)
    return ratio(hits, order.precision_denominator(denominator) * len(topics))


def alpha_dcg(order, *, relevance_threshold=1.0, alpha=0.5, discount="log2", **_):
    topics = _topics(order, relevance_threshold)
    kept = 1 - Fraction(alpha)
    gains = [
        item.weight * sum(kept ** sum(r[:above]) for r in topics if r[above])
        for above, item in enumerate(order.ranked)
    ]
    return sum_of_discounted(gains[: order.k], discount)


def subtopic_recall(order, *, relevance_threshold=1.0, **_):
    topics = _topics(order, relevance_threshold)
    return Fraction(sum(any(ranks[: order.k]) for ranks in topics), len(topics))


def _greedy_ideal(order, relevance_threshold, alpha):
    """All items, of which each rank takes the one with the highest gain.

    Of equal gains, the greatest tuple of relevances comes first.
    """
    left, ideal = order.ranked + order.not_retrieved, []
    topics = range(len(left[0].label))

    def is_relevant(item):
        return [item.label[topic] >= relevance_threshold for topic in topics]

    def gain(item):
        above = [sum(is_relevant(x)[topic] for x in ideal) for topic in topics]
        kept = [(1 - Fraction(alpha)) ** number for number in above]
        return item.weight * sum(itertools.compress(kept, is_relevant(item)))

    while left:
        ideal.append(max(left, key=lambda item: (gain(item), is_relevant(item))))
        left.remove(ideal[-1])
    return ideal


def alpha_ndcg(order, *, relevance_threshold=1.0, alpha=0.5, **options):
    options |= {"relevance_threshold": relevance_threshold, "alpha": alpha}
    ideal = Order(_greedy_ideal(order, relevance_threshold, alpha), [], order.k)
    return ratio(alpha_dcg(order, **options), alpha_dcg(ideal, **options))


METRICS = {
    "ndcg": ndcg,
    "dcg": dcg,
    "map": average_precision,
    "mrr": reciprocal_rank,
    "precision": precision,
    "recall": recall,
    "hit_rate": hit_rate,
    "f1": f1,
    "r_precision": r_precision,
    "rbp": rank_biased_precision,
    "err": expected_reciprocal_rank,
    "pfound": pfound,
    "arp": average_relevance_position,
    "opa": ordered_pair_accuracy,
    "auc": area_under_the_curve,
    "gauc": area_under_the_curve,
    "bpref": binary_preference,
    "tied": tied_queries,
    "judged": precision,
    "hole": unjudged_share,
    "rbp_residual": rbp_residual,
    "capped_recall": capped_recall,
    "completeness": completeness,
    "first_relevant_rank": first_relevant_rank,
    "coverage_error": coverage_error,
    "psp": propensity_scored_precision,
    "psndcg": propensity_scored_ndcg,
    "precision_ia": intent_aware_precision,
    "subtopic_recall": subtopic_recall,
    "alpha_dcg": alpha_dcg,
    "alpha_ndcg": alpha_ndcg,
}
# These metrics rank all items. Items that were not retrieved are tied at the end.
RANK_EVERY_ITEM = ("arp", "opa", "auc", "gauc", "first_relevant_rank", "coverage_error")
SKIP_EMPTY = (*RANK_EVERY_ITEM, "psp", "psndcg")
READ_JUDGMENTS = ("judged", "hole", "rbp_residual")


def power_minus_one(label):
    """2^label - 1: exact for whole labels, and to 16 digits for all others."""
    if label.denominator == 1:
        return Fraction(2**label - 1)
    if label > 1:
        return Fraction(2.0 ** float(label)) - 1
    return Fraction(math.expm1(float(label) * math.log(2)))


def label_gain(label, *, gain="exponential", **_):
    if callable(gain):
        return Fraction(gain(float(label)))
    if isinstance(gain, tuple):  # of each grade, or pairs of a grade and its gain
        by_grade = dict(gain if isinstance(gain[0], tuple) else enumerate(gain))
        return Fraction(by_grade[float(label)])
    return label if gain == "linear" else power_minus_one(label)


def stop_probability(label, *, max_label=4.0, **_):
    return power_minus_one(label) / Fraction(2.0**max_label)


def share_of_max_label(label, *, max_label=4.0, **_):
    return label / Fraction(max_label)


def relevance(label, *, relevance_threshold=1.0, graded=False, **_):
    if graded:
        return label
    highest = max(label) if isinstance(label, list) else label
    return Fraction(highest >= relevance_threshold)


GAINS = {"ndcg": label_gain, "dcg": label_gain, "err": stop_probability}
GAINS["pfound"] = share_of_max_label


def _gains(name, items, options):
    if name in READ_JUDGMENTS:
        return [Fraction(item.is_judged) for item in items]
    labels = [item.label for item in items]
    if name == "opa":  # the number of items with a lower label
        return [sum(other < label for other in labels) for label in labels]
    if name in ("arp", "tied", "psp", "psndcg"):
        return labels
    return [GAINS.get(name, relevance)(label, **options) for label in labels]


def _key(score):
    """A key to sort by descending score: NaN is below all numbers, -inf is last."""
    if score == -math.inf:
        return (2, 0.0)
    return (1, 0.0) if math.isnan(score) else (0, -score)


def _orders(items):
    """Yields every order by descending score."""

    def key(item):
        return _key(item.score)

    items = sorted(items, key=key)
    groups = [list(group) for _, group in itertools.groupby(items, key)]
    for parts in itertools.product(*(itertools.permutations(g) for g in groups)):
        yield [item for part in parts for item in part]


def in_one_order(ties, scores, labels):
    """Scores without ties, which rank the items as `ties` orders tied ones.

    "stable" keeps the order of the list, "best" puts the highest label first, and
    "worst" the lowest one.
    """
    sign = {"stable": 0, "best": -1, "worst": 1}[ties]

    def key(i):
        return _key(scores[i]), sign * np.max(labels[i])

    order = sorted(range(len(scores)), key=key)
    result = np.empty(len(scores))
    result[order] = -np.arange(len(scores), dtype=float)
    return np.where(scores == -np.inf, -np.inf, result)


def _exact(number):
    """The non-negative number, or the list of numbers, as fractions."""
    if np.ndim(number):
        return [_exact(each) for each in number]
    return Fraction(max(float(number), 0.0))


def of_orders(name, labels, scores, *, mask=None, weights=None, k=None, **options):
    """The query's values in every order of tied items, and its weight, as fractions.

    None if all items are padding.
    """
    if mask is None:
        mask = [np.max(label) >= 0 for label in labels]
    if weights is None:
        weights = [1.0] * len(labels)
    items = [
        Item(score, _exact(label), Fraction(float(weight)), bool(np.max(label) >= 0))
        for label, score, weight, counts in zip(labels, scores, weights, mask)
        # What is neither judged nor retrieved is in no list.
        if counts and (np.max(label) >= 0 or score != -math.inf)
    ]
    mean_weight = sum(item.weight for item in items) / max(1, len(items))
    if options.get("zero_weight") == "mask":
        items = [item for item in items if item.weight]
    if not items:
        return None
    gains = _gains(name, items, options)
    total = denominator = sum(gains)
    if name in ("auc", "gauc"):
        denominator = total * (len(items) - total)
    if total:
        query_weight = sum(x * item.weight for x, item in zip(gains, items)) / total
    else:
        query_weight = mean_weight  # also of items that a weight of 0 masks
    if name in ("tied", "judged", "hole", "rbp_residual"):
        denominator = len(items)
    if name in ("psp", "psndcg"):
        denominator = _weight_by_best(name, gains, k)
    micro = dict.fromkeys(("arp", "opa", "psp", "psndcg"), "micro")
    default = {**micro, "gauc": "items"}.get(name, "macro")
    times = {"macro": 1, "micro": denominator, "items": len(items), "relevant": total}
    weight = query_weight * times[options.get("average", default)]
    if denominator == 0:
        empty = options.get("empty", "skip" if name in SKIP_EMPTY else "zero")
        return [Fraction(empty == "one")], 0 if empty == "skip" else weight
    for item, gain in zip(items, gains):
        item.gain, item.weight = gain, ratio(item.weight, query_weight)
    not_retrieved = [item for item in items if item.score == -math.inf]
    retrieved = [item for item in items if item.score != -math.inf]
    if name in RANK_EVERY_ITEM:
        retrieved, not_retrieved = items, []
    values = [
        METRICS[name](Order(ranked, not_retrieved, k), **options)
        for ranked in _orders(retrieved)
    ]
    return values, weight


def evaluate(*arguments, **options):
    """The value and the weight of one query, or None if all items are padding."""
    found = of_orders(*arguments, **options)
    if found is None:
        return None
    values, weight = found
    return float(sum(values) / len(values)), float(weight)


def mean(name, labels, scores, *, masks=None, weights=None, **options):
    """The weighted mean over the lists, or NaN if no list counts."""
    masks = [None] * len(labels) if masks is None else masks
    weights = [None] * len(labels) if weights is None else weights
    numerator = denominator = Fraction(0)
    for label, score, mask, weight in zip(labels, scores, masks, weights):
        found = of_orders(name, label, score, mask=mask, weights=weight, **options)
        if found is not None:
            values, query_weight = found
            numerator += query_weight * sum(values) / len(values)
            denominator += query_weight
    return float(numerator / denominator) if denominator else math.nan
