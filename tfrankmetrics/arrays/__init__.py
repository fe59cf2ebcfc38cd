"""Operations on arrays, under one name for all array libraries.

Formulas are written once, with these operations and with Python's operators. An
operation runs in the library of its arguments: `arrays/tensorflow.py` implements it for
tensors of TensorFlow, `arrays/jax.py` for arrays of JAX, `arrays/torch.py` for tensors
of PyTorch, and `arrays/numpy.py` for arrays of NumPy and for Python's numbers; where
they do not, the library itself does, as `package` in these modules. Arrays of NumPy may
be mixed with the others. The arrays of `sql/` are expressions.

Operations that the Python array API standard defines keep their names and semantics
(https://data-apis.org/array-api/latest/), except that `searchsorted` works on each row
of `[B, N]`. `OPERATIONS` are those of the standard for formulas of users. The others
are:

divide_no_nan(x, y)
    x / y, and 0 where y is 0.
select(which, values, otherwise)
    `values` where `which`, of the same shape, is True, and a number elsewhere. Faster
    than `where` on TensorFlow. The `select` of NumPy is a different function.
gather(values, index)
    The elements `[B, D]` of each row of `values` `[B, N]` or `[B, N, T]`.
scatter(values, index, number), scatter_max(values, index, numbers)
    The values of each row with a number at the positions `[B, D]`; or with the maximum
    of the value and the number there.
segment_sum(values, segments, number)
    The sum of the values `[N]` of each of `number` segments.
sum_chosen(which, values, index)
    The sum of the rows of `values` `[V, ...]` that are True in each row of `which`
    `[B, N]`; `index` `[B, N]` holds the row for each element, by default its position.
count_nonzero(where)
    How many are True in each row of `[B, N]`, float64. Faster than a sum for long rows.
flatnonzero(where)
    The positions of True among all elements, row by row. Not in a graph.
top_k(values, k)
    The k largest of each row in descending order, and their positions. Of equal values,
    the first one comes first.
pad(values, widths)
    Zeros (or `constant_values`) before and after, by the pairs of widths of each axis.
matvec(matrices, vectors)
    The product of each matrix with its vector.
shape(values), size(values)
    The sizes, and their product. In a graph, sizes that are known only when it runs are
    tensors.
known_size(lists)
    N of lists `[B, N]`, if it is known before a graph runs.
has_shape(values, sizes)
    Whether the sizes may be these, where None stands for any.
dtype_of(values), is_floating(values)
    The dtype as one of NumPy, and whether it is a float.
without_denormals(values)
    The values with 0 for denormal numbers, which TensorFlow's operations treat as 0.
barrier(values)
    The values, which are complete before an operation reads them. Without it, XLA would
    compute them within a sum over queries, in a few blocks of a GPU.
cond(condition, if_true, if_false)
    The result of one of two functions. `if_true` must be right whatever the condition
    is, and `if_false` a faster way where it is False: PyTorch, which would have to wait
    for a GPU to read the condition, always calls `if_true`.
while_loop(condition, body, variables)
    The last variables: `body` computes new ones as long as `condition` is true of them.
unfold(step, state, number, depth, like_row)
    Calls `step(s, *state)` for s = 1 ... `number`. Each call returns the next state and
    a row. Returns the rows as float64 `[depth, B]`; the remaining rows are 0.

An operation that creates an array without an array argument, such as `zeros`, takes an
argument `like`: any array of the library, and on the device, in which it should run.

Alternatives were rejected: a namespace passed to each function costs a line in some
eighty functions, `keras.ops` serves only one library in each process and only Keras 3,
and `array_api_compat` supports neither TensorFlow nor branches, loops and unknown
sizes.

On NumPy, formulas use no matrix products, although they would be faster: the order in
which BLAS sums depends on the processor. Values would then differ in the last digit
between machines, as only the powers in RBP and PFound may. On TensorFlow and PyTorch,
`RankedLists` uses them for few ranks.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, Literal, cast

import numpy as np

from tfrankmetrics.arrays import numpy
from tfrankmetrics.installation import require_tensorflow
from tfrankmetrics.rules import did_you_mean

Array = Any  # of NumPy, TensorFlow, JAX or PyTorch
Library = Literal["numpy", "tensorflow", "jax", "torch"]

_OTHERS = {"tensorflow", "jax", "torch"}
# With none of these modules, all arrays are of NumPy: sqlglot writes those of `sql/`.
_WITH_ARRAYS = {*_OTHERS, "sqlglot"}
_LIBRARY_OF_PACKAGE = {"jaxlib": "jax", "keras": "tensorflow", "tf_keras": "tensorflow"}

# Those for formulas of users, which the guide lists, too.
OPERATIONS = """
abs add all any arange argmax argsort asarray astype broadcast_to ceil clip concat cos
cumulative_prod cumulative_sum diff divide divide_no_nan equal exp expm1 flip floor
floor_divide full greater greater_equal isfinite isinf isnan less less_equal log log10
log1p log2 logical_and logical_not logical_or logical_xor matmul matrix_transpose max
maximum mean min minimum multiply negative not_equal ones ones_like pow prod reciprocal
remainder reshape roll round sign sin sort sqrt square squeeze stack std subtract sum
take tanh tile unstack var where zeros zeros_like
"""

newaxis = None
int32, int64 = np.int32, np.int64
float32, float64, bool = np.float32, np.float64, np.bool_


def __getattr__(name: str) -> Callable[..., Any]:
    """The operation of this name, which looks up the library in each call."""
    of_numpy = _operation(numpy, name)
    by_type: dict[type, Callable[..., Any]] = {}

    def operation(*arguments: Any, like: Any = None, **options: Any) -> Any:
        # Without other libraries there are no tensors. This saves a fifth of the time
        # of a call with a few short lists.
        if sys.modules.keys().isdisjoint(_WITH_ARRAYS):
            return of_numpy(*arguments, **options)
        kind = type(arguments[0])
        function = by_type.get(kind)
        if function is None:
            library = _library_of((*arguments, like))
            function = of_numpy if library is None else _operation(library, name)
            # A tensor as the first argument decides, even in later calls.
            if _library_of_type(kind) is not None:
                by_type[kind] = function
            # A new tensor is created on the device of any other tensor.
            elif name in getattr(library, "CREATING", ()):
                options["like"] = arguments if like is None else like
        return function(*arguments, **options)

    operation.__name__ = name
    globals()[name] = operation
    return operation


def _operation(library: ModuleType, name: str) -> Callable[..., Any]:
    """The operation of one of our modules or, if it has none, of the library itself."""
    own = getattr(library, name, None)
    if callable(own):
        return own
    if name not in OPERATIONS.split():
        raise AttributeError(
            "The page 'Custom metrics' of the documentation lists the operations of "
            f"`xp`. Received: {name!r}.{did_you_mean(name, OPERATIONS.split())}"
        )
    return getattr(library.package, name)


def library_of(*arguments: Any) -> Library:
    """The library that computes with the arguments."""
    module = _library_of(arguments)
    name = "numpy" if module is None else module.__name__.rpartition(".")[2]
    return cast(Library, name)


def is_of_tensorflow(value: Any) -> Any:
    """Whether a value is of TensorFlow, also a dataset; a list of tensors is not."""
    return not isinstance(value, (list, tuple)) and library_of(value) == "tensorflow"


def in_library(library: Library, array: Any, like: Any = None) -> Array:
    """An array of NumPy, or of the library itself, as an array of the library.

    A tensor of PyTorch is on the device of `like`.
    """
    on_device = {"like": like} if library == "torch" else {}
    return _operation(_module(library), "asarray")(array, **on_device)


def to_numpy(array: Array) -> np.ndarray:
    """An array of any library as one of NumPy."""
    return array.cpu().numpy() if library_of(array) == "torch" else np.asarray(array)


def computing_in(library: Library, like: Any = None) -> AbstractContextManager:
    """The context in which the operations of a library run, on the device of `like`."""
    if library == "tensorflow":
        return nullcontext()
    if library == "torch":
        return _module(library).exact()
    return numpy.quiet() if library == "numpy" else _module(library).exact(like)


def _library_of(arguments: Iterable[Any]) -> ModuleType | None:
    """The module for the first array that is not NumPy's; None without any."""
    for argument in arguments:
        kind = type(argument)
        is_list = kind in (list, tuple)
        library = _library_of(argument) if is_list else _library_of_type(kind)
        if library is not None:
            return library
    return None


@functools.cache
def _library_of_type(kind: type) -> ModuleType | None:
    """The module for a type; None for types of NumPy and of Python.

    A type of this package may bring its operations, as `sql/` does.
    """
    if hasattr(kind, "array_operations"):
        return kind.array_operations
    package = kind.__module__.partition(".")[0]
    if package == "keras" and sys.modules["keras"].backend.backend() != "tensorflow":
        return None
    library: Any = _LIBRARY_OF_PACKAGE.get(package, package)
    return _module(library) if library in _OTHERS else None


@functools.cache
def _module(library: Library) -> ModuleType:
    """The operations of a library, imported when they are first needed."""
    if library == "tensorflow":
        require_tensorflow("A tensor")
    return importlib.import_module(f"{__name__}.{library}")
