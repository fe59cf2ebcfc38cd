"""Measures: metrics with their cutoff and options, checked.

The Keras classes and the functions that take names all make measures. This module
defines the rules for cutoffs and options.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.conventions import (
    CONVENTION_OF,
    CONVENTIONS,
    IN_ORDER_OF_TREC_EVAL,
    Convention,
)
from tfrankmetrics.inputs.formats import InputFormat
from tfrankmetrics.inputs.mistakes import LabelRules
from tfrankmetrics.item_data import ItemData
from tfrankmetrics.options import (
    CONFLICTS,
    ConventionName,
    Cutoff,
)
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.recommended import Exposure
from tfrankmetrics.ranking.ties import TieBreaking, TiePolicy
from tfrankmetrics.rules import (
    Conflict,
    as_stored,
    check_conflicts,
    check_option,
    is_int,
    listed,
    shortened,
)

# All metrics by each of their names, in lower case. `@metric` adds them.
METRICS: dict[str, Declaration] = {}


@dataclasses.dataclass(eq=False, kw_only=True)
class Declaration:
    """A metric as its class declares it."""

    name: str
    aliases: tuple[str, ...]  # names used by other tools
    # Float64 [B, C], or [B] without a cutoff. With `value`, [D].
    formula: Callable[..., Array]
    gain: Callable[..., ItemGain] | None  # None for a metric of recommended items
    # The total gain of each list, [B], or another number that is 0 for an empty list;
    # or one for each cutoff, [B, C].
    total: Callable[[RankedLists, ItemGain], Array]
    lower_is_better: bool
    range: tuple[float, float]  # the lowest and the highest possible value
    without_results: float | None  # the value of an empty result; None if it has none
    unjudged: Literal["drop", "keep"] | None  # None: by `unjudged=` of a function
    unaffected_by: tuple[str, ...]  # options by name that apply only to other metrics
    conflicts: tuple[Conflict, ...]
    # The columns of an explanation, by name: functions to float64 [B, D]. A
    # contribution is proportional to their product; "gain" is the expected gain.
    by_rank: Mapping[str, Callable[..., Array]]
    has_cutoff: bool
    has_subtopics: bool  # reads labels [B, N, T]
    reads_items: bool  # which items are recommended, not which are relevant
    is_custom: bool  # declared outside of this package
    inputs: tuple[str, ...]  # the input formats that it supports
    defaults: Mapping[str, Any]  # of its options
    types: Mapping[str, Any]  # of its options
    cls: type[Any]
    # From the exposure of the items over all queries, [..., V], to a value, [...].
    value: Callable[[Exposure], Array] | None = None
    cutoff_hint: str = ""  # for users who pass an unsupported cutoff
    # Whether only TensorFlow computes the formula, which `metric_checks.py` finds out.
    needs_tensors: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The name and the aliases."""
        return (self.name, *self.aliases)


def declarations() -> dict[str, Declaration]:
    """All metrics by name: the built-in ones, and those that users have declared."""
    return {each.name: each for each in METRICS.values()}


class LeftOut(NamedTuple):
    """Items that a metric does not rank."""

    unjudged: bool
    zero_weights: bool


@dataclasses.dataclass(frozen=True)
class Measure:
    """A metric with its cutoff and options. Equal measures compute the same values."""

    declaration: Declaration
    k: int | None
    options: tuple[tuple[str, Any], ...]
    marks_empty: bool = False  # by the weight of an empty list, which is negative
    # Whether it ranks a run by scores in float32 and, of tied items, by descending id.
    is_trec_eval: bool = False
    names_cutoff: bool = True  # False for the cutoff of a convention

    @property
    def name(self) -> str:
        """`ndcg@10`, or `ndcg` without a cutoff of the user's."""
        name = self.declaration.name
        is_whole = self.k is None or not self.names_cutoff
        return name if is_whole else f"{name}@{self.k}"

    def with_options(self, changed: Mapping[str, Any]) -> Measure:
        """A copy of the metric with different values of some options."""
        options = {**self.by_option, **changed}
        return dataclasses.replace(self, options=tuple(options.items()))

    def __str__(self) -> str:
        texts = (f"{o}={getattr(v, '__name__', repr(v))}" for o, v in self.options)
        return f"{self.name} ({', '.join(texts)})"

    def __getitem__(self, option: str) -> Any:
        return self.by_option[option]

    @functools.cached_property
    def by_option(self) -> dict[str, Any]:
        """The options by name."""
        return dict(self.options)

    def __reduce__(self) -> tuple:
        """Copies and pickles by the class, since declarations are equal by identity."""
        _, *fields = (getattr(self, f.name) for f in dataclasses.fields(self))
        return _of_class, (self.declaration.cls, *fields)

    @functools.cached_property
    def item_gain(self) -> ItemGain:
        """The contribution of each item to this metric."""
        function = self.declaration.gain
        assert function is not None  # no metric of recommended items asks for it
        gain = function(**self._options_of(function))
        if not isinstance(gain, ItemGain):
            raise TypeError(
                f"The gain of `{self.declaration.name}` must be a subclass of "
                f"ItemGain, such as BinaryGain. Received: {function!r}."
            )
        return gain

    @functools.cached_property
    def tie_breaking(self) -> TieBreaking:
        """How it orders tied items."""
        policy = TiePolicy(self["ties"])
        match policy:
            case TiePolicy.EXPECTED | TiePolicy.STABLE:
                return TieBreaking(policy)
            case TiePolicy.BEST | TiePolicy.WORST:
                return TieBreaking(policy, self.item_gain)

    @property
    def left_out(self) -> LeftOut:
        """Which items it does not rank."""
        masks_zeros = self["zero_weight"] == "mask"
        return LeftOut(self.declaration.unjudged == "drop", masks_zeros)

    def attention(self, lists: RankedLists) -> Array:
        """How much exposure each rank provides to its item, float64 `[D]`."""
        formula = self.declaration.formula
        return formula(lists, **self._options_of(formula))

    @property
    def exposure_key(self) -> Hashable:
        """Equal for metrics with the same exposure of the items."""
        formula = self.declaration.formula
        options = tuple(self._options_of(formula).items())
        return formula, options, self["num_items"]

    def value_of(self, exposure: Array) -> Array:
        """The value of exposures over all queries, from `[..., V]` to `[...]`."""
        function = self.declaration.value
        assert function is not None
        return function(Exposure(exposure), **self._options_of(function))

    @property
    def numbers_of_items(self) -> set[int]:
        """The number of items in the catalog, as the options state it."""
        numbers = {len(data) for data in self.item_data.values()}
        if (number := self.by_option.get("num_items")) is not None:
            numbers.add(number)
        return numbers

    @property
    def ids_of_items(self) -> list[tuple]:
        """The ids of the items, where an option contains data by id."""
        return [v.ids for v in self.item_data.values() if v.ids is not None]

    def by_position(self, items: Sequence[Hashable]) -> Measure:
        """The same metric, with its data about items in the order of these items."""
        return self.with_options(
            {o: v.by_position(items) for o, v in self.item_data.items()}
        )

    @property
    def item_data(self) -> dict[str, ItemData]:
        """The options that hold data about items."""
        return {o: v for o, v in self.options if isinstance(v, ItemData)}

    def values(self, lists: RankedLists) -> Array:
        """The metric's value at every cutoff of the lists, float64 `[B, C]`.

        `[B, 1]` for a metric without a cutoff.
        """
        formula = self.declaration.formula
        gain = () if self.declaration.reads_items else (self.item_gain,)
        values = formula(lists, *gain, **self._options_of(formula))
        if self.declaration.is_custom:
            _require_values(self.declaration, lists, values)
        return values if self.declaration.has_cutoff else values[:, xp.newaxis]

    def by_rank(self, column: str, lists: RankedLists) -> Array:
        """The values of a column of an explanation, for each rank, `[B, D]`."""
        function = self.declaration.by_rank[column]
        return function(lists, self.item_gain, **self._options_of(function))

    def _options_of(self, function: Callable) -> dict[str, Any]:
        return {name: self[name] for name in keyword_parameters(function)}


def _require_values(declaration: Declaration, lists: RankedLists, values: Any) -> None:
    """Raises TypeError if a formula has not returned float64 values of its shape."""
    form, hint, shape = "[B]", "", (None,)
    if declaration.has_cutoff:
        form, shape = "[B, C], one for each cutoff,", (None, len(lists.cutoffs))
        hint = " `lists.sum_to_cutoffs` sums over ranks."
    received = repr(values)
    if hasattr(values, "dtype"):
        dtype = xp.dtype_of(values)
        is_float64 = dtype == np.float64 or dtype == xp.dtype_of(lists.k)  # on a TPU
        if is_float64 and xp.has_shape(values, shape):
            return
        received = f"{dtype.name} values of shape {values.shape}"
    raise TypeError(
        f"The formula of `{declaration.name}` must return float64 values {form} in "
        f"this case {shape}. Received: {received}.{hint}"
    )


def label_rules(measures: Collection[Measure]) -> LabelRules:
    """How the metrics read labels."""
    options = [measure.by_option for measure in measures]
    gains = {each.get("gain") for each in options}
    thresholds = {
        each["relevance_threshold"]
        for each in options
        if "relevance_threshold" in each and not each.get("graded")
    }
    of_relevance = (each for each in measures if not each.declaration.reads_items)
    keeps = any(each["zero_weight"] == "keep" for each in of_relevance)
    return LabelRules(
        tuple(sorted(thresholds)),
        "exponential" in gains,
        keeps,
        any(each.declaration.has_subtopics for each in measures),
    )


def _of_class(cls: type[Any], *fields: Any) -> Measure:
    return Measure(cls.declaration, *fields)


@functools.cache
def keyword_parameters(function: Callable) -> tuple[str, ...]:
    """The keyword-only parameters of a formula, or the fields of a gain."""
    parameters = inspect.signature(function).parameters.values()
    is_gain = isinstance(function, type)
    return tuple(p.name for p in parameters if is_gain or p.kind is p.KEYWORD_ONLY)


def make_measure(
    declaration: Declaration,
    k: int | None = None,
    *,
    convention: str | None = None,
    **options: Any,
) -> Measure:
    """Checks a cutoff and options and makes the measure.

    An option that is None takes the value of the convention or, without one, the
    default, which `@metric` has checked.
    """
    name, types, names_cutoff = declaration.name, declaration.types, True
    complete = dict(declaration.defaults)
    if convention is not None:
        chosen = convention_for(convention, declaration)
        for option in complete.keys() & chosen.options.keys():
            complete[option] = chosen.choice(option, name)
        if k is None and "k" in chosen.options and declaration.has_cutoff:
            k, names_cutoff = chosen.choice("k", name), False
    complete.update({o: value for o, value in options.items() if value is not None})
    for option, value in complete.items():
        if value is not None and value is declaration.defaults[option]:
            continue  # the declaration has checked it
        if hasattr(types[option], "words") and value is not None:
            complete[option] = value = types[option].of(option, value)
        check_option(name, option, value, types[option])
        complete[option] = as_stored(value)
    if isinstance(k, (list, tuple)) and all(map(is_int, k)):
        names = [f"{name}@{each}" for each in k]
        raise ValueError(
            f"`k` of `{name}` must be one cutoff. Received: k={shortened(k)}. For "
            f"several, pass RankingMetrics({shortened(names)})."
        )
    check_option(name, "k", k, Cutoff)
    if k is not None and not declaration.has_cutoff:
        raise ValueError(
            f"`{name}` is a metric of the whole list and takes no cutoff. "
            f"Received: k={k}. Omit the cutoff: {name!r}.{declaration.cutoff_hint}"
        )
    check_conflicts((*CONFLICTS, *declaration.conflicts), complete)
    if k is None and complete.get("denominator") == "k":
        # Both are the length of the list: equal measures compare equal.
        complete["denominator"] = "list"
    return Measure(
        declaration,
        None if k is None else int(k),
        tuple(complete.items()),
        is_trec_eval=convention in IN_ORDER_OF_TREC_EVAL,
        names_cutoff=names_cutoff,
    )


def convention_for(name: str, declaration: Declaration) -> Convention:
    """The convention of this name; an error if it does not cover the metric."""
    check_option(
        declaration.name, "convention", name, ConventionName | None, CONVENTION_OF
    )
    convention = CONVENTIONS[name]
    if declaration.name not in convention.metrics:
        raise ValueError(
            f"convention={name!r} covers only {listed(convention.metrics)}. Received: "
            f"{declaration.name!r}. To use both in one list, write the convention in "
            f"the other names, as in '{convention.metrics[0]}(convention={name})'."
        )
    return convention


def cutoffs_of(measures: Iterable[Measure]) -> tuple[int | None, ...]:
    """The cutoffs, unique and ascending; None, the whole list, is the last."""
    cutoffs = {measure.k for measure in measures}
    return tuple(sorted(cutoffs, key=lambda k: (k is None, k or 0)))


def require_values_by_query(named: Mapping[str, Measure]) -> None:
    """Raises ValueError for a metric with only one value over all queries."""
    for name, measure in named.items():
        if measure.declaration.value is not None:
            raise ValueError(
                f"{name!r} is one value over all queries, without a value per query. "
                "Received: this metric where per-query values are required, as in "
                "`compare` and in TensorFlow Model Analysis. Omit this metric, or "
                "compute it with a function without `per_query`."
            )


def require_relevance(named: Mapping[str, Measure], where: str) -> None:
    """Raises ValueError for a metric that reads which items are recommended."""
    for name, measure in named.items():
        if measure.declaration.reads_items:
            raise ValueError(
                f"{where} supports metrics of relevance only. Received: {name!r}, "
                "which reads which items are recommended. Omit it."
            )


def check_inputs(measure: Measure, data: InputFormat) -> None:
    """Raises ValueError for a metric that does not support an input format."""
    inputs = measure.declaration.inputs
    if data.inputs not in inputs:
        raise ValueError(
            f"`{measure.declaration.name}` supports only "
            f"inputs={' and '.join(map(repr, inputs))}, since it requires more than "
            f"inputs={data.inputs!r} contains. Received: inputs={data.inputs!r}. Pass "
            "the data in another format, or omit the metric."
        )
