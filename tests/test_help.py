"""`help()` of each public name describes every argument, and names only what exists."""

import builtins
import inspect
import re
import typing

import pytest
from cases import CLASSES, METRICS

import tfrankmetrics as trm
from tfrankmetrics import options, testing
from tfrankmetrics.comparison.estimates import Difference, JudgeBias, Mean
from tfrankmetrics.comparison.gate import Decision
from tfrankmetrics.comparison.query_tables import QueryTable
from tfrankmetrics.metrics.measure import declarations

PUBLIC = {name: getattr(trm, name) for name in trm.__all__}
PUBLIC |= {f"testing.{name}": getattr(testing, name) for name in testing.__all__}
# The parts of results, which the reference documents.
PUBLIC |= {
    each.__name__: each for each in (Mean, Difference, JudgeBias, Decision, QueryTable)
}
CALLED = {name: each for name, each in PUBLIC.items() if callable(each)}
# Made by the functions of the package, not by its users.
RESULTS = {"Comparison", "Explanation", "QueryValues", "RunValues", "SlicedValues"}
RESULTS |= {"Mean", "Difference", "JudgeBias", "Decision", "QueryTable"}
RESULTS |= {"RankedLists", "RankingWarning"}
RESULTS |= {"Options"}  # a dict of the options
# What the class docstring explains: formulas call the methods of ranked lists.
INTERNAL = {"RankedLists"}
# Names of Keras, TensorFlow, PyTorch and Python, and of what they pass.
OF_OTHERS = {
    *("CSVLogger", "DataLoader", "Dataset", "EarlyStopping", "Literal"),
    *(
        "ModelCheckpoint",
        "callbacks",
        "compile",
        "fit",
        "json",
        "keras.utils.PyDataset",
    ),
    *("jax.jit", "jax.lax.psum", "jax.lax.scan", "jax.shard_map", "jax.vmap"),
    *("math.inf", "model.compile", "model.predict", "model.query_tower", "pickle"),
    *("steps_per_execution", "tf.data.Dataset", "tf.errors.InvalidArgumentError"),
    *("tf.function", "torch.distributed", "torch.save", "validation_data"),
    # Parts of examples and of data.
    *("exposure.of_items", "exposure.xp", "lists.xp", "xp.cond", "divide_no_nan"),
    *("language", "query", "relevance", "valid", "with_padding"),
}


def methods_of(cls):
    """The methods that `help` shows and Keras does not define."""
    for name, each in inspect.getmembers(cls, inspect.isroutine):
        module = getattr(each, "__module__", None) or ""
        is_ours = module.startswith("tfrankmetrics")
        if is_ours and not name.startswith(("_", "on_")):
            yield f"{cls.__name__}.{name}", each


def parameters_of(function):
    kinds = inspect.Parameter
    for each in inspect.signature(function).parameters.values():
        if each.name in ("self", "cls") or each.name.startswith("_"):
            continue
        stars = {kinds.VAR_KEYWORD: "**", kinds.VAR_POSITIONAL: "*"}
        yield stars.get(each.kind, "") + each.name


def description_of(documentation, argument):
    """The text about an argument in a docstring; None without one."""
    name = re.escape(argument)
    text = re.search(
        rf"^ +{name}: ((?:.*\n)(?:     .*\n)*)", f"{documentation}\n", re.M
    )
    return text and " ".join(text[1].split())


DOCUMENTED = {name: each for name, each in CALLED.items() if name not in RESULTS}
for name in sorted(CALLED.keys() - INTERNAL):
    if inspect.isclass(CALLED[name]):
        DOCUMENTED |= dict(methods_of(CALLED[name]))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_argument_is_described(name):
    documentation = inspect.getdoc(DOCUMENTED[name])
    for argument in parameters_of(DOCUMENTED[name]):
        text = description_of(documentation, argument)
        assert text, f"describe `{argument}` in the docstring of {name}"
        assert not text.startswith("As in"), f"say what `{argument}` of {name} is"


@pytest.mark.parametrize("name", METRICS)
def test_help_lists_the_choices_and_the_default_of_each_option(name):
    cls = CLASSES[name]
    documentation = inspect.getdoc(cls)
    for argument, field in cls.fields.items():
        kind = METRICS[name].types.get(argument, field.type)
        if typing.get_origin(kind) is not typing.Literal:
            continue
        text = description_of(documentation, argument)
        choices = set(re.findall(r'"([^"]+)"', re.sub(r'="\w+"', "", text)))
        assert choices == {*typing.get_args(kind)} - {None}, f"`{argument}` of {name}"
        assert "default" in text.lower() or len(choices) == 1, f"`{argument}`"
        assert field.default in text, f"`{argument}` of {name}"


@pytest.mark.parametrize("method", ["update_state", "result", "reset_state"])
@pytest.mark.parametrize("cls", [trm.NDCG, trm.RankingMetrics], ids=["NDCG", "many"])
def test_help_shows_the_methods_of_metrics(cls, method):
    own = inspect.getattr_static(cls, method)
    assert inspect.getdoc(own)
    made = cls(k=3) if cls is trm.NDCG else cls(["mrr"])
    # An object has the same method, with this documentation.
    assert inspect.getdoc(getattr(made, method)) == inspect.getdoc(own)


def test_names_in_help_exist():
    known = {*dir(builtins), *METRICS, *vars(options), *OF_OTHERS}
    known |= {alias for each in declarations().values() for alias in each.names}
    known |= {name.removeprefix("testing.") for name in PUBLIC}
    for each in PUBLIC.values():
        known |= {*dir(each)}
    for each in DOCUMENTED.values():
        known |= {name.lstrip("*") for name in parameters_of(each)}
    known |= {argument for each in METRICS.values() for argument in each.types}
    for each in PUBLIC.values():  # arguments, and attributes of results
        known |= {*re.findall(r"^ +(\w+): ", inspect.getdoc(each) or "", re.M)}
        known |= {*getattr(each, "__dataclass_fields__", ())}
    unknown = {}
    for name, each in {**PUBLIC, **DOCUMENTED}.items():
        for text in re.findall(
            r"`(?:tfrankmetrics\.)?([A-Za-z_][\w.]*)(?:\([^`]*\))?`",
            inspect.getdoc(each) or "",
        ):
            first, _, rest = text.partition(".")
            exists = text in known or text in PUBLIC or text == "_"
            exists |= first in PUBLIC and hasattr(PUBLIC[first], rest)
            if not exists:
                unknown.setdefault(text, []).append(name)
    assert not unknown, " ".join(unknown)
