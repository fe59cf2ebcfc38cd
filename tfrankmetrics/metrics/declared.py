"""`@metric`: a metric is one declaration.

A metric is a class with typed fields, a docstring, and a decorator that names its
formula:

    @metric("mrr", formula=reciprocal_rank, gain=BinaryGain, aliases=("RR",))
    class MeanReciprocalRank(TopKMetric):
        '''Mean reciprocal rank: ...'''

        relevance_threshold: RelevanceThreshold = 1.0

As with `dataclasses.dataclass`, the fields become the signature of the class with its
defaults, and attributes of its objects. They are also the options that the formula and
the gain receive as keywords. The class cannot be a dataclass, since Keras needs its own
`__init__` and has its own `name` and `dtype`. The decorator is a `dataclass_transform`,
so type checkers check calls of the class as they do for a dataclass.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import re
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import tensorflow as tf

from tfrankmetrics.arguments import (
    RetrievalArguments,
    RowCallbackArguments,
    RunArguments,
    shared_arguments,
)
from tfrankmetrics.engine.measure import (
    DECLARATIONS,
    Declaration,
    keyword_parameters,
    make_measure,
)
from tfrankmetrics.inputs.formats import takes_duplicates
from tfrankmetrics.keras.state import StatefulMetric
from tfrankmetrics.metrics.trial import try_declaration
from tfrankmetrics.options import CONFLICTS, Average
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.rules import Conflict, listed

T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        """For type checkers only: it does nothing at run time."""
        return lambda function: function


class Field(NamedTuple):
    """A typed field of a metric's class."""

    type: Any
    default: Any


# Fields of the base classes, in the order of signatures.
_SHARED = ("ties", "seed", "empty", "convention", "inputs", "duplicates")
_SHARED += ("name", "dtype")
# Fields that are not options of a measure.
_NOT_OPTIONS = ("k", "convention", "inputs", "duplicates", "name", "dtype")
# Arguments of the functions that take metrics by name.
_ARGUMENTS = {"metrics", "mask", "sample_weight", "groups", "data"}
_ARGUMENTS |= {*shared_arguments(RunArguments), *shared_arguments(RetrievalArguments)}
_ARGUMENTS |= {*shared_arguments(RowCallbackArguments)}
# Options that `engine/values.py` applies, rather than a formula.
_COMPUTED = ("ties", "seed", "empty", "average")


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field,)
)
def with_fields(cls: type[T]) -> type[T]:
    """Turns the typed fields of a class into its signature and its attributes."""
    declared: Any = cls
    inherited = getattr(cls, "fields", {})
    own = _own_fields(cls, inherited)
    for name in own:
        if name in ("convention", "name", "dtype"):
            delattr(cls, name)  # a convention is not kept; Keras has the other two
        else:
            setattr(cls, name, property(lambda self, name=name: _value(self, name)))
    declared.fields = {**inherited, **own}
    formats = typing.get_args(own["inputs"].type) if "inputs" in own else ()
    if formats and not any(map(takes_duplicates, formats)):
        declared.fields.pop("duplicates", None)
    declared.__signature__ = _signature(declared.fields)
    return cls


def _own_fields(cls: type, inherited: dict[str, Field]) -> dict[str, Field]:
    """The fields that a class itself declares."""
    own = {}
    for name, annotation in inspect.get_annotations(cls, eval_str=True).items():
        if typing.get_origin(annotation) is typing.ClassVar:
            continue
        if isinstance(annotation, dataclasses.InitVar):
            annotation = annotation.type
        if name in inherited:
            _require_known_choices(cls, name, annotation, inherited[name].type)
        else:
            _require_free_field(cls, name)
            known = Average if name == "average" else None
            _require_known_choices(cls, name, annotation, known)
        own[name] = Field(annotation, _default_of(cls, name))
    return own


def _default_of(cls: type, name: str) -> Any:
    """The default of a field; raises TypeError without one."""
    if name not in vars(cls):
        raise TypeError(
            f"A field must have a default. Received: `{name}` of {cls.__name__}."
        )
    default = vars(cls)[name]
    if isinstance(default, dataclasses.Field):
        default = default.default
    if name == "k" and default is not None:
        raise TypeError(
            "The default of `k` must be None, the whole list, as in the names of "
            f"metrics. Received: {default!r} in {cls.__name__}."
        )
    return default


def _require_free_field(cls: type, name: str) -> None:
    """Raises TypeError for a field with a name that Keras or a function uses."""
    is_attribute = hasattr(StatefulMetric, name) and name not in ("name", "dtype")
    if is_attribute or name in _ARGUMENTS:
        raise TypeError(
            "A field must not have the name of an attribute of Keras's metrics, or of "
            "an argument of `evaluate`, `evaluate_rows` or another function. Received: "
            f"`{name}` of {cls.__name__}."
        )


def _require_known_choices(cls: type, name: str, declared: Any, known: Any) -> None:
    """Raises TypeError for a field with other choices than it is known to have."""
    if typing.get_origin(known) is not typing.Literal:
        return
    choices, own = typing.get_args(known), typing.get_args(declared)
    if typing.get_origin(declared) is not typing.Literal or not {*own} <= {*choices}:
        raise TypeError(
            f"The type of `{name}` must be a Literal of some of {listed(choices)}. "
            f"Received: {declared} in {cls.__name__}."
        )


def _value(metric: Any, field: str) -> Any:
    if field == "k":
        return metric.measure.k
    if field in ("inputs", "duplicates"):
        return getattr(metric.input_format, field, metric.fields[field].default)
    return metric.measure[field]


def _signature(fields: dict[str, Field]) -> inspect.Signature:
    """`k` first, then the metric's own options, then those that all metrics share."""

    def position(name):
        return name != "k", _SHARED.index(name) if name in _SHARED else -1

    kind = inspect.Parameter
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                kind.POSITIONAL_OR_KEYWORD if name == "k" else kind.KEYWORD_ONLY,
                default=fields[name].default,
            )
            for name in sorted(fields, key=position)
        ]
    )


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field,)
)
def metric(
    name: str,
    *,
    formula: Callable[..., tf.Tensor],
    gain: Callable[..., ItemGain],
    total: Callable[[RankedLists, ItemGain], tf.Tensor] = RankedLists.total,
    aliases: tuple[str, ...] = (),
    lower_is_better: bool = False,
    range: tuple[float, float] = (0, 1),
    without_results: float | Literal["worst"] | None = "worst",
    unjudged: Literal["drop", "keep"] | None = None,
    unaffected_by: tuple[str, ...] = (),
    conflicts: tuple[Conflict, ...] = (),
) -> Callable[[type[T]], type[T]]:
    """Declares a metric: a class decorator.

    The metric then works like those of this library, by its class and by its name: in
    `compile`, `RankingMetrics`, `evaluate`, `evaluate_rows` and TensorFlow Model
    Analysis, for all input formats of its base class.

    The typed fields of the class are the options of the metric, with their defaults.
    Import the types of known options from `tfrankmetrics.options`, or write `float`,
    `int`, `bool`, or a `Literal` of strings.

    >>> import tfrankmetrics as tfr
    >>> def weighted_hits(lists, relevance, *, decay):
    ...     hits = lists.expected(relevance)  # at each rank, [B, D]
    ...     return lists.sum_to_cutoffs(hits * decay**lists.ranks)  # [B, C]
    >>> @tfr.metric("weighted_hits", formula=weighted_hits, gain=tfr.BinaryGain)
    ... class WeightedHits(tfr.TopKMetric):
    ...     '''Hits that count less further down.'''
    ...
    ...     decay: float = 0.5
    ...     relevance_threshold: float = 1.0
    >>> tfr.evaluate([[1, 0, 1]], [[3, 2, 1]], ["weighted_hits@3"])  # 1/2 + 1/8
    {'weighted_hits@3': 0.625}

    Args:
        name: The name, as in `evaluate(..., ["ndcg@10"])`: lower-case letters, digits
            and underscores.
        formula: A function of `RankedLists` and the gain of the items. It returns the
            values at the C cutoffs, float64 `[B, C]`, or `[B]` for a metric without a
            cutoff. Its keyword-only parameters are options of the metric. It uses only
            TensorFlow operations, and returns 0 for an empty list.
        gain: What each item contributes: an `ItemGain` class, such as `LabelGain` and
            `BinaryGain`. Its fields are options of the metric.
        total: A function of the same two arguments that returns float64 `[B]`, or
            `[B, C]`. A list where it is 0 is empty. With average="micro", it is the
            weight of the list. By default the sum of the gains.
        aliases: Other names for the metric.
        lower_is_better: Whether a lower value is better, as for an average rank.
        range: The lowest and the highest possible value; `math.inf` if there is no
            highest one. Only a metric whose best value is 1 has the choice empty="one".
        without_results: The value of a query for which nothing was retrieved, as
            `evaluate_run` counts a missing query: a number, or "worst" (the worst end
            of the range; the default). None if it is undefined, as an average rank is.
        unjudged: How `evaluate_rows` and `evaluate_run` treat unjudged items: "drop"
            excludes them, as BPref requires; "keep" keeps them in the lists, as
            `judged` requires. By default the argument `unjudged` of the function
            decides.
        unaffected_by: Options that, passed by name, apply only to the other metrics of
            a list.
        conflicts: Options that contradict each other, as in `tfrankmetrics.options`.

    Returns:
        A decorator for a subclass of `TopKMetric`, `WholeListMetric` or
        `SubtopicMetric`.

    Raises:
        TypeError: The base class is wrong, a field has no default, an option of the
            formula or the gain is not a field, or a field is not one of their options.
            On a small list, the formula fails, its value depends on padding, is not
            in the range or not the one declared for a query without results, or it is
            not exact under ties although ties="expected" is a choice.
        ValueError: A name is already taken or malformed, or a default does not fit its
            type.
    """
    _require_functions(name, formula, gain, aliases)
    _require_range(name, range)
    worst, best = reversed(range) if lower_is_better else range
    if without_results == "worst":
        without_results = worst if math.isfinite(worst) else None
    facts = {
        "lower_is_better": lower_is_better,
        "range": range,
        "without_results": without_results,
        "unjudged": unjudged,
        "unaffected_by": unaffected_by,
    }

    def declare(cls: type[T]) -> type[T]:
        declared: Any = with_fields(cls)
        _require_free_names(declared, [name, *aliases])
        fields: dict[str, Field] = declared.fields
        taken = [*keyword_parameters(gain), *keyword_parameters(formula)]
        _require_same_options(name, taken, fields.keys() - {*_NOT_OPTIONS, *_COMPUTED})
        others = (field for field in fields if field not in _NOT_OPTIONS)
        options = dict.fromkeys([*taken, *others])
        declaration = Declaration(
            name=name,
            aliases=aliases,
            formula=formula,
            gain=gain,
            total=total,
            conflicts=(*_shared_conflicts(fields), *conflicts),
            has_cutoff="k" in fields,
            has_subtopics=declared.has_subtopics,
            inputs=typing.get_args(fields["inputs"].type),
            defaults={option: fields[option].default for option in options},
            types=_types_of(fields, options, best),
            cls=declared,
            **facts,
        )
        make_measure(declaration)  # raises an error for an invalid default
        is_ours = cls.__module__.partition(".")[0] == __name__.partition(".")[0]
        if not is_ours:
            try_declaration(declaration)
        declared.declaration = DECLARATIONS[name] = declaration
        # The names of metrics are unique, unlike the names of classes.
        registered = ("tfrankmetrics", None) if is_ours else ("Custom", name)
        return tf.keras.utils.register_keras_serializable(*registered)(cls)

    return declare


def _require_functions(name: str, formula: Any, gain: Any, aliases: Any) -> None:
    """Raises TypeError for arguments of `metric` of the wrong kind."""
    if not callable(formula):
        raise TypeError(
            f"The formula of `{name}` must be a function. Received: {formula!r}."
        )
    if isinstance(gain, ItemGain) or not callable(gain):
        raise TypeError(
            f"The gain of `{name}` must be a subclass of ItemGain, such as BinaryGain, "
            f"not an object of it. Received: {gain!r}."
        )
    if not isinstance(aliases, tuple | list):
        raise TypeError(
            f"The aliases of `{name}` must be a tuple of names. Received: {aliases!r}."
        )


def _require_range(name: str, range: Any) -> None:
    """Raises TypeError unless a range is its lowest and its highest value."""
    is_pair = isinstance(range, tuple | list) and len(range) == 2
    if not is_pair or not all(isinstance(end, numbers.Real) for end in range):
        raise TypeError(
            f"The range of `{name}` must be a pair of numbers, the lowest and the "
            f"highest value. Received: {range!r}."
        )
    if not range[0] < range[1]:
        raise TypeError(
            f"The lowest value of `{name}` must be below the highest. Received: "
            f"range={range!r}."
        )


def _shared_conflicts(fields: dict[str, Field]) -> Iterator[Conflict]:
    """The conflicts between options that any metric may have."""
    return (each for each in CONFLICTS if {*each.options} <= fields.keys())


def _types_of(
    fields: dict[str, Field], options: Iterable[str], best: float
) -> dict[str, Any]:
    """The types of options; `empty` may be "one" only if 1 is the best value."""
    types = {option: fields[option].type for option in options}
    if best != 1:
        choices = (each for each in typing.get_args(types["empty"]) if each != "one")
        types["empty"] = Literal[tuple(choices)]
    return types


def _require_free_names(cls: Any, names: list[str]) -> None:
    """Raises an error if a name is malformed or another metric has it."""
    if not hasattr(cls, "has_subtopics"):
        raise TypeError(
            "A metric must be a subclass of TopKMetric, WholeListMetric or "
            f"SubtopicMetric. Received: {cls!r}."
        )
    if not re.fullmatch(r"[a-z][a-z0-9_]*", names[0]):
        raise ValueError(
            "A metric's name must consist of lower-case letters, digits and "
            f"underscores. Received: {names[0]!r}."
        )
    for other in DECLARATIONS.values():
        # The same class again is a cell of a notebook that was run again.
        is_same = (other.cls.__module__, other.cls.__qualname__) == (
            cls.__module__,
            cls.__qualname__,
        )
        clashes = {n.lower() for n in names} & {n.lower() for n in other.names}
        if clashes and not is_same:
            raise ValueError(
                f"A metric's names must not be taken. Received: {listed(clashes)}, a "
                f"name of {other.cls.__module__}.{other.cls.__qualname__}. Choose "
                "another name."
            )


def _require_same_options(name: str, taken: list[str], declared: set[str]) -> None:
    """Raises TypeError if the fields are not the options that the functions take."""
    if missing := set(taken) - declared:
        raise TypeError(
            "Every option of the formula and of the gain must be a field of the class. "
            f"Received: `{name}` without {listed(sorted(missing))}. Declare each with "
            "a type and a default, as in `decay: float = 0.5`."
        )
    if unused := declared - set(taken):
        raise TypeError(
            "Every field of the class must be an option of the formula or of the gain. "
            f"Received: `{name}` with {listed(sorted(unused))}. Remove the field, or "
            "use it as a keyword-only parameter of the formula."
        )
