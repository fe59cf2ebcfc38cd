"""Expressions of SQL as arrays, and the operations of `tfrankmetrics.arrays` on them.

A formula that computes with a `Column` writes an expression. What is `[B, D]` in other
libraries has a value for each row, and `[B, C]` or `[B]` one for each query.

All dialects have these expressions: arithmetic, CASE, functions of one number, sums and
window functions. Numbers are float64; no quotient is one of integers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np

FLOAT = "DOUBLE PRECISION"
INFINITY, NAN = f"CAST('inf' AS {FLOAT})", f"CAST('nan' AS {FLOAT})"
LARGEST = repr(float(np.finfo(np.float64).max))
TINY = repr(float(np.finfo(np.float64).tiny))
# The rows of a query by score, and those with the same score: BigQuery does not
# partition by floats.
BY_SCORE = "(PARTITION BY query_id ORDER BY {order})"
TIED = "(PARTITION BY query_id ORDER BY {order} RANGE CURRENT ROW)"
# Window functions are in every third step, since each such step sorts the rows.
_STEPS = 3
# How strongly operators bind; conditions bind at most as strongly as comparisons.
_OR, _AND, _NOT, _COMPARED, _ADDED, _MULTIPLIED = range(1, 7)


class NotInSQLError(ValueError):
    """A formula requires what SQL does not have."""


@dataclasses.dataclass
class Steps:
    """The columns that each step adds, and the sums of each query, by their texts.

    A column of a step is computed from those of earlier steps.
    """

    order: str  # of the rows of a query
    prefix: str = "sum"  # of the names of sums
    columns: dict[int, dict[str, str]] = dataclasses.field(default_factory=dict)
    sums: dict[str, str] = dataclasses.field(default_factory=dict)

    def column(self, text: str, step: int, name: str) -> str:
        """The name of a column that a step adds."""
        taken = [each for known in self.columns.values() for each in known.values()]
        number = 1 + sum(each.rpartition("_")[0] == name for each in taken)
        return self.columns.setdefault(step, {}).setdefault(text, f"{name}_{number}")

    def sum(self, text: str) -> str:
        """The name of a sum over the rows of each query."""
        return self.sums.setdefault(text, f"{self.prefix}_{len(self.sums) + 1}")


def _operator(
    sign: str, binds: int, is_reversed: bool = False
) -> Callable[[Any, Any], Column]:
    def method(self: Column, other: Any) -> Column:
        operands = (other, self) if is_reversed else (self, other)
        return Column(f"{{}} {sign} {{}}", *operands, binds=binds)

    return method


class Column:
    """An expression of rows or of queries, which is written when it is needed.

    Args:
        form: The text, with `{}` for each operand.
        operands: Columns and numbers.
        kind: An "expression", a "named" one, which is computed once, a "window"
            function, or a "sum" over a query.
        name: The name of a named expression or a window function.
        binds: How strongly an operator binds its operands; 0 for others.
        ideal_rank: The rank of each row in the ideal order, if the column is by it.
    """

    __array_ufunc__ = None  # NumPy's numbers leave operators to these methods
    array_operations: ClassVar[SqlOperations]  # for `tfrankmetrics.arrays`
    ndim, dtype = 1, np.dtype(np.float64)  # of a value for each query

    def __init__(
        self,
        form: str,
        *operands: Any,
        kind: Literal["expression", "named", "window", "sum"] = "expression",
        name: str = "value",
        binds: int = 0,
        ideal_rank: Column | None = None,
    ):
        self.form, self.operands, self.kind, self.name = form, operands, kind, name
        self.binds = binds
        ranks = (each.ideal_rank for each in operands if isinstance(each, Column))
        self.rank = next(filter(None, [ideal_rank, *ranks]), None)
        self.ideal_rank = None if kind == "sum" else self.rank

    def write(self, steps: Steps, rank: Column | None = None) -> tuple[str, int]:
        """The text for rows, by a rank, and the first step after which it is known."""
        if self is RANK and rank is not None:
            return rank.write(steps)
        rank = self.rank if self.kind == "sum" else rank or self.rank
        text, step = self._filled(steps, lambda each: each.write(steps, rank))
        if self.kind == "expression":
            return text, step
        if self.kind == "sum":
            text = f"{text} OVER (PARTITION BY query_id)"
        step += 1 if self.kind == "named" else _STEPS - step % _STEPS
        return steps.column(text, step, self.name), step

    def write_of_query(self, steps: Steps) -> str:
        """The text for queries, from the sums over their rows."""
        if self.kind == "sum":
            write = lambda each: each.write(steps, self.rank)  # noqa: E731
            return steps.sum(self._filled(steps, write)[0])
        return self._filled(steps, lambda each: (each.write_of_query(steps), 0))[0]

    def _filled(self, steps: Steps, write: Callable) -> tuple[str, int]:
        texts, last = [], 0
        for place, each in enumerate(self.operands):
            if not isinstance(each, Column):
                texts.append(number(each))
                continue
            text, step = write(each)
            # Equal strength needs parentheses only on the right.
            if 0 < each.binds < self.binds + place and self.binds:
                text = f"({text})"
            texts.append(text)
            last = max(last, step)
        return self.form.format(*texts, order=steps.order), last

    def __getitem__(self, index: tuple) -> Column:
        if index[1] not in (None, 0):  # `[:, newaxis]`, or the only column
            raise NotInSQLError("a rank by its number")
        return self

    def __invert__(self) -> Column:
        return Column("NOT {}", self, binds=_NOT)

    def __rpow__(self, base: float) -> Column:
        return Column("POWER({}, {})", base, self)

    __add__, __radd__ = _operator("+", _ADDED), _operator("+", _ADDED, True)
    __sub__, __rsub__ = _operator("-", _ADDED), _operator("-", _ADDED, True)
    __mul__, __rmul__ = _operator("*", _MULTIPLIED), _operator("*", _MULTIPLIED, True)
    __truediv__ = _operator("/", _MULTIPLIED)
    __rtruediv__ = _operator("/", _MULTIPLIED, True)
    __lt__, __le__ = _operator("<", _COMPARED), _operator("<=", _COMPARED)
    __gt__, __ge__ = _operator(">", _COMPARED), _operator(">=", _COMPARED)
    __and__, __or__ = _operator("AND", _AND), _operator("OR", _OR)


def condition(text: str) -> Column:
    """A column that is true or false."""
    return Column(text, binds=_COMPARED)


def number(value: Any) -> str:
    """A number as SQL writes it."""
    value = float(value)
    if not math.isfinite(value):
        return NAN if math.isnan(value) else INFINITY if value > 0 else f"-{INFINITY}"
    text = f"{value:.0f}" if value.is_integer() and abs(value) < 2**53 else repr(value)
    return f"({text})" if value < 0 else text


RANK = Column(
    f"CAST(ROW_NUMBER() OVER {BY_SCORE} AS {FLOAT})", kind="window", name="item_rank"
)
# The form of each operation, and how strongly its operator binds operands.
_FORMS = {
    "where": ("CASE WHEN {} THEN {} ELSE {} END", 0),
    "select": ("CASE WHEN {} THEN {} ELSE {} END", 0),
    "log": ("LN({})", 0),
    "exp": ("EXP({})", 0),
    "tanh": ("TANH({})", 0),
    "round": ("ROUND({})", 0),
    "maximum": ("GREATEST({}, {})", 0),
    "equal": ("{} = {}", _COMPARED),
    "not_equal": ("{} <> {}", _COMPARED),
    # In no dialect is NaN lower than a number.
    "isfinite": (f"ABS({{}}) <= {LARGEST}", _COMPARED),
}


class SqlOperations:
    """The operations that formulas use; a formula with another is not in SQL."""

    __name__ = "sql"
    CREATING = ()  # no operation needs a device

    def __getattr__(self, name: str) -> Callable[..., Column]:
        if name not in _FORMS:
            raise NotInSQLError(f"the operation {name!r}")
        form, binds = _FORMS[name]
        return lambda *operands: Column(form, *operands, binds=binds)

    def divide_no_nan(self, x: Any, y: Any) -> Any:
        """The quotient, or 0 where the denominator is 0."""
        if not isinstance(y, Column):
            return x / y
        return self.where(self.equal(y, 0), 0, x / y)

    def astype(self, values: Column, dtype: Any) -> Column:
        """Numbers for conditions; all numbers are float64."""
        if not 0 < values.binds <= _COMPARED:
            return values
        return Column(f"CAST(CASE WHEN {{}} THEN 1 ELSE 0 END AS {FLOAT})", values)

    def sum(self, values: Column, axis: int) -> Column:
        """The sum over the items of each query."""
        return Column("SUM({})", values, kind="sum")

    def max(self, values: Column, axis: int, keepdims: bool = False) -> Column:
        """The maximum over the items of each query."""
        return Column("MAX({})", values, kind="sum")

    def cumulative_prod(self, values: Column, axis: int, **options: bool) -> Column:
        """The product of the values above each rank, by logarithms."""
        if options != {"exclusive": True}:
            raise NotInSQLError("a product of other ranks")
        values = Column("{}", values, kind="named", name="factor")
        above = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        over = f"OVER (PARTITION BY query_id ORDER BY {{1}} {above})"
        # A logarithm of 0 has no value; below a factor of 0, the product is 0.
        zeros = f"COALESCE(SUM(CASE WHEN {{0}} = 0 THEN 1 ELSE 0 END) {over}, 0)"
        logs = f"COALESCE(SUM(CASE WHEN {{0}} > 0 THEN LN({{0}}) ELSE 0 END) {over}, 0)"
        form = f"CASE WHEN {zeros} > 0 THEN 0 ELSE EXP({logs}) END"
        return Column(form, values, RANK, kind="window", name="product")

    def minimum(self, x: Any, y: Any) -> Any:
        """The lower number; infinity, the cutoff of a whole list, is not."""
        return y if x is math.inf else Column("LEAST({}, {})", x, y)

    def clip(self, values: Column, lowest: Any, highest: Any) -> Column:
        """The numbers within limits."""
        return self.minimum(self.maximum(values, lowest), highest)

    def zeros_like(self, values: Column, dtype: Any = None) -> float:
        """0."""
        return 0.0

    def ones_like(self, values: Column, dtype: Any = None) -> Any:
        """1, or true."""
        return condition("TRUE") if dtype is np.bool_ else 1.0

    def dtype_of(self, values: Column) -> np.dtype:
        """Numbers are float64."""
        return values.dtype

    def has_shape(self, values: Column, sizes: tuple) -> bool:
        """Whether it may be of a shape: the shape is known to the database only."""
        return True


Column.array_operations = SqlOperations()
