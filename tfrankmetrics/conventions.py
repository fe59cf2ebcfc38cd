"""Named sets of choices that reproduce other tools' numbers.

`docs/conventions.md` shows what each choice does to a small list, and
`validation/` runs every tool beside this library to hold its set to it.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, eq=False)
class Convention:
    """What another tool chooses, for the metrics that it shares with this library.

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
        name: The word for it, as in `evaluate(..., convention="lightgbm")`.
        tools: The tools whose numbers it gives.
        metrics: The names of the metrics it covers.
        options: The value of each option that any of these metrics takes, or
            where they differ a mapping from the metric's name to the value, with
            "others" for the rest.
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
        """A table of the choices, a line each."""
        rows = {"metrics": ", ".join(self.metrics)}
        for option, value in self.options.items():
            if isinstance(value, Mapping):
                value = "; ".join(f"{metric}: {of}" for metric, of in value.items())
            rows[option] = value
        width = max(map(len, rows))
        lines = (f"  {option:{width}}  {value}" for option, value in rows.items())
        return "\n".join([f'convention="{self.name}": {self.tools}', *lines])


_KERAS_RS = {
    "gain": "exponential",
    "discount": "log2",
    "ideal": "judged",
    "relevance_threshold": 1.0,
    "denominator": {"map": "relevant", "precision": "list"},
    "ties": "expected",
    "empty": "zero",
}

# Where a tool orders tied items at random, its value is ours on average, so the
# set says "expected"; where it keeps some order of the items, "stable".
_ALL = (
    Convention(
        "tf_ranking",
        "TensorFlow Ranking",
        (
            "ndcg",
            "dcg",
            "map",
            "mrr",
            "precision",
            "recall",
            "hit_rate",
            "arp",
            "opa",
            "bpref",
            "precision_ia",
            "alpha_dcg",
        ),
        {
            **_KERAS_RS,
            "alpha": 0.5,
            "denominator": {
                **_KERAS_RS["denominator"],
                "precision_ia": "list",
                "bpref": "min(relevant, irrelevant)",
            },
            "average": "micro",
            "empty": {"arp": "skip", "opa": "skip", "others": "zero"},
        },
    ),
    Convention(
        "keras_rs",
        "keras-rs",
        ("ndcg", "dcg", "map", "mrr", "precision", "recall"),
        _KERAS_RS,
    ),
    Convention(
        "rax",
        "rax",
        ("ndcg", "dcg", "map", "mrr", "precision", "recall", "opa"),
        {
            **_KERAS_RS,
            "average": "macro",
            "ties": {"opa": "expected", "others": "stable"},
        },
    ),
    Convention(
        "trec_eval",
        "trec_eval, pytrec-eval, ir_measures, ranx",
        (
            "ndcg",
            "dcg",
            "map",
            "mrr",
            "precision",
            "recall",
            "hit_rate",
            "f1",
            "r_precision",
            "bpref",
        ),
        {
            "gain": "linear",
            "discount": "log2",
            "ideal": "judged",
            "relevance_threshold": 1.0,
            "denominator": {
                "map": "relevant",
                "precision": "k",
                "f1": "k",
                "bpref": "min(relevant, irrelevant)",
            },
            "ties": "stable",
            "empty": "zero",
        },
    ),
    Convention(
        "sklearn",
        "scikit-learn",
        ("ndcg", "dcg", "map", "auc"),
        {
            "gain": "linear",
            "discount": "log2",
            "ideal": "judged",
            "relevance_threshold": 1.0,
            "denominator": "relevant",
            "ties": "expected",
            "empty": {"auc": "skip", "others": "zero"},
        },
    ),
    Convention(
        "torchmetrics",
        "torchmetrics",
        ("ndcg", "map", "mrr", "precision", "recall", "hit_rate", "r_precision", "auc"),
        {
            "gain": "linear",
            "discount": "log2",
            "ideal": "judged",
            "relevance_threshold": 1.0,
            "denominator": {"map": "hits", "precision": "k"},
            "ties": "expected",
            "empty": "zero",
        },
    ),
    Convention(
        "lightgbm",
        "LightGBM",
        ("ndcg", "map"),
        {
            "gain": "exponential",
            "discount": "log2",
            "ideal": "judged",
            "relevance_threshold": 1.0,
            "denominator": "min(k, relevant)",
            "ties": "stable",
            "empty": "one",
        },
    ),
    Convention(
        "kaggle",
        "Kaggle's MAP@k, implicit",
        ("map",),
        {
            "relevance_threshold": 1.0,
            "denominator": "min(k, relevant)",
            "ties": "stable",
            "empty": "zero",
        },
    ),
)

CONVENTIONS: Mapping[str, Convention] = types.MappingProxyType(
    {convention.name: convention for convention in _ALL}
)
