"""Random queries: single lists for all tools, and padded batches."""

import numpy as np

CUTOFFS = (None, 1, 2, 3, 5, 10, 20)
LONG = 200  # items, with cutoffs within and beyond the list
LONG_CUTOFFS = (None, 40, 250)
# Fractional labels lie between the grades, some below the relevance threshold.
GRADES = {"graded": [0, 0, 1, 2, 3, 4], "fractional": [0, 0.25, 0.5, 1, 1.25, 2.75]}
WEIGHTS = ("none", "queries", "items")
SOME_ZERO = "items, some with a weight of 0"


def name_of(metric, k):
    """The name of a metric at a cutoff, as in the result of `evaluate`."""
    return metric if k is None else f"{metric}@{k}"


def subtopics_of(labels):
    """Binary labels of two subtopics: label >= 1 and label >= 2."""
    labels = np.asarray(labels)[..., np.newaxis]
    return np.where(labels < 0, -1, labels >= [1, 2]).astype(int).tolist()


def random_queries(number, *, seed, kind="untied"):
    """Lists of 2 to 12 items with integer labels 0 to 4 and scores above 0.

    About one query in eight has no relevant item. Scores are multiples of 1/64, which
    float32 represents exactly. By default, all scores in a list differ. Other kinds
    have "tied" scores, "fractional" labels, "missed" items, whose score is -inf, or
    `LONG` lists, whose scores are multiples of 1/256.
    """
    rng = np.random.default_rng(seed)
    queries = []
    for _ in range(number):
        is_long = kind == "long"
        size = LONG if is_long else rng.integers(2, 13)
        labels = np.maximum(rng.integers(-3, 5, size), 0)
        labels = labels * (rng.random() > 0.12)
        if kind == "fractional":
            labels = labels * 0.75
        ties = kind == "tied"
        most = 256 if is_long else 4 if ties else 64
        scores = rng.choice(np.arange(1, most + 1), size, replace=ties)
        scores = scores / (256 if is_long else 64)
        if kind == "missed":
            scores[1:][rng.random(size - 1) < 0.3] = -np.inf
        queries.append((labels.tolist(), scores.tolist()))
    return queries


def random_batch(rng, grades, weights, queries=8, items=12):
    """Labels with padding at random places, scores without ties, and weights.

    The batch avoids the differences that `docs/conventions.md` lists. No list is all
    padding. With weights, every list has a relevant item with a weight, and only
    `SOME_ZERO` has weights of 0. The lists are long enough for one of them to have
    pairs.
    """
    shape = queries, rng.integers(2, items + 1)
    labels = rng.choice(GRADES[grades], shape)
    labels[rng.random(shape) < 0.25] = -1
    keep = rng.integers(0, shape[1], queries)
    rows = np.arange(queries)
    if weights != "none":
        labels[rows, keep] = 1
    labels[rows, keep] = np.maximum(labels[rows, keep], 0)
    order = rng.permuted(np.tile(np.arange(64), (queries, 1)), axis=1)
    scores = order[:, : shape[1]] / 16 - 2
    weight_shape = {"none": None, "queries": (queries, 1)}.get(weights, shape)
    if weight_shape is None:
        return labels.tolist(), scores.tolist(), None
    given = rng.integers(1, 9, weight_shape)
    if weights == SOME_ZERO:
        is_zero = rng.random(shape) < 0.3
        is_zero[rows, keep] = False
        given[is_zero] = 0
    return labels.tolist(), scores.tolist(), given.tolist()
