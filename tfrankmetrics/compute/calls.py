"""Calls with arrays of NumPy, and of TensorFlow and JAX, which may compile them.

Whoever passes their arrays has imported these libraries; this module does not.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.graphs import executing_eagerly
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure

# Tracing a graph takes as long as some 20 calls without one.
_CALLS_WITHOUT_GRAPH = 8


def call_compiled(
    function: Callable,
    measures: tuple[Measure, ...],
    lists: Lists,
) -> Any:
    """`function(measures, lists)`, which other libraries compile.

    JAX compiles each call for the shapes of the lists; a call that it traces already is
    compiled as part of what it traces. TensorFlow compiles frequent calls.
    """
    arrays = lists.arrays
    library = xp.library_of(*arrays.values())
    if library == "numpy" and not any(m.declaration.needs_tensors for m in measures):
        with quiet(), for_functions_of(measures):
            return function(measures, lists)
    if library == "torch":
        with xp.computing_in("torch"):
            return function(measures, lists)
    if library != "jax":
        arrays = {name: xp.in_library("tensorflow", a) for name, a in arrays.items()}
        lists = lists.with_arrays(arrays)
    if _have_functions(measures):
        # A compiled call would not notice that a user's function behaves differently.
        return function(measures, lists)
    others = tuple((n, v) for n, v in vars(lists).items() if n not in arrays)
    of_arrays = _of_arrays(function, measures, type(lists), others)
    if library == "jax":
        return _compiled_by_jax(of_arrays)(arrays)
    signature = tuple((name, _spec(tensor)) for name, tensor in arrays.items())
    return _tensor_calls(of_arrays, signature)(arrays)


def for_functions_of(measures: tuple[Measure, ...]) -> AbstractContextManager:
    """The context for arrays of NumPy: a user's function may call JAX."""
    may_be_jax = "jax" in sys.modules and _have_functions(measures)
    return xp.computing_in("jax") if may_be_jax else nullcontext()


def _have_functions(measures: tuple[Measure, ...]) -> bool:
    """Whether an option of a metric is a user's function."""
    return any(callable(v) for each in measures for _, v in each.options)


@functools.lru_cache(maxsize=64)
def _of_arrays(
    function: Callable, measures: tuple[Measure, ...], lists_type: Any, others: tuple
) -> Callable:
    """The function, of the arrays of lists; the same one for the same arguments."""

    def ranking_metrics(arrays: Mapping[str, Array]) -> Any:
        return function(measures, lists_type(**arrays, **dict(others)))

    return ranking_metrics


@functools.lru_cache(maxsize=64)
def _compiled_by_jax(of_arrays: Callable) -> Callable:
    return sys.modules["jax"].jit(of_arrays)


def _spec(tensor: Any) -> Any:
    """The tensor's type, with all sizes unknown except a last dimension of 1.

    A graph that knows this dimension is faster.
    """
    tf = sys.modules["tensorflow"]

    shape = [None] * tensor.shape.rank
    if len(shape) > 1 and tensor.shape[-1] == 1:
        shape[-1] = 1
    return tf.TensorSpec(shape, tensor.dtype)


class _TensorCalls:
    """All calls of a function with the same dtypes: one graph serves all shapes.

    Running op by op is many times slower than a graph, but starts at once. The results
    are bitwise identical. Only a last dimension of 1 requires a separate graph.
    """

    def __init__(self, run: Callable, signature: tuple) -> None:
        self.num_calls = 0
        self.run, self.signature = run, dict(signature)

    def __call__(self, tensors: Mapping[str, Array]) -> Any:
        tf = sys.modules["tensorflow"]

        self.num_calls += 1
        run_eagerly = tf.config.functions_run_eagerly()  # as for any tf.function
        if run_eagerly or self.num_calls <= _CALLS_WITHOUT_GRAPH:
            return self.run(tensors)
        graph, options = self.graph
        outputs = tf.raw_ops.PartitionedCall(
            args=tf.nest.flatten(tensors),
            Tout=[tensor.dtype for tensor in graph.outputs],
            f=graph,
            config_proto=options,
        )
        return tf.nest.pack_sequence_as(graph.structured_outputs, outputs)

    @functools.cached_property
    def graph(self) -> tuple[Any, bytes]:
        """The function for tensors of these types, and options to run it as written.

        TensorFlow would rewrite some formulas, such as x / 3 to x * (1 / 3). The
        results would then differ in their last bits from the ops run one by one, and
        would not be faster.
        """
        tf = sys.modules["tensorflow"]

        options = tf.compat.v1.ConfigProto()
        options.graph_options.rewrite_options.disable_meta_optimizer = True
        function = tf.function(self.run, autograph=False)
        graph = function.get_concrete_function(self.signature)
        return graph, options.SerializeToString()


_tensor_calls = functools.lru_cache(maxsize=64)(_TensorCalls)


def require_eager(function: str) -> None:
    """Raises RuntimeError inside a `tf.function`."""
    if not executing_eagerly():
        raise RuntimeError(
            f"{function}() must be called eagerly, since it returns numbers. Received: "
            "a call inside tf.function. Update a metric object there instead."
        )
