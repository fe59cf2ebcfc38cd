"""An extension of Griffe: what it cannot see in the source, which it does not run.

*   The typed fields of a metric are the arguments of a call.
*   Examples with `>>>` are code without prompts, and outputs. The formula of a metric
    is on its page, in TeX.
*   A public name in backticks is a link to its place in the reference.
*   The rule of an option's type is its documentation.
"""

import functools
import re

import griffe

BASES = ("TopKMetric", "WholeListMetric", "SubtopicMetric", "SingleMetric")
# They have other paths: those of their blocks on a page.
PATHS = {
    "Options": "options.Options",
    "Mean": "comparison.estimates.Mean",
    "Difference": "comparison.estimates.Difference",
    "Decision": "comparison.gate.Decision",
    "QueryTable": "comparison.query_tables.QueryTable",
}
# "`fit` and `evaluate`" are the methods of a Keras model.
NAME = re.compile(r"(?<!`fit` and\s)`(?:tfrankmetrics\.)?(\w+)`")
TYPED_RETURN = re.compile(r"^ *Returns:\n[^\n]*: ", re.MULTILINE)
EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)
# The paragraphs that begin with `name@k = `.
DEFINITIONS = re.compile(r"^[\w@-]+ += .*(?:\n.+)*\n\n", re.MULTILINE)


class Declarations(griffe.Extension):
    """Changes the loaded package before it is rendered."""

    def on_package(self, *, pkg, **_):
        """Goes through all modules, classes and functions."""
        if pkg.name != "tfrankmetrics":
            return
        _describe_types(pkg["options"])
        objects = [*_objects(pkg)]
        _require_untyped_returns(objects)
        # All fields are read first, since a class inherits those of its bases.
        declared = [each for each in objects if each.is_class and _is_declared(each)]
        fields = [_fields(cls) for cls in declared]
        for each in objects:
            if each.docstring and "```" not in each.docstring.value:
                public = {*pkg.exports, *PATHS} - {"metric", each.name}
                link = functools.partial(_link, public)
                text = NAME.sub(link, each.docstring.value)
                if each in declared and each.name not in BASES:
                    # The page of a metric has its formula, in TeX.
                    text = DEFINITIONS.sub("", text)
                each.docstring.value = _with_code(text)
        for cls, its_fields in zip(declared, fields, strict=True):
            _add_init(cls, its_fields)


def _objects(parent):
    for member in parent.members.values():
        if not member.is_alias:
            yield member
            if member.is_module or member.is_class:
                yield from _objects(member)


def _require_untyped_returns(objects):
    for each in objects:
        if each.docstring and TYPED_RETURN.search(each.docstring.value):
            raise ValueError(
                "The first line of `Returns:` must have no colon, since Griffe takes "
                f"what is before it for a type. Received: that of {each.path}."
            )


def _link(public, found):
    name = found[1]
    if name not in public:
        return found[0]
    return f"[{found[0]}][tfrankmetrics.{PATHS.get(name, name)}]"


def _with_code(text):
    """A docstring whose examples are blocks of code and of output."""
    return EXAMPLE.sub(_without_prompts, text).replace("<BLANKLINE>", "")


def _without_prompts(example):
    """Code that a reader can copy, and the output as a block of its own."""
    indent = example[1]
    blocks = []
    is_code = False
    for line in example[0].splitlines():
        line = line.removeprefix(indent)
        was_code = is_code
        is_code = line.startswith(">>>") or (was_code and line.startswith("..."))
        if not blocks or is_code != was_code:
            blocks.append(["```python" if is_code else "```text"])
        blocks[-1].append(line[4:] if is_code else line)
    return "\n\n".join(
        "\n".join([f"{indent}{line}" for line in [*block, "```"]]) for block in blocks
    )


def _is_declared(cls):
    return any(each.name in BASES for each in _mro(cls))


def _mro(cls):
    """The class and its bases, as far as they are in this package."""
    try:
        return [cls, *cls.mro()]
    except (ValueError, griffe.GriffeError):
        return [cls]


def _fields(cls):
    """The typed fields by name, in the order of the signature: `k`, own, shared."""
    own, shared = {}, {}
    for each in reversed(_mro(cls)):
        for name, field in each.members.items():
            if not _is_field(field):
                continue
            is_shared = each.name in BASES or name in shared
            (shared if is_shared else own)[name] = field
    fields = {**own, **shared}
    first, last = ["k"], ["name", "dtype"]
    middle = [name for name in fields if name not in (*first, *last)]
    return {name: fields[name] for name in [*first, *middle, *last] if name in fields}


def _is_field(member):
    """Whether it is an attribute with a type, and not a ClassVar or a property."""
    return (
        not member.is_alias
        and member.is_attribute
        and member.annotation is not None
        and "instance-attribute" in member.labels
        and not member.name.startswith("_")
    )


def _add_init(cls, fields):
    """Adds an `__init__` whose keywords are these fields, in place of attributes."""
    parameters = [griffe.Parameter("self")]
    for name, field in fields.items():
        kinds = griffe.ParameterKind
        parameter = griffe.Parameter(
            name,
            annotation=_type_of(field),
            kind=kinds.positional_or_keyword if name == "k" else kinds.keyword_only,
            default=_default_of(field),
        )
        parameters.append(parameter)
    init = griffe.Function("__init__", parameters=griffe.Parameters(*parameters))
    cls.set_member("__init__", init)
    for name in fields:
        cls.members.pop(name, None)


def _type_of(field):
    annotation = field.annotation
    kind = getattr(annotation, "canonical_name", "")
    if kind == "Annotated":
        return annotation.slice.elements[0]
    return annotation.slice if kind == "InitVar" else annotation


def _default_of(field):
    """The default, in source code."""
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
        if str(rule) == "_ABOVE_0":
            rule = options["_ABOVE_0"].value
        words = str(rule.arguments[0])
        attribute.value = base
        attribute.docstring = griffe.Docstring(
            f"{words.strip(chr(39) + chr(34)).capitalize()}.", parent=attribute
        )
