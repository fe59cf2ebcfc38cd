"""What JAX computes in a program for a TPU, which has no numbers of 64 bits.

A TPU imitates them and takes minutes to compile what a CPU compiles in a second. JAX
traces a step before it knows for which devices. It traces an update in 64 bits, and
once more in 32 bits only when it lowers the step for a TPU, where nothing reads the
first results. `jax.lax.platform_dependent` would always trace both.

In 32 bits, the value of each query is rounded to float32, and the three parts of a sum
keep the rounding errors of one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from tfrankmetrics.arrays.jax import is_narrow, is_tracing, narrow, narrowed
from tfrankmetrics.graphs import keras_mask_of, set_keras_mask
from tfrankmetrics.keras.bases import keras


def add_also_on_tpu(metric: Any, add: Callable, *arguments: Any) -> None:
    """Calls `add(*arguments)`, which adds to the variables of the metric.

    In a program for a TPU, the variables get what it adds in 32 bits.
    """
    before = [variable.value for variable in metric.variables]
    add(*arguments)
    after = [variable.value for variable in metric.variables]
    if is_narrow() or not hasattr(jax, "enable_x64") or not is_tracing(*after):
        return
    _, y_pred, _ = arguments
    data = before, arguments, keras_mask_of(y_pred)
    # Only arrays can be operands; other leaves, such as None, are put back among them.
    leaves, structure = jax.tree.flatten(data)
    are_arrays = [isinstance(leaf, jax.Array) for leaf in leaves]

    def updated(*arrays: jax.Array) -> list[jax.Array]:
        remaining = iter(arrays)
        data = (
            next(remaining) if is_array else leaf
            for leaf, is_array in zip(leaves, are_arrays, strict=True)
        )
        before, arguments, mask = jax.tree.unflatten(structure, data)
        if mask is not None:
            set_keras_mask(arguments[1], mask)
        state = [*zip(metric.variables, before, strict=True)]
        with keras.StatelessScope(state_mapping=state) as scope:
            add(*arguments)
        return [scope.get_current_value(variable) for variable in metric.variables]

    arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array)]
    values = _unless_on_tpu(after, updated, arrays)
    for variable, value in zip(metric.variables, values, strict=True):
        variable.assign(value)


def sum_of_parts(parts: jax.Array, amount: jax.Array) -> list[jax.Array]:
    """The three parts of a sum, `[..., 3]`, plus an amount."""
    first, rest = _sum_and_error(parts[..., 0], amount)
    second, rest = _sum_and_error(parts[..., 1], rest)
    first, second = _sum_and_error(first, second)
    second, rest = _sum_and_error(second, parts[..., 2] + rest)
    return [first, second, rest]


def _sum_and_error(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The rounded sum and the rest of the exact one, both in float32 (Knuth)."""
    total = x + y
    of_y = total - x
    return total, (x - (total - of_y)) + (y - of_y)


# `unless_on_tpu` is an operation of JAX, a primitive, with the operands `*results` and
# `*arrays`. JAX calls one of the functions below to compile it for a device (`_lowered`
# or `_lowered_for_tpu`), to compute it for a batch (`_batched`), to differentiate it
# (`_differentiated`), and to compute it outside of a traced function (`_computed`).


def _unless_on_tpu(
    results: Sequence[Any], on_tpu: Callable, arrays: Sequence[Any]
) -> list[Any]:
    """The results, or in a program for a TPU those of `on_tpu(*arrays)`."""
    size = len(results)
    return _operation.bind(*results, *arrays, num_results=size, on_tpu=on_tpu)


def _lowered(context: Any, *operands: Any, num_results: int, **_: Any) -> Sequence[Any]:
    return operands[:num_results]


def _lowered_for_tpu(
    context: Any, *operands: Any, num_results: int, on_tpu: Callable
) -> Sequence[Any]:
    def compute(*operands: jax.Array) -> list[jax.Array]:
        return on_tpu(*map(narrowed, operands[num_results:]))

    with narrow():
        return mlir.lower_fun(compute, multiple_results=True)(context, *operands)


def _batched(
    operands: Sequence[Any], axes: Sequence[Any], *, num_results: int, on_tpu: Callable
) -> tuple[list[Any], list[int]]:
    """The operation for a batch, which some operands have on one of their axes."""
    pairs = zip(operands, axes, strict=True)
    size = next(each.shape[axis] for each, axis in pairs if axis is not None)

    def for_each(function: Callable, axes: Sequence[Any]) -> Callable:
        return jax.vmap(function, in_axes=tuple(axes), axis_size=size)

    results, arrays = operands[:num_results], operands[num_results:]
    results = for_each(lambda *rows: rows, axes[:num_results])(*results)
    on_tpu = for_each(on_tpu, axes[num_results:])
    return _unless_on_tpu(results, on_tpu, arrays), [0] * num_results


def _differentiated(
    operands: Sequence[Any], tangents: Sequence[Any], *, num_results: int, **other: Any
) -> tuple[list[Any], Sequence[Any]]:
    """The operation, and the derivatives of the results in 64 bits."""
    results = _operation.bind(*operands, num_results=num_results, **other)
    return results, tangents[:num_results]


def _computed(*operands: Any, **options: Any) -> list[Any]:
    return jax.jit(lambda *arrays: _operation.bind(*arrays, **options))(*operands)


_operation = Primitive("unless_on_tpu")
_operation.multiple_results = True
_operation.def_impl(_computed)
_operation.def_abstract_eval(lambda *operands, num_results, **_: operands[:num_results])
mlir.register_lowering(_operation, _lowered)
mlir.register_lowering(_operation, _lowered_for_tpu, platform="tpu")
batching.primitive_batchers[_operation] = _batched
ad.primitive_jvps[_operation] = _differentiated
