"""`by=`, frames in `evaluate_rows`, and the number of queries."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tfrankmetrics as trm

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, (60, 8)) * (RNG.random((60, 8)) < 0.3)
SCORES = RNG.normal(size=(60, 8)).round(1)
LANGUAGE = np.array(["de", "en", "fr"])[RNG.integers(0, 3, 60)]
MARKET = RNG.integers(1, 3, 60)
METRICS = ["ndcg@3", "mrr", "arp"]
TABLE = pd.DataFrame(
    {
        "user": np.repeat(np.arange(60), 8),
        "click": LABELS.ravel(),
        "score": SCORES.ravel(),
        "language": np.repeat(LANGUAGE, 8),
        "market": np.repeat(MARKET, 8),
    }
).sample(frac=1, random_state=0)
COLUMNS = ("user", "click", "score", METRICS)


def of(which, **options):
    return trm.evaluate(LABELS[which], SCORES[which], METRICS, **options)


def test_a_slice_has_the_values_of_its_queries_alone():
    result = trm.evaluate(LABELS, SCORES, METRICS, by=LANGUAGE)
    assert {*result} == {"de", "en", "fr"}
    for language, values in result.items():
        assert values == pytest.approx(of(language == LANGUAGE), rel=1e-14)
        assert result.num_queries[language] == (language == LANGUAGE).sum()
    assert result.whole == of(slice(None))


def test_crossed_slices():
    by = {"language": LANGUAGE, "market": MARKET}
    result = trm.evaluate(LABELS, SCORES, METRICS, by=by)
    assert {*result} == {*zip(LANGUAGE.tolist(), MARKET.tolist())}
    for (language, market), values in result.items():
        which = (language == LANGUAGE) & (market == MARKET)
        assert values == pytest.approx(of(which), rel=1e-14)
    assert result.by == ("language", "market")


FRAMES = {
    "pandas": TABLE,
    "pandas, objects": TABLE.astype({"language": object}),
    "pandas, categories": TABLE.astype({"language": "category"}),
    "polars": pl.from_pandas(TABLE),
    "polars, categories": pl.from_pandas(TABLE).with_columns(
        pl.col("language").cast(pl.Categorical)
    ),
    "arrow": pa.Table.from_pandas(TABLE),
    "dict": TABLE.to_dict("list"),
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("by", ["language", ["language", "market"]])
def test_frames_give_the_values_of_lists(frame, by):
    expected = trm.evaluate(
        LABELS,
        SCORES,
        METRICS,
        by={"language": LANGUAGE, **({"market": MARKET} if len(by) == 2 else {})},
    )
    result = trm.evaluate_rows(*COLUMNS, data=FRAMES[frame], by=by)
    assert {*result} == {*expected}
    for key, values in expected.items():
        assert result[key] == pytest.approx(values, rel=1e-14)
        assert result.num_queries[key] == expected.num_queries[key]
    assert result.whole == pytest.approx(expected.whole, rel=1e-14)


def test_names_and_columns_may_be_mixed():
    by_name = trm.evaluate_rows(*COLUMNS, data=TABLE, sample_weight="market")
    columns = TABLE.user, TABLE.click, TABLE.score
    by_column = trm.evaluate_rows(*columns, METRICS, sample_weight=TABLE.market)
    mixed = trm.evaluate_rows(
        "user", TABLE.click, "score", METRICS, data=TABLE, sample_weight="market"
    )
    assert by_name == by_column == mixed
    assert trm.evaluate_rows(*columns, METRICS, by=TABLE.language).whole == of(
        slice(None)
    ) | {key: pytest.approx(value) for key, value in of(slice(None)).items()}


def test_missing_values_are_a_slice():
    language = LANGUAGE.astype(object)
    language[LANGUAGE == "fr"] = None
    result = trm.evaluate(LABELS, SCORES, METRICS, by=language)
    assert result[None] == pytest.approx(of(LANGUAGE == "fr"), rel=1e-14)
    table = TABLE.assign(language=TABLE.language.where(TABLE.language != "fr"))
    for frame in (table, pl.from_pandas(table), table.astype({"language": "category"})):
        rows = trm.evaluate_rows(*COLUMNS, data=frame, by="language")
        assert [*rows.num_queries.values()].count(result.num_queries[None]) >= 1
        assert sum(rows.num_queries.values()) == 60


CODES = RNG.integers(0, 3, 60)
KINDS = {
    "small": [-7, 0, 1],
    "large": [-(10**6), 2**15, 2**62],
    "unsigned": np.array([0, 1, 2**64 - 1], np.uint64),
    "booleans": [False, True, False],
    "floats": [0.5, np.nan, np.inf],
    "dates": np.array(["2026-01-01", "2026-01-02", "NaT"], "datetime64[ns]"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_any_kind(kind):
    of_query = np.asarray(KINDS[kind])[CODES]
    expected = trm.evaluate(LABELS, SCORES, METRICS, by=of_query)
    numbers = np.bincount(CODES).tolist()
    if kind == "booleans":
        numbers = [numbers[0] + numbers[2], numbers[1]]
    if kind == "floats":  # missing values are last
        numbers = [numbers[0], numbers[2], numbers[1]]
    assert [*expected.num_queries.values()] == numbers
    table = TABLE.assign(kind=of_query[TABLE.user])
    frames = [table, {name: table[name].to_numpy() for name in table}]
    if kind != "unsigned":  # pandas turns these into floats on the way to polars
        frames.append(pl.from_pandas(table))
    for frame in frames:
        rows = trm.evaluate_rows(*COLUMNS, data=frame, by="kind")
        for key, values in expected.items():
            assert rows[key] == pytest.approx(values, rel=1e-14)
        assert rows.num_queries == expected.num_queries


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_lists_of_values_that_numpy_would_change(missing):
    values = np.array([1, "1", missing], object)[CODES].tolist()
    result = trm.evaluate(LABELS, SCORES, METRICS, by=values)
    numbers = dict(zip([1, "1", None], np.bincount(CODES).tolist()))
    assert result.num_queries == numbers
    table = {"slice": np.array(values, object)[TABLE.user].tolist()}
    table |= TABLE.to_dict("list")
    rows = trm.evaluate_rows(*COLUMNS, data=table, by="slice")
    assert rows.num_queries == numbers


@pytest.mark.parametrize("missing", [False, True])
def test_large_integers_are_not_rounded(missing):
    values = pd.Series([2**53, 2**53 + 1, None if missing else 1], dtype="Int64")
    values = values[CODES].reset_index(drop=True)
    for by in (values, pl.from_pandas(values), values.astype("category")):
        result = trm.evaluate(LABELS, SCORES, METRICS, by=by)
        assert {*result} == {2**53, 2**53 + 1, None if missing else 1}


def test_a_slice_named_all():
    by = np.where(LANGUAGE == "de", "all", LANGUAGE)
    result = trm.evaluate(LABELS, SCORES, METRICS, by=by)
    assert [line.split()[0] for line in repr(result).splitlines()][1:] == [
        "all",
        "en",
        "fr",
        "(all)",
    ]
    values = trm.evaluate(LABELS, SCORES, METRICS, by=by, per_query=True)
    frame = trm.compare({"A": values}, by="slice").to_pandas()
    assert frame["slice"].unique().tolist() == ["all", "en", "fr", "(all)"]


def test_tuples_are_slices():
    result = trm.evaluate(LABELS, SCORES, METRICS, by=[*zip(LANGUAGE, MARKET)])
    frame = result.to_pandas()
    assert [*frame.index] == [*result, "all"]
    assert frame["queries"].tolist() == [*result.num_queries.values(), 60]
    assert frame.loc["all", METRICS].to_dict() == result.whole


def test_a_column_of_slices_may_have_the_name_of_another_column():
    by = {"queries": LANGUAGE}
    frame = trm.evaluate(LABELS, SCORES, METRICS, by=by).to_pandas()
    assert [*frame.index] == [*np.unique(LANGUAGE), "all"]
    assert frame.loc["all", "queries"] == 60


def test_per_query_values_keep_weights_and_slices():
    values = trm.evaluate_rows(
        *COLUMNS, data=TABLE, by="language", sample_weight="market", per_query=True
    )
    assert [*values] == ["query", "language", *METRICS]
    assert values["language"].tolist() == LANGUAGE[values["query"]].tolist()
    assert values.weights["mrr"].tolist() == MARKET[values["query"]].tolist()
    assert values.lower_is_better == {"arp"}
    total = LABELS.sum(axis=1)[values["query"]]
    np.testing.assert_allclose(values.weights["arp"], total * MARKET[values["query"]])
    assert isinstance(values, dict)


def test_the_number_of_queries():
    number = int((LABELS > 0).any(axis=1).sum())
    assert number < 60
    for arguments in ({"empty": "skip"}, {}):
        expected = number if arguments else 60
        found = trm.evaluate(LABELS, SCORES, ["mrr"], num_queries=True, **arguments)
        assert found["num_queries"] == expected
        rows = trm.evaluate_rows(
            "user", "click", "score", ["mrr"], data=TABLE, num_queries=True, **arguments
        )
        assert rows["num_queries"] == expected
        by = trm.evaluate(LABELS, SCORES, ["mrr"], by=LANGUAGE, **arguments)
        assert sum(by.num_queries.values()) == expected
        metric = trm.RankingMetrics(["mrr"], num_queries=True, **arguments)
        for part in (slice(0, 25), slice(25, 60)):
            metric.update_state(LABELS[part], SCORES[part])
        assert float(metric.result()["num_queries"]) == expected
        again = trm.RankingMetrics.from_config(metric.get_config())
        again.merge_state([metric, metric])
        assert float(again.result()["num_queries"]) == 2 * expected
    # A query counts if it counts in any metric: AUC skips the lists of one class.
    metric = trm.RankingMetrics(["auc", "mrr"], num_queries=True)
    metric.update_state(LABELS, SCORES)
    assert float(metric.result()["num_queries"]) == 60
    with pytest.raises(ValueError, match="can be merged"):
        trm.RankingMetrics(["mrr"]).merge_state(
            [trm.RankingMetrics(["mrr"], num_queries=True)]
        )


def test_tables():
    result = trm.evaluate(
        LABELS, SCORES, ["mrr"], by={"a|b & <c>": ["x_1"] * 30 + ["y"] * 30}
    )
    text = repr(result)
    x, y, all_ = (
        f"{v:.4f}"
        for v in (result["x_1"]["mrr"], result["y"]["mrr"], result.whole["mrr"])
    )
    assert text.splitlines()[1].split() == ["x_1", "30", x]
    assert text.splitlines()[2].split() == ["y", "30", y]
    assert text.splitlines()[3].split() == ["all", "60", all_]
    assert r"| a\|b & &lt;c> | queries | mrr |" in result.to_markdown()
    assert f"| x_1 | 30 | {x} |" in result.to_markdown()
    assert "a&#x27;b" not in result._repr_html_()
    assert "a|b &amp; &lt;c&gt;" in result._repr_html_()
    assert rf"x\_1 & 30 & {x} \\" in result.to_latex()
    assert r"a$|$b \& $<$c$>$" in result.to_latex()
    frame = result.to_pandas()
    assert frame.loc["x_1"].to_dict() == {"queries": 30, "mrr": result["x_1"]["mrr"]}
    crossed = trm.evaluate(
        LABELS, SCORES, ["mrr"], by={"language": LANGUAGE, "market": MARKET}
    )
    key = next(iter(crossed))
    assert crossed.to_pandas().loc[key, "mrr"] == crossed[key]["mrr"]


def test_plots_show_each_slice_and_its_number_of_queries():
    pytest.importorskip("matplotlib").use("Agg")
    result = trm.evaluate(LABELS, SCORES, METRICS, by=LANGUAGE)
    axes = result.plot()
    assert [axis.get_xlabel() for axis in axes] == METRICS
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    assert names == [f"{key} ({number})" for key, number in result.num_queries.items()]
    assert [bar.get_width() for bar in axes[1].patches] == [
        each["mrr"] for each in result.values()
    ]
    assert len(result.plot("mrr")) == 1


ERRORS = {
    "length": (lambda: of(slice(None), by=LANGUAGE[:5]), "5 values of 'slice' for 60 queries"),
    "text": (
        lambda: of(slice(None), by="language"),
        "`by` must be a frame's column, or a dict of columns. Received: 'language'",
    ),
    "a name that is no text": (lambda: of(slice(None), by={"language": LANGUAGE, 1: MARKET}), "or a dict of columns"),
    "two dimensions": (lambda: of(slice(None), by=LABELS), "The values of 'slice' in `by` must be one column, with a value for each row. Received: shape (60, 8)"),
    "not hashable": (
        lambda: of(slice(None), by={"s": [[]] * 60}),
        "The values of 's' in `by` must be hashable. Received: unhashable type: 'list'",
    ),
    "differs": (
        lambda: trm.evaluate_rows(*COLUMNS, data=TABLE.assign(market=range(480)), by="market"),
        "of the same query",
    ),
    "no column": (
        lambda: trm.evaluate_rows(*COLUMNS, data=TABLE, by="lang"),
        "by='lang', for the columns 'user', 'click', 'score', 'language', 'market'. Did you mean 'language'?",
    ),
    "rows": (lambda: trm.evaluate_rows(*COLUMNS, data=TABLE, by=LANGUAGE), "60 values of 'slice' for 480 rows"),
    "groups": (
        lambda: trm.evaluate_rows(None, [1, 0, 1], [1, 2, 3], ["mrr"], groups=[2, 1], by=["a", "b"]),
        "2 values of 'slice' for 3 rows",
    ),
    "both": (lambda: of(slice(None), per_query=True, num_queries=True), "`num_queries` is for means"),
    "no data": (lambda: trm.evaluate_rows(*COLUMNS), "without `data`. Pass data=frame"),
    "one value": (
        lambda: trm.evaluate_rows([1], [1], [1.0], ["mrr"], by=np.array("x")),
        "in `by` must be one column, with a value for each row. Received: shape ()",
    ),
    "lists": (
        lambda: of(slice(None), by=pd.Series([["a"]] * 6, dtype=pd.ArrowDtype(pa.list_(pa.string())))),
        "must be hashable",
    ),
    "too few slices, with a value over all queries": (
        lambda: trm.evaluate([[1]] * 3, [[0]] * 3, ["coverage@1"], inputs="ids", num_items=2, by=["a", "b"]),
        "2 values of 'slice' for 3 queries",
    ),
    "no frame": (
        lambda: trm.evaluate_rows(*COLUMNS, data=3),
        "`data` must be a frame, or a dict of columns. Received: 3",
    ),
    "key of a metric": (
        lambda: of(slice(None), by={"mrr": LANGUAGE}, per_query=True),
        "number of queries. Received: 'mrr'",
    ),
    "num_queries": (
        lambda: trm.evaluate([[1]], [[1]], [trm.NDCG(name="num_queries")], num_queries=True),
        "Received: 'num_queries'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    call, message = ERRORS[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_an_unknown_slice_is_a_key_error():
    with pytest.raises(KeyError, match=r"must be a slice by 'slice'\. Received: 'it'"):
        trm.evaluate(LABELS, SCORES, METRICS, by=LANGUAGE)["it"]


def test_no_queries_have_no_slices():
    none = np.zeros((0, 3))
    found = trm.evaluate(none, none, ["mrr"], by=[], per_query=True)
    assert {name: len(column) for name, column in found.items()} == {
        "slice": 0,
        "mrr": 0,
    }


def test_the_values_of_many_queries_print_the_first_and_the_last():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, (1000, 5)), rng.random((1000, 5))
    values = trm.evaluate(labels, scores, ["mrr", "map"], per_query=True)
    assert len(repr(values)) < 300
    assert "..." in repr(values)
    few = trm.evaluate(labels[:60], scores[:60], ["mrr"], per_query=True)
    assert "..." not in repr(few)


def test_slices_as_dicts():
    labels, scores = [[1, 0], [0, 1], [0, 1]], [[2.0, 1.0]] * 3
    by = {"language": ["de", "de", "en"], "year": [1, 1, 2]}
    found = trm.evaluate(labels, scores, ["mrr"], by=by).to_dicts()
    assert found == [
        {"language": "de", "year": 1, "queries": 2, "mrr": 0.75},
        {"language": "en", "year": 2, "queries": 1, "mrr": 0.5},
        {"language": "all", "year": "", "queries": 3, "mrr": pytest.approx(2 / 3)},
    ]
