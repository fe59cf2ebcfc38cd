"""Rules of arguments, and the errors for values that violate them.

A rule follows from a type: a `Literal` lists the choices, and `Annotated` types carry a
`Rule`. An error states the rule, the value received, and the remedy.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import difflib
import functools
import math
import numbers
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

NO_OTHER_NAMES: Mapping[str, str] = types.MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Rule:
    """The requirement on a value, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]
    choices: tuple[str, ...] = ()


def is_int(value: Any) -> bool:
    """Whether a value is an integer, of Python or of NumPy."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def as_stored(value: Any) -> Any:
    """A list as a tuple, and a dict as a tuple of pairs sorted by key.

    The values of options are parts of keys of caches.
    """
    if isinstance(value, Mapping):
        try:
            value = sorted(value.items())
        except TypeError:  # keys of several types
            value = [*value.items()]
    return tuple(map(as_stored, value)) if isinstance(value, (list, tuple)) else value


class UnknownOptionError(TypeError, ValueError):
    """A keyword that is not an option of any metric.

    It is a TypeError, as Python raises for unknown keywords, and a ValueError, like
    every other error about options.
    """


class Conflict(NamedTuple):
    """Options that contradict each other, in every metric that supports all of them."""

    options: tuple[str, ...]
    is_met: Callable[[Mapping[str, Any]], bool]  # reads the values of the options
    rule: str
    remedy: str


@functools.cache
def rule_of(annotation: Any) -> Rule:
    """The rule for the values of an option with this type."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        rule = rule_of(parts[0])
        added = next((each for each in parts[1:] if isinstance(each, Rule)), None)
        if added is None:
            return rule
        return Rule(added.words, lambda value: rule.holds(value) and added.holds(value))
    if origin is Literal:
        return Rule(
            f"{'one of ' * (len(parts) != 1)}{listed(parts)}",
            lambda value: isinstance(value, str) and value in parts,
            parts,
        )
    if origin in (typing.Union, types.UnionType):
        rules = [rule_of(part) for part in parts]
        return Rule(
            ", or ".join(rule.words for rule in rules),
            lambda value: any(rule.holds(value) for rule in rules),
            tuple(choice for rule in rules for choice in rule.choices),
        )
    if origin in _CONTAINERS:
        return Rule(_CONTAINERS[origin], lambda value: isinstance(value, origin))
    if origin is collections.abc.Callable:
        return Rule("a function of a tensor", callable)
    if hasattr(annotation, "words"):  # a class that checks the data of users
        return Rule(annotation.words, lambda value: isinstance(value, annotation))
    if annotation not in _RULES:
        raise TypeError(
            "The type of an option must be a Literal, int, float, bool, str, None, a "
            "Callable, a union of these, or Annotated with a Rule. "
            f"Received: {annotation!r}."
        )
    return _RULES[annotation]


Positive = Annotated[int, Rule("an int of at least 1", lambda n: n >= 1)]
NotNegative = Annotated[int, Rule("an int of at least 0", lambda n: n >= 0)]

_CONTAINERS = {collections.abc.Sequence: "a list", collections.abc.Mapping: "a dict"}
_RULES = {
    int: Rule("an int", is_int),
    float: Rule("a finite number", is_finite),
    bool: Rule("True or False", lambda value: isinstance(value, bool)),
    str: Rule("a string", lambda value: isinstance(value, str)),
    type(None): Rule("None", lambda value: value is None),
}


def check_option(
    owner: str,
    name: str,
    value: Any,
    annotation: Any,
    other_names: Mapping[str, str] = NO_OTHER_NAMES,
) -> None:
    """Raises ValueError if a value violates the rule of its option's type.

    The error proposes the closest choice. `other_names` maps further names to choices.
    """
    rule = rule_of(annotation)
    if not rule.holds(value):
        hint = ""
        if isinstance(value, str):
            hint = did_you_mean(value, rule.choices, other_names)
        raise ValueError(
            f"`{name}` of `{owner}` must be {rule.words}. Received: "
            f"{name}={shortened(value)}.{hint}"
        )


def check_query(owner: str, number: Any, num_queries: int) -> None:
    """Raises ValueError if `query` is not the number of a query."""
    check_option(owner, "query", number, int)
    if not 0 <= number < num_queries:
        raise ValueError(
            f"`query` must be the number of a query, from 0 to {num_queries - 1}. "
            f"Received: {number}."
        )


def did_you_mean(
    name: str, known: Iterable[str], other_names: Mapping[str, str] = NO_OTHER_NAMES
) -> str:
    """Asks whether the user meant the closest known name; empty without a close one.

    The comparison ignores case. `other_names` maps further names to known ones.
    """
    names = {**{each: each for each in known}, **other_names}
    by_lower = {each.lower(): known_name for each, known_name in names.items()}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def shortened(value: Any) -> str:
    """A value as text, for errors: at most some 200 characters of it."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or too many digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"


def listed(names: Iterable[Any]) -> str:
    """Names in quotes, separated by commas."""
    return ", ".join(repr(name) for name in names)


def check_conflicts(conflicts: Iterable[Conflict], chosen: Mapping[str, Any]) -> None:
    """Raises ValueError for options that contradict each other, if all are chosen."""
    for conflict in conflicts:
        if chosen.keys() >= {*conflict.options} and conflict.is_met(chosen):
            received = ", ".join(
                f"{name}={chosen[name]!r}" for name in conflict.options
            )
            raise ValueError(f"{conflict.rule} Received: {received}. {conflict.remedy}")
