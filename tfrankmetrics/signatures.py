"""Arguments that are stated once: their signatures and their documentation.

A typed dict states each argument with its type, its default and its meaning. A function
takes all of them:

    @takes(ListArguments)
    def evaluate(y_true, y_pred, metrics, **arguments: Unpack[ListArguments]):

Type checkers and editors read `Unpack`. `takes` puts the arguments into the signature
and the docstring, which `help()` and notebooks show.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


class Argument(NamedTuple):
    """The default and the meaning of an argument."""

    default: Any
    meaning: str


class Option(NamedTuple):
    """The meaning of an option of metrics. Each metric declares its own default."""

    meaning: str


@functools.cache
def shared_arguments(kind: Any) -> dict[str, tuple[Any, Argument]]:
    """The type of each argument of a typed dict, and its documentation.

    The options of metrics are not included.
    """
    return _stated(kind, Argument)


@functools.cache
def options_of(kind: Any) -> dict[str, tuple[Any, Option]]:
    """The type of each option of metrics in a typed dict, and its meaning."""
    return _stated(kind, Option)


def _stated(kind: Any, statement: type) -> dict[str, tuple[Any, Any]]:
    types = typing.get_type_hints(kind)
    found = {}
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        stated = [each for each in typing.get_args(hint) if isinstance(each, statement)]
        if stated:
            found[name] = types[name], stated[0]
    return found


def split(kind: Any, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of a typed dict, or their defaults, and the options of metrics."""
    shared = {
        name: given.get(name, argument.default)
        for name, (_, argument) in shared_arguments(kind).items()
    }
    return shared, {name: v for name, v in given.items() if name not in shared}


def takes(kind: Any) -> Callable[[T], T]:
    """Shows the arguments of a typed dict in the signature and the docstring."""

    def show(documented: Any) -> Any:
        is_class = isinstance(documented, type)
        function: Any = vars(documented)["__init__"] if is_class else documented
        shared = shared_arguments(kind)
        function.__signature__ = _signature(function, kind, shared)
        meanings = {name: argument.meaning for name, (_, argument) in shared.items()}
        documented.__doc__ = with_meanings(documented.__doc__ or "", meanings)
        return documented

    return show


def _signature(function: Any, kind: Any, shared: Mapping) -> inspect.Signature:
    # Unpack exists for type checkers only, and cannot be evaluated at run time.
    function.__annotations__.pop("arguments")
    signature = inspect.signature(function, eval_str=True)
    *parameters, _ = signature.parameters.values()
    stated = [(name, hint, each.default) for name, (hint, each) in shared.items()]
    stated += [
        (name, hint | None, None) for name, (hint, _) in options_of(kind).items()
    ]
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    for name, hint, default in stated:
        parameters.append(
            inspect.Parameter(name, keyword_only, default=default, annotation=hint)
        )
    return signature.replace(parameters=parameters)


def described(meaning: str, choices: Iterable[str], default: str | None) -> str:
    """The meaning of an option with its default, and its choices if there are only few.

    Without a default it is required.
    """
    only = " or ".join(choices)
    end = "Required." if default is None else f"Default {default}."
    return f"{meaning}{f' Only {only}.' if only else ''} {end}"


def with_meanings(documentation: str, meanings: Mapping[str, str]) -> str:
    """A docstring with the meanings of arguments among its arguments.

    They come before the entry of all others, `**arguments`, or at the end. An argument
    that the docstring already describes keeps that description.
    """
    if not documentation or not meanings:  # python -OO removes docstrings
        return documentation
    args = re.search(r"^( *)Args:\n((?:\1 +\S.*\n?)*)", documentation, re.MULTILINE)
    if args is None:
        indents = re.findall(r"\n( *)\S", documentation)
        indent = min(indents, key=len, default="    ")
        section = f"{documentation.rstrip()}\n\n{indent}Args:\n"
        return with_meanings(section, meanings) + indent
    entries = args[2]
    indent = f"{args[1]}    "
    others = re.search(rf"^{indent}\*\*arguments: ", entries, re.M)
    place = args.start(2) + (others.start() if others else len(entries))
    text = "".join(
        _entry(indent, *each) for each in _missing(indent, entries, meanings)
    )
    before, after = documentation[:place], documentation[place:]
    return before + "\n" * (not before.endswith("\n")) + text + after


def _missing(
    indent: str, entries: str, meanings: Mapping[str, str]
) -> Iterable[tuple[str, str]]:
    described = re.findall(rf"^{indent}([\w, ]+): ", entries, re.MULTILINE)
    names = {name for each in described for name in each.split(", ")}
    return (each for each in meanings.items() if each[0] not in names)


def _entry(indent: str, name: str, meaning: str) -> str:
    lines = textwrap.wrap(
        f"{name}: {meaning}",
        88,
        initial_indent=indent,
        subsequent_indent=f"{indent}    ",
        break_on_hyphens=False,
    )
    return "".join(f"{line}\n" for line in lines)
