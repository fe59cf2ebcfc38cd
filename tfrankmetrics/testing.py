"""The test of a metric that you have declared: `check_metric`."""

from __future__ import annotations

import sys
from typing import Any

from tfrankmetrics.compute.metric_checks import check_declaration

__all__ = ["check_metric"]


def check_metric(metric: type[Any]) -> None:
    """Checks a metric that you have declared, on small lists.

    A broken formula would otherwise fail during training, and a formula that includes
    padding, or is not exact under ties, would return plausible values. Call it in the
    tests of your metric. The first use of a metric also calls it.

    It computes with NumPy and, if they are imported, with TensorFlow, JAX and PyTorch.

    >>> import tfrankmetrics as trm
    >>> from tfrankmetrics.testing import check_metric
    >>> def hits_and_padding(lists, relevance):
    ...     return lists.sum_to_cutoffs(lists.expected(relevance) + 1.0)
    >>> @trm.metric("with_padding", formula=hits_and_padding, gain=trm.BinaryGain)
    ... class WithPadding(trm.TopKMetric):
    ...     relevance_threshold: float = 1.0
    >>> check_metric(WithPadding)
    Traceback (most recent call last):
        ...
    TypeError: The value of `with_padding` must not depend on padding. ...

    Args:
        metric: A class that `tfrankmetrics.metric` declares.

    Raises:
        TypeError: The formula fails, includes padding, mixes the lists of a batch, is
            wrong without a cutoff, contradicts the declaration, is wrong under ties, or
            computes other values in another library.
    """
    if not hasattr(metric, "declaration"):
        raise TypeError(
            "check_metric requires a class that tfrankmetrics.metric declares. "
            f"Received: {metric!r}."
        )
    check_declaration(metric.declaration)
    for library in ("jax", "torch"):
        if library in sys.modules and not metric.declaration.needs_tensors:
            check_declaration(metric.declaration, library)
