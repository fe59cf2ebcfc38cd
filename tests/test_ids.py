"""Ids of any type, in any container, at every entry point that reads ids."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tfrankmetrics as trm

# Three ids of each type; an array of NumPy has types of its own for text and bytes.
TYPES = {
    "integers": [3, 1, 2],
    "large integers": [2**62 + 2, 2**62, 2**62 + 1],
    "text": ["c", "a", "b"],
    "bytes": [b"c", b"a", b"b"],
    "text of NumPy": [*np.array(["c", "a", "b"])],
    "bytes of NumPy": [*np.array([b"c", b"a", b"b"])],
    "dates": [datetime.date(2026, 1, day) for day in (3, 1, 2)],
    "times": [datetime.datetime(2026, 1, day) for day in (3, 1, 2)],
    "tuples": [("x", 2), ("x", 1), ("w", 3)],
}


def as_objects(ids):
    return np.fromiter(ids, object, len(ids))


def of_arrow(ids):
    return pa.array(
        [each.item() if isinstance(each, np.generic) else each for each in ids]
    )


def in_dictionary(ids):
    """As each column of a table is: in chunks."""
    return pa.chunked_array([of_arrow(ids).dictionary_encode()])


CONTAINERS = {
    "list": list,
    "objects": as_objects,
    "NumPy": np.array,
    "pandas": pd.Series,
    "pandas categories": lambda ids: pd.Series(ids).astype("category"),
    "polars": pl.Series,
    "Arrow": of_arrow,
    "Arrow dictionary": in_dictionary,
}
TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
OF_TUPLES = {"list", "objects"}
CASES = [
    (of_type, container)
    for of_type in TYPES
    for container in CONTAINERS
    if of_type != "tuples" or container in OF_TUPLES
]


@pytest.mark.parametrize(("of_type", "container"), CASES)
def test_equal_ids_match(of_type, container):
    ids, relevant = TYPES[of_type], TYPES[of_type][1]
    column, scores = CONTAINERS[container](ids), [0.9, 0.8, 0.7]
    assert trm.evaluate_run({"q": {relevant: 1}}, {"q": column}, ["mrr"]) == {
        "mrr": 1 / 2
    }
    table = {"query_id": ["q"] * 3, "item_id": column, "score": scores}
    library = type(column).__module__.partition(".")[0]
    if make := TABLES.get(library):
        found = trm.evaluate_run({"q": {relevant: 1}}, make(table), ["mrr"])
        assert found == {"mrr": 1 / 2}
    rows = trm.evaluate_rows(column, [1, 1, 1], scores, ["mrr"], per_query=True)
    assert rows["query"].tolist() == ids
    slices = trm.evaluate_rows([0, 1, 2], [1, 1, 1], scores, ["mrr"], by=column)
    assert [*slices] == sorted(ids)
    found = trm.evaluate_retrieval(
        np.eye(3)[1:2], np.eye(3), [[relevant]], ["mrr"], candidate_ids=column
    )
    assert found == {"mrr": 1.0}
    listed = column if container == "list" else np.asarray(column).tolist()
    assert trm.evaluate([[relevant]], [listed], ["mrr"], inputs="ids") == {"mrr": 1 / 2}


@pytest.mark.parametrize("other", ["1", b"1", (1,), datetime.date(2026, 1, 1)])
def test_ids_of_two_types_are_an_error_wherever_the_second_one_is(other):
    message = r"all have the same type, or they never match\. Received: 1.* and "
    for call in (
        lambda: trm.evaluate_run(
            {"a": [1], "b": [1]}, {"a": [1], "b": [1, other]}, ["mrr"]
        ),
        lambda: trm.evaluate_run({1: [1], other: [1]}, {1: [1]}, ["mrr"]),
        lambda: trm.evaluate_rows([1, 1, other], [1, 0, 1], [3, 2, 1], ["mrr"]),
        lambda: trm.evaluate([[1], [1]], [[1], [2, other]], ["mrr"], inputs="ids"),
        lambda: trm.evaluate_retrieval(
            [[1.0]], [[1.0], [0.5]], [[1]], ["mrr"], candidate_ids=[1, other]
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("page", ["1", None])
def test_parts_of_composite_ids_are_checked_as_ids_are(page):
    qrels = pd.DataFrame({"query_id": 1, "file": ["x", "y"], "label": [1, 1]})
    run = qrels.rename(columns={"label": "score"}).assign(page=[1, 2])
    qrels["page"] = as_objects([1, page])
    calls = [
        lambda: trm.evaluate_run(qrels, run, ["mrr"], item=["file", "page"]),
        lambda: trm.evaluate([[("y", page)]], [[("x", 1)]], ["mrr"], inputs="ids"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"same type|must not be missing"):
            call()


def test_lists_of_missing_ids_are_an_error():
    for ids in ([[None]], [[pd.NA]], [[pd.NaT, pd.Timestamp(0)]], [[("x", None)]]):
        with pytest.raises(ValueError, match="must not be missing"):
            trm.evaluate(ids, ids, ["mrr"], inputs="ids")


def test_text_that_arrow_cannot_hold():
    """Half of a surrogate pair, which JSON and Python allow in text."""
    run = pl.DataFrame({"query_id": ["q"], "item_id": ["a"], "score": [1.0]})
    qrels = {"q": {"a": 1, "\ud800": 1}}
    assert trm.evaluate_run(qrels, run, ["recall"]) == {"recall": 1 / 2}


def test_days_of_numpy_are_dates():
    days = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")
    found = trm.evaluate_rows([1, 2], [1, 1], [0.5, 0.5], ["mrr"], by=days)
    assert [*found] == [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]


def test_the_error_says_where_both_ids_are():
    qrels = pd.DataFrame({"query_id": ["a", "b"], "item_id": [1, 2], "label": 1})
    run = pd.DataFrame({"query_id": ["a", "b"], "item_id": [1, "2"], "score": 0.5})
    with pytest.raises(
        ValueError, match="1 in row 0 of `qrels` and '2' in row 1 of `run`"
    ):
        trm.evaluate_run(qrels, run, ["mrr"])


MISSING = [None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]


@pytest.mark.parametrize("missing", MISSING)
def test_a_missing_id_is_an_error(missing):
    ids = ["a", missing, "b"]
    for call in (
        lambda: trm.evaluate_rows(ids, [1, 0, 1], [3, 2, 1], ["mrr"]),
        lambda: trm.evaluate_run({"q": ["a"]}, {"q": ids}, ["mrr"]),
        lambda: trm.evaluate_run({"a": ["a"]}, {"a": ["a"], missing: ["a"]}, ["mrr"]),
        lambda: trm.evaluate_retrieval(
            [[1.0]], [[1.0]] * 3, [["a"]], ["mrr"], candidate_ids=ids
        ),
    ):
        with pytest.raises(
            ValueError, match=r"must not be missing\. Received: a missing one"
        ):
            call()


@pytest.mark.parametrize("make", [pa.array, in_dictionary, pl.Series, pd.Series])
def test_a_missing_slice_is_a_slice_of_its_own(make):
    by = make(["x", "x", "y", None])
    found = trm.evaluate_rows([0, 1, 2, 3], [1] * 4, [1.0] * 4, ["mrr"], by=by)
    assert [*found] == ["x", "y", None]


def test_one_long_id_costs_its_own_length():
    """An array of text takes the length of the longest one for each."""
    ids = [f"passage {number}" for number in range(2000)]
    ids[7] = "x" * 10**6  # an array of 2000 such texts takes 8 GB
    lists = np.reshape(np.fromiter(ids, object), [1000, 2]).tolist()
    assert trm.evaluate(lists, lists, ["mrr"], inputs="ids") == {"mrr": 1.0}
    rows = [*ids, *ids], np.arange(4000) < 2000, np.arange(4000, 0, -1)
    assert trm.evaluate_rows(*rows, ["mrr"], by=rows[0]).whole == {"mrr": 1.0}
    found = trm.evaluate_retrieval(
        np.eye(8),
        np.eye(8),
        [[each] for each in ids[:8]],
        ["mrr"],
        candidate_ids=ids[:8],
    )
    assert found == {"mrr": 1.0}


def test_ids_of_several_columns(tmp_path):
    names = {"item": ["file", "page"]}
    qrels = pd.DataFrame(
        {"query_id": [1, 1], "file": ["f", "g"], "page": 1, "label": [1, 0]}
    )
    run = pd.DataFrame({"query_id": 1, "file": ["f", "g", "f"], "page": [1, 1, 2]})
    run["score"] = [0.3, 0.2, 0.5]
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        tables = (make(table.to_dict("list")) for table in (qrels, run))
        assert trm.evaluate_run(*tables, ["mrr"], **names) == {"mrr": 1 / 2}
    paths = tmp_path / "qrels.csv", tmp_path / "run.csv"
    for table, path in zip((qrels, run), paths):
        table.to_csv(path, index=False)
    assert trm.evaluate_run(*paths, ["mrr"], **names) == {"mrr": 1 / 2}
    with pytest.raises(ValueError, match=r"`item` must name one column.*'pages'"):
        trm.evaluate_run(qrels, run, ["mrr"], item=["file", "pages"])


def test_a_list_of_ids_is_no_masked_array_dict_or_frame():
    masked = np.ma.array([5, 7], mask=[False, True])
    calls = [
        (lambda row: trm.evaluate([row], [[7, 5]], ["mrr"], inputs="ids"), masked),
        (lambda row: trm.evaluate_run({"q": [5]}, {"q": row}, ["mrr"]), masked),
        (lambda row: trm.evaluate([["b"]], [row], ["mrr"], inputs="ids"), {"a": 0.1, "b": 0.9}),
        (lambda row: trm.evaluate([["x"]], [row], ["mrr"], inputs="ids"), pd.DataFrame({"x": [1]})),
    ]  # fmt: skip
    for call, row in calls:
        with pytest.raises(ValueError, match=r"must not be a masked|must be a list"):
            call(row)


def test_nanoseconds_are_ids():
    times = np.array([1, 2], "datetime64[ns]")
    for rows in (times, [*times]):
        found = trm.evaluate(rows, times[:, np.newaxis], ["mrr"], inputs="ids")
        assert found == {"mrr": 1.0}


def test_exclusions_as_the_judgments_of_other_data():
    tables = {"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}
    found = trm.evaluate_run(*tables, ["mrr"], exclude={"q": {"b": 1}})
    assert found == {"mrr": 1.0}
