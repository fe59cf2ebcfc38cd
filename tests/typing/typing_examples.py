"""Calls that a type checker must accept or reject.

`make types` checks this file, and nothing imports it. Each comment names the error
expected on its line. A comment without an error is itself an error, so every line is a
test.
"""

from typing import Literal

import tfrankmetrics as tfr
from tfrankmetrics.options import Persistence

# Valid calls.
tfr.NDCG(k=10, gain="linear")
tfr.NDCG(k=10, gain=[0, 1, 3])
tfr.evaluate([[1]], [[2]], ["ndcg"], gain={0: 0, 1: 0.1, 3: 1})
tfr.NDCG(10, gain=lambda labels: labels**2, convention="trec_eval", name="mine")
tfr.DCG(10, empty="skip")
tfr.AlphaDCG(10, alpha=0.2)
tfr.PerQueryAUC(inputs="catalog")
tfr.RankingMetrics(["ndcg@10", tfr.DCG()], prefix="a_", ties="stable", dtype="float64")
tfr.evaluate([[1]], [[2]], ["ndcg@10", tfr.NDCG(3)], gain="linear", empty="skip")
tfr.evaluate_rows([1], [1], [2], ["ndcg@10"], convention="lightgbm", per_query=True)
options: tfr.Options = {"gain": "linear", "ties": "expected"}
tfr.evaluate([[1]], [[2]], ["ndcg"], **options)
cutoff: int | None = tfr.NDCG(k=10).k
probability: float = tfr.RankBiasedPrecision().persistence

# Misspelled options.
tfr.NDCG(gian="linear")  # pyright: ignore[reportCallIssue]
tfr.evaluate([[1]], [[2]], ["ndcg"], gian="linear")  # pyright: ignore[reportCallIssue]
tfr.evaluate_rows([1], [1], [2], ["map"], tie="stable")  # pyright: ignore[reportCallIssue]
tfr.RankingMetrics(["ndcg"], relevance=2)  # pyright: ignore[reportCallIssue]
wrong: tfr.Options = {"gian": "linear"}  # pyright: ignore[reportAssignmentType]

# Invalid values, and options that the metric does not take.
tfr.NDCG(gain="liner")  # pyright: ignore[reportArgumentType]
tfr.NDCG(k="10")  # pyright: ignore[reportArgumentType]
tfr.NDCG(10, "linear")  # pyright: ignore[reportCallIssue]
tfr.NDCG(convention="trec")  # pyright: ignore[reportArgumentType]
tfr.DCG(empty="one")  # pyright: ignore[reportArgumentType]
tfr.BPref(k=10)  # pyright: ignore[reportCallIssue]
tfr.OrderedPairAccuracy(inputs="ids")  # pyright: ignore[reportArgumentType]
tfr.evaluate([[1]], [[2]], ["ndcg"], ties="first")  # pyright: ignore[reportArgumentType]
tfr.RankingMetrics(["ndcg"], inputs="id")  # pyright: ignore[reportArgumentType]
tfr.NDCG(k=10).gain = "linear"  # pyright: ignore[reportAttributeAccessIssue]


# A metric that a user declares.
def weighted_hits(lists: tfr.RankedLists, relevance: tfr.ItemGain, *, decay: float):
    return lists.sum_to_cutoffs(lists.expected(relevance)) * decay


@tfr.metric("weighted_hits", formula=weighted_hits, gain=tfr.BinaryGain)
class WeightedHits(tfr.TopKMetric):
    decay: Persistence = 0.5
    relevance_threshold: float = 1.0
    ties: Literal["stable"] = "stable"


WeightedHits(10, decay=0.9)
WeightedHits(delay=0.9)  # pyright: ignore[reportCallIssue]
WeightedHits(ties="random")  # pyright: ignore[reportArgumentType]
