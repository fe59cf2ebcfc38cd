"""One query among all candidates: its ranks, and the score of each candidate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.engine.measure import Measure
from tfrankmetrics.retrieval.blocks import Block
from tfrankmetrics.retrieval.chunks import Candidates
from tfrankmetrics.retrieval.counting import count_ranks
from tfrankmetrics.retrieval.evaluation import (
    RetrievalSettings,
    library_of_scores,
    read_candidates,
    read_queries,
)
from tfrankmetrics.retrieval.inputs import padded, rows_of, size_of
from tfrankmetrics.retrieval.lists import by_query, order_of
from tfrankmetrics.retrieval.products import dot_product, dot_products_of_pairs
from tfrankmetrics.retrieval.truth import RelevantItems, Truth
from tfrankmetrics.rules import check_query


class OneQuery(NamedTuple):
    """A query, its relevant items, and all candidates."""

    settings: RetrievalSettings
    vectors: Any  # the query, as inputs with one row
    items: RelevantItems  # of one query
    candidates: Candidates

    @classmethod
    def of(
        cls,
        settings: RetrievalSettings,
        truth: Truth,
        queries: Any,
        candidates: Any,
        number: int,
    ) -> OneQuery:
        """Raises ValueError for arguments that `evaluate_retrieval` rejects, too."""
        vectors = read_queries(settings, truth, queries)
        found = read_candidates(settings, truth, candidates)
        check_query("explain_retrieval", number, size_of("queries", vectors))
        chosen = np.array([number])
        items = truth.items().of(chosen)
        return cls(settings, rows_of(vectors, chosen), items, found)

    def value_and_weight(self, measure: Measure) -> tuple[np.ndarray, np.ndarray]:
        """The value and the weight of the query, `[1, 1]` each."""
        order = order_of(measure)
        settings, found = self.settings, self.candidates
        ranks, _ = count_ranks(
            self.vectors,
            found,
            self.items,
            settings.score,
            [] if order is None else [order],
            settings.batch_size,
            lambda number: None,
            library=library_of_scores(settings.score, self.vectors, found),
        )
        return by_query({"": measure}, self.items, ranks, None, found.number)

    def scores(self) -> np.ndarray:
        """The score of each candidate, `[V]`."""
        score, found = self.settings.score, self.candidates
        library = library_of_scores(score, self.vectors, found)
        if score is dot_product and library == "numpy":
            return np.concatenate(
                [
                    dot_products_of_pairs(
                        np.repeat(self.vectors, chunk.size, axis=0), chunk.inputs
                    )
                    for chunk in found.chunks()
                ]
            )
        inputs = padded(self.vectors, library)
        block = Block(inputs, self.items, np.array([0]), found, score, [], library)
        return np.concatenate(
            [block.as_array(block.product(chunk), chunk)[0] for chunk in found.chunks()]
        )
