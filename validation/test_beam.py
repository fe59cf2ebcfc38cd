"""Compares the metrics on Apache Beam with `evaluate_rows` and `evaluate_run`."""

import copy
import doctest
import functools
import json
import math
import pathlib
import pickle
import random
from fractions import Fraction
from typing import NamedTuple

import apache_beam as beam
import numpy as np
import own_metric
import pandas as pd
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.trigger import AccumulationMode, AfterCount, AfterWatermark
from code_blocks import run_blocks
from growth import require_growth_in_proportion, with_error
from mistake_table import cases_at, require_found

import tfrankmetrics as trm
import tfrankmetrics.beam
from tfrankmetrics.beam import ComputeMetricsOfRows, ComputeMetricsOfRun

NAMES = ["ndcg@10", "ndcg", "map", "mrr", "precision@5", "bpref", "arp", "opa", "auc"]
NAMES += ["judged@5", "tied@3", "err@10"]
TWO_WORKERS = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
COLUMNS = ["query", "label", "score"]


def make_rows(queries=60, seed=0):
    """Shuffled rows of queries of different lengths, with ties and unjudged items."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(queries):
        for item in range(rng.integers(1, 40)):
            score = round(rng.normal(), 1)
            row = {
                "query": f"query {number}",
                "item": f"item {item}",
                "label": int(rng.integers(-1, 4) * (number % 9 > 0)),
                "score": -np.inf if rng.random() < 0.02 else score,
                "language": ["de", "fr", None][number % 3],
                "market": number % 2,
                "weight": 1.0 + number % 4,
            }
            rows.append(row)
    rng.shuffle(rows)
    return rows


def given_to(pipeline, data):
    """A collection of rows, or a dict of these."""
    if isinstance(data, dict):
        return {n: pipeline | n >> beam.Create(rows) for n, rows in data.items()}
    return pipeline | beam.Create(data)


def results_of(transform, data, tmp_path, options=()):
    """The dicts that a pipeline writes."""
    path = tmp_path / "results"
    with beam.Pipeline(options=PipelineOptions([*options])) as pipeline:
        rows = given_to(pipeline, data) | transform | beam.Map(json.dumps)
        rows | beam.io.WriteToText(str(path), shard_name_template="")
    return [*map(json.loads, path.read_text().splitlines())]


def assert_same(results, expected, by=()):
    """Compares the dicts of a pipeline with what an array function returns."""
    whole, *slices = results
    assert whole.pop("overall", True)
    if by:
        assert whole.pop("num_queries") == sum(expected.num_queries.values())
        assert [whole.pop(name) for name in by] == [None] * len(by)
        assert whole == pytest.approx(expected.whole, rel=1e-12)
        assert len(slices) == len(expected)
    else:
        assert whole == pytest.approx(dict(expected), rel=1e-12)
    pairs = zip(slices, expected.items() if by else (), strict=True)
    for found, (key, values) in pairs:
        assert not found.pop("overall")
        keys = tuple(found.pop(name) for name in by)
        assert keys == (key if len(by) > 1 else (key,))
        assert found.pop("num_queries") == expected.num_queries[key]
        assert found == pytest.approx(values, rel=1e-12, nan_ok=True)


def table_of(rows):
    return {name: [row[name] for row in rows] for name in rows[0]}


def of_rows(metrics, **arguments):
    return ComputeMetricsOfRows(*COLUMNS, metrics, **arguments)


@pytest.mark.parametrize(
    ("by", "weight"),
    [
        ((), None),
        ((), "weight"),
        (("language",), None),
        (("language", "market"), "weight"),
    ],
)
def test_rows_give_the_values_of_evaluate_rows(by, weight, tmp_path):
    rows = make_rows()
    transform = of_rows(NAMES, sample_weight=weight, by=by or None)
    more = {"by": [*by]} if by else {"num_queries": True}
    expected = trm.evaluate_rows(
        *COLUMNS, NAMES, data=table_of(rows), sample_weight=weight, **more
    )
    assert_same(results_of(transform, rows, tmp_path), expected, by)


@pytest.mark.parametrize(
    "options",
    [
        {"gain": "linear", "empty": "one"},
        {"ties": "best"},
        {"convention": "lightgbm", "ties": "expected"},
        {"gain": np.sqrt, "separator": "_"},
    ],
)
def test_options(options, tmp_path):
    rows = make_rows(20)
    names = ["ndcg@10", "ndcg@5"]
    found = results_of(of_rows(names, **options), rows, tmp_path)
    expected = trm.evaluate_rows(
        *COLUMNS, names, data=table_of(rows), num_queries=True, **options
    )
    assert_same(found, expected)


def test_neither_order_nor_bundles_nor_workers_change_a_bit(tmp_path):
    rows = make_rows(300)
    transform = of_rows(NAMES, sample_weight="weight", by="language")
    expected = results_of(transform, rows, tmp_path)
    for options in ([], TWO_WORKERS):
        random.Random(0).shuffle(rows)
        assert results_of(transform, rows, tmp_path, options) == expected


def combined(combiner, elements, rng):
    """What a combiner makes of elements, on a random number of workers."""
    accumulators = [combiner.create_accumulator() for _ in range(rng.randint(1, 4))]
    for element in elements:
        number = rng.randrange(len(accumulators))
        accumulators[number] = combiner.add_input(accumulators[number], element)
    sent = [combiner.compact(each) for each in accumulators]
    rng.shuffle(sent)
    merged = combiner.merge_accumulators(pickle.loads(pickle.dumps(sent)))
    return combiner.extract_output(merged)


def by_query(transform, rows):
    """The elements of a combiner: each query with its rows."""
    queries = {}
    for query, row in map(transform._columns.split, rows):
        queries.setdefault(query, []).append(row)
    return [*queries.items()]


@pytest.mark.parametrize("seed", range(8))
def test_counts_of_all_workers_add_up(seed):
    """Seven queries: each has two results, one of them unjudged; two have none."""
    transform = ComputeMetricsOfRun(["mrr"])
    columns, elements = transform._columns, []
    for query in range(7):
        pair = {"query_id": query, "item_id": "a"}
        found = [pair | {"item_id": item, "score": 1.0} for item in "ab"]
        of_run = [] if query < 2 else [columns["run"].split(row)[1] for row in found]
        judged = [columns["qrels"].split(pair | {"label": 1})[1]]
        elements.append((query, {"qrels": judged, "run": of_run}))
    _, counts = combined(transform._combiner, elements, random.Random(seed))
    expected = trm.RunCounts(7, 2, 0, 10, 5)._asdict()
    assert counts == {n: v for n, v in expected.items() if n != "missing_queries"}


@pytest.mark.parametrize("seed", range(40))
def test_random_tables_on_random_workers_give_the_values_of_evaluate_rows(seed):
    rng = random.Random(seed)
    ids = rng.choice([range(9), ["a", "b\u00a0c", "1", "é"], [(1, "x"), (1, "y")]])
    integers = [2**60, 2**60 + 1]
    choices = [[0.1, 0.2, 0.3], [*integers, 0.5], [0, 1, -math.inf]]
    scores = rng.choice([*choices, [*integers, -math.inf]])
    weights = {each: rng.choice([0, 1e-3, 1, 2.5]) for each in ids}
    rows = [
        {
            "query": query,
            "label": rng.choice([-1, 0, 1, 2, 0.5]),
            "score": rng.choice(scores),
            "weight": weights[query],
            "language": "de" if query in [*ids][:2] else "en",
        }
        for query in rng.choices([*ids], k=rng.randint(4, 60))
    ]
    transform = of_rows(NAMES, sample_weight="weight", by="language")
    found, _ = combined(transform._combiner, by_query(transform, rows), rng)
    # evaluate_rows rejects large integers among floats, so it receives their ranks.
    ranks = {score: float(rank) for rank, score in enumerate(sorted({*scores}))}
    ranks[-math.inf] = -math.inf
    table = table_of([row | {"score": ranks[row["score"]]} for row in rows])
    table["query"] = [str(each) for each in table["query"]]
    expected = trm.evaluate_rows(
        *COLUMNS, NAMES, data=table, sample_weight="weight", by="language"
    )
    for row in found:
        values = expected.whole if row["overall"] else expected[row["language"]]
        of_row = {name: row[name] for name in values}
        assert of_row == pytest.approx(values, rel=1e-12, nan_ok=True)


def rows_for_beam(queries, items, slices=1):
    """The call that combines the rows of queries, with weights and slices."""
    transform = of_rows(NAMES, sample_weight="weight", by="language")
    rng = random.Random(0)
    rows = [
        judged(query, rng.randrange(3), rng.random())
        | {"weight": 1.0, "language": str(query % slices)}
        for query in range(queries)
        for _ in range(items)
    ]
    elements = by_query(transform, rows)
    return lambda: combined(transform._combiner, elements, rng)


def run_for_beam(items, twice=0):
    """The call that combines a query's judgments and results, some of them twice."""
    transform = ComputeMetricsOfRun(NAMES)
    rng, columns = random.Random(0), transform._columns
    pairs = [{"query_id": 1, "item_id": item} for item in range(items)]
    run = [columns["run"].split(pair | {"score": rng.random()})[1] for pair in pairs]
    query = {
        "qrels": [
            columns["qrels"].split(pair | {"label": 1})[1] for pair in pairs[::2]
        ],
        "run": run + run[:twice],
    }
    call = functools.partial(combined, transform._combiner, [(1, query)], rng)
    return with_error(call) if twice else call


@pytest.mark.parametrize(
    ("build", "n"),
    [
        pytest.param(lambda n: rows_for_beam(n, 20), 2_000, id="queries"),
        pytest.param(lambda n: rows_for_beam(1, n), 40_000, id="items"),
        pytest.param(lambda n: rows_for_beam(n, 4, slices=n), 1_000, id="slices"),
        pytest.param(run_for_beam, 40_000, id="items of a run"),
        pytest.param(lambda n: run_for_beam(n, twice=n), 40_000, id="items twice"),
    ],
)
def test_twice_the_rows_take_twice_the_time_and_memory(build, n):
    require_growth_in_proportion(build, n)


def test_batches_change_no_bit(monkeypatch, tmp_path):
    rows = make_rows(100)
    expected = results_of(of_rows(NAMES), rows, tmp_path)
    for number in (1, 7):
        monkeypatch.setattr(tfrankmetrics.compute.combiner, "QUERIES_AT_A_TIME", number)
        assert results_of(of_rows(NAMES), rows, tmp_path) == expected


@pytest.mark.parametrize("case", cases_at("beam rows"), ids=str)
def test_a_mistake_is_found_in_rows(case, tmp_path):
    def evaluate(data):
        transform = ComputeMetricsOfRows("query_id", "label", "score", [case.metric])
        results_of(transform, data.rows.to_dict("records"), tmp_path)

    require_found(case, evaluate)


@pytest.mark.parametrize("case", cases_at("beam run"), ids=str)
def test_a_mistake_is_found_in_tables(case, tmp_path):
    def evaluate(data):
        transform = ComputeMetricsOfRun([case.metric], query="query_id", item="item_id")
        tables = {"qrels": data.rows, "run": data.run}
        tables = {name: rows.to_dict("records") for name, rows in tables.items()}
        results_of(transform, tables, tmp_path)

    require_found(case, evaluate)


@pytest.mark.parametrize(
    "option", ["--runtime_type_check", "--performance_runtime_type_check"]
)
def test_beam_may_check_types_as_it_runs(option, tmp_path):
    rows = make_rows(4)
    tables = {"qrels": [{"query_id": 1, "item_id": 1, "label": 1}]}
    tables["run"] = [{"query_id": 1, "item_id": 1, "score": 1.0}]
    for make, names, data in (
        (of_rows, NAMES, rows),
        (ComputeMetricsOfRun, ["mrr"], tables),
    ):
        expected = results_of(make(names), data, tmp_path)
        # Files of text, which `results_of` writes, fail Beam's own check.
        with beam.Pipeline(options=PipelineOptions([option])) as pipeline:
            assert_that(given_to(pipeline, data) | make(names), equal_to(expected))


def test_a_column_called_rank_is_a_warning(tmp_path):
    rows = [{"q": q, "y": i == 0, "rank": 3 * i} for q in range(20) for i in range(3)]
    tables = {
        "qrels": [{"query_id": q, "item_id": 0, "label": 1} for q in range(20)],
        "run": [
            {"query_id": q, "item_id": item, "rank": 3.5 * item}
            for q in range(20)
            for item in range(2)
        ],
    }
    for transform, data in (
        (ComputeMetricsOfRows("q", "y", "rank", ["mrr"]), rows),
        (ComputeMetricsOfRun(["mrr"], score="rank"), tables),
    ):
        with pytest.warns(trm.RankingWarning, match="look like ranks"):
            results_of(transform, data, tmp_path)


def test_subtopics_of_judgments(tmp_path):
    rng = random.Random(0)
    qrels, run = [], []
    for query in range(40):
        for item in range(rng.randrange(1, 12)):
            pair = {"query": f"q{query}", "item": f"d{item}"}
            run.append({**pair, "score": rng.randrange(4)})
            for topic in rng.sample("abcde", rng.randrange(4)):
                label = rng.randrange(-1, 3)
                qrels.append({**pair, "nugget": topic, "label": label, "weight": query})
        qrels.append({**pair, "nugget": "z", "label": 1, "weight": query})
    columns = {"query": "query", "item": "item", "subtopic": "nugget"}
    columns["sample_weight"] = "weight"
    names = ["subtopic_recall@3", "alpha_dcg@5", "alpha_ndcg@5", "ndcg@5", "recall@3"]
    expected = trm.evaluate_run(
        pd.DataFrame(qrels), pd.DataFrame(run), names, **columns
    )
    results = []
    for _ in range(2):
        tables = {"qrels": qrels, "run": run}
        transform = ComputeMetricsOfRun(names, **columns)
        (found,) = results_of(transform, tables, tmp_path)
        assert found.pop("num_queries") == 39  # the first one has the weight 0
        assert found == pytest.approx(expected, rel=1e-12)
        results.append(found)
        rng.shuffle(qrels), rng.shuffle(run)
    assert results[0] == results[1]
    twice = {"qrels": [*qrels, qrels[0]], "run": run}
    with pytest.raises(ValueError, match=r"and the subtopic '.' twice"):
        results_of(ComputeMetricsOfRun(names, **columns), twice, tmp_path)
    by_default = ComputeMetricsOfRun(["strec@3"], query="query", item="item")
    with pytest.raises(ValueError, match="without 'subtopic'"):
        results_of(by_default, {"qrels": qrels, "run": run}, tmp_path)


def test_an_item_that_is_neither_judged_nor_retrieved_is_in_no_list(tmp_path):
    qrels, run = dict(a=1, e=0, b=-1, c=0), {"c": 1.0, "d": 0.5}
    tables = {
        "qrels": [
            {"query_id": 1, "item_id": item, "label": label}
            for item, label in qrels.items()
        ],
        "run": [
            {"query_id": 1, "item_id": item, "score": score}
            for item, score in run.items()
        ],
    }
    names = ["auc", "first_relevant_rank"]
    (found,) = results_of(ComputeMetricsOfRun(names), tables, tmp_path)
    assert found == {"num_queries": 1, **trm.evaluate_run({1: qrels}, {1: run}, names)}
    assert found["first_relevant_rank"] == 3.5


class Row(NamedTuple):
    query: str
    label: int
    score: float


@pytest.mark.parametrize("make", [lambda row: beam.Row(**row), lambda row: Row(**row)])
def test_rows_may_be_named_tuples(make, tmp_path):
    rows = [{name: row[name] for name in COLUMNS} for row in make_rows(10)]
    expected = results_of(of_rows(NAMES), rows, tmp_path)
    found = results_of(of_rows(NAMES), [*map(make, rows)], tmp_path)
    assert found == expected


def test_values_of_numpy_and_large_integers(tmp_path):
    """1 and numpy.int64(1) are one query. Scores beyond 2^53 are compared exactly."""
    rows = [
        {"query": np.int64(1), "label": np.float32(0), "score": 2**53},
        {"query": 1, "label": 1, "score": np.int64(2**53 + 1)},
        {"query": 1.0, "label": np.bool_(False), "score": float("nan")},
    ]
    (found,) = results_of(of_rows(["mrr", "P@3"]), rows, tmp_path)
    assert found == {"num_queries": 1, "mrr": 1.0, "P@3": 1 / 3}
    rows = [
        {"query": 1, "label": Fraction(1, 2), "score": np.float64(0.75)},
        {"query": 1, "label": np.int8(3), "score": np.float32(0.5)},
        {"query": 1, "label": 0, "score": 2**63 - 1},
        {"query": 1, "label": 0, "score": -(2**63)},
    ]
    transform = of_rows(["dcg@3"], gain="linear", discount=np.reciprocal)
    (found,) = results_of(transform, rows, tmp_path)
    assert found == {"num_queries": 1, "dcg@3": 0.5 / 2 + 3 / 3}


def test_names_with_parameters_are_the_keys(tmp_path):
    rows = make_rows(10)
    names = ["nDCG(dcg='log2')@3", "ndcg@3", "RBP(p=0.5)"]
    (found,) = results_of(of_rows(names, gain="exponential"), rows, tmp_path)
    columns = [[row[name] for row in rows] for name in COLUMNS]
    expected = trm.evaluate_rows(*columns, names)
    assert {name: found[name] for name in names} == pytest.approx(expected)
    keys = ["nDCG_dcg_log2_3", "ndcg_3", "RBP_p_0_5"]
    (found,) = results_of(of_rows(names, separator="_"), rows, tmp_path)
    assert [*found] == ["num_queries", *keys]


def test_without_rows_nothing_counts(tmp_path):
    (found,) = results_of(of_rows(["mrr"]), [], tmp_path)
    assert found["num_queries"] == 0
    assert np.isnan(found["mrr"])


def test_each_window_has_its_results():
    rows = [
        beam.window.TimestampedValue(row, 100 * (int(row["query"][6:]) % 2))
        for row in make_rows(20)
    ]
    with beam.Pipeline() as pipeline:
        numbers = (
            pipeline
            | beam.Create(rows)
            | beam.Map(lambda value: value)
            | beam.WindowInto(beam.window.FixedWindows(60))
            | of_rows(["mrr"])
            | beam.Map(lambda row: row["num_queries"])
        )
        assert_that(numbers, equal_to([10, 10]))


def in_windows(pipeline, name, rows, **more):
    """Rows with the minute of each, in windows of a minute."""
    rows = [beam.window.TimestampedValue(row, 60 * minute) for row, minute in rows]
    given = pipeline | f"{name} rows" >> beam.Create(rows)
    given = given | f"{name} times" >> beam.Map(lambda value: value)
    windows = beam.WindowInto(beam.window.FixedWindows(60), **more)
    return given | f"{name} windows" >> windows


def judged(query, label, score):
    return {"query": query, "label": label, "score": score}


def test_a_stream_is_evaluated_as_its_windows_end():
    """A row of a window that is over changes nothing."""

    def at(second, *row):
        return beam.window.TimestampedValue(judged(*row), second)

    stream = TestStream().advance_watermark_to(0)
    stream = stream.add_elements([at(10, "a", 1, 0.1), at(20, "a", 0, 0.9)])
    stream = stream.advance_watermark_to(70)
    stream = stream.add_elements([at(30, "a", 0, 0.95), at(80, "b", 1, 0.9)])
    with beam.Pipeline(options=PipelineOptions(streaming=True)) as pipeline:
        rows = pipeline | stream.advance_watermark_to_infinity()
        minutes = rows | beam.WindowInto(beam.window.FixedWindows(60))
        found = minutes | of_rows(["mrr"]) | beam.Map(lambda row: row["mrr"])
        assert_that(found, equal_to([0.5, 1.0]))


def test_a_window_whose_labels_are_signs_does_not_stop_the_others():
    rows = [(judged("a", label, label), 0) for label in (0, 1, 2, -1)]
    rows += [(judged("b", 1, 0.9), 1), (judged("b", -1, 0.2), 1)]
    pipeline = beam.Pipeline()
    found = in_windows(pipeline, "table", rows) | of_rows(["mrr"])
    numbers = found | beam.Map(lambda row: (row["num_queries"], row["mrr"]))
    assert_that(numbers, equal_to([(1, 1.0), (1, 1.0)]))
    with pytest.warns(trm.RankingWarning, match="only -1 and 1"):
        pipeline.run()


def test_a_window_without_judgments_does_not_stop_the_others():
    qrels = [({"query_id": "a", "item_id": "x", "label": 1}, 0)]
    found = [({"query_id": "a", "item_id": "x", "score": 1.0}, 0)]
    found += [({"query_id": "b", "item_id": "x", "score": 1.0}, 1)]
    pipeline = beam.Pipeline()
    tables = {
        name: in_windows(pipeline, name, rows)
        for name, rows in (("qrels", qrels), ("run", found))
    }
    result = tables | ComputeMetricsOfRun(["mrr"])
    numbers = result | beam.Map(lambda row: (row["num_queries"], str(row["mrr"])))
    assert_that(numbers, equal_to([(1, "1.0"), (0, "nan")]))
    with pytest.warns(trm.RankingWarning, match="Received: 0 judged queries, and 1"):
        pipeline.run()
    pipeline = beam.Pipeline()
    tables = {name: in_windows(pipeline, name, []) for name in ("qrels", "run")}
    with pytest.raises(ValueError, match="'auc' has no value for a query without res"):
        tables | ComputeMetricsOfRun(["auc"])
    tables | "Skip" >> ComputeMetricsOfRun(["auc"], missing_queries="skip")


@pytest.mark.parametrize(
    "more",
    [
        {"trigger": AfterWatermark(early=AfterCount(1)), "accumulation_mode": mode}
        for mode in (AccumulationMode.ACCUMULATING, AccumulationMode.DISCARDING)
    ]
    + [
        {"trigger": AfterCount(2), "accumulation_mode": AccumulationMode.DISCARDING},
        {"allowed_lateness": 600},
    ],
    ids=str,
)
def test_triggers_are_refused(more):
    pipeline = beam.Pipeline()
    tables = {n: in_windows(pipeline, n, [], **more) for n in ("qrels", "run")}
    for given, transform in (
        (tables["qrels"], of_rows(["mrr"])),
        (tables, ComputeMetricsOfRun(["mrr"])),
    ):
        with pytest.raises(ValueError, match="at each other firing of a trigger"):
            given | transform


def test_a_trigger_at_the_end_of_the_window_is_accepted():
    more = {
        "trigger": AfterWatermark(),
        "accumulation_mode": AccumulationMode.DISCARDING,
    }
    rows = [(judged("a", 1, 0.9), 0), (judged("a", 0, 0.1), 0)]
    with beam.Pipeline() as pipeline:
        given = in_windows(pipeline, "table", rows, **more)
        found = given | of_rows(["mrr"])
        assert_that(found, equal_to([{"num_queries": 1, "mrr": 1.0}]))


@pytest.mark.parametrize(
    "pairs",
    [
        [(True, 1)],
        [((np.int64(1), "a"), (1, "a")), ((np.str_("a"), True), ("a", 1))],
    ],
)
def test_ids_that_are_equal_are_one_query(pairs, tmp_path):
    rows = [
        judged(query, label, 0.9 - label)
        for pair in pairs
        for label, query in enumerate(pair)
    ]
    (found,) = results_of(of_rows(["mrr"]), rows, tmp_path, TWO_WORKERS)
    assert found == {"num_queries": len(pairs), "mrr": 0.5}


def test_a_metric_of_your_own(tmp_path, monkeypatch):
    """Workers are new processes. They import the module that declares the metric."""
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(own_metric.__file__).parent))
    rows = make_rows(20)
    metrics = ["graded_rbp@5", own_metric.GradedRBP(k=3, persistence=0.5)]
    found = results_of(of_rows(metrics), rows, tmp_path, TWO_WORKERS)
    data = table_of(rows)
    expected = trm.evaluate_rows(*COLUMNS, metrics, data=data, num_queries=True)
    assert_same(found, expected)


def make_tables(queries=60, seed=0):
    """Judgments and predictions that do not pair in all ways."""
    rng = np.random.default_rng(seed)
    rows = make_rows(queries, seed)
    qrels = [row for row in rows if rng.random() < 0.7 and row["query"] != "query 7"]
    run = [row for row in rows if rng.random() < 0.7 and row["query"] != "query 5"]
    return {
        "qrels": [{k: v for k, v in row.items() if k != "score"} for row in qrels],
        "run": [{k: row[k] for k in ("query", "item", "score")} for row in run],
    }


def frames_of(tables):
    return pd.DataFrame(tables["qrels"]), pd.DataFrame(tables["run"])


RUN = {"query": "query", "item": "item"}
RUN_NAMES = ["ndcg@10", "map", "mrr", "bpref", "judged@5"]


@pytest.mark.parametrize(
    ("missing_queries", "unjudged", "by"),
    [
        ("zero", "irrelevant", ["language", "market"]),
        ("zero", "drop", None),
        ("skip", "irrelevant", None),
        ("skip", "drop", ["language", "market"]),
    ],
)
def test_tables_give_the_values_of_evaluate_run(
    missing_queries, unjudged, by, tmp_path
):
    tables = make_tables()
    arguments = {
        **RUN,
        "missing_queries": missing_queries,
        "unjudged": unjudged,
        "sample_weight": "weight",
        "by": by,
    }
    found = results_of(ComputeMetricsOfRun(RUN_NAMES, **arguments), tables, tmp_path)
    more = {} if by else {"num_queries": True}
    frames = frames_of(tables)
    expected = trm.evaluate_run(*frames, RUN_NAMES, **arguments, **more)
    assert_same(found, expected, by or ())


def test_tables_in_any_order_and_with_workers(tmp_path):
    tables = make_tables()
    arguments = {**RUN, "by": "language", "convention": "trec_eval"}
    names = ["map", "ndcg", "rbp"]
    by_run = trm.evaluate_run(*frames_of(tables), names, **arguments)
    expected = results_of(ComputeMetricsOfRun(names, **arguments), tables, tmp_path)
    assert_same(copy.deepcopy(expected), by_run, ("language",))
    for rows in tables.values():
        random.Random(0).shuffle(rows)
    for options in ([], TWO_WORKERS):
        found = results_of(
            ComputeMetricsOfRun(names, **arguments), tables, tmp_path, options
        )
        assert found == expected


def test_scores_are_tied_in_the_precision_of_trec_eval(tmp_path):
    items = [("a", 1, 0.5 + 1e-9), ("b", 0, 0.5), ("c", 0, 0.4)]
    rows = [
        {"query": query, "item": item, "label": label, "score": score}
        for query in ("x", "y")
        for item, label, score in items
    ]
    tables = {"qrels": rows, "run": rows}
    # In float32, the first two scores are equal, and the higher name comes first.
    trec = trm.MeanReciprocalRank(convention="trec_eval", name="trec")
    for convention, rank in ((None, 1), ("trec_eval", 2)):
        for objects, more in (([], {}), ([trec], {"trec": 1 / 2})):
            transform = ComputeMetricsOfRun(
                [*objects, "mrr"], **RUN, convention=convention
            )
            found = results_of(transform, tables, tmp_path)
            assert found == [{"num_queries": 2, "mrr": 1 / rank, **more}]


def test_objects_of_trec_eval_have_the_values_of_evaluate_run(tmp_path):
    tables = make_tables()
    metrics = [
        "ndcg@10",
        trm.NDCG(10, convention="trec_eval", name="trec"),
        trm.BPref(convention="trec_eval"),
        "judged@5",
    ]
    arguments = {**RUN, "sample_weight": "weight", "by": "language"}
    found = results_of(ComputeMetricsOfRun(metrics, **arguments), tables, tmp_path)
    expected = trm.evaluate_run(*frames_of(tables), metrics, **arguments)
    assert_same(found, expected, ("language",))


def test_poor_pairs_are_a_warning(tmp_path, recwarn):
    """Labels that are all relevant are usual, if other items are unjudged."""
    qrels = [
        {"query": number % 10, "item": number, "label": 1 + number % 3}
        for number in range(600)
    ]
    more = [{**row, "item": row["item"] + 5000} for row in qrels]
    run = [{**row, "score": row["item"] % 7} for row in qrels + more]

    def warnings_of(run, **arguments):
        recwarn.clear()
        tables = {"qrels": qrels, "run": run}
        results_of(ComputeMetricsOfRun(["mrr"], **RUN, **arguments), tables, tmp_path)
        found = [w for w in recwarn if issubclass(w.category, trm.RankingWarning)]
        return [str(warning.message) for warning in found]

    assert warnings_of(run) == []
    (message,) = warnings_of(run, unjudged="drop")
    assert "each item is relevant" in message
    (message,) = warnings_of(run[600:])
    assert "predictions without a judged item" in message


def test_counters_say_what_did_not_pair():
    tables = make_tables()
    pipeline = beam.Pipeline()
    given = {n: pipeline | n >> beam.Create(rows) for n, rows in tables.items()}
    _ = given | ComputeMetricsOfRun(["mrr"], **RUN)
    result = pipeline.run()
    result.wait_until_finish()
    found = result.metrics().query(
        beam.metrics.MetricsFilter().with_namespace("tfrankmetrics")
    )
    counts = {each.key.metric.name: each.committed for each in found["counters"]}
    expected = trm.evaluate_run(*frames_of(tables), ["mrr"], **RUN).counts._asdict()
    assert expected.pop("missing_queries") == "zero"
    assert counts == expected


ROWS = dict(zip(["query_ids", "labels", "scores"], COLUMNS, strict=True))


@pytest.mark.parametrize(
    ("make", "metrics", "arguments", "message"),
    [
        (ComputeMetricsOfRows, "ndgc@10", ROWS, "Did you mean 'ndcg@10'"),
        (ComputeMetricsOfRows, "ndcg", {**ROWS, "gian": 1}, "Received: 'gian'"),
        (ComputeMetricsOfRows, "ndcg", {**ROWS, "gain": "exp"}, "must be one of"),
        (ComputeMetricsOfRows, "ndcg", {**ROWS, "ties": "stable"}, "unordered on Beam"),
        (ComputeMetricsOfRows, "alpha_dcg", ROWS, "labels of subtopics"),
        (ComputeMetricsOfRows, "mrr", {**ROWS, "labels": None}, "`labels` must be the"),
        (ComputeMetricsOfRows, "mrr", {**ROWS, "by": [3]}, "`by` must be the name"),
        (ComputeMetricsOfRows, "mrr", {**ROWS, "by": "mrr"}, "'mrr' twice"),
        (ComputeMetricsOfRows, "mrr", {**ROWS, "by": "overall"}, "'overall' twice"),
        (
            ComputeMetricsOfRows,
            "mrr",
            {**ROWS, "sample_weight": 2.0},
            "`sample_weight`",
        ),
        (
            ComputeMetricsOfRows,
            "coverage@5",
            {**ROWS, "num_items": 9},
            "of relevance only",
        ),
        (ComputeMetricsOfRun, "mrr", {"missing_queries": "no"}, "missing_queries"),
        (ComputeMetricsOfRun, "mrr", {"ties": "stable"}, "unordered on Beam"),
        (
            ComputeMetricsOfRows,
            trm.NDCG(convention="trec_eval"),
            ROWS,
            "unordered on Beam",
        ),
        (
            ComputeMetricsOfRun,
            "mrr",
            {"item": 3},
            "`item` must be the name of a column",
        ),
    ],
)
def test_invalid_arguments_raise_at_once(make, metrics, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(metrics=[metrics], **arguments)


def test_only_two_tables_are_a_run():
    with pytest.raises(ValueError, match="must be a dict of two PCollections"):
        [] | ComputeMetricsOfRun(["mrr"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": None}, "Every row must contain an id of its query. Received: None"),
        ({"query": float("nan")}, "Every row must contain an id of its query"),
        ({"query": ["a"]}, "Ids must be text, bytes, numbers"),
        ({"query": 7}, r"\bQuery ids must be of one type. Received: number, str"),
        (
            {"label": float("nan")},
            r"Labels must be finite.*Received: nan for the query",
        ),
        ({"label": float("inf")}, "Labels must be finite"),
        ({"label": 2**53}, "below 2"),
        ({"label": "1"}, "`labels` must hold numbers. Received: '1'"),
        ({"score": None}, "`scores` must hold numbers. Received: None"),
        ({"score": 2**63}, "`scores` must hold floats, or integers of at most 64"),
        ({"score": -(2**63) - 1}, "integers of at most 64"),
        ({"weight": -1.0}, "Weights must be finite numbers"),
        ({"weight": float("inf")}, "Weights must be finite numbers"),
        ({"weight": 9.0}, "`sample_weight` must have the same value"),
        ({"language": "it"}, "'language'\\) must have the same value in all rows"),
        ({"language": ["de"]}, "`by` must hold hashable values"),
        ({"label": 2000.0}, "with a finite sum.*in query 'query 1'"),
    ],
)
def test_invalid_rows_raise(change, message, tmp_path):
    rows = [row for row in make_rows(2) if row["query"] == "query 1"]
    assert len(rows) > 2
    rows[1] = {**rows[1], **change}
    transform = ComputeMetricsOfRows(
        *COLUMNS, ["ndcg@10"], sample_weight="weight", by="language"
    )
    with pytest.raises(Exception, match=message):
        results_of(transform, rows, tmp_path)


def test_a_missing_column_raises(tmp_path):
    columns = r"a dict with the columns 'query', 'labels', 'score', without 'label'"
    with pytest.raises(Exception, match=rf"{columns}\. Did you mean 'labels'"):
        results_of(
            of_rows(["mrr"]),
            [{"query": 1, "labels": 1, "score": 1}],
            tmp_path,
        )


def unpaired(qrels, run):
    return qrels, [{**run[0], "query": "x"}]


def signed(qrels, run):
    rows = enumerate(qrels)
    return [{**row, "label": 2 * (number % 2) - 1} for number, row in rows], run


LAST_ITEM = make_tables(10)["run"][-1]["item"]


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (lambda q, r: (q, r + r[-1:]), {}, f"in `run` only once.*{LAST_ITEM!r} twice"),
        (lambda q, r: (q + q[:1], r), {}, "in `qrels` only once"),
        (unpaired, {}, "Received: 9 judged queries, and 1 other"),
        (lambda q, r: ([], []), {}, "Received: 0 judged queries, and 0 other"),
        (signed, {"unjudged": "drop"}, "only -1 and 1"),
        (lambda q, r: (q, [{**row, "item": 1.5} for row in r[:1]]), {}, "same type"),
        (lambda q, r: (q, r), {"missing_queries": "error"}, "'query 5'"),
        (lambda q, r: (q, r), {"unjudged_queries": "error"}, "'query 7'"),
    ],
)
def test_tables_that_do_not_pair_raise(change, arguments, message, tmp_path):
    qrels, run = change(*make_tables(10).values())
    transform = ComputeMetricsOfRun(["mrr"], **RUN, **arguments)
    with pytest.raises(Exception, match=message):
        results_of(transform, {"qrels": qrels, "run": run}, tmp_path)


def test_whole_list_metrics_of_empty_results_raise(tmp_path):
    with pytest.raises(Exception, match="'auc' has no value for a query without"):
        results_of(ComputeMetricsOfRun(["auc"], **RUN), make_tables(10), tmp_path)


def test_code_blocks_print_the_output_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = pathlib.Path(__file__).parent.parent / "docs" / "guide" / "large-tables.md"
    run_blocks(page, section="Tables on Beam")


def test_docstring_examples():
    failed, tried = doctest.testmod(tfrankmetrics.beam)
    assert tried
    assert not failed
