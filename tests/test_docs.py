"""Runs the examples in docstrings and the code blocks in README.md and docs/."""

import ast
import doctest
import importlib
import inspect
import pathlib
import pkgutil
import re

import pytest
from cases import OWN_METRICS as METRICS
from code_blocks import run_blocks
from doc_tables import DOCUMENTS, PAGES_OF_METRICS, ordered, text_of, updated

import tfrankmetrics as trm
from tfrankmetrics import arrays, testing

ROOT = pathlib.Path(__file__).parent.parent
# The modules of JAX and of Keras's other backends have no examples.
OTHER_LIBRARIES = ("arrays.jax", "keras.float32_variables", "keras.tpu")
# `test_tfma.py`, `test_beam.py` and `test_integrations.py` in `validation/` test these
# modules in separate environments.
OF_TOOLS = [
    f"tfrankmetrics.integrations.{name}" for name in ("ir_measures", "torchmetrics")
]
MODULES = [
    name
    for _, name, _ in pkgutil.walk_packages(trm.__path__, "tfrankmetrics.")
    if not name.startswith(("tfrankmetrics.tfma", "tfrankmetrics.beam"))
    and not name.endswith(OTHER_LIBRARIES)
    and name != "tfrankmetrics.arrays.torch"  # PyTorch may not be installed
    and name not in OF_TOOLS
]

BASES = (trm.ItemMetric, trm.TopKMetric, trm.WholeListMetric, trm.SubtopicMetric)
# Users pass no arguments to these.
NO_ARGUMENTS = ["ItemGain", "RankedLists", "RankingWarning", "RunValues"]
NO_ARGUMENTS += [
    "SlicedValues",
    "Comparison",
    "QueryValues",
    "Explanation",
]

PAGES = ["README.md"]
PAGES += sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md"))
# `test_beam.py`, `test_spark.py` and `test_tfma.py` in `validation/` run these pages.
NEED_OTHER_PACKAGES = ["docs/guide/large-tables.md", "docs/guide/tfx.md"]
TRAINS_MODELS = pytest.mark.slow("the page trains models")


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples(module):
    report, runner = [], doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder().find(importlib.import_module(module)):
        runner.run(example, out=report.append)
    if report:  # the example, and what was expected and received
        pytest.fail("".join(report), pytrace=False)


@pytest.mark.parametrize("name", sorted({*trm.__all__} - {"CONVENTIONS"}))
def test_public_names_have_documentation_and_an_example(name):
    public = getattr(trm, name)
    assert ">>> " in public.__doc__
    if name not in NO_ARGUMENTS:
        assert "Args:" in public.__doc__
    is_declared = hasattr(public, "declaration")
    if is_declared:  # the base class documents the errors
        public = next(base for base in BASES if issubclass(public, base))
    if public in (*BASES, trm.RankingMetrics) or inspect.isfunction(public):
        assert "Raises:" in public.__doc__


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(page, marks=TRAINS_MODELS) if "fit(" in text_of(page) else page
        for page in PAGES
        if page not in NEED_OTHER_PACKAGES and "```python" in text_of(page)
    ],
)
def test_code_blocks_print_the_output_shown(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    run_blocks(ROOT / document)


def test_the_guide_lists_every_operation_for_formulas():
    listed = re.search(
        r"## Operations\n.*?```text\n(.*?)```",
        text_of("docs/guide/custom-metrics.md"),
        re.DOTALL,
    )
    assert listed[1].split() == sorted(arrays.OPERATIONS.split())


def test_reference_has_every_public_name():
    """Each public name has a block of its own, which mkdocstrings fills in."""
    pages = [
        page
        for folder in ("metrics", "reference")
        for page in (ROOT / "docs" / folder).glob("*.md")
    ]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    blocks = re.findall(r"^::: tfrankmetrics\.(\S+)", text, re.MULTILINE)
    assert len(blocks) == len({*blocks})
    public = [*trm.__all__, *(f"options.{name}" for name in trm.options.__all__)]
    public.remove("Options")  # it is in `options`, too
    public += [f"testing.{name}" for name in testing.__all__]
    for module in ["tfma", "beam"]:  # read, since Beam and TFMA may not be installed
        source = (ROOT / "tfrankmetrics" / module / "__init__.py").read_text("utf-8")
        names = re.search(r"^__all__ = (\[.*?\])", source, re.MULTILINE | re.DOTALL)
        public += [f"{module}.{name}" for name in ast.literal_eval(names[1])]
    # What the methods of a comparison return has no public name, but a place here.
    # So do the names of integrations, whose modules are those of other tools.
    elsewhere = ("comparison.", "integrations.")
    returned = [name for name in blocks if name.startswith(elsewhere)]
    private = {*blocks} - {*public, *returned}
    assert not private, (
        f"{private} are in the reference, but not public: add them to "
        "tfrankmetrics/__init__.pyi, or to __all__ of tfrankmetrics/options.py"
    )
    lacking = {*public} - {*blocks}
    assert not lacking, (
        f"{lacking} have no place in the reference: add them to a page of docs/metrics/ "
        "or docs/reference/"
    )


SECTION = re.compile(
    r"^### `(?P<name>\w+)(?:@k)?`: .+\n\n"
    r"(?P<words>(?:[A-Z].+\n)(?:.+\n)*\n)"
    r"(?P<formulas>(?:```math\n.+\n```\n\n)+)"
    r"(?P<symbols>(?:Here (?:.+\n)+\n)?)"
    r"\*\*Example\.\*\* (?P<example>(?:.+\n)+)\n"
    r"(?:!\[.+\n\n)?"
    r"\*\*Use it when\*\* (?:.+\n)+\n"
    r"\*\*Pitfall\.\*\* (?:.+\n)+\n"
    r"::: tfrankmetrics\.(?P<cls>\w+)\n",
    re.MULTILINE,
)
INLINE_FORMULA = re.compile(r"\$([^$\n]+)\$")
SYMBOL = re.compile(r"\\(?:ell|alpha)\b|(?<![\\a-zA-Z])[a-zA-Z](?![a-zA-Z])")
of_each_page = pytest.mark.parametrize("page", PAGES_OF_METRICS)


@of_each_page
def test_each_metric_has_a_section_with_its_class(page):
    """The sections have one form: words, formulas, example, use, pitfall and class."""
    text = text_of(page)
    sections = [*SECTION.finditer(text)]
    assert len(sections) == text.count("\n### ")
    assert {each["name"]: each["cls"] for each in sections} == {
        name: METRICS[name].cls.__name__
        for name, its_page in ordered().items()
        if its_page == page
    }


@of_each_page
def test_examples_end_with_the_value_that_the_page_prints(page):
    text = text_of(page)
    printed = re.search(r"^```text\n(.+?)^```", text, re.MULTILINE | re.DOTALL)[1]
    values = dict(re.findall(r"^(\w+)\S* +([\d.]+)$", printed, re.MULTILINE))
    for section in SECTION.finditer(text):
        name = section["name"]
        assert name in values, f"the code block at the top of {page} must print {name}"
        last = re.findall(r"\d+(?:\.\d+)?", section["example"])[-1]
        assert float(last) == float(values[name]), (
            f"the example of {name} in {page} must end with {values[name]}"
        )


@of_each_page
def test_each_symbol_of_a_formula_is_explained(page):
    """In the table of all symbols, below the formula, or as what a sum runs over."""
    table = re.search(
        r"^\| symbol .*\n(?:\|.*\n)+", text_of("docs/metrics/index.md"), re.MULTILINE
    )[0]
    shared = " ".join(re.findall(r"^\| \$(.+?)\$ ", table, re.MULTILINE))
    for section in SECTION.finditer(text_of(page)):
        formulas = re.sub(r"\\text\{[^}]*\}", "", section["formulas"])
        formulas = formulas.replace("```math", "")
        below = " ".join(INLINE_FORMULA.findall(section["symbols"]))
        below = re.sub(r"\\text\{([^}]*)\}", "", below)
        summed = " ".join(re.findall(r"\\(?:sum|prod)_\{?(\w)", formulas))
        explained = {*SYMBOL.findall(f"{shared} {below} {summed}")}
        assert {*SYMBOL.findall(formulas)} <= explained, section["name"]


@pytest.mark.parametrize("page", ["docs/metrics/index.md", *PAGES_OF_METRICS])
def test_formulas_in_sentences_have_nothing_that_markdown_changes(page):
    r"""Markdown takes the backslash of `\,` and `\{` away before TeX sees it."""
    text = re.sub(r"```math\n.*?```", "", text_of(page), flags=re.S)
    formulas = INLINE_FORMULA.findall(text)
    assert len(formulas) == text.count("$") // 2
    assert not re.search(r"\\[^a-zA-Z]|\*", " ".join(formulas))


def test_links_point_to_files():
    # Others in the checkout, such as those of a virtual environment, are not ours.
    documents = [
        ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")
    ]
    for folder in ("docs", "benchmarks"):
        documents += (ROOT / folder).glob("**/*.md")
    for document in documents:
        text = document.read_text(encoding="utf-8")
        for link, title in re.findall(r"\]\(([^)#\s]+)(?: \"(\w+)\")?", text):
            if not link.startswith("http"):
                assert (document.parent / link).exists(), f"{document}: {link}"
            if title:  # the name of a test
                code = (document.parent / link).read_text(encoding="utf-8")
                assert f"def {title}(" in code


def test_the_page_quotes_the_warnings_as_they_are():
    """Readers search the page for the words of a warning."""
    _, table = text_of("docs/troubleshooting.md").split("\n## Warnings\n")
    cells = re.findall(r'^\| ("[^|]+") \|', table, re.MULTILINE)
    quoted = [words for cell in cells for words in re.findall(r'"(.+?)"', cell)]
    assert len(quoted) > 15
    sources = [
        path.read_text("utf-8") for path in (ROOT / "tfrankmetrics").rglob("*.py")
    ]
    # A text may go on in the next line of the source.
    text = re.sub(r'"\s+f?"', "", "\n".join(sources))
    for words in quoted:
        assert f'"{words}' in text, words


@pytest.mark.parametrize("document", DOCUMENTS)
def test_tables_are_those_of_the_declarations(document):
    assert updated(document) == text_of(document), "Run `make tables`."
