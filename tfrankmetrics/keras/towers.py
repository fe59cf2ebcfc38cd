"""Calls of users' functions: towers, which compute vectors from inputs, and scores.

They receive arrays of the library of their inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrankmetrics.columns.read_column import from_pytorch
from tfrankmetrics.inputs.model_inputs import (
    flattened,
    library_of_inputs,
    map_arrays,
    padded,
    rows_of,
    size_of,
)
from tfrankmetrics.keras.backends import is_keras_loaded, library_of_metrics


def outputs_of(tower: Any, batch: Any, width: int = 0) -> Any:
    """The outputs of a tower; without any, the batch itself.

    The tower receives batches padded to at least `width` rows: equal inputs in batches
    of one width yield equal embeddings. A model or a layer is compiled and runs without
    dropout.
    """
    if tower is None:
        return batch
    num_rows, library = size_of("a tower", batch), library_of_inputs(batch)
    function = tower
    if is_keras_loaded():
        from tfrankmetrics.keras.inference import inference_of, is_layer

        if is_layer(tower):
            function = inference_of(tower)
            batch = map_arrays(from_pytorch, batch)
            is_tensorflow = library_of_metrics() == "tensorflow"
            library = "tensorflow" if is_tensorflow else "numpy"
    rows = padded(batch, library, width) if num_rows else batch
    outputs = call_by_user(tower, function, rows)
    expected = size_of("a tower", rows)
    shapes = [[*getattr(each, "shape", [])] for each in flattened(outputs)]
    if not shapes or any(shape[:1] != [expected] for shape in shapes):
        raise ValueError(
            f"A tower must return arrays with a row for each input, {expected} in this "
            "call (the last row is repeated, to compute all in the same way). "
            f"Received: {shapes or 'none'} as their shapes, from {tower!r}."
        )
    return rows_of(outputs, slice(0, num_rows))


def call_by_user(named: Any, function: Callable[..., Any], *inputs: Any) -> Any:
    """What a function of the user returns; its errors name it and its inputs."""
    try:
        return function(*inputs)
    except Exception as error:
        given = [
            f"{type(each).__module__}.{type(each).__name__} {[*each.shape]}"
            for each in flattened(inputs)
        ]
        raise ValueError(
            "`score` and towers must accept the rows that they are passed. Received: "
            f"{type(error).__name__} from {named!r} for {' and '.join(given)}: "
            f"{error}"
        ) from error
