"""Compares our metrics on Beam with the NDCG of TensorFlow Model Analysis (TFMA).

The script first times the combiners alone, which receive one query after another. Then
it times whole runs on rows: of `run_model_analysis`, with its NDCG and with ours, and
of `ComputeMetricsOfRows`, which does without TFMA. At last it shows how the time of
`ComputeMetricsOfRows` grows with the rows. Run it with:

    python benchmarks/beam.py
"""

import functools
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma
from report import Target, publish
from tensorflow_model_analysis.metrics import metric_types, ndcg
from tensorflow_model_analysis.proto import config_pb2
from timing import median_and_spread, ratio, timed
from training import SUITE

from tfrankmetrics.beam import ComputeMetricsOfRows
from tfrankmetrics.tfma import RankMetrics, eval_config

QUERIES = 1024
ROWS = 100_000
SIZES = (25_000, ROWS, 400_000)


def queries(length):
    """Queries in the form that TFMA passes to a combiner."""
    rng = np.random.default_rng(0)
    elements = []
    for number in range(QUERIES):
        grades = rng.integers(0, 5, length).astype("float32")
        features = {"query": np.array([f"q{number}"] * length), "grade": grades}
        elements.append(
            metric_types.StandardMetricInputs(
                {
                    "labels": grades,
                    "predictions": rng.normal(size=length).astype("float32"),
                    "features": features,
                }
            )
        )
    return elements


def combiners():
    """The combiners of TFMA's NDCG@10, our NDCG@10, and our ten metrics."""
    theirs = ndcg._ndcg(
        "grade",
        [10],
        model_names=[""],
        output_names=[""],
        sub_keys=[],
        query_key="query",
    )
    ours = {
        name: RankMetrics(names).computations(query_key="query")
        for name, names in (("ours", ["ndcg@10"]), ("ours, ten metrics", SUITE))
    }
    return {
        name: computations[0].combiner
        for name, computations in {"TFMA": theirs, **ours}.items()
    }


def combine(combiner, elements):
    """The values over all elements, computed with the calls that Beam makes."""
    accumulator = combiner.create_accumulator()
    for element in elements:
        accumulator = combiner.add_input(accumulator, element)
    return combiner.extract_output(combiner.compact(accumulator))


def measure_combiners():
    """Rows with the time per query for three list lengths, and the targets."""
    targets = []
    rows = [["", *combiners(), "TFMA / ours", "ten metrics / one metric"]]
    for length in (10, 100, 1000):
        elements = queries(length)
        calls = {
            name: functools.partial(combine, combiner, elements)
            for name, combiner in combiners().items()
        }
        times = {name: 1000 / QUERIES * of for name, of in timed(calls).items()}
        slower = compared(f"{length} items", times, rows)
        if length == 100:
            what = "one query of 100 items on Beam: TFMA's NDCG@10 / ours"
            targets.append(Target.at_least(5, what, slower))
    return rows, targets


def compared(what, times, rows):
    """Adds a row. Returns the ratio TFMA / ours."""
    ratios = ratio(times, "TFMA", "ours"), ratio(times, "ours, ten metrics", "ours")
    rows.append([what, *map(median_and_spread, times.values())])
    rows[-1] += [f"{of:.3g}" for of in ratios]
    print(*rows[-1], sep="  ", flush=True)
    return ratios[0]


def write_rows(path, number):
    """Writes shuffled rows with scores as tf.Examples, ten rows per query."""
    rng = np.random.default_rng(0)
    with tf.io.TFRecordWriter(path) as writer:
        for row in rng.permutation(number):
            query = tf.train.BytesList(value=[f"q{row // 10}".encode()])
            grade = tf.train.FloatList(value=[rng.integers(0, 5)])
            score = tf.train.FloatList(value=[rng.normal()])
            features = {
                "query": tf.train.Feature(bytes_list=query),
                "grade": tf.train.Feature(float_list=grade),
                "score": tf.train.Feature(float_list=score),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


def as_row(record):
    """A row for `ComputeMetricsOfRows` from a serialized tf.Example."""
    feature = tf.train.Example.FromString(record).features.feature
    return {
        "query": feature["query"].bytes_list.value[0],
        "grade": feature["grade"].float_list.value[0],
        "score": feature["score"].float_list.value[0],
    }


def run_transform(records, metrics, output):
    """Evaluates a file of records on Beam, without TFMA."""
    with beam.Pipeline() as pipeline:
        _ = (
            pipeline
            | beam.io.ReadFromTFRecord(records)
            | beam.Map(as_row)
            | ComputeMetricsOfRows("query", "grade", "score", metrics)
            | beam.io.WriteToText(output)
        )


def measure_runs(folder):
    """A table with the time of a whole run, and the target."""
    keys = {"label_key": "grade", "prediction_key": "score", "query_key": "query"}
    configs = {
        "TFMA": eval_config(["ndcg@10"], **keys),
        "ours": eval_config(["ndcg@10"], **keys),
        "ours, ten metrics": eval_config(SUITE, **keys),
    }
    del configs["TFMA"].metrics_specs[0].metrics[:]
    configs["TFMA"].metrics_specs[0].metrics.append(
        config_pb2.MetricConfig(
            class_name="NDCG", config='"gain_key": "grade", "top_k_list": [10]'
        )
    )
    records = os.path.join(folder, "rows.tfrecord")
    write_rows(records, ROWS)
    calls = {
        name: lambda config=config, name=name: tfma.run_model_analysis(
            eval_config=config,
            data_location=records,
            output_path=os.path.join(folder, name),
        )
        for name, config in configs.items()
    }
    output = os.path.join(folder, "results")
    calls["ComputeMetricsOfRows"] = lambda: run_transform(records, ["ndcg@10"], output)
    calls["ComputeMetricsOfRows, ten metrics"] = lambda: run_transform(
        records, SUITE, output
    )
    times = {name: of / 1000 for name, of in timed(calls, least=3).items()}
    faster = ratio(times, "ours", "ComputeMetricsOfRows")
    rows = [["", *calls, "TFMA / ours", "ours / ComputeMetricsOfRows"]]
    rows.append(
        [f"{ROWS:,} rows, 10 per query", *map(median_and_spread, times.values())]
    )
    rows[-1] += [f"{ratio(times, 'TFMA', 'ours'):.3g}", f"{faster:.3g}"]
    print(*rows[-1], sep="  ", flush=True)
    what = f"{ROWS:,} rows on Beam: NDCG@10 through TFMA / ComputeMetricsOfRows"
    return rows, [Target.at_least(3, what, faster)]


def measure_growth(folder):
    """A table with the time of `ComputeMetricsOfRows` for more and more rows."""
    rows = [["rows", "ComputeMetricsOfRows, ten metrics", "µs per row"]]
    for size in SIZES:
        records = os.path.join(folder, f"{size}.tfrecord")
        write_rows(records, size)
        output = os.path.join(folder, "results")
        call = functools.partial(run_transform, records, SUITE, output)
        times = timed({"ComputeMetricsOfRows": call}, least=3)["ComputeMetricsOfRows"]
        per_row = 1000 * np.median(times) / size
        rows.append([f"{size:,}", median_and_spread(times / 1000), f"{per_row:.3g}"])
        print(*rows[-1], sep="  ", flush=True)
    return rows


def main():
    """Measures queries and whole runs, and publishes the results."""
    of_queries, targets = measure_combiners()
    with tempfile.TemporaryDirectory() as folder:
        of_runs, of_transform = measure_runs(folder)
        growth = measure_growth(folder)
    publish(
        "beam",
        "NDCG@10 on Beam, and in TensorFlow Model Analysis",
        ["tensorflow", "tensorflow-model-analysis", "apache-beam"],
        {
            "One query, µs": of_queries,
            "A whole run, s": of_runs,
            "Growth with the rows, s": growth,
        },
        targets + of_transform,
    )


if __name__ == "__main__":
    main()
