"""The mean over many random orders of tied items, for tools that break ties so."""

import numpy as np

# Queries with a tie across a cutoff, one of their ties all of the list.
TIED_LABELS = [[2, 0, 1, 0, 3, 0], [0, 0, 1, 0, 0, 0], [1, 0, 1, 0, 4, 2]]
TIED_SCORES = [[3, 3, 3, 1, 1, 0], [1, 1, 1, 1, 1, 1], [5, 4, 4, 4, 4, 3]]

ORDERS = 64 * 1024


def mean_over_orders(value_of_batch, labels=TIED_LABELS):
    """Estimates a tool's mean value, and the standard error of the estimate.

    `value_of_batch(labels, scores)` is the tool's mean over a batch of lists, each
    of which it orders on its own.
    """
    batches = 32
    labels, scores = (
        np.concatenate([np.array(data, "f4")] * (ORDERS // batches))
        for data in (labels, TIED_SCORES)
    )
    values = [value_of_batch(labels, scores) for _ in range(batches)]
    return np.mean(values), np.std(values, ddof=1) / np.sqrt(batches)
