"""What people hold in their hands: the columns, tables and lists of other libraries."""

import json

import ml_dtypes  # noqa: F401  # whose dtypes NumPy then knows by name
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import tfrankmetrics as trm

FRAME = pd.DataFrame(
    {
        "query": [0, 0, 0, 1, 1, 1],
        "label": [0, 1, 0, 1, 0, 0],
        "score": [0.9, 0.8, 0.1, 0.3, 0.2, 0.1],
        "level": ["low"] * 3 + ["high"] * 3,
    }
)
VALUE = {"mrr": 3 / 4}  # 1/2 and 1
NAMES = ("query", "label", "score", ["mrr"])


def test_predictions_of_a_model_are_a_column():
    labels, queries = FRAME["label"], FRAME["query"]
    scores = FRAME[["score"]].to_numpy()  # [rows, 1]
    assert trm.evaluate_rows(queries, labels, scores, ["mrr"]) == VALUE


def test_a_lazy_frame_is_computed():
    lazy = pl.from_pandas(FRAME).lazy()
    assert trm.evaluate_rows(*NAMES, data=lazy) == VALUE
    assert trm.explain_rows(*NAMES[:3], "mrr", 0, data=lazy).value == 1 / 2
    slices = trm.evaluate_rows(*NAMES, data=lazy, by="level")
    assert slices["low"] == {"mrr": 1 / 2}
    with pytest.raises(
        ValueError, match=r"one column.*'query'\. Pass the names of columns"
    ):
        trm.evaluate_rows(lazy.select("query"), [1] * 6, [1.0] * 6, ["mrr"])
    qrels = lazy.select(query_id="query", item_id="score", label="label")
    run = lazy.select(query_id="query", item_id="score", score="score")
    assert trm.evaluate_run(qrels, run, ["mrr"]) == VALUE
    assert trm.explain_run(qrels, run, "mrr", 0).value == 1 / 2
    assert trm.evaluate_run(qrels, run, ["mrr"], exclude=run.limit(1)) == {"mrr": 1.0}


QRELS = pd.Series([["a", "b"], ["c"]], index=["x", "y"])
RUN = pd.Series([["z", "a"], ["c"]], index=["x", "y"])


def test_series_of_lists_have_an_entry_for_each_query():
    grouped = pd.DataFrame({"user": [*"xxy"], "item": [*"abc"]}).groupby("user")
    for qrels in (QRELS, grouped["item"].agg(list)):
        assert trm.evaluate_run(qrels, RUN, ["mrr"]) == VALUE
    weights, slices = (
        pd.Series(each, index=["y", "x"]) for each in ([3, 1], ["e", "f"])
    )
    assert trm.evaluate_run(QRELS, RUN, ["mrr"], sample_weight=weights) == {
        "mrr": 7 / 8
    }
    found = trm.evaluate_run(QRELS, RUN, ["mrr"], by=slices)
    assert found["f"] == {"mrr": 1 / 2}
    others = QRELS.iloc[:1].map(lambda _: ["z"])
    assert trm.evaluate_run(QRELS, RUN, ["mrr"], exclude=others) == {"mrr": 1.0}
    with pytest.raises(
        ValueError, match=r"one entry for each query\. Received: the index 'x'"
    ):
        trm.evaluate_run(pd.concat([QRELS, QRELS]), RUN, ["mrr"])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_frames_of_exclusions_slices_and_popularity(make):
    exclude = make({"query_id": ["x"], "item_id": ["z"]})
    assert trm.evaluate_run(QRELS, RUN, ["mrr"], exclude=exclude) == {"mrr": 1.0}
    slices = make({"query_id": ["x", "y"], "level": ["low", "high"]})
    assert trm.evaluate_run(QRELS, RUN, ["mrr"], by=slices)["low"] == {"mrr": 1 / 2}
    popularity = make({"item": ["a", "b"], "clicks": [1.0, 3.0]})
    options = {"inputs": "ids", "popularity": popularity}
    found = trm.evaluate([["a"]], [["a", "b"]], ["mean_popularity"], **options)
    assert found == {"mean_popularity": 2.0}


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrices(kind):
    dense, scores = np.array([[0, 1, 0], [2, 0, 0]]), [[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]]
    labels = scipy.sparse.csr_matrix(dense).asformat(kind)
    for metric in ("mrr", "ndcg"):
        expected = trm.evaluate(dense, scores, [metric])
        assert trm.evaluate(labels, scores, [metric]) == expected
        assert trm.evaluate(labels, scores, [metric], inputs="catalog") == expected
        lists = labels, [[0, 1, 2], [0, 1, 2]]
        assert trm.evaluate(*lists, [metric], inputs="ids") == expected
        assert trm.evaluate_retrieval(scores, np.eye(3), labels, [metric]) == expected
    first = scipy.sparse.csr_matrix([[True, False, False], [False] * 3]).asformat(kind)
    found = trm.evaluate_retrieval(scores, np.eye(3), labels, ["mrr"], exclude=first)
    assert found == {"mrr": 1.0}


def test_sparse_matrices_in_a_dict():
    excluded = scipy.sparse.csr_matrix([[0, 0, 0, 2]])
    scores = [[1.0, 0.5, 0.3, 0.2]]
    for exclude, value in (([[3]], 1 / 2), (excluded, 1 / 2), ([[0]], 1.0)):
        relevant = {"ids": [1], "exclude": exclude}
        found = trm.evaluate(relevant, scores, ["mrr"], inputs="catalog")
        assert found == {"mrr": value}
    ids = {"ids": scipy.sparse.csr_matrix([[0, 0, 1]])}
    assert trm.evaluate(ids, [[2, 0]], ["mrr"], inputs="ids") == {"mrr": 1.0}


def test_sparse_matrices_with_zeros_and_repeated_entries_equal_dense_ones():
    stored = np.array([1.0, 1.0, 2.0, 0.0]), np.array([2, 2, 0, 1]), np.array([0, 4])
    labels = scipy.sparse.csr_matrix(stored, shape=(1, 4))  # [[2, 0, 2, 0]]
    found = trm.evaluate(labels, [[2, 1, 0, 3]], ["ndcg"], inputs="ids")
    expected = trm.evaluate(labels.toarray(), [[2, 3, 4, 1]], ["ndcg"])
    assert found == expected
    assert labels.nnz == 4  # the argument is unchanged
    zero = scipy.sparse.csr_matrix(([0.0], [0], [0, 1]), shape=(1, 2))
    vectors = [[1.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]]
    found = trm.evaluate_retrieval(*vectors, [1], ["mrr"], exclude=zero)
    assert found == {"mrr": 1 / 2}
    none = scipy.sparse.csr_matrix((0, 4))
    values = trm.evaluate(
        none, np.zeros((0, 2), int), ["mrr"], inputs="ids", per_query=True
    )
    assert len(values["mrr"]) == 0


def test_a_sparse_matrix_of_ids_is_not_made_dense():
    size = 10**6  # [size, size] numbers are 8 TB
    labels = scipy.sparse.eye(size, format="csr")[:2000]
    found = trm.evaluate(labels, np.arange(2000)[:, np.newaxis], ["mrr"], inputs="ids")
    assert found == {"mrr": 1.0}


def test_grades_as_a_dict_for_each_query():
    grades = [{"A": 3, "B": 1}, {"C": 2}]
    ids = {"ids": [["A", "B"], ["C"]], "relevance": [[3, 1], [2]]}
    lists = [["B", "A"], ["D", "C"]]
    expected = trm.evaluate(ids, lists, ["ndcg"], inputs="ids")
    for kind in (list, tuple, pd.Series):
        assert trm.evaluate(kind(grades), lists, ["ndcg"], inputs="ids") == expected
    for wrong in (None, ["C"]):
        with pytest.raises(ValueError, match=r"those of each query must be.*query 1"):
            trm.evaluate([grades[0], wrong], lists, ["ndcg"], inputs="ids")


@pytest.mark.parametrize(
    "make",
    [
        lambda values, order: pd.Series(pd.Categorical(values, order, ordered=True)),
        lambda values, order: pl.Series(values, dtype=pl.Enum(order)),
    ],
)
def test_slices_are_in_the_order_of_their_categories(make):
    order = ["low", "middle", "high"]
    levels, kinds = FRAME["level"].tolist(), [*"babbab"]
    by = make(levels, order)
    assert [*trm.evaluate_rows(*NAMES, data=FRAME, by=by)] == ["low", "high"]
    labels, scores = [[1, 0], [0, 1]], [[2, 1], [2, 1]]
    by = make(["high", "low"], order)
    assert [*trm.evaluate(labels, scores, ["mrr"], by=by)] == ["low", "high"]
    pairs = trm.evaluate(labels, scores, ["mrr"], by={"level": by, "kind": kinds[:2]})
    assert [*pairs] == [("low", "a"), ("high", "b")]
    run = {"q": {"a": 1.0}, "r": {"a": 1.0}}
    frame = type(FRAME if isinstance(by, pd.Series) else pl.DataFrame())
    frame = frame({"query_id": ["q", "r"], "level": by})
    assert [*trm.evaluate_run(run, run, ["mrr"], by=frame)] == ["low", "high"]
    if isinstance(by, pd.Series):
        by.index = ["q", "r"]
        assert [*trm.evaluate_run(run, run, ["mrr"], by=by)] == ["low", "high"]


def test_slices_of_a_lazy_frame():
    by = pl.LazyFrame({"level": ["low", "high"]})
    rows = trm.evaluate_rows([1, 2], [1, 1], [0.5, 0.5], ["mrr"], by=by)
    lists = trm.evaluate([[1, 0], [1, 0]], [[2, 1], [2, 1]], ["mrr"], by=by)
    assert [*rows] == [*lists] == ["high", "low"]


def test_files_of_json_parquet_and_three_columns(tmp_path):
    qrels = {"1": {"10": 1, "20": 1}, "2": {"20": 1}}
    run = {"1": {"30": 0.9, "20": 0.8}, "2": {"20": 0.5}}
    names = ["query_id", "item_id", "label"]
    pairs = [(q, d, label) for q, of_q in qrels.items() for d, label in of_q.items()]
    table = pd.DataFrame(pairs, columns=names)
    for name, of_query in table.groupby("query_id"):
        # In pandas, a column of integers with a missing one is float.
        floats = of_query.astype({"query_id": float, "item_id": float})
        (tmp_path / "folder").mkdir(exist_ok=True)
        floats.to_parquet(tmp_path / "folder" / f"{name}.parquet")
    files = {
        "qrels.json": json.dumps(qrels),
        "run.json": json.dumps(run),
        "beir.tsv": "query-id\tcorpus-id\tscore\n1\t10\t1\n1\t20\t1\n2\t20\t1\n",
        "ranks.tsv": "1\t20\t2\n1\t30\t1\n2\t20\t1\n",
        "ranks.txt": "1 30 1\n1 20 2\n2 20 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    for judgments in ("qrels.json", "beir.tsv", "folder"):
        for ranking in ("run.json", "ranks.tsv", "ranks.txt"):
            paths = tmp_path / judgments, tmp_path / ranking
            assert trm.evaluate_run(*paths, ["mrr"]) == VALUE


@pytest.mark.parametrize(
    "ranks", [["0", "1"], ["1", "3"], ["1", "1"], ["0.9", "0.5"], ["2", "3"]]
)
def test_a_run_of_three_columns_has_all_ranks(tmp_path, ranks):
    path = tmp_path / "run"
    path.write_text("".join(f"q {item} {rank}\n" for item, rank in zip("ab", ranks)))
    with pytest.raises(
        ValueError, match=r"whole numbers from 1 on.*query 'q'.*six columns"
    ):
        trm.evaluate_run({"q": ["a"]}, path, ["mrr"])


def test_empty_columns_of_objects():
    empty = pd.DataFrame(columns=["query", "label", "score"])
    assert np.isnan(trm.evaluate_rows(*NAMES, data=empty)["mrr"])


def test_scalars_of_array_libraries_in_a_dict():
    run = {"q": {"a": pa.scalar(0.1), "b": np.array(0.2)}}
    assert trm.evaluate_run({"q": ["a"]}, run, ["mrr"]) == {"mrr": 1 / 2}
    for wrong in (np.array([0.1]), pa.scalar("1")):
        with pytest.raises(ValueError, match=r"`run` must hold numbers.*query 'q'"):
            trm.evaluate_run({"q": ["a"]}, {"q": {"a": wrong, "b": 0.5}}, ["mrr"])


def test_numbers_of_few_and_of_many_bits():
    for dtype in ("int4", "bfloat16", "float8_e4m3fn"):
        labels = np.array([1, 0]).astype(dtype)
        assert trm.evaluate_rows([1, 1], labels, [1, 2], ["mrr"]) == {"mrr": 1 / 2}
    with pytest.raises(ValueError, match="at most 64 bits"):
        trm.evaluate_rows([1, 1], [1, 0], [10**400, 2], ["mrr"])
