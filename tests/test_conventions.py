"""Tests the conventions, and the values that `docs/conventions.md` gives for them."""

import ast
import re

import pytest
from cases import METRICS, make_metric
from code_blocks import run_block
from conventions_document import (
    CHOICES,
    DOCUMENT,
    TOLERANCE,
    choice_examples,
    difference_examples,
    example_id,
    numbers,
    same_values,
)

import tfrankmetrics as tfr
from tfrankmetrics import CONVENTIONS

ROOT = DOCUMENT.parent.parent
PAIRS = [(name, metric) for name in CONVENTIONS for metric in CONVENTIONS[name].metrics]


@pytest.mark.parametrize(("name", "formula"), PAIRS)
def test_a_convention_sets_every_option(name, formula):
    convention = CONVENTIONS[name]
    assert convention.name == name
    options = METRICS[formula].types.keys() - {"seed"}
    if "zero_weight" not in convention.options:  # tools without weights of items
        options -= {"zero_weight"}
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


@pytest.mark.parametrize("name", CONVENTIONS["tf_ranking"].metrics)
def test_defaults_equal_the_tf_ranking_convention(name):
    convention = make_metric(name, 3, convention="tf_ranking").get_config()
    # By default, an item of weight 0 keeps its rank, as one of a very small weight.
    expected = convention | {"zero_weight": "keep"}
    assert make_metric(name, 3).get_config() == expected


def test_an_explicit_option_overrides_the_convention():
    labels, scores = [1, 3, 0, 2], [4, 3, 2, 1]
    linear = tfr.evaluate(labels, scores, ["ndcg"], gain="linear")
    expected = tfr.evaluate(labels, scores, ["ndcg"])
    assert linear != expected
    trec_eval = {"convention": "trec_eval"}
    assert tfr.evaluate(labels, scores, ["ndcg"], **trec_eval) == linear
    assert (
        tfr.evaluate(labels, scores, ["ndcg"], gain="exponential", **trec_eval)
        == expected
    )
    for options, values in (({}, linear), ({"gain": "exponential"}, expected)):
        for metric in (
            tfr.NDCG(**trec_eval, **options),
            tfr.RankingMetrics(["ndcg"], **trec_eval, **options),
        ):
            copy = type(metric).from_config(metric.get_config())
            copy.update_state(labels, scores)
            value = copy.result()
            value = value["ndcg"] if isinstance(value, dict) else value
            assert float(value) == pytest.approx(values["ndcg"], rel=1e-6)


def test_a_convention_applies_only_to_metrics_given_by_name():
    metrics = ["map@2", tfr.NDCG(name="mine")]
    values = tfr.evaluate(
        [1, 3, 0, 2], [4, 3, 2, 1], metrics, convention="torchmetrics"
    )
    assert values["map@2"] == 1.0
    assert values["mine"] == tfr.evaluate([1, 3, 0, 2], [4, 3, 2, 1], ["ndcg"])["ndcg"]


@pytest.mark.parametrize("word", ["trec", "LightGBM", 3, ["sklearn"]])
def test_unknown_conventions_raise(word):
    for make in (
        lambda: tfr.NDCG(convention=word),
        lambda: tfr.evaluate([1], [1], ["ndcg"], convention=word),
        lambda: tfr.RankingMetrics(["ndcg"], convention=word),
    ):
        with pytest.raises(
            ValueError, match=r"must be one of .*, or None\. Received"
        ) as e:
            make()
        assert repr(word) in str(e.value)


def test_a_convention_rejects_metrics_that_its_tools_lack():
    with pytest.raises(ValueError, match=r"covers only 'ndcg', 'map'"):
        tfr.evaluate([1], [1], ["ndcg", "mrr"], convention="lightgbm")
    with pytest.raises(ValueError, match="Received: 'mrr'"):
        tfr.MeanReciprocalRank(convention="sklearn")
    tfr.evaluate([1], [1], ["ndcg", tfr.MeanReciprocalRank()], convention="lightgbm")


def test_a_convention_without_metrics_given_by_name_raises():
    with pytest.raises(ValueError, match="'convention', which no such metric accepts"):
        tfr.evaluate([1], [1], [tfr.NDCG()], convention="sklearn")


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
