"""Ranking metrics for Keras, TensorFlow, JAX, PyTorch and NumPy.

Keras `Metric` classes and array functions for NDCG, MAP, MRR, precision, recall and
thirty more. They are exact under tied scores. The input may be labels and scores, ids,
scores of a catalog, or tables.

The public interface is `__all__` of this package and of its modules `options`,
`testing`, `tfma` and `beam`. All other modules may change.

Each name is imported when it is first used, and TensorFlow only when it is needed.
`__init__.pyi` says where they come from: this module reads it, and so do type checkers
and editors. Tests enforce three rules:

*   Outside of `keras/` and `tfma/`, only `arrays/tensorflow.py` and
    `inputs/read_tensors.py` import TensorFlow when they are imported, and only
    `arrays/jax.py` imports JAX.
*   A metric's class does not know Keras. With the first object, all of them derive from
    the Keras metric in `keras/state.py`, or without Keras from the one in
    `evaluation/accumulating_metric.py`. `keras_hooks.py` is the only connection.
*   Keras must find the classes when it loads a model: `keras/backends.py` registers
    them when Keras is imported.
"""

import functools
import importlib
import pkgutil

from tfrankmetrics import keras_hooks
from tfrankmetrics.keras import backends

__version__ = "0.1.0.dev0"


@functools.cache
def _modules() -> dict[str, str]:
    """The module of each public name."""
    import ast  # which takes a third of the time of `import tfrankmetrics`

    stub = ast.parse(pkgutil.get_data(__name__, "__init__.pyi") or b"")
    return {
        alias.name: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(each for each in _modules() if _is_available(each))
    if name not in _modules():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not _is_available(name):
        raise AttributeError(backends.lacks_keras(f"`{name}`"))
    module = importlib.import_module(_modules()[name])
    globals()[name] = getattr(module, name)
    return globals()[name]


def _is_available(name: str) -> bool:
    """Whether a name can be imported: callbacks need Keras."""
    is_callback = _modules()[name].startswith("tfrankmetrics.callbacks.")
    return not is_callback or backends.can_make_metrics()


def __dir__() -> list[str]:
    return [*__getattr__("__all__"), "__version__"]  # type: ignore[misc]


def _base_of_objects() -> type:
    """The class that keeps the sums of metric objects."""
    if backends.can_make_metrics():
        from tfrankmetrics.keras.state import StatefulMetric

        return StatefulMetric
    from tfrankmetrics.evaluation.accumulating_metric import AccumulatingMetric

    return AccumulatingMetric


keras_hooks.base_of_objects, keras_hooks.register = _base_of_objects, backends.register
backends.register_soon()
