"""`@metric`: a metric is one declaration.

A metric is a class with typed fields, a docstring, and a decorator that names its
formula:

    @metric("mrr", formula=reciprocal_rank, gain=BinaryGain, aliases=("RR",))
    class MeanReciprocalRank(TopKMetric):
        '''Mean reciprocal rank: ...'''

        relevance_threshold: RelevanceThreshold = 1.0

`fields.py` makes the fields arguments of the class, and options of the formula.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

from tfrankmetrics import keras_hooks
from tfrankmetrics.arrays import Array
from tfrankmetrics.metrics.fields import Field, dataclass_transform, with_fields
from tfrankmetrics.metrics.measure import (
    METRICS,
    Declaration,
    declarations,
    keyword_parameters,
    make_measure,
)
from tfrankmetrics.options import Options
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.recommended import Exposure
from tfrankmetrics.rules import (
    Conflict,
    Rule,
    as_stored,
    check_option,
    listed,
    rule_of,
    shortened,
)

T = TypeVar("T")


# Fields that are not options of a measure.
_NOT_OPTIONS = ("k", "convention", "inputs", "duplicates", "name", "dtype")
# Options that `compute/values.py` applies, rather than a formula.
_COMPUTED = ("ties", "empty", "zero_weight", "average")


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field,)
)
def metric(
    name: str,
    *,
    formula: Callable[..., Array],
    gain: Callable[..., ItemGain] | None = None,
    value: Callable[[Exposure], Array] | None = None,
    total: Callable[[RankedLists, ItemGain], Array] = RankedLists.total,
    aliases: tuple[str, ...] = (),
    lower_is_better: bool = False,
    range: tuple[float, float] = (0, 1),
    without_results: float | Literal["worst"] | None = "worst",
    unjudged: Literal["drop", "keep"] | None = None,
    unaffected_by: tuple[str, ...] = (),
    conflicts: tuple[Conflict, ...] = (),
    by_rank: Mapping[str, Callable[..., Array]] | None = None,
    cutoff_hint: str = "",
) -> Callable[[type[T]], type[T]]:
    """Declares a metric: a class decorator.

    The metric then works like the built-in ones, by its class and by its name: in
    `compile`, `RankingMetrics`, `evaluate`, `evaluate_rows` and TensorFlow Model
    Analysis, for all input formats of its base class.

    The typed fields of the class are the options of the metric, with their defaults.
    Import the types of known options from `tfrankmetrics.options`, or write `float`,
    `int`, `bool`, or a `Literal` of strings.

    >>> import tfrankmetrics as trm
    >>> def weighted_hits(lists, relevance, *, decay):
    ...     hits = lists.expected(relevance)  # at each rank, [B, D]
    ...     return lists.sum_to_cutoffs(hits * decay**lists.ranks)  # [B, C]
    >>> @trm.metric("weighted_hits", formula=weighted_hits, gain=trm.BinaryGain)
    ... class WeightedHits(trm.TopKMetric):
    ...     '''Hits that count less further down.'''
    ...
    ...     decay: float = 0.5
    ...     relevance_threshold: float = 1.0
    >>> trm.evaluate([[1, 0, 1]], [[3, 2, 1]], ["weighted_hits@3"])  # 1/2 + 1/8
    {'weighted_hits@3': 0.625}

    Args:
        name: The name, as in `evaluate(..., ["ndcg@10"])`: lower-case letters, digits
            and underscores.
        formula: A function of `RankedLists` and the gain of the items. It returns the
            values at the C cutoffs, float64 `[B, C]`, or `[B]` for a metric without a
            cutoff. Its keyword-only parameters are options of the metric. It uses only
            the operations of `lists.xp` or those of TensorFlow. It returns 0 for an
            empty list. For a subclass of `ItemMetric`, a function of `RankedLists`
            alone, which makes a `DataGain` from its options. With `value`, it returns
            the exposure that each rank provides to its item, `[D]`.
        gain: The contribution of each item: an `ItemGain` class, such as `LabelGain`
            and `BinaryGain`. Its fields are options of the metric. None for a subclass
            of `ItemMetric`.
        value: For a metric with one value over all queries, such as coverage: a
            function of the exposure of the V items, summed over the queries. It reads
            `exposure.of_items`, `[..., V]`, and `exposure.xp`, the operations on
            arrays, and returns `[...]`.
        total: A function of the same two arguments that returns float64 `[B]`, or
            `[B, C]`. Lists in which it is 0 are empty. With average="micro", it is the
            weight of the list. By default it is the sum of the gains.
        aliases: Other names for the metric.
        lower_is_better: Whether a lower value is better, as for an average rank.
        range: The lowest and the highest possible value; `math.inf` if there is no
            highest one. Only metrics whose best value is 1 accept empty="one".
        without_results: The value that the formula returns for a query for which
            nothing was retrieved: a number, or "worst" (the worst end of the range; the
            default). `check_metric` raises an error if the formula returns another one.
            None if it is undefined, as for an average rank; then `evaluate_run` raises
            an error for queries without predictions.
        unjudged: How `evaluate_rows` and `evaluate_run` treat unjudged items: "drop"
            excludes them, as BPref requires; "keep" keeps them in the lists, as
            `judged` requires. By default the argument `unjudged` of the function
            decides.
        unaffected_by: Options that, passed by name, apply only to the other metrics of
            a list.
        conflicts: Options that contradict each other, as in `tfrankmetrics.options`.
        by_rank: The factors of the contribution of a rank, which `explain` shows: a
            dict from the name of a column to a function like the formula that returns
            float64 `[B, D]`, as in `{"gain": RankedLists.expected, "discount": ...}`.
            The column "contribution" replaces the default of `explain`: by how much the
            value rises if the formula reads one more rank.
        cutoff_hint: A hint in the error for users who pass a cutoff to a metric of the
            whole list.

    Returns:
        A decorator for a subclass of `TopKMetric`, `WholeListMetric`,
        `SubtopicMetric` or `ItemMetric`.

    Raises:
        TypeError: The base class is wrong, a field has no default, an option of the
            formula or the gain is not a field, or a field is not one of their options.
            The first use of a metric raises it for a wrong formula, as
            `tfrankmetrics.testing.check_metric` does.
        ValueError: A name is already taken or malformed, or a default does not fit its
            type.
    """
    given = {**locals()}  # the arguments
    _require_arguments(name, given)
    worst, best = reversed(range) if lower_is_better else range
    given["by_rank"] = by_rank or {}
    given["cutoff_hint"] = cutoff_hint and f" {cutoff_hint}"
    if gain is None:  # a query without recommendations is excluded from the mean
        given["without_results"] = None
        given["unaffected_by"] = (*unaffected_by, "convention", "empty", "zero_weight")
    elif without_results == "worst":
        given["without_results"] = worst if math.isfinite(worst) else None

    def declare(cls: type[T]) -> type[T]:
        declared: Any = with_fields(cls)
        _require_free_names(declared, [name, *aliases])
        _require_gain(name, gain, value, reads_items=declared.reads_items)
        options = _options_of(name, (gain, formula, value), declared.fields)
        return _enter(
            Declaration(**given, **_attributes_of_class(declared, options, best))
        )

    return declare


def _options_of(
    name: str, functions: tuple[Any, Any, Any], fields: dict[str, Field]
) -> list[str]:
    """The options of the gain, the formula and the value, and then those of all.

    Raises TypeError if the fields are not the options that the functions take.
    """
    taken = [o for f in functions if f for o in keyword_parameters(f)]
    *_, value = functions
    if value is not None:
        taken.append("num_items")
    declared = fields.keys() - {*_NOT_OPTIONS, *_COMPUTED}
    if missing := {*taken} - declared:
        raise TypeError(
            "Every option of the formula and of the gain must be a field of the class. "
            f"Received: `{name}` without {listed(sorted(missing))}. Declare each with "
            "a type and a default, as in `decay: float = 0.5`."
        )
    if unused := declared - {*taken}:
        raise TypeError(
            "Every field of the class must be an option of the formula or of the gain. "
            f"Received: `{name}` with {listed(sorted(unused))}. Remove the field, or "
            "use it as a keyword-only parameter of the formula."
        )
    others = (field for field in fields if field not in _NOT_OPTIONS)
    return [*dict.fromkeys([*taken, *others])]


def _enter(declaration: Declaration) -> type[Any]:
    """The metric's class, entered in the table of all names and registered with Keras.

    Raises an error for defaults that are invalid, or names that are no options.
    """
    name, options = declaration.name, {*Options.__annotations__, *declaration.types}
    if unknown := {*declaration.unaffected_by} - options:
        raise TypeError(
            f"`unaffected_by` of `{name}` must name options. Received: "
            f"{listed(sorted(unknown))}."
        )
    for option, default in declaration.defaults.items():
        if default is not None:
            check_option(name, option, default, declaration.types[option])
    if not declaration.reads_items:  # some of whose options are required
        make_measure(declaration)  # raises an error for defaults in conflict
    declaration.cls.declaration = declaration
    for known, each in [*METRICS.items()]:
        if each.name == declaration.name:  # of a notebook cell that was rerun
            del METRICS[known]
    METRICS.update({each.lower(): declaration for each in declaration.names})
    if declaration.is_custom:  # whose names are unique, unlike those of classes
        keras_hooks.register(declaration.cls, "Custom", name)
    else:
        keras_hooks.register(declaration.cls, "tfrankmetrics", None)
    return declaration.cls


def _require_gain(name: str, gain: Any, value: Any, *, reads_items: bool) -> None:
    """Raises TypeError for a gain or a value that does not fit the base class."""
    if reads_items and gain is not None:
        raise TypeError(
            "A metric of recommended items, which derives from ItemMetric, has no "
            f"gain. Received: `{name}` with the gain {gain!r}. Omit it."
        )
    if not reads_items and (isinstance(gain, ItemGain) or not callable(gain)):
        raise TypeError(
            f"The gain of `{name}` must be a subclass of ItemGain, such as BinaryGain, "
            f"not an object of it. Received: {gain!r}."
        )
    if value is not None and not (reads_items and callable(value)):
        raise TypeError(
            "`value` must be a function, of a metric that derives from ItemMetric. "
            f"Received: {value!r} for `{name}`."
        )


def _are(kind: type) -> Callable[[Any], bool]:
    """The test of a rule: whether a value is a tuple or a list of such objects."""
    return lambda value: (
        isinstance(value, tuple | list)
        and all(isinstance(each, kind) for each in value)
    )


# What the arguments of `metric` must be.
_RULES = {
    "formula": Rule("a function", callable),
    "total": Rule("a function", callable),
    "aliases": Rule("a tuple of names", _are(str)),
    "lower_is_better": rule_of(bool),
    "range": Rule(
        "a pair of numbers, the lowest below the highest value",
        lambda value: (
            _are(numbers.Real)(value) and len(value) == 2 and value[0] < value[1]
        ),
    ),
    "without_results": rule_of(float | Literal["worst"] | None),
    "unjudged": rule_of(Literal["drop", "keep"] | None),
    "unaffected_by": Rule("a tuple of the names of options", _are(str)),
    "conflicts": Rule("a tuple of `tfrankmetrics.options.Conflict`", _are(Conflict)),
    "by_rank": Rule(
        "a dict from the names of columns to functions",
        lambda value: (
            value is None
            or (isinstance(value, Mapping) and all(map(callable, value.values())))
        ),
    ),
    "cutoff_hint": rule_of(str),
}


def _require_arguments(name: str, given: Mapping[str, Any]) -> None:
    for argument, rule in _RULES.items():
        if not rule.holds(given[argument]):
            raise TypeError(
                f"`{argument}` of `{name}` must be {rule.words}. Received: "
                f"{shortened(given[argument])}."
            )


def _attributes_of_class(
    cls: Any, options: Iterable[str], best: float
) -> dict[str, Any]:
    """The attributes of a declaration that a class and its fields state.

    `empty` may be "one" only if 1 is the best value.
    """
    fields = cls.fields
    types = {option: fields[option].type for option in options}
    if best != 1:
        choices = (each for each in typing.get_args(types["empty"]) if each != "one")
        types["empty"] = Literal[tuple(choices)]
    return {
        "cls": cls,
        "has_cutoff": "k" in fields,
        "has_subtopics": cls.has_subtopics,
        "reads_items": cls.reads_items,
        "is_custom": cls.__module__.partition(".")[0] != __name__.partition(".")[0],
        "inputs": typing.get_args(fields["inputs"].type),
        "types": types,
        "defaults": {option: as_stored(fields[option].default) for option in types},
    }


def _require_free_names(cls: Any, names: list[str]) -> None:
    """Raises an error if a name is malformed or taken by a different metric."""
    if not hasattr(cls, "has_subtopics"):
        raise TypeError(
            "A metric must be a subclass of TopKMetric, WholeListMetric, "
            f"SubtopicMetric or ItemMetric. Received: {cls!r}."
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", names[0]):
        raise ValueError(
            "A metric's name must consist of lower-case letters, digits and "
            f"underscores. Received: {names[0]!r}."
        )
    _require_no_cutoffs(names)
    for other in declarations().values():
        # The same class again means a notebook cell that was rerun.
        is_same = (other.cls.__module__, other.cls.__qualname__) == (
            cls.__module__,
            cls.__qualname__,
        )
        clashes = {n.lower() for n in names} & {n.lower() for n in other.names}
        if clashes and not is_same:
            raise ValueError(
                f"A metric's names must not be taken. Received: {listed(clashes)}, a "
                f"name of {other.cls.__module__}.{other.cls.__qualname__}. Choose a "
                "different name."
            )


def _require_no_cutoffs(names: list[str]) -> None:
    """Raises ValueError if a name could be read as a different one with a cutoff."""
    for name in map(str.lower, names):
        stem = re.fullmatch(r"(.+?)(?:(?:_cut)?_\d+|_cut|@.*)", name)
        if "@" in name or (stem and stem[1] in METRICS):
            raise ValueError(
                "A metric's names must not end with a cutoff, and 'recall_2', as well "
                f"as 'recall_cut_2', means 'recall@2'. Received: {name!r}. Choose a "
                "different name."
            )
        with_cutoffs = [
            n for n in METRICS if re.fullmatch(rf"{re.escape(name)}(_cut)?_\d+", n)
        ]
        if with_cutoffs:
            raise ValueError(
                f"The name {name!r} with a cutoff must not be the name of a different "
                f"metric. Received: the metric {with_cutoffs[0]!r}. Choose a different "
                "name."
            )
