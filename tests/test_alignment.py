"""Series and frames of pandas are matched by their indexes, at every entry point."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfrankmetrics as trm

USERS = ["u", "v", "w"]
LABELS = pd.Series([[1, 0], [0, 1], [1, 0]], USERS)
SCORES = pd.Series([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], USERS)
FOUND = {"mrr": [1.0, 0.5, 0.5]}  # by user
MASK = pd.Series([[True, True], [True, True], [False, True]], USERS)
OTHER = pd.Series([0.5, 0.25, 0.125], USERS)
RELEVANT = pd.Series([["a"], ["b"], ["b"]], USERS)
RECOMMENDED = pd.Series([["a", "b"], ["a", "b"], ["a", "b"]], USERS)
WEIGHTS = pd.Series([1.0, 2.0, 4.0], USERS)
LANGUAGES = pd.Series(["de", "en", "en"], USERS)
WIDE_LABELS = pd.DataFrame([[1, 0, 0], [0, 1, 0], [0, 0, 1]], USERS, [*"abc"])
WIDE_SCORES = pd.DataFrame([[3, 2, 1], [2, 1, 3], [3, 1, 2]], USERS, [*"abc"])
VECTORS = pd.DataFrame([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], USERS)
POSITIONS = pd.Series([[0], [1], [0]], USERS)
ITEMS = pd.DataFrame([[1.0, 0.2], [0.1, 1.0]], ["a", "b"])
NAMES = pd.Series(["a", "b"], ["a", "b"])
ROWS = pd.DataFrame(
    {
        "user": np.repeat(USERS, 2),
        "label": [1, 0, 0, 1, 1, 0],
        "score": [0.9, 0.1, 0.8, 0.2, 0.3, 0.7],
        "weight": np.repeat([1.0, 2.0, 4.0], 2),
        "language": np.repeat(["de", "en", "en"], 2),
    },
    index=[*"ghijkl"],
)


def evaluate(scores=SCORES, mask=None, weights=WEIGHTS, by=LANGUAGES):
    return trm.evaluate(
        LABELS, scores, ["mrr"], mask=mask, sample_weight=weights, by=by
    )


def evaluate_ids(recommended=RECOMMENDED):
    return trm.evaluate(RELEVANT, recommended, ["mrr"], inputs="ids", per_query=True)


def evaluate_dict(mask=MASK):
    y_true = {"labels": LABELS, "mask": mask}
    return trm.evaluate(y_true, SCORES, ["mrr"], per_query=True)


def evaluate_wide(labels=WIDE_LABELS, scores=WIDE_SCORES):
    return trm.evaluate(labels, scores, ["mrr"], per_query=True)


def explain(scores=SCORES):
    return trm.explain(LABELS, scores, "mrr", query=2).value


def evaluate_rows(
    label=ROWS.label, score=ROWS.score, weight=ROWS.weight, by=ROWS.language
):
    columns = ROWS.user, label, score
    return trm.evaluate_rows(*columns, ["mrr"], sample_weight=weight, by=by)


def explain_rows(score=ROWS.score):
    return trm.explain_rows(ROWS.user, ROWS.label, score, "mrr", "w").value


def evaluate_retrieval(relevant=POSITIONS, weights=WEIGHTS, by=LANGUAGES):
    exclude = pd.Series([[1], [0], [1]], USERS)
    return trm.evaluate_retrieval(
        VECTORS, ITEMS, relevant, ["mrr"], exclude=exclude, sample_weight=weights, by=by
    )


def evaluate_named_candidates(names=NAMES):
    return trm.evaluate_retrieval(
        VECTORS, ITEMS, RELEVANT, ["mrr"], candidate_ids=names, per_query=True
    )


def retrieve(names=NAMES):
    return trm.retrieve(VECTORS, ITEMS, 1, candidate_ids=names).ids.tolist()


def explain_retrieval(relevant=POSITIONS):
    return trm.explain_retrieval(VECTORS, ITEMS, relevant, "mrr", query=2).value


def compare(other=OTHER):
    values = {"A": {"mrr": pd.Series([1.0, 0.5, 0.25], USERS)}, "B": {"mrr": other}}
    (difference,) = trm.compare(values).differences
    return difference.difference, difference.p


def in_callback(make, x, y):
    model = tf.keras.Sequential([tf.keras.Input(x.shape[1:]), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.set_weights([np.array([[1.0], [2.0]]), np.zeros(1)])
    callback = make()
    callback.set_model(model)
    callback.set_params({})  # Keras 2 has no default
    logs = {}
    callback.on_epoch_end(0, logs)
    return logs


def callback_of_rows(labels=ROWS.label):
    x = pd.DataFrame({"p": [3, 2, 1, 3, 2, 1], "q": [0, 0, 1, 1, 0, 2]}, ROWS.index)
    return in_callback(
        lambda: trm.EvaluateRows(x.astype(float), labels, ROWS.user, ["mrr"]), x, labels
    )


def callback_of_lists(weights=WEIGHTS):
    x = np.array([[[1.0, 0], [0, 1]], [[0, 1], [1, 0]], [[1, 1], [1, 0]]])
    return in_callback(
        lambda: trm.EvaluateLists(x, LABELS, ["mrr"], sample_weight=weights), x, LABELS
    )


# Each function, and each of its arguments that has an index.
ARGUMENTS = [
    (evaluate, "scores", SCORES),
    (evaluate, "weights", WEIGHTS),
    (evaluate, "by", LANGUAGES),
    (evaluate_ids, "recommended", RECOMMENDED),
    (evaluate_dict, "mask", MASK),
    (evaluate_wide, "scores", WIDE_SCORES),
    (explain, "scores", SCORES),
    (evaluate_rows, "label", ROWS.label),
    (evaluate_rows, "score", ROWS.score),
    (evaluate_rows, "weight", ROWS.weight),
    (evaluate_rows, "by", ROWS.language),
    (explain_rows, "score", ROWS.score),
    (evaluate_retrieval, "relevant", POSITIONS),
    (evaluate_retrieval, "weights", WEIGHTS),
    (evaluate_retrieval, "by", LANGUAGES),
    (evaluate_named_candidates, "names", NAMES),
    (retrieve, "names", NAMES),
    (explain_retrieval, "relevant", POSITIONS),
    (compare, "other", OTHER),
    (callback_of_rows, "labels", ROWS.label),
    (callback_of_lists, "weights", WEIGHTS),
]
of_each = pytest.mark.parametrize(
    ("function", "argument", "data"),
    ARGUMENTS,
    ids=[f"{function.__name__}-{argument}" for function, argument, _ in ARGUMENTS],
)


def plain(result):
    """A result that can be compared: the whole and each slice, or the values."""
    if isinstance(result, trm.SlicedValues):
        return {**result, "all": result.whole}
    if isinstance(result, trm.QueryValues):
        return {name: values.tolist() for name, values in result.items()}
    return result


@of_each
def test_other_orders_are_aligned(function, argument, data):
    expected = plain(function())
    assert plain(function(**{argument: data})) == expected
    assert plain(function(**{argument: data.reset_index(drop=True)})) == expected
    with pytest.warns(trm.RankingWarning, match=r"by their indexes\..*\.to_numpy\(\)"):
        assert plain(function(**{argument: data.iloc[::-1]})) == expected


@of_each
def test_other_labels_are_an_error(function, argument, data):
    others = data.set_axis([*range(10, 10 + len(data))], axis=0)
    with pytest.raises(ValueError, match=r"different labels, such as .*\.to_numpy\(\)"):
        function(**{argument: others})


def test_columns_of_wide_frames_are_items():
    expected = plain(evaluate_wide())
    assert expected == {"mrr": [1.0, 1 / 3, 0.5]}
    with pytest.warns(trm.RankingWarning, match="y_pred was put into the order"):
        assert plain(evaluate_wide(scores=WIDE_SCORES[[*"cab"]])) == expected
    with pytest.raises(ValueError, match="different labels, such as 'a'"):
        evaluate_wide(scores=WIDE_SCORES.set_axis([*"xbc"], axis=1))
    ids = pd.DataFrame([["b", "a"], ["a", "b"], ["b", "a"]], USERS, ["second", "first"])
    relevant = RELEVANT.to_frame("first")["first"].map(lambda items: items[0])
    found = trm.evaluate(relevant.map(lambda item: [item]), ids, ["mrr"], inputs="ids")
    assert found == {"mrr": (1 / 2 + 1 / 2 + 1) / 3}  # columns of ids are ranks


def test_repeated_labels_are_matched_in_the_same_order_only():
    repeated = [SCORES.set_axis(["u", "u", "w"]), LABELS.set_axis(["u", "u", "w"])]
    scores, labels = repeated
    assert trm.evaluate(labels, scores, ["mrr"]) == {"mrr": 2 / 3}
    with pytest.raises(ValueError, match="repeated labels in different orders"):
        trm.evaluate(labels, scores.iloc[[2, 0, 1]], ["mrr"])
    new = scores.reset_index(drop=True)
    assert trm.evaluate(labels, new, ["mrr"]) == {"mrr": 2 / 3}


def test_lists_of_series_are_aligned_by_item():
    labels = [of_user.label for _, of_user in ROWS.groupby("user")]
    in_order = ROWS.sort_values("score")
    scores = [of_user.score for _, of_user in in_order.groupby("user")]
    with pytest.warns(trm.RankingWarning, match="by their indexes"):
        assert trm.evaluate(labels, scores, ["mrr"]) == {"mrr": 2 / 3}


def test_lists_may_mix_series_and_arrays():
    """By hand: the item with the label 1 is first, if its label in a dict, too."""
    series = [pd.Series([1, 0, 0], [*"abc"]), pd.Series([1.0, 2.0, 3.0], [*"cba"])]
    mask = pd.Series([False, True, True], [*"cba"])
    arrays = [np.array([0, 1, 0]), np.array([1.0, 3.0, 2.0])]
    for order in (1, -1):
        labels, scores = zip(*[series, arrays][::order])
        masks = [mask, np.array([True] * 3)][::order]
        for y_true in (labels, [*labels], {"labels": [*labels]}):
            with pytest.warns(trm.RankingWarning, match="by their indexes"):
                assert trm.evaluate(y_true, [*scores], ["mrr"]) == {"mrr": 1.0}
        for column in (pd.Series, lambda lists: np.fromiter(lists, object, 2)):
            columns = column(labels), column(scores)
            with pytest.warns(trm.RankingWarning, match="by their indexes"):
                assert trm.evaluate(*columns, ["mrr"]) == {"mrr": 1.0}
            with pytest.warns(trm.RankingWarning, match="by their indexes"):
                assert trm.explain(*columns, "mrr", query=int(order < 0)).value == 1.0
        masked = {"labels": [*labels], "mask": masks}
        with pytest.warns(trm.RankingWarning, match="by their indexes"):
            found = trm.evaluate(masked, [*scores], ["precision@3"], per_query=True)
        assert found["precision@3"].tolist()[::order] == [1 / 2, 1 / 3]


def test_models_with_query_ids_are_paired_by_these():
    frame = pd.DataFrame({"query": USERS, "mrr": [1.0, 0.5, 0.25]})
    other = frame.iloc[::-1].set_index(pd.Index([5, 6, 7]))
    (difference,) = trm.compare({"A": frame, "B": other}).differences
    assert (difference.difference, difference.ties) == (0, 3)
    mixed = {"query": frame["query"], "mrr": frame["mrr"].iloc[::-1]}
    with pytest.warns(trm.RankingWarning, match="by their indexes"):
        (difference,) = trm.compare({"A": frame, "B": mixed}).differences
    assert difference.ties == 3


def test_the_result_is_in_the_order_of_the_first_index():
    new = LABELS.reset_index(drop=True)
    with pytest.warns(trm.RankingWarning, match="sample_weight was put into the order"):
        found = trm.evaluate(
            new, SCORES, ["mrr"], sample_weight=WEIGHTS.iloc[::-1], per_query=True
        )
    assert found["mrr"].tolist() == FOUND["mrr"]
    assert found.weights["mrr"].tolist() == WEIGHTS.tolist()
