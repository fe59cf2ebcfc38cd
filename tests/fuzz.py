"""Compares random lists with the oracle, for as long as you like.

    python tests/fuzz.py --seconds 600 --seed 1

Each round draws a setting (input format, dtypes, weights, masks), some metrics with any
options, and batches of some hundred lists. `evaluate` or `evaluate_rows` computes all
metrics of all lists of a batch, and the oracle some metrics of each list. Rows are also
passed to `evaluate_run`, as two tables. Metric objects
compute the mean of a batch eagerly, in a graph or under XLA, and the oracle checks it,
too. Then some arguments are made invalid: they must raise a clear error. A wrong value,
another error, a warning or a call of more than ten minutes ends the run, and the command
that repeats the round is printed.
"""

import argparse
import collections
import dataclasses
import faulthandler
import json
import math
import os
import sys
import time
import typing
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import helpers
import numpy as np
import oracle
import pandas as pd
import tensorflow as tf
from cases import CASES, METRICS, empty_list_options, make_metric
from fuzz_lists import Setting, draw_lists

import tfrankmetrics as tfr

QUERIES, BATCHES = 400, 4
# XLA never frees the memory maps of compiled code, and Linux allows 65,530 per process.
ROUNDS_PER_PROCESS = 200
RELATIVE_TOLERANCE = 1e-13
CUTOFFS = (1, 2, 5, 63, 70, None)


@dataclasses.dataclass
class Drawn:
    """A metric object, and its name and options for the oracle."""

    metric: tf.keras.metrics.Metric
    name: str
    options: dict

    def arguments_of_oracle(self, lists):
        """The arguments of `oracle.mean`."""
        scores, sizes = lists.scores, map(len, lists.scores)
        weights = [np.broadcast_to(w, n) for w, n in zip(lists.weights, sizes)]
        if self.options["ties"] in ("stable", "best", "worst"):
            each = zip(scores, lists.labels)
            scores = [oracle.in_one_order(self.options["ties"], *one) for one in each]
        options = self.options | {"k": getattr(self.metric, "k", None)}
        del options["ties"]
        return {
            "name": self.name,
            "labels": lists.labels,
            "scores": scores,
            "weights": weights,
            # A label below 0 is not relevant here, and not judged.
            "masks": [np.full(len(of_list), True) for of_list in lists.scores],
            **options,
        }


def draw_metrics(rng, setting):
    """Draws a dict from the names of results to metrics with any options."""
    has_subtopics = setting.inputs == "subtopics"
    names = [
        name
        for name, metric in METRICS.items()
        if setting.format in metric.inputs and metric.has_subtopics == has_subtopics
    ]
    if setting.labels == "wide":
        above_max = ("err", "pfound")  # labels above `max_label`
        names = [name for name in names if name not in above_max]
    if rng.random() < 0.2:
        if setting.labels not in ("binary", "tiny"):
            names = [name for name in names if name != "pfound"]  # max_label=1
        return draw_convention(rng, names, setting.weights)
    # A call with a function as an option is not compiled. In formats with ids, only
    # relevant items have a gain, whatever the function gives to label 0.
    may_call = setting.inputs in ("labels", "subtopics") and rng.random() < 0.2
    cases = [
        case
        for case in CASES
        if case.name in names
        and (may_call or not any(callable(value) for _, value in case.options))
    ]
    drawn = {}
    cutoffs = rng.choice(np.array(CUTOFFS, object), 3, replace=False)
    for case in rng.choice(np.array(cases, object), min(12, len(cases)), replace=False):
        ties = typing.get_args(METRICS[case.name].types["ties"])
        if "items" in setting.weights:
            ties = [each for each in ties if each not in ("best", "worst")]
        options = dict(case.options) | {"ties": str(rng.choice(ties))}
        if rng.random() < 0.5:
            options |= rng.choice(empty_list_options(case.name))
        seed = {"seed": 5} if options["ties"] == "random" else {}
        for k in cutoffs if METRICS[case.name].has_cutoff else (None,):
            name = str(len(drawn))
            metric = make_metric(case.name, k, name=name, **options, **seed)
            drawn[name] = Drawn(metric, case.name, options)
    return drawn


def draw_convention(rng, names, weights):
    """All metrics with the options of one convention that covers any of them."""
    conventions = [
        convention
        for convention in tfr.CONVENTIONS.values()
        if set(names) & set(convention.metrics)
        if "items" not in weights or not set(names) & ordered_by_labels(convention)
    ]
    convention = conventions[rng.integers(len(conventions))]
    drawn = {}
    for name in filter(convention.metrics.__contains__, names):
        metric = make_metric(name, 5, convention=convention.name, name=name)
        options = METRICS[name].types.keys() & convention.options.keys()
        chosen = {option: convention.choice(option, name) for option in options}
        if "items" not in weights:  # only a weight of an item may mask it
            chosen.pop("zero_weight", None)
        drawn[name] = Drawn(metric, name, chosen)
    return drawn


def ordered_by_labels(convention):
    """The metrics that a convention computes in the best or the worst order.

    They do not accept weights of items.
    """
    if "ties" not in convention.options:
        return set()
    ties = {name: convention.choice("ties", name) for name in convention.metrics}
    return {name for name, choice in ties.items() if choice in ("best", "worst")}


def evaluate(setting, lists, **arguments):
    """The function for the input format, called with the lists and more arguments."""
    if setting.inputs == "rows":
        return tfr.evaluate_rows(**lists.arguments | arguments)
    own = {"y_pred": tf.constant(lists.arguments["y_pred"])}
    if lists.keras_mask is not None:
        own["y_pred"]._keras_mask = tf.constant(lists.keras_mask)
    if setting.format != "labels":
        own["inputs"] = setting.format
    return tfr.evaluate(**lists.arguments | own | arguments)


def check_each_list(rng, setting, metrics, lists):
    """Compares some metrics of each list with the oracle."""
    objects = [drawn.metric for drawn in metrics.values()]
    # The first calls with some options run op by op, and later ones as a graph.
    for _ in range(rng.choice([1, 10])):
        found = evaluate(setting, lists, metrics=objects, per_query=True)
    queries = found.pop("query", np.arange(len(lists.labels)))
    check_alone(rng, setting, objects, lists, found)
    check_numpy(setting, objects, lists, found)
    of_oracle = {key: m.arguments_of_oracle(lists) for key, m in metrics.items()}
    number = min(3 if setting.items < 64 else 1, len(metrics))
    for row, query in enumerate(queries):
        for key in rng.choice(list(metrics), number, replace=False):
            arguments = {
                name: value[query] if isinstance(value, list) else value
                for name, value in of_oracle[key].items()
            }
            arguments["mask"] = arguments.pop("masks")
            expected = possible_values(arguments, metrics[key].options["ties"])
            value = found[str(key)][row]
            assert any(is_same(value, each) for each in expected), (
                f"{value} instead of {expected} for {arguments}"
            )


def check_numpy(setting, objects, lists, found):
    """Compares the values by NumPy with those by TensorFlow."""
    if setting.inputs == "rows" or lists.keras_mask is not None:
        return
    arguments = lists.arguments | {"metrics": objects, "per_query": True}
    if setting.format != "labels":
        arguments["inputs"] = setting.format
    of_numpy = tfr.evaluate(**arguments)
    for name, values in of_numpy.items():
        same = is_same(values, found[name])
        assert same.all(), f"{name} of {lists.arguments}: {values} and {found[name]}"


def check_alone(rng, setting, objects, lists, found):
    """Compares the values of a list in a batch of its own with those in the batch."""
    objects = [metric for metric in objects if metric.ties != "random"]
    if setting.inputs not in ("labels", "subtopics", "ids", "catalogue") or not objects:
        return
    for query in rng.integers(0, len(lists.labels), 3):
        arguments, mask = tf.nest.map_structure(
            lambda array, at=query: None if array is None else array[at : at + 1],
            (lists.arguments, lists.keras_mask),
        )
        labels = arguments["y_true"]
        if not isinstance(labels, dict) and np.isin(labels, [1, -1]).all():
            continue  # which raises an error
        one = dataclasses.replace(lists, arguments=arguments, keras_mask=mask)
        alone = evaluate(setting, one, metrics=objects, per_query=True)
        for name, (value,) in alone.items():
            assert is_same(value, found[name][query]), f"{name} of {arguments}"


def possible_values(arguments, ties):
    """The mean over all orders of tied items; with ties="random", that of each order."""
    values, weight = oracle.of_orders(**arguments) or ([], 0)
    if not weight:
        return [math.nan]
    number = len(values)
    if ties == "random":
        # Items that were not retrieved share their ranks in every order.
        share_ranks = arguments["name"] in oracle.RANK_EVERY_ITEM and number > 1
        not_retrieved = list(arguments["scores"]).count(-math.inf)
        number = math.factorial(not_retrieved) if share_ranks else 1
    return [
        float(sum(values[start : start + number]) / number)
        for start in range(0, len(values), number)
    ]


def is_same(value, expected):
    return np.isclose(value, expected, rtol=RELATIVE_TOLERANCE, atol=0, equal_nan=True)


def check_mean(rng, setting, metrics, lists):
    """Compares the mean by a metric object with the oracle's. Returns how it ran."""
    number = min(3, len(metrics))
    chosen = [metrics[key] for key in rng.choice(list(metrics), number, replace=False)]
    objects = [drawn.metric for drawn in chosen]
    if rng.random() < 0.4:
        together = tfr.RankingMetrics(objects, dtype="float64", inputs=setting.format)
        updated = [together]
    else:  # separate metrics, which share a ranking in a graph
        forms = {"dtype": "float64", "inputs": setting.format}
        updated = [type(o).from_config(o.get_config() | forms) for o in objects]

    def update(arguments, keras_mask):
        if keras_mask is not None:
            arguments["y_pred"]._keras_mask = keras_mask
        for metric in updated:
            metric.update_state(**arguments)

    how = str(rng.choice(["eagerly", "in a graph", "under XLA"]))
    if how != "eagerly":
        update = tf.function(update, jit_compile=how == "under XLA")
    arguments = dict(lists.arguments)
    if "mask" in arguments:
        labels, mask = arguments["y_true"], arguments.pop("mask")
        arguments["y_true"] = {"labels": labels, "mask": mask}
    # In two batches of different sizes.
    middle = int(rng.integers(len(arguments["y_pred"])))
    for part in (slice(0, middle), slice(middle, None)):
        batch = arguments, lists.keras_mask
        update(
            *tf.nest.map_structure(lambda array, at=part: constant(array, at), batch)
        )
    values = updated[0].result()
    if not isinstance(values, dict):
        values = {metric.name: metric.result() for metric in updated}
    for drawn in chosen:
        name = drawn.metric.name
        value = float(values[name])
        if drawn.options["ties"] == "random":
            expected = evaluate(setting, lists, metrics=[drawn.metric])[name]
        else:
            expected = oracle.mean(**drawn.arguments_of_oracle(lists))
        assert is_same(value, expected), (
            f"{value} {how} instead of {expected} for {drawn}"
        )
    return how


def constant(array, part):
    return None if array is None else tf.constant(array[part])


# Arguments that no call may take for valid ones, or that make no sense beside others.
ODD = (
    None,
    "abc",
    b"abc",
    {},
    [],
    [[]],
    [[], []],
    [["a", "b"]],
    [[1], [1, 2]],
    [[[1, 2]], [[3]]],
    5,
    -1,
    math.nan,
    math.inf,
    1e300,
    2**70,
    True,
    object(),
    {"labels": [[1, 0]]},
    {"ids": [[1, 0]], "other": 1},
    np.zeros((0, 3)),
    np.zeros((3, 0)),
    np.zeros((2, 2, 2, 2)),
    np.array([[1 + 2j]]),
    np.array([["2020-01-01"]], "datetime64[D]"),
    np.array([[math.nan, 1.0]]),
    np.array([[math.inf, -math.inf]]),
    np.array([[-5, 2**62]]),
    np.array([[1.0, None]]),
    lambda: None,
)


def check_errors(rng, setting, metrics, lists):
    """Makes one or two arguments odd: an error that says what it received, or a result."""
    keys = [*lists.arguments, "metrics", "sample_weight", "gain", "ties", "empty", "k"]
    keys += ["groups"] if setting.inputs == "rows" else ["mask", "inputs"]
    odd = {
        str(key): ODD[rng.integers(len(ODD))]
        for key in rng.choice(keys, rng.integers(1, 3))
    }
    metrics = [drawn.metric for drawn in metrics.values()][:1]
    try:
        result = evaluate(setting, lists, **{"metrics": metrics} | odd)
    except (ValueError, TypeError) as error:
        message = str(error)
    else:
        assert all(isinstance(value, float) for value in result.values()), odd
        return "a result"
    assert "Received" in message, f"{message:.1000} for {odd}"
    assert len(message) < 3000, f"{message:.1000} for {odd}"
    return "a clear error"


def check_run(rng, metrics, lists):
    """Compares `evaluate_run` with `evaluate_rows`, on the same rows in two tables."""
    chosen = [
        drawn.metric
        for drawn in metrics.values()
        # A random order depends on the rows, and metrics of all ranks on missed items.
        if drawn.options["ties"] != "random"
        and METRICS[drawn.name].without_results is not None
    ]
    rows = {name: lists.arguments[name] for name in ("query_ids", "labels", "scores")}
    rows = {name: column[rows["labels"] >= 0] for name, column in rows.items()}
    rows = {  # pandas has no bfloat16
        name: column.astype("float32") if column.dtype.name == "bfloat16" else column
        for name, column in rows.items()
    }
    if not chosen or not len(rows["labels"]):
        return 0
    expected = tfr.evaluate_rows(**rows, metrics=chosen, per_query=True)
    frame = pd.DataFrame(rows).assign(item_id=rng.permutation(len(rows["labels"])))
    frame = frame.rename(columns={"query_ids": "query_id", "labels": "label"})
    judged = frame
    judged_only = ("bpref", "judged", "hole", "rbp_residual")
    if rng.random() < 0.5 and not any(d.name in judged_only for d in metrics.values()):
        # An item that was not judged counts as one of label 0.
        is_first = ~frame.duplicated("query_id")
        judged = frame[is_first | (frame.label > 0) | (rng.random(len(frame)) < 0.5)]
    if judged.label.dtype.kind == "i" and rng.random() < 0.5:
        judged = judged.astype({"label": "uint64"})
    tables = {
        "label": judged[["query_id", "item_id", "label"]].sample(
            frac=1, random_state=1
        ),
        "scores": frame[frame.scores != -np.inf][["query_id", "item_id", "scores"]],
    }
    if rng.random() < 0.5:
        tables = {
            value: {
                query: dict(zip(of.item_id, of[value]))
                for query, of in table.groupby("query_id")
            }
            for value, table in tables.items()
        }
    if not len(tables["scores"]):
        return 0
    qrels, run = tables.values()
    found = tfr.evaluate_run(qrels, run, chosen, score="scores", per_query=True)
    order = {query: i for i, query in enumerate(found["query"])}
    order = [order[query] for query in expected["query"]]
    for name in expected.keys() - {"query"}:
        assert is_same(found[name][order], expected[name]).all(), name
    return len(order)


def fuzz_round(seed, counts):
    """One round. Counts what was compared."""
    rng = np.random.default_rng(seed)
    setting = Setting.draw(rng)
    metrics = draw_metrics(rng, setting)
    for _ in range(BATCHES):
        lists = draw_lists(rng, setting, QUERIES)
        check_each_list(rng, setting, metrics, lists)
        counts["lists"] += QUERIES
        counts[f"lists: {setting.inputs}"] += QUERIES
        if setting.inputs == "rows":
            counts["lists: two tables"] += check_run(rng, metrics, lists)
    if setting.inputs != "rows":
        how = check_mean(rng, setting, metrics, lists)
        counts[f"means of {QUERIES} lists, {how}"] += 1
    for _ in range(20):
        outcome = check_errors(rng, setting, metrics, lists)
        counts[f"odd arguments: {outcome}"] += 1


def parser_of(documentation):
    """The command line of a fuzzer."""
    parser = argparse.ArgumentParser(description=documentation.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round", type=int, help="runs only this round")
    return parser


def main():
    parser = parser_of(__doc__)
    parser.add_argument(
        "--go-on", help=argparse.SUPPRESS
    )  # the state of the last process
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", tfr.RankingWarning)
    tf.get_logger().setLevel("ERROR")  # no warnings about graphs that are traced again
    faulthandler.enable()  # shows where a crash of TensorFlow happens
    start, number, counts = json.loads(arguments.go_on or "[0, 0, {}]")
    start, counts = start or time.time(), collections.Counter(counts)
    number = number if arguments.round is None else arguments.round
    while time.time() - start < arguments.seconds:
        faulthandler.dump_traceback_later(600, exit=True)
        try:
            fuzz_round([arguments.seed, number], counts)
        except BaseException:
            command = f"--seed {arguments.seed} --round {number}"
            print(f"To repeat: python tests/fuzz.py {command}", flush=True)
            raise
        if arguments.round is not None:
            break
        number += 1
        if number % 20 == 0:
            print(f"{time.time() - start:.0f} s: {counts['lists']:,} lists", flush=True)
            helpers.clear_caches()
        if number % ROUNDS_PER_PROCESS == 0:
            state = ["--go-on", json.dumps([start, number, counts])]
            limits = ["--seconds", arguments.seconds, "--seed", arguments.seed]
            os.execv(
                sys.executable, [sys.executable, *map(str, [__file__, *limits, *state])]
            )
    print(f"{time.time() - start:.0f} s without a finding:")
    for what, count in sorted(counts.items()):
        print(f"{count:12,}  {what}")


if __name__ == "__main__":
    main()
