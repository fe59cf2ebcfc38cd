"""Numbers that other people published, compared with the values of this library.

`python validation/published.py` writes `docs/published.csv`, which `docs/validation.md`
sums up; `test_published.py` compares each number. Some need data or packages that are
not part of the project: the folder `$PUBLISHED_DATA` with the per-topic scores, and the
packages `recommenders` and `recbole`.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import importlib.util
import os
import pathlib
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np

import tfrankmetrics as trm

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "validation.md"
FILE = PAGE.with_name("published.csv")
HEADER = ["source", "value", "published", "tfrankmetrics"]
DATA = os.environ.get("PUBLISHED_DATA")
HAS_MODELS = all(map(importlib.util.find_spec, ("recommenders", "recbole")))


@dataclasses.dataclass(frozen=True)
class Published:
    """A number as it was printed, and how to compute it here."""

    section: str
    what: str
    printed: str
    ours: Callable[[], float]
    # By how much ours may differ, beyond the digits that were printed.
    noise: float = 0.0

    def __str__(self) -> str:
        return f"{self.section}: {self.what}"

    @property
    def digits(self) -> int:
        """The decimals that were printed, but not the 16th digit of a float."""
        return min(15, len(self.printed.partition(".")[2]))

    def agrees(self) -> bool:
        """Whether both are the same number, as far as it was printed."""
        return self.error(self.ours()) <= self.noise

    def error(self, value: float) -> float:
        """How far a value is from those that round to the printed one."""
        half = 0.5 * 10.0**-self.digits
        return max(0.0, abs(value - float(self.printed)) - half * 1.000001)


TIES = "Tied scores"
SAMPLED = "Sampled metrics"
TESTS = "Significance tests"
MOVIELENS = "MovieLens-100K"
DOCUMENTS = "Worked examples"


def of_ties() -> Iterator[Published]:
    """The README of trm 0.1.1: ndcg, mrr and recall of a list with three tied items."""
    labels, scores = [0, 1, 0, 1, 0], [0.99, 0.97, 0.97, 0.97, 0.95]
    columns = {"E[M]": "expected", "M_obl": "stable", "M_max": "best", "M_min": "worst"}
    printed = {
        "ndcg@3": "0.4623 0.3869 0.6934 0.3066 0.3869 -0.0754",
        "ndcg@5": "0.6383 0.6509 0.6934 0.5706 0.1228 0.0126",
        "mrr@3": "0.4444 0.5000 0.5000 0.3333 0.1667 0.0556",
        "mrr@5": "0.4444 0.5000 0.5000 0.3333 0.1667 0.0556",
        "recall@3": "0.6667 0.5000 1.0000 0.5000 0.5000 -0.1667",
        "recall@5": "1.0000 1.0000 1.0000 1.0000 0.0000 0.0000",
    }

    def value(metric: str, ties: str) -> float:
        return trm.evaluate(labels, scores, [metric], ties=ties)[metric]

    for metric, numbers in printed.items():
        of = functools.partial(value, metric)
        *single, spread, bias = numbers.split()
        for (name, ties), number in zip(columns.items(), single, strict=True):
            yield Published(
                TIES, f"{metric}, {name}", number, functools.partial(of, ties)
            )
        yield Published(
            TIES, f"{metric}, range", spread, lambda of=of: of("best") - of("worst")
        )
        yield Published(
            TIES, f"{metric}, bias", bias, lambda of=of: of("stable") - of("expected")
        )


RANKS = {
    "A": [100, 100, 100, 100, 100],
    "B": [40, 40, 8437, 9266, 4482],
    "C": [212, 2, 743, 5342, 1548],
}
NUM_ITEMS, NUM_SAMPLED = 10_000, 99


def of_ranks(model: str, metric: str) -> float:
    """The metric of five users, whose relevant items have these ranks."""
    scores = -np.arange(NUM_ITEMS, dtype=float)
    relevant = np.array(RANKS[model]) - 1
    everything = np.tile(scores, (len(relevant), 1))
    return trm.evaluate(relevant, everything, [metric], inputs="catalog")[metric]


def expected_of_sampled_ap(model: str) -> float:
    """The mean AP among sampled items, as docs/guide/pitfalls.md computes it."""
    import scipy.stats

    ranks = np.array(RANKS[model])
    above = np.arange(NUM_SAMPLED + 1)
    chances = scipy.stats.binom.pmf(
        above, NUM_SAMPLED, (ranks[:, np.newaxis] - 1) / (NUM_ITEMS - 1)
    )
    return float((chances / (above + 1)).sum(axis=1).mean())


def of_sampled_metrics() -> Iterator[Published]:
    """Krichene and Rendle, KDD 2020, tables 1 and 2."""
    table = {
        "auc": ".990 .555 .843",
        "map": ".010 .010 .101",
        "ndcg": ".150 .122 .208",
        "recall@10": "0 0 .2",
    }
    for metric, numbers in table.items():
        for model, number in zip(RANKS, numbers.split(), strict=True):
            ours = functools.partial(of_ranks, model, metric)
            yield Published(SAMPLED, f"table 1, {model}, {metric}", number, ours)
    # The mean of 1,000 simulations of five users. A reciprocal rank of A has the
    # standard deviation 0.29: three standard errors are 3 * 0.29 / sqrt(5,000).
    for model, number in zip(RANKS, (".630", ".336", ".325"), strict=True):
        ours = functools.partial(expected_of_sampled_ap, model)
        what = f"table 2, {model}, sampled AP (simulated)"
        yield Published(SAMPLED, what, number, ours, noise=0.0123)


@functools.cache
def scores_of(name: str) -> np.ndarray:
    """Per-topic scores, `[topics, systems]`."""
    path = pathlib.Path(DATA or "") / f"{name}.csv"
    return np.loadtxt(path, delimiter=",", skiprows=1)


@functools.cache
def p_value(test: str, resamples: int = 10_000) -> float:
    """That of systems 125 and 126 of TREC-8, by average precision."""
    scores = scores_of("adhoc8_ap")
    models = {
        name: {"ap": scores[:, column]} for name, column in (("a", 124), ("b", 125))
    }
    (difference,) = trm.compare(models, test=test, resamples=resamples).differences
    return difference.p


def of_tests() -> Iterator[Published]:
    """Urbano, Lima and Hanjalic, SIGIR 2019: the data and code of their study."""
    p = functools.partial
    yield Published(TESTS, "t-test", "0.0013193972", p(p_value, "t"))
    # 10^6 permutations there, and 2 * 10^5 here: three standard errors.
    ours = p(p_value, "randomization", 200_000)
    yield Published(TESTS, "randomization (simulated)", "0.001188", ours, noise=0.00025)


@functools.cache
def movielens(notebook: str) -> dict[str, float]:
    """SAR of recommenders on MovieLens-100K, which RecBole ships: our metrics."""
    import pandas as pd
    import recbole
    from recommenders.datasets.python_splitters import python_stratified_split

    with mock.patch.object(np, "NaN", np.nan, create=True):  # of NumPy 1
        from recommenders.models.sar import SAR

        folder = pathlib.Path(recbole.__file__).parent / "dataset_example/ml-100k"
        ratings = pd.read_csv(folder / "ml-100k.inter", sep="\t")
        ratings.columns = ["userID", "itemID", "rating", "timestamp"]
        options = {"filter_by": "item"} if notebook == "benchmark" else {}
        names = {"col_user": "userID", "col_item": "itemID"}
        train, test = python_stratified_split(
            ratings, ratio=0.75, seed=42, **names, **options
        )
        model = SAR(
            **names,
            col_rating="rating",
            col_timestamp="timestamp",
            similarity_type="jaccard",
            time_decay_coefficient=30,
            timedecay_formula=True,
            normalize=notebook == "quick start",
        )
        model.fit(train)
        found = model.recommend_k_items(
            test, top_k=10, sort_top_k=True, remove_seen=True
        )
    # The package's NDCG has the gain 1 for each rated item by default.
    return trm.evaluate_run(
        test.assign(rating=1),
        found,
        ["map@10", "ndcg@10", "precision@10", "recall@10"],
        query="userID",
        item="itemID",
        label="rating",
        score="prediction",
        convention="recommenders",
        missing_queries="skip",
    )


def of_movielens() -> Iterator[Published]:
    """The notebooks of the package recommenders: SAR on MovieLens-100K."""
    names = ("map@10", "ndcg@10", "precision@10", "recall@10")
    for notebook, numbers in (
        ("benchmark", "0.114038 0.393819 0.340615 0.185377"),
        ("quick start", "0.106959 0.379533 0.331071 0.176837"),
    ):
        for name, number in zip(names, numbers.split(), strict=True):
            ours = lambda notebook=notebook, name=name: movielens(notebook)[name]  # noqa: E731
            yield Published(MOVIELENS, f"{notebook}, {name}", number, ours)


def of_documents() -> Iterator[Published]:
    """The five documents of notebook 01, where the text names them."""
    graded, five = [3, 2, 3, 0, 1, 2, 3, 2], [1, 0, 1, 0, 1]
    truth, lists = list("abcde"), ["bcade", "abcde", "fbcde", "afegb", "afcgb", "dcbae"]
    linear = {"gain": "linear"}

    def of_list(labels: list[int], metric: trm.TopKMetric | str, **options) -> float:
        scores = [*range(len(labels), 0, -1)]
        (value,) = trm.evaluate(labels, scores, [metric], **options).values()
        return value

    p = functools.partial
    jarvelin = trm.DCG(k=6, gain="linear", discount="jarvelin")
    kaggle = trm.MeanAveragePrecision(k=4, denominator="min(k, relevant)")
    ndcg = trm.NDCG(gain="linear")
    for what, number, ours in (
        ("supalaaak, DCG", "8.492056442164959", p(of_list, graded, "dcg", **linear)),
        ("supalaaak, NDCG@10", "0.935908621453514", p(of_list, graded, ndcg)),
        ("LogM, P@3", "0.6667", p(of_list, five, "P@3")),
        ("LogM, P@4", "0.5", p(of_list, five, "P@4")),
        ("LogM, P@5", "0.6", p(of_list, five, "P@5")),
        ("LogM, AP", "0.7556", p(of_list, five, "map")),
        ("Recohut, DCG@6", "8.097171433256849", p(of_list, graded[:6], jarvelin)),
        ("Recohut, NDCG@6", "0.9608081943360617", p(of_list, graded[:6], ndcg)),
    ):  # fmt: skip
        yield Published(DOCUMENTS, what, number, ours)
    grades = [0, 4, 1, 3, 4, 1, 3, 2]
    for name, numbers in (
        ("dcg", "0.0 2.52 3.02 4.32 5.86 6.22 7.22 7.85"),
        ("ndcg", "0.0 0.39 0.38 0.46 0.58 0.60 0.67 0.73"),
    ):
        for k, number in enumerate(numbers.split(), 1):
            ours = p(of_list, grades, f"{name}@{k}", **linear)
            yield Published(DOCUMENTS, f"nirajan-fuse, {name}@{k}", number, ours)
    yield Published(
        DOCUMENTS,
        "Kaggle, MAP@4",
        "0.71875",
        lambda: trm.evaluate([truth] * 6, [*map(list, lists)], [kaggle], inputs="ids")[
            "map@4"
        ],
    )


ALWAYS = [*of_documents(), *of_ties(), *of_sampled_metrics()]
OF_DATA = [*of_tests()]
OF_MODELS = [*of_movielens()]
# In the order of the page.
EVERYTHING = [*ALWAYS, *OF_MODELS, *OF_DATA]


def rows() -> Iterator[list[str]]:
    """The rows of the file."""
    for each in EVERYTHING:
        ours = f"{each.ours():.{max(4, each.digits)}f}"
        yield [each.section, each.what, each.printed, ours]


if __name__ == "__main__":
    with FILE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *rows()])
