"""Arguments shared by several functions, each with its type, default and meaning.

`signatures.py` explains how a function takes one of these typed dicts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

from tfrankmetrics.options import Duplicates, Inputs, Options, Separator
from tfrankmetrics.signatures import Argument

MissingQueries = Literal["zero", "skip", "error"]
UnjudgedQueries = Literal["skip", "error"]
Unjudged = Literal["irrelevant", "drop"]
Unit = Literal["epochs", "steps"]


class FormatArguments(TypedDict, total=False):
    """The input format."""

    inputs: Annotated[
        Inputs | None,
        Argument(
            None,
            'The format of `y_true` and `y_pred`: "labels" and scores (the default); '
            'relevant "ids" and recommended ids, best first; or relevant ids and the '
            'scores of a whole "catalogue". `NDCG.update_state` describes the three '
            "formats.",
        ),
    ]
    duplicates: Annotated[
        Duplicates | None,
        Argument(
            None,
            'How repeated recommendations are counted, with inputs="ids" only: "first" '
            '(once, at the first position; the default) or "all" (each time).',
        ),
    ]


class CountArguments(Options, total=False):
    """The number of queries, and the options of metrics."""

    num_queries: Annotated[
        bool,
        Argument(
            False,
            "If True, the result also contains the number of queries that are included "
            'in any of the metrics, under the key "num_queries".',
        ),
    ]


class KeyArguments(Options, total=False):
    """The keys of results, and the options of metrics."""

    separator: Annotated[
        Separator,
        Argument(
            "@",
            'The separator of the name and the cutoff of a metric passed by name: "@" '
            '(the default) or "_", as in "ndcg_10", for trackers that reject "@". A '
            "metric object keeps its own name.",
        ),
    ]


class SliceArguments(CountArguments, KeyArguments, total=False):
    """The slices, the keys of results, and the options of metrics."""

    by: Annotated[
        Any,
        Argument(
            None,
            "A slice for each query, such as its language. Returns the metrics of each "
            "slice, too. Or a dict of columns, whose combinations are the slices.",
        ),
    ]


class ResultArguments(SliceArguments, total=False):
    """The form of a result, and the options of metrics."""

    per_query: Annotated[
        bool,
        Argument(
            False, "If True, returns the value of each query instead of the mean."
        ),
    ]


class ListArguments(ResultArguments, FormatArguments, total=False):
    """The arguments of `evaluate`."""


class ExplainArguments(FormatArguments, Options, total=False):
    """The arguments of `explain`."""


class ExplainRowsArguments(Options, total=False):
    """The arguments of `explain_rows`."""


class KerasArguments(CountArguments, KeyArguments, FormatArguments, total=False):
    """The arguments of `RankingMetrics`."""


class PairColumns(TypedDict, total=False):
    """The columns of two tables of pairs, and the treatment of unjudged items."""

    query: Annotated[
        str, Argument("query_id", "The column of the query ids, in both tables.")
    ]
    item: Annotated[
        str, Argument("item_id", "The column of the item ids, in both tables.")
    ]
    label: Annotated[str, Argument("label", "The column of the labels, in `qrels`.")]
    score: Annotated[str, Argument("score", "The column of the scores, in `run`.")]
    unjudged: Annotated[
        Unjudged,
        Argument(
            "irrelevant",
            'How unjudged items are treated: as "irrelevant" (the default), or "drop" '
            "excludes them, as for condensed lists. BPref always excludes them, by its "
            "definition.",
        ),
    ]


class RunColumns(PairColumns, total=False):
    """Two tables: their columns, and the treatment of queries and items in one only."""

    missing_queries: Annotated[
        MissingQueries,
        Argument(
            "zero",
            'How to treat judged queries without predictions: as "zero", an empty '
            'result (the default); "skip"; or "error".',
        ),
    ]
    unjudged_queries: Annotated[
        UnjudgedQueries,
        Argument(
            "skip",
            'How to treat predictions of queries that were not judged: "skip" (the '
            'default) or "error".',
        ),
    ]


class RunArguments(ResultArguments, RunColumns, total=False):
    """The arguments of `evaluate_run`."""

    model: Annotated[
        str | None,
        Argument(
            None,
            "The column of `run` with the model of each row, if the table holds the "
            "predictions of several models. The result is then a dict with the result "
            "of each model, which `compare` takes with `per_query=True`.",
        ),
    ]


class ExplainRunArguments(PairColumns, Options, total=False):
    """The arguments of `explain_run`."""


class BeamRunArguments(KeyArguments, RunColumns, total=False):
    """The arguments of `EvaluateRun` on Beam."""


class CatalogueArguments(TypedDict, total=False):
    """Candidates and how they are scored."""

    exclude: Annotated[
        Any,
        Argument(
            None,
            "Ids to exclude from each query's ranking, such as items that the user has "
            "seen, `[B, E]` or lists of unequal length. An excluded item that is "
            "relevant is treated as missed.",
        ),
    ]
    candidate_ids: Annotated[
        Any,
        Argument(
            None,
            "The id of each candidate, `[V]`, integers or strings. Then `relevant` and "
            "`exclude` hold these ids instead of positions. Rows of strings have "
            "unequal length and no padding.",
        ),
    ]
    score: Annotated[
        Callable[[Any, Any], Any] | None,
        Argument(
            None,
            "A function from queries and candidates, some rows of each, to their "
            "scores `[B, C]`. It receives arrays of the library of its inputs: tensors "
            "of PyTorch if queries or candidates are, and so on. The score of a pair "
            "must not depend on the other rows, of which the last ones are repeated. "
            "The default is the dot product, computed in float64 and rounded to the "
            "wider of the two dtypes.",
        ),
    ]
    query_tower: Annotated[
        Any,
        Argument(
            None,
            "A Keras model, a layer or a function that computes `queries` from inputs, "
            "each row independently. The last row is repeated up to a multiple of 64.",
        ),
    ]
    candidate_tower: Annotated[Any, Argument(None, "The same for `candidates`.")]
    batch_size: Annotated[
        int | None,
        Argument(
            None,
            "The number of queries that are scored at a time, 256 by default, or 64 "
            "with `score`.",
        ),
    ]
    chunk_size: Annotated[
        int | None,
        Argument(
            None,
            "The number of candidates that are scored at a time, 16,384 by default, or "
            "2,048 with `score`. A dataset keeps its batches.",
        ),
    ]


class RetrievalArguments(ResultArguments, CatalogueArguments, total=False):
    """The arguments of `evaluate_retrieval`."""


class ExplainRetrievalArguments(CatalogueArguments, Options, total=False):
    """The arguments of `explain_retrieval`."""


class ScheduleArguments(TypedDict, total=False):
    """When a callback evaluates, and the keys of its values in the logs."""

    every: Annotated[int, Argument(1, "Evaluates after every so many epochs or steps.")]
    unit: Annotated[
        Unit,
        Argument(
            "epochs",
            '"epochs" (the default) or "steps" (batches). Steps are logged at the '
            "batch, and the last values also at the end of the epoch. With "
            "`steps_per_execution`, it is the first end of an execution after the "
            "step.",
        ),
    ]
    prefix: Annotated[str, Argument("val_", "A string put before each key.")]


class OutputArguments(ScheduleArguments, total=False):
    """The predictions of a callback."""

    output: Annotated[
        str | int | None,
        Argument(
            None,
            "The name or the number of the model's output that holds the scores, if it "
            "has several.",
        ),
    ]
    batch_size: Annotated[
        int | None,
        Argument(None, "The batch size of the prediction, as for `model.predict`."),
    ]


class RowCallbackArguments(SliceArguments, OutputArguments, total=False):
    """The arguments of `EvaluateRows`."""


class ListCallbackArguments(RowCallbackArguments, FormatArguments, total=False):
    """The arguments of `EvaluateLists`."""


class RetrievalCallbackArguments(
    SliceArguments, CatalogueArguments, ScheduleArguments, total=False
):
    """The arguments of `EvaluateRetrieval`."""


class TfmaArguments(CountArguments, FormatArguments, total=False):
    """The arguments of metrics in TensorFlow Model Analysis."""
