"""Named sets of options that reproduce the values of other tools.

`docs/conventions.md` shows the effect of each choice on a small list. `validation/`
runs every tool and compares its values with those of tfrankmetrics.

To add a convention, add an entry with the metrics that it covers and each of their
options whose value differs from the base, and add its name to `ConventionName` in
`options.py`. Run `make tables`. Run the tool itself in `validation/tools.py`, and name
it in `docs/conventions.md`, in the rows of the values that it returns.

"trec_eval" and "ir_measures" mean more than options, which `Measure.is_trec_eval` says:
for such a metric, `evaluate_run`, `explain_run` and `beam.ComputeMetricsOfRun` also
round the scores of a run to float32 and order tied items by their ids. With
"trec_eval", the command leaves out queries without predictions.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class Convention:
    """The choices of a tool, for the metrics that it shares with tfrankmetrics.

    >>> print(CONVENTIONS["lightgbm"])
    convention="lightgbm": LightGBM
      metrics              ndcg, map
      gain                 exponential
      discount             log2
      ideal                judged
      relevance_threshold  1.0
      denominator          min(k, relevant)
      ties                 stable
      empty                one

    Args:
        name: Its key in `CONVENTIONS`, as in `evaluate(..., convention="lightgbm")`.
        tools: The tools that return these values, perhaps with a note in parentheses.
        metrics: The names of the metrics that it covers.
        options: The value of each option that these metrics take, and perhaps `k`, the
            cutoff of a metric without one. Where the metrics differ, a mapping from a
            metric's name to its value, with "others" for the remaining metrics.
    """

    name: str
    tools: str
    metrics: tuple[str, ...]
    options: Mapping[str, Any]

    def choice(self, option: str, metric: str) -> Any:
        """The value of one option for one metric."""
        value = self.options[option]
        if isinstance(value, Mapping):
            return value[metric] if metric in value else value["others"]
        return value

    def __str__(self) -> str:
        """A table with one line for each choice."""
        rows = {"metrics": ", ".join(self.metrics)}
        for option, value in self.options.items():
            if isinstance(value, Mapping):
                value = "; ".join(f"{key}: {choice}" for key, choice in value.items())
            rows[option] = value
        width = max(map(len, rows))
        lines = (f"  {option:{width}}  {value}" for option, value in rows.items())
        return "\n".join([f'convention="{self.name}": {self.tools}', *lines])


# What most tools with NDCG and binary metrics choose. A convention below states what
# differs. If a tool orders tied items at random, ties="expected" returns its expected
# value. If it keeps them in some fixed order, the convention uses "stable".
_BASE = {
    "gain": "exponential",
    "discount": "log2",
    "ideal": "judged",
    "relevance_threshold": 1.0,
    "denominator": {
        "map": "relevant",
        "recall": "relevant",
        "precision": "list",
        "precision_ia": "list",
        "f1": "list",
        "bpref": "min(relevant, irrelevant)",
    },
    "ties": "expected",
    "empty": "zero",
}

# Of tools with average precision alone.
_BINARY = {
    "relevance_threshold": 1.0,
    "denominator": "min(k, relevant)",
    "ties": "stable",
    "empty": "zero",
}


def _convention(
    name: str,
    tools: str,
    metrics: str,
    base: Mapping[str, Any] = _BASE,
    **differing: Any,
) -> Convention:
    """A convention by what differs from a base; spaces separate the metrics."""
    covered = tuple(metrics.split())
    options = {**base, **differing}
    if isinstance(options.get("denominator"), Mapping):
        by_metric = {**base["denominator"], **options["denominator"]}
        options["denominator"] = {m: by_metric[m] for m in by_metric if m in covered}
        if not options["denominator"]:
            del options["denominator"]
    return Convention(name, tools, covered, options)


_ALL = (
    _convention(
        "tf_ranking",
        "TensorFlow Ranking",
        "ndcg dcg map mrr precision recall hit_rate arp opa bpref precision_ia "
        "alpha_dcg",
        empty={"arp": "skip", "opa": "skip", "others": "zero"},
        zero_weight={"precision_ia": "keep", "alpha_dcg": "keep", "others": "mask"},
        alpha=0.5,
        over="first",
        average="micro",
    ),
    _convention(
        "keras_rs",
        "keras-rs",
        "ndcg dcg map mrr precision recall",
        zero_weight="mask",
        over="first",
    ),
    _convention(
        "rax",
        "rax",
        "ndcg dcg map mrr precision recall opa",
        ties={"opa": "expected", "others": "stable"},
        zero_weight="keep",
        average="macro",
        over="first",
    ),
    _convention(
        "trec_eval",
        "trec_eval, pytrec-eval, ranx, BEIR (rbp: trec_eval only)",
        "ndcg dcg map mrr precision recall capped_recall hit_rate f1 r_precision bpref "
        "rbp",
        gain="linear",
        denominator={"precision": "k", "f1": "k"},
        ties="stable",
        over="first",
        persistence=0.9,
        graded="relative",
    ),
    _convention(
        "ir_measures",
        "ir_measures",
        "ndcg map mrr precision recall hit_rate r_precision bpref rbp err",
        gain="linear",
        denominator={"precision": "k"},
        ties="stable",
        over="first",
        persistence=0.8,
        graded=False,
        max_label=4.0,
    ),
    _convention(
        "sklearn",
        "scikit-learn",
        "ndcg dcg map auc coverage_error",
        gain="linear",
        denominator="relevant",
        ties={"coverage_error": "worst", "others": "expected"},
        empty={"auc": "skip", "others": "zero"},
        average="macro",
    ),
    _convention(
        "torchmetrics",
        "torchmetrics",
        "ndcg map mrr precision recall hit_rate r_precision auc",
        gain="linear",
        denominator={"map": "hits", "precision": "k"},
        over="first",
        average="macro",
    ),
    _convention(
        "lightgbm",
        "LightGBM",
        "ndcg map",
        denominator="min(k, relevant)",
        ties="stable",
        empty="one",
    ),
    _convention("kaggle", "Kaggle's MAP@k, implicit", "map", base=_BINARY),
    _convention(
        "xgboost",
        "XGBoost",
        "ndcg map precision",
        denominator={"map": "min(k, relevant)"},
        ties="stable",
        empty={"precision": "zero", "others": "one"},
        k=32,
    ),
    _convention(
        "catboost",
        "CatBoost",
        "ndcg dcg map mrr precision recall pfound auc",
        gain="linear",
        denominator={"map": "min(k, relevant)"},
        ties={"auc": "expected", "others": "worst"},
        empty={"ndcg": "one", "recall": "one", "others": "zero"},
        max_label=1.0,
        decay=0.15,
        over="first",
        average="macro",
    ),
    _convention(
        "spark",
        "Spark",
        "ndcg map precision recall",
        denominator={"map": "min(k, relevant)", "precision": "k"},
        ties="stable",
    ),
    _convention(
        "recbole",
        "RecBole",
        "ndcg map mrr precision recall hit_rate auc gauc",
        gain="linear",
        denominator={"map": "min(k, relevant)", "precision": "k"},
        empty="skip",
        over="first",
        average="relevant",
    ),
    _convention(
        "recommenders",
        "recommenders",
        "ndcg map precision recall",
        gain="linear",
        denominator={"precision": "k"},
        ties="stable",
        empty="skip",
    ),
    _convention(
        "recommenders_map_at_k",
        "recommenders' map_at_k",
        "map",
        base=_BINARY,
        empty="skip",
    ),
    _convention(
        "lenskit",
        "LensKit",
        "ndcg dcg map mrr precision recall hit_rate rbp",
        gain="linear",
        discount="jarvelin",
        denominator={"map": "min(retrieved, relevant)", "recall": "min(k, relevant)"},
        ties="stable",
        empty={"precision": "zero", "others": "skip"},
        over="first",
        persistence=0.85,
        graded=False,
    ),
    _convention(
        "mind",
        "MIND",
        "ndcg mrr auc",
        empty="skip",
        over="all",
        average="macro",
    ),
    _convention(
        "tfma",
        "TensorFlow Model Analysis",
        "ndcg",
        base={},
        gain="linear",
        discount="log2",
        ideal="judged",
        ties="expected",
        empty="skip",
    ),
    _convention(
        "tfrs",
        "TensorFlow Recommenders",
        "hit_rate",
        base={},
        relevance_threshold=1.0,
        ties="best",
        empty="zero",
    ),
)

# The conventions of tools that order tied items by descending ids.
IN_ORDER_OF_TREC_EVAL = ("trec_eval", "ir_measures")
# The name of a convention by the name of each of its tools.
CONVENTION_OF = {
    tool.partition(" (")[0]: convention.name
    for convention in _ALL
    for tool in convention.tools.split(", ")
} | {"tfr": "tf_ranking"}  # as it is usually imported
CONVENTIONS: Mapping[str, Convention] = types.MappingProxyType(
    {convention.name: convention for convention in _ALL}
)
