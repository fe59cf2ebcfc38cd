"""Measures, which are metrics with their cutoff and options, and names of metrics.

The Keras classes and the functions that take names all make measures. So the rules for
names, cutoffs and options are here, once.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import tensorflow as tf

from tfrankmetrics.conventions import CONVENTION_OF, CONVENTIONS, Convention
from tfrankmetrics.inputs.formats import InputFormat, input_format
from tfrankmetrics.options import (
    WITHOUT_CUTOFF,
    Conflict,
    ConventionName,
    Cutoff,
    Separator,
    UnknownOptionError,
    check_conflicts,
    check_option,
    did_you_mean,
    listed,
    shortened,
)
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists

# By name, in the order of their declaration. `@metric` enters each metric here.
DECLARATIONS: dict[str, Declaration] = {}


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Declaration:
    """A metric as its class declares it."""

    name: str
    aliases: tuple[str, ...]  # the names that other tools use
    formula: Callable[..., tf.Tensor]  # float64 [B, C], or [B] without a cutoff
    gain: Callable[..., ItemGain]
    # The total gain of each list, [B], or another number that is 0 for an empty list;
    # or one for each cutoff, [B, C].
    total: Callable[[RankedLists, ItemGain], tf.Tensor]
    lower_is_better: bool
    range: tuple[float, float]  # the lowest and the highest possible value
    without_results: float | None  # the value of an empty result; None if it has none
    unjudged: Literal["drop", "keep"] | None  # None: as `unjudged=` of a function says
    unaffected_by: tuple[str, ...]  # options by name that are for the metrics beside it
    conflicts: tuple[Conflict, ...]
    has_cutoff: bool
    has_subtopics: bool  # reads labels [B, N, T]
    inputs: tuple[str, ...]  # the input formats that it supports
    defaults: Mapping[str, Any]  # of its options
    types: Mapping[str, Any]  # of its options
    cls: type[Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Its name and its aliases."""
        return (self.name, *self.aliases)


@dataclasses.dataclass(frozen=True)
class Measure:
    """A metric with its cutoff and options. Equal measures compute the same values."""

    declaration: Declaration
    k: int | None
    options: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """`ndcg@10`, or `ndcg` without a cutoff."""
        return self.name_with("@")

    def name_with(self, separator: str) -> str:
        """`ndcg_10`, with the separator "_", or `ndcg` without a cutoff."""
        name = self.declaration.name
        return name if self.k is None else f"{name}{separator}{self.k}"

    @property
    def without_cutoff(self) -> Measure:
        """The same metric with the same options, without a cutoff."""
        return dataclasses.replace(self, k=None)

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(f'{o}={v!r}' for o, v in self.options)})"

    def __getitem__(self, option: str) -> Any:
        return dict(self.options)[option]

    def __reduce__(self) -> tuple:
        """Copies and pickles by the class, since declarations are equal by identity."""
        return _of_class, (self.declaration.cls, self.k, self.options)

    @property
    def gain(self) -> ItemGain:
        """What each item contributes to this metric."""
        function = self.declaration.gain
        gain = function(**self._options_of(function))
        if not isinstance(gain, ItemGain):
            raise TypeError(
                f"The gain of `{self.declaration.name}` must be a subclass of "
                f"ItemGain, such as BinaryGain. Received: {function!r}."
            )
        return gain

    def values(self, lists: RankedLists) -> tf.Tensor:
        """The metric's value at every cutoff of the lists, float64 `[B, C]`.

        `[B, 1]` for a metric without a cutoff.
        """
        formula = self.declaration.formula
        values = formula(lists, self.gain, **self._options_of(formula))
        has_cutoff = self.declaration.has_cutoff
        shape = tf.TensorShape([None, len(lists.cutoffs)] if has_cutoff else [None])
        is_float64 = tf.is_tensor(values) and values.dtype == tf.float64
        if not is_float64 or not values.shape.is_compatible_with(shape):
            form = "[B, C], one for each cutoff," if has_cutoff else "[B]"
            received = repr(values)
            if tf.is_tensor(values):
                received = f"{values.dtype.name} values of shape {values.shape}"
            raise TypeError(
                f"The formula of `{self.declaration.name}` must return float64 values "
                f"{form} here {shape}. Received: {received}."
                + " `lists.sum_to_cutoffs` sums over ranks."
                * has_cutoff
            )
        return values if has_cutoff else values[:, tf.newaxis]

    def total(self, lists: RankedLists) -> tf.Tensor:
        """The total gain of each list, `[B]` or `[B, C]`; 0 for an empty list."""
        return self.declaration.total(lists, self.gain)

    def _options_of(self, function: Callable) -> dict[str, Any]:
        return {name: self[name] for name in keyword_parameters(function)}


def _of_class(cls: type[Any], k: int | None, options: tuple) -> Measure:
    return Measure(cls.declaration, k, options)


def keyword_parameters(function: Callable) -> list[str]:
    """The keyword-only parameters of a formula, or the fields of a gain."""
    parameters = inspect.signature(function).parameters.values()
    if isinstance(function, type):
        return [parameter.name for parameter in parameters]
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def make_measure(
    declaration: Declaration,
    k: int | None = None,
    *,
    convention: str | None = None,
    **options: Any,
) -> Measure:
    """Checks a cutoff and options, and makes the measure.

    An option that is None has the convention's value or, without one, the default.
    """
    name, types = declaration.name, declaration.types
    complete = dict(declaration.defaults)
    if convention is not None:
        chosen = _convention_for(convention, declaration)
        for option in complete.keys() & chosen.options.keys():
            complete[option] = chosen.choice(option, name)
    complete.update({o: value for o, value in options.items() if value is not None})
    for option, value in complete.items():
        check_option(name, option, value, types[option])
    check_option(name, "k", k, Cutoff)
    if k is not None and not declaration.has_cutoff:
        raise ValueError(
            f"`{name}` is a metric of the whole list and takes no cutoff. "
            f"Received: k={k}. Omit the cutoff: {name!r}."
        )
    check_conflicts(declaration.conflicts, complete)
    if k is None:
        for (option, choice), same in WITHOUT_CUTOFF.items():
            if complete.get(option) == choice:
                complete[option] = same
    return Measure(declaration, None if k is None else int(k), tuple(complete.items()))


def _convention_for(name: str, declaration: Declaration) -> Convention:
    check_option(
        declaration.name, "convention", name, ConventionName | None, CONVENTION_OF
    )
    convention = CONVENTIONS[name]
    if declaration.name not in convention.metrics:
        raise ValueError(
            f"convention={name!r} covers only {listed(convention.metrics)}. Received: "
            f"{declaration.name!r}. To use both in one list, pass this metric as an "
            "object with its own options."
        )
    return convention


def parse_name(text: str) -> tuple[Declaration, int | None]:
    """The metric and the cutoff that a string such as `"P@5"` means.

    Accepts this library's names, and those of trec_eval and ir_measures
    (`nDCG@10`, `AP`, `ndcg_cut_10`, `recip_rank`), in upper or lower case.
    """
    by_any_name = {
        name.lower(): declaration
        for declaration in DECLARATIONS.values()
        for name in declaration.names
    }
    name, at, cutoff = text.partition("@")
    if not at and name.lower() not in by_any_name:
        suffix = re.fullmatch(r"(\w+?)(?:_cut)?_(\d+)", text)
        name, cutoff = suffix.groups() if suffix else (name, "")
    if (at or cutoff) and not re.fullmatch(r"[0-9]{1,100}", cutoff):
        raise ValueError(
            "The cutoff of a metric's name must be a whole number of at least 1, as in "
            f"'ndcg@10'. Received: {shortened(text)}."
        )
    declaration = by_any_name.get(name.lower())
    if declaration is None:
        end = text.removeprefix(name)
        names = {each: known.name + end for each, known in by_any_name.items()}
        hint = did_you_mean(name, (), names)
        if not hint:
            hint = " Import the module that declares it, if the metric is your own."
        raise ValueError(
            f"A metric's name is one of {listed(DECLARATIONS)}, with '@k' for a "
            f"cutoff. Received: {shortened(text)}.{hint}"
        )
    return declaration, int(cutoff) if cutoff else None


def named_measures(
    metrics: Iterable[Any],
    options: Mapping[str, Any],
    data: InputFormat | None = None,
    separator: Separator = "@",
) -> dict[str, Measure]:
    """The measures of a list of names and metric objects, by the name of each.

    Args:
        metrics: Names of metrics, and metric objects other than `RankingMetrics`.
        options: Options and a convention for the metrics given by name. Each applies to
            the metrics with that option. Options that are None are ignored.
        data: The input format of the data; labels by default.
        separator: What is put between the name of a metric given by name, and its
            cutoff.
    """
    if isinstance(metrics, (str, Mapping)) or not isinstance(metrics, Iterable):
        raise ValueError(
            "`metrics` must be a list of names or metric objects, as in "
            f"['ndcg@10', 'mrr']. Received: {shortened(metrics)}."
        )
    check_option("metrics", "separator", separator, Separator)
    data = input_format() if data is None else data
    options = {name: value for name, value in options.items() if value is not None}
    _check_names(options)
    unused = set(options)
    named: dict[str, Measure] = {}
    for metric in metrics:
        if isinstance(metric, str):
            declaration, k = parse_name(metric)
            taken = options.keys() & {"convention", *declaration.types}
            taken -= {*declaration.unaffected_by}
            unused -= taken
            own = {name: options[name] for name in taken}
            measure = make_measure(declaration, k, **own)
            name = measure.name_with(separator)
        elif isinstance(getattr(metric, "measure", None), Measure):
            measure, name = metric.measure, metric.name
            if metric.input_format not in (data, input_format()):
                raise ValueError(
                    "All metrics in a list read the same data: omit `inputs` and "
                    "`duplicates` on the metric objects. Received: "
                    f"{shortened(metric.name)} with {metric.input_format}, in a list "
                    f"for {data}."
                )
        else:
            raise ValueError(
                "`metrics` must hold names such as 'ndcg@10', or metric objects such "
                "as NDCG(k=10): no classes, and no RankingMetrics. Received: "
                f"{shortened(metric)}."
            )
        check_inputs(measure, data)
        if name in named:
            raise ValueError(
                "The names of `metrics` must be unique, since each is a key of the "
                f"result. Received: {shortened(name)} twice. Remove one, or give a "
                "metric object another name, as in NDCG(k=10, name='linear_ndcg@10')."
            )
        named[name] = measure
    if not named:
        raise ValueError("`metrics` must name at least one metric. Received: [].")
    if unused:
        raise ValueError(
            "Each option must apply to a metric that is given by name. Received: "
            f"{listed(sorted(unused))}, which no such metric takes. Set it on a metric "
            "object, or omit it."
        )
    return named


def _check_names(options: Mapping[str, Any]) -> None:
    """Raises an error for an option that no metric has, or only metric objects take."""
    if "denominator" in options:
        raise ValueError(
            "`denominator` must be set on a metric object, since its choices differ "
            "from metric to metric. Received: denominator="
            f"{shortened(options['denominator'])}. Pass, for example, "
            "MeanAveragePrecision(k=5, denominator='hits')."
        )
    known = {"convention"}.union(*(each.types for each in DECLARATIONS.values()))
    for name in options:
        if name not in known:
            raise UnknownOptionError(
                "A keyword must be an argument of the function or an option of a "
                f"metric. Received: {shortened(name)}.{_hint_for(name, known)}"
            )


def _hint_for(name: str, known: Iterable[str]) -> str:
    """What a user who wrote an unknown keyword probably wants."""
    if name in ("k", "top_k", "topk", "topn", "cutoff"):
        return " Write the cutoff in the name of a metric, as in 'ndcg@10'."
    if name in ("weight", "weights", "sample_weights"):
        return " Pass weights as `sample_weight`."
    if name in ("mask", "inputs", "duplicates", "sample_weight", "per_query"):
        return " It is an argument of `evaluate`, not of this function."
    return did_you_mean(name, known)


def check_inputs(measure: Measure, data: InputFormat) -> None:
    """Raises ValueError for a metric that does not support an input format."""
    inputs = measure.declaration.inputs
    if data.inputs not in inputs:
        raise ValueError(
            f"`{measure.declaration.name}` supports only inputs="
            f"{' and '.join(map(repr, inputs))}, since it needs more than "
            f"inputs={data.inputs!r} contains. Received: inputs={data.inputs!r}. Pass "
            "the data in another format, or omit the metric."
        )
