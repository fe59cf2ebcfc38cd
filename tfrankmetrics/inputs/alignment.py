"""Series and frames of pandas, matched by their indexes, in every function.

*   Two indexes with the same labels in the same order need nothing.
*   The same labels in a different order are aligned, with a warning, if each label
    occurs once.
*   Different labels are an error, and so are repeated labels in a different order.
*   The index 0, 1, ..., n - 1, which pandas gives to new data, counts as none next to
    different labels.

Everything is put into the order of the first argument that has an index.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.inputs.whole_data import refuse_columns
from tfrankmetrics.rules import shortened

RULE = "Series and frames are matched by their indexes."


def aligned(arguments: Mapping[str, Any], wide: Collection[str] = ()) -> dict[str, Any]:
    """The arguments, by name, with all rows in the order of the first index.

    An argument may also be a dict of columns. In lists of Series, one for each query,
    the items of each query are aligned.

    Args:
        arguments: Any data; only those of pandas have an index.
        wide: The names of the arguments whose columns are items, which are aligned in
            frames, too.
    """
    if "pandas" not in sys.modules:  # then there is no index
        return {**arguments}
    leaves = dict(_leaves(arguments))
    have_indexes = (
        _has_index(data) or (path[0] in wide and _has_series(data))
        for path, data in leaves.items()
    )
    if not any(have_indexes):
        return {**arguments}
    rows, columns = _Axis(0), _Axis(1)
    for path, data in leaves.items():
        if _has_index(data):
            name = _name_of_path(path)
            leaves[path] = rows.aligned(name, data)
            if path[0] in wide and data.ndim == 2:
                leaves[path] = columns.aligned(name, leaves[path])
    leaves |= _aligned_items({p: data for p, data in leaves.items() if p[0] in wide})
    return _with_leaves(arguments, leaves)


def aligned_lists(inputs: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `evaluate`, for an input format."""
    if inputs == "labels":
        refuse_columns(arguments["y_true"], arguments["y_pred"])
    return aligned(arguments, arguments.keys() - {"by"} if inputs == "labels" else ())


def _leaves(data: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """The data in nested dicts, with the keys that lead to them."""
    if isinstance(data, Mapping):
        for key, each in data.items():
            yield from _leaves(each, (*path, key))
    else:
        yield path, data


def _with_leaves(data: Any, leaves: Mapping[tuple, Any], path: tuple = ()) -> Any:
    """The same nested dicts with other data."""
    if not isinstance(data, Mapping):
        return leaves[path]
    return {key: _with_leaves(each, leaves, (*path, key)) for key, each in data.items()}


def _name_of_path(path: tuple) -> str:
    """How a message names the data under these keys."""
    return f"{path[0]}{''.join(f'[{key!r}]' for key in path[1:])}"


def _aligned_items(arguments: Mapping[tuple, Any]) -> dict[tuple, Any]:
    """Lists with Series, with the items of each query in the order of the first one."""
    lists = {path: data for path, data in arguments.items() if _has_series(data)}
    if len({*map(len, lists.values())}) != 1:
        return {}
    names = [*map(_name_of_path, lists)]
    queries = [
        aligned(dict(zip(names, items, strict=True)))
        for items in zip(*lists.values(), strict=True)
    ]
    return {
        path: [query[name] for query in queries]
        for path, name in zip(lists, names, strict=True)
    }


def _has_series(data: Any) -> bool:
    """Whether some of the lists have an index."""
    is_list = isinstance(data, (list, tuple))
    if not is_list and str(getattr(data, "dtype", "")) != "object":
        return False
    return any(map(_has_index, {type(each): each for each in data}.values()))


def _has_index(data: Any) -> bool:
    is_pandas = type(data).__module__.partition(".")[0] == "pandas"
    return is_pandas and hasattr(data, "index") and hasattr(data, "iloc")


class _Axis:
    """The order of rows (0) or of columns (1)."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._name: str | None = None  # of the argument whose order it is
        self._order: Any = None

    def aligned(self, name: str, data: Any) -> Any:
        """The data in this order, which is its own if it is the first."""
        own = data.axes[self._number]
        if self._name is None:
            self._name, self._order = name, own
        if len(own) != len(self._order) or own.equals(self._order):
            return data  # data of different lengths are a separate error
        if own.is_unique and self._order.is_unique:
            places = own.get_indexer(self._order)
            if (places >= 0).all():
                warn(
                    f"{RULE} Received: {self._name} and {name} with the same labels in "
                    f"different orders. {name} was put into the order of {self._name}. "
                    f"If their positions match, pass {name}.to_numpy()."
                )
                return data.iloc[places] if self._number == 0 else data.iloc[:, places]
        if _is_new(self._order):
            self._name, self._order = name, own
        elif not _is_new(own):
            self._refuse(name, own)
        return data

    def _refuse(self, name: str, own: Any) -> None:
        only = self._order.difference(own, sort=False)[:1].tolist()
        received = "repeated labels in different orders"
        if only:
            received = (
                f"different labels, such as {shortened(only[0])} in the first only"
            )
        raise ValueError(
            f"{RULE} Received: {self._name} and {name} with {received}. Select the "
            f"same labels in both, or pass {name}.to_numpy() if their positions match."
        )


def _is_new(index: Any) -> bool:
    """Whether an index numbers the rows from 0, as in new data."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 == index.step - 1
