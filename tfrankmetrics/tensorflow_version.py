"""Checks that a TensorFlow is installed, and that it is new enough.

The package does not require the distribution `tensorflow`: arrays and tables do not
need it, and pip would install it in addition to tensorflow-cpu or tf-nightly, and
overwrite their files.
"""

from __future__ import annotations

import importlib.util

from tfrankmetrics.installation import install_hint

OLDEST = (2, 15)


def require_tensorflow(needed_by: str) -> None:
    """Imports TensorFlow; raises ImportError if it is missing or too old."""
    rule = f"{needed_by} requires TensorFlow {OLDEST[0]}.{OLDEST[1]} or later."
    if not is_installed():
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


def is_installed() -> bool:
    """Whether there is a TensorFlow to import."""
    return importlib.util.find_spec("tensorflow") is not None
