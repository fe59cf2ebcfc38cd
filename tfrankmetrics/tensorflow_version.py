"""Checks that a TensorFlow is installed, and that it is new enough.

The package does not require the distribution `tensorflow`: it would be installed beside
tensorflow-cpu or tf-nightly, and overwrite their files.
"""

OLDEST = (2, 15)
_RULE = f"tfrankmetrics needs TensorFlow {OLDEST[0]}.{OLDEST[1]} or later."

try:
    import tensorflow as tf
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise
    raise ModuleNotFoundError(
        f"{_RULE} Received: none is installed. Run `pip install tensorflow`, or "
        "`pip install tensorflow-cpu`, which is smaller.",
        name="tensorflow",
    ) from None

if tuple(int(part) for part in tf.__version__.split(".")[:2]) < OLDEST:
    raise ImportError(
        f"{_RULE} Received: TensorFlow {tf.__version__}. "
        "Run `pip install --upgrade tensorflow`, or upgrade the variant that you use."
    )
