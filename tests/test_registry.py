"""The registry, the classes and the tests' tables name the same things."""

import inspect

import pytest
from cases import CASES, CLASSES

import tfrankmetrics as tfr
from tfrankmetrics.registry import FORMULAS

ARGUMENTS_OF_EVERY_CLASS = {"self", "k", "name", "dtype"}


def test_every_formula_has_a_class_and_cases():
    assert set(CLASSES) == set(FORMULAS) == {case.name for case in CASES}
    for name, metric_class in CLASSES.items():
        assert metric_class.formula == name
        assert metric_class.__name__ in tfr.__all__


@pytest.mark.parametrize("name", FORMULAS)
def test_the_signature_of_a_class_is_that_of_its_formula(name):
    signature = inspect.signature(CLASSES[name].__init__).parameters
    defaults = {
        argument: parameter.default
        for argument, parameter in signature.items()
        if argument not in ARGUMENTS_OF_EVERY_CLASS
    }
    formula = {option: p.default for option, p in FORMULAS[name].parameters().items()}
    assert defaults == formula
    assert signature["k"].default is None


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
    assert set(config) == set(arguments) - {"self"}
    assert config["k"] == 4
    assert config["name"] == "x"
    assert config["dtype"] == "float64"
