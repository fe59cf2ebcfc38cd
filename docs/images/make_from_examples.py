"""Draws the pictures of two examples, in colors for light and dark pages.

python docs/images/make_from_examples.py quickstart
python docs/images/make_from_examples.py tfx_pipeline
"""

import argparse
import importlib
import pathlib
import shutil
import sys
import tempfile

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
BOTH_SCHEMES, ON_WHITE = HERE / "both_schemes.mplstyle", HERE / "on_white.mplstyle"
# The arguments of `main` before the folder, the picture in it, its name here, styles.
EXAMPLES = {
    "quickstart": (
        {"epochs": 20},
        "quickstart.png",
        "quickstart.png",
        [BOTH_SCHEMES, ON_WHITE],
    ),
    "tfx_pipeline": ({}, "per_slice.png", "tfx_per_slice.png", [BOTH_SCHEMES]),
}


def draw(example):
    """Runs the example in a temporary folder, and keeps its picture."""
    options, picture, name, styles = EXAMPLES[example]
    sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
    module = importlib.import_module(example)
    with (
        tempfile.TemporaryDirectory() as folder,
        plt.style.context(styles),
    ):
        module.main(output=pathlib.Path(folder), **options)
        shutil.copyfile(pathlib.Path(folder) / picture, HERE / name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("example", choices=EXAMPLES)
    draw(parser.parse_args().example)
