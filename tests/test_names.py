"""Tests names with parameters, and keys without "@", for trackers that refuse it."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf

import tfrankmetrics as trm
from tfrankmetrics.metrics.names import canonical_name, named_measures, parse_name

LABELS, SCORES = [[1, 0, 2], [0, 1, 0]], [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]
NAMES = ["ndcg@10", "P@2(ties='stable')", "RBP(p=0.8)", "mrr"]
KEYS = ["ndcg_10", "P_2_ties_stable", "RBP_p_0_8", "mrr"]


def test_the_separator_of_array_functions():
    expected = trm.evaluate(LABELS, SCORES, NAMES)
    rows = [0, 0, 0, 1, 1, 1], np.ravel(LABELS), np.ravel(SCORES)
    qrels = {q: dict(zip("abc", labels)) for q, labels in enumerate(LABELS)}
    run = {q: dict(zip("abc", scores)) for q, scores in enumerate(SCORES)}
    for found in (
        trm.evaluate(LABELS, SCORES, NAMES, separator="_"),
        trm.evaluate_rows(*rows, NAMES, separator="_"),
        trm.evaluate_run(qrels, run, NAMES, separator="_"),
    ):
        assert [*found] == KEYS
        assert [*found.values()] == [*expected.values()]


def test_the_separator_of_values_by_query_and_by_slice():
    found = trm.evaluate(
        LABELS, SCORES, NAMES, separator="_", per_query=True, by=["x", "y"]
    )
    assert [*found] == ["slice", *KEYS]
    compared = trm.compare({"a": found, "b": found})
    assert [mean.metric for mean in compared.means[:4]] == KEYS


def test_a_metric_object_keeps_its_name():
    metrics = [trm.NDCG(10), trm.NDCG(10, gain="linear", name="linear")]
    found = trm.evaluate(LABELS, SCORES, metrics, separator="_")
    assert [*found] == ["ndcg@10", "linear"]


def test_the_separator_of_ranking_metrics():
    metric = trm.RankingMetrics(NAMES, "dev_", separator="_", num_queries=True)
    keys = [f"dev_{key}" for key in (*KEYS, "num_queries")]
    for made in (metric, trm.RankingMetrics.from_config(metric.get_config())):
        made.update_state(LABELS, SCORES)
        assert [*made.result()] == [*made.result_keys] == keys


def test_keys_by_the_separator_may_clash():
    for other in (trm.NDCG(5, name="ndcg_10"), "ndcg_10", "ndcg@10()"):
        with pytest.raises(ValueError, match=r"must be unique.*'ndcg_10' twice"):
            trm.evaluate(LABELS, SCORES, ["ndcg@10", other], separator="_")


@pytest.mark.parametrize("wrong", ["", "-", " at ", None, 5])
def test_other_separators_are_refused(wrong):
    with pytest.raises(ValueError, match=r"`separator` of .* must be one of '@', '_'"):
        trm.evaluate(LABELS, SCORES, ["ndcg@10"], separator=wrong)
    with pytest.raises(ValueError, match=r"`separator` of .* must be one of '@', '_'"):
        trm.RankingMetrics(["ndcg@10"], separator=wrong)


# What trackers accept, as their documentation has it.
TRACKERS = {"MLflow": r"[/\w.\- :]*", "Weights & Biases": r"[_a-zA-Z][_a-zA-Z0-9]*"}


@pytest.fixture(scope="module")
def keys_of_logs(tmp_path_factory):
    """The names in the logs of `fit`, for each separator."""

    def logs_of(separator):
        items = tf.keras.Input((3,))
        model = tf.keras.Model(items, tf.keras.layers.Dense(3)(items))
        metric = trm.RankingMetrics(NAMES, separator=separator)
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
        trm.evaluate([[1, 0]], [[1, 2]], ["arp@10"])


def test_names_of_trec_eval_on_its_command_line():
    values = trm.evaluate(LABELS, SCORES, ["P.2", "ndcg_cut.10", "recip_rank"])
    assert [*values] == ["P.2", "ndcg_cut.10", "recip_rank"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("acc@1", "Did you mean 'hit_rate@1'?"),
        ("accuracy", "Did you mean 'hit_rate'?"),
        ("unj_5", "Did you mean 'hole_5'?"),
        ("rbp_resid", "Did you mean 'rbp_residual'?"),
        ("nDGC(dcg='log2')@10", "Did you mean \"ndcg(dcg='log2')@10\"?"),
        ("SetF(beta=2)", "Import the module that declares it"),
    ],
)
def test_names_of_other_tools_get_a_hint_before_the_list_of_names(name, hint):
    with pytest.raises(ValueError, match="must have a known name") as error:
        trm.evaluate(LABELS, SCORES, [name])
    text = str(error.value)
    assert 0 < text.index(hint) < text.index("The names are 'ndcg'")


OF_NAMES = {
    "ndcg@2(gain=linear)": trm.NDCG(2, gain="linear"),
    "ndcg(gain=linear)@2": trm.NDCG(2, gain="linear"),
    "nDCG(dcg='log2')@2": trm.NDCG(2, gain="linear"),
    "nDCG(dcg='exp-log2')@2": trm.NDCG(2),
    "nDCG(dcg=exp-log2, cutoff=2)": trm.NDCG(2),
    "NDCG_cut_2( gain = 'linear' , ties = \"worst\" )": trm.NDCG(
        2, gain="linear", ties="worst"
    ),
    "AP(rel=2)@100": trm.MeanAveragePrecision(100, relevance_threshold=2),
    "RR(rel=2)": trm.MeanReciprocalRank(relevance_threshold=2),
    "RBP(p=0.5)": trm.RankBiasedPrecision(persistence=0.5),
    "rbp@2(graded=True)": trm.RankBiasedPrecision(2, graded=True),
    "rbp(graded=relative)": trm.RankBiasedPrecision(graded="relative"),
    "err(max_label=3.0,k=2)": trm.ExpectedReciprocalRank(2, max_label=3),
    "map@2(denominator=hits)": trm.MeanAveragePrecision(2, denominator="hits"),
    "map@2(denominator=min(k, relevant))": trm.MeanAveragePrecision(
        2, denominator="min(k, relevant)"
    ),
    "map@2(denominator='min(k, relevant)',empty=one)": trm.MeanAveragePrecision(
        2, denominator="min(k, relevant)", empty="one"
    ),
    "P@5(convention=trec_eval)": trm.PrecisionAtK(5, convention="trec_eval"),
    "ndcg(convention=xgboost)": trm.NDCG(convention="xgboost"),
    "Judged@10": trm.JudgedAtK(10),
    "Success@5": trm.HitRateAtK(5),
    "mrr()": trm.MeanReciprocalRank(),
}


@pytest.mark.parametrize("name", OF_NAMES)
def test_a_name_means_the_metric_of_an_object(name):
    measure = OF_NAMES[name].measure
    assert named_measures([name], {}) == {name: measure}
    found = trm.evaluate_rows([0, 0, 0], [0, 2, 1], [1.0, 1.0, 0.5], [name])
    assert found.keys() == {name}


@pytest.mark.parametrize("name", OF_NAMES)
def test_canonical_names_mean_the_same_metric(name):
    measure = OF_NAMES[name].measure
    if name == "ndcg(convention=xgboost)":  # whose cutoff of 32 is no part of its name
        return
    written = canonical_name(measure)
    parsed = parse_name(written)
    assert parsed.declaration is measure.declaration
    assert parsed.k == measure.k
    assert measure.with_options(parsed.options).by_option == measure.by_option
    defaults = measure.declaration.defaults
    different = {o: v for o, v in measure.options if v != defaults[o]}
    assert parsed.options == different
    (again,) = named_measures([written], {}).values()
    assert canonical_name(again) == written


def test_options_of_a_name_win_over_those_of_a_call():
    names = ["ndcg@2(gain=linear)", "ndcg@2", "map@2(rel=2)"]
    found = trm.evaluate(LABELS, SCORES, names, gain="exponential", ties="worst")
    expected = [
        trm.NDCG(2, gain="linear", ties="worst", name="a"),
        trm.NDCG(2, ties="worst", name="b"),
        trm.MeanAveragePrecision(2, relevance_threshold=2, ties="worst", name="c"),
    ]
    assert [*found] == names
    assert [*found.values()] == [*trm.evaluate(LABELS, SCORES, expected).values()]
    (one,) = trm.evaluate(LABELS, SCORES, names[:1], gain="exponential").values()
    assert one == trm.evaluate(LABELS, SCORES, ["ndcg@2"], gain="linear")["ndcg@2"]


def test_a_convention_of_a_name_wins_over_the_options_of_a_call():
    labels, scores = [[0, 3, 1], [0, 0, 0]], [[1.0, 1.0, 0.5], [3, 2, 1]]
    names = ["ndcg@2(convention=lightgbm)", "ndcg@2", "ndcg@2(convention=None)"]
    trec_eval, plain = {"convention": "trec_eval", "empty": "skip"}, {"empty": "skip"}
    found = trm.evaluate(labels, scores, names, **trec_eval)
    expected = [
        trm.evaluate(labels, scores, ["ndcg@2"], **options)["ndcg@2"]
        for options in ({"convention": "lightgbm"}, trec_eval, plain)
    ]
    assert [*found.values()] == expected
    assert len({*expected}) == 3
    written = trm.evaluate(labels, scores, ["ndcg@2(convention=lightgbm, empty=zero)"])
    assert [*written.values()] == [
        trm.evaluate(labels, scores, ["ndcg@2"], convention="lightgbm", empty="zero")[
            "ndcg@2"
        ]
    ]


def test_two_spellings_of_a_metric_are_two_keys():
    names = ["P@2", "precision@2", "P_2", "precision@2()"]
    found = trm.evaluate(LABELS, SCORES, names)
    assert [*found] == names
    assert len({*found.values()}) == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndcg@10(gain=lin)", "`gain` of `ndcg` must be one of.*gain='lin'.*'linear'"),
        ("nDCG(dcg='log3')@10", "`dcg` of `ndcg` must be one of.*dcg='log3'"),
        ("RBP(p=8)", "between 0 and 1. Received: persistence=8"),
        ("AP(rel='2')", "a finite number above 0. Received: relevance_threshold='2'"),
        ("AP(relevance=2)", "one of its options.*'relevance'.*'relevance_threshold'"),
        ("Judged@10(p=0.5)", "one of its options: 'convention'.*Received: 'p' in"),
        ("map(gain=linear)", "`map` must be one of its options.*'gain' in"),
        ("P(judged_only=True)@5", "Pass unjudged='drop' to `evaluate_run`"),
        ("nDCG(gains={0: -1})@5", "the gain of each grade, at least 0"),
        ("nDCG(dcg='log2', gains={0: 1})@5", "two values of `gain`"),
        ("err(convention=lightgbm)", "covers only 'ndcg', 'map'. Received: 'err'"),
        ("ndcg(convention=lgbm)", "`convention` of `ndcg` must be one of"),
        ("ndcg@5(cutoff=10)", "once. Received: .*, with two values of `k`"),
        ("map(rel=2, rel=2)", "two values of `relevance_threshold`"),
        ("map(rel=2, relevance_threshold=2)", "two values of `relevance_threshold`"),
        ("auc(k=5)", "takes no cutoff"),
        ("ndcg(k=0)", "an int of at least 1"),
        ("ndcg@10(gain=linear)@5", "must be a whole number"),
        ("ndcg@10(gain=linear", "must be a whole number"),
        *[
            (f"ndcg({wrong})", "pairs of an option and its value, separated by commas")
            for wrong in (
                "linear",
                "gain=",
                "gain linear",
                "gain='linear",
                "gain=linear ties=stable",
                "**x",
                "*x",
                "gain=linear)(ties=stable",
                "gain=linear), f(a=1",
                "(" * 3000,
                "gain=" + "-" * 30_000 + "1",
                "gain=" + "9" * 5000,
                "gain=a\0",
            )
        ],
    ],
)
def test_mistakes_in_parameters(name, message):
    with pytest.raises(ValueError, match="(?s)" + message) as error:
        trm.evaluate(LABELS, SCORES, [name])
    assert "Received" in str(error.value)
    assert len(str(error.value)) < 1500


def test_an_unknown_parameter_is_an_unknown_option():
    with pytest.raises(trm.options.UnknownOptionError, match="'x' in 'ndcg"):
        trm.evaluate(LABELS, SCORES, ["ndcg@2(x=1)"])


def test_data_about_items_as_a_parameter():
    ids = {"inputs": "ids"}
    name = "mean_popularity@2(popularity=[4, 2, 0], num_items=3)"
    with pytest.raises(trm.options.UnknownOptionError, match="'num_items'"):
        trm.evaluate([[0]], [[1, 0]], [name], **ids)
    name = "mean_popularity@2(popularity=[4, 2, 0])"
    assert trm.evaluate([[0]], [[1, 0]], [name], **ids) == {name: 3.0}
    name = "awrf(categories=['a', 'b'], target={'a': 0.5, 'b': 0.5})"
    assert trm.evaluate([[0]], [[1, 0]], [name], **ids).keys() == {name}


def test_ranking_metrics_with_parameters_are_saved():
    names = ["nDCG(dcg='log2')@2", "ndcg@2", "AP(rel=2)@100", "RBP(p=0.5)"]
    metric = trm.RankingMetrics(names, gain="exponential", ties="worst")
    copy = trm.RankingMetrics.from_config(metric.get_config())
    assert copy.get_config() == metric.get_config()
    expected = trm.evaluate(LABELS, SCORES, names, gain="exponential", ties="worst")
    for each in (metric, copy):
        each.update_state(LABELS, SCORES)
        found = {name: float(value) for name, value in each.result().items()}
        assert found == pytest.approx(expected)


def test_names_with_parameters_in_the_logs_of_fit(tmp_path):
    """Keras's own callbacks accept them as they are, in any but a path's format."""
    items = tf.keras.Input((3,))
    model = tf.keras.Model(items, tf.keras.layers.Dense(3)(items))
    name = "nDCG(dcg='log2')@2"
    metric = trm.RankingMetrics([name, "RBP(p=0.8)"])
    model.compile(loss="mse", metrics=[metric], run_eagerly=True)
    data = np.ones((2, 3)), np.array(LABELS, float)
    path = tmp_path / "log.csv"
    monitored = {"monitor": f"val_{name}", "mode": "max"}
    callbacks = [
        tf.keras.callbacks.CSVLogger(path),
        tf.keras.callbacks.EarlyStopping(**monitored),
        tf.keras.callbacks.TensorBoard(tmp_path / "board"),
    ]
    logs = model.fit(*data, validation_data=data, verbose=0, callbacks=callbacks)
    assert {name, f"val_{name}", "val_RBP(p=0.8)"} <= logs.history.keys()
    assert name in path.read_text()


def test_names_with_parameters_in_every_function():
    name = "AP(rel=2)@100"
    option = {"relevance_threshold": 2}
    rows = [0, 0, 0, 1, 1, 1], np.ravel(LABELS), np.ravel(SCORES)
    qrels = {q: dict(zip("abc", labels)) for q, labels in enumerate(LABELS)}
    run = {q: dict(zip("abc", scores)) for q, scores in enumerate(SCORES)}
    vectors = np.eye(2), np.transpose(SCORES)
    truth = {"ids": [[0, 2], [1]], "relevance": [[1, 2], [1]]}
    for call in (
        lambda metrics, **more: trm.evaluate(LABELS, SCORES, metrics, **more),
        lambda metrics, **more: trm.evaluate_rows(*rows, metrics, **more),
        lambda metrics, **more: trm.evaluate_run(qrels, run, metrics, **more),
        lambda metrics, **more: trm.evaluate_retrieval(
            *vectors, truth, metrics, **more
        ),
    ):
        assert call([name])[name] == call(["map@100"], **option)["map@100"]
    explained = trm.explain(LABELS, SCORES, name)
    assert explained.value == trm.evaluate(LABELS[:1], SCORES[:1], [name])[name]


def test_the_convention_of_ir_measures():
    """By hand: the last two of three items are tied, and z is before c by its id."""
    qrels = {"q": {"a": 1, "z": 3}}
    run = {"q": {"a": 2.0, "c": 1.0, "z": 1.0}}
    ideal = 3 + 1 / math.log2(3)
    expected = {
        "nDCG@10": (1 + 3 / math.log2(3)) / ideal,
        "nDCG(dcg='exp-log2')@10": (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3)),
        "P@10": 0.2,
        "P(rel=2)@10": 0.1,
        "RR(rel=2)": 0.5,
        "AP(rel=2)@100": 0.5,
        "RBP(p=0.5)": 0.75,
        "RBP": 0.2 * 1.8,
        "Success@5": 1.0,
        "ERR@1": 1 / 16,
        "Judged@10": 2 / 3,
    }
    found = trm.evaluate_run(qrels, run, [*expected], convention="ir_measures")
    assert found == pytest.approx(expected)
    plain = trm.evaluate_run(qrels, run, ["nDCG@10", "P@10"])
    assert plain["P@10"] == pytest.approx(2 / 3)
    assert plain["nDCG@10"] != pytest.approx(expected["nDCG@10"])
    alone = trm.evaluate_run(qrels, run, ["Judged@10"], convention="ir_measures")
    assert alone == {"Judged@10": pytest.approx(2 / 3)}


@pytest.mark.parametrize("cls", [trm.ExpectedReciprocalRank, trm.NDCG])
def test_a_copy_of_an_object_keeps_the_order_of_ir_measures(cls):
    metric = cls(1, convention="ir_measures")
    copy = cls.from_config(metric.get_config())
    qrels, run = {"q": {"z": 4}}, {"q": {"a": 1.0, "z": 1.0}}
    for each in (metric, copy):
        (value,) = trm.evaluate_run(qrels, run, [each]).values()
        assert value == (1.0 if cls is trm.NDCG else 15 / 16)
