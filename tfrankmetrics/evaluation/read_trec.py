"""`read_trec`: a file of judgments and a file of results as rows, as in trec_eval."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from tfrankmetrics.columns.numbered_ids import stable_order
from tfrankmetrics.evaluation.join import PairColumns, join_tables, read_tables
from tfrankmetrics.rules import check_option


class TrecRows(NamedTuple):
    """The columns that `read_trec` returns, for `evaluate_rows(*rows, metrics=[...])`.

    They contain one entry per row.
    """

    query_ids: np.ndarray
    labels: np.ndarray
    scores: np.ndarray


def read_trec(
    qrels: str | os.PathLike,
    run: str | os.PathLike,
    *,
    complete: bool = False,
    judged_only: bool = False,
) -> TrecRows:
    r"""Reads judgments (qrels) and results (a run) as trec_eval does.

    A line of the judgments is `query 0 document relevance`. A line of the results is
    `query Q0 document rank score tag`; the rank and everything after the tag are
    ignored. Lines that start with `#` are comments. A document that was not judged is
    not relevant. A judged document that is not in the results was not retrieved: its
    score is -inf.

    Tied rows are sorted by document name in descending order, and scores are rounded to
    float32, so `convention="trec_eval"` breaks ties as trec_eval does.

    >>> import pathlib, tempfile
    >>> from tfrankmetrics import evaluate_rows
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> qrels, run = folder / "qrels.txt", folder / "run.txt"
    >>> _ = qrels.write_text("q1 0 a 1\nq1 0 b 0\nq1 0 c 2\n")
    >>> _ = run.write_text("q1 Q0 b 1 9.5 mine\nq1 Q0 a 2 8.1 mine\n")
    >>> rows = read_trec(qrels, run)
    >>> evaluate_rows(*rows, metrics=["AP", "R@5"], convention="trec_eval")
    {'AP': 0.25, 'R@5': 0.5}

    Args:
        qrels: The path of the judgments. Files that end in .gz, .bz2 or .xz are
            decompressed.
        run: The path of the results.
        complete: Whether judged queries without results are included as empty results
            (trec_eval's `-c`). By default they are excluded.
        judged_only: Whether unjudged results are removed from the lists, as BPref
            requires. Negative judgments are then treated as unjudged.

    Returns:
        The columns query_ids, labels and scores.

    Raises:
        ValueError: A line is malformed, a document occurs twice in a query, or no query
            is in both files.
    """
    for name, value in (("complete", complete), ("judged_only", judged_only)):
        check_option("read_trec", name, value, bool)
    names = PairColumns("query_id", "item_id", "label", "score")
    tables = read_tables(qrels, run, names)
    joined = join_tables(*tables, names, exclude=None, lower_is_better=False)
    rows = joined.rows(is_trec_eval=True)
    is_kept = rows["labels"] >= 0 if judged_only else np.ones(len(rows["labels"]), bool)
    if not complete:
        is_kept &= joined.has_predictions[rows["query"]]
    kept = np.flatnonzero(is_kept)
    kept = kept[stable_order(rows["query"][kept])]
    return TrecRows(
        joined.query_ids.array(rows["query"][kept]),
        np.maximum(rows["labels"][kept], 0),
        rows["scores"][kept],
    )
