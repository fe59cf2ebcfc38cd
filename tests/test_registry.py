"""The registry, the classes and what they document say the same."""

import inspect
import re
import typing

import pytest
from cases import CASES, CLASSES

import tfrankmetrics as tfr
from tfrankmetrics.registry import FORMULAS

ARGUMENTS_OF_EVERY_CLASS = {"self", "convention", "inputs", "name", "dtype"}


def test_every_formula_has_a_class():
    assert set(CLASSES) == set(FORMULAS)


@pytest.mark.parametrize("name", FORMULAS)
def test_every_option_is_tried(name):
    tried = {
        option for case in CASES if case.name == name for option, _ in case.options
    }
    assert tried == FORMULAS[name].parameters().keys() - {"ties", "seed", "empty"}


@pytest.mark.parametrize("name", FORMULAS)
def test_the_options_of_a_class_are_those_of_its_formula(name):
    signature = inspect.signature(CLASSES[name].__init__).parameters
    formula = FORMULAS[name]
    expected = ARGUMENTS_OF_EVERY_CLASS | formula.parameters().keys()
    expected |= {"k"} if formula.has_cutoff else set()
    expected |= {"duplicates"} if "ids" in formula.inputs else set()
    assert signature.keys() == expected
    # None is the convention's choice, or the default.
    assert all(
        parameter.default is None
        for argument, parameter in signature.items()
        if argument != "self"
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_the_ways_in_of_a_class_are_those_of_its_formula(name):
    annotation = typing.get_type_hints(CLASSES[name].__init__)["inputs"]
    choices, _ = typing.get_args(annotation)
    assert typing.get_args(choices) == FORMULAS[name].inputs


@pytest.mark.parametrize("name", FORMULAS)
def test_the_documented_default_is_that_of_the_formula(name):
    documentation = inspect.getdoc(CLASSES[name])
    for option, parameter in FORMULAS[name].parameters().items():
        entry = re.search(
            rf"^    {option}: ((?:.*\n)(?:     .*\n)*)", documentation, re.M
        )
        assert entry, option
        if option != "seed":
            default = str(parameter.default)
            assert re.search(rf'"?{re.escape(default)}"? \(default', entry[1]), option


def test_shared_options_are_those_of_some_metric():
    everything = {
        option
        for formula in FORMULAS.values()
        for option, parameter in formula.parameters().items()
    }
    for function in (tfr.RankingMetrics.__init__, tfr.evaluate):
        keywords = {
            name
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        # `denominator` means another thing for each metric: it is set on objects.
        assert everything - {"denominator"} <= keywords


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_config_is_complete(case):
    config = case.metric(k=4, name="x", dtype="float64").get_config()
    arguments = inspect.signature(CLASSES[case.name].__init__).parameters
    # A convention is the options that it stands for; `duplicates` is of ids alone.
    assert set(config) == set(arguments) - {"self", "convention", "duplicates"}
    assert config.get("k") == (4 if FORMULAS[case.name].has_cutoff else None)
    assert config["name"] == "x"
    assert config["dtype"] == "float64"
