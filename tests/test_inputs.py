"""Tests the inputs that are accepted, and the error for each mistake."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

import tfrankmetrics as trm
from tfrankmetrics.inputs.formats import input_format

LABELS = np.array([[0.0, 2.0, 1.0, -1.0], [1.0, 0.0, -1.0, -1.0]])
SCORES = np.array([[0.3, 0.1, 0.2, 9.0], [0.5, 0.6, 9.0, 9.0]])
NAMES = ["ndcg@2", "map", "recall@1"]
REFERENCE = trm.evaluate(LABELS, SCORES, NAMES)


def ragged(rows, dtype="float64"):
    return tf.ragged.constant(rows, dtype=dtype)


ROWS = [[0, 2, 1], [1, 0]], [[0.3, 0.1, 0.2], [0.5, 0.6]]


@pytest.mark.parametrize(
    ("y_true", "y_pred"),
    [
        (LABELS, SCORES),
        (LABELS.tolist(), SCORES.tolist()),
        (tf.constant(LABELS), tf.constant(SCORES)),
        (tf.Variable(LABELS), tf.Variable(SCORES)),
        (LABELS.astype("int8"), SCORES),
        (LABELS, SCORES[:, :, None]),
        (LABELS[:, :, None], SCORES[:, :, None]),  # as losses of Keras with a mask need
        ROWS,
        (np.array([np.array(row) for row in ROWS[0]], dtype=object), ROWS[1]),
        (tuple(map(tuple, ROWS[0])), tuple(map(np.array, ROWS[1]))),
        (ragged(ROWS[0]), ragged(ROWS[1])),
        (ragged(ROWS[0], "uint8"), ragged(ROWS[1], "float32")),
        (ragged(ROWS[0]), SCORES),  # a model's scores, with more padding
        (ROWS[0], SCORES[:, :3]),
        ({"labels": LABELS}, SCORES),
        ({"labels": np.abs(LABELS), "mask": LABELS >= 0}, SCORES),
    ],
)
def test_accepted_forms_of_labels_and_scores(y_true, y_pred):
    assert trm.evaluate(y_true, y_pred, NAMES) == pytest.approx(REFERENCE, rel=1e-6)
    metric = trm.RankingMetrics(NAMES)
    metric.update_state(y_true, y_pred)
    results = {name: float(value) for name, value in metric.result().items()}
    assert results == pytest.approx(REFERENCE, rel=1e-6)
    explained = trm.explain(y_true, y_pred, "map", query=1).value
    assert explained == trm.explain(LABELS, SCORES, "map", query=1).value


def test_one_list_without_a_batch_dimension():
    one = trm.evaluate(LABELS[0], SCORES[0], NAMES)
    assert one == trm.evaluate(LABELS[:1], SCORES[:1], NAMES)
    mask = [True, False, True, True]
    masked = trm.evaluate(LABELS[0], SCORES[0], NAMES, mask=mask)
    assert masked == trm.evaluate(LABELS[:1], SCORES[:1], NAMES, mask=[mask])
    weights = [1.0, 2.0, 3.0, 0.0]
    weighted = trm.evaluate(LABELS[0], SCORES[0], NAMES, sample_weight=weights)
    assert weighted == trm.evaluate(
        LABELS[:1], SCORES[:1], NAMES, sample_weight=[weights]
    )


def test_weights_of_one_list():
    """One weight for each item, or one weight for the list."""
    for weights in ([1, 2], [3], 3, [[3]], [[1, 2]]):
        metric = trm.MeanReciprocalRank()
        metric.update_state([1, 0], [2.0, 1.0], weights)
        metric.update_state([0, 1], [2.0, 1.0], 1.0)
        first = 1 if np.size(weights) == 2 else 3  # that of the relevant item
        assert float(metric.result()) == (first * 1 + 1 / 2) / (first + 1)


def test_item_weights_may_have_a_last_dimension_of_1_as_scores_may():
    weights = np.arange(1.0, 7.0).reshape(2, 3)
    labels, scores = [[1, 0, 2], [0, 1, 1]], [[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]
    expected = trm.evaluate(labels, scores, ["ndcg"], sample_weight=weights)
    found = trm.evaluate(
        labels,
        np.expand_dims(scores, 2),
        ["ndcg"],
        sample_weight=weights[..., np.newaxis],
    )
    assert found == expected
    with pytest.raises(ValueError, match="may have a last dimension of 1"):
        trm.evaluate(labels, scores, ["ndcg"], sample_weight=np.ones((2, 2, 1)))


def test_scores_of_subtopics_may_have_a_last_dimension_of_1():
    labels, scores = [[[-2, 1], [1, 0]]], [[[2.0], [1.0]]]
    # At rank 1, the precision is 0 for the first subtopic and 1 for the second.
    assert trm.evaluate(labels, scores, ["precision_ia@1"]) == {"precision_ia@1": 1 / 2}
    # And so may labels, as those of one subtopic.
    assert trm.evaluate(LABELS[..., np.newaxis], SCORES, ["alpha_dcg"])["alpha_dcg"] > 0


def test_weights_and_masks_for_lists_of_unequal_length():
    weights, mask = [[1, 2, 3], [4, 5]], [[True, True, False], [True, False]]
    dense_weights = np.array([[1, 2, 3, 0], [4, 5, 0, 0]])
    dense_mask = np.array([[True, True, False, False], [True, False, False, False]])
    dense = trm.evaluate(
        LABELS, SCORES, NAMES, sample_weight=dense_weights, mask=dense_mask
    )
    nested = trm.evaluate(*ROWS, NAMES, sample_weight=weights, mask=mask)
    assert nested == pytest.approx(dense, rel=1e-12)
    # With ragged labels, a dense mask cannot turn padding into items.
    all_true = trm.evaluate(ragged(ROWS[0]), SCORES, NAMES, mask=np.ones((2, 4), bool))
    assert all_true == pytest.approx(REFERENCE, rel=1e-12)


@pytest.mark.parametrize(
    "scores",
    [
        [tf.constant([200.0, 100.0])],
        [np.array([2.0**60, 1.0])],
        [[np.array(2.0**60), np.array(1.0)]],
    ],
)
def test_scores_in_a_list_of_arrays(scores):
    assert trm.evaluate([[0, 1]], scores, ["mrr"]) == {"mrr": 1 / 2}


ONE = [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("arguments", "rule", "received"),
    [
        ({"y_pred": [[1.0, 2.0, 3.0]]}, "must be of the same shape", "(1, 2), y_pred of shape (1, 3)"),
        ({"y_pred": [[1.0, 2.0]] * 2}, "must be of the same shape", "(2, 2)"),
        ({"y_pred": [1.0, 2.0]}, "both be of shape [B, N], or both [N]", "y_pred of shape (2,)"),
        ({"y_pred": 1.0}, "both be of shape [B, N]", "y_pred of shape ()"),
        ({"y_true": [[[[1.0, 0.0]]]]}, "both be of shape [B, N]", "y_true of shape (1, 1, 1, 2)"),
        ({"y_true": [[[1.0, 0.0]]]}, "must be of the same shape", "y_true of shape (1, 1, 2)"),
        ({"y_true": [[[1.0, 1.0], [0.0, 1.0]]]}, "`mrr` reads labels of shape [B, N].", "one for each subtopic. If they are grades"),
        ({"metrics": ["alpha_dcg"]}, "`alpha_dcg` reads labels of shape [B, N, T]", "labels of shape [B, N]. Add a"),
        ({"y_pred": [[[1.0, 2.0], [3.0, 4.0]]]}, "may also be [B, N, 1]", "(1, 2, 2)"),
        ({"y_true": [1]}, "For the ids of relevant items, pass inputs='catalog'", "y_true of shape (1,)"),
        ({"y_true": [[1]], "y_pred": np.ones((1, 2, 3))}, "pass inputs='catalog'", "y_true of shape (1, 1)"),
        ({"y_true": [[1, 0], [1]], "y_pred": [[1, 2], [3, 4]]}, "as long as the rows of the labels", "in row 1, 1 labels and 2"),
        ({"y_true": [[1, 0, 0], [1]], "y_pred": np.ones((2, 2))}, "must be of the same shape", "y_pred of shape (2, 2)"),
        ({"y_true": [[1, 0], [1]], "y_pred": [[1], [3, 4]]}, "as long as the rows of the labels", "in row 0, 2 labels and 1"),
        ({"y_true": [[1, 0], [1]], "y_pred": [[1, 0], [1], [1]]}, "as long as", "in row 2, None labels and 1"),
        ({"y_pred": ragged([[1.0], [1.0, 2.0]])}, "needs ragged labels", "dense labels of shape (1, 2)"),
        ({"y_true": [["a", "b"]]}, "must hold real numbers of at most 64 bits", "<U1"),
        ({"y_true": np.ones((1, 2), np.longdouble)}, "of at most 64 bits", "dtype float"),
        ({"y_true": np.ones((1, 2, 0)), "metrics": ["alpha_dcg"]}, "at least 1 subtopic", "(1, 2, 0)"),
        ({"y_true": [[1, 0], None]}, "must hold a list for each query", "None in row 1. Pass [] for a query without ids. Leave out one without labels"),
        ({"y_pred": [[True, False]]}, "Scores must be floats or integers", "bool"),
        ({"y_pred": np.array([[1, 2]], "uint64")}, "Scores must be floats or integers", "uint64. Cast them to int64."),
        ({"y_pred": [[1j, 2.0]]}, "Scores must be floats or integers", "complex128"),
        ({"y_true": tf.constant([["a", "b"]])}, "Labels must be real numbers", "string"),
        ({"y_true": tf.sparse.from_dense(ONE)}, "must be dense or ragged", "SparseTensor"),
        ({"y_true": tf.ragged.constant([[[1.0], [0.0, 2.0]]])}, "must have one ragged dimension", "ragged rank 2"),
        ({"y_true": {"label": ONE}}, "must contain the key 'labels'", "the keys 'label'"),
        ({"y_true": {"labels": ONE, "mask": [[True, True]]}, "mask": [[True, True]]}, "Pass the mask once", "in the dict"),
        ({"y_true": np.ma.masked_array(ONE, [[1, 0]])}, "must not be a masked array", None),
        ({"y_true": [[1, 0]] * 2, "y_pred": [[1, 2]] * 2, "sample_weight": [[3.0], []]}, "needs ragged labels", "dense labels of shape (2, 2)"),
        ({"mask": [[1, 0]]}, "must be boolean", "int64"),
        ({"mask": [True, False]}, "must be of the labels' shape, (1, 2)", "shape (2,)"),
        ({"mask": [[True]]}, "must be of the labels' shape", "shape (1, 1)"),
        ({"sample_weight": [1.0, 2.0]}, "a scalar, [B] or [B, 1]", "shape (2,)"),
        ({"sample_weight": [[1.0, 2.0, 3.0]]}, "a scalar, [B] or [B, 1]", "shape (1, 3)"),
        ({"sample_weight": [[[1.0, 2.0]]]}, "a scalar, [B] or [B, 1]", "shape (1, 1, 2)"),
        ({"sample_weight": [[True, False]]}, "use a mask", "bool"),
        ({"y_true": [[1, np.nan]]}, "Labels must be finite numbers", "nan at index [0, 1]"),
        ({"y_true": [[1, np.inf]]}, "Labels must be finite numbers", "inf at index [0, 1]"),
        ({"sample_weight": [-1.0]}, "finite numbers of at least 0", "index [0]"),
        ({"sample_weight": [[np.nan, 1.0]]}, "finite numbers of at least 0", "index [0, 0]"),
    ],
)  # fmt: skip
def test_invalid_data_raises(arguments, rule, received):
    defaults = {"y_true": ONE, "y_pred": [[0.2, 0.1]], "metrics": ["mrr"]}
    with pytest.raises(ValueError) as error:
        trm.evaluate(**{**defaults, **arguments})
    assert rule in str(error.value)
    assert received is None or re.search(
        f"Received.*{re.escape(received)}", str(error.value)
    )


@pytest.mark.parametrize(
    ("make", "rule", "received"),
    [
        (lambda: trm.NDCG(k=0), "an int of at least 1", "k=0"),
        (lambda: trm.NDCG(k=-3), "an int of at least 1", "k=-3"),
        (lambda: trm.NDCG(k=True), "an int of at least 1", "k=True"),
        (lambda: trm.NDCG(k=2.0), "an int of at least 1", "k=2.0"),
        (lambda: trm.NDCG(k=2**31), "below 2^31", "k=2147483648"),
        (lambda: trm.NDCG(k="10"), "an int of at least 1", "k='10'"),
        (lambda: trm.NDCG(gain="exp"), "`gain` of `ndcg` must be one of 'exponential', 'linear'", "'exp'"),
        (lambda: trm.DCG(discount=2), "`discount` of `dcg` must be one of 'log2', 'jarvelin'", "discount=2"),
        (lambda: trm.NDCG(ideal="all"), "'judged', 'retrieved'", "'all'"),
        (lambda: trm.NDCG(ties="first"), "'expected', 'stable', 'best'", "'first'"),
        (lambda: trm.NDCG(empty=0), "'zero', 'one', 'skip'", "empty=0"),
        (lambda: trm.NDCG(ties="random"), "one of 'expected'", "ties='random'"),
        (lambda: trm.DCG(empty="one"), "`empty` of `dcg` must be one of 'zero', 'skip'", "'one'"),
        (lambda: trm.RankBiasedPrecision(graded="yes"), "`graded` of `rbp` must be True or False, or 'relative'", "'yes'"),
        (lambda: trm.AverageRelevancePosition(empty="zero"), "must be 'skip'", "'zero'"),
        (lambda: trm.OrderedPairAccuracy(empty="one"), "or average='macro'", "'one'"),
        (lambda: trm.OrderedPairAccuracy(average="mean"), "'micro', 'macro'", "'mean'"),
        (lambda: trm.OrderedPairAccuracy(inputs="ids"), "`opa` supports only inputs='labels'", None),
        (lambda: trm.PerQueryAUC(inputs="ids"), "supports only inputs='labels' and 'catalog'", None),
        (lambda: trm.RankingMetrics(["ndcg", "bpref"], inputs="catalog"), "`bpref` supports only", None),
        (lambda: trm.evaluate(ONE, ONE, ["alpha_dcg"], inputs="ids"), "`alpha_dcg` supports only", None),
        (lambda: trm.evaluate(ONE, ONE, ["arp@5"]), "of the whole list and takes no cutoff", "k=5"),
        (lambda: trm.AlphaDCG(alpha=0), "from 0.001 to 1", "alpha=0"),
        (lambda: trm.AlphaDCG(alpha=1.5), "from 0.001 to 1", "alpha=1.5"),
        (lambda: trm.RankBiasedPrecision(persistence=0), "between 0 and 1", "persistence=0"),
        (lambda: trm.RankBiasedPrecision(persistence=1), "between 0 and 1", "persistence=1"),
        (lambda: trm.ExpectedReciprocalRank(max_label=0), "above 0, at most 1000", "max_label=0"),
        (lambda: trm.evaluate(ONE, np.array([[0.5, "a"]], object), ["map"]), "array of numbers", "[[0.5 'a']]. It has the dtype object"),
        (lambda: trm.evaluate(np.ones([1, 1], "uint64"), [[1]], ["map"], inputs="ids"), "must hold ids", "dtype: uint64. Cast them to int64."),
        (lambda: trm.evaluate_rows([{}, {}], [1, 0], [1, 2], ["map"]), "must be hashable", "unhashable type: 'dict'"),
        (lambda: trm.evaluate([[5, 0]], [[2, 1]], ["err@10"]), "must be at most `max_label`, 4.0", "in query 0 for 'err@10'"),
        (lambda: trm.evaluate([[5, 0]], [[2, 1]], ["pfound"]), "must be at most `max_label`, 4.0", "in query 0 for 'pfound'"),
        (lambda: trm.evaluate_rows([7, 7], [5, 0], [2, 1], ["err"]), "must be at most `max_label`, 4.0", "in query 7 for 'err'"),
        (lambda: trm.evaluate_rows([1], [1], [1], ["map"], denominator="hits"), "must be set on a metric object", None),
        (lambda: trm.evaluate_rows([1], [1], [1], [trm.NDCG(inputs="ids")]), "read the same data", "'ids'"),
        (lambda: trm.MeanAveragePrecision(denominator="k"), "'min(retrieved, relevant)', 'hits'", "'k'"),
        (lambda: trm.RecallAtK(relevance_threshold=0), "a finite number above 0", "=0"),
        (lambda: trm.RecallAtK(relevance_threshold="1"), "a finite number above 0", "'1'"),
        (lambda: trm.NDCG(dtype="int32"), "must be a float", "dtype='int32'"),
        (lambda: trm.evaluate(ONE, ONE, ["dcg"], gain=lambda labels, k: labels), "maps an array to one of the same shape", "TypeError"),
        (lambda: trm.RankingMetrics(["ndgc@10"]), "Did you mean 'ndcg@10'?", "'ndgc@10'"),
        (lambda: trm.RankingMetrics(["avg@5"]), "The names are 'ndcg', 'dcg', ", "'avg@5'"),
        (lambda: trm.RankingMetrics(["sucess@1"]), "Did you mean 'hit_rate@1'?", "'sucess@1'"),
        (lambda: trm.MeanReciprocalRank(convention="keras-rs"), "Did you mean 'keras_rs'?", "'keras-rs'"),
        (lambda: trm.MeanReciprocalRank(convention="ranx"), "Did you mean 'trec_eval'?", "'ranx'"),
        (lambda: trm.MeanReciprocalRank(convention="tfr"), "Did you mean 'tf_ranking'?", "'tfr'"),
        (lambda: trm.NDCG(ties="Expected"), "Did you mean 'expected'?", "'Expected'"),
        (lambda: trm.RankingMetrics(["ndcg@0"]), "an int of at least 1", "k=0"),
        (lambda: trm.RankingMetrics(["ndcg@ten"]), "must be a whole number", "'ndcg@ten'"),
        (lambda: trm.RankingMetrics(["ndcg@"]), "must be a whole number", "'ndcg@'"),
        (lambda: trm.RankingMetrics(["ndcg@-1"]), "must be a whole number", "'ndcg@-1'"),
        (lambda: trm.RankingMetrics([]), "at least one metric", "[]"),
        (lambda: trm.RankingMetrics("ndcg"), "must be a list", "'ndcg'"),
        (lambda: trm.RankingMetrics([10]), "must hold names such as", "10"),
        (lambda: trm.RankingMetrics([trm.RankingMetrics(["map"])]), "no RankingMetrics", None),
        (lambda: trm.RankingMetrics(["P@5", "P@5"]), "'P@5' twice", None),
        (lambda: trm.RankingMetrics(["ndcg", trm.NDCG(gain="linear")]), "'ndcg' twice", None),
        (lambda: trm.RankingMetrics(["ndcg"], prefix=3), "must be a string", "3"),
        (lambda: trm.RankingMetrics(["ndcg"], name=3), "`name` must be a string", "3"),
        (lambda: trm.RankingMetrics(["map", "mrr"], gain="linear"), "'gain', which no such metric accepts", None),
        (lambda: trm.RankingMetrics([trm.NDCG()], ties="stable"), "'ties', which no such metric accepts", None),
        (lambda: trm.evaluate(ONE, ONE, ["map"], ideal="judged"), "'ideal', which no such metric accepts", None),
        (lambda: trm.evaluate(ONE, ONE, ["dcg"], gain=lambda labels: 1.0), "maps an array to one of the same shape", "returned shape ()"),
    ],
)  # fmt: skip
def test_invalid_metrics_and_options_raise(make, rule, received):
    with pytest.raises(ValueError) as error:
        make()
    assert rule in str(error.value)
    if received is not None:
        message = str(error.value).lower()
        assert re.search(f"received.*{re.escape(received.lower())}", message)


def test_options_at_their_limits():
    assert trm.AlphaDCG(alpha=0.001).alpha == 0.001
    assert trm.ExpectedReciprocalRank(max_label=0.5).max_label == 0.5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ndcg@10", "ndcg@10"),
        ("nDCG@10", "ndcg@10"),
        ("ndcg_cut_10", "ndcg@10"),
        ("AP", "map"),
        ("AP@5", "map@5"),
        ("map_cut_5", "map@5"),
        ("RR", "mrr"),
        ("recip_rank", "mrr"),
        ("P@5", "precision@5"),
        ("P_5", "precision@5"),
        ("R@5", "recall@5"),
        ("recall_100", "recall@100"),
        ("Success@1", "hit_rate@1"),
        ("success_1", "hit_rate@1"),
        ("HR@10", "hit_rate@10"),
        ("hit_rate", "hit_rate"),
    ],
)
def test_metric_names_of_other_tools(text, name):
    metric = trm.RankingMetrics([text, name] if text != name else [text], prefix="x_")
    metric.update_state([[0, 2, 1]], [[3.0, 2.0, 1.0]])
    found = metric.result()
    assert [*found] == [*dict.fromkeys([f"x_{text}", f"x_{name}"])]
    assert len({float(value) for value in found.values()}) == 1


def test_options_apply_to_names_but_not_to_objects():
    metrics = [
        "ndcg",
        "map",
        trm.NDCG(name="exponential"),
        trm.MeanAveragePrecision(k=2, denominator="hits", relevance_threshold=2),
    ]
    labels, scores = [[1, 3, 2]], [[3, 2, 1]]
    together = trm.evaluate(labels, scores, metrics, gain="linear", empty="skip")
    assert list(together) == ["ndcg", "map", "exponential", "map@2"]
    assert (
        together["ndcg"]
        == trm.evaluate(labels, scores, [trm.NDCG(gain="linear")])["ndcg"]
    )
    assert together["exponential"] == trm.evaluate(labels, scores, ["ndcg"])["ndcg"]
    assert together["map@2"] == 1 / 2


def test_default_metric_names():
    names = [
        trm.NDCG(k=10).name,
        trm.MeanAveragePrecision().name,
        trm.HitRateAtK(k=1).name,
    ]
    assert names == ["ndcg@10", "map", "hit_rate@1"]
    assert trm.PrecisionAtK(k=np.int64(3)).name == "precision@3"
    assert trm.RankingMetrics(["mrr"], name="mine").name == "mine"


@pytest.mark.parametrize(
    "function",
    [
        lambda: trm.evaluate(ONE, ONE, ["mrr"]),
        lambda: trm.evaluate_rows([1], [1], [1], ["mrr"]),
    ],
    ids=["evaluate", "evaluate_rows"],
)
def test_functions_of_arrays_raise_inside_a_graph(function):
    with pytest.raises(RuntimeError, match="Update a metric object there instead"):
        tf.function(function)()


def test_columns_of_objects_that_are_numbers_are_numbers():
    labels, scores = (np.array(c, object) for c in ([1, 0, 0, 1], [0.3, 0.2, 0.5, 1]))
    groups, weights = np.array([2, 2], object), np.array([1, 1, 2, 2], object)
    found = trm.evaluate_rows(
        None, labels, scores, ["mrr"], groups=groups, sample_weight=weights
    )
    assert found == {"mrr": 1.0}
    lists = (column.reshape(2, 2) for column in (labels, scores))
    assert trm.evaluate(*lists, ["mrr"]) == {"mrr": 1.0}
    labels[2] = 2**53 + 1
    with pytest.raises(ValueError, match="integers below 2"):
        trm.evaluate_rows([1, 1, 2, 2], labels, scores, ["mrr"])
    labels[2] = "x"
    with pytest.raises(ValueError, match="Received: 'x' in row 2"):
        trm.evaluate_rows([1, 1, 2, 2], labels, scores, ["mrr"])


IDS = {"ids": [[0, 2], [1, -1]], "relevance": [[1, 2], [1, 0]]}
BY_FORMAT = {
    "labels": {
        "labels": LABELS,
        "mask": LABELS >= 0,
        "item_ids": np.arange(8).reshape(2, 4),
    },
    "ids": IDS,
    "catalog": {**IDS, "exclude": [[3], [0]]},
}


@pytest.mark.parametrize("inputs", BY_FORMAT)
def test_the_first_axis_of_every_array_is_the_query(inputs):
    """A slice of all arrays of lists is a slice of the queries."""
    y_true = BY_FORMAT[inputs]
    y_pred = [[0, 1, 2], [2, 1, 0]] if inputs == "ids" else SCORES
    weights = [np.ones(2), np.ones((2, 4))][: 1 + (inputs == "labels")]
    names = set()
    for each in weights:
        lists = input_format(inputs).read(y_true, y_pred, each).without_zero_weights()
        assert {array.shape[0] for array in lists.arrays.values()} == {2}
        names |= lists.arrays.keys()
    if inputs == "labels":
        names.add("id_ranks")  # of tables with subtopics
    fields = dataclasses.fields(lists)
    assert names == {field.name for field in fields if "Array" in field.type}
