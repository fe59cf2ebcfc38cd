"""The registry, the classes and what they document say the same."""

import inspect
import re

import pytest
from cases import CASES, CLASSES

import tfrankmetrics as tfr
from tfrankmetrics.registry import FORMULAS

WAY_IN = {"inputs", "duplicates"}
ARGUMENTS_OF_EVERY_CLASS = {"self", "k", "convention", "name", "dtype", *WAY_IN}


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
    options = signature.keys() - ARGUMENTS_OF_EVERY_CLASS
    assert options == FORMULAS[name].parameters().keys()
    # None is the convention's choice, or the default.
    assert all(
        parameter.default is None
        for argument, parameter in signature.items()
        if argument != "self"
    )


@pytest.mark.parametrize("name", FORMULAS)
def test_the_documented_default_is_that_of_the_formula(name):
    documentation = inspect.getdoc(CLASSES[name])
    for option, parameter in FORMULAS[name].parameters().items():
        entry = re.search(
            rf"^    {option}: ((?:.*\n)(?:     .*\n)*)", documentation, re.M
        )
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
    # A convention is the options that it stands for.
    assert set(config) == set(arguments) - {"self", "convention"}
    assert config["k"] == 4
    assert config["name"] == "x"
    assert config["dtype"] == "float64"
