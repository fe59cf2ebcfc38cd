"""Data with each mistake of the table of mistakes, and the same data without it.

`test_mistakes.py` passes them to functions, callbacks and Keras metrics, and
`test_beam.py` and `test_tfma.py` in `validation/` to Beam and TensorFlow Model
Analysis. A mistake that is missing here fails `test_mistakes.py`.
"""

import dataclasses
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd

import tfrankmetrics as trm

RNG = np.random.default_rng(0)
SHAPE = 60, 8
GRADES, SCORES = RNG.integers(0, 3, SHAPE), RNG.random(SHAPE)
STARS = RNG.integers(1, 6, SHAPE)
IS_VALID = np.arange(8) < RNG.integers(3, 8, (60, 1))
RELEVANT = RNG.integers(0, 4, (60, 2))
RANKS = np.argsort(np.argsort(-GRADES - SCORES, axis=1), axis=1)  # of a good model

# Entry points by the form of data that they take.
OF_ARRAYS = {"evaluate", "tensors", "metric", "graph", "xla"}
OF_BATCHES = {"batches"}
OF_ROWS = {"evaluate_rows", "beam rows", "tfma"}
OF_RUNS = {"evaluate_run", "beam run"}
EVERYWHERE = OF_ARRAYS | OF_BATCHES | OF_ROWS | OF_RUNS


@dataclasses.dataclass(frozen=True)
class Data:
    """Lists, and the weights of their items."""

    y_true: Any
    y_pred: Any = dataclasses.field(default_factory=lambda: SCORES)
    sample_weight: Any = None
    first_recommended: int = 0  # the lowest id of a recommended item

    @property
    def rows(self) -> pd.DataFrame:
        """A row for each item of a list, or for each of its subtopics."""
        if np.ndim(self.y_true) == 3:
            queries, items, subtopics = np.indices(np.shape(self.y_true))
            scores = np.broadcast_to(self.y_pred[..., np.newaxis], queries.shape)
            columns = {"query_id": queries, "item_id": items, "subtopic": subtopics}
            columns |= {"label": self.y_true, "score": scores}
            return pd.DataFrame({name: np.ravel(c) for name, c in columns.items()})
        queries, items = np.indices(np.shape(self.y_pred))
        columns = {"query_id": queries, "item_id": items}
        columns |= {"label": self.y_true, "score": self.y_pred}
        if self.sample_weight is not None:
            columns["weight"] = self.sample_weight
        return pd.DataFrame({name: np.ravel(each) for name, each in columns.items()})

    @property
    def run(self) -> pd.DataFrame:
        """The rows as recommendations."""
        rows = self.rows.drop_duplicates(["query_id", "item_id"])
        return rows.assign(item_id=rows["item_id"] + self.first_recommended)


@dataclasses.dataclass(frozen=True)
class Case:
    """A mistake in data, the text of its warning, and data without the mistake."""

    mistake: str  # the name of the function in `MISTAKES`, or of the error
    message: str
    data: Data
    valid: Data
    where: set[str]  # the entry points at which it can happen
    metric: str = "mrr"
    inputs: str = "labels"

    def __str__(self) -> str:
        return f"{self.mistake}: {self.message.partition('.')[0]}"


CASES = (
    Case(
        "swapped",
        "They are probably swapped",
        data=Data(SCORES, GRADES),
        valid=Data(GRADES, SCORES),
        where=EVERYWHERE,
    ),
    Case(
        "swapped",
        "They are probably swapped",
        data=Data(3 * SCORES - 1, np.where(IS_VALID, GRADES, -1)),
        valid=Data(np.where(IS_VALID, GRADES, -1), 3 * SCORES - 1),
        where=EVERYWHERE,
    ),
    Case(
        "not_numbers",
        r"NaN for \d+ of \d+ scores",
        data=Data(GRADES, np.where(np.indices(SHAPE).sum(axis=0) % 3, SCORES, np.nan)),
        valid=Data(GRADES),
        # TFMA drops NaN of a frame: see `validation/test_tfma.py`.
        where=EVERYWHERE - {"tfma"},
    ),
    Case(
        "ranks",
        "scores that look like ranks.* pass lower_is_better=True",
        data=Data(GRADES, RANKS),
        valid=Data(GRADES, 7 - RANKS),
        # A graph does not sort all scores to tell.
        where=EVERYWHERE - {"graph", "xla"},
    ),
    Case(
        "single_items",
        "of one item each.* in one list, or in rows with the same query id",
        data=Data(GRADES[:, :1], SCORES[:, :1]),
        valid=Data(GRADES[:, :2], SCORES[:, :2]),
        # The only item of a run is a recommendation. TFMA, which has no query key for
        # lists, needs more of them: see `validation/test_tfma.py`.
        where=EVERYWHERE - OF_RUNS - {"tfma"},
    ),
    Case(
        "too_high_for_powers",
        "labels above 30.*gain='linear'",
        data=Data(31 * GRADES),
        valid=Data(15 * GRADES),
        where=EVERYWHERE,
        metric="ndcg@3",
    ),
    Case(
        "useless_threshold",
        "labels other than 1, .* so each item is relevant",
        data=Data(STARS),
        valid=Data(np.where(STARS == 1, 0, STARS)),
        where=EVERYWHERE,
    ),
    Case(
        "useless_threshold",
        "all of which are below 1, so no item is relevant",
        data=Data(SCORES, np.round(SCORES[::-1], 2)),
        valid=Data(np.round(1.4 * SCORES, 1), SCORES[::-1]),
        where=EVERYWHERE,
    ),
    Case(
        "weights_like_a_mask",
        "does not mask an item.*pass a mask or labels below 0",
        data=Data(GRADES, SCORES, IS_VALID * 1.0),
        valid=Data(GRADES, SCORES, IS_VALID * (1 + SCORES)),
        # Tables without labels and Beam have a weight for each query.
        where=OF_ARRAYS | OF_BATCHES | {"evaluate_rows"},
    ),
    Case(
        "long_flat_list",
        "at least 200 items, .* If they belong to several queries, use evaluate_rows",
        data=Data(GRADES.ravel(), SCORES.ravel()),
        valid=Data(GRADES.ravel()[:160], SCORES.ravel()[:160]),
        where=OF_ARRAYS,
    ),
    Case(
        "relevant_but_excluded",
        r"(\d+) of \1 relevant items are excluded",
        data=Data({"ids": RELEVANT, "exclude": RELEVANT[:, ::-1]}),
        valid=Data({"ids": RELEVANT, "exclude": RELEVANT + 4}),
        where=OF_ARRAYS | {"evaluate_retrieval"},
        inputs="catalog",
    ),
    Case(
        "nothing_found",
        "predictions without a judged item",
        data=Data(GRADES, first_recommended=8),
        valid=Data(GRADES, first_recommended=4),
        where=OF_RUNS,
    ),
    Case(
        "single_subtopics",
        "judgments of one subtopic in each query",
        data=Data(np.stack([GRADES], axis=2)),
        valid=Data(np.stack([GRADES, GRADES[::-1]], axis=2)),
        where=OF_RUNS | {"evaluate_rows"},
        metric="subtopic_recall@3",
    ),
    Case(
        "signed_labels",
        "only -1 and 1, .* pass labels > 0",
        data=Data(np.where(GRADES > 1, 1, -1)),
        valid=Data(np.where(GRADES > 1, 1, 0)),
        where=EVERYWHERE - OF_RUNS,
    ),
)


def cases_at(where: str) -> list[Case]:
    """The mistakes that can happen at an entry point."""
    return [case for case in CASES if where in case.where]


def require_found(case: Case, evaluate) -> None:
    """Requires that a call warns of the mistake, and is silent about valid data."""
    messages = messages_of(lambda: evaluate(case.data))
    assert any(re.search(case.message, each) for each in messages), (
        "see MISTAKES in tfrankmetrics/inputs/mistakes.py, and CASES in "
        f"tests/mistake_table.py: {messages}"
    )
    assert messages_of(lambda: evaluate(case.valid)) == []


def messages_of(call) -> list[str]:
    """The texts of warnings about data, or of the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:  # Beam wraps a ValueError
            return [str(error)]
    found = (each for each in caught if each.category is trm.RankingWarning)
    return [str(each.message) for each in found]
