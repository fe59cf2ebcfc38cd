"""Calls of the operations of `lists.xp`, by name, and what NumPy makes of them."""

import functools

import numpy as np

import tfrankmetrics.arrays as xp

A = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -0.75]])
B = np.array([[2.0, 0.5, -3.0], [1.0, 2.0, 4.0]])
POSITIVE, TRUE = np.abs(A) + 0.1, A > 0
ODD = np.array([[np.nan, np.inf, -np.inf, 1.0]])
TIED = np.array([[1.0, 3.0, 1.0, 3.0], [2.0, 2.0, 0.0, 1.0]])


def of_both(x, y):
    """Two arrays, and a number of Python before or after one."""
    return [((x, y), {}), ((x, 2.0), {}), ((0.5, y), {}), ((x, 2), {}), ((3, y), {})]


def along(*arguments, axes=(0, 1, -1)):
    return [(arguments, {"axis": axis}) for axis in axes]


def reduced(values):
    kept = [((values,), {"axis": axis, "keepdims": True}) for axis in (0, -1)]
    return [((values,), {}), *along(values), *kept]


# The positional and the keyword arguments of calls of some operations.
CALLS_BY_NAMES = {
    "abs cos exp expm1 floor ceil negative round sign sin square tanh": [((A,), {})],
    "log log10 log1p log2 reciprocal sqrt": [((POSITIVE,), {})],
    "isfinite isinf isnan": [((ODD,), {})],
    "add subtract multiply divide remainder floor_divide": of_both(A, B),
    "maximum minimum": of_both(A, B),
    "equal not_equal greater greater_equal less less_equal": of_both(
        np.floor(A), np.floor(B)
    ),
    "pow": of_both(POSITIVE, B),
    "divide_no_nan": of_both(A, np.maximum(B, 0)),
    "clip": [((A, -1, 1), {}), ((A, 0.0, 0.3), {})],
    "where": [
        *[((TRUE, x, y), {}) for (x, y), _ in of_both(A, B)],
        *[((TRUE, x, y), {}) for x, y in ((1.0, 0.3), (1, 0), (1, 0.3))],
    ],
    "logical_not": [((TRUE,), {})],
    "logical_and logical_or logical_xor": [((TRUE, B > 1), {})],
    "sum mean max min prod var std": reduced(A),
    "any all": reduced(TRUE),
    "argmax": along(TIED),
    "cumulative_sum cumulative_prod diff flip": along(A),
    "sort": [((A,), {}), *along(TIED)],
    "argsort": [*along(TIED, axes=(1, -1)), ((A,), {"axis": 1, "descending": True})],
    "roll": along(A, 1),
    "take": along(A, np.array([1, 0, 0])),
    "matmul": [((A, B.T), {})],
    "matrix_transpose": [((A,), {})],
    "reshape": [((A, (3, 2)), {}), ((A, (-1,)), {})],
    "squeeze": along(A[:, :1], axes=(1, -1)),
    "broadcast_to": [((A[:1], (2, 3)), {})],
    "tile": [((A, (1, 2)), {})],
    "concat stack": along([A, B]),
    "unstack": along(A),
    "astype": [((A, np.float64), {}), ((TRUE, np.float64), {}), ((A, np.int32), {})],
    "zeros_like ones_like": [((A,), {})],
    # They create an array of the library of `like`.
    "zeros ones": [(((2, 3),), {"like": A})],
    "full": [(((2, 3), 0.3), {"like": A})],
    "asarray": [((x,), {"like": A}) for x in (0.3, [[1.0, 0.3]], [1, 2])],
    "arange": [((3,), {"like": A}), ((1.0, 4.0), {"like": A})],
}
CALLS = {
    name: calls for names, calls in CALLS_BY_NAMES.items() for name in names.split()
}
# Where NumPy, or an old version of it, has no operation of this name.
OF_NUMPY = {
    "argsort": lambda x, axis=-1, descending=False: np.argsort(
        -x if descending else x, axis, kind="stable"
    ),
    "astype": lambda x, dtype: x.astype(dtype),
    "concat": np.concatenate,
    "cumulative_prod": np.cumprod,
    "cumulative_sum": np.cumsum,
    "divide_no_nan": lambda x, y: np.divide(x, np.where(np.equal(y, 0), np.inf, y)),
    "matrix_transpose": np.transpose,
    "pow": np.power,
    "unstack": lambda x, axis: [*np.moveaxis(x, axis, 0)],
}


def require_what_numpy_computes(name, to_array, run=lambda function: function):
    """Compares an operation on arrays of a library with NumPy's.

    `run` is how the library runs a function, such as in a graph.
    """

    def converted(argument):
        if isinstance(argument, list) and isinstance(argument[0], np.ndarray):
            return [to_array(each) for each in argument]
        return to_array(argument) if isinstance(argument, np.ndarray) else argument

    for arguments, options in CALLS[name]:
        given = {key: value for key, value in options.items() if key != "like"}
        expected = OF_NUMPY.get(name, getattr(np, name, None))(*arguments, **given)
        arrays = [converted(each) for each in arguments]
        named = {key: converted(value) for key, value in options.items()}
        found = run(functools.partial(getattr(xp, name), *arrays, **named))()
        if name != "unstack":
            expected, found = [expected], [found]
        for one, other in zip(expected, found, strict=True):
            one, other = np.asarray(one), xp.to_numpy(other)
            call = f"{name}: {arguments}, {options}"
            # Libraries count positions in integers of different sizes.
            are_integers = one.dtype.kind == other.dtype.kind == "i"
            assert are_integers or one.dtype == other.dtype, call
            np.testing.assert_allclose(other, one, 1e-14, err_msg=call)
