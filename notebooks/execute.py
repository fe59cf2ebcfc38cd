"""Runs notebooks from the top and stores their outputs.

    python notebooks/execute.py 04_train_with_ranking_metrics

The tests import this module: a fresh run must print what is stored.
"""

import argparse
import base64
import io
import math
import pathlib
import re

import nbformat
from nbclient import NotebookClient
from PIL import Image

NOTEBOOKS = sorted(pathlib.Path(__file__).parent.glob("*.ipynb"))
# Stored without the versions of the machine that ran the notebook.
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
PNG, SCRIPT = "image/png", "application/javascript"
DECIMAL = re.compile(r"-?\d+\.\d*(?:e[+-]\d+)?")
WHOLE = re.compile(r"\d+")


def read(path):
    """The notebook as it is stored."""
    return nbformat.read(path, as_version=4)


def run(path):
    """The notebook after a run in a new kernel."""
    return NotebookClient(
        read(path),
        timeout=600,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()


def store(path):
    """Runs a notebook and writes it with its outputs.

    Left out are stderr, and the script of Apache Beam, which loads others from the net.
    """
    notebook = run(path)
    notebook.metadata = METADATA
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in cell.outputs
                if not _is_stderr(output) and SCRIPT not in output.get("data", {})
            ]
            for output in cell.outputs:
                if PNG in output.get("data", {}):
                    output.data[PNG] = _with_few_colors(output.data[PNG])
    nbformat.write(notebook, path)


def text_outputs(notebook):
    """The text output of each cell, without images and warnings."""
    return [
        "".join(
            output.get("text") or output.get("data", {}).get("text/plain", "")
            for output in cell.get("outputs", [])
            if not _is_stderr(output)
        )
        for cell in notebook.cells
    ]


def stderr_texts(notebook):
    """What the cells write to stderr, but for TensorFlow's lines when it starts."""
    return [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if _is_stderr(output) and "\nimport " not in cell.source
    ]


def assert_alike(fresh, stored):
    """Asserts that two runs print the same words, and numbers that are close.

    The weights of a model that is trained on another machine differ in their last
    digits, and after some epochs the metrics differ in the third one: decimals must
    agree within 0.05. Whole numbers are the same, or count queries that one of two
    models wins: they must agree within 5 and a tenth.
    """
    for new, old in zip(text_outputs(fresh), text_outputs(stored), strict=True):
        assert _words(new) == _words(old)
        for one, other in zip(DECIMAL.findall(new), DECIMAL.findall(old), strict=True):
            assert math.isclose(float(one), float(other), abs_tol=0.05), (new, old)
        for one, other in zip(_whole(new), _whole(old), strict=True):
            assert abs(one - other) <= 5 + other / 10, (new, old)


def _with_few_colors(picture):
    """A PNG with 128 colors, which takes a third of the bytes."""
    image = Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB")
    smaller = io.BytesIO()
    image.quantize(128).save(smaller, "PNG", optimize=True)
    return base64.b64encode(smaller.getvalue()).decode()


def _is_stderr(output):
    return output.get("name") == "stderr"


def _words(text):
    """The text with # for each number. The columns of tables are as wide as numbers."""
    return re.sub(r"[\s-]+", " ", WHOLE.sub("#", DECIMAL.sub("#", text)))


def _whole(text):
    return [int(number) for number in WHOLE.findall(DECIMAL.sub("", text))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=[path.stem for path in NOTEBOOKS])
    for path in NOTEBOOKS:
        if path.stem in parser.parse_args().names:
            store(path)
