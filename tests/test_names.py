"""Tests `separator="_"`: keys without "@", for trackers that refuse it."""

import re

import numpy as np
import pytest
import tensorflow as tf

import tfrankmetrics as tfr

LABELS, SCORES = [[1, 0, 2], [0, 1, 0]], [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]
NAMES = ["ndcg@10", "P_2", "mrr"]
KEYS = ["ndcg_10", "precision_2", "mrr"]


def test_the_separator_of_array_functions():
    expected = tfr.evaluate(LABELS, SCORES, NAMES)
    rows = [0, 0, 0, 1, 1, 1], np.ravel(LABELS), np.ravel(SCORES)
    qrels = {q: dict(zip("abc", labels)) for q, labels in enumerate(LABELS)}
    run = {q: dict(zip("abc", scores)) for q, scores in enumerate(SCORES)}
    for found in (
        tfr.evaluate(LABELS, SCORES, NAMES, separator="_"),
        tfr.evaluate_rows(*rows, NAMES, separator="_"),
        tfr.evaluate_run(qrels, run, NAMES, separator="_"),
    ):
        assert [*found] == KEYS
        assert [*found.values()] == [*expected.values()]


def test_the_separator_of_values_by_query_and_by_slice():
    found = tfr.evaluate(
        LABELS, SCORES, NAMES, separator="_", per_query=True, by=["x", "y"]
    )
    assert [*found] == ["slice", *KEYS]
    compared = tfr.compare({"a": found, "b": found})
    assert [mean.metric for mean in compared.means[:3]] == KEYS


def test_a_metric_object_keeps_its_name():
    metrics = [tfr.NDCG(10), tfr.NDCG(10, gain="linear", name="linear")]
    found = tfr.evaluate(LABELS, SCORES, metrics, separator="_")
    assert [*found] == ["ndcg@10", "linear"]


def test_the_separator_of_ranking_metrics():
    metric = tfr.RankingMetrics(NAMES, "dev_", separator="_", num_queries=True)
    keys = ["dev_ndcg_10", "dev_precision_2", "dev_mrr", "dev_num_queries"]
    for made in (metric, tfr.RankingMetrics.from_config(metric.get_config())):
        made.update_state(LABELS, SCORES)
        assert [*made.result()] == [*made.result_keys] == keys


def test_keys_by_the_separator_may_clash():
    with pytest.raises(ValueError, match=r"must be unique.*'ndcg_10' twice"):
        tfr.evaluate(
            LABELS, SCORES, ["ndcg@10", tfr.NDCG(5, name="ndcg_10")], separator="_"
        )


@pytest.mark.parametrize("wrong", ["", "-", " at ", None, 5])
def test_other_separators_are_refused(wrong):
    with pytest.raises(ValueError, match=r"`separator` of .* must be one of '@', '_'"):
        tfr.evaluate(LABELS, SCORES, ["ndcg@10"], separator=wrong)
    with pytest.raises(ValueError, match=r"`separator` of .* must be one of '@', '_'"):
        tfr.RankingMetrics(["ndcg@10"], separator=wrong)


# What trackers accept, as their documentation has it.
TRACKERS = {"MLflow": r"[/\w.\- :]*", "Weights & Biases": r"[_a-zA-Z][_a-zA-Z0-9]*"}


@pytest.fixture(scope="module")
def keys_of_logs(tmp_path_factory):
    """The names in the logs of `fit`, for each separator."""

    def logs_of(separator):
        items = tf.keras.Input((3,))
        model = tf.keras.Model(items, tf.keras.layers.Dense(3)(items))
        metric = tfr.RankingMetrics(NAMES, separator=separator)
        model.compile(loss="mse", metrics=[metric], run_eagerly=True)
        data = np.ones((2, 3)), np.array(LABELS, float)
        path = tmp_path_factory.mktemp("logs") / "log.csv"
        log = tf.keras.callbacks.CSVLogger(path)
        model.fit(*data, validation_data=data, verbose=0, callbacks=[log])
        return path.read_text().splitlines()[0].split(",")

    return {separator: logs_of(separator) for separator in "_@"}


@pytest.mark.parametrize("tracker", TRACKERS)
def test_the_logs_of_fit_have_names_that_trackers_accept(tracker, keys_of_logs):
    keys = keys_of_logs["_"]
    assert {*KEYS, *(f"val_{key}" for key in KEYS)} <= {*keys}
    assert all(re.fullmatch(TRACKERS[tracker], key) for key in keys)
    assert not all(re.fullmatch(TRACKERS[tracker], key) for key in keys_of_logs["@"])


def test_arp_with_a_cutoff_means_one_of_two_metrics():
    with pytest.raises(ValueError, match="'mean_popularity@k'; 'arp' is the average"):
        tfr.evaluate([[1, 0]], [[1, 2]], ["arp@10"])


def test_names_of_trec_eval_on_its_command_line():
    values = tfr.evaluate(LABELS, SCORES, ["P.2", "ndcg_cut.10", "recip_rank"])
    assert [*values] == ["precision@2", "ndcg@10", "mrr"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("AP(rel=2)@10", "'map@10', with relevance_threshold=2."),
        ("nDCG(dcg='exp-log2')@10", "'ndcg@10', with gain='exponential'."),
        ("RBP(p=0.8)", "'rbp', with persistence=0.8."),
        ("ERR(max_rel=4,cutoff=5)", "'err', with max_label=4."),
        ("acc@1", "Did you mean 'hit_rate@1'?"),
        ("accuracy", "Did you mean 'hit_rate'?"),
        ("unj_5", "Did you mean 'hole_5'?"),
        ("rbp_resid", "Did you mean 'rbp_residual'?"),
    ],
)
def test_names_of_other_tools_get_a_hint_before_the_list_of_names(name, hint):
    with pytest.raises(ValueError, match="must have a known name") as error:
        tfr.evaluate(LABELS, SCORES, [name])
    text = str(error.value)
    assert 0 < text.index(hint) < text.index("The names are 'ndcg'")
