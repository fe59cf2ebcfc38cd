"""Compares the metrics in TensorFlow Model Analysis, on Beam, with `evaluate`."""

import ast
import doctest
import json
import os
import pathlib
import re
import subprocess
import sys
import typing

import numpy as np
import own_metric
import pandas as pd
import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from apache_beam.options.pipeline_options import PipelineOptions
from code_blocks import run_blocks
from google.protobuf import text_format
from mistake_table import cases_at, require_found
from tensorflow_model_analysis.proto import config_pb2

import tfrankmetrics as trm
import tfrankmetrics.tfma
from notebooks.execute import NOTEBOOKS, assert_alike, read, run, stderr_texts
from tfrankmetrics.tfma import RankMetrics, as_dataframe, eval_config

NAMES = ["ndcg@10", "ndcg@3", "map", "mrr", "precision@5", "bpref", "arp", "opa", "auc"]
ROWS = {"label_key": "grade", "prediction_key": "score", "query_key": "query"}
LISTS = {"label_key": "grades", "prediction_key": "scores"}


def make_table(queries=80, seed=0):
    """Shuffled rows of queries of different lengths, with ties and empty queries."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 25, queries)
    query = np.repeat(np.arange(queries), lengths)
    table = pd.DataFrame(
        {
            "query": [f"query {number}" for number in query],
            "grade": rng.integers(0, 4, len(query)) * (query % 9 > 0.0),
            "score": rng.normal(size=len(query)).round(1),
            "country": np.array(["de", "fr", "it"])[query % 3],
            "weight": (1.0 + query % 4),
        }
    )
    return table.sample(frac=1, random_state=seed, ignore_index=True)


def values_of(metrics):
    """The numeric results of one slice and one model."""
    return {
        name: value["doubleValue"]
        for name, value in metrics[""][""].items()
        if "doubleValue" in value
    }


def by_slice(table, config):
    """The values of each slice, by feature value. None is the slice of all queries."""
    result = tfma.analyze_raw_data(table, config)
    assert result.slicing_metrics
    return {
        of[0][1] if of else None: values_of(metrics)
        for of, metrics in result.slicing_metrics
    }


def expected_of(table, names, **arguments):
    """The values of `evaluate_rows`."""
    return trm.evaluate_rows("query", "grade", "score", names, data=table, **arguments)


def write_examples(path, rows):
    """Writes dicts of lists of values as tf.Examples."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            feature = {}
            for name, values in row.items():
                kind = {"U": "bytes", "S": "bytes", "i": "int64", "f": "float"}[
                    np.asarray(values).dtype.kind
                ]
                of_kind = getattr(tf.train, f"{kind.title()}List")(value=values)
                feature[name] = tf.train.Feature(**{f"{kind}_list": of_kind})
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


def analyze(folder, config, models=None, workers=1):
    """The result of TFMA for the records of a folder, written to "out" there."""
    options = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    return tfma.run_model_analysis(
        eval_shared_model=models,
        eval_config=config,
        data_location=str(folder / "records"),
        output_path=str(folder / "out"),
        pipeline_options=PipelineOptions(options if workers == 2 else []),
    )


def analyze_records(folder, table, config, models=None, workers=1):
    """The values of a table that is written as records, in float32."""
    columns = ["query", "grade", "score"]
    rows = zip(*(table[name].tolist() for name in columns), strict=True)
    write_examples(
        folder / "records",
        [
            {"query": [query.encode()], "grade": [1.0 * grade], "score": [score]}
            for query, grade, score in rows
        ],
    )
    result = analyze(folder, config, models, workers)
    if isinstance(models, list):
        result = tfma.load_eval_result(str(folder / "out"), model_name="candidate")
    ((_, metrics),) = result.slicing_metrics
    return values_of(metrics)


def saved_model(model, path):
    """The path of a model that is saved with its signature."""
    tf.saved_model.save(model, str(path), signatures={"serving_default": model.serve})
    return str(path)


@pytest.mark.parametrize("inputs", typing.get_args(trm.options.Inputs))
def test_each_format_has_the_values_of_evaluate(inputs):
    lists = pd.DataFrame({"grades": [[1, 0], [1, 1]], "scores": [[0, 1], [1, 0]]})
    found = by_slice(lists, eval_config(["mrr"], inputs=inputs, **LISTS))
    columns = [*lists["grades"]], [*lists["scores"]]
    assert found == {None: trm.evaluate(*columns, ["mrr"], inputs=inputs)}


@pytest.mark.parametrize("case", cases_at("tfma"), ids=str)
def test_a_mistake_is_found(case):
    keys = {"label_key": "label", "prediction_key": "score", "query_key": "query_id"}
    config = eval_config([case.metric], **keys)
    require_found(case, lambda data: by_slice(data.rows.astype(float), config))


def test_scores_of_nan_are_a_warning(tmp_path):
    table = make_table()
    table["score"] = table["score"].where(table["score"] > 0)
    number = table["score"].isna().sum()
    message = rf"Received: NaN for {number} of {len(table):,} scores"
    with pytest.warns(trm.RankingWarning, match=message):
        analyze_records(tmp_path, table, eval_config(["mrr"], **ROWS))


def test_metrics_are_added_to_a_configuration():
    table = make_table()
    first = eval_config(["mrr"], **ROWS)
    both = eval_config(["ndcg@10"], slices=["country"], add_to=first, **ROWS)
    assert [len(config.metrics_specs) for config in (first, both)] == [1, 2]
    assert len(both.model_specs) == len(first.model_specs) == 1
    assert len(both.slicing_specs) == 2  # all queries, and the countries
    alone = by_slice(table, eval_config(["mrr", "ndcg@10"], slices=["country"], **ROWS))
    assert by_slice(table, both) == alone
    with pytest.raises(ValueError, match="`label_key` must be the one of the models"):
        eval_config(["map"], add_to=first, **{**ROWS, "label_key": "other"})
    with pytest.raises(ValueError, match="the models 'candidate' and 'baseline'"):
        eval_config(["map"], add_to=first, change_thresholds={"map": 0.0}, **ROWS)


@pytest.mark.parametrize("weight", [None, "weight"])
def test_rows_give_the_values_of_evaluate(weight, compare):
    table = make_table()
    more = {"example_weight_key": weight, "slices": ["country"]}
    found = by_slice(table, eval_config(NAMES, **more, **ROWS))
    assert set(found) == {None, "de", "fr", "it"}
    for country, values in found.items():
        rows = table[table["country"] == country] if country else table
        expected = expected_of(rows, NAMES, sample_weight=weight)
        for name in NAMES:
            both = values[name], expected[name]
            compare("tensorflow-model-analysis", "", name, *both, rtol=1e-12)


def as_lists(table, padded):
    """A table with one list per row. If `padded`, all lists have the same length."""
    groups = table.groupby("query", sort=False)
    longest = groups.size().max()
    lists = []
    for _, rows in groups:
        more = (0, longest - len(rows)) if padded else (0, 0)
        grades = np.pad(rows["grade"].to_numpy(float), more, constant_values=-1.0)
        lists.append((grades, np.pad(rows["score"].to_numpy(float), more)))
    return pd.DataFrame(lists, columns=["grades", "scores"])


@pytest.mark.parametrize("padded", [True, False])
def test_lists_give_the_values_of_evaluate(padded):
    table = make_table()
    found = by_slice(as_lists(table, padded), eval_config(NAMES, **LISTS))[None]
    assert found == pytest.approx(expected_of(table, NAMES), rel=1e-12)


def test_options_are_part_of_the_key():
    table = make_table()
    config = None
    for options in ({}, {"gain": "linear"}, {"convention": "lightgbm"}):
        config = eval_config(["ndcg@10"], add_to=config, **options, **ROWS)
    found = by_slice(table, config)[None]
    of_beam = found.pop("ndcg@10(ties=stable,empty=one)")  # Beam sets the row order
    assert 0 < of_beam < 1
    expected = {
        "ndcg@10": expected_of(table, ["ndcg@10"])["ndcg@10"],
        "ndcg@10(gain=linear)": expected_of(table, ["ndcg@10"], gain="linear")[
            "ndcg@10"
        ],
    }
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_ndcg_of_tfma(compare):
    """Leaves out ties, which TFMA orders by NumPy's unstable sort."""
    long = make_table(40, seed=1).assign(query="long")  # of some hundred rows
    table = pd.concat([make_table(), long], ignore_index=True)
    table["score"] = np.random.default_rng(1).permutation(len(table)) / 7
    assert (table.groupby("query")["grade"].max() == 0).any()
    cutoffs = [3, 40, 1000]
    names = [f"ndcg@{k}" for k in cutoffs]
    config = eval_config(["ndcg", *names], convention="tfma", **ROWS)
    config.metrics_specs[0].metrics.add(
        class_name="NDCG", config=f'"gain_key": "gain", "top_k_list": {cutoffs}'
    )
    result = tfma.analyze_raw_data(table.assign(gain=table["grade"]), config)
    ((_, metrics),) = result.slicing_metrics
    theirs = {key: of["ndcg"]["doubleValue"] for key, of in metrics[""].items() if key}
    theirs = [theirs[f"topK:{k}"] for k in cutoffs]
    ours = values_of(metrics)
    ours = [ours[f"{name}(gain=linear,empty=skip)"] for name in (*names, "ndcg")]
    theirs.append(theirs[-1])  # at a cutoff beyond all lists
    compare("tensorflow-model-analysis", "tfma", "ndcg", ours, theirs, rtol=1e-7)


@pytest.mark.parametrize(("workers", "bound"), [(1, 0.01), (2, 0.99)])
def test_thresholds_on_records_with_workers(tmp_path, workers, bound, monkeypatch):
    """Workers are new processes. They import the module that declares a metric."""
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(own_metric.__file__).parent))
    table = make_table(queries=40)
    names = ["ndcg@10", "graded_rbp@5"]
    config = eval_config(names, thresholds={"ndcg@10": bound}, persistence=0.5, **ROWS)
    found = analyze_records(tmp_path, table, config, workers=workers)
    validation = tfma.load_validation_result(str(tmp_path / "out"))
    assert validation.validation_ok == (bound < 0.5)
    assert not validation.missing_thresholds
    table["score"] = table["score"].astype("f4")
    metrics = ["ndcg@10", own_metric.GradedRBP(k=5, persistence=0.5)]
    expected = [*expected_of(table, metrics).values()]
    keys = "ndcg@10", "graded_rbp@5(persistence=0.5)"
    assert [found[key] for key in keys] == pytest.approx(expected, rel=1e-12)


def test_a_configuration_saved_by_version_0_1_0_gives_the_same_values():
    folder = pathlib.Path(__file__).parent.parent / "tests" / "saved"
    saved = json.loads((folder / "eval_config.json").read_text("utf-8"))
    text = (folder / "eval_config.pbtxt").read_text("utf-8")
    config = text_format.Parse(text, config_pb2.EvalConfig())
    found = by_slice(pd.DataFrame(saved["table"]), config)
    assert len(saved["values"]) == 3
    for of, expected in saved["values"].items():
        country = ast.literal_eval(of).get("country")
        assert found[country] == pytest.approx(expected, rel=1e-12)


def test_thresholds_apply_to_every_slice(tmp_path):
    table = make_table(queries=40)
    is_reversed = table["country"] == "it"
    table["score"] = table["grade"].where(~is_reversed, -table["grade"])
    for slices, is_good in (([], True), (["country"], False)):
        config = eval_config(
            ["ndcg@3"], slices=slices, thresholds={"ndcg@3": 0.4}, **ROWS
        )
        found = validation_of(table, config, tmp_path / f"{len(slices)} slices")
        assert found.validation_ok == is_good


class Scorer(tf.Module):
    """Multiplies a feature of an example by a factor, like a served model."""

    def __init__(self, factor):
        super().__init__()
        self.factor = tf.Variable(factor)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(self, examples):
        """The scores of serialized tf.Examples."""
        spec = {"score": tf.io.FixedLenFeature([1], tf.float32)}
        return {"output": self.factor * tf.io.parse_example(examples, spec)["score"]}


@pytest.mark.parametrize("sign", [1, -1])
def test_a_model_is_compared_with_a_baseline(tmp_path, sign):
    table = make_table(queries=40)
    table["score"] = table["grade"] + table["score"]
    changes = {"ndcg@10": 0.0, "arp": 0.0}
    keys = {"label_key": "grade", "query_key": "query"}
    config = eval_config([*changes], change_thresholds=changes, **keys)
    models = [
        tfma.default_eval_shared_model(
            saved_model(Scorer(factor), tmp_path / name),
            model_name=name,
            eval_config=config,
        )
        for name, factor in (("candidate", 1.0 * sign), ("baseline", -1.0 * sign))
    ]
    found = analyze_records(tmp_path, table, config, models)
    validation = tfma.load_validation_result(str(tmp_path / "out"))
    assert validation.validation_ok == (sign == 1)
    failures = validation.metric_validations_per_slice
    assert sum(len(of.failures) for of in failures) == (0 if sign == 1 else 2)
    table["score"] = sign * table["score"].astype("f4")
    expected = expected_of(table, ["ndcg@10"])
    assert found["ndcg@10"] == pytest.approx(expected["ndcg@10"], rel=1e-12)


@pytest.mark.parametrize("method", ["JACKKNIFE", "POISSON_BOOTSTRAP"])
def test_confidence_intervals(method):
    table = make_table()
    config = eval_config(["ndcg@10"], **ROWS)
    text_format.Parse(
        "options { compute_confidence_intervals { value: true } "
        f"confidence_intervals {{ method: {method} }} }}",
        config,
    )
    result = tfma.analyze_raw_data(table, config)
    ((_, metrics),) = result.slicing_metrics
    interval = metrics[""][""]["ndcg@10"]["boundedValue"]
    values = expected_of(table, ["ndcg@10"], per_query=True)["ndcg@10"]
    error = values.std(ddof=1) / np.sqrt(len(values))
    if method == "JACKKNIFE":
        assert interval["value"] == pytest.approx(values.mean(), rel=1e-6)
    width = interval["upperBound"] - interval["lowerBound"]
    # Of 20 random samples: the quantile of t with 19 degrees of freedom.
    assert width == pytest.approx(2 * 2.093 * error, rel=0.5)


NO_VALUE = "a value that the metric can have.*"
NO_FEATURES = "list of the names of features, or of lists of names"


@pytest.mark.parametrize(
    ("make", "metrics", "arguments", "message"),
    [
        (RankMetrics, ["ndgc@10"], {}, "Did you mean 'ndcg@10'"),
        (RankMetrics, ["ndcg"], {"gian": "linear"}, "Received: 'gian'"),
        (RankMetrics, ["ndcg"], {"gain": "exp"}, "must be one of 'exponential'"),
        (RankMetrics, ["alpha_dcg"], {}, "labels of subtopics"),
        (RankMetrics, ["ndcg"], {"name": "map"}, "key of one of the metrics"),
        (RankMetrics, ["ndcg"], {"num_queries": "yes"}, "num_queries='yes'"),
        (
            eval_config,
            ["ndcg"],
            {"label_key": "y", "num_queries": "yes"},
            "num_queries='yes'",
        ),
        (RankMetrics, ["ndcg"], {"gain": np.sqrt}, "as JSON.*no functions"),
        (RankMetrics, ["judged@5"], {}, "does not distinguish unjudged items"),
        (RankMetrics, [trm.NDCG()], {}, "as JSON.*no metric objects"),
        *[
            (eval_config, ["map"], {"label_key": "y", **arguments}, message)
            for arguments, message in [
                ({"label_key": ""}, "`label_key` must name"),
                ({"query_key": ""}, "`query_key` must"),
                *[
                    ({key: "y"}, f"a different feature.*'label_key': 'y', '{key}': 'y'")
                    for key in ("prediction_key", "query_key")
                ],
                *[
                    ({"slices": slices}, NO_FEATURES)
                    for slices in ([{"country": "de"}], None, 3, [""], [3], [["a", 3]])
                ],
                *[
                    ({name: 0.5}, f"`{name}` must be a dict from.* Received: 0.5")
                    for name in ("thresholds", "change_thresholds")
                ],
                ({"thresholds": {"ndcg@10": 0.5}}, "one of the metrics.*'ndcg@10'"),
                ({"thresholds": {"map": 50.0}}, f"{NO_VALUE}50.0"),
                ({"thresholds": {"map": None}}, f"{NO_VALUE}None"),
                ({"thresholds": {"map": 0.5, "AP": 0.4}}, "two thresholds for 'map'"),
            ]
        ],
    ],
)
def test_invalid_configurations_raise(make, metrics, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(metrics, **arguments)


def test_thresholds_accept_any_spelling_of_a_metric():
    spelled = {
        "precision@5": 0.5,
        "MAP": 0.4,
        "ndcg@10": 0.3,
        "dcg@10(gain=linear)": 0.2,
    }
    names = ["P@5", "map", "nDCG@10", "DCG@10"]
    config = eval_config(names, label_key="y", gain="linear", thresholds=spelled)
    bounds = {
        json.loads(each.config)[
            "name"
        ]: each.threshold.value_threshold.lower_bound.value
        for each in config.metrics_specs[0].metrics
    }
    keys = ["precision@5", "map", "ndcg@10(gain=linear)", "dcg@10(gain=linear)"]
    assert bounds == dict(zip(keys, spelled.values(), strict=True))


def test_keys_of_names_with_parameters_are_canonical():
    """No option occurs twice, wherever it was passed."""
    keys = {
        "nDCG(dcg='log2')@10": "ndcg@10(gain=linear)",
        "ndcg@5(gain=linear,ties=worst)": "ndcg@5(gain=linear,ties=worst)",
        "AP(rel=2)@100": "map@100(relevance_threshold=2)",
        "RBP(p=0.8)": "rbp",
        "DCG@10": "dcg@10(gain=linear)",
        "map(denominator=min(k, relevant))": "map(denominator=min(k, relevant))",
    }
    metric = RankMetrics([*keys], gain="linear")
    assert metric.key_names == [*keys.values()]
    again = RankMetrics(metric.key_names)
    assert again.key_names == metric.key_names
    thresholds = dict.fromkeys(keys, 0.5)
    config = eval_config([*keys], label_key="y", gain="linear", thresholds=thresholds)
    specs = config.metrics_specs[0].metrics
    assert [json.loads(each.config)["name"] for each in specs] == [*keys.values()]
    assert all(each.threshold.value_threshold.lower_bound.value for each in specs)
    with pytest.raises(ValueError, match=r"must not mean the same metric.*'P@5' and"):
        RankMetrics(["P@5", "precision@5"])


def test_values_of_names_with_parameters():
    table = as_lists(make_table(queries=20), padded=True)
    names = ["nDCG(dcg='log2')@3", "ndcg@3", "AP(rel=2)@100"]
    config = eval_config(names, **LISTS)
    found = {
        key: value["doubleValue"]
        for key, value in tfma.analyze_raw_data(table, config)
        .get_metrics_for_slice()
        .items()
    }
    labels, scores = (np.stack(table[column]) for column in ("grades", "scores"))
    expected = trm.evaluate(labels, scores, names)
    keys = ["ndcg@3(gain=linear)", "ndcg@3", "map@100(relevance_threshold=2)"]
    assert [found[key] for key in keys] == pytest.approx([*expected.values()])


def test_keras_3_metrics_raise_and_suggest_eval_config():
    table = as_lists(make_table(queries=3), padded=True)
    config = eval_config(["map"], **LISTS)
    (metric,) = config.metrics_specs[0].metrics
    metric.class_name, metric.module = "MeanAveragePrecision", "tfrankmetrics"
    metric.config = "{}"
    with pytest.raises(TypeError, match=r"Keras 2 only.*eval_config"):
        tfma.analyze_raw_data(table, config)
    with pytest.raises(NotImplementedError, match="unknown metric type"):
        tfma.metrics.specs_from_metrics([trm.NDCG()])


def test_binarized_and_aggregated_metrics_raise():
    for text in (
        "binarize { top_k_list { values: 3 } }",
        "aggregate { micro_average: true }",
    ):
        config = eval_config(["ndcg@10"], **ROWS)
        text_format.Parse(text, config.metrics_specs[0])
        with pytest.raises(ValueError, match="do not apply to ranking"):
            tfma.analyze_raw_data(make_table(queries=3), config)


@pytest.mark.parametrize(
    ("change", "keys", "message"),
    [
        ({"weight": np.arange(50.0)}, {}, "the same example weight"),
        ({"weight": np.nan}, {}, "have example_weights, .*NoneType"),
        ({"weight": "1"}, {}, "have example_weights, .*array of bytes"),
        ({}, {"example_weight_key": "nope"}, "have example_weights, .*Received: none"),
        ({}, {"query_key": "nope"}, "the feature of the query key.*'nope'"),
        ({"grade": np.nan}, {}, "Labels must be finite|have labels"),
        ({"grade": [np.nan] + 49 * [1.0]}, {}, "have labels, .*different numbers"),
        ({"score": [np.nan] + 49 * [1.0]}, {}, "have predictions, .*different numbers"),
        ({"grade": "good"}, {}, "have labels, .*array of bytes"),
        ({"score": "0.5"}, {}, "have predictions, .*array of bytes"),
        ({"grade": 2000.0}, {}, "with a finite sum.*'ndcg@10'"),
    ],
)
def test_invalid_data_raises(change, keys, message):
    table = make_table(queries=20).head(50).assign(**change)
    config = eval_config(
        ["ndcg@10"], **{"example_weight_key": "weight", **ROWS, **keys}
    )
    with pytest.raises(Exception, match=message) as error:
        tfma.analyze_raw_data(table, config)
    assert "array(" not in str(error.value)  # does not print the whole query
    assert len(str(error.value)) < 300


def test_labels_above_max_label_raise():
    table = make_table(queries=3).assign(grade=7.0)
    with pytest.raises(ValueError, match="at most `max_label`, 4"):
        tfma.analyze_raw_data(table, eval_config(["err"], **ROWS))


def test_gains_by_grade_are_saved_as_pairs():
    table = make_table(queries=50)
    grades = sorted({*table["grade"].tolist()})
    gain = {grade: 0.1 * grade**3 for grade in grades}
    names = ["ndcg@10", f"dcg@3(gain={gain})"]
    values = by_slice(table, eval_config(names, gain=gain, **ROWS))[None]
    expected = expected_of(table, names, gain=gain)
    found = {name.partition("(")[0]: value for name, value in values.items()}
    assert found["ndcg@10"] == pytest.approx(expected["ndcg@10"], rel=1e-12)
    assert found["dcg@3"] == pytest.approx(expected[names[1]], rel=1e-12)
    with pytest.raises(ValueError, match=r"a gain for each grade.*query"):
        tfma.analyze_raw_data(table, eval_config(["dcg"], gain=[0], **ROWS))


def test_a_slice_of_queries_with_one_document():
    table = make_table(queries=400, seed=1)
    table["length"] = table.groupby("query")["grade"].transform("size")
    values = by_slice(table, eval_config(["ndcg@10"], slices=["length"], **ROWS))
    rows = table[table["length"] == 1]
    assert len(rows) > 10
    expected = expected_of(rows, ["ndcg@10"])
    assert values[1] == pytest.approx(expected, rel=1e-12)


def test_integer_scores_are_not_rounded():
    table = pd.DataFrame({"query": ["a"] * 3, "grade": [1, 0, 2]})
    table["score"] = [2**53 + 1, 2**53, 2**53 + 2]
    values = by_slice(table, eval_config(["ndcg"], **ROWS))[None]
    assert values["ndcg"] == 1.0


def test_weights_of_padding_do_not_matter():
    lists = pd.DataFrame(
        {
            "grades": [[1, 0, -1], [0, 1, 1]],
            "scores": [[0.1, 0.2, 0.0], [0.1, 0.2, 0.3]],
            "weight": [[3.0, 3.0, 0.0], [1.0, 1.0, 1.0]],
        }
    )
    config = eval_config(["mrr"], example_weight_key="weight", **LISTS)
    assert by_slice(lists, config)[None]["mrr"] == (3 * 1 / 2 + 1 * 1) / (3 + 1)


class TwoOutputs(Scorer):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(self, examples):
        """Two outputs. A configuration must name one of them."""
        spec = {"score": tf.io.FixedLenFeature([1], tf.float32)}
        score = tf.io.parse_example(examples, spec)["score"]
        return {"good": score, "bad": -score}


def test_prediction_key_selects_a_model_output(tmp_path):
    table = make_table(queries=40)
    path = saved_model(TwoOutputs(1.0), tmp_path / "model")

    def value(**keys):
        config = eval_config(["ndcg@10"], label_key="grade", query_key="query", **keys)
        model = tfma.default_eval_shared_model(path, eval_config=config)
        return analyze_records(tmp_path, table, config, model)

    for key, sign in (("good", 1), ("bad", -1)):
        scores = sign * table["score"].astype("f4")
        expected = expected_of(table.assign(score=scores), ["ndcg@10"])
        assert value(prediction_key=key) == pytest.approx(expected)
    for keys in ({}, {"prediction_key": "nope"}):
        with pytest.raises(Exception, match="Check `prediction_key`") as error:
            value(**keys)
        assert "array(" not in str(error.value)


def test_rows_without_a_query_key_are_a_warning():
    config = eval_config(["ndcg@10"], label_key="grade", prediction_key="score")
    with pytest.warns(trm.RankingWarning, match="name the `query_key`"):
        tfma.analyze_raw_data(make_table(queries=20), config)


@pytest.mark.filterwarnings("ignore:Lists must have more than one item")
def test_a_slice_of_lists_of_one_item_does_not_stop_the_others():
    grades = [[1.0, 0.0, 2.0]] * 9 + [[1.0]] * 6
    table = pd.DataFrame({"grades": grades, "scores": grades})
    table["language"] = ["de"] * 9 + ["fr"] * 6
    config = eval_config(["ndcg"], slices=["language"], num_queries=True, **LISTS)
    found = by_slice(table, config)
    numbers = {name: values["num_queries"] for name, values in found.items()}
    assert numbers == {None: 15, "de": 9, "fr": 6}


@pytest.mark.parametrize("ids", ["abc", range(3)])
def test_a_weight_and_one_relevant_id_for_each_query(ids):
    a, b, c = ids
    table = pd.DataFrame(
        {"grades": [[a], [c]], "scores": [[b, a, c], [c, a, b]], "weight": [1.0, 3.0]}
    )
    config = eval_config(["mrr"], example_weight_key="weight", inputs="ids", **LISTS)
    assert by_slice(table, config)[None]["mrr"] == (1 * 0.5 + 3 * 1.0) / 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"slices": "country"}, {"slices": ["country"]}),
        ({"relevance_threshold": np.float32(2)}, {"relevance_threshold": 2.0}),
    ],
)
def test_two_forms_of_an_argument(one, other):
    assert eval_config(["map"], **one, **ROWS) == eval_config(["map"], **other, **ROWS)


@pytest.mark.parametrize("names", [["mrr"], ["map"]])
def test_a_metric_has_one_query_key(names):
    more = {"num_queries": True, **ROWS}
    config = eval_config(["mrr"], **more)
    shared = r"'mrr', 'num_queries'" if names == ["mrr"] else "'num_queries'"
    with pytest.raises(
        ValueError, match=f"{shared} with the query keys 'query' and 's'"
    ):
        eval_config(names, add_to=config, **{**more, "query_key": "s"})
    again = eval_config(["mrr", "map"], add_to=config, **more)
    assert by_slice(make_table(), again)[None].keys() == {"mrr", "map", "num_queries"}


def validation_of(table, config, tmp_path):
    path = str(tmp_path / "validation")
    tfma.analyze_raw_data(table, config, output_path=path)
    return tfma.load_validation_result(path)


def test_a_misspelt_slice_matches_no_slice(tmp_path):
    """As the guide says, only the slice of all queries is left."""
    for feature, number in (("country", 4), ("cuontry", 1)):
        config = eval_config(["mrr"], slices=[feature], thresholds={"mrr": 0.1}, **ROWS)
        result = validation_of(make_table(), config, tmp_path / feature)
        (details,) = result.validation_details.slicing_details
        assert result.validation_ok
        assert details.num_matching_slices == number


def test_a_slice_in_which_no_query_counts_needs_a_threshold_of_the_others(tmp_path):
    table = make_table()
    table.loc[table["country"] == "it", "grade"] = -1  # not judged
    config = eval_config(["mrr"], slices=["country"], thresholds={"mrr": 0.1}, **ROWS)
    result = validation_of(table, config, tmp_path / "all")
    (failure,) = result.metric_validations_per_slice
    assert not result.validation_ok
    assert np.isnan(failure.failures[0].metric_value.double_value.value)
    guide = pathlib.Path(__file__).parent.parent / "docs" / "guide" / "tfx.md"
    (remedy,) = re.findall(
        r"^```py\n(metric = .*?)^```", guide.read_text(), re.M | re.S
    )
    exec(remedy.replace("language", "country"), {"config": config})
    result = validation_of(table, config, tmp_path / "remedy")
    numbers = [
        each.num_matching_slices for each in result.validation_details.slicing_details
    ]
    assert result.validation_ok
    assert numbers == [1, 1]  # overall and in the slice of "de"


def test_labels_and_scores_of_unequal_length_raise():
    table = pd.DataFrame({"grades": [[1.0, 0.0, 2.0]], "scores": [[0.3, 0.1]]})
    with pytest.raises(Exception, match="3 labels and 2 predictions") as error:
        tfma.analyze_raw_data(table, eval_config(["ndcg@10"], **LISTS))
    assert "array" not in str(error.value)


def test_the_table_has_a_row_for_each_value_of_each_slice():
    table, metrics = make_table(), ["ndcg@10", "mrr"]
    config = eval_config(metrics, slices=["country"], num_queries=True, **ROWS)
    found = as_dataframe(tfma.analyze_raw_data(table, config))
    columns = ["slice", "metric", "value", "lower", "upper", "queries"]
    assert [*found.columns] == columns
    expected = expected_of(table, metrics, by="country")
    names = {"overall": None, **{f"country={name}": name for name in expected}}
    assert [*found["slice"].unique()] == [*names]
    for row in found.itertuples():
        key = names[row.slice]
        values = expected.whole if key is None else expected[key]
        number = sum(expected.num_queries.values())
        assert row.value == pytest.approx(values[row.metric], rel=1e-12)
        assert row.queries == (number if key is None else expected.num_queries[key])
        assert np.isnan(row.lower)


def test_the_table_has_the_intervals(tmp_path):
    table = make_table()
    config = eval_config(["ndcg@10"], num_queries=True, **ROWS)
    config.options.compute_confidence_intervals.value = True
    path = str(tmp_path / "out")
    found = as_dataframe(tfma.analyze_raw_data(table, config, output_path=path))
    pd.testing.assert_frame_equal(found, as_dataframe(tfma.load_eval_result(path)))
    (row,) = found.itertuples()
    values = expected_of(table, ["ndcg@10"], num_queries=True)
    assert row.value == pytest.approx(values["ndcg@10"], rel=1e-6)
    assert row.lower < row.value < row.upper
    assert row.queries == values["num_queries"]


def test_of_two_keras_metrics_with_one_name_tfma_drops_one():
    script = """
import pandas as pd
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2
import tfrankmetrics as trm
from tfrankmetrics.tfma import as_dataframe
model = config_pb2.ModelSpec(label_key="grades", prediction_key="scores")
table = pd.DataFrame({"grades": [[1.0, 2.0, 0.0]], "scores": [[0.9, 0.5, 0.1]]})
for name in ("ndcg@3", "linear"):
    metrics = [trm.NDCG(k=3), trm.NDCG(k=3, gain="linear", name=name)]
    specs = tfma.metrics.specs_from_metrics(metrics)
    config = config_pb2.EvalConfig(model_specs=[model], metrics_specs=specs)
    result = tfma.analyze_raw_data(table, config)
    try:
        print({*as_dataframe(result)["metric"]} >= {"ndcg@3", "linear"})
    except ValueError as error:
        print(error)
"""
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    error, has_both = done.stdout.splitlines()[-2:]
    assert "Received: 'ndcg@3' twice" in error, done.stderr
    assert has_both == "True"


def test_only_results_are_tables():
    with pytest.raises(ValueError, match=r"must be an EvalResult.*Received: 3"):
        as_dataframe(3)


V = 7  # items of the catalog


class Retriever(tf.Module):
    """Scores a catalog by two features of the user, like a model of two towers."""

    def __init__(self, seed):
        super().__init__()
        self.items = tf.Variable(
            np.random.default_rng(seed).normal(size=(2, V)), dtype=tf.float32
        )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(self, examples):
        """The scores of all items, and the ids and names of the best five."""
        spec = {"user": tf.io.FixedLenFeature([2], tf.float32)}
        scores = tf.io.parse_example(examples, spec)["user"] @ self.items
        ids = tf.math.top_k(scores, 5).indices
        names = tf.strings.join(["item ", tf.strings.as_string(ids)])
        return {"scores": scores, "ids": tf.cast(ids, tf.int64), "names": names}


def write_users(path, number=40):
    """Writes users with relevant items. Returns their features and items."""
    rng = np.random.default_rng(0)
    users = rng.normal(size=(number, 2)).astype("f4")
    relevant = [rng.permutation(V)[: rng.integers(1, 4)] for _ in range(number)]
    write_examples(
        path,
        [
            {
                "user": user,
                "relevant": items,
                "named": [f"item {item}".encode() for item in items],
            }
            for user, items in zip(users, relevant, strict=True)
        ],
    )
    return users, [items.tolist() for items in relevant]


@pytest.mark.parametrize(
    ("inputs", "label_key", "output"),
    [
        ("catalog", "relevant", "scores"),
        ("ids", "relevant", "ids"),
        ("ids", "named", "names"),
    ],
)
def test_two_retrieval_models(tmp_path, inputs, label_key, output):
    names = ["ndcg@3", "recall@5", "mrr"]
    users, relevant = write_users(tmp_path / "records")
    config = eval_config(
        names,
        label_key=label_key,
        prediction_key=output,
        inputs=inputs,
        change_thresholds={"ndcg@3": -1.0},
        num_queries=True,
    )
    models, expected = [], {}
    for seed, name in enumerate(["candidate", "baseline"]):
        model = Retriever(seed)
        path = saved_model(model, tmp_path / name)
        models.append(
            tfma.default_eval_shared_model(path, model_name=name, eval_config=config)
        )
        scores = (users @ model.items).numpy()
        if inputs == "ids":
            scores = tf.math.top_k(scores, 5).indices.numpy()
        labels = [items + [-1] * (3 - len(items)) for items in relevant]
        expected[name] = trm.evaluate(labels, scores, names, inputs=inputs)
    table = as_dataframe(analyze(tmp_path, config, models))
    assert tfma.load_validation_result(str(tmp_path / "out")).validation_ok
    assert {*table["queries"]} == {40}
    for model, values in table.groupby("model"):
        found = dict(zip(values["metric"], values["value"], strict=True))
        of_names = {name: found[name] for name in names}
        assert of_names == pytest.approx(expected[model], rel=1e-12)


@pytest.mark.parametrize(
    ("predictions", "arguments", "message"),
    [
        ([[0.1, 0.2], [0.3, 0.4, 0.5]], {"inputs": "catalog"}, r"catalog, \[V\]"),
        ([[0.1, 0.2], [0.3, 0.4]], {"inputs": "catalog"}, "positions in the cat"),
        (
            [["a"], ["b"]],
            {"inputs": "ids"},
            "must have the same type.*numbers and text",
        ),
        ([[1, 2], [3, 3]], {"inputs": "ids", "query_key": "q"}, "is meaningless"),
        ([[1], [2]], {"inputs": "idz"}, "`inputs` must be one of"),
        ([[1], [2]], {"duplicates": "all"}, "`duplicates` is for inputs='ids'"),
        ([[1.5], [2.5]], {"inputs": "ids"}, "integers"),
    ],
)
def test_invalid_ids_raise(predictions, arguments, message):
    table = pd.DataFrame({"grades": [[5], [1, 2]], "scores": predictions})
    with pytest.raises(Exception, match=message):
        tfma.analyze_raw_data(table, eval_config(["mrr"], **LISTS, **arguments))


def test_code_blocks_print_the_output_shown():
    page = pathlib.Path(__file__).parent.parent / "docs" / "guide" / "tfx.md"
    run_blocks(page)


def test_docstring_examples():
    failed, tried = doctest.testmod(
        tfrankmetrics.tfma, optionflags=doctest.ELLIPSIS, verbose=False
    )
    assert tried
    assert not failed


def test_notebook_runs_and_reproduces_its_outputs():
    (path,) = (path for path in NOTEBOOKS if path.stem == "06_tfx_evaluation")
    fresh = run(path)
    assert stderr_texts(fresh) == []
    # TFMA draws samples for the confidence intervals, without a seed.
    assert_alike(fresh, read(path))
