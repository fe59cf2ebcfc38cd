"""Compares `evaluate_retrieval` with the bare products, and with TensorFlow's TFRS.

The least that any evaluation can cost is the product of all queries with all
candidates: here in float32, by NumPy, in chunks. Exact ties take a product in float64,
which is rounded, and then two passes over the scores for each relevant item. TensorFlow
Recommenders (TFRS) runs on TensorFlow 2.15.1; its part is left out where it is not
installed. Without TFRS, processes of their own measure the time and the memory of ten
million candidates. Run it with:

    python benchmarks/retrieval.py
"""

import json
import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import numpy as np
import tensorflow as tf
from report import Target, publish
from timing import median_and_spread, ratio, timed
from training import SUITE

from tfrankmetrics import evaluate_retrieval, retrieve

QUERIES, CANDIDATES, WIDTH, CHUNK = 2_000, 100_000, 64, 16_384
CUTOFFS = [1, 5, 10, 50, 100]
BARE = "the products in float32"


def data():
    """Random vectors and ten relevant items for each query."""
    rng = np.random.default_rng(0)
    vectors = [rng.normal(size=(n, WIDTH)) for n in (QUERIES, CANDIDATES)]
    queries, candidates = (each.astype("float32") for each in vectors)
    return queries, candidates, rng.integers(0, CANDIDATES, (QUERIES, 10))


def bare(queries, candidates):
    """The products in chunks of both."""

    def run():
        for start in range(0, CANDIDATES, CHUNK):
            chunk = candidates[start : start + CHUNK].T
            for first in range(0, QUERIES, 256):
                queries[first : first + 256] @ chunk

    return run


def of_tfrs(queries, candidates, relevant):
    """The hit rates of TFRS, from brute force and from a stream, if it is installed."""
    try:
        import tensorflow_recommenders as tfrs
    except ImportError:
        return {}
    queries = tf.constant(queries)
    own = tf.gather(candidates, relevant[:, 0])
    dataset = tf.data.Dataset.from_tensor_slices(candidates).batch(4096).cache()
    largest = max(CUTOFFS)
    forms = {
        "TFRS, brute force": tfrs.layers.factorized_top_k.BruteForce(k=largest).index(
            tf.constant(candidates)
        ),
        "TFRS, streaming": tfrs.layers.factorized_top_k.Streaming(
            k=largest
        ).index_from_dataset(dataset),
    }

    def hit_rates(form):
        metric = tfrs.metrics.FactorizedTopK(candidates=form, ks=CUTOFFS)

        def run():
            metric.reset_states()
            metric.update_state(queries, own)
            return [float(value) for value in metric.result()]

        return run

    return {name: hit_rates(form) for name, form in forms.items()}


def large(kind, number):
    """The seconds and the gigabytes beyond the candidates that a large case takes."""
    rng, width = np.random.default_rng(0), 32
    starts = range(0, number, CHUNK)

    def chunks():
        for start in starts:
            size = min(CHUNK, number - start)
            yield rng.standard_normal((size, width), "float32")

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

    queries = rng.standard_normal((1024, width), "float32")
    relevant, metrics = rng.integers(0, number, (1024, 1)), ["mrr", "ndcg@10", "auc"]
    small = queries, queries[:1000], relevant % 1000, metrics
    evaluate_retrieval(*small)  # loads what any call needs
    if kind == "array":
        candidates = np.empty((number, width), "float32")
        for start, rows in zip(starts, chunks(), strict=True):
            candidates[start : start + len(rows)] = rows
    else:

        def same_each_time():
            rng.bit_generator.state = np.random.default_rng(1).bit_generator.state
            return chunks()

        spec = tf.TensorSpec([None, width], tf.float32)
        candidates = tf.data.Dataset.from_generator(
            same_each_time, output_signature=spec
        )
    memory, start = peak(), time.perf_counter()
    evaluate_retrieval(queries, candidates, relevant, metrics)
    return time.perf_counter() - start, peak() - memory


def large_cases():
    """The rows and targets of large cases, each in a process of its own."""
    rows, found = [["candidates", "seconds", "GB beyond them"]], {}
    for kind, number in (("array", 10**7), ("tf.data", 10**6), ("tf.data", 10**7)):
        printed = subprocess.run(
            [sys.executable, __file__, kind, str(number)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        found[kind, number] = seconds, memory = json.loads(printed)
        rows.append([f"{number:,}, {kind}", f"{seconds:.3g}", f"{memory:.2g}"])
        print(*rows[-1], sep="  ", flush=True)
    largest = max(memory for _, memory in found.values())
    more = found["tf.data", 10**7][1] - found["tf.data", 10**6][1]
    what = "10,000,000 candidates, 1,024 queries: GB beyond the candidates"
    return rows, [
        Target.at_most(1, what, largest),
        Target.at_most(0.1, "GB more for ten times the candidates, tf.data", more),
    ]


def main():
    """Measures all in turns and publishes the results."""
    queries, candidates, relevant = data()
    hit_rates = [f"hit_rate@{k}" for k in CUTOFFS]

    def ours(number, metrics, kind=np.asarray):
        vectors, chosen = (kind(queries), kind(candidates)), relevant[:, :number]
        return lambda: evaluate_retrieval(*vectors, chosen, metrics)

    one, ten = "one relevant item, MRR@10", "ten relevant items, ten metrics"
    calls = {
        BARE: bare(queries, candidates),
        f"ours, {one}": ours(1, ["mrr@10"]),
        f"ours, {ten}": ours(10, SUITE),
        f"ours with TensorFlow, {one}": ours(1, ["mrr@10"], tf.constant),
        f"ours in float64, {one}": ours(1, ["mrr@10"], np.float64),
        "ours, ten highest candidates": lambda: retrieve(queries, candidates, 10),
        "ours, one relevant item, five hit rates": ours(1, hit_rates),
    }
    others = of_tfrs(queries, candidates, relevant)
    for run in others.values():  # the same numbers, but for rounding errors and ties
        found = evaluate_retrieval(queries, candidates, relevant[:, :1], hit_rates)
        np.testing.assert_allclose(run(), [*found.values()], atol=1e-6)
    times = timed({**calls, **others}, seconds=40, least=7)
    rows = []
    for name, values in times.items():
        milliseconds = median_and_spread(values)
        rows.append([name, milliseconds, f"{ratio(times, name, BARE):.3g}"])
        print(*rows[-1], sep="  ", flush=True)
    same = "ours, one relevant item, five hit rates"
    targets = [
        Target.at_least(1, f"{name} / {same}", ratio(times, name, same))
        for name in others
    ] or [
        Target.at_most(4, f"ours, {one} / {BARE}", ratio(times, f"ours, {one}", BARE))
    ]
    size = f"{QUERIES} queries, {CANDIDATES:,} candidates, {WIDTH} dimensions"
    tables = {size: [["", "ms", f"/ {BARE}"], *rows]}
    if not others:
        cases, more_targets = large_cases()
        tables["1,024 queries, 32 dimensions, three metrics"] = cases
        targets += more_targets
    packages = ["tensorflow", *(["tensorflow-recommenders"] if others else [])]
    publish(
        "retrieval-tfrs" if others else "retrieval",
        "Catalogs in chunks" + (", beside TensorFlow Recommenders" if others else ""),
        packages,
        tables,
        targets,
    )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(large(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
