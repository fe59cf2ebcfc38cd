"""The input formats: `inputs="labels"`, `"ids"` and `"catalog"`.

Each format has a module that checks the arguments of users and converts them to lists.
All lists derive from one class: the code that uses them does not depend on the format.

To add a format:

1.  Write a module with a frozen dataclass of arrays that derives from `Lists`, and a
    function that reads arrays and returns such lists. Implement `rank`,
    `require_valid_values`, which raises errors for values, and `has_valid_values`,
    which finds the queries that become NaN instead: graphs raise no errors.
2.  Call the function in `InputFormat.read` here. Add how `explain` shows a query to
    `list_of_query` in `one_list.py`, which mistakes a Keras metric counts to
    `keras/evidence.py`, and which values TFMA passes to `tfma/tfma_combiner.py`.
3.  Add its name to `Inputs` in `options.py`, and to the field `inputs` of the classes
    that list their formats, such as `WholeListMetric`, if they support it. Describe it
    in `docs/guide/inputs.md` and in the docstrings of `update_state` and `TopKMetric`
    in `metrics/base.py`, of `evaluate` and of `Accumulator`.
4.  Add an example with the same lists as labels, whose values differ if it is read as
    labels, to `EXAMPLES` in `tests/test_input_formats.py`. Run `make tables`, and
    `python -m pytest tests/test_input_formats.py tests/test_docs.py`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from tfrankmetrics.arrays import Library
from tfrankmetrics.inputs.catalog import read_catalog
from tfrankmetrics.inputs.devices import library_for, on_one_device
from tfrankmetrics.inputs.ids import read_ids
from tfrankmetrics.inputs.labels import read_labels
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.options import Duplicates, Inputs
from tfrankmetrics.rules import rule_of, shortened


@dataclasses.dataclass(frozen=True)
class InputFormat:
    """An input format, and how repeated ids are counted if it has these."""

    inputs: str
    duplicates: Duplicates | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that choose this format."""
        duplicates = {} if self.duplicates is None else {"duplicates": self.duplicates}
        return {"inputs": self.inputs, **duplicates}

    def __str__(self) -> str:
        """The arguments as they are passed."""
        shown = f"inputs={self.inputs!r}"
        if self.duplicates in (None, "first"):
            return shown
        return f"{shown}, duplicates={self.duplicates!r}"

    def read(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any,
        mask: Any = None,
        library: Library | None = None,
    ) -> Lists:
        """Checks the arguments and converts them to lists.

        `library` computes with the lists. It is None in functions: then ids may be
        strings, and NumPy ranks lists without tensors.
        """
        if mask is not None and self.inputs != "labels":
            raise ValueError(
                "`mask` is for inputs='labels'; among ids, -1 is padding. Received: a "
                f"mask with inputs={self.inputs!r}."
            )
        if library is None:
            library = library_for(y_true, y_pred, sample_weight, mask)
        if library == "torch":
            y_true, y_pred, sample_weight, mask = on_one_device(
                y_true, y_pred, sample_weight, mask
            )
        data = y_true, y_pred, sample_weight
        if self.inputs == "ids":
            is_all = self.duplicates == "all"
            return read_ids(*data, count_repeats=is_all, library=library)
        if self.inputs == "catalog":
            return read_catalog(*data, library=library)
        return read_labels(*data, mask, library=library)


def input_format(
    inputs: str | None = None, duplicates: Duplicates | None = None
) -> InputFormat:
    """The format of these two arguments; None is the default, which is labels.

    Raises:
        ValueError: An argument is not one of its choices, or the format does not
            support `duplicates`.
    """
    inputs = "labels" if inputs is None else inputs
    for name, value, annotation in (
        ("inputs", inputs, Inputs),
        ("duplicates", duplicates, Duplicates | None),
    ):
        rule = rule_of(annotation)
        if not rule.holds(value):
            raise ValueError(
                f"`{name}` must be {rule.words}. Received: {name}={shortened(value)}."
            )
    if inputs == "ids":
        return InputFormat(inputs, duplicates or "first")
    if duplicates is not None:
        raise ValueError(
            "`duplicates` is for inputs='ids', where it determines how repeated "
            f"recommendations are counted. Received: duplicates={duplicates!r}, "
            f"inputs={inputs!r}."
        )
    return InputFormat(inputs)
