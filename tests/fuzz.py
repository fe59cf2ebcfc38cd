"""Compares random lists with the oracle, and random tables with slow definitions.

    python tests/fuzz.py --seconds 600 --seed 1

Each round draws a setting (input format, dtypes, weights, masks), some metrics with any
options, and batches of lists. `evaluate` or `evaluate_rows` computes all metrics of all
lists, and the oracle some metrics of each list. Metric objects compute the mean of a
batch eagerly, in a graph or under XLA. Then some arguments are made invalid: they must
raise a clear error. The checks of `fuzz_tables.py` follow. A wrong value, another error,
a warning or a round of more than ten minutes ends the run, and the command that repeats
the round is printed. `test_fuzz.py` runs some small rounds.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import faulthandler
import itertools
import math
import multiprocessing
import os
import time
import typing
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import fuzz_tables
import numpy as np
import oracle
import tensorflow as tf
from cases import CASES, GRADES, METRICS, empty_list_options, make_metric
from fuzz_lists import Setting, draw_lists

import tfrankmetrics as trm

QUERIES, BATCHES = 400, 4
WAYS = ("eagerly", "in a graph", "under XLA")
# XLA never frees the memory maps of compiled code, and Linux allows 65,530 per process.
ROUNDS_PER_PROCESS = 50
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
        if self.options["ties"] != "expected":
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
    above_max = ("err", "pfound") if setting.labels == "wide" else ()  # `max_label`
    names = [
        name
        for name, metric in METRICS.items()
        if setting.format in metric.inputs and metric.has_subtopics == has_subtopics
        if name not in above_max
    ]
    # A call with a function as an option is not compiled. In formats with ids, only
    # relevant items have a gain, whatever the function gives to label 0.
    may_call = setting.inputs in ("labels", "subtopics") and rng.random() < 0.2
    has_gains = setting.labels in ("binary", "graded", "fractions")  # for its grades
    cases = [
        case
        for case in CASES
        if case.name in names
        and (may_call or not any(callable(value) for _, value in case.options))
        and (has_gains or ("gain", GRADES) not in case.options)
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
        for k in cutoffs if METRICS[case.name].has_cutoff else (None,):
            name = str(len(drawn))
            metric = make_metric(case.name, k, name=name, **options)
            drawn[name] = Drawn(metric, case.name, options)
    return drawn


def evaluate(setting, lists, **arguments):
    """The function for the input format, called with the lists and more arguments."""
    if setting.inputs == "rows":
        return trm.evaluate_rows(**lists.arguments | arguments)
    own = {}
    if lists.keras_mask is not None:
        own["y_pred"] = tf.constant(lists.arguments["y_pred"])
        own["y_pred"]._keras_mask = tf.constant(lists.keras_mask)
    if setting.format != "labels":
        own["inputs"] = setting.format
    return trm.evaluate(**lists.arguments | own | arguments)


def check_each_list(rng, setting, metrics, lists, calls):
    """Compares some metrics of each list with the oracle."""
    labels = lists.arguments.get("y_true")
    if not isinstance(labels, dict) and np.isin(labels, [1, -1]).all():
        return  # which raises an error
    objects = [drawn.metric for drawn in metrics.values()]
    for _ in range(calls):
        found = evaluate(setting, lists, metrics=objects, per_query=True)
    queries = found.pop("query", np.arange(len(lists.labels)))
    of_oracle = {key: m.arguments_of_oracle(lists) for key, m in metrics.items()}
    number = min(3 if setting.items < 64 else 1, len(metrics))
    for row, query in enumerate(queries):
        for key in rng.choice(list(metrics), number, replace=False):
            arguments = {
                name: value[query] if isinstance(value, list) else value
                for name, value in of_oracle[key].items()
            }
            arguments["mask"] = arguments.pop("masks")
            values, weight = oracle.of_orders(**arguments) or ([], 0)
            expected = float(sum(values) / len(values)) if weight else math.nan
            value = found[str(key)][row]
            assert is_same(value, expected), (
                f"{value} instead of {expected} for {arguments}"
            )


def is_same(value, expected):
    return np.isclose(value, expected, rtol=RELATIVE_TOLERANCE, atol=0, equal_nan=True)


def check_mean(rng, setting, metrics, lists, way):
    """Compares the mean by a metric object with the oracle's."""
    number = min(3, len(metrics))
    chosen = [metrics[key] for key in rng.choice(list(metrics), number, replace=False)]
    objects = [drawn.metric for drawn in chosen]
    if rng.random() < 0.4:
        together = trm.RankingMetrics(objects, dtype="float64", inputs=setting.format)
        updated = [together]
    else:  # separate metrics, which share a ranking in a graph
        forms = {"dtype": "float64", "inputs": setting.format}
        updated = [type(o).from_config(o.get_config() | forms) for o in objects]

    def update(arguments, keras_mask):
        if keras_mask is not None:
            arguments["y_pred"]._keras_mask = keras_mask
        for metric in updated:
            metric.update_state(**arguments)

    if way != "eagerly":
        update = tf.function(update, jit_compile=way == "under XLA")
    arguments = dict(lists.arguments)
    if "mask" in arguments:
        labels, mask = arguments["y_true"], arguments.pop("mask")
        arguments["y_true"] = {"labels": labels, "mask": mask}

    def constant(array, part):
        return None if array is None else tf.constant(array[part])

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
        expected = oracle.mean(**drawn.arguments_of_oracle(lists))
        value = float(values[name])
        assert is_same(value, expected), f"{value} {way}, not {expected} for {drawn}"


# Arguments that no call may take for valid ones, or that make no sense beside others.
ODD = (None, "abc", b"abc", {}, [], [[]], [[], []], [["a", "b"]], [[1], [1, 2]])
ODD += ([[[1, 2]], [[3]]], 5, -1, math.nan, math.inf, 1e300, 2**70, True, object())
ODD += ({"labels": [[1, 0]]}, {"ids": [[1, 0]], "other": 1}, lambda: None)
ODD += (np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 2, 2, 2)))
ODD += (np.array([[1 + 2j]]), np.array([["2020-01-01"]], "datetime64[D]"))
ODD += (np.array([[math.nan, 1.0]]), np.array([[math.inf, -math.inf]]))
ODD += (np.array([[-5, 2**62]]), np.array([[1.0, None]]))


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


def check_lists(rng, counts, *, queries=QUERIES, batches=BATCHES, ways=WAYS):
    """Checks random lists in one setting, some of them in a separate batch."""
    setting = Setting.draw(rng)
    metrics = draw_metrics(rng, setting)
    for _ in range(batches):
        lists = draw_lists(rng, setting, int(rng.choice([1, queries], p=[0.2, 0.8])))
        if "y_pred" in lists.arguments and rng.random() < 0.5:  # else NumPy computes
            lists.arguments["y_pred"] = tf.constant(lists.arguments["y_pred"])
        # The first calls with some options run op by op, and later ones as a graph.
        calls = rng.choice([1, 10]) if len(ways) > 1 else 1
        check_each_list(rng, setting, metrics, lists, calls)
        counts[f"lists: {setting.inputs}"] += len(lists.labels)
    if setting.inputs != "rows":
        way = str(rng.choice(ways))
        check_mean(rng, setting, metrics, draw_lists(rng, setting, queries), way)
        counts[f"means of lists, {way}"] += 1
    for _ in range(20):
        outcome = check_errors(rng, setting, metrics, lists)
        counts[f"odd arguments: {outcome}"] += 1


@contextlib.contextmanager
def warnings_as_errors():
    """All but those about mistakes, since random data have some."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", trm.RankingWarning)
        yield


def fuzz_round(seed, number):
    """One round. Counts what was compared."""
    faulthandler.enable()  # shows where a crash of TensorFlow happens
    faulthandler.dump_traceback_later(600, exit=True)
    tf.get_logger().setLevel("ERROR")  # no warnings about graphs that are traced again
    counts, rng = collections.Counter(), np.random.default_rng([seed, number])
    with warnings_as_errors():
        for check in (check_lists, fuzz_tables.check_run, fuzz_tables.check_compare):
            check(rng, counts)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="0 for one round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--round", type=int, default=0, help="the first round")
    arguments = parser.parse_args()
    start, counts = time.time(), collections.Counter()
    processes = concurrent.futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), max_tasks_per_child=ROUNDS_PER_PROCESS
    )
    for number in itertools.count(arguments.round):
        try:
            counts += processes.submit(fuzz_round, arguments.seed, number).result()
        except BaseException:
            options = f"--seed {arguments.seed} --round {number} --seconds 0"
            print(f"To repeat: python tests/fuzz.py {options}", flush=True)
            raise
        if time.time() - start >= arguments.seconds:
            break
    print(f"{time.time() - start:.0f} s without a finding:")
    for what, count in sorted(counts.items()):
        print(f"{count:12,}  {what}")


if __name__ == "__main__":
    main()
