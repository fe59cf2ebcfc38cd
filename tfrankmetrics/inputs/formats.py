"""The input formats: `inputs="labels"`, `"ids"` and `"catalogue"`.

Each format has a module that checks the arguments of users and converts them to lists.
Its class defines how arrays are read, and which mistakes are likely. All lists derive
from one class, so that the code that uses them does not depend on the format.

To add a format:

1.  Write a module with a frozen dataclass of arrays that derives from `Lists`, and a
    function that reads arrays and returns such lists. Implement `rank`,
    `require_valid_values`, which raises errors for values, and `has_valid_values`,
    which finds the queries that become NaN instead, because graphs raise no errors.
2.  Write a subclass of `InputFormat` here, and add it to `FORMATS`. Add how queries are
    padded to `PAD` in `tfma/padding.py`, and how `explain` shows a query to
    `list_of_query` in `explanation/one_list.py`.
3.  Add its name to `Inputs` in `options.py`, and narrow the field `inputs` of metrics
    that do not support it. Describe it in `docs/guide/inputs.md` and in the docstring
    of `update_state` in `keras/state.py`.
4.  Add an example with the same lists as labels to `EXAMPLES` in
    `tests/test_input_formats.py`. Run `make tables`, and `python -m pytest
    tests/test_input_formats.py tests/test_docs.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tfrankmetrics.arrays import Library
from tfrankmetrics.columns.values import from_pytorch
from tfrankmetrics.inputs.catalogue import read_catalogue
from tfrankmetrics.inputs.dense import has_tensor
from tfrankmetrics.inputs.facts import OF_EXCLUDED, Facts, flat_lists
from tfrankmetrics.inputs.ids import as_integer_ids, read_ids
from tfrankmetrics.inputs.labels import read_labels
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.mistakes import LabelRules
from tfrankmetrics.inputs.whole_data import (
    numbers_of,
    refuse_columns,
    warn_if_all_judged,
    warn_if_no_id_matches,
    warn_if_no_ids,
    warn_if_rankings,
)
from tfrankmetrics.options import Duplicates, Inputs
from tfrankmetrics.rules import rule_of, shortened


def _library_for(*arguments: Any) -> Library:
    """The library that computes the arguments of a function."""
    return "tensorflow" if has_tensor(*arguments) else "numpy"


def _is_one_list(y_true: Any) -> bool:
    """Whether labels have the shape `[N]`."""
    try:
        return np.ndim(from_pytorch(y_true)) == 1
    except ValueError:  # lists of unequal length
        return False


@dataclasses.dataclass(frozen=True)
class InputFormat:
    """An input format: how arguments are read, and which mistakes are likely.

    An instance also holds the choices specific to this format.
    """

    inputs: ClassVar[str]  # the name, as in inputs="ids"
    # Further causes of a NaN result, and their remedy.
    causes_of_nan: ClassVar[str] = ""
    hint_for_nan: ClassVar[str] = ""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that choose this format."""
        return {"inputs": self.inputs}

    def __str__(self) -> str:
        """The arguments as they are passed."""
        return f"inputs={self.inputs!r}"

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
        raise NotImplementedError

    def refuse_mistakes(self, y_true: Any, y_pred: Any) -> None:
        """Raises ValueError for data in a wrong form, before reading."""

    def check_mistakes(self, y_true: Any, lists: Lists, reads_judgments: bool) -> None:
        """Warns of data that are probably a mistake, as all of them show."""
        self.warn_of_mistakes(y_true, lists, reads_judgments)

    def warn_of_mistakes(
        self, y_true: Any, lists: Lists, reads_judgments: bool
    ) -> None:
        """Warns of data that are probably a mistake, as one batch shows."""
        self.warn_of_scores(lists)

    def warn_of_scores(self, lists: Any) -> None:
        """Warns of scores that are probably ranks, in eager code."""
        if "scores" in lists.arrays:
            warn_if_rankings(lists.scores)

    def facts(self, y_true: Any, mask: Any, lists: Any, rules: LabelRules) -> Facts:
        """The facts about lists that NumPy holds, and about `y_true` as passed."""
        return Facts()

    def _refuse_mask(self, mask: Any) -> None:
        if mask is not None:
            raise ValueError(
                "`mask` is for inputs='labels'; among ids, -1 is padding. Received: a "
                f"mask with inputs={self.inputs!r}."
            )


class LabelFormat(InputFormat):
    """Labels and scores."""

    inputs = "labels"

    def read(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any,
        mask: Any = None,
        library: Library | None = None,
    ) -> Lists:
        """Checks labels, scores, weights and mask."""
        library = library or _library_for(y_true, y_pred, sample_weight, mask)
        return read_labels(y_true, y_pred, sample_weight, mask, library=library)

    def refuse_mistakes(self, y_true: Any, y_pred: Any) -> None:
        """Raises ValueError for columns of a frame."""
        refuse_columns(y_true, y_pred)

    def warn_of_mistakes(self, y_true: Any, lists: Any, reads_judgments: bool) -> None:
        """Warns if `judged` cannot tell unjudged items from padding."""
        warn_if_all_judged(reads_judgments, lists.judged)
        super().warn_of_mistakes(y_true, lists, reads_judgments)

    def facts(self, y_true: Any, mask: Any, lists: Any, rules: LabelRules) -> Facts:
        """The facts about labels, scores, lists and weights."""
        judged = np.asarray(lists.valid if lists.judged is None else lists.judged)
        labels = np.asarray(lists.labels)
        has_mask = mask is not None or isinstance(y_true, Mapping)
        given = None if has_mask else numbers_of(y_true)
        if given is None:  # a mask decides, rather than labels below 0
            given = labels[judged]
        scores = np.asarray(lists.scores)[np.asarray(lists.valid)]
        facts = Facts.of_labels(
            given.ravel(), () if lists.has_subtopics else rules.thresholds
        )
        facts += Facts.of_scores(scores)
        facts += Facts.of_lengths(np.count_nonzero(judged, axis=1))
        if lists.has_subtopics:
            labels = labels.max(axis=2)
        if rules.rank_zero_weights and lists.item_weights is not None:
            weights = np.asarray(lists.item_weights)[judged]
            queries = np.nonzero(judged)[0]
            facts += Facts.of_weights(queries, labels[judged], weights)
        if not has_mask and _is_one_list(y_true):
            facts += {"flat lists": float(flat_lists(labels[0], judged[0]))}
        return facts


@dataclasses.dataclass(frozen=True)
class IdFormat(InputFormat):
    """Relevant ids and recommended ids, and how repeated ids are counted."""

    duplicates: Duplicates = "first"
    inputs = "ids"

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that choose this format."""
        return {"inputs": self.inputs, "duplicates": self.duplicates}

    def __str__(self) -> str:
        """The arguments as they are passed."""
        is_default = self.duplicates == "first"
        shown = super().__str__()
        return shown if is_default else f"{shown}, duplicates={self.duplicates!r}"

    def read(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any,
        mask: Any = None,
        library: Library | None = None,
    ) -> Lists:
        """Checks relevant and recommended ids, and weights."""
        self._refuse_mask(mask)
        if library is None:
            y_true, y_pred = as_integer_ids(y_true, y_pred)
        return read_ids(
            y_true,
            y_pred,
            sample_weight,
            count_repeats=self.duplicates == "all",
            library=library or _library_for(y_true, y_pred, sample_weight),
        )

    def warn_of_mistakes(
        self, y_true: Any, lists: Lists, reads_judgments: bool
    ) -> None:
        """Warns of a 0 or 1 for each item instead of ids."""
        warn_if_no_ids(y_true)

    def check_mistakes(self, y_true: Any, lists: Any, reads_judgments: bool) -> None:
        """Warns of a 0 or 1 for each item, and of ids none of which match."""
        super().check_mistakes(y_true, lists, reads_judgments)
        ids = np.asarray(lists.relevant), np.asarray(lists.recommended)
        warn_if_no_id_matches(*ids)


class CatalogueFormat(InputFormat):
    """Relevant ids and the scores of a whole catalogue."""

    inputs = "catalogue"
    causes_of_nan = "an id outside of the catalogue, "
    hint_for_nan = (
        "An id must be the position of an item in the scores. If the batch is the "
        "catalogue, as in two-tower models, pass tf.range(batch size), not the ids of "
        "the items. "
    )

    def read(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any,
        mask: Any = None,
        library: Library | None = None,
    ) -> Lists:
        """Checks ids, scores and weights."""
        self._refuse_mask(mask)
        library = library or _library_for(y_true, y_pred, sample_weight)
        return read_catalogue(y_true, y_pred, sample_weight, library=library)

    def facts(self, y_true: Any, mask: Any, lists: Any, rules: LabelRules) -> Facts:
        """The facts about scores and excluded items."""
        facts = Facts.of_scores(np.asarray(lists.scores))
        if lists.exclude is None:
            return facts
        numbers = lists.relevant_and_excluded()
        return facts + Facts(zip(OF_EXCLUDED, numbers, strict=True))


FORMATS: dict[str, type[InputFormat]] = {
    each.inputs: each for each in (LabelFormat, IdFormat, CatalogueFormat)
}


def input_format(
    inputs: str | None = None, duplicates: Duplicates | None = None
) -> InputFormat:
    """The format of these two arguments; None is the default, which is labels.

    Raises:
        ValueError: An argument is not one of its choices, or the format does not
            support `duplicates`.
    """
    inputs = LabelFormat.inputs if inputs is None else inputs
    if isinstance(inputs, str) and inputs == "catalog":
        inputs = "catalogue"
    for name, value, annotation in (
        ("inputs", inputs, Inputs),
        ("duplicates", duplicates, Duplicates | None),
    ):
        rule = rule_of(annotation)
        if not rule.holds(value):
            raise ValueError(
                f"`{name}` must be {rule.words}. Received: {name}={shortened(value)}."
            )
    format_ = FORMATS[inputs]
    if duplicates is None:
        return format_()
    if not takes_duplicates(inputs):
        raise ValueError(
            "`duplicates` is for inputs='ids', where it determines how repeated "
            f"recommendations are counted. Received: duplicates={duplicates!r}, "
            f"inputs={inputs!r}."
        )
    return dataclasses.replace(format_(), duplicates=duplicates)  # type: ignore[call-arg]


def takes_duplicates(inputs: str) -> bool:
    """Whether a format supports `duplicates`."""
    return "duplicates" in FORMATS[inputs]().arguments
