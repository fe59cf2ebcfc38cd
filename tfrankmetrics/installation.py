"""The commands that install the package, and a check of the installed TensorFlow.

`IS_RELEASED` is the one place that states whether PyPI has the package. After a change,
`make tables` writes the commands of README.md, of the site and of the notebooks.

The package does not require the distribution `tensorflow`: arrays and tables do not
need it, and pip would install it in addition to tensorflow-cpu or tf-nightly, and
overwrite their files.
"""

from __future__ import annotations

import importlib.util
from typing import Any

IS_RELEASED = False
REPOSITORY = "https://github.com/tfrankmetrics/tfrankmetrics"
OLDEST = (2, 15)  # of TensorFlow


def install_command(extras: str) -> str:
    """The command that installs the package with some extras, such as "jax"."""
    name = "tfrankmetrics" if IS_RELEASED else "."
    return f'pip install "{name}[{extras}]"'


def install_hint(extras: str) -> str:
    """The command in a sentence of an error, and where to run it."""
    where = "" if IS_RELEASED else f" in a clone of {REPOSITORY}"
    return f"Run {install_command(extras)}{where}."


def require_tensorflow(needed_by: str) -> None:
    """Imports TensorFlow; raises ImportError if it is missing or too old."""
    rule = f"{needed_by} requires TensorFlow {OLDEST[0]}.{OLDEST[1]} or later."
    if not has_tensorflow():
        raise ModuleNotFoundError(
            f"{rule} Received: none is installed. {install_hint('tensorflow')} Or run "
            "pip install tensorflow-cpu, which is smaller. Functions of arrays and "
            "tables, such as tfrankmetrics.evaluate, need NumPy only.",
            name="tensorflow",
        )
    import tensorflow as tf

    if tuple(int(part) for part in tf.__version__.split(".")[:2]) < OLDEST:
        raise ImportError(
            f"{rule} Received: TensorFlow {tf.__version__}. "
            "Run `pip install --upgrade tensorflow`, or upgrade the variant that you "
            "use."
        )


def has_tensorflow() -> bool:
    """Whether there is a TensorFlow to import."""
    return importlib.util.find_spec("tensorflow") is not None


def require(module: str, purpose: str, extra: str = "compare") -> Any:
    """Imports a library of an extra, or raises ImportError that names it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{purpose} requires {module.partition('.')[0]}. Received: {error}. "
            f"{install_hint(extra)}"
        ) from error
