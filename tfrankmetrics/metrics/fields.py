"""The typed fields of a metric's class: its arguments and its attributes.

As with `dataclasses.dataclass`, the fields become the signature of the class with its
defaults, and attributes of its objects. They are also the options that the formula and
the gain receive as keywords. The class cannot be a dataclass, since Keras requires a
different `__init__` and defines `name` and `dtype`. The decorator is a
`dataclass_transform`: type checkers check calls of the class as for a dataclass.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tfrankmetrics.options import Average
from tfrankmetrics.rules import listed

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
_SHARED = ("ties", "empty", "zero_weight", "convention", "inputs")
_SHARED += ("duplicates", "name", "dtype")
# Arguments of functions that take metrics by name, which a field would hide.
_ARGUMENTS = frozenset(
    "y_true y_pred metrics mask sample_weight query_ids labels scores data groups "  # noqa: SIM905
    "item_ids qrels run query item label score model missing_queries unjudged_queries "
    "unjudged queries candidates relevant exclude candidate_ids query_tower "
    "candidate_tower batch_size chunk_size verbose per_query num_queries separator by "
    "every unit prefix output x y metric query_id versus lower_is_better "
    "subtopic".split()
)


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field,)
)
def with_fields(cls: type[T]) -> type[T]:
    """Turns the typed fields of a class into its signature and its attributes."""
    declared: Any = cls
    inherited = getattr(super(cls, cls), "fields", {})
    own = _own_fields(cls, inherited)
    for name in own:
        if name in ("convention", "name", "dtype"):
            delattr(cls, name)  # a convention is not kept; Keras defines the other two
        else:
            setattr(cls, name, property(lambda self, name=name: _value(self, name)))
    declared.fields = {**inherited, **own}
    formats = typing.get_args(own["inputs"].type) if "inputs" in own else ()
    if formats and "ids" not in formats:
        declared.fields.pop("duplicates", None)
    declared.__signature__ = _signature(declared.fields)
    return cls


def _own_fields(cls: type, inherited: dict[str, Field]) -> dict[str, Field]:
    own = {}
    for name, annotation in inspect.get_annotations(cls, eval_str=True).items():
        if typing.get_origin(annotation) is typing.ClassVar:
            continue
        if isinstance(annotation, dataclasses.InitVar):
            annotation = annotation.type
        if name in inherited:
            _require_known_choices(cls, name, annotation, inherited[name].type)
        else:
            _require_free_field(cls, name, is_base=not inherited)
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


def _require_free_field(cls: type, name: str, *, is_base: bool) -> None:
    """Raises TypeError for a field with the name of an argument or an attribute."""
    if name in _ARGUMENTS:
        raise TypeError(
            "A field must not have the name of an argument of `evaluate`, "
            f"`evaluate_rows` or another function. Received: `{name}` of "
            f"{cls.__name__}."
        )
    bases = () if is_base else cls.__mro__[1:-1]
    taken = {n for base in bases for n in (*vars(base), *base.__annotations__)}
    if name in taken or name == "self" or name.startswith("_"):
        raise TypeError(
            "A field must not have the name of an attribute of all metrics or of "
            "Keras's metrics, nor begin with an underscore. Received: "
            f"`{name}` of {cls.__name__}."
        )


def _require_known_choices(cls: type, name: str, declared: Any, known: Any) -> None:
    """Raises TypeError for a field with choices that its option does not have."""
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
    """`k` first, then the options of the metric, then those shared by all metrics."""

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
