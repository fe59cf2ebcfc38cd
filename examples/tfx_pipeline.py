"""A TFX pipeline that blesses a model only if it ranks better than the last one.

ImportExampleGen keeps all rows of a query in one split. The Trainer fits and exports a
Keras model. The Evaluator compares it with the last blessed model, on Beam. The
pipeline runs three times:

1. With a pointwise loss. There is no baseline yet.
2. With a listwise loss. The model ranks better and is blessed.
3. With the pointwise loss for more epochs. The loss is the lowest so far, but the model
   ranks worse than the last blessed one and is rejected.

The log, the model and the losses come from learning_to_rank.py. On Python 3.10, run it
with:

    pip install -r requirements/tfx.txt
    python examples/tfx_pipeline.py

It takes two minutes and writes tfx_pipeline_output/per_slice.png.
"""

import argparse
import json
import os
import pathlib
import shutil
import warnings

warnings.simplefilter("ignore", FutureWarning)  # Google clients warn about Python 3.10
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import absl.logging
import numpy as np
import pandas as pd
import tensorflow as tf
import tensorflow_model_analysis as tfma
from learning_to_rank import (
    FEATURES,
    as_lists,
    listwise_loss,
    make_log,
    make_model,
    plt,
    pointwise_loss,
)
from tfx import v1 as tfx

from tfrankmetrics import RankingMetrics, evaluate_rows
from tfrankmetrics.tfma import eval_config
from tfrankmetrics.tfma.dataframe import as_dataframe

METRICS = ["ndcg@10", "ndcg@5", "map", "mrr"]
LOSSES = {"pointwise": pointwise_loss, "listwise": listwise_loss}
RUNS = [("pointwise", 3), ("listwise", 10), ("pointwise", 10)]  # loss and epochs
FORMAT = {
    "query": tf.io.FixedLenFeature([], tf.string),
    "words": tf.io.FixedLenFeature([], tf.string),
    "grade": tf.io.FixedLenFeature([], tf.float32),
    **{name: tf.io.FixedLenFeature([], tf.float32) for name in FEATURES},
}


def write_log(log, path):
    """Writes each row, a query and a document, as a tf.Example."""
    path.parent.mkdir(parents=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in log.to_dict("records"):
            feature = {
                name: tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[row[name].encode()])
                )
                if form.dtype == tf.string
                else tf.train.Feature(float_list=tf.train.FloatList(value=[row[name]]))
                for name, form in FORMAT.items()
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


def read_examples(patterns):
    """The serialized examples of a split, as written by ExampleGen."""
    files = [file for pattern in patterns for file in tf.io.gfile.glob(pattern)]
    return tf.constant([*tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator()])


def read_log(patterns):
    """The rows of a split as a table."""
    columns = tf.io.parse_example(read_examples(patterns), FORMAT)
    return pd.DataFrame({name: column.numpy() for name, column in columns.items()})


def train(arguments):
    """Fits and exports a model. The Trainer calls this function."""
    tf.keras.utils.set_random_seed(0)
    model = make_model()
    model.compile(
        tf.keras.optimizers.Adam(0.003),
        LOSSES[arguments.custom_config["loss"]],
        metrics=[RankingMetrics(METRICS)],
    )
    history = model.fit(
        *as_lists(read_log(arguments.train_files)),
        validation_data=as_lists(read_log(arguments.eval_files)),
        batch_size=32,
        epochs=arguments.custom_config["epochs"],
        verbose=0,
    ).history
    last = {name: values[-1] for name, values in history.items()}
    path = pathlib.Path(arguments.model_run_dir, "last_epoch.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(last))
    export(model, arguments.serving_model_dir)


def export(model, path):
    """Saves a model that scores serialized tf.Examples row by row."""

    def score(examples):
        rows = tf.io.parse_example(examples, FORMAT)
        features = tf.stack([rows[name] for name in FEATURES], axis=-1)
        return {"score": model(features[tf.newaxis])[0]}

    archive = tf.keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint(
        "serving_default", score, [tf.TensorSpec([None], tf.string, "examples")]
    )
    archive.write_out(path, verbose=False)


def make_config():
    """The metrics, slices and thresholds of the Evaluator."""
    config = eval_config(
        METRICS,
        label_key="grade",
        query_key="query",
        slices=["words"],
        thresholds={"ndcg@10": 0.5},
        change_thresholds={"ndcg@10": 0.0},
        num_queries=True,
    )
    config.options.compute_confidence_intervals.value = True
    return config


def make_pipeline(output, loss, epochs):
    """The pipeline of one run. Later runs reuse the examples of the first."""
    splits = [
        tfx.proto.SplitConfig.Split(name="train", hash_buckets=3),
        tfx.proto.SplitConfig.Split(name="eval", hash_buckets=1),
    ]
    examples = tfx.components.ImportExampleGen(
        input_base=str(output / "data"),
        input_config=tfx.proto.Input(
            splits=[tfx.proto.Input.Split(name="log", pattern="*.tfrecord")]
        ),
        # Without a partition feature, rows of one query would end up in both splits.
        output_config=tfx.proto.Output(
            split_config=tfx.proto.SplitConfig(
                splits=splits, partition_feature_name="query"
            )
        ),
    )
    trainer = tfx.components.Trainer(
        run_fn="tfx_pipeline.train",
        examples=examples.outputs["examples"],
        train_args=tfx.proto.TrainArgs(splits=["train"]),
        eval_args=tfx.proto.EvalArgs(splits=["eval"]),
        custom_config={"loss": loss, "epochs": epochs},
    )
    last_blessed = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=tfx.types.standard_artifacts.Model),
        model_blessing=tfx.dsl.Channel(type=tfx.types.standard_artifacts.ModelBlessing),
    ).with_id("last_blessed")
    evaluator = tfx.components.Evaluator(
        examples=examples.outputs["examples"],
        example_splits=["eval"],
        model=trainer.outputs["model"],
        baseline_model=last_blessed.outputs["model"],
        eval_config=make_config(),
    )
    return tfx.dsl.Pipeline(
        pipeline_name="ranking",
        pipeline_root=str(output / "pipeline"),
        components=[examples, trainer, last_blessed, evaluator],
        enable_cache=True,
        metadata_connection_config=(
            tfx.orchestration.metadata.sqlite_metadata_connection_config(
                str(output / "metadata.db")
            )
        ),
    )


def newest(output, component, artifact):
    """The folder of a component's latest artifact."""
    folders = (output / "pipeline" / component / artifact).iterdir()
    return max(folders, key=lambda folder: int(folder.name))


def evaluate_export(output):
    """Evaluates the last exported model on the same examples, without TFX."""
    patterns = [str(newest(output, "ImportExampleGen", "examples") / "Split-eval/*")]
    model = tf.saved_model.load(newest(output, "Trainer", "model") / "Format-Serving")
    score = model.signatures["serving_default"]
    scores = score(examples=read_examples(patterns))["score"]
    log = read_log(patterns)
    return evaluate_rows(log["query"], log["grade"], scores.numpy(), METRICS)


def load_slices(evaluation):
    """The new model's metrics in each slice, with their 95% intervals, as a table."""
    config = tfma.load_eval_result(evaluation).config
    name = config.model_specs[0].name or None
    table = as_dataframe(tfma.load_eval_result(evaluation, model_name=name))
    table["slice"] = table["slice"].str.removeprefix("words=")
    return table[table["metric"].isin(METRICS)].set_index(["metric", "slice"])


def run(output, loss, epochs):
    """Runs the pipeline once. Returns the blessing and the metrics of the model."""
    print(f"\n{loss} loss, {epochs} epochs:", flush=True)
    tfx.orchestration.LocalDagRunner().run(make_pipeline(output, loss, epochs))
    evaluation = str(newest(output, "Evaluator", "evaluation"))
    (blessing,) = newest(output, "Evaluator", "blessing").iterdir()
    last_epoch = newest(output, "Trainer", "model_run") / "last_epoch.json"
    failures = {
        failure.metric_key.name
        for of in tfma.load_validation_result(evaluation).metric_validations_per_slice
        for failure in of.failures
    }
    return {
        "loss": loss,
        "blessing": blessing.name,
        "failures": failures,
        "fit": json.loads(last_epoch.read_text()),
        "evaluate": evaluate_export(output),
        "slices": load_slices(evaluation),
    }


def report(outcome):
    """Prints ndcg@10 as computed by each tool, and the metrics of each slice."""
    slices = outcome["slices"]
    print(f"  {outcome['blessing']}", *sorted(outcome["failures"]))
    print(f"  val_loss               {outcome['fit']['val_loss']:.4f}")
    print(f"  ndcg@10 in fit         {outcome['fit']['val_ndcg@10']:.6f}")
    print(f"          by evaluate    {outcome['evaluate']['ndcg@10']:.6f}")
    print(f"          by Evaluator   {slices['value']['ndcg@10', 'overall']:.6f}")
    means = slices["value"].unstack("metric")[METRICS]
    print(means.to_string(float_format="{:.4f}".format))


def plot(outcomes, path):
    """Plots the interval of each model's ndcg@10 in each slice."""
    figure, axes = plt.subplots(figsize=(6.2, 4.4), layout="constrained")
    for number, outcome in enumerate(outcomes):
        of_slices = outcome["slices"].loc["ndcg@10"]
        value = of_slices["value"]
        blessed = outcome["blessing"] == "BLESSED"
        axes.errorbar(
            np.arange(len(value)) + 0.12 * (number - 1),
            value,
            yerr=[value - of_slices["lower"], of_slices["upper"] - value],
            fmt="o" if blessed else "x",
            capsize=4,
            label=f"run {number + 1}, {outcome['loss']}: {outcome['blessing']}",
        )
    queries = of_slices["queries"].items()
    labels = [f"{words}\n{number} queries" for words, number in queries]
    axes.set_xticks(range(len(labels)), labels)
    axes.set(ylabel="ndcg@10, 95% interval", title="Each model in each slice")
    figure.legend(loc="outside lower center")
    figure.savefig(path, dpi=120)


def main(output, queries=1200):
    """Runs the pipeline three times on new data. Returns the outcome of each run."""
    shutil.rmtree(output, ignore_errors=True)
    write_log(make_log(queries, seed=0), output / "data" / "log.tfrecord")
    outcomes = []
    for loss, epochs in RUNS:
        outcomes.append(run(output, loss, epochs))
        report(outcomes[-1])
    plot(outcomes, output / "per_slice.png")
    print(f"\nThe plot of the slices: {output / 'per_slice.png'}")
    return outcomes


if __name__ == "__main__":
    absl.logging.set_verbosity(absl.logging.ERROR)
    tf.get_logger().setLevel("ERROR")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("tfx_pipeline_output")
    )
    main(parser.parse_args().output)
