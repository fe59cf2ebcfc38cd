"""Tests metric declarations: signatures, options, documentation and errors."""

import dataclasses
import inspect
import math
import re
import typing
from typing import Literal

import oracle
import pytest
import tensorflow as tf
from cases import CASES, CLASSES, METRICS, OWN_METRICS, TESTED_ELSEWHERE, make_metric

import tfrankmetrics as trm
from tfrankmetrics import item_data, options
from tfrankmetrics.metrics import fields
from tfrankmetrics.testing import check_metric

BASES = (trm.TopKMetric, trm.WholeListMetric, trm.SubtopicMetric)
SHARED = ["ties", "empty", "zero_weight", "convention", "inputs"]
SHARED += ["name", "dtype"]
FUNCTIONS = [trm.evaluate, trm.evaluate_rows, trm.evaluate_run, trm.evaluate_retrieval]
FUNCTIONS += [trm.explain, trm.explain_rows, trm.explain_run, trm.explain_retrieval]
FUNCTIONS += [trm.RankingMetrics, trm.EvaluateLists, trm.EvaluateRows]
FUNCTIONS += [trm.EvaluateRetrieval]


def own_options(name):
    """The options that a metric's own class declares or narrows."""
    return inspect.get_annotations(CLASSES[name])


def description_of(documentation, option):
    """The text about an argument in a docstring."""
    text = f"{documentation}\n"
    found = re.search(rf"^ +{option}: ((?:.*\n)(?:     .*\n)*)", text, re.M)
    first = text.partition("\n")[0]
    assert found, f"describe `{option}` in the docstring that begins {first!r}"
    return " ".join(found[1].split())


@pytest.mark.parametrize("name", METRICS)
def test_signatures_list_the_cutoff_then_own_options_then_shared_ones(name):
    parameters = [*inspect.signature(CLASSES[name]).parameters]
    if METRICS[name].has_cutoff:
        assert parameters.pop(0) == "k"
    if "ids" in METRICS[name].inputs:
        parameters.remove("duplicates")
    own = len(parameters) - len(SHARED)
    assert parameters[own:] == SHARED
    assert {*parameters[:own]} | {*SHARED} == {*SHARED, *own_options(name)}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_options_are_attributes(case):
    ties = "expected" if case.name == "tied" else "stable"
    metric = case.metric(k=4, name="x", ties=ties, dtype="float64")
    for option, choice in case.options:
        assert getattr(metric, option) == choice
    for option, default in METRICS[case.name].defaults.items():
        if option not in (*dict(case.options), "ties"):
            assert getattr(metric, option) == default
    assert (metric.ties, metric.inputs, metric.name) == (ties, "labels", "x")
    if METRICS[case.name].has_cutoff:
        assert metric.k == 4


def test_options_are_read_only():
    metric = trm.NDCG(k=3)
    for option in ("k", "gain", "ties", "inputs"):
        with pytest.raises(AttributeError):
            setattr(metric, option, "linear")


def test_none_means_the_convention_or_the_default():
    assert trm.NDCG(gain=None, ties=None).gain == "exponential"
    from_trec_eval = trm.NDCG(gain=None, convention="trec_eval")
    assert (from_trec_eval.gain, from_trec_eval.ties) == ("linear", "stable")
    explicit = trm.NDCG(gain="exponential", convention="trec_eval")
    assert (explicit.gain, explicit.ties) == ("exponential", "stable")
    assert trm.NDCG(5).k == trm.NDCG(k=5).k == 5


@pytest.mark.parametrize("case", CASES, ids=str)
def test_configs_have_every_option(case):
    config = case.metric(k=4, name="x", dtype="float64").get_config()
    arguments = inspect.signature(CLASSES[case.name]).parameters
    # The config has a convention's options. `duplicates` is only for inputs="ids".
    assert set(config) == set(arguments) - {"convention", "duplicates"}
    assert config.get("k") == (4 if METRICS[case.name].has_cutoff else None)
    assert config["name"] == "x"
    assert config["dtype"] == "float64"


@pytest.mark.parametrize("name", METRICS)
def test_the_cases_cover_every_option(name):
    covered = {
        option for case in CASES if case.name == name for option, _ in case.options
    }
    assert covered == METRICS[name].types.keys() - TESTED_ELSEWHERE


def test_the_oracle_defines_every_metric():
    lacking = {*METRICS} - {*oracle.METRICS}
    assert not lacking, f"define {lacking} in tests/oracle.py"


@pytest.mark.parametrize("name", METRICS)
def test_the_defaults_of_all_arguments_are_documented(name):
    """`tests/test_help.py` tests that each is described, with its choices."""
    documentation = inspect.getdoc(CLASSES[name])
    for option, parameter in inspect.signature(CLASSES[name]).parameters.items():
        if option not in ("name", "dtype"):  # None, which stands for another value
            text = description_of(documentation, option)
            assert str(parameter.default) in text, option


def test_the_options_type_has_every_option_of_every_metric():
    all_options = {option for metric in OWN_METRICS.values() for option in metric.types}
    # The choices of `denominator` differ between metrics, so it is set on objects.
    expected = all_options - {"denominator"} | {"convention"}
    types = typing.get_type_hints(trm.Options, include_extras=True)
    assert types.keys() == expected, "correct the keys of Options in options.py"
    documentation = inspect.getdoc(trm.Options)
    for option in types:
        assert description_of(documentation, option)
    for metric in OWN_METRICS.values():
        for option in metric.types.keys() - {"denominator"}:
            base, own = types[option], metric.types[option]
            if isinstance(base, type) and issubclass(base, item_data.ItemData):
                assert issubclass(own, base)
            elif typing.get_origin(own) is Literal:
                assert {*typing.get_args(own)} <= {*typing.get_args(base)}
            else:
                assert own == base


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_spell_their_arguments(function):
    signature = inspect.signature(function)
    # Without the quotes that Python 3.13 and earlier show around postponed types.
    assert len(str(signature).replace("'", "")) <= 600
    assert len(str(inspect.signature(trm.evaluate))) <= 600
    assert str(signature.parameters["options"]) == "**options: 'Unpack[Options]'"
    documentation = inspect.getdoc(function)
    assert "`tfrankmetrics.Options`" in documentation
    for name in signature.parameters.keys() - {"self", "options"}:
        assert re.search(rf"^ +(\w+, )*{name}(, \w+)*:", documentation, re.M), name
        if name not in ("inputs", "duplicates", "name", "dtype"):  # fields of all
            with pytest.raises(TypeError) as raised:
                declare(**{name: (float, 1.0)})
            is_reserved = "name of an argument" in str(raised.value)
            assert is_reserved, f"add {name} to _ARGUMENTS in metrics/fields.py"


def test_convention_names_are_the_keys_of_conventions():
    assert typing.get_args(options.ConventionName) == (*trm.CONVENTIONS,)


@pytest.mark.parametrize("name", METRICS)
def test_the_error_for_an_unknown_argument_lists_the_valid_ones(name):
    with pytest.raises(TypeError, match=r"ties, empty.*Received: 'gian'"):
        make_metric(name, 3, gian="linear")


def test_only_the_cutoff_may_be_given_by_position():
    for make, message in (
        (
            lambda: trm.NDCG(3, "linear"),
            "only `k` by position. Received: (3, 'linear')",
        ),
        (lambda: trm.PerQueryAUC(3), "nothing by position. Received: (3,)"),
    ):
        with pytest.raises(TypeError, match=re.escape(message)):
            make()


@pytest.mark.parametrize("name", METRICS)
def test_an_empty_list_counts_as_one_only_if_that_is_the_best_value(name):
    metric = METRICS[name]
    best = metric.range[0 if metric.lower_is_better else 1]
    choices = typing.get_args(metric.types["empty"])
    assert best == 1 or "one" not in choices
    declared = typing.get_args(CLASSES[name].fields["empty"].type)
    assert choices == declared, (
        f"Declare `empty: Literal{[*choices]}` in the class, for type checkers."
    )


def test_a_range_decides_on_the_choices_of_empty(declarations):
    assert declare("half_a").declaration.types["empty"] == Literal["zero", "skip"]
    up_to_1 = {"formula": lambda lists, gain: half(lists, gain) / 2, "facts": {}}
    choices = declare("half_b", **up_to_1).declaration.types["empty"]
    assert choices == Literal["zero", "one", "skip"]


def mean_rank(lists, gain):
    """The mean rank of all items, or 0 without any."""
    return tf.math.divide_no_nan(
        tf.reduce_sum(lists.expected(gain) * lists.ranks, axis=1), lists.num_retrieved
    )


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"range": (0, math.inf)}, "no value for a query without results"),
        ({"range": (0, math.inf), "without_results": 0}, (1.5 + 0) / 2),
        ({"range": (0, math.inf), "without_results": None}, "without results"),
    ],
    ids=["worst", "zero", "none"],
)
def test_the_value_of_a_missing_query_is_declared(declarations, facts, expected):
    """0 would be the best value of a metric in which lower is better."""
    facts = {"lower_is_better": True, **facts}
    declare("mean_rank", mean_rank, base=trm.WholeListMetric, facts=facts)
    qrels = {"q": {"a": 1, "b": 0}, "r": {"a": 1}}
    run = {"q": ["a", "b"]}
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            trm.evaluate_run(qrels, run, ["mean_rank"])
        assert trm.evaluate_run(qrels, run, ["mean_rank"], missing_queries="skip") == {
            "mean_rank": 1.5
        }
    else:
        assert trm.evaluate_run(qrels, run, ["mean_rank"]) == {"mean_rank": expected}


def test_unjudged_items_and_options_are_facts_of_a_declaration(declarations):
    length = lambda lists, gain: lists.num_retrieved  # noqa: E731
    for policy in ("drop", "keep"):
        facts = {"range": (0, math.inf), "unjudged": policy}
        facts["unaffected_by"] = ("ties",)
        declare(f"length_{policy}", length, base=trm.WholeListMetric, facts=facts)
    names = ["length_drop", "length_keep"]
    run = {"q": {"a": 2.0, "b": 1.0}}
    for unjudged in ("irrelevant", "drop"):
        found = trm.evaluate_run({"q": {"a": 1}}, run, names, unjudged=unjudged)
        assert found == {"length_drop": 1, "length_keep": 2}
    with pytest.raises(ValueError, match="'ties', which no such metric accepts"):
        trm.evaluate([[1]], [[1]], ["length_drop"], ties="stable")


def test_a_metric_may_have_conflicts_of_its_own(declarations):
    conflict = options.Conflict(
        ("beta", "empty"),
        lambda chosen: chosen["beta"] > 1 and chosen["empty"] == "skip",
        "A large beta counts empty lists.",
        "Pass empty='zero'.",
    )
    facts = {"range": (0, math.inf), "conflicts": (conflict,)}
    half_of = declare(formula=with_beta, beta=(float, 0.5), facts=facts)
    half_of(beta=1.0, empty="skip")
    with pytest.raises(ValueError, match=r"Received: beta=2.0, empty='skip'\. Pass"):
        half_of(beta=2.0, empty="skip")


@pytest.mark.parametrize(
    "call",
    [
        lambda **wrong: trm.evaluate([[1]], [[1]], ["ndcg"], **wrong),
        lambda **wrong: trm.evaluate_rows([1], [1], [1], ["ndcg"], **wrong),
        lambda **wrong: trm.RankingMetrics(["ndcg"], **wrong),
    ],
)
def test_the_error_for_an_unknown_option_suggests_a_valid_one(call):
    for error in (TypeError, ValueError):
        with pytest.raises(error, match=r"'gian'\. Did you mean 'gain'\?"):
            call(gian="linear")
    with pytest.raises(ValueError, match="must be set on a metric object"):
        call(denominator="hits")


def half(lists, gain):
    """A formula without options of its own."""
    return lists.sum_to_cutoffs(lists.expected(gain)) / 2


def with_beta(lists, gain, *, beta):
    return half(lists, gain) * beta


@dataclasses.dataclass(frozen=True)
class One(trm.ItemGain):
    """A gain of 1 for each item."""

    def __call__(self, items):
        return tf.cast(items.valid, tf.float64)


def declare(
    name="half",
    formula=half,
    gain=One,
    base=trm.TopKMetric,
    aliases=(),
    facts=frozenset({("range", (0, math.inf))}),
    **fields,
):
    """Declares a metric. Each field is a pair of a type and a default."""
    namespace = {field: default for field, (_, default) in fields.items()}
    namespace["__annotations__"] = {field: kind for field, (kind, _) in fields.items()}
    cls = type("Half", (base,), {**namespace, "__module__": __name__})
    facts = dict(facts)
    return trm.metric(name, formula=formula, gain=gain, aliases=aliases, **facts)(cls)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: declare("ndcg"), ValueError, "'ndcg', a name of tfrankmetrics.metrics.dcg.NDCG"),
        (lambda: declare("rprec"), ValueError, "'rprec', a name of"),  # an alias of another metric
        (lambda: declare("Half"), ValueError, "lower-case letters"),
        (lambda: declare("half@5"), ValueError, "lower-case letters"),
        (lambda: declare(base=tf.keras.metrics.Metric), TypeError, "a subclass of TopKMetric"),
        (lambda: declare(beta=(float, 0.5)), TypeError, "must be an option of the formula or of the gain.*'beta'"),
        (lambda: declare(gain=trm.BinaryGain), TypeError, "must be a field of the class.*without 'relevance_threshold'"),
        (lambda: declare(formula=with_beta, beta=(complex, 1)), TypeError, "type of an option must be a Literal.*complex"),
        (lambda: declare(empty=(Literal["half"], "half")), TypeError, "type of `empty` must be a Literal of some of 'zero', 'one', 'skip'"),
        (lambda: declare(inputs=(Literal["rows"], "rows")), TypeError, "type of `inputs` must be a Literal of some of"),
        (lambda: declare(ties=(str, "expected")), TypeError, "type of `ties` must be a Literal"),
        (lambda: declare(inputs=(str, "labels")), TypeError, "type of `inputs` must be a Literal"),
        (lambda: declare(k=(int | None, 1)), TypeError, "default of `k` must be None"),
        (lambda: declare(mask=(float, 1.0)), TypeError, "an argument of `evaluate`.*Received: `mask`"),
        (lambda: declare(formula=3), TypeError, "`formula` of `half` must be a function. Received: 3"),
        (lambda: declare(facts={"unjudged": "x"}), TypeError, "`unjudged` of `half` must be one of 'drop', 'keep', or None. Received: 'x'"),
        (lambda: declare(facts={"unaffected_by": "ties"}), TypeError, "`unaffected_by` of `half` must be a tuple of the names of options. Received: 'ties'"),
        (lambda: declare(facts={"unaffected_by": ("sed",)}), TypeError, "must name options. Received: 'sed'"),
        (lambda: declare(facts={"without_results": "best"}), TypeError, "`without_results` of `half` must be a finite number, or 'worst', or None"),
        (lambda: declare(facts={"lower_is_better": "no"}), TypeError, "`lower_is_better` of `half` must be True or False"),
        (lambda: declare(facts={"by_rank": ["gain"]}), TypeError, "`by_rank` of `half` must be a dict"),
        (lambda: declare(facts={"total": 1}), TypeError, "`total` of `half` must be a function"),
        (lambda: declare(facts={"conflicts": ("ties",)}), TypeError, "`conflicts` of `half` must be a tuple of"),
        (lambda: declare(gain=One()), TypeError, "must be a subclass of ItemGain.*not an object"),
        (lambda: declare(gain="linear"), TypeError, "must be a subclass of ItemGain.*Received: 'linear'"),
        (lambda: declare(aliases="HALF"), TypeError, "must be a tuple of names. Received: 'HALF'"),
        (lambda: declare(ties=(Literal["stable"], "expected")), ValueError, "`ties` of `half` must be 'stable'"),
        (lambda: declare(gain=trm.LabelGain, gain_=(str, "")), TypeError, "'gain_'|'gain'"),
        (lambda: declare(facts={"range": 1}), TypeError, "`range` of `half` must be a pair of numbers.*Received: 1"),
        (lambda: declare(facts={"range": (1, 0)}), TypeError, r"the lowest below the highest value. Received: \(1, 0\)"),
        (lambda: declare(empty=(Literal["one"], "one")), ValueError, "`empty` of `half` must be one of"),
    ],
)  # fmt: skip
def test_invalid_declarations_raise(declarations, make, error, message):
    before = dict(declarations)
    with pytest.raises(error, match=message):
        make()
    assert declarations == before


def test_a_field_needs_a_default(declarations):
    with pytest.raises(TypeError, match=r"must have a default\. Received: `beta`"):

        @trm.metric("half", formula=half, gain=One)
        class Half(trm.TopKMetric):
            beta: float


def test_undeclared_classes_raise():
    class Undeclared(trm.TopKMetric):
        pass

    for cls in (trm.TopKMetric, Undeclared):
        with pytest.raises(TypeError, match="declared with @tfrankmetrics"):
            cls(k=3)


ATTRIBUTES = {n for n in dir(trm.NDCG) if not n.startswith("__")}
ATTRIBUTES = sorted(ATTRIBUTES - {*trm.NDCG.fields})


@pytest.mark.parametrize("name", [*ATTRIBUTES, "declaration", "self"])
def test_a_field_does_not_hide_an_attribute(declarations, name):
    def formula(lists, gain, **options):
        return half(lists, gain)

    with pytest.raises(TypeError, match=f"Received: `{name}`"):
        declare(formula=formula, **{name: (float, 0.5)})


def test_a_field_does_not_hide_an_attribute_of_keras(declarations):
    def formula(lists, gain, *, variables):
        return half(lists, gain)

    message = "an attribute of.* Keras's metrics.*Received: `variables`"
    with pytest.raises(TypeError, match=message):
        # Before the first object of any metric, the declaration is accepted.
        declare(formula=formula, variables=(float, 0.5))()


def test_the_first_object_rejects_an_attribute_of_keras(declarations, monkeypatch):
    """At the declaration, the attributes of Keras's metrics are not known."""

    def formula(lists, gain, *, variables):
        return half(lists, gain)

    monkeypatch.setattr(fields, "_require_free_field", lambda *_, **__: None)
    metric = declare(formula=formula, variables=(float, 0.5))
    message = "attribute of Keras's metrics. Received: `variables` of Half"
    with pytest.raises(TypeError, match=message):
        metric()


def on_padding(lists, gain):
    return tf.reduce_sum(1.0 / tf.ones_like(gain(lists.ranked)), axis=1)


def share_of_batch(lists, gain):
    return half(lists, gain) / (1 + tf.reduce_sum(half(lists, gain)))


def share_of_total(lists, gain):
    """0 / 0 for a list whose gains are all 0."""
    return half(lists, gain) / lists.total(gain)[:, tf.newaxis]


def mean_of_batch(lists, gain):
    values = half(lists, gain)
    return tf.reduce_mean(values, axis=0, keepdims=True) * tf.ones_like(values)


def largest_gain(lists, gain):
    """Not linear in the gains: the largest one at the top of the list."""
    tops = [tf.reduce_max(lists.expected(gain)[:, :k], axis=1) for k in lists.cutoffs]
    return tf.stack(tops, axis=1)


class PaddingCounts(trm.ItemGain):
    """A gain that is not 0 for padding."""

    def __call__(self, items):
        return tf.cast(items.labels, tf.float64) + 1


class FirstItem(trm.ItemGain):
    """A gain of the first item alone, [B, 1]."""

    def __call__(self, items):
        return items.xp.astype(items.labels, items.xp.float64)[:, :1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"formula": lambda lists, gain: half(lists, gain)[:, 0]}, r"one for each cutoff.*shape \(1,\)"),
        ({"formula": lambda lists, gain: half(lists, gain)[:, :1]}, r"one for each cutoff.*shape \(1, 1\)"),
        ({"formula": lambda lists, gain: lists.expected(gain)}, r"one for each cutoff.*shape \(1, 4\)"),
        ({"formula": lambda lists, gain: lists.sum_to_cutoffs(lists.expected(gain)) / lists.k}, r"must equal the value at the cutoff k=4.*\[0\.\] without a cutoff"),
        ({"base": trm.WholeListMetric}, r"values \[B\].*shape \(1, 1\)"),
        ({"formula": lambda lists, gain: tf.cast(half(lists, gain), "float32")}, "Received: float32"),
        ({"formula": lambda lists, gain: None}, "must return float64.*Received: None"),
        ({"formula": lambda lists: 1.0}, "list of 4 items: TypeError"),
        ({"formula": lambda lists, gain: {}["x"]}, "list of 4 items: KeyError: 'x'"),
        ({"gain": trm.ItemGain}, "list of 4 items: NotImplementedError"),
        ({"gain": lambda: 1.0}, "must be a subclass of ItemGain"),
        ({"facts": {}}, r"must be in its range, \(0, 1\). Received: \[0.5 1.  2. \]"),
        ({"facts": {"range": (-1, 9)}}, r"without results must be the declared one, -1. Received: \[0. 0. 0.\]"),
        ({"gain": FirstItem}, r"gain of `half` must return a float64 number for each item.*\(1, 4\)"),
        ({"facts": {"by_rank": {"x": half}}}, r"column 'x' in `by_rank` of `half` must be a float64 number for each rank"),
        ({"gain": PaddingCounts}, "must not depend on padding"),
        ({"formula": on_padding, "base": trm.WholeListMetric}, "must not depend on padding"),
        ({"formula": share_of_batch}, "must not depend on the other lists"),
        ({"formula": share_of_total}, "must be a number for each list.*divide_no_nan"),
        ({"formula": mean_of_batch, "gain": trm.BinaryGain, "relevance_threshold": (float, 1.0)}, "must not depend on the other lists"),
        ({"formula": largest_gain, "gain": trm.BinaryGain, "relevance_threshold": (float, 1.0)}, "mean over all permutations"),
    ],
)  # fmt: skip
def test_a_metric_is_checked_on_small_lists(declarations, arguments, message):
    metric = declare(**arguments)
    with pytest.raises(TypeError, match=message):
        check_metric(metric)
    # The first use of a metric checks it.
    with pytest.raises(TypeError, match=message):
        trm.evaluate([[1, 0]], [[2, 1]], ["half"])
    with pytest.raises(TypeError, match=message):
        metric()


def test_a_formula_that_is_nan_raises_when_it_is_used(declarations):
    def nan_for_long_lists(lists, gain):
        factor = tf.where(lists.total(gain) > 8, tf.constant(math.nan, tf.float64), 1)
        return half(lists, gain) * factor[:, tf.newaxis]

    nan = declare(formula=nan_for_long_lists)
    with pytest.raises(ValueError, match=r"must be finite.* in query 0 for 'half@1'"):
        trm.evaluate([[1] * 9], [[1] * 9], [nan(k=1)])


def test_a_formula_may_support_only_single_orders(declarations):
    largest = declare(
        formula=largest_gain,
        gain=trm.BinaryGain,
        relevance_threshold=(float, 1.0),
        ties=(Literal["stable"], "stable"),
    )
    assert trm.evaluate([[0, 1]], [[1, 1]], [largest(k=1)]) == {"half@1": 0}


# The value of `tied` is not a mean over the orders of tied items.
@pytest.mark.parametrize("name", [name for name in METRICS if name != "tied"])
def test_the_metrics_of_the_library_pass_the_check(name):
    check_metric(CLASSES[name])


def test_metrics_with_the_same_class_name_are_told_apart(declarations):
    first = declare("half_a")
    second = declare("half_b", formula=lambda lists, gain: 2 * half(lists, gain))
    for cls in (first, second):
        again = tf.keras.metrics.deserialize(tf.keras.metrics.serialize(cls(k=2)))
        assert isinstance(again, cls)


def test_a_class_may_be_declared_again(declarations):
    """Running a notebook cell twice declares its metric again."""
    first = trm.evaluate([[1, 0]], [[2, 1]], [declare()(k=1)])
    again = declare(formula=lambda lists, gain: 2 * half(lists, gain))
    assert first == {"half@1": 1 / 2}
    assert trm.evaluate([[1, 0]], [[2, 1]], ["half@1"]) == {"half@1": 1}
    assert trm.evaluate([[1, 0]], [[2, 1]], [again(k=1)]) == {"half@1": 1}


def test_a_name_may_end_in_a_number(declarations):
    declare("half_2")
    for name, expected in (("half_2", 2 / 2), ("half_2@1", 1 / 2)):
        assert trm.evaluate([[1, 0]], [[2, 1]], [name]) == {name: expected}


def test_of_two_metrics_a_lower_value_is_better():
    """Callbacks of Keras 3 with mode="auto" read this."""
    directions = {name: cls()._direction for name, cls in CLASSES.items()}
    lower = ["arp", "first_relevant_rank", "coverage_error"]
    lower += ["tied", "hole", "rbp_residual"]
    assert {directions.pop(name) for name in lower} == {"down"}
    down = [name for name, each in directions.items() if each == "down"]
    assert not down, f"add {down} to `lower` in this test"
