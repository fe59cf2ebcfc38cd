"""Expressions of SQL as arrays, and the operations of `tfrankmetrics.arrays` on them.

A formula that computes with a `Column` writes an expression of SQL. A column `[B, D]`
has a value for each row, and `[B, C]` or `[B]` one for each query.

Expressions use arithmetic, CASE, a few functions of numbers, sums and window functions,
which all dialects have. Numbers are float64, so that no quotient is one of integers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

FLOAT = "DOUBLE PRECISION"
INFINITY, NAN = f"CAST('inf' AS {FLOAT})", f"CAST('nan' AS {FLOAT})"
LARGEST = repr(float(np.finfo(np.float64).max))
OF_QUERY = "OVER (PARTITION BY query_id)"
# The rows of one query by score, and those with the same score. No dialect but BigQuery
# refuses to partition by a float.
BY_SCORE = "(PARTITION BY query_id ORDER BY {order})"
TIED = "(PARTITION BY query_id ORDER BY {order} RANGE CURRENT ROW)"


class NotInSQLError(ValueError):
    """A formula uses an operation that SQL does not have."""


@dataclasses.dataclass
class Steps:
    """The steps of a statement from rows to queries, and the columns that each adds.

    A column of a step is a window function of columns of earlier steps.
    """

    order: str  # of the rows of a query
    prefix: str = "sum"  # of the names of sums
    windows: list[dict[str, str]] = dataclasses.field(default_factory=list)
    sums: dict[str, str] = dataclasses.field(default_factory=dict)

    def window(self, text: str, step: int, name: str) -> str:
        """The name of a column that the step after this one adds."""
        while len(self.windows) <= step:
            self.windows.append({})
        taken = [each for known in self.windows for each in known.values()]
        number = 1 + sum(each.rpartition("_")[0] == name for each in taken)
        return self.windows[step].setdefault(text, f"{name}_{number}")

    def sum(self, text: str) -> str:
        """The name of a sum over the rows of each query."""
        return self.sums.setdefault(text, f"{self.prefix}_{len(self.sums) + 1}")


class Column:
    """An expression of rows or of queries, which is written when it is needed.

    Args:
        form: The text, with `{}` for each operand.
        operands: Columns and numbers.
        kind: An "expression", a "window" function, which a step of its own computes, or
            a "sum" over a query.
        name: The name of a window function.
        binds: How strongly an operator binds its operands; None in a function.
        is_condition: Whether it is true or false.
        is_ranked: Whether it has a meaning for retrieved items only.
        ideal_rank: The rank of each row in the ideal order, if the column is by it.
    """

    __array_ufunc__ = None  # NumPy's numbers leave operators to the methods below
    ndim = 1  # one value a query, for `apply_empty`

    def __init__(
        self,
        form: str,
        *operands: Any,
        kind: Literal["expression", "window", "sum"] = "expression",
        name: str = "value",
        binds: int | None = None,
        is_condition: bool = False,
        is_ranked: bool = False,
        ideal_rank: Column | None = None,
    ):
        columns = [each for each in operands if isinstance(each, Column)]
        self.form, self.operands, self.kind, self.name = form, operands, kind, name
        self.binds, self.is_condition = binds, is_condition
        self.is_ranked = is_ranked or any(each.is_ranked for each in columns)
        ideal_ranks = [each.ideal_rank for each in columns]
        self.rank = next(filter(None, [ideal_rank, *ideal_ranks]), None)
        self.ideal_rank = self.rank
        if kind == "sum":  # over the rows, by either rank
            self.is_ranked, self.ideal_rank = False, None

    def write(self, steps: Steps, rank: Column | None = None) -> tuple[str, int]:
        """The text for rows, by a rank, and the step from which on it can be read."""
        if self is RANK and rank is not None:
            return rank.write(steps)
        rank = self.rank if self.kind == "sum" else rank or self.rank
        text, step = self._filled(lambda each: each.write(steps, rank), steps)
        if self.kind == "expression":
            return text, step
        over = f" {OF_QUERY}" if self.kind == "sum" else ""
        return steps.window(f"{text}{over}", step, self.name), step + 1

    def write_of_query(self, steps: Steps) -> str:
        """The text for queries, from the sums over their rows."""
        if self.kind == "sum":
            text, _ = self._filled(lambda each: each.write(steps, self.rank), steps)
            return steps.sum(text)
        return self._filled(lambda each: (each.write_of_query(steps), 0), steps)[0]

    def _filled(
        self, write: Callable[[Column], tuple[str, int]], steps: Steps
    ) -> tuple[str, int]:
        texts, last = [], 0
        for place, each in enumerate(self.operands):
            if not isinstance(each, Column):
                texts.append(number(each))
                continue
            text, step = write(each)
            if self.binds and each.binds and each.binds < self.binds + place:
                text = f"({text})"  # the right operand, too, if it binds alike
            texts.append(text)
            last = max(last, step)
        return self.form.format(*texts, order=steps.order), last

    def __getitem__(self, _: Any) -> Column:
        return self  # `[:, newaxis]`

    def __invert__(self) -> Column:
        return Column("NOT {}", self, binds=3, is_condition=True)

    def __rpow__(self, base: float) -> Column:
        return Column("POWER({}, {})", base, self)


def number(value: Any) -> str:
    """A number as SQL writes it."""
    value = float(value)
    if math.isnan(value):
        return NAN
    if math.isinf(value):
        return INFINITY if value > 0 else f"-{INFINITY}"
    text = str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return f"({text})" if value < 0 else text


def _operator(
    name: str, sign: str, binds: int, is_condition: bool = False
) -> Callable[[Any, Any], Column]:
    form, is_reversed = f"{{}} {sign} {{}}", name.startswith("r")

    def method(self: Column, other: Any) -> Column:
        operands = (other, self) if is_reversed else (self, other)
        return Column(form, *operands, binds=binds, is_condition=is_condition)

    return method


_SIGNS = {"+": ("add", "radd"), "-": ("sub", "rsub"), "*": ("mul", "rmul")}
_SIGNS |= {"/": ("truediv", "rtruediv")}
for _sign, _names in _SIGNS.items():
    for _name in _names:
        _method = _operator(_name, _sign, 5 if _sign in "+-" else 6)
        setattr(Column, f"__{_name}__", _method)
for _name, _sign, _binds in [
    ("or", "OR", 1),
    ("and", "AND", 2),
    ("lt", "<", 4),
    ("le", "<=", 4),
    ("gt", ">", 4),
    ("ge", ">=", 4),
]:
    setattr(Column, f"__{_name}__", _operator(_name, _sign, _binds, True))

RANK = Column(
    f"CAST(ROW_NUMBER() OVER {BY_SCORE} AS {FLOAT})",
    kind="window",
    name="item_rank",
    is_ranked=True,
)
SCORE_CLASS = Column("score_class")
IS_RETRIEVED = SCORE_CLASS > 0
IS_LISTED = SCORE_CLASS >= 0


class SqlOperations:
    """The operations that formulas use; a formula with another is not in SQL."""

    __name__ = "sql"
    CREATING = ()  # none needs a device

    def __getattr__(self, name: str) -> Any:
        raise NotInSQLError(f"the operation `{name}`")

    def where(self, which: Any, values: Any, otherwise: Any) -> Any:
        """Values or others."""
        if not isinstance(which, Column):
            return values if which else otherwise
        return Column("CASE WHEN {} THEN {} ELSE {} END", which, values, otherwise)

    select = where

    def divide_no_nan(self, x: Any, y: Any) -> Any:
        """The quotient, or 0 where the denominator is 0."""
        if not isinstance(y, Column):
            return x / y
        return self.where(self.equal(y, 0), 0, x / y)

    def astype(self, values: Column, dtype: Any) -> Column:
        """Numbers for conditions; all numbers are float64."""
        if not values.is_condition:
            return values
        return Column(f"CAST(CASE WHEN {{}} THEN 1 ELSE 0 END AS {FLOAT})", values)

    def sum(self, values: Column, axis: int) -> Column:
        """The sum over the items of each query."""
        if values.is_ranked:
            values = self.where(IS_RETRIEVED, values, 0)
        return Column("SUM({})", values, kind="sum")

    def max(self, values: Column, axis: int, keepdims: bool = False) -> Column:
        """The maximum over the items of each query."""
        if values.is_ranked:
            values = self.where(IS_RETRIEVED, values, -math.inf)
        return Column("MAX({})", values, kind="sum")

    def cumulative_prod(self, values: Column, axis: int, exclusive: bool) -> Column:
        """The product of the values above each rank, by logarithms."""
        if not exclusive:
            raise NotInSQLError("a product that is not exclusive")
        values = Column("{}", values, kind="window", name="factor")
        above = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        over = f"OVER (PARTITION BY query_id ORDER BY {{1}} {above})"
        zeros = f"COALESCE(SUM(CASE WHEN {{0}} = 0 THEN 1 ELSE 0 END) {over}, 0)"
        # LN has no value at 0, where the product is 0 from then on.
        logs = f"COALESCE(SUM(CASE WHEN {{0}} > 0 THEN LN({{0}}) ELSE 0 END) {over}, 0)"
        form = f"CASE WHEN {zeros} > 0 THEN 0 ELSE EXP({logs}) END"
        return Column(form, values, RANK, kind="window", name="product")

    def minimum(self, x: Any, y: Any) -> Any:
        """The lower number; infinity, the cutoff of a whole list, is not."""
        numbers = [each for each in (x, y) if isinstance(each, Column) or each < 1e300]
        return Column("LEAST({}, {})", *numbers) if len(numbers) == 2 else numbers[0]

    def maximum(self, x: Any, y: Any) -> Column:
        """The higher number."""
        return Column("GREATEST({}, {})", x, y)

    def clip(self, values: Column, lowest: Any, highest: Any) -> Column:
        """The numbers within limits."""
        return self.minimum(self.maximum(values, lowest), highest)

    def equal(self, x: Any, y: Any) -> Column:
        """Whether two numbers are equal."""
        return Column("{} = {}", x, y, binds=4, is_condition=True)

    def not_equal(self, x: Any, y: Any) -> Column:
        """Whether two numbers differ."""
        return Column("{} <> {}", x, y, binds=4, is_condition=True)

    def isfinite(self, values: Column) -> Column:
        """Whether numbers are finite: of NaN, no dialect says that it is lower."""
        return Column(f"ABS({{}}) <= {LARGEST}", values, is_condition=True)

    def log(self, values: Column) -> Column:
        """The natural logarithm."""
        return Column("LN({})", values)

    def exp(self, values: Column) -> Column:
        """The exponential."""
        return Column("EXP({})", values)

    def tanh(self, values: Column) -> Column:
        """The hyperbolic tangent."""
        return Column("TANH({})", values)

    def round(self, values: Column) -> Column:
        """The nearest whole number."""
        return Column("ROUND({})", values)

    def zeros_like(self, values: Column, dtype: Any = None) -> float:
        """0."""
        return 0.0

    def ones_like(self, values: Column, dtype: Any = None) -> float:
        """1."""
        return 1.0

    def dtype_of(self, values: Column) -> np.dtype:
        """Numbers are float64."""
        return np.dtype(np.float64)


Column.operations = SqlOperations()  # where `tfrankmetrics.arrays` finds them
