"""Tests that the notebooks run and that their stored outputs are up to date."""

import pathlib
import re

import pytest

from notebooks.execute import (
    NOTEBOOKS,
    assert_alike,
    read,
    run,
    stderr_texts,
    text_outputs,
)
from tfrankmetrics.installation import IS_RELEASED, REPOSITORY

ROOT = pathlib.Path(__file__).parent.parent
# It needs TensorFlow Model Analysis. `validation/test_tfma.py` runs it.
ELSEWHERE = ["06_tfx_evaluation"]
HERE = [path for path in NOTEBOOKS if path.stem not in ELSEWHERE]
# The values of trained models differ slightly between machines.
WITH_TRAINING = ["02_recommendation", "04_train_with_ranking_metrics", "05_retrieval"]
# This one is about one table, whose text output is most of what there is to see.
FEWER_PICTURES = {"06_tfx_evaluation": 2}
COLAB = "https://colab.research.google.com/github"
LINK = re.compile(r"\]\(([^)\s#]+)")

of_each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.mark.slow("starts a kernel for each notebook and trains models")
@pytest.mark.parametrize("path", HERE, ids=lambda path: path.stem)
def test_notebook_runs_and_reproduces_its_outputs(path):
    stored, fresh = read(path), run(path)
    assert stderr_texts(fresh) == []
    if path.stem in WITH_TRAINING:
        assert_alike(fresh, stored)
    else:
        assert text_outputs(fresh) == text_outputs(stored)


@of_each
def test_notebook_is_stored_with_outputs_and_is_small(path):
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    counts = [cell.execution_count for cell in code]
    assert counts == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell.outputs]
    pictures = ["image/png" in output.get("data", {}) for output in outputs]
    assert sum(pictures) >= FEWER_PICTURES.get(path.stem, 4)
    assert not any(output.get("name") == "stderr" for output in outputs)
    assert not any(cell.metadata for cell in notebook.cells)  # such as times
    assert path.stat().st_size < 200_000
    assert not re.search(r"/(home|root|Users|work|tmp)/", path.read_text("utf-8"))


@of_each
def test_first_cells_say_what_is_needed_and_open_the_notebook_in_colab(path):
    first, in_colab, *_ = read(path).cells
    assert first.source.startswith("# ")
    assert "After this notebook you can" in first.source
    needs = re.search(
        r"^It takes about .+ and needs `pip install \"\.(\[[\w,]+\])\" jupyterlab` in a "
        r"checkout",
        first.source,
        re.MULTILINE,
    )
    site = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    repository = re.search(r"^repo_url: https://github\.com/(\S+)$", site, re.MULTILINE)
    branch = re.search(r"^edit_uri: edit/(\w+)/docs/$", site, re.MULTILINE)
    address = f"{COLAB}/{repository[1]}/blob/{branch[1]}/notebooks/{path.name}"
    assert f"[Open it in Colab]({address})" in first.source
    *comments, command = in_colab.source.splitlines()
    assert comments[0].startswith("# In Colab, ")
    source = f"tfrankmetrics{needs[1]}"
    source += "" if IS_RELEASED else f" @ git+{REPOSITORY}"
    assert command == f'# %pip install "{source}"'


def test_the_first_notebook_ends_with_the_documents_that_it_retraces():
    last = read(NOTEBOOKS[0]).cells[-1].source
    assert last.startswith("## References\n")
    documents = re.split(r"^\*   ", last, flags=re.MULTILINE)[1:]
    assert len(documents) == 5
    for document in documents:
        named = re.match(r"[\w-]+, \[[`*].+[`*]\]\(https://\S+\)", document)
        assert named, document


@of_each
def test_links_point_to_files(path):
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for link in LINK.findall(cell.source):
                assert link.startswith("https://") or (path.parent / link).exists(), (
                    link
                )
