"""The table of mistakes: data that are probably wrong, but yield plausible values.

Each entry of `MISTAKES` reads the facts of all data (see `facts.py`) and returns the
texts of its warnings. Functions, callbacks, Keras metrics, Beam and TFMA call
`warn_of`. Mistakes that only the data themselves show are in `whole_data.py`.

To add a mistake:

1.  Write a function here that reads facts and yields the text of a warning: the rule,
    `Received{asked.where}: ...`, the remedy. `Asked` states what depends on the caller,
    such as `may_be_all`. Add it to `MISTAKES`, and a line to the warnings in
    `docs/troubleshooting.md` and to `CHANGELOG.md`.
2.  If no fact shows the mistake, add one to `LABEL_FACTS` or `SCORE_FACTS` in
    `facts.py`: a condition on one label or score, in operations of `xp`, so that its
    number adds up over batches and workers. A fact of lists or of weights is counted in
    `facts.py` for arrays, and in `keras/evidence.py` for graphs.
3.  Add data with the mistake, and the same data without it, to `CASES` in
    `tests/mistake_table.py`, with `where=EVERYWHERE` less the entry points at which it
    cannot happen, and the reason. Run `python -m pytest tests/test_mistakes.py`, and
    `make tfma` in its environment.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from tfrankmetrics.inputs.facts import (
    HIGHEST_GRADE,
    LONG,
    MANY,
    MANY_RELEVANT,
    Facts,
    reached,
)

# Their lines are on the call stack between a warning and the user's code.
LIBRARIES = {__name__.partition(".")[0], "keras", "tf_keras", "tensorflow"}


class RankingWarning(UserWarning):
    """A warning about data or results that are probably a mistake.

    To make it an error:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RankingWarning)
    """


class LabelRules(NamedTuple):
    """What some metrics make of labels."""

    thresholds: tuple[float, ...] = ()  # the lowest label of a relevant item
    are_powers: bool = False  # whether a gain is 2^label - 1
    rank_zero_weights: bool = False  # whether a metric ranks items of weight 0


class Asked(NamedTuple):
    """Of which mistakes to warn."""

    rules: LabelRules = LabelRules()
    where: str = ""  # of the data, as in " in 'mrr'"
    least: int = MANY  # labels; fewer than this may all be the same by chance
    # Whether all labeled items may be relevant, since others are not.
    may_be_all: bool = False


ANY = Asked()


def are_swapped(facts: Facts) -> bool:
    """Whether the labels look like scores, and the scores like labels."""
    are_grades = facts["no grades"] == 0 < facts["zeros"] < facts["scores"]
    return are_grades and facts["fractions"] > facts["labels"] / 2 >= 2


def swapped(facts: Facts, asked: Asked) -> Iterator[str]:
    """Labels in the place of scores."""
    if are_swapped(facts):
        yield (
            f"Labels come before scores. Received{asked.where}: labels most of which "
            "are fractions, and scores that are whole numbers from 0 to 4. They are "
            "probably swapped."
        )


def not_numbers(facts: Facts, asked: Asked) -> Iterator[str]:
    """Scores of a model that has diverged."""
    if facts["NaN"]:
        yield (
            f"Scores must be numbers. Received{asked.where}: NaN for "
            f"{facts['NaN']:,.0f} of {facts['scores']:,.0f} scores. NaN ranks below "
            "every number, and several of them are tied, so that a model that returns "
            "only NaN has the value of a random order."
        )


def single_items(facts: Facts, asked: Asked) -> Iterator[str]:
    """Rows of a table in the place of lists."""
    if facts["lists"] > 2 * MANY and facts["longer lists"] == 0:
        yield (
            "A list must contain all items of a query. Received"
            f"{asked.where}: {facts['lists']:,.0f} lists of one item each, in which "
            "nothing can be ranked. To evaluate rows of several queries, use "
            "evaluate_rows with the id of the query of each row."
        )


def too_high_for_powers(facts: Facts, asked: Asked) -> Iterator[str]:
    """Counts or ids in the place of grades."""
    if asked.rules.are_powers and facts["too high"]:
        yield (
            "The exponential gain 2^label - 1 requires grades of relevance, usually 0 "
            f"to 4. Received{asked.where}: labels above {HIGHEST_GRADE}. Of each list, "
            "only the highest labels would affect the value. If labels are counts or "
            "percentages, pass gain='linear'. If they are ids, pass 1 for relevant "
            "items and 0 for others."
        )


def useless_threshold(facts: Facts, asked: Asked) -> Iterator[str]:
    """Grades or rates, of which all or none are relevant."""
    if facts["labels"] < asked.least or are_swapped(facts):
        return
    for threshold in asked.rules.thresholds:
        rule = f"An item is relevant if its label is at least {threshold:g}."
        remedy = "Pass `relevance_threshold`, or use a metric of grades, such as ndcg."
        number = facts[reached(threshold)]
        if number == facts["at least 1"] == 0 < facts["above 0"]:
            yield (
                f"{rule} Received{asked.where}: labels above 0, all of which are below "
                f"{min(1, threshold):g}, so that no item is relevant. {remedy}"
            )
        # Implicit feedback has only labels of 1, which is no mistake.
        is_all = number == facts["labels"] > facts["ones"]
        if is_all and not asked.may_be_all:
            yield (
                f"{rule} Received{asked.where}: labels other than 1, all of which "
                f"reach the threshold, so that each item is relevant. {remedy}"
            )


def weights_like_a_mask(facts: Facts, asked: Asked) -> Iterator[str]:
    """Weights of 0 that look like a mask."""
    mixed = facts["lists with some weights of 0"]
    # Weights of clicks only, such as inverse propensities, are not a mask.
    are_of_others = facts["with a weight of an irrelevant item"] > 0
    is_mask = facts["whose other weights are 1"] == mixed or are_of_others
    if 0 < mixed == facts["whose other weights are alike"] and is_mask:
        yield (
            "A weight of 0 does not mask an item: it keeps its rank. Received"
            f"{asked.where}: items with a weight of 0, in lists whose other items all "
            "have the same weight. To exclude these items, pass a mask or labels below "
            "0; or zero_weight='mask', as the conventions of keras-rs and TensorFlow "
            "Ranking do, where such items still count in the weight of a list without "
            "relevant items."
        )


def long_flat_list(facts: Facts, asked: Asked) -> Iterator[str]:
    """A column of rows in the place of a list."""
    if facts["flat lists"]:
        yield (
            "Labels and scores of the shape [N] are the list of one query. Received"
            f"{asked.where}: at least {LONG} items, of which {MANY_RELEVANT} or more "
            "have a label above 0. If they belong to several queries, use "
            "evaluate_rows with the id of the query of each row, or pass a list for "
            "each, [B, N], with -1 as the label of padding. If all belong to one "
            "query, pass labels and scores of the shape [1, N]."
        )


def relevant_but_excluded(facts: Facts, asked: Asked) -> Iterator[str]:
    """A tenth of the relevant items, or all of a few."""
    relevant, excluded = facts["relevant"], facts["excluded"]
    if excluded >= (relevant if relevant < MANY else relevant / 10) > 1:
        yield (
            "`exclude` removes items from the ranking that are not candidates, such as "
            f"those of the training data. Received{asked.where}: {excluded:,.0f} of "
            f"{relevant:,.0f} relevant items are excluded, and treated as missed. "
            "Remove the relevant items from `exclude`."
        )


def nothing_found(facts: Facts, asked: Asked) -> Iterator[str]:
    """Judgments and predictions with different ids of the same items."""
    if facts["retrieved"] == facts["unjudged"] > 0:
        yield (
            "Unjudged items are treated as not relevant. Received: predictions without "
            "a judged item, so that all values are 0. The item ids of `qrels` and "
            "`run` are probably different."
        )


# Each finds a mistake that is probable, by facts, and says what to do.
MISTAKES = (
    swapped,
    not_numbers,
    single_items,
    too_high_for_powers,
    useless_threshold,
    weights_like_a_mask,
    long_flat_list,
    relevant_but_excluded,
    nothing_found,
)


def warn_of(facts: Facts, asked: Asked = ANY) -> None:
    """Warns of each mistake that the facts show."""
    for find in MISTAKES:
        for message in find(facts, asked):
            warn(message)


def _signed_labels(facts: Facts, remedy: str) -> str | None:
    """The error for labels that are only 1 and below 0, where -1 would be padding."""
    if not facts["items"] > facts["labels"] == facts["ones"] > 0:
        return None
    return (
        "Labels must not be only -1 and 1, since a label below 0 marks padding: "
        "nothing but relevant items would be left. Received: only labels that are 1 or "
        "below 0. If -1 means not relevant, pass labels > 0. If it marks padding, "
        f"{remedy}."
    )


def refuse_signed_labels(facts: Facts, remedy: str) -> None:
    """Raises ValueError for labels that are only 1 and below 0."""
    if (error := _signed_labels(facts, remedy)) is not None:
        raise ValueError(error)


def warn_if_signed(facts: Facts, remedy: str, least: int) -> None:
    """Warns of labels that are only 1 and below 0, if there are at least so many."""
    error = _signed_labels(facts, remedy)
    if error is not None and facts["items"] >= least:
        warn(error)


def warn(message: str) -> None:
    """Warns at the line of the user's code: the first one outside of libraries."""
    level, frame = 1, sys._getframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RankingWarning, stacklevel=level)
