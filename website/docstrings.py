"""An extension of Griffe: what it cannot see in the source, which it does not run.

*   The typed fields of a metric, and of `Options`, are the arguments of a call.
*   Examples with `>>>`, and formulas, are code.
*   The rule of an option's type is its documentation.
"""

import re

import griffe

BASES = ("TopKMetric", "WholeListMetric", "SubtopicMetric", "SingleMetric")
EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)
FORMULAS = re.compile(r"(?<=\n\n)(?:\S[^\n=]* = [^\n]*[^.\n](?:\n|$))+(?=\n|$)")


class Declarations(griffe.Extension):
    """Changes the loaded package before it is rendered."""

    def on_package(self, *, pkg, **_):
        """Goes through all modules, classes and functions."""
        if pkg.name == "tfrankmetrics":
            _describe_types(pkg["options"])
            self._change(pkg)

    def _change(self, parent):
        for member in [*parent.members.values()]:
            if member.is_alias:
                continue
            if member.docstring:
                member.docstring.value = _with_code(member.docstring.value)
            if member.is_class and (_is_metric(member) or member.name == "Options"):
                _add_init(member)
            if member.is_module or member.is_class:
                self._change(member)


def _with_code(text):
    """A docstring whose formulas and examples are blocks of code."""
    text = FORMULAS.sub(lambda found: f"```text\n{found[0].rstrip()}\n```\n", text)
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)


def _is_metric(cls):
    return cls.name in BASES or any(base.name in BASES for base in _bases(cls))


def _bases(cls):
    try:
        return cls.mro()
    except (ValueError, griffe.GriffeError):
        return []


def _add_init(cls):
    """Adds an `__init__` whose keywords are the fields of the class and its bases."""
    shared, own = {}, {}
    for each in [*reversed(_bases(cls)), cls]:
        for name, field in each.members.items():
            is_field = field.is_attribute and field.annotation is not None
            if not is_field or "ClassVar" in str(field.annotation):
                continue
            is_shared = each.name in BASES or name in shared
            (shared if is_shared else own)[name] = field
    shared = {name: field for name, field in shared.items() if name not in own}
    fields = {**own, **shared}
    if "k" in fields:
        fields = {"k": fields.pop("k"), **fields}
    parameters = [griffe.Parameter("self")]
    for name, field in fields.items():
        by_position = name == "k"
        kind = griffe.ParameterKind.positional_or_keyword
        parameters.append(
            griffe.Parameter(
                name,
                annotation=_type_of(field),
                kind=kind if by_position else griffe.ParameterKind.keyword_only,
                default=_default_of(field, cls.name),
            )
        )
    init = griffe.Function(
        "__init__", parameters=griffe.Parameters(*parameters), parent=cls
    )
    cls.set_member("__init__", init)
    for name in fields:
        cls.members.pop(name, None)


def _type_of(field):
    annotation = field.annotation
    is_init_var = getattr(annotation, "canonical_name", "") == "InitVar"
    return annotation.slice if is_init_var else annotation


def _default_of(field, owner):
    """The default, in source code; a TypedDict has none."""
    if owner == "Options":
        return None
    value = field.value
    for argument in getattr(value, "arguments", ()):  # dataclasses.field(default=None)
        if getattr(argument, "name", "") == "default":
            return argument.value
    return value


def _describe_types(options):
    """Shows the rule of `Annotated[type, Rule(words, test)]` as documentation."""
    for attribute in options.members.values():
        if attribute.is_alias or not attribute.is_attribute:
            continue
        value = attribute.value
        if not str(value).startswith("Annotated["):
            continue
        base, rule = value.slice.elements
        words = str(_ABOVE_0 if str(rule) == "_ABOVE_0" else rule.arguments[0])
        attribute.value = base
        attribute.docstring = griffe.Docstring(
            f"{words.strip(chr(39) + chr(34)).capitalize()}.", parent=attribute
        )


_ABOVE_0 = "a finite number above 0"
