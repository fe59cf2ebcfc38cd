"""Data that come in batches: of `tf.data`, and of the datasets of Keras and PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tfrankmetrics import arrays as xp
from tfrankmetrics.columns.read_column import from_pytorch
from tfrankmetrics.inputs.model_inputs import map_arrays
from tfrankmetrics.rules import shortened


def is_dataset(data: Any) -> bool:
    """Whether data are a `tf.data.Dataset`."""
    return xp.is_of_tensorflow(data) and hasattr(data, "cardinality")


def comes_in_batches(data: Any) -> bool:
    """Whether data are read batch by batch: also a `PyDataset` or a `DataLoader`."""
    is_loader = _is_py_dataset(data) or _has_class(data, "torch", "DataLoader")
    return is_dataset(data) or is_loader


def _is_py_dataset(data: Any) -> bool:
    return _has_class(data, "keras", "PyDataset")


def _has_class(data: Any, package: str, name: str) -> bool:
    return any(
        each.__name__ == name and each.__module__.partition(".")[0] == package
        for each in type(data).__mro__
    )


def batches_of(data: Any) -> Iterator[Any]:
    """The batches of one pass, of NumPy arrays or of TensorFlow's tensors."""
    batches = data
    if _is_py_dataset(data):
        batches = (data[number] for number in range(data.num_batches))
    for batch in batches:
        yield map_arrays(from_pytorch, batch)


def refuse_unordered(data: Any, by_position: str) -> None:
    """Raises ValueError if the order of the batches is random.

    TensorFlow and PyTorch provide no public way to detect this. If the private
    attributes are renamed, the error no longer appears, and a test fails.
    """
    how = "shuffle()" if "Shuffle" in type(data).__name__ else None
    sampler = getattr(getattr(data, "batch_sampler", None), "sampler", None)
    sampler = sampler or getattr(data, "sampler", None)
    # Iterables have no sampler.
    in_order = ("NoneType", "SequentialSampler", "_InfiniteConstantSampler")
    is_loader = _has_class(data, "torch", "DataLoader")
    if is_loader and type(sampler).__name__ not in in_order:
        how = f"shuffle=True or the sampler {type(sampler).__name__}"
    if how is not None:
        raise ValueError(
            f"{by_position} must be in the order of the dataset. Received: a dataset "
            f"with {how}. Omit {how}, which is unnecessary in an evaluation."
        )
    for source in getattr(data, "_inputs", list)() if is_dataset(data) else []:
        refuse_unordered(source, by_position)


def require_end(name: str, data: Any) -> None:
    """Raises ValueError for batches that never end."""
    if is_dataset(data):
        is_infinite = int(data.cardinality()) == -1  # tf.data.INFINITE_CARDINALITY
    else:
        is_infinite = _is_py_dataset(data) and data.num_batches is None
    if is_infinite:
        raise ValueError(
            f"{name} must be finite, since each evaluation reads all of it. Received: "
            f"{shortened(data)}, which repeats forever. Remove repeat()."
        )
