"""Random lists for the fuzzer: as the oracle reads them, and as the library does."""

import dataclasses

import numpy as np
import tensorflow as tf

FORMATS = ("labels", "subtopics", "rows", "ids", "catalog", "sequences")
LABELS = {  # draws the labels of a list of n items
    "binary": lambda rng, n: rng.integers(0, 2, n),
    "graded": lambda rng, n: rng.integers(0, 5, n),
    "fractions": lambda rng, n: rng.choice([0, 0.25, 0.5, 1, 1.5, 3], n),
    "close": lambda rng, n: 1 + rng.integers(0, 3, n) * 2.0**-26,
    "tiny": lambda rng, n: rng.choice([0, 1e-30, 1e-16, 1e-9, 1e-3], n),
    "wide": lambda rng, n: rng.choice([0, 1, 4, 20.5, 50, 300], n),
}
LABEL_DTYPES = {
    "binary": "bool int8 uint8 int32 int64 uint64 float16 bfloat16 float32 float64",
    "graded": "int8 uint8 int16 int32 int64 uint64 float16 bfloat16 float32 float64",
    "fractions": "float16 bfloat16 float32 float64",
    "close": "float32 float64",
    "tiny": "float32 float64",
    "wide": "float32 float64",
}
SCORES = {  # from whole numbers, most of them different, to scores
    "whole": lambda whole: whole,
    "close": lambda whole: 1 + whole * 2.0**-20,
    "closer": lambda whole: 1 + whole * 2.0**-45,
    "huge": lambda whole: whole * 2.0**100,
    "above 2^53": lambda whole: whole.astype("int64") + 2**60,
}
SCORE_DTYPES = {
    "whole": "int8 int32 int64 float16 bfloat16 float32 float64",
    "close": "float32 float64",
    "closer": "float64",
    "huge": "bfloat16 float32 float64",
    "above 2^53": "int64",
}
WEIGHTS = ("none", "queries", "column", "any size", "items", "items of any size")
STEPS = 4  # of a sequence


@dataclasses.dataclass
class Setting:
    """What all lists of a round have in common."""

    inputs: str
    items: int  # the most items of a list
    labels: str
    label_dtype: str
    scores: str
    score_dtype: str
    weights: str
    mask: str  # "negative labels", "argument" or "Keras": how padding is marked

    @classmethod
    def draw(cls, rng):
        inputs = str(rng.choice(FORMATS))
        labels, scores = str(rng.choice(list(LABELS))), str(rng.choice(list(SCORES)))
        label_dtype = str(rng.choice(LABEL_DTYPES[labels].split()))
        masks = ["argument", "Keras", "negative labels"]
        if label_dtype.startswith(("bool", "uint")):
            masks.remove("negative labels")
        weights = str(rng.choice(WEIGHTS[:4] if inputs in FORMATS[3:] else WEIGHTS))
        return cls(
            inputs=inputs,
            items=int(rng.choice([7, 7, 84])),
            labels=labels,
            label_dtype=label_dtype,
            scores=scores,
            score_dtype=str(rng.choice(SCORE_DTYPES[scores].split())),
            weights="items" if inputs == "rows" and weights == "column" else weights,
            mask=str(rng.choice(masks)),
        )

    @property
    def format(self):
        """The value of `inputs=`."""
        own = {"sequences": "catalog", "ids": "ids", "catalog": "catalog"}
        return own.get(self.inputs, "labels")


@dataclasses.dataclass
class Lists:
    """Lists as the oracle reads them, and the arguments that the library reads."""

    labels: list  # of arrays [n] or [n, 2]
    scores: list  # of arrays [n]
    weights: list  # of numbers, or of arrays [n]
    arguments: dict = dataclasses.field(default_factory=dict)
    keras_mask: np.ndarray | None = None


def draw_lists(rng, setting, queries):
    """Draws lists in the form of the setting, but at least one sequence."""
    queries = max(queries, STEPS) if setting.inputs == "sequences" else queries
    form = {"ids": _ids, "rows": _rows, "labels": _padded, "subtopics": _padded}
    lists = form.get(setting.inputs, _catalog)(rng, setting, queries)
    if setting.weights == "none":
        del lists.arguments["sample_weight"]
    elif setting.weights == "column":
        weights = lists.arguments["sample_weight"]
        lists.arguments["sample_weight"] = weights[:, np.newaxis]
    return lists


def _rounded(values, dtype):
    """The values in a dtype, and what remains of them, in a dtype of NumPy."""
    dtype = tf.as_dtype(dtype).as_numpy_dtype
    stored = np.asarray(values).astype(dtype)
    is_int = np.issubdtype(dtype, np.integer)
    return stored, stored.astype("int64" if is_int else "float64")


def _draw_labels(rng, setting, size):
    labels = np.asarray(LABELS[setting.labels](rng, size), float)
    return _rounded(labels * (rng.random() > 0.1), setting.label_dtype)[1].astype(float)


def _draw_scores(rng, setting, size):
    """Scores with few ties in long lists, since the oracle goes through all orders."""
    whole = rng.permutation(size).astype(float) - size // 2
    is_short = size <= 7
    if is_short and rng.random() < 0.1:
        whole //= 3  # groups of up to three
    elif size <= 5 and rng.random() < 0.1:
        whole[:] = 0
    for _ in range(rng.integers(0, 3) if size else 0):
        whole[rng.integers(size)] = whole[rng.integers(size)]
    scores = SCORES[setting.scores](whole)
    if size and "int" not in setting.score_dtype:
        for _ in range(rng.integers(0, 4 if is_short else 2)):
            special = [0.0, -0.0, np.inf, np.nan, -np.inf]
            scores[rng.integers(size)] = rng.choice(special)
    return _rounded(scores, setting.score_dtype)[1]


def _draw_weights(rng, setting, sizes):
    """A weight for each list, or for each item."""
    kind, queries = setting.weights, len(sizes)
    if kind == "none":
        return [1.0] * queries
    # The sum of the weights must not overflow in metric objects.
    scales = 2.0 ** rng.integers(-300, 301, queries) * (rng.random(queries) > 0.1)
    if kind == "any size":
        return list(scales)
    if kind in ("queries", "column"):
        return list(rng.integers(0, 4, queries).astype(float))
    if kind == "items":
        scales = np.ones(queries)
    return [rng.integers(0, 4, n) * scale for n, scale in zip(sizes, scales)]


def _draw_each(rng, setting, queries):
    sizes = rng.integers(max(0, setting.items - 25), setting.items + 1, queries)
    labels = [_draw_labels(rng, setting, n) for n in sizes]
    if setting.inputs == "subtopics":
        labels = [np.stack([x, rng.permutation(x)], axis=-1) for x in labels]
    scores = [_draw_scores(rng, setting, n) for n in sizes]
    return labels, scores, _draw_weights(rng, setting, sizes)


def _padded(rng, setting, queries):
    """Arrays with padding anywhere among the items, and anything in it."""
    labels, scores, weights = _draw_each(rng, setting, queries)
    valid = np.zeros((queries, setting.items), bool)
    for row, of_list in zip(valid, scores):
        row[rng.permutation(setting.items)[: len(of_list)]] = True

    def spread(parts, padding, dtype):
        shape = valid.shape + np.shape(parts[0])[1:]
        result = np.full(shape, padding, tf.as_dtype(dtype).as_numpy_dtype)
        result[valid] = np.concatenate(parts).astype(result.dtype)
        return result

    is_label_float = "float" in setting.label_dtype
    if setting.mask != "negative labels" and is_label_float:
        # With a mask, a negative label is not relevant, and no padding.
        labels = [_some_unjudged(rng, of_list) for of_list in labels]
    highest = max(map(np.max, filter(len, scores)), default=0)
    if "float" in setting.score_dtype:
        highest = rng.choice([highest, np.nan, np.inf])
    padding = -1
    if setting.mask != "negative labels":
        padding = rng.choice([1, np.nan]) if is_label_float else 1
    y_true = spread(labels, padding, setting.label_dtype)
    lists = Lists(labels, scores, weights)
    lists.arguments = {
        "y_true": y_true,
        "y_pred": spread(scores, highest, setting.score_dtype),
        "sample_weight": np.array(weights)
        if np.ndim(weights[0]) == 0
        else spread(weights, 1e300, "float64"),
    }
    if setting.mask == "argument":
        lists.arguments["mask"] = valid
    elif setting.mask == "Keras":
        lists.keras_mask = valid
    return lists


def _some_unjudged(rng, labels):
    return np.where((labels == 0) & (rng.random(labels.shape) < 0.3), -2, labels)


def _rows(rng, setting, queries):
    """A table in which the rows of all queries are mixed."""
    labels, scores, weights = _draw_each(rng, setting, queries)
    sizes = [len(of_list) for of_list in scores]
    query_ids = rng.permutation(np.repeat(np.arange(queries), sizes))
    # The rows of a query keep their order, which matters for ties="stable".
    order = np.argsort(np.argsort(query_ids, kind="stable"))
    of_items = [np.broadcast_to(w, n) for w, n in zip(weights, sizes)]
    lists = Lists(labels, scores, weights)
    lists.arguments = {
        "query_ids": query_ids,
        "labels": _rounded(np.concatenate(labels), setting.label_dtype)[0][order],
        "scores": _rounded(np.concatenate(scores), setting.score_dtype)[0][order],
        "sample_weight": np.concatenate(of_items)[order],
    }
    return lists


def _ids(rng, setting, queries):
    """Relevant ids, some with grades, and recommended ids, some of them repeated."""
    graded = setting.labels not in ("binary", "graded")
    lists = Lists([], [], _draw_weights(rng, setting, np.ones(queries)))
    # The number of relevant ids is at most 5.
    relevant = np.full((queries, 5), -1)
    recommended = np.full((queries, setting.items), -1)
    grades = np.zeros(relevant.shape)
    for query in range(queries):
        pool = rng.permutation(2 * setting.items)
        found = pool[: rng.integers(0, 6)]
        grade = (
            _draw_labels(rng, setting, len(found)) if graded else np.ones(len(found))
        )
        shown = rng.permutation(pool[: rng.integers(0, setting.items + 1)])
        shown = np.concatenate([shown, shown[:1]])[: setting.items]
        left = dict(zip(found, grade))
        # Only the first position of an id counts. Ids that are left were missed.
        labels = [left.pop(item, 0.0) for item in shown]
        lists.labels.append(np.array([*labels, *left.values()]))
        ranks = -np.arange(len(shown), dtype=float)
        lists.scores.append(np.append(ranks, np.full(len(left), -np.inf)))
        relevant[query, : len(found)], grades[query, : len(found)] = found, grade
        recommended[query, : len(shown)] = shown
    lists.arguments = {
        "y_true": {"ids": relevant, "relevance": grades} if graded else relevant,
        "y_pred": recommended,
        "sample_weight": np.array(lists.weights),
    }
    return lists


def _catalog(rng, setting, queries):
    """Relevant ids, some with grades, ids to exclude, and scores of all items.

    Sequences have `STEPS` queries each, which share a weight.
    """
    items, graded = setting.items, setting.labels not in ("binary", "graded")
    is_sequence = setting.inputs == "sequences"
    ids = rng.integers(items, size=(queries, rng.choice([1, 1, 3])))
    ids[rng.random(ids.shape) < 0.2] = -1
    exclude = rng.integers(-1, items, size=(queries, 2))
    if rng.random() < 0.5:
        exclude[:] = -1
    scores = np.stack([_draw_scores(rng, setting, items) for _ in range(queries)])
    grades = np.ones(ids.shape)
    if graded:
        grades = _draw_labels(rng, setting, ids.size).reshape(ids.shape)
        for of_ids, of_grades in zip(ids, grades):  # the same for an id given twice
            known = dict(zip(of_ids.tolist(), of_grades))
            of_grades[:] = [known[item] for item in of_ids.tolist()]
    counts = np.ones(queries, bool)
    if is_sequence and setting.mask == "Keras":
        counts = rng.random(queries) < 0.8
    steps = STEPS if is_sequence else 1
    weights = _draw_weights(rng, setting, np.ones(queries // steps))

    lists = Lists([], [], list(np.repeat(weights, steps)))
    for query in range(queries):
        labels, of_list = np.zeros(items), scores[query].astype(object)
        for item, grade in zip(ids[query], grades[query]):
            labels[item] = grade if item >= 0 else labels[item]
        excluded = [item for item in exclude[query] if item >= 0]
        of_list[excluded] = -np.inf
        # An excluded item that is not relevant is not part of the list, and a query
        # without any id is padding.
        kept = ~np.isin(np.arange(items), excluded) | (labels > 0)
        kept &= (ids[query] >= 0).any() & counts[query]
        lists.labels.append(labels[kept])
        lists.scores.append(of_list[kept])

    def by_step(values):
        return values.reshape(-1, STEPS, values.shape[-1]) if is_sequence else values

    y_true = {"ids": by_step(ids)}
    if graded:
        y_true["relevance"] = by_step(grades)
    if (exclude >= 0).any():
        y_true["exclude"] = by_step(exclude)
    if len(y_true) == 1:
        y_true = by_step(ids)
        y_true = y_true[..., 0] if ids.shape[1] == 1 else y_true
    lists.arguments = {
        "y_true": y_true,
        "y_pred": by_step(_rounded(scores, setting.score_dtype)[0]),
        "sample_weight": np.array(weights),
    }
    if is_sequence:
        lists.keras_mask = counts.reshape(-1, STEPS)
    return lists
