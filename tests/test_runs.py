"""`evaluate_run`: two tables in, joined by query and item."""

import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from mistake_table import messages_of

import tfrankmetrics as trm

QRELS = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1}, "q3": {"z": 1}}
RUN = {
    "q1": {"b": 9.5, "a": 8.1, "z": 0.3},
    "q3": {"z": 1.0, "y": 2.0},
    "q9": {"a": 1.0},
}
METRICS = ["mrr", "recall@5", "precision@2", "ndcg"]
# q1 is ranked b (0), a (1), z (not judged), and c was missed; q3 is y, z.
NDCG_1 = (1 / math.log2(3)) / (3 + 1 / math.log2(3))
VALUES = {
    "mrr": (1 / 2 + 0 + 1 / 2) / 3,
    "recall@5": (1 / 2 + 0 + 1) / 3,
    "precision@2": (1 / 2 + 0 + 1 / 2) / 3,
    "ndcg": (NDCG_1 + 0 + 1 / math.log2(3)) / 3,
}


def frame(pairs, value):
    rows = [(q, i, v) for q, items in pairs.items() for i, v in items.items()]
    return pd.DataFrame(rows, columns=["query_id", "item_id", value])


def trec(path, pairs, line):
    path.write_text(
        "".join(line.format(q, i, v) for q, of in pairs.items() for i, v in of.items())
    )
    return path


FORMS = {
    "dicts": lambda _: (QRELS, RUN),
    "pandas, ids as objects": lambda _: tuple(
        f.astype({"query_id": object, "item_id": object})
        for f in (frame(QRELS, "label"), frame(RUN, "score"))
    ),
    "pandas, rows in any order": lambda _: (
        frame(QRELS, "label")[::-1],
        frame(RUN, "score").sample(frac=1, random_state=1),
    ),
    "a frame and dicts": lambda _: (frame(QRELS, "label"), RUN),
    "TREC files": lambda folder: (
        trec(folder / "qrels", QRELS, "{} 0 {} {}\n"),
        str(trec(folder / "run", RUN, "{} Q0 {} 7 {} tag\n")),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_give_the_values_computed_by_hand(form, tmp_path):
    result = trm.evaluate_run(*FORMS[form](tmp_path), METRICS)
    assert result == pytest.approx(VALUES)
    assert result.counts == (3, 1, 1, 5, 2, "zero", 0)


def test_ranked_lists_and_sets_of_relevant_items():
    result = trm.evaluate_run(
        {"q": {"a", "c"}}, {"q": ["c", "b", "a"]}, ["map", "recall@2"]
    )
    assert result == {"map": pytest.approx((1 + 2 / 3) / 2), "recall@2": 0.5}


def test_columns_have_any_names():
    names = {"query": "user", "item": "song", "label": "grade", "score": "prediction"}
    columns = {"query_id": "user", "item_id": "song"}
    qrels = frame(QRELS, "grade").rename(columns=columns)
    run = frame(RUN, "prediction").rename(columns=columns)
    assert trm.evaluate_run(qrels, run, METRICS, **names) == pytest.approx(VALUES)


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, pa.table])
def test_numbers_as_ids(convert):
    qrels = {"query_id": [7, 7, 3], "item_id": [1, 2, 1], "label": [0, 1, 1]}
    run = {"query_id": [3, 7, 7], "item_id": [1, 1, 2], "score": [1.0, 2.0, 1.0]}
    values = trm.evaluate_run(convert(qrels), convert(run), ["mrr"], per_query=True)
    assert values["query"].tolist() == [7, 3]
    assert values["mrr"].tolist() == [0.5, 1]


@pytest.mark.parametrize(
    ("policy", "mrr", "says"),
    [
        (
            "zero",
            1 / 3,
            "1 of 3 judged queries has no predictions and is counted as an empty result.",
        ),
        ("skip", 1 / 2, "1 of 3 judged queries has no predictions and is left out."),
    ],
)
def test_judged_queries_without_predictions(policy, mrr, says):
    result = trm.evaluate_run(QRELS, RUN, ["mrr"], missing_queries=policy)
    assert result == {"mrr": pytest.approx(mrr)}
    assert says in repr(result)
    assert "1 query with predictions was not judged and is left out." in repr(result)
    values = trm.evaluate_run(
        QRELS, RUN, ["mrr"], missing_queries=policy, per_query=True
    )
    expected = {"q1": 0.5, "q2": 0.0, "q3": 0.5}
    if policy == "skip":
        del expected["q2"]
    assert dict(zip(values["query"], values["mrr"])) == expected
    assert values.counts.without_predictions == 1


def test_a_run_that_pairs_prints_as_a_dict():
    run = {query: {"a": 1.0, "z": 0.5} for query in QRELS}
    result = trm.evaluate_run(QRELS, run, ["mrr"])
    assert repr(result) == "{'mrr': 0.833333}"
    assert result["mrr"] == pytest.approx(5 / 6, rel=1e-15)


def test_unjudged_items():
    qrels = {"q": {"a": 1, "n": -1, "c": 0}}
    run = {"q": {"n": 3.0, "x": 2.0, "a": 1.0}}
    assert trm.evaluate_run(qrels, run, ["mrr"]) == {"mrr": pytest.approx(1 / 3)}
    condensed = trm.evaluate_run(qrels, run, ["mrr"], unjudged="drop")
    assert condensed == {"mrr": 1.0}
    assert condensed.counts.unjudged == 2


@pytest.mark.parametrize("unjudged", ["irrelevant", "drop"])
def test_queries_with_negative_judgments_only_have_the_value_0(unjudged):
    """As in trec_eval, in which all queries of the judgments are counted."""
    qrels = {"q": {"a": 1, "b": 0}, "r": {"a": -1, "b": -2}}
    run = {"q": {"a": 2.0, "b": 1.0}, "r": {"a": 2.0, "c": 1.0}}
    names = ["bpref", "map", "ndcg"]
    found = trm.evaluate_run(qrels, run, names, unjudged=unjudged)
    assert found == {"bpref": 0.5, "map": 0.5, "ndcg": 0.5}
    options = {"unjudged": unjudged, "empty": "skip"}
    found = trm.evaluate_run(qrels, run, names, **options)
    assert found == {"bpref": 1.0, "map": 1.0, "ndcg": 1.0}
    judged = trm.evaluate_run(qrels, run, ["judged@1"], unjudged=unjudged)
    assert judged == {"judged@1": 0.5}  # the items are not judged because of this
    explained = trm.explain_run(qrels, run, "bpref", "r", unjudged=unjudged)
    assert explained.value == 0.0


WHOLE_LISTS = ["first_relevant_rank", "coverage_error", "arp", "auc", "gauc", "opa"]


def test_an_item_that_is_neither_judged_nor_retrieved_is_in_no_list(tmp_path):
    """c, d, then a and e share the ranks 3 and 4: AUC (0 + 0 + 1/2) / 3."""
    qrels, run = {"q": dict(a=1, e=0, b=-1, c=0)}, {"q": {"c": 1.0, "d": 0.5}}
    expected = dict.fromkeys(["auc", "gauc", "opa"], 1 / 6)
    expected |= dict.fromkeys(["first_relevant_rank", "coverage_error", "arp"], 3.5)
    found = trm.evaluate_run(qrels, run, WHOLE_LISTS)
    assert found == pytest.approx(expected)
    paths = (
        trec(tmp_path / "qrels", qrels, "{} 0 {} {}\n"),
        trec(tmp_path / "run", run, "{} Q0 {} 1 {} t\n"),
    )
    assert trm.evaluate_run(*paths, WHOLE_LISTS) == found
    rows = trm.evaluate_rows(*trm.read_trec(*paths), WHOLE_LISTS)
    assert rows == pytest.approx(expected)
    assert trm.explain_run(qrels, run, "auc", "q").value == pytest.approx(1 / 6)


def test_bpref_ignores_items_that_were_not_judged():
    qrels, run = {"q": {"a": 1, "n": 0}}, {"q": ["x", "y", "a", "n"]}
    result = trm.evaluate_run(qrels, run, ["mrr", "bpref"])
    assert result == {"mrr": pytest.approx(1 / 3), "bpref": 1.0}


def test_weights_of_queries():
    weights = {"q1": 1, "q2": 2, "q3": 5}
    result = trm.evaluate_run(QRELS, RUN, ["mrr"], sample_weight=weights)
    assert result == {"mrr": pytest.approx((0.5 + 0 + 5 * 0.5) / 8)}
    qrels = frame(QRELS, "label").assign(w=lambda f: f.query_id.map(weights))
    assert trm.evaluate_run(qrels, RUN, ["mrr"], sample_weight="w") == result


BY = {"q1": "de", "q2": "en", "q3": "de"}
IN_A_COLUMN = frame(QRELS, "label").assign(slice=lambda f: f.query_id.map(BY))
AS_A_FRAME = pd.DataFrame({"query_id": [*BY], "slice": [*BY.values()]})


@pytest.mark.parametrize(
    ("qrels", "by"),
    [(QRELS, BY), (IN_A_COLUMN, "slice"), (QRELS, AS_A_FRAME)],
    ids=["dict", "column", "frame"],
)
def test_slices(qrels, by):
    result = trm.evaluate_run(qrels, RUN, ["mrr"], by=by)
    assert dict(result) == {"de": {"mrr": 0.5}, "en": {"mrr": 0.0}}
    assert result.num_queries == {"de": 2, "en": 1}
    assert result.whole == {"mrr": pytest.approx(1 / 3)}
    assert "1 of 3 judged queries has no predictions" in repr(result)
    skipped = trm.evaluate_run(qrels, RUN, ["mrr"], by=by, missing_queries="skip")
    assert dict(skipped) == {"de": {"mrr": 0.5}}


def test_trec_eval_breaks_ties_and_rounds_scores_as_in_read_trec(tmp_path):
    rng = np.random.default_rng(1)
    names = np.array([f"d{i}" for i in range(30)] + ["ä", "Z"])
    qrels, run = (
        {
            f"q{q}": {str(d): draw() for d in rng.permutation(names)[:n]}
            for q in range(20)
        }
        for n, draw in (
            (10, lambda: int(rng.integers(0, 3))),
            (25, lambda: rng.integers(0, 4) + rng.normal() * 1e-9),
        )
    )
    paths = (
        trec(tmp_path / "qrels", qrels, "{} 0 {} {}\n"),
        trec(tmp_path / "run", run, "{} Q0 {} 1 {} t\n"),
    )
    metrics = ["map", "ndcg@5", "recip_rank"]
    expected = trm.evaluate_rows(
        *trm.read_trec(*paths), metrics, convention="trec_eval"
    )
    for both in (paths, (qrels, run), (frame(qrels, "label"), frame(run, "score"))):
        assert trm.evaluate_run(*both, metrics, convention="trec_eval") == expected


def test_ids_of_other_dtypes_do_not_collide():
    qrels = pd.DataFrame(
        {"query_id": np.array([2**60], "uint64"), "item_id": 1, "label": 1}
    )
    run = pd.DataFrame(
        {"query_id": [2**60 + 9, 2**60], "item_id": 1, "score": [1.0, 2.0]}
    )
    result = trm.evaluate_run(qrels, run, ["mrr"])
    assert result == {"mrr": 1.0}
    assert result.counts[:3] == (1, 0, 1)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "uint64"])
def test_scores_of_any_dtype_are_compared_without_a_warning(dtype):
    qrels = frame({"q": {"a": 1, "b": 0}}, "label")
    run = frame({"q": {"a": 1.0, "b": 2.0}}, "score").astype({"score": dtype})
    scores = [*map(np.dtype(dtype).type, (1, 2))]
    as_dict = {"q": dict(zip("ab", scores, strict=True))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (run, as_dict):
            assert trm.evaluate_run(qrels, given, ["mrr"]) == {"mrr": 0.5}


def test_the_lowest_integers_are_exact():
    scores = {"a": -(2**63), "b": -(2**63) + 1}
    run = {"q1": scores, "q2": {"a": 0.5, "b": 0.25}}
    qrels = {"q1": {"b": 1}, "q2": {"a": 1}}
    result = trm.evaluate_run(qrels, run, ["mrr", "tied@2"])
    assert result == {"mrr": 1.0, "tied@2": 0.0}


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "uint32", "uint64"])
def test_labels_without_a_sign(dtype):
    labels = {"q": {"a": np.array(1, dtype)[()]}}
    for qrels in (labels, frame(labels, "label").astype({"label": dtype})):
        result = trm.evaluate_run(qrels, {"q": ["x", "a"]}, ["mrr", "precision@1"])
        assert result == {"mrr": 0.5, "precision@1": 0.0}


def test_missing_slices():
    by = {"q1": 1.0, "q2": np.nan, "q3": pd.NA, "q4": None}
    qrels = {query: {"a": 1} for query in by}
    run = {query: ["a"] for query in by}
    as_frame = pd.DataFrame({"query_id": [*by], "grade": [1.0, np.nan, np.nan, None]})
    for given in (by, as_frame, pl.from_pandas(as_frame)):
        result = trm.evaluate_run(qrels, run, ["mrr"], by=given)
        assert result.num_queries == {1.0: 1, None: 3}


def test_dates_as_slices():
    day = pd.Timestamp("2026-01-02 03:04")
    qrels = frame(QRELS, "label").assign(day=day)
    assert [*trm.evaluate_run(qrels, RUN, ["mrr"], by="day")] == [day.to_pydatetime()]


ERRORS = {
    "no query in common": (
        (QRELS, {"x": {"a": 1.0}}, {}),
        "queries in common. Received: 'q1', 'q2', 'q3' in `qrels`, and 'x' in `run`",
    ),
    "types of ids": (({1: {"a": 1}}, RUN, {}), "same type, or they never match. Received: 1 in `qrels` and 'q1' in `run`. Convert"),
    "types of ids in pandas": (
        (frame({1: {"a": 1}}, "label"), frame(RUN, "score"), {}),
        "Received: 1 in row 0 of `qrels` and 'q1' in row 0 of `run`. Convert them.",
    ),
    "a pair twice": (
        (pd.concat([frame(QRELS, "label")] * 2), RUN, {}),
        "in `qrels` only once. Received: the query 'q1' with the item 'a' twice, the second time in row 5",
    ),
    "a prediction twice": (
        (QRELS, {"q1": ["a", "b", "a"]}, {}),
        "in `run` only once. Received: the query 'q1' with the item 'a' twice.",
    ),
    "no id": ((QRELS, {"q1": {None: 1.0}}, {}), "ids of items must not be missing. Received: a missing one in `run`"),
    "no id in pandas": (
        (frame(QRELS, "label").assign(query_id=None), frame(RUN, "score"), {}),
        "ids of queries must not be missing. Received: a missing one in row 0 of `qrels`",
    ),
    "label NaN": (({"q1": {"a": 1, "b": float("nan")}}, RUN, {}), "Received: nan for the query 'q1'"),
    "no column": (
        (frame(QRELS, "labels"), RUN, {}),
        "'label', for the columns 'query_id', 'item_id', 'labels'. Did you mean 'labels'?",
    ),
    "missing": ((QRELS, RUN, {"missing_queries": "error"}), "must have predictions. Received: none for the query 'q2'"),
    "unjudged": ((QRELS, RUN, {"unjudged_queries": "error"}), "must have judgments. Received: none for the query 'q9'"),
    "policy": (
        (QRELS, RUN, {"missing_queries": "drop"}),
        "one of 'zero', 'skip', 'error'. Received: missing_queries='drop'",
    ),
    "a list": ((QRELS, [1], {}), "or the path of a file. Received: [1]"),
    "an item for a query": (
        (QRELS, {"q1": np.array("abc")}, {}),
        "for each query. Received: array('abc', dtype='<U3') for the query 'q1'",
    ),
    "no list": ((QRELS, {"q1": None}, {}), "Leave out a query without any."),
    "an item to exclude": (
        (QRELS, RUN, {"exclude": {"q1": np.array("abc")}}),
        "a list of items for each query. Received: array('abc', dtype='<U3')",
    ),
    "label None": (({"q1": {"a": 1, "b": None}}, RUN, {}), "finite numbers, and integers below 2^53. Received: nan for the query 'q1'"),
    "a number for a query": ((QRELS, {"q1": 3}, {}), "for each query. Received: 3 for the query 'q1'"),
    "no weight": ((QRELS, RUN, {"sample_weight": {"q1": 1}}), "none for the query 'q2', and 1 more"),
    "no slice": ((QRELS, RUN, {"by": "language"}), "name a column of the frame `qrels`. Received: 'language'"),
    "signed labels": (
        ({"q1": {"a": 1, "b": -1}}, {"q1": ["b", "a"]}, {"unjudged": "drop"}),
        "must not be only -1 and 1",
    ),
    "whole lists": ((QRELS, RUN, {"metrics": ["arp"]}), "'arp' has no value for a query without results"),
    "weights below 0": (
        (QRELS, RUN, {"sample_weight": {"q1": 1, "q2": -2, "q3": 1}}),
        "Received: -2 for the query 'q2'",
    ),
    "huge label": (({"q1": {"a": 2**60}}, RUN, {}), f"Received: {2**60} for the query 'q1'"),
    "huge label and a float": (
        ({"q1": {"a": 2**60 + 1, "b": 0.5}}, RUN, {}),
        f"must not mix integers that float64 rounds with other numbers. Received: {2**60 + 1}, which became",
    ),
    "a set as a list": ((QRELS, {"q1": {"a", "b"}}, {}), "Received: a set for the query 'q1'"),
    "no item": (({**QRELS, "q4": {}}, RUN, {}), "Received: none for the query 'q4'"),
    "empty run": ((QRELS, {}, {}), "and none in `run`"),
    "two slices": (
        (QRELS, RUN, {"by": pd.DataFrame({"query_id": ["q1", "q1"], "s": ["x", "y"]})}),
        "Received: 's' with the value 'x' in row 0, and 'y' in row 1 of the same query",
    ),
    "no slices": ((QRELS, RUN, {"by": pd.DataFrame({"query_id": ["q1"]})}), "Received: only 'query_id'"),
    "slices named query": (
        (frame(QRELS, "label").assign(query=1), RUN, {"by": "query", "per_query": True}),
        "Rename their column",
    ),
    "index": (
        (frame(QRELS, "label").set_index("query_id"), RUN, {}),
        "query='query_id', for the columns 'item_id', 'label'. It is in the index",
    ),
    "no column of slices": ((QRELS, RUN, {"by": []}), "`by` must be a dict"),
    "text among the scores": (
        (QRELS, RUN | {"q2": {"a": "x"}}, {}),
        "`run` must hold numbers. Received: 'x' for the query 'q2'",
    ),
    "a missing id before text": (
        (frame(QRELS, "label").assign(query_id=[np.nan, *"abcd"]), RUN, {}),
        "ids of queries must not be missing. Received: a missing one in row 0 of `qrels`",
    ),
    "slices differ": (
        (frame(QRELS, "label").assign(s=[*"abcde"]), RUN, {"by": "s"}),
        "'s' with the value 'a' in row 0, and 'b' in row 1 of the same query",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_rule_and_what_was_received(case):
    (qrels, run, arguments), message = ERRORS[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        trm.evaluate_run(qrels, run, **{"metrics": ["mrr"]} | arguments)


def test_item_ids_that_never_match_are_a_warning():
    with pytest.warns(trm.RankingWarning, match="without a judged item"):
        assert trm.evaluate_run(QRELS, {"q1": {"A": 1.0}}, ["mrr"]) == {"mrr": 0.0}


def test_an_item_with_the_score_of_minus_infinity_is_missed_by_every_convention():
    qrels, run = {"q": {"a": 1, "b": 1}}, {"q": {"a": 1.0, "b": -np.inf}}
    for convention in (None, "trec_eval"):
        found = trm.evaluate_run(qrels, run, ["map"], convention=convention)
        assert found == {"map": 1 / 2}


def test_trec_eval_rounds_large_integers():
    """It reads scores in the precision of float32, where these are tied."""
    run = {"q": {"a": 2**60 + 1, "b": 2**60}}
    options = {"convention": "trec_eval", "missing_queries": "skip"}
    qrels = {"q": {"a": 1}, "q2": {"b": 1}}
    run |= {"q2": {"c": 0.5, "b": 0.25}}
    exact = trm.MeanReciprocalRank(name="exact")
    assert trm.evaluate_run(qrels, run, ["mrr", exact], **options) == {
        "mrr": (1 / 2 + 1 / 2) / 2,
        "exact": (1 + 1 / 2) / 2,
    }


# By trec_eval, z is first in q, and b in r, where float32 ties a with it.
TIED_QRELS = {"q": {"a": 0, "z": 1}, "r": {"a": 1, "b": 0}}
TIED_RUN = {"q": {"a": 1.0, "z": 1.0}, "r": {"a": 1 + 1e-9, "b": 1.0}}
OF_TREC_EVAL = [1.0, 1 / 2]


@pytest.mark.parametrize(
    ("names", "options"),
    [([], {}), (["mrr"], {}), (["mrr"], {"convention": "trec_eval"})],
)
def test_an_object_with_a_convention_has_the_value_of_its_name(names, options):
    trec = trm.MeanReciprocalRank(convention="trec_eval", name="trec")
    best = trm.MeanReciprocalRank(convention="trec_eval", ties="best", name="best")
    stable = trm.MeanReciprocalRank(ties="stable", name="stable")
    for each in (trec, pickle.loads(pickle.dumps(trec))):
        metrics = [stable, each, best, *names]
        values = trm.evaluate_run(
            TIED_QRELS, TIED_RUN, metrics, per_query=True, **options
        )
        assert values["trec"].tolist() == OF_TREC_EVAL
        assert values["best"].tolist() == [1.0, 1.0]  # of the scores in float32
        assert values["stable"].tolist() == [1 / 2, 1.0]
        if names:
            of_name = OF_TREC_EVAL if options else [3 / 4, 1.0]
            assert values["mrr"].tolist() == of_name


def test_weights_slices_and_exclusions_beside_an_object_of_trec_eval():
    trec = trm.MeanReciprocalRank(convention="trec_eval", name="trec")
    given = TIED_QRELS, TIED_RUN, ["mrr", trec]
    weights = {"q": 3, "r": 1}
    values = trm.evaluate_run(*given, sample_weight=weights, by={"q": "x", "r": "y"})
    assert dict(values) == {
        "x": {"mrr": 3 / 4, "trec": 1.0},
        "y": {"mrr": 1.0, "trec": 1 / 2},
    }
    assert values.whole == {"mrr": 13 / 16, "trec": 7 / 8}
    values = trm.evaluate_run(*given, exclude={"r": ["b"]}, per_query=True)
    assert values["trec"].tolist() == [1.0, 1.0]
    values = trm.evaluate_run(*given, lower_is_better=True, per_query=True)
    assert values["mrr"].tolist() == [3 / 4, 1 / 2]
    assert values["trec"].tolist() == [1.0, 1 / 2]


def test_tables_of_one_row():
    judged = pd.DataFrame({"query_id": ["q"], "item_id": ["a"], "label": [1]})
    found = pd.DataFrame({"query_id": ["q"], "item_id": ["a"], "score": [0.5]})
    assert trm.evaluate_run(judged, found, ["mrr"]) == {"mrr": 1.0}
    with pytest.raises(
        ValueError, match="'a' in row 0 of `qrels` and 1 in row 0 of `run`"
    ):
        trm.evaluate_run(judged, found.assign(item_id=[1]), ["mrr"])


def test_the_note_has_the_number_of_scores_that_are_nan():
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"a": 1}}
    run = {"q1": {"a": np.nan, "b": 0.5}, "q2": {"a": np.nan}, "q3": {"a": np.nan}}
    values = trm.evaluate_run(qrels, run, ["mrr"])
    assert values == {"mrr": (1 / 2 + 1) / 2}
    assert values.counts.nan_scores == 2
    assert "2 of 3 scores are NaN, which ranks below every number." in repr(values)


def runs_of_models():
    rng = np.random.default_rng(0)
    pairs = [(query, item) for query in "abcde" for item in range(6)]
    qrels = pd.DataFrame(pairs, columns=["query_id", "item_id"])
    run = pd.concat([qrels.assign(model=name) for name in ("new", "old")])
    qrels["label"] = rng.integers(0, 2, len(qrels))
    run["score"] = rng.random(len(run))
    return qrels, run.sample(frac=1, random_state=0)


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_of_several_models_gives_a_result_for_each(convert):
    qrels, run = runs_of_models()
    table, metrics = convert(run.to_dict("list")), ["mrr", "ndcg@3"]
    found = trm.evaluate_run(qrels, table, metrics, model="model")
    for name in ("new", "old"):
        rows = run[run["model"] == name]
        assert found[name] == trm.evaluate_run(qrels, rows, metrics)
    values = trm.evaluate_run(qrels, table, ["mrr"], model="model", per_query=True)
    assert {each.model for each in trm.compare(values).means} == {"new", "old"}


def test_models_must_be_a_column_without_missing_values():
    qrels, run = runs_of_models()
    some = run.assign(model=run["model"].where(run["model"] == "new"))
    for rows, model, message in (
        (run, None, r"only once.*name their column: model="),
        (run, "modell", "`model` must name one column"),
        ({"a": [1]}, "model", "names a column of the frame `run`"),
        (
            some,
            "model",
            r"models must not be missing\. Received: a missing one in row \d+ of `run`",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            trm.evaluate_run(qrels, rows, ["mrr"], model=model)


def test_excluded_predictions_leave_the_run():
    """As `ignore_identical_ids` of BEIR: a query's own document is no result."""
    qrels = {"a": {"x": 1, "a": 1}, "b": {"y": 1}}
    run = {"a": {"a": 0.9, "z": 0.5, "x": 0.2}, "b": {"z": 0.9, "y": 0.5}}
    names = ["mrr", "recall"]
    for exclude in ("identical_ids", {"a": ["a"], "c": ["z"]}):
        found = trm.evaluate_run(qrels, run, names, exclude=exclude, per_query=True)
        assert found["mrr"].tolist() == [1 / 2, 1 / 2]
        assert found["recall"].tolist() == [1 / 2, 1]  # "a" is treated as missed
        working = trm.explain_run(qrels, run, "mrr", "a", exclude=exclude)
        assert working.value == 1 / 2
    tables = frame(qrels, "label"), frame(run, "score")
    for make in (pd.DataFrame, pl.DataFrame, pa.Table.from_pandas):
        others = trm.evaluate_run(*map(make, tables), names, exclude="identical_ids")
        assert others == {"mrr": 1 / 2, "recall": 3 / 4}


@pytest.mark.parametrize(
    ("number", "warns"), [(1, False), (2, True), (15, True), (30, True)]
)
def test_relevant_items_that_are_excluded_are_a_warning(number, warns):
    """Of a twentieth and more, as in catalogs; the ids are not blamed."""
    qrels = {query: {"a": 1, "b": 0} for query in range(30)}
    run = {query: {"a": 0.9, "c": 0.5} for query in range(30)}
    exclude = {query: ["a", "z"] for query in range(number)}
    for make in (dict, lambda tables: frame(tables, "score")):
        found = messages_of(
            lambda: trm.evaluate_run(qrels, make(run), ["mrr"], exclude=exclude)  # noqa: B023
        )
        texts = [f"{number} of 30 relevant items are excluded"] * warns
        assert len(found) == len(texts)
        assert all(text in each for text, each in zip(texts, found))


def test_lists_of_arrow_are_lists_of_ids():
    qrels, run = {"q": ["a", "b"]}, {"q": ["c", "b"]}
    for make in (pa.array, lambda items: pa.array([items])[0]):
        for arguments in (
            (qrels, {"q": make(run["q"])}),
            ({"q": make(qrels["q"])}, run),
        ):
            assert trm.evaluate_run(*arguments, ["mrr"]) == {"mrr": 1 / 2}
        found = trm.evaluate_run(qrels, run, ["mrr"], exclude={"q": make(["c"])})
        assert found == {"mrr": 1.0}


def test_grades_without_irrelevant_items_may_have_a_few_unjudged_ones():
    stars = {q: {i: 1 + (q + i) % 5 for i in range(8)} for q in range(10)}
    run = {q: {i: 0.1 * i for i in range(9 if q == 0 else 8)} for q in range(10)}
    with pytest.warns(trm.RankingWarning, match="so each item is relevant"):
        trm.evaluate_run(stars, run, ["mrr"])
    others = {q: {i: 0.1 * i for i in range(9)} for q in range(10)}
    assert messages_of(lambda: trm.evaluate_run(stars, others, ["mrr"])) == []


def test_exclude_names_items_of_the_run():
    tables = {1: {2: 1}}, {1: {2: 0.9}}
    with pytest.warns(trm.RankingWarning, match="none of which is in the run"):
        trm.evaluate_run(*tables, ["mrr"], exclude={1: [3]})
    for nothing in ({}, {1: []}):
        assert trm.evaluate_run(*tables, ["mrr"], exclude=nothing) == {"mrr": 1.0}
    of_items = r"a list of items for each query\. Received: '2'"
    of_all = "dict from queries to lists of items"
    of_type = (
        "same type, or they never match. Received: 1 in `qrels` and '1' in `exclude`"
    )
    for wrong, rule in (
        ("identical", of_all),
        ([2], of_all),
        ({1: "2"}, of_items),
        ({"1": [2]}, of_type),
    ):
        with pytest.raises(ValueError, match=rule):
            trm.evaluate_run(*tables, ["mrr"], exclude=wrong)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
def test_scores_of_which_the_lowest_is_the_best(dtype):
    ranks = np.array([[2, 1, 3], [1, 3, 2]], dtype)
    labels = np.array([[0, 1, 0], [0, 0, 1]])
    lists = {"lower_is_better": True, "per_query": True}
    expected = [1.0, 1 / 2]
    assert trm.evaluate(labels, ranks, ["mrr"], **lists)["mrr"].tolist() == expected
    queries = np.repeat([0, 1], 3)
    rows = queries, labels.ravel(), ranks.ravel()
    assert trm.evaluate_rows(*rows, ["mrr"], **lists)["mrr"].tolist() == expected
    qrels, run = (
        {q: dict(zip("abc", values.tolist())) for q, values in enumerate(table)}
        for table in (labels, ranks)
    )
    assert trm.evaluate_run(qrels, run, ["mrr"], **lists)["mrr"].tolist() == expected
    assert trm.explain(labels, ranks, "mrr", 1, lower_is_better=True).value == 1 / 2
    assert trm.explain_rows(*rows, "mrr", 1, lower_is_better=True).value == 1 / 2
    assert trm.explain_run(qrels, run, "mrr", 1, lower_is_better=True).value == 1 / 2


def test_an_infinite_distance_means_not_retrieved():
    labels, distances = [[1, 0, 1]], [[math.inf, 0.5, 2.0]]
    lists = {"lower_is_better": True}
    assert trm.evaluate(labels, distances, ["recall", "mrr"], **lists) == {
        "recall": 1 / 2,
        "mrr": 1 / 2,
    }
    catalog = trm.evaluate([[2]], distances, ["mrr"], inputs="catalog", **lists)
    assert catalog == {"mrr": 1 / 2}
    with pytest.raises(ValueError, match="lower_is_better=True requires scores"):
        trm.evaluate([[1]], [[1, 2]], ["mrr"], inputs="ids", **lists)
