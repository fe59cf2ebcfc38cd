"""Reads the examples and their expected values from `docs/conventions.md`.

The tests recompute this library's values. `validation/` recomputes other tools' values.
"""

import ast
import dataclasses
import pathlib
import re

from cases import make_metric, plus_one

import tfrankmetrics as trm

DOCUMENT = pathlib.Path(__file__).parent.parent / "docs" / "conventions.md"
# The document gives values with four decimals.
TOLERANCE = 5.1e-5


# The name of a tool in the document, where its convention has a longer one.
LONG_NAMES = {"TF-Ranking": "TensorFlow Ranking"}
# A call, and the table of its values.
CHOICES = re.compile(r"^```py\n(.*?)^```\n+((?:^\|[^\n]*\n)+)", re.M | re.S)
NAMES = {
    "INF": float("inf"),
    "NAN": float("nan"),
    "plus_one": plus_one,
}


@dataclasses.dataclass(frozen=True)
class Example:
    """A call of `evaluate` or `show` with one metric, as written in the document.

    `lists_every_tool` is True for a call of `show`. The table below such a call lists every
    tool that has the metric.
    """

    labels: list
    scores: list
    metric: str
    k: int | None
    sample_weight: list | None
    options: dict
    lists_every_tool: bool

    def __str__(self):
        at = "" if self.k is None else f"@{self.k}"
        return f"{self.metric}{at}-{self.labels}".replace(" ", "")

    def value(self, **options):
        """This library's value, with additional options or a convention."""
        made = make_metric(self.metric, self.k, **{**self.options, **options})
        (value,) = trm.evaluate(
            self.labels, self.scores, [made], sample_weight=self.sample_weight
        ).values()
        return value


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a table: one value, or several for random ties, and who gives them."""

    values: list[float]
    tools: list[str]
    ours: list[dict]


def _section(title):
    text = DOCUMENT.read_text(encoding="utf-8")
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def _example(code):
    call = ast.parse(code.strip(), mode="eval").body
    labels, scores, name = map(_argument, call.args)
    lists_every_tool = call.func.id == "show"
    if not lists_every_tool:
        (name,) = name
    metric, _, k = name.partition("@")
    options = {keyword.arg: _argument(keyword.value) for keyword in call.keywords}
    weight = options.pop("sample_weight", None)
    k = int(k) if k else None
    return Example(labels, scores, metric, k, weight, options, lists_every_tool)


def _argument(node):
    return eval(compile(ast.Expression(node), "the document", "eval"), NAMES)


def _option(code):
    """Parses `"lightgbm"` as a convention and `ties="stable"` as an option."""
    if code.startswith('"'):
        return {"convention": ast.literal_eval(code)}
    name, _, value = code.partition("=")
    return {name: ast.literal_eval(value)}


def _cells(table):
    """The rows of a Markdown table, without its two header rows."""
    rows = [line.strip()[1:-1].split("|") for line in table.strip().splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def numbers(cell):
    """The values in a cell. Only values have four decimals."""
    return [float(number) for number in re.findall(r"\d+\.\d{4}\b|NaN", cell)]


def choice_examples():
    """The examples of "Options in which tools differ", each with the rows of its table."""
    blocks = CHOICES.findall(_section("Options in which tools differ"))
    return [_with_rows(_example(code), table) for code, table in blocks]


def _with_rows(example, table):
    rows = [
        Row(
            numbers(value),
            _tools(tools),
            [_option(code) for code in re.findall(r"`(.*?)`", ours)],
        )
        for value, tools, ours in _cells(table)
    ]
    if example.lists_every_tool:
        listed = [options.get("convention") for row in rows for options in row.ours]
        implied = _implied([row.tools for row in rows], example.metric)
        for row, names in zip(rows, implied, strict=True):
            row.ours.extend(
                {"convention": name} for name in names if name not in listed
            )
    return example, rows


def _tools(cell):
    return [tool for tool in cell.split(", ") if tool]


def _implied(tools_of_rows, metric):
    """The conventions that each row implies: all their tools in the table are in it."""
    implied = [[] for _ in tools_of_rows]
    for name, convention in trm.CONVENTIONS.items():
        rows = [
            number
            for number, tools in enumerate(tools_of_rows)
            if {LONG_NAMES.get(tool, tool) for tool in tools}
            & {tool.partition(" (")[0] for tool in convention.tools.split(", ")}
        ]
        if len(rows) == 1 and metric in convention.metrics:
            implied[rows[0]].append(name)
    return implied


def choices_with_conventions(text):
    """The document with each convention in the row of the value that it leads to.

    The row of its tools implies a convention, which is then not written. A value that no
    row has gets one, without tools.
    """
    for call, table in CHOICES.findall(text):
        example = _example(call)
        if example.lists_every_tool:
            text = text.replace(table, _with_conventions(example, table))
    return text


def _with_conventions(example, table):
    header, rule, *lines = table.strip().splitlines()
    names = {}
    for name, convention in trm.CONVENTIONS.items():
        if example.metric in convention.metrics:
            value = f"{example.value(convention=name):.4f}"
            names.setdefault(value, []).append(name)
    cells = _cells(table)
    implied = _implied([_tools(tools) for _, tools, _ in cells], example.metric)
    for number, (value, tools, ours) in enumerate(cells):
        options = re.findall(r"`[a-z_]+=.*?`", ours)
        of_row = [f"{number:.4f}" for number in numbers(value)]
        conventions = names.pop(of_row[0], []) if len(of_row) == 1 else []
        conventions = [name for name in conventions if name not in implied[number]]
        ours = ", ".join([*map(_quoted, conventions), *options])
        lines[number] = f"| {value} | {tools} | {ours} |".replace("|  |", "| |")
    for value, conventions in names.items():
        lines.append(f"| {value} | | {', '.join(map(_quoted, conventions))} |")
    return "\n".join([header, rule, *lines, ""])


def _quoted(name):
    return f'`"{name}"`'


def difference_examples():
    """The examples in "Differences from TF-Ranking", each with three cells as text.

    The cells contain the values of TF-Ranking, of keras-rs and of this library.
    """
    rows = re.findall(r"^\|.*", _section("Differences from TF-Ranking"), re.MULTILINE)
    return [
        (_example(re.search(r"`(evaluate\(.*\))`", example)[1]), *cells)
        for example, *cells, _ in _cells("\n".join(rows))
    ]


def differences_from_trec_eval():
    """The cells of the table in "Differences from trec_eval 10"."""
    section = _section("Differences from trec_eval 10")
    return _cells("\n".join(re.findall(r"^\|.*", section, re.MULTILINE)))


def examples_in_batches(column):
    """Yields each difference with a number of batches and the values in one column.

    "0.7136 in two" is the value when the lists are passed in two batches.
    """
    words = {"one": 1, "two": 2, "four": 4}
    for example, *cells in difference_examples():
        if cells[column] == "not available":
            continue
        if "batch" not in cells[column]:
            yield example, 1, numbers(cells[column])
            continue
        for part in cells[column].split(", "):
            (batches,) = (words[word] for word in part.split() if word in words)
            yield example, batches, numbers(part)


def same_values(seen, printed):
    """Whether the values equal the printed ones to four decimals, in any order."""
    return {f"{value:.4f}" for value in seen} == {f"{value:.4f}" for value in printed}


def example_id(value):
    """The test id of an example. Other arguments add nothing to the id."""
    return str(value) if isinstance(value, Example) else ""
