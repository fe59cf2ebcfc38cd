"""Names for the types of what users pass and receive.

No type checker could state exactly what the functions read: arrays of four libraries,
nested lists, and columns of any library of tables. These names accept everything and
document a signature.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas as pd

# Arrays of NumPy, TensorFlow, JAX and PyTorch, nested lists, columns of a table.
ArrayLike: TypeAlias = Any
# The same, or the name of a column in `data=`.
ColumnLike: TypeAlias = ArrayLike | str
# The name of a column, or of several that identify something together.
Names: TypeAlias = str | Sequence[str]
# A data frame of pandas, polars or Arrow, a dict of columns or of dicts, or a path.
TableLike: TypeAlias = Any
# The slice of each query: a column, or several as a dict from their names.
SlicesLike: TypeAlias = ColumnLike | Mapping[str, ColumnLike]
# A Keras model or a function, from a batch of features to embeddings.
Tower: TypeAlias = Callable[[Any], Any]
# The name of a query or of a slice.
Key: TypeAlias = Hashable
DataFrame: TypeAlias = "pd.DataFrame"
Axes: TypeAlias = "matplotlib.axes.Axes"
