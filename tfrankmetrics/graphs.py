"""The graph that is being traced, and the results that metrics share in it.

Keras passes the same tensors to all metrics of a model, and traces each metric's update
into the same graph. A graph caches the results for its tensors. The cache is an
attribute of the graph and has its lifetime. The branches of a `tf.cond`, the bodies of
loops and other functions are separate graphs: nothing is shared between them.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

Result = TypeVar("Result")


def once_per_graph(make: Callable[..., Result], *arguments: Any) -> Result:
    """`make(*arguments)`, or its earlier result for the same arguments in this graph.

    Tensors are the same if they are one object. Without a graph, and for arrays, which
    may change, the function is called each time.
    """
    graph = _scopes.step or current_graph()
    if graph is None:
        return make(*arguments)
    key = make, *map(_identity, arguments)
    try:
        hash(key)
    except TypeError:  # an array or a list, which may change
        return make(*arguments)
    if not hasattr(graph, "_tfrankmetrics_results"):
        graph._tfrankmetrics_results = {}
    results = graph._tfrankmetrics_results
    if key not in results:
        results[key] = make(*arguments)
    return results[key]


def executing_eagerly() -> bool:
    """Whether no graph is being made, as when TensorFlow was never imported."""
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is None or tensorflow.executing_eagerly()


def outside_of_graphs() -> AbstractContextManager:
    """A context that runs eagerly, also while a graph is being made."""
    if executing_eagerly():
        return nullcontext()
    return sys.modules["tensorflow"].init_scope()


def current_graph() -> Any:
    """The graph of the function that is being traced, or None in eager mode."""
    if executing_eagerly():
        return None
    graph = sys.modules["tensorflow"].compat.v1.get_default_graph()
    return graph if getattr(graph, "building_function", False) else None


class _Scopes(threading.local):
    """What takes the place of a graph in other libraries, in each thread."""

    current: object = None  # the innermost branch or loop of JAX that is being traced
    step: Any = None  # the updates in PyTorch that share their results


_scopes = _Scopes()


@contextlib.contextmanager
def sharing_in(step: object) -> Iterator[None]:
    """A context in which `once_per_graph` caches results in this object."""
    _scopes.step = step
    try:
        yield
    finally:
        _scopes.step = None


def new_scope(function: Callable[..., Result]) -> Callable[..., Result]:
    """The function, as a branch or a loop that JAX traces separately."""

    @functools.wraps(function)
    def in_new_scope(*arguments: Any) -> Result:
        outer, _scopes.current = _scopes.current, object()
        try:
            return function(*arguments)
        finally:
            _scopes.current = outer

    return in_new_scope


def current_scope() -> Any:
    """The graph, branch or loop that is being traced, or None in eager mode.

    Its results are unknown outside of it.
    """
    return _scopes.current or current_graph()


def keras_mask_of(tensor: Any) -> Any:
    """The mask that a Keras layer has attached to its output, or None.

    Keras keeps the masks of arrays that JAX traces in a separate place, without a
    public way to read them. If it renames the private one, a test fails.
    """
    mask = getattr(tensor, "_keras_mask", None)
    if mask is None and "jax" in type(tensor).__module__:
        backend = sys.modules.get("keras.src.backend")
        mask = backend.get_keras_mask(tensor) if backend else None
    return mask


def set_keras_mask(tensor: Any, mask: Any) -> None:
    """Attaches a mask to an array that JAX traces, as a Keras layer would."""
    sys.modules["keras.src.backend"].set_keras_mask(tensor, mask)


def _identity(argument: Any) -> Any:
    if isinstance(argument, Mapping):
        return tuple((name, _identity(value)) for name, value in argument.items())
    torch, tensorflow = map(sys.modules.get, ("torch", "tensorflow"))
    is_of_torch = torch is not None and isinstance(argument, torch.Tensor)
    if is_of_torch or (tensorflow is not None and tensorflow.is_tensor(argument)):
        return _Same(argument), _Same(keras_mask_of(argument))
    return argument


class _Same:
    """Equal for the same object. It keeps the object, which makes its id unique."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)
