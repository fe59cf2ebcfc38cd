"""Tests the conventions, and the values that `docs/conventions.md` gives for them."""

import ast
import math
import re

import numpy as np
import pytest
from cases import METRICS, make_metric
from code_blocks import run_block
from conventions_document import (
    CHOICES,
    DOCUMENT,
    TOLERANCE,
    choice_examples,
    difference_examples,
    differences_from_trec_eval,
    example_id,
    numbers,
    same_values,
)

import tfrankmetrics as trm
from tfrankmetrics import CONVENTIONS

ROOT = DOCUMENT.parent.parent
PAIRS = [(name, metric) for name in CONVENTIONS for metric in CONVENTIONS[name].metrics]


@pytest.mark.parametrize(("name", "formula"), PAIRS)
def test_a_convention_sets_every_option(name, formula):
    convention = CONVENTIONS[name]
    assert convention.name == name
    options = METRICS[formula].types.keys()
    if "zero_weight" not in convention.options:  # tools without weights of items
        options -= {"zero_weight"}
    lacking = options - convention.options.keys() - {"denominator"}
    assert not lacking, f"add {lacking} to {name!r} in conventions.py"
    chosen = {option: convention.choice(option, formula) for option in options}
    config = make_metric(formula, 3, convention=name).get_config()
    assert {option: config[option] for option in options} == chosen


@pytest.mark.parametrize("convention", CONVENTIONS.values(), ids=lambda c: c.name)
def test_every_option_of_a_convention_is_used_by_a_metric(convention):
    taken = {
        option for metric in convention.metrics for option in METRICS[metric].types
    }
    assert convention.options.keys() <= taken | {"k"}
    printed = str(convention)
    for word in (convention.name, convention.tools, *convention.options):
        assert word in printed


def test_tools_that_share_all_but_one_metric_are_known_by_name():
    """pytrec-eval has no RBP, and that of ranx is graded."""
    assert "(rbp: trec_eval only)" in str(CONVENTIONS["trec_eval"])
    for tool in ("trec_eval", "pytrec-eval", "ranx"):
        with pytest.raises(ValueError, match="Did you mean 'trec_eval'"):
            trm.evaluate([[1]], [[1]], ["map"], convention=f"{tool}s")


@pytest.mark.parametrize("name", CONVENTIONS["tf_ranking"].metrics)
def test_defaults_equal_the_tf_ranking_convention(name):
    convention = make_metric(name, 3, convention="tf_ranking").get_config()
    # By default, an item of weight 0 keeps its rank, as one of a very small weight.
    expected = convention | {"zero_weight": "keep"}
    assert make_metric(name, 3).get_config() == expected


def test_an_explicit_option_overrides_the_convention():
    labels, scores = [1, 3, 0, 2], [4, 3, 2, 1]
    linear = trm.evaluate(labels, scores, ["ndcg"], gain="linear")
    expected = trm.evaluate(labels, scores, ["ndcg"])
    assert linear != expected
    trec_eval = {"convention": "trec_eval"}
    assert trm.evaluate(labels, scores, ["ndcg"], **trec_eval) == linear
    assert (
        trm.evaluate(labels, scores, ["ndcg"], gain="exponential", **trec_eval)
        == expected
    )
    for options, values in (({}, linear), ({"gain": "exponential"}, expected)):
        for metric in (
            trm.NDCG(**trec_eval, **options),
            trm.RankingMetrics(["ndcg"], **trec_eval, **options),
        ):
            copy = type(metric).from_config(metric.get_config())
            copy.update_state(labels, scores)
            value = copy.result()
            value = value["ndcg"] if isinstance(value, dict) else value
            assert float(value) == pytest.approx(values["ndcg"], rel=1e-6)


def test_a_copy_of_an_object_keeps_the_order_of_trec_eval():
    """By its ids, z is before a. Its options alone would not say so."""
    metric = trm.MeanReciprocalRank(convention="trec_eval")
    copy = trm.MeanReciprocalRank.from_config(metric.get_config())
    qrels, run = {"q": {"z": 1}}, {"q": {"a": 1.0, "z": 1.0}}
    for each in (metric, copy):
        assert trm.evaluate_run(qrels, run, [each]) == {"mrr": 1.0}


@pytest.mark.parametrize(
    ("metric", "at_32"),
    [("ndcg", 1 / math.log2(33)), ("map", 1 / 32), ("precision", 1 / 32)],
)
def test_xgboost_reads_32_ranks_without_a_cutoff(metric, at_32):
    """Only the last of 32 or 33 items is relevant."""
    options = {"metrics": [metric], "convention": "xgboost"}
    for size, expected in ((32, at_32), (33, 0.0)):
        expected = {metric: pytest.approx(expected, rel=1e-6)}
        labels, scores = [0] * (size - 1) + [1], [*range(size, 0, -1)]
        assert trm.evaluate(labels, scores, **options) == expected
        assert trm.evaluate_rows([0] * size, labels, scores, **options) == expected
        qrels, run = {"q": [size - 1]}, {"q": [*range(size)]}
        assert trm.evaluate_run(qrels, run, **options) == expected
        vectors = [[1.0]], [[score] for score in scores]
        found = trm.evaluate_retrieval(*vectors, [size - 1], **options)
        assert found == expected
        explained = trm.explain(labels, scores, metric, convention="xgboost")
        assert explained.value == expected[metric]
        made = make_metric(metric, convention="xgboost")
        assert (made.name, made.k) == (metric, 32)
        copy = type(made).from_config(made.get_config())
        for each in (made, copy, trm.RankingMetrics(**options)):
            each.update_state([labels], [scores])
            value = each.result()
            value = value[metric] if isinstance(value, dict) else value
            assert float(value) == expected[metric]
    whole = trm.evaluate(labels, scores, [f"{metric}@33"], convention="xgboost")
    assert whole[f"{metric}@33"] > 0


# Labels, scores and RBP as trec_eval 10 prints it. It continues with p = 0.9, and divides
# labels by the largest one of the query, retrieved or not, if that is above 1.
RBP_OF_TREC_EVAL = [
    ([2, 0, 1], [3, 2, 1], 0.1 * (2 / 2 + 1 / 2 * 0.9**2)),  # 0.1405
    ([1, 0, 1], [3, 2, 1], 0.1 * (1 + 0.9**2)),
    ([0.5, 0, 0.25], [3, 2, 1], 0.1 * (0.5 + 0.25 * 0.9**2)),
    ([0, 0, 0], [3, 2, 1], 0.0),
    ([1, -1, 4], [3, 2, -np.inf], 0.1 * (1 / 4)),
]


@pytest.mark.parametrize(("labels", "scores", "expected"), RBP_OF_TREC_EVAL)
def test_rbp_of_trec_eval_by_hand(labels, scores, expected):
    metric = trm.RankBiasedPrecision(convention="trec_eval", name="object")
    found = trm.evaluate(labels, scores, ["rbp", metric], convention="trec_eval")
    assert found == dict.fromkeys(["rbp", "object"], pytest.approx(expected))
    rows = ["q"] * 3, labels, scores
    found = trm.evaluate_rows(*rows, ["rbp"], convention="trec_eval")
    assert found == {"rbp": pytest.approx(expected)}
    metric.update_state([labels], [scores])
    assert float(metric.result()) == pytest.approx(expected, rel=1e-6)
    run = {"q": {item: x for item, x in zip("abc", scores) if x != -np.inf}}
    qrels = {"q": dict(zip("abc", labels))}
    found = trm.evaluate_run(qrels, run, ["rbp"], convention="trec_eval")
    assert found == {"rbp": pytest.approx(expected)}
    explained = trm.explain_run(qrels, run, metric, "q")
    assert explained.value == pytest.approx(expected)


def test_rbp_of_trec_eval_by_hand_of_ids_and_catalogs():
    truth = {"ids": [[0, 2]], "relevance": [[2, 1]]}
    for inputs, found in (("ids", [[0, 1, 2]]), ("catalog", [[3, 2, 1]])):
        options = {"inputs": inputs, "convention": "trec_eval"}
        values = trm.evaluate(truth, found, ["rbp", "rbp@1"], **options)
        assert values == {"rbp": pytest.approx(0.1405), "rbp@1": pytest.approx(0.1)}
    retrieved = {"ids": [[0, 2]], "relevance": [[2, 4]]}, [[0, 1]]
    values = trm.evaluate(*retrieved, ["rbp"], inputs="ids", convention="trec_eval")
    assert values == {"rbp": pytest.approx(0.1 * 2 / 4)}  # item 2 was not retrieved
    vectors = [[1.0]], [[3.0], [2.0], [1.0]]
    truth = {"ids": [[0, 2]], "relevance": [[2, 1]]}
    found = trm.evaluate_retrieval(*vectors, truth, ["rbp"], convention="trec_eval")
    assert found == {"rbp": pytest.approx(0.1405)}


def test_rbp_of_ranx_adds_up_the_labels():
    found = trm.evaluate([2, 0, 1], [3, 2, 1], ["rbp"], graded=True)
    assert found == {"rbp": pytest.approx(0.2 * (2 + 0.8**2))}


def test_a_convention_applies_only_to_metrics_given_by_name():
    metrics = ["map@2", trm.NDCG(name="mine")]
    values = trm.evaluate(
        [1, 3, 0, 2], [4, 3, 2, 1], metrics, convention="torchmetrics"
    )
    assert values["map@2"] == 1.0
    assert values["mine"] == trm.evaluate([1, 3, 0, 2], [4, 3, 2, 1], ["ndcg"])["ndcg"]


@pytest.mark.parametrize("word", ["trec", "LightGBM", 3, ["sklearn"]])
def test_unknown_conventions_raise(word):
    for make in (
        lambda: trm.NDCG(convention=word),
        lambda: trm.evaluate([1], [1], ["ndcg"], convention=word),
        lambda: trm.RankingMetrics(["ndcg"], convention=word),
    ):
        with pytest.raises(
            ValueError, match=r"must be one of .*, or None\. Received"
        ) as e:
            make()
        assert repr(word) in str(e.value)


def test_a_convention_rejects_metrics_that_its_tools_lack():
    with pytest.raises(ValueError, match=r"covers only 'ndcg', 'map'"):
        trm.evaluate([1], [1], ["ndcg", "mrr"], convention="lightgbm")
    with pytest.raises(ValueError, match="Received: 'mrr'"):
        trm.MeanReciprocalRank(convention="sklearn")
    trm.evaluate([1], [1], ["ndcg", trm.MeanReciprocalRank()], convention="lightgbm")


def test_a_convention_without_metrics_given_by_name_raises():
    with pytest.raises(ValueError, match="'convention', which no such metric accepts"):
        trm.evaluate([1], [1], [trm.NDCG()], convention="sklearn")


@pytest.mark.filterwarnings("ignore:A weight of 0 does not mask")
@pytest.mark.parametrize(("example", "rows"), choice_examples(), ids=example_id)
def test_values_in_the_document(example, rows):
    for row in rows:
        for options in row.ours:
            assert len(row.values) == 1
            value = example.value(**options)
            assert value == pytest.approx(row.values[0], abs=TOLERANCE), options


@pytest.mark.filterwarnings("ignore:The exponential gain")
@pytest.mark.parametrize(
    ("example", "tf_ranking", "keras_rs", "ours"), difference_examples(), ids=example_id
)
def test_differences_in_the_document(example, tf_ranking, keras_rs, ours):
    assert same_values([example.value()], numbers(ours))
    assert same_values([example.value(convention="tf_ranking")], numbers(ours))


def test_differences_from_trec_eval_in_the_document():
    """The values of trec_eval are those that version 10.0 prints."""
    rows = differences_from_trec_eval()
    assert [numbers(theirs) for _, theirs, *_ in rows] == [[0.0], [0.2]]
    for example, _, ours, _ in rows:
        call = re.search(r"`(evaluate_rows\(.*\))`", example)[1]
        (value,) = eval(call, {"evaluate_rows": trm.evaluate_rows}).values()
        assert same_values([value], numbers(ours))
    hole = trm.HoleAtK(5, denominator="k")
    found = trm.evaluate_rows(["q", "q"], [0, -1], [2, 1], [hole])
    assert found == {"hole@5": 0.2}


def test_the_document_is_complete():
    """Options that tools set differently have a table; the versions are the pinned."""
    shown = {
        (example.metric, option) if option == "denominator" else option
        for example, rows in choice_examples()
        for row in rows
        for options in row.ours
        for option in options
    }
    names = ("map", "precision", "f1", "bpref", "precision_ia")
    by_metric = {(name, "denominator") for name in names}
    choices = {
        option: {
            c.choice(option, metric)
            for name, metric in PAIRS
            for c in [CONVENTIONS[name]]
            if option in METRICS[metric].types and option in c.options
        }
        for option in {option for c in CONVENTIONS.values() for option in c.options}
    }
    differ = {option for option, chosen in choices.items() if len(chosen) > 1}
    assert shown >= {*differ, *by_metric, "convention"} - {"denominator"}
    assert len(difference_examples()) == 13
    text = DOCUMENT.read_text(encoding="utf-8")
    files = [ROOT / "pyproject.toml", ROOT / "validation/test_values_of_tools.py"]
    files += ROOT.glob("requirements/*.txt")
    pins = "".join(path.read_text() for path in files)
    listed = " ".join(re.search(r"versions are (.*?)\.\n\n", text, re.S)[1].split())
    tools = re.findall(r"([\w-]+) (\d[\d.]*\d)", listed)
    assert len(tools) == 21 + 2  # newer versions
    for tool, version in tools:
        package = {"TF-Ranking": "tensorflow-ranking"}.get(tool, tool.lower())
        assert re.search(rf'{package}=={re.escape(version)}["\s]', pins)


@pytest.mark.filterwarnings("ignore:A weight of 0 does not mask")
def test_the_blocks_run_after_the_definition_of_show():
    """What `show` prints is in the table below, and the other calls are copyable too."""
    text = DOCUMENT.read_text(encoding="utf-8")
    names = {}
    first, *_ = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    (definition,) = re.findall(
        r"^```python\n([^`]*?^def show\(.*?)^```", text, re.M | re.S
    )
    run_block(first + definition, "the definition", names)
    for code, table in CHOICES.findall(text):
        call = ast.unparse(ast.parse(code.strip()))
        printed = run_block(code, call, names)
        for line in printed.splitlines():
            assert f"| {line.split()[0]}" in table, call
