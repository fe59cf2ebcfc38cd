"""The table of mistakes: data that are probably wrong, but yield plausible values.

Each entry of `MISTAKES` reads facts about labels and scores and yields the texts of its
warnings. Functions, callbacks, Keras metrics, Beam and TFMA call `warn_of`. Facts are
counts of conditions, which are written once, for arrays of every library: `Facts`
counts them in NumPy, and `keras/evidence.py` in graphs. The facts of batches, of
replicas, of workers and of parts of a table add up to those of all data: a Keras metric
keeps them in its state, and a worker of Apache Beam in its accumulator. Mistakes that
only the data themselves show are in `whole_data.py`.

To add a mistake:

1.  Write a function here that reads facts and yields the text of a warning: the rule,
    `Received{asked.where}: ...`, the remedy. `Asked` states what depends on the caller,
    such as `may_be_all`. Do not warn of what another warning recommends. Add it to
    `MISTAKES` with a fact that it needs, and a row to the warnings in
    `docs/troubleshooting.md` and to `CHANGELOG.md`.
2.  If no fact shows the mistake, add one to `LABEL_FACTS` or `SCORE_FACTS`: a condition
    on one label or score, in operations of `xp`. For scores also count it in
    `Ranks.facts` in `retrieval/all_candidates.py`.
3.  Add data with the mistake, and the same data without it, to `CASES` in
    `tests/mistake_table.py`, with `where=EVERYWHERE` less the entry points at which it
    cannot happen, and the reason. Run `python -m pytest tests/test_mistakes.py`, and
    `make tfma` in its environment.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking.items import lowest_relevant

# The exponential gains of higher labels are far from those of grades. LightGBM, too,
# raises an error for them by default.
HIGHEST_GRADE = 30
OVERFLOW = 1024  # the lowest label with an infinite gain, which is an error
MANY = 20  # items; fewer than this may all be the same by chance
LONG = 200  # items of a list that may be the rows of several queries
MANY_RELEVANT = 2 * MANY  # items of such a list
MOST_VALUES = 10_000  # of the data, which are enough to tell


def are_grades(scores: Array) -> Array:
    """Whether each score is 0, 1, 2, 3 or 4, or -1 as the label of padding."""
    whole = xp.floor(scores) if xp.is_floating(scores) else scores
    return xp.equal(xp.minimum(whole, 4), scores) & (scores >= -1)


Conditions = Mapping[str, Callable[[Array], Array]]

# Each condition counts the values for which it is true. One of labels is false for 0,
# which is also the label of padding.
LABEL_FACTS: Conditions = {
    "labels": lambda labels: labels >= 0,
    "ones": lambda labels: xp.equal(labels, 1),
    "above 0": lambda labels: labels > 0,
    "at least 1.0": lambda labels: labels >= 1,
    "fractions": lambda labels: xp.not_equal(labels, xp.floor(labels)),
    "too high": lambda labels: (labels > HIGHEST_GRADE) & (labels < OVERFLOW),
}
SCORE_FACTS: Conditions = {
    "scores": lambda scores: xp.ones_like(scores, xp.bool),
    "NaN": lambda scores: xp.not_equal(scores, scores),
    "grades": are_grades,
    "zeros": lambda scores: xp.equal(scores, 0),
}
OF_LENGTHS = ("lists", "longer lists")
OF_WEIGHTS = (
    "lists with some weights of 0",
    "whose other weights are alike",
    "whose other weights are 1",
    "with a weight of an irrelevant item",
)
OF_EXCLUDED = ("relevant", "excluded")
OF_SUBTOPICS = ("queries with subtopics", "with several subtopics")


def reached(threshold: float) -> str:
    """The name of the number of labels that reach a relevance threshold."""
    return f"at least {float(threshold)!r}"


def facts_of_labels(thresholds: Iterable[float]) -> Conditions:
    """`LABEL_FACTS`, and whether a label reaches each of the thresholds."""
    reaching = {
        reached(threshold): functools.partial(_reaches, threshold)
        for threshold in thresholds
    }
    return {**reaching, **LABEL_FACTS}


def _reaches(threshold: float, labels: Array) -> Array:
    return labels >= lowest_relevant(threshold, labels)


def conditions_of_lengths(lengths: Array) -> Array:
    """The conditions `OF_LENGTHS` of lists with these numbers of items, `[2, B]`."""
    lowest = np.array([[0], [1]], xp.dtype_of(lengths))
    return lengths > xp.asarray(lowest, like=lengths)


def conditions_of_weights(
    labels: Array, weights: Array, judged: Array
) -> tuple[Array, ...]:
    """The conditions `OF_WEIGHTS` of each list, all bool `[B]`.

    Args:
        labels: The labels of items, `[B, N]`.
        weights: Their weights, `[B, N]`.
        judged: False for padding and unjudged items, `[B, N]`.
    """
    has_weight = judged & (weights > 0)
    highest = xp.max(xp.where(has_weight, weights, 0), axis=1)
    is_zero = judged & xp.equal(weights, 0)
    mixed = xp.any(is_zero, axis=1) & (highest > 0)
    differs = has_weight & xp.not_equal(weights, highest[:, xp.newaxis])
    alike = mixed & ~xp.any(differs, axis=1)
    irrelevant = mixed & xp.any(has_weight & (labels <= 0), axis=1)
    return mixed, alike, alike & xp.equal(highest, 1), irrelevant


def flat_lists(labels: Array, judged: Array) -> Array:
    """1 if a list `[N]` may be the rows of several queries, otherwise 0."""
    relevant = xp.sum(xp.astype(judged & (labels > 0), xp.float64))
    is_long = (relevant >= MANY_RELEVANT) & (xp.size(labels) >= LONG)
    return xp.astype(is_long, xp.float64)


def numbers_of(conditions: Iterable[np.ndarray]) -> list[float]:
    """How often each condition is true."""
    return [float(np.count_nonzero(each)) for each in conditions]


class Facts(dict[str, float]):
    """Facts by name, which add up; a fact that is not known is 0."""

    def __missing__(self, name: str) -> float:
        return 0.0

    @classmethod
    def of(cls, conditions: Conditions, values: np.ndarray) -> Facts:
        """For how many of the values each condition is true."""
        are_true = (is_true(values) for is_true in conditions.values())
        return cls(zip(conditions, numbers_of(are_true), strict=True))

    @classmethod
    def of_labels(cls, labels: np.ndarray, thresholds: tuple[float, ...]) -> Facts:
        """The facts of labels, of which one below 0 was not judged."""
        facts = cls.of(facts_of_labels(thresholds), labels[labels >= 0])
        facts["items"] = float(labels.size)
        return facts

    @classmethod
    def of_lengths(cls, lengths: np.ndarray) -> Facts:
        """The facts of lists with these numbers of items."""
        conditions = conditions_of_lengths(lengths)
        return cls(zip(OF_LENGTHS, numbers_of(conditions), strict=True))

    @classmethod
    def of_weights(
        cls, labels: np.ndarray, weights: np.ndarray, judged: np.ndarray
    ) -> Facts:
        """The facts of weights of items, `[B, N]`."""
        conditions = conditions_of_weights(labels, weights, judged)
        return cls(zip(OF_WEIGHTS, numbers_of(conditions), strict=True))

    def __add__(self, other: Mapping[str, float]) -> Facts:
        total = {n: self.get(n, 0) + each for n, each in other.items()}
        return Facts({**self, **total})


# Their lines are on the call stack between a warning and the user's code.
LIBRARIES = {__name__.partition(".")[0], "keras", "tf_keras", "tensorflow", "torch"}


class RankingWarning(UserWarning):
    """A warning about data or results that are probably a mistake.

    To make it an error:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RankingWarning)
    """


class LabelRules(NamedTuple):
    """How some metrics read labels."""

    thresholds: tuple[float, ...] = ()  # the lowest label of a relevant item
    are_powers: bool = False  # whether a gain is 2^label - 1
    rank_zero_weights: bool = False  # whether a metric ranks items of weight 0
    read_subtopics: bool = False


class Asked(NamedTuple):
    """Of which mistakes to warn."""

    rules: LabelRules = LabelRules()
    where: str = ""  # of the data, as in " in 'mrr'"
    least: int = MANY  # labels; fewer than this may all be the same by chance
    # Whether all labeled items may be relevant, since others are not.
    may_be_all: bool = False
    warned: set[str] | None = None  # the rules not to warn of again


ANY = Asked()


def are_swapped(facts: Facts, rules: LabelRules) -> bool:
    """Whether the labels look like scores, and the scores like labels.

    Fractions may be labels, such as rates, where no metric asks for whole numbers. And
    whole numbers may be scores, such as 0 to n - 1 in a list of n items.
    """
    asks_for_grades = rules.are_powers or any(t % 1 == 0 for t in rules.thresholds)
    are_like_labels = facts["grades"] == facts["scores"] > facts["zeros"] > 0
    are_like_labels &= not facts["compared"] == facts["ranks from 0"] > 0
    # Scores may be padded with 0, which is no fraction.
    are_like_scores = facts["fractions"] > facts["above 0"] / 2 >= 2
    return asks_for_grades and are_like_labels and are_like_scores


def swapped(facts: Facts, asked: Asked) -> Iterator[str]:
    """Labels in the place of scores."""
    if are_swapped(facts, asked.rules):
        yield (
            f"Labels come before scores. Received{asked.where}: labels above 0, most "
            "of which are fractions, and scores that are whole numbers from 0 to 4. "
            "They are probably swapped."
        )


def not_numbers(facts: Facts, asked: Asked) -> Iterator[str]:
    """Scores of a model that has diverged."""
    yield (
        f"Scores must be numbers. Received{asked.where}: NaN for {facts['NaN']:,.0f} "
        f"of {facts['scores']:,.0f} scores. NaN ranks below every number, and several "
        "of them are tied. A model that returns only NaN has the value of a random "
        "order."
    )


def have_form_of_ranks(facts: Facts) -> bool:
    """Whether nearly all scores are the numbers from 0 or 1 in their lists."""
    number = max(facts["ranks from 0"], facts["ranks from 1"])
    return number >= 0.9 * facts["compared"]


def ranks(facts: Facts, asked: Asked) -> Iterator[str]:
    """Ranks, of which the lowest is the best, in the place of scores."""
    are_many = facts["compared"] >= 2 * MANY
    if not facts["called ranks"] and not (are_many and have_form_of_ranks(facts)):
        return
    # An AUC below 0.5 by three standard errors is not chance.
    if facts["U above its mean"] < -3 * facts["variance of U"] ** 0.5:
        yield (
            f"The highest score ranks first. Received{asked.where}: scores that look "
            "like ranks, since those of relevant items are lower than those of others. "
            "If they are ranks, pass lower_is_better=True, or negative ranks where "
            "there is no such argument."
        )


def single_items(facts: Facts, asked: Asked) -> Iterator[str]:
    """Rows of a table in the place of lists."""
    if facts["lists"] > 2 * MANY and facts["longer lists"] == 0:
        yield (
            "A list must contain all items of a query. Received"
            f"{asked.where}: {facts['lists']:,.0f} lists of one item each, in which "
            "nothing can be ranked. Pass the items of a query in one list, or in rows "
            "with the same query id."
        )


def too_high_for_powers(facts: Facts, asked: Asked) -> Iterator[str]:
    """Counts or ids in the place of grades."""
    if asked.rules.are_powers:
        yield (
            "The exponential gain 2^label - 1 requires grades of relevance, usually 0 "
            f"to 4. Received{asked.where}: labels above {HIGHEST_GRADE}. Of each list, "
            "only the highest labels would affect the value. If labels are counts or "
            "percentages, pass gain='linear'. If they are ids, pass 1 for relevant "
            "items and 0 for others."
        )


def useless_threshold(facts: Facts, asked: Asked) -> Iterator[str]:
    """Grades or rates, of which all or none are relevant."""
    if facts["labels"] < asked.least or are_swapped(facts, asked.rules):
        return
    for threshold in asked.rules.thresholds:
        rule = f"An item is relevant if its label is at least {threshold:g}."
        remedy = "Pass `relevance_threshold`, or use a metric of grades, such as ndcg."
        number = facts[reached(threshold)]
        if number == facts[reached(1)] == 0 < facts["above 0"]:
            yield (
                f"{rule} Received{asked.where}: labels above 0, all of which are below "
                f"{min(1, threshold):g}, so no item is relevant. {remedy}"
            )
        # Implicit feedback has only labels of 1, which is no mistake.
        is_all = number == facts["labels"] > facts["ones"]
        if is_all and not asked.may_be_all:
            yield (
                f"{rule} Received{asked.where}: labels other than 1, all of which "
                f"reach the threshold, so each item is relevant. {remedy}"
            )


def weights_like_a_mask(facts: Facts, asked: Asked) -> Iterator[str]:
    """Weights of 0 that look like a mask."""
    mixed = facts["lists with some weights of 0"]
    # Weights of clicks only, such as inverse propensities, are not a mask.
    are_of_others = facts["with a weight of an irrelevant item"] > 0
    is_mask = facts["whose other weights are 1"] == mixed or are_of_others
    if mixed == facts["whose other weights are alike"] and is_mask:
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
    if facts["flat ids"]:
        yield (
            "Ids of the shapes [M] and [K] are the lists of one query. Received"
            f"{asked.where}: at least {LONG} recommended ids and {MANY_RELEVANT} "
            "relevant ids. If they belong to several queries, pass a list of ids for "
            "each. If all belong to one query, pass ids of the shapes [1, M] and "
            "[1, K]."
        )
    else:
        yield (
            "Labels and scores of the shape [N] are the list of one query. Received"
            f"{asked.where}: at least {LONG} items, of which {MANY_RELEVANT} or more "
            "have a label above 0. If they belong to several queries, use "
            "evaluate_rows with the id of the query of each row, or pass a list for "
            "each, [B, N], with -1 as the label of padding. If all belong to one "
            "query, pass labels and scores of the shape [1, N]."
        )


def relevant_but_excluded(facts: Facts, asked: Asked) -> Iterator[str]:
    """Two or more of the relevant items, and a twentieth of them."""
    relevant, excluded = facts["relevant"], facts["excluded"]
    if excluded >= max(2, relevant / 20):
        yield (
            "`exclude` removes items from the ranking that are not candidates, such as "
            f"those of the training data. Received{asked.where}: {excluded:,.0f} of "
            f"{relevant:,.0f} relevant items are excluded, and treated as missed. "
            "Remove the relevant items from `exclude`."
        )


def nothing_found(facts: Facts, asked: Asked) -> Iterator[str]:
    """Judgments and predictions with different ids of the same items."""
    # Excluded items would be judged.
    if facts["retrieved"] == facts["unjudged"] and not facts["excluded"]:
        yield (
            "Unjudged items are treated as not relevant. Received: predictions without "
            "a judged item. The item ids of `qrels` and `run` are probably different."
        )


def single_subtopics(facts: Facts, asked: Asked) -> Iterator[str]:
    """Judgments of queries in the place of judgments of subtopics."""
    if asked.rules.read_subtopics and not facts["with several subtopics"]:
        yield (
            "Metrics of subtopics require judgments of several subtopics. Received"
            f"{asked.where}: judgments of one subtopic in each query. Pass `subtopic`, "
            "the column of the subtopics, or use metrics such as recall and ndcg."
        )


# Each finds a mistake that is probable, by facts, and says what to do. It is called
# only if the fact of this name is not 0.
MISTAKES: Mapping[Callable[[Facts, Asked], Iterator[str]], str] = {
    swapped: "fractions",
    not_numbers: "NaN",
    ranks: "variance of U",
    single_items: "lists",
    too_high_for_powers: "too high",
    useless_threshold: "above 0",
    weights_like_a_mask: "lists with some weights of 0",
    long_flat_list: "flat lists",
    relevant_but_excluded: "excluded",
    nothing_found: "unjudged",
    single_subtopics: "queries with subtopics",
}


def warn_of(facts: Facts, asked: Asked = ANY) -> None:
    """Warns of each mistake that the facts show."""
    for find, fact in MISTAKES.items():
        if facts.get(fact):
            for message in find(facts, asked):
                warn(message, asked.warned)


def _signed_labels(facts: Facts, remedy: str) -> str | None:
    """The error for labels that are only 1 and below 0, where -1 would be padding."""
    if not facts["items"] > facts["labels"] == facts["ones"] > 0:
        return None
    return (
        "Labels must not be only -1 and 1, since a label below 0 marks padding: "
        "only relevant items would be left. Received: only labels that are 1 or below "
        "0. If -1 means not relevant, pass labels > 0. If it marks padding, "
        f"{remedy}."
    )


def refuse_signed_labels(facts: Facts, remedy: str) -> None:
    """Raises ValueError for labels that are only 1 and below 0."""
    if (error := _signed_labels(facts, remedy)) is not None:
        raise ValueError(error)


def warn_if_signed(facts: Facts, remedy: str, asked: Asked) -> None:
    """Warns of labels that are only 1 and below 0."""
    error = _signed_labels(facts, remedy)
    if error is not None and facts["items"] >= asked.least:
        warn(error, asked.warned)


def warn(message: str, warned: set[str] | None = None) -> None:
    """Warns at the line of the user's code: the first one outside of libraries.

    It does not warn of a rule in `warned`, to which it adds the rule of the message.
    """
    warned = set() if warned is None else warned
    # What follows the rule may count data, and differ after each batch.
    rule = message.partition(" Received")[0]
    if rule in warned:
        return
    level, frame = 1, sys._getframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RankingWarning, stacklevel=level)
    warned.add(rule)
