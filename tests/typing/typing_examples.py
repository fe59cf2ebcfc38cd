"""Calls that a type checker must accept or reject.

`make types` checks this file, and nothing imports it. Each comment names the error
expected on its line. A comment without an error is itself an error, so every line is a
test.
"""

from typing import Literal

import tfrankmetrics as trm
from tfrankmetrics.options import Persistence

# Valid calls.
trm.NDCG(k=10, gain="linear")
trm.NDCG(k=10, gain=[0, 1, 3])
trm.evaluate([[1]], [[2]], ["ndcg"], gain={0: 0, 1: 0.1, 3: 1})
trm.NDCG(10, gain=lambda labels: labels**2, convention="trec_eval", name="mine")
trm.DCG(10, empty="skip")
trm.AlphaDCG(10, alpha=0.2)
trm.PerQueryAUC(inputs="catalog")
trm.RankingMetrics(["ndcg@10", trm.DCG()], prefix="a_", ties="stable", dtype="float64")
trm.evaluate([[1]], [[2]], ["ndcg@10", trm.NDCG(3)], gain="linear", empty="skip")
trm.evaluate_rows([1], [1], [2], ["ndcg@10"], convention="lightgbm", per_query=True)
options: trm.Options = {"gain": "linear", "ties": "expected"}
trm.evaluate([[1]], [[2]], ["ndcg"], **options)
cutoff: int | None = trm.NDCG(k=10).k
probability: float = trm.RankBiasedPrecision().persistence

# Misspelled options.
trm.NDCG(gian="linear")  # pyright: ignore[reportCallIssue]
trm.evaluate([[1]], [[2]], ["ndcg"], gian="linear")  # pyright: ignore[reportCallIssue]
trm.evaluate_rows([1], [1], [2], ["map"], tie="stable")  # pyright: ignore[reportCallIssue]
trm.RankingMetrics(["ndcg"], relevance=2)  # pyright: ignore[reportCallIssue]
wrong: trm.Options = {"gian": "linear"}  # pyright: ignore[reportAssignmentType]

# Invalid values, and options that the metric does not take.
trm.NDCG(gain="liner")  # pyright: ignore[reportArgumentType]
trm.NDCG(k="10")  # pyright: ignore[reportArgumentType]
trm.NDCG(10, "linear")  # pyright: ignore[reportCallIssue]
trm.NDCG(convention="trec")  # pyright: ignore[reportArgumentType]
trm.DCG(empty="one")  # pyright: ignore[reportArgumentType]
trm.BPref(k=10)  # pyright: ignore[reportCallIssue]
trm.OrderedPairAccuracy(inputs="ids")  # pyright: ignore[reportArgumentType]
trm.evaluate([[1]], [[2]], ["ndcg"], ties="first")  # pyright: ignore[reportArgumentType]
trm.RankingMetrics(["ndcg"], inputs="id")  # pyright: ignore[reportArgumentType]
trm.NDCG(k=10).gain = "linear"  # pyright: ignore[reportAttributeAccessIssue]


# A metric that a user declares.
def weighted_hits(lists: trm.RankedLists, relevance: trm.ItemGain, *, decay: float):
    return lists.sum_to_cutoffs(lists.expected(relevance)) * decay


@trm.metric("weighted_hits", formula=weighted_hits, gain=trm.BinaryGain)
class WeightedHits(trm.TopKMetric):
    decay: Persistence = 0.5
    relevance_threshold: float = 1.0
    ties: Literal["stable"] = "stable"


WeightedHits(10, decay=0.9)
WeightedHits(delay=0.9)  # pyright: ignore[reportCallIssue]
WeightedHits(ties="random")  # pyright: ignore[reportArgumentType]
