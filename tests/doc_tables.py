"""Writes the tables of the documents that follow from declarations: `make tables`.

A document encloses each table in the comments `<!-- make tables: metrics -->` and
`<!-- end -->`. Metrics are in the order of their sections in `docs/metrics/`.
`test_docs.py` checks that nothing is out of date.
"""

import ast
import collections.abc
import functools
import pathlib
import re
import typing

from cases import OWN_METRICS as METRICS
from conventions_document import choices_with_conventions

import tfrankmetrics as trm
from tfrankmetrics.installation import IS_RELEASED, REPOSITORY, install_command

ROOT = pathlib.Path(__file__).parent.parent
PAGES_OF_METRICS = [
    "docs/metrics/relevance.md",
    "docs/metrics/user-models.md",
    "docs/metrics/whole-lists.md",
    "docs/metrics/subtopics-and-diagnostics.md",
    "docs/metrics/recommended-items.md",
]
PAGES_OF_THE_REFERENCE = [
    "keras.md",
    "evaluation.md",
    "comparison.md",
    "custom-metrics.md",
    "tfma-and-beam.md",
]
CONVENTIONS = "docs/conventions.md"
OF_ALL_METRICS = ["ties", "empty", "zero_weight"]  # options
DOCUMENTS = ["README.md"]
DOCUMENTS += sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))
MARKED = re.compile(r"(<!-- make tables: ([\w ]+) -->\n\n).*?(<!-- end -->)", re.S)
# Commands that install the package, except those that only a clone can run.
INSTALLED = re.compile(
    r'pip install "(\.|tfrankmetrics)\[([\w,]+)\](?P<git> @ git\+[^"]+)?"(?! &&)'
)


def text_of(document):
    return (ROOT / document).read_text(encoding="utf-8")


def table(*rows):
    """A Markdown table; the first row is the header."""
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    rule = "|".join(["---"] * len(rows[0]))
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def listed(names):
    return ", ".join(f"`{name}`" for name in names)


def at(name, cutoff):
    return f"{name}@{cutoff}" if METRICS[name].has_cutoff else name


@functools.cache
def ordered():
    """The names of the metrics, in the order of their sections in `docs/metrics/`."""
    found = {}
    for page in PAGES_OF_METRICS:
        for name in re.findall(r"^### `(\w+)", text_of(page), re.M):
            if name in found:
                raise ValueError(f"{page} has a second section for {name!r}.")
            found[name] = page
    if missing := sorted({*METRICS} - {*found}):
        raise ValueError(f"Write a section in docs/metrics/ for each of {missing}.")
    if unknown := sorted({*found} - {*METRICS}):
        raise ValueError(
            f"docs/metrics/ has sections for {unknown}, which are no metrics. Remove "
            "them, or export their classes in tfrankmetrics/__init__.py."
        )
    return found


def names_of_metrics():
    rows = []
    for name, page in ordered().items():
        declaration = METRICS[name]
        cls = declaration.cls
        link = f"{pathlib.Path(page).name}#tfrankmetrics.{cls.__name__}"
        what = first_line(cls.__doc__)
        rows.append([f"`{at(name, 10)}`", f"[`{cls.__name__}`]({link})", what])
    return table(["name", "class", "what it measures"], *rows)


def first_line(docstring):
    return docstring.strip().splitlines()[0]


@functools.cache
def docstrings():
    """Those of the classes and functions at the top of all modules, by their names.

    They are read from the sources, since Beam and TFMA may not be installed.
    """
    found = {}
    for path in (ROOT / "tfrankmetrics").glob("**/*.py"):
        (folder, *_) = path.relative_to(ROOT / "tfrankmetrics").parts
        module = folder if folder in ("beam", "tfma", "testing.py") else ""
        for each in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(each, (ast.ClassDef, ast.FunctionDef)):
                name = f"{module.removesuffix('.py')}.{each.name}".lstrip(".")
                found[name] = ast.get_docstring(each)
    return found


def overview():
    """Each name on the pages of the reference, with the first line of its docstring."""
    parts = []
    for page in PAGES_OF_THE_REFERENCE:
        text = text_of(f"docs/reference/{page}")
        rows = []
        for path in re.findall(
            r"^::: tfrankmetrics\.(?!integrations)(\S+)", text, re.M
        ):
            # What the methods of a comparison return has no public name.
            name = path.rpartition(".")[2] if path.startswith("comparison.") else path
            link = f"[`{name}`]({page}#tfrankmetrics.{path})"
            rows.append([link, first_line(docstrings()[name])])
        title = re.match("# (.+)", text)[1]
        parts.append(f"## {title}\n\n{table(['name', 'what it is for'], *rows)}")
    return "\n\n".join(parts)


def defaults_of_options():
    """The metrics that take each option, in a row for each default."""
    rows = []
    for option in typing.get_type_hints(trm.Options):
        metrics = {}
        for name, declaration in METRICS.items():
            if option in declaration.types:
                metrics.setdefault(declaration.defaults[option], []).append(name)
        defaults = sorted(metrics, key=lambda default: len(metrics[default]))
        for default in defaults:
            of_default = listed(metrics[default])
            if default == defaults[-1] and sum(map(len, metrics.values())) == len(
                METRICS
            ):
                of_default = "all others" if len(defaults) > 1 else "all"
            shown = f'"{default}"' if isinstance(default, str) else default
            is_required = hasattr(METRICS[metrics[default][0]].types[option], "words")
            shown = "required" if is_required else f"`{shown}`"
            rows.append([f"`{option}`", of_default, shown])
    return table(["option", "metrics", "default"], *rows)


def denominators():
    classes = {}
    for declaration in METRICS.values():
        if "denominator" in declaration.types:
            choices = typing.get_args(declaration.types["denominator"])
            assert choices[0] == declaration.defaults["denominator"]
            quoted = tuple(f'"{choice}"' for choice in choices)
            classes.setdefault(quoted, []).append(declaration.cls.__name__)
    rows = [[listed(names), listed(choices)] for choices, names in classes.items()]
    return table(["class", "`denominator`, the default first"], *rows)


def metrics_at_a_glance():
    """Each metric with its aliases, what it reads, and the options that not all take."""
    rows = []
    for name, page in ordered().items():
        declaration = METRICS[name]
        link = f"{page.removeprefix('docs/')}#tfrankmetrics.{declaration.cls.__name__}"
        if declaration.has_subtopics:
            reads = "labels `[B, N, T]`"
        elif declaration.reads_items:
            reads = "item ids"
        elif {*declaration.inputs} == {*typing.get_args(trm.options.Inputs)}:
            reads = "all formats"
        else:
            reads = ", ".join(declaration.inputs)
        aliases = [at(name, 10).replace(name, each) for each in declaration.aliases]
        own = [option for option in declaration.types if option not in OF_ALL_METRICS]
        link = f"[`{at(name, 10)}`]({link})"
        rows.append([link, listed(aliases), reads, listed(own)])
    return table(["name", "aliases", "reads", "options"], *rows)


def values_of_options():
    types = typing.get_type_hints(trm.Options, include_extras=True)
    del types["convention"]  # it has a page
    rows = []
    for option, kind in types.items():
        if values := _values_of(kind):  # none for data about items
            rows.append([f"`{option}`", ", ".join(values)])
    choices = [
        choice
        for declaration in METRICS.values()
        for choice in typing.get_args(declaration.types.get("denominator"))
    ]
    rows.append(
        ["`denominator`", listed(f'"{each}"' for each in dict.fromkeys(choices))]
    )
    return table(["option", "values"], *rows)


def _values_of(kind):
    """The choices of a type, and the words of its rule."""
    if typing.get_origin(kind) is typing.Literal:
        return [f'`"{choice}"`' for choice in typing.get_args(kind)]
    if typing.get_origin(kind) is collections.abc.Callable:
        return ["a function"]
    if kind is bool:
        return ["`True`", "`False`"]
    if hasattr(kind, "__metadata__"):
        (rule,) = kind.__metadata__
        return [rule.words]
    return [value for part in typing.get_args(kind) for value in _values_of(part)]


def blocks_of_types():
    names = [name for name in trm.options.__all__ if name != "Options"]
    return "\n\n".join(f"::: tfrankmetrics.options.{name}" for name in names)


def conventions():
    rows = [
        [convention.tools, f'`"{name}"`', ", ".join(convention.metrics)]
        for name, convention in trm.CONVENTIONS.items()
    ]
    return table(["tool", "`convention=`", "metrics"], *rows)


def release():
    """Where the package can be installed from."""
    if IS_RELEASED:
        return f"Install from PyPI. The source is in [the repository]({REPOSITORY}):"
    return f"tfrankmetrics is not on PyPI yet. Clone [the repository]({REPOSITORY}) and run:"


def installed(match):
    """The command that installs the package now."""
    is_current = bool(match["git"]) and not IS_RELEASED
    return match[0] if is_current else install_command(match[2])


TABLES = {
    "release": release,
    "names of metrics": names_of_metrics,
    "overview": overview,
    "defaults of options": defaults_of_options,
    "denominators": denominators,
    "metrics at a glance": metrics_at_a_glance,
    "values of options": values_of_options,
    "blocks of types": blocks_of_types,
    "conventions": conventions,
}


def updated(document):
    """The text of a document with its tables as the declarations have them."""
    text = INSTALLED.sub(installed, text_of(document))
    text = MARKED.sub(lambda m: m[1] + TABLES[m[2]]() + "\n\n" + m[3], text)
    return choices_with_conventions(text) if document == CONVENTIONS else text


if __name__ == "__main__":
    for name in DOCUMENTS:
        (ROOT / name).write_text(updated(name), encoding="utf-8")
