"""The mean over many orders of tied items, for tools that break ties at random."""

import numpy as np

# Queries with ties across a cutoff. In one query, all items are tied.
TIED_LABELS = [[2, 0, 1, 0, 3, 0], [0, 0, 1, 0, 0, 0], [1, 0, 1, 0, 4, 2]]
TIED_SCORES = [[3, 3, 3, 1, 1, 0], [1, 1, 1, 1, 1, 1], [5, 4, 4, 4, 4, 3]]

ORDERS = 64 * 1024


def mean_over_orders(value_of_batch, labels=TIED_LABELS):
    """Estimates a tool's mean value and the standard error of the estimate.

    `value_of_batch(labels, scores)` is the tool's mean over a batch of lists. The tool
    must order the ties of each list independently.
    """
    batches = 32
    labels, scores = (
        np.concatenate([np.array(data, "f4")] * (ORDERS // batches))
        for data in (labels, TIED_SCORES)
    )
    values = [value_of_batch(labels, scores) for _ in range(batches)]
    return np.mean(values), np.std(values, ddof=1) / np.sqrt(batches)
