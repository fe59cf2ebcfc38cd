"""Compares random lists with the oracle, for as long as you like.

    python tests/fuzz.py --seconds 600 --seed 1

Each round draws a setting (input format, dtypes, weights, ties, list lengths, metrics
with all their options) and some hundred lists. One call computes every metric of every
list. The oracle, slow and in plain Python, checks a few metrics of each list. In some
rounds a metric object computes the mean of a few metrics, eagerly, in a graph or under
XLA. A wrong value, an error or a warning ends the run, and shows how to reproduce it.
"""

import argparse
import collections
import dataclasses
import math
import os
import time
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import helpers
import numpy as np
import oracle
import tensorflow as tf
from cases import CASES, METRICS, metrics_supporting, with_cutoffs

import tfrankmetrics as tfr

QUERIES = 200
CHECKED_PER_LIST = 3
TOLERANCE = 1e-12
CUTOFFS = (1, 2, 5, 63, 70, None)


@dataclasses.dataclass
class Setting:
    """What all lists of a round have in common."""

    inputs: str
    ties: str
    lengths: str
    labels: str
    weights: str
    label_dtype: str
    score_dtype: str

    @classmethod
    def draw(cls, rng):
        def one_of(*choices):
            return str(rng.choice(choices))

        inputs = one_of("labels", "labels", "subtopics", "ids", "catalogue", "rows")
        return cls(
            inputs=inputs,
            ties=one_of("expected", "expected", "stable"),
            lengths=one_of("short", "short", "long"),
            labels=one_of("binary", "graded", "fractional", "tiny differences"),
            weights=one_of("none", "queries", "items", "huge")
            if inputs in ("labels", "rows")
            else one_of("none", "queries"),
            label_dtype=one_of("float32", "float64"),
            score_dtype=one_of("float32", "float64", "int64"),
        )


def draw_list(rng, setting):
    """Labels and scores of one list, in float64; both may be padded at the end."""
    size = rng.integers(0, 7) if setting.lengths == "short" else rng.integers(55, 80)
    labels = {
        "binary": lambda: rng.integers(0, 2, size),
        "graded": lambda: rng.integers(0, 5, size),
        "fractional": lambda: rng.choice([0, 0.25, 0.5, 1, 1.5, 3], size),
        "tiny differences": lambda: 1 + rng.integers(0, 3, size) * 2.0**-26,
    }[setting.labels]().astype(float)
    labels = labels * (rng.random() > 0.1)
    labels = labels.astype(setting.label_dtype).astype(float)
    scores = rng.permutation(size).astype(float) - size // 2
    if size:
        # Few ties in each list, since the oracle goes through all orders.
        for _ in range(rng.integers(0, 3)):
            scores[rng.integers(size)] = scores[rng.integers(size)]
        if setting.score_dtype != "int64":
            special = [0.0, -0.0, np.inf, np.nan, -np.inf]
            for _ in range(rng.integers(0, 2)):
                scores[rng.integers(size)] = rng.choice(special)
    return labels, scores


def measures(setting):
    """All metrics that the input format supports, with all options, at some cutoffs."""
    inputs = setting.inputs
    if inputs == "subtopics":
        names = [name for name in METRICS if METRICS[name].has_subtopics]
    else:
        inputs = "labels" if inputs == "rows" else inputs
        names = [n for n in metrics_supporting(inputs) if not METRICS[n].has_subtopics]
    found = {}
    for case in CASES:
        # A function as an option keeps a call from being compiled.
        if case.name in names and not any(callable(v) for _, v in case.options):
            for _, k in with_cutoffs([case], CUTOFFS):
                found[f"{case}@{k}"] = case, k
    return found


METRIC_OBJECTS = {}


def metric_objects(setting):
    """The metrics of a setting, made once, so that compiled graphs are reused."""
    key = setting.inputs, setting.ties
    if key not in METRIC_OBJECTS:
        METRIC_OBJECTS[key] = [
            case.metric(k, name=name, ties=setting.ties, dtype="float64")
            for name, (case, k) in measures(setting).items()
        ]
    return METRIC_OBJECTS[key]


@dataclasses.dataclass
class Data:
    """The lists of a round, as the oracle and as the library read them."""

    labels: list  # of arrays, one for each list
    scores: list
    weights: list | None  # a number, or an array, for each list
    call: dict  # the arguments of `evaluate`


def padded(rows, value):
    width = max(1, *map(len, rows))
    shape = (len(rows), width, *np.shape(rows[0])[1:])
    result = np.full(shape, value, float)
    for row, values in zip(result, rows):
        row[: len(values)] = values
    return result


def draw(rng, setting):
    lists = [draw_list(rng, setting) for _ in range(QUERIES)]
    labels, scores = (list(column) for column in zip(*lists))
    weights = {
        "none": lambda: None,
        "queries": lambda: list(rng.integers(0, 4, QUERIES).astype(float)),
        "huge": lambda: list(rng.choice([1e300, 1.0, 1e-300, 0.0], QUERIES)),
        "items": lambda: [rng.integers(1, 4, len(x)).astype(float) for x in labels],
    }[setting.weights]()
    if setting.inputs == "subtopics":
        labels = [np.stack([x, np.maximum(x, 1) - 1], axis=-1) for x in labels]
    if setting.inputs == "ids":
        return ids(labels, scores, weights)
    if setting.inputs == "catalogue":
        return catalogue(rng, setting, labels, weights)
    call = {
        "y_true": padded(labels, -1).astype(setting.label_dtype),
        "y_pred": padded(scores, 0).astype(setting.score_dtype),
    }
    if weights is not None:
        is_items = setting.weights == "items"
        call["sample_weight"] = padded(weights, 1) if is_items else np.array(weights)
    return Data(labels, scores, weights, call)


def ids(labels, scores, weights):
    """Ids in the order of the scores. A score of -inf was not recommended."""
    relevant, recommended = [], []
    for query, (of_list, by_score) in enumerate(zip(labels, scores)):
        order = [i for i in np.argsort(-by_score) if by_score[i] > -np.inf]
        recommended.append([int(item) for item in order])
        relevant.append([int(item) for item in np.flatnonzero(of_list)])
        ranks = np.full(len(of_list), -np.inf)
        ranks[order] = -np.arange(len(order), dtype=float)
        # An item that is neither relevant nor recommended is in no list.
        kept = [i for i, s in enumerate(ranks) if s > -np.inf or of_list[i]]
        labels[query], scores[query] = (of_list[kept] > 0) * 1.0, ranks[kept]
    call = {"y_true": relevant, "y_pred": recommended}
    if weights is not None:
        call["sample_weight"] = np.array(weights)
    return Data(labels, scores, weights, call)


def catalogue(rng, setting, labels, weights):
    """Scores of 9 or 80 items, of which one to three are relevant."""
    items = 9 if setting.lengths == "short" else 80
    number = int(rng.integers(1, 4))
    scores = np.array([rng.permutation(items) for _ in labels], float)
    column = rng.integers(items, size=(2, len(labels)))
    rows = np.arange(len(labels))
    scores[rows, column[0]] = scores[rows, column[1]]
    relevant = rng.integers(items, size=(len(labels), number))
    relevant[:, 1:][rng.random((len(labels), number - 1)) < 0.4] = -1
    labels = np.zeros_like(scores)
    for row, found in zip(labels, relevant):
        row[found[found >= 0]] = 1
    scores = scores.astype(setting.score_dtype)
    call = {"y_true": relevant, "y_pred": scores}
    if weights is not None:
        call["sample_weight"] = np.array(weights)
    return Data(list(labels), list(scores.astype(float)), weights, call)


def as_single_order(scores):
    """Scores without ties that keep tied items in the order of the list."""
    value = np.where(np.isnan(scores), -np.finfo(float).max, scores)
    order = np.argsort(-value, kind="stable")
    result = np.empty(len(scores))
    result[order] = -np.arange(len(scores), dtype=float)
    return np.where(scores == -np.inf, -np.inf, result)


def check(rng, setting, data):
    """Compares a few metrics of each list with the oracle."""
    objects, named = metric_objects(setting), measures(setting)
    if setting.inputs == "rows":
        found = by_rows(rng, setting, data, objects)
    else:
        found = tfr.evaluate(
            **data.call, metrics=objects, per_query=True, **form(setting)
        )
    names = list(named)
    for query, (labels, scores) in enumerate(zip(data.labels, data.scores)):
        weights = None if data.weights is None else data.weights[query]
        if weights is not None and np.ndim(weights) == 0:
            weights = np.full(len(labels), weights)
        by_order = as_single_order(scores) if setting.ties == "stable" else scores
        for name in rng.choice(names, CHECKED_PER_LIST, replace=False):
            case, k = named[name]
            expected = math.nan
            if len(labels):
                value, weight = oracle.evaluate(
                    case.name,
                    labels,
                    by_order,
                    weights=weights,
                    k=k,
                    **dict(case.options),
                )
                expected = value if weight else math.nan
            np.testing.assert_allclose(
                found[name][query],
                expected,
                rtol=TOLERANCE,
                atol=TOLERANCE,
                err_msg=f"{name} of labels {labels}, scores {scores}, weights {weights}",
            )
    return found


def check_objects(rng, setting, data):
    """Compares the mean by a metric object, in some way to run it, with `evaluate`."""
    objects = list(rng.choice(metric_objects(setting), 4, replace=False))
    metric = tfr.RankingMetrics(objects, dtype="float64", **form(setting))
    update = helpers.update_function(metric)
    if how := rng.integers(0, 3):
        update = tf.function(update, jit_compile=bool(how == 2))
    update(*(tf.constant(argument) for argument in data.call.values()))
    expected = tfr.evaluate(**data.call, metrics=objects, **form(setting))
    for name, value in metric.result().items():
        np.testing.assert_allclose(
            float(value), expected[name], rtol=TOLERANCE, err_msg=f"{name}, {how}"
        )


def form(setting):
    is_labels = setting.inputs in ("labels", "rows", "subtopics")
    return {} if is_labels else {"inputs": setting.inputs}


def by_rows(rng, setting, data, objects):
    """The lists as shuffled rows, and the values in the order of the lists."""
    query = np.repeat(np.arange(len(data.labels)), [len(x) for x in data.labels])
    order = np.arange(len(query))
    if setting.ties == "expected":
        order = rng.permutation(order)
    weight = None
    if data.weights is not None:
        weight = np.concatenate(
            [np.broadcast_to(w, len(x)) for w, x in zip(data.weights, data.labels)]
        )[order]
    found = tfr.evaluate_rows(
        query[order],
        np.concatenate(data.labels)[order].astype(setting.label_dtype),
        np.concatenate(data.scores)[order].astype(setting.score_dtype),
        objects,
        sample_weight=weight,
        per_query=True,
    )
    ids = found.pop("query")
    values = {}
    for name, column in found.items():
        values[name] = np.full(len(data.labels), math.nan)
        values[name][ids] = column
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    start, counts, rounds = time.time(), collections.Counter(), 0
    while time.time() - start < arguments.seconds:
        seed = [arguments.seed, rounds]
        rng = np.random.default_rng(seed)
        setting = Setting.draw(rng)
        try:
            data = draw(rng, setting)
            check(rng, setting, data)
            if setting.inputs not in ("rows", "ids") and rng.random() < 0.2:
                check_objects(rng, setting, data)
                counts["by metric objects"] += QUERIES
        except BaseException:
            print(f"seed {seed}: {setting}", flush=True)
            raise
        counts[setting.inputs] += QUERIES
        counts[f"ties={setting.ties}"] += QUERIES
        rounds += 1
        if rounds % 20 == 0:
            helpers.clear_caches()
    total = rounds * QUERIES
    print(f"{total:,} lists in {time.time() - start:.0f} s, all equal: {dict(counts)}")


if __name__ == "__main__":
    main()
