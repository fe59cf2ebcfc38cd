"""Tests that no name breaks a table or a plot: HTML, Markdown, LaTeX, text and TeX."""

import html.parser
import re
import shutil
import subprocess

import numpy as np
import pytest

import tfrankmetrics as trm
from tfrankmetrics.results.text_tables import in_latex, in_markdown

NAMES = [
    "<script>alert(1)</script>",
    "a|b",
    "two\nlines",
    "cost in $ and $",
    "$\\frac$",
    "[link](javascript:alert(1))",
    "100%_&#{}",
    "tab\tand\u2028separator",
    "[10, 20)",
    "*star",
    "* item",
    "escape\x1b\x00\x7f",
]
# How a name is written in Markdown and in LaTeX, which both show it as it is.
WRITTEN = {
    "_i_": (r"\_i\_", r"\_i\_"),
    "graded_rbp": ("graded_rbp", r"graded\_rbp"),
    "__init__": (r"\_\_init\_\_", r"\_\_init\_\_"),
    "*b*": (r"\*b\*", "*b*"),
    "a * b": ("a * b", "a * b"),
    "**": (r"\*\*", "**"),
    "~~s~~": (r"\~\~s\~\~", r"\textasciitilde{}" * 2 + "s" + r"\textasciitilde{}" * 2),
    "&amp;": ("&amp;amp;", r"\&amp;"),
    "&#65;": ("&amp;#65;", r"\&\#65;"),
    "AT&T": ("AT&T", r"AT\&T"),
    "<b>": ("&lt;b>", "$<$b$>$"),
    "<!-- c": ("&lt;!-- c", "$<$!-{}- c"),
    "p < 0.05": ("p < 0.05", "p $<$ 0.05"),
    "a|b": (r"a\|b", "a$|$b"),
    r"\|": (r"\\\|", r"\textbackslash{}$|$"),
    "end\\": (r"end\\", r"end\textbackslash{}"),
    "`code`": (r"\`code\`", r"\textasciigrave{}code\textasciigrave{}"),
    "[a](b)": (r"[a]\(b)", "[a](b)"),
    "![a](b)": (r"![a]\(b)", "![a](b)"),
    "https://a.b/_c": (r"https\://a.b/\_c", r"https://a.b/\_c"),
    "www.a.b/_c": (r"www\.a.b/\_c", r"www.a.b/\_c"),
    "[10, 20)": ("[10, 20)", "[10, 20)"),
    "1--2---3": ("1--2---3", "1-{}-2-{}-{}-3"),
    "''q''": ("''q''", "'{}'q'{}'"),
    "$x$": (r"\$x\$", r"\$x\$"),
    "{x^2}%": ("{x^2}%", r"\{x\textasciicircum{}2\}\%"),
    "two\r\nlines": ("two lines", "two lines"),
}
ALL = [*NAMES, *WRITTEN]
VALUES = {
    name: {"mrr": np.random.default_rng(i).random(12)} for i, name in enumerate(NAMES)
}
SLICES = [NAMES[i % len(NAMES)] for i in range(12)]


def results():
    """Every kind of table, with these names as slices, models, items and so on."""
    number = len(ALL)
    lists = [[1, 0]] * number, [[2, 1]] * number
    by = {"<i>\n$_by_": ALL}
    yield trm.evaluate(*lists, ["mrr", trm.NDCG(name="*m* _n_")], by=by)
    rng = np.random.default_rng(0)
    models = {name: {"mrr": rng.random(number)} for name in ALL}
    two = {name: models[name] for name in ("*b*", "[a](b)")}
    yield trm.compare(two, by={"<b>slice</b> $x$": ALL}, test="t")
    yield trm.compare(models, test="t")
    yield trm.compare(models, test="t").movers("mrr", "*b*", model="two\nlines")
    metric = trm.MeanAveragePrecision(name="* _m_\n\n- *n*")
    yield trm.explain([ALL[:2]], [ALL], metric, inputs="ids")
    qrels, run = {"_q_": {"*a*": 1}, "b": {"c": 1}}, {"_q_": {"_b_": 2.0, "*a*": 1.0}}
    yield trm.explain_run(qrels, run, "map", "_q_")
    yield trm.evaluate_run(qrels, run, ["mrr"], by={"_q_": "~~s~~", "b": "[0, 1)"})


RESULTS = [*results()]
of_each_kind = pytest.mark.parametrize(
    "result", RESULTS, ids=lambda each: type(each).__name__
)


class Read(html.parser.HTMLParser):
    """The elements of a document, and the texts of its cells and paragraphs."""

    def __init__(self, document):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(document)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag in ("th", "td", "p"):
            self.texts.append("")

    def handle_data(self, data):
        if self.texts:
            self.texts[-1] += data

    def words(self):
        """The texts, without what a browser does not show."""
        return [re.sub(r"[\s\x00-\x1f\x7f]+", " ", text).strip() for text in self.texts]


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_not_text_is_escaped(name):
    assert (in_markdown(name), in_latex(name)) == WRITTEN[name]


@of_each_kind
def test_html_and_markdown_show_names_as_they_are(result):
    """A line of Markdown could also begin a list, such as "- *n*" in a metric's name."""
    markdown_it = pytest.importorskip("markdown_it")
    reader = markdown_it.MarkdownIt().enable(["table", "strikethrough"])
    in_html, in_markdown = (
        Read(document)
        for document in (result._repr_html_(), reader.render(result.to_markdown()))
    )
    assert in_html.tags <= {"div", "table", "tr", "th", "td", "p", "b", "sup"}
    structure = {"table", "thead", "tbody", "tr", "th", "td", "p", "strong", "sup"}
    assert in_markdown.tags <= structure
    if "..." not in in_html.texts:  # a long table, of which HTML has both ends
        assert in_markdown.words() == in_html.words()


@of_each_kind
def test_names_do_not_break_lines(result):
    markdown, latex = result.to_markdown(), result.to_latex()
    for text in (markdown, latex, repr(result)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u2028]", text)
    for table in markdown.split("\n\n"):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        cells = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in lines}
        assert len(cells) <= 1


# What may follow a backslash, and signs of mathematics.
OF_LATEX = (
    r"\\(text\w+\{\}|[&%$#_{}])|\$[<>|]\$|\$\^\{\w+\}\$|\\textbf\{([^{}]|\{\})*\}|\{\}"
)


@of_each_kind
def test_rows_of_latex_have_no_commands_of_names(result):
    rows = re.findall(r"(?m)^(.*) \\\\$", result.to_latex())
    assert rows
    for row in rows:
        assert not re.match(r"\s*[\[*]", row), "an argument of the \\\\ above"
        left = re.sub(OF_LATEX, "", row)
        assert not re.search(r"[\\{}$^_~#%<>|`]", left)
    assert len({re.sub(OF_LATEX, "", row).count("&") for row in rows}) <= 2


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="requires LaTeX")
@of_each_kind
def test_latex_compiles(result, tmp_path):
    paper = r"\usepackage[paperwidth=300cm,paperheight=300cm]{geometry}"
    body = result.to_latex()
    document = (
        rf"\documentclass{{article}}{paper}\begin{{document}}{body}\end{{document}}"
    )
    (tmp_path / "table.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, re.findall(r"(?m)^!.*", done.stdout)


def test_names_with_dollars_can_be_plotted():
    pyplot = pytest.importorskip("matplotlib").use("Agg") or pytest.importorskip(
        "matplotlib.pyplot"
    )
    two = {name: VALUES[name] for name in (NAMES[3], NAMES[4])}
    by = {"<b>$slice$</b>": SLICES}
    plots = [
        trm.compare(VALUES, by=by).plot()[0],
        trm.compare(two, by=by).plot()[0],
        trm.compare(two).plot_queries("mrr", NAMES[3]),
        trm.evaluate([[1, 0]] * 12, [[2, 1]] * 12, ["mrr"], by=by).plot()[0],
    ]
    for axis in plots:
        axis.figure.canvas.draw()  # raises ParseException for wrong TeX
        pyplot.close(axis.figure)
