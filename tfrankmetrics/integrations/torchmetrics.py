"""A metric of torchmetrics: for `MetricCollection`, Lightning's `self.log`, and DDP."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import torchmetrics

from tfrankmetrics import arrays as xp
from tfrankmetrics.arguments import ArrayLike
from tfrankmetrics.compute.sums import num_rows, results, weighted_sums
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options
from tfrankmetrics.results.request import read_request

if TYPE_CHECKING:
    from typing_extensions import Unpack

_NUMBERS = itertools.count()
_OF_TORCHMETRICS = {
    *("compute_on_cpu", "dist_sync_on_step", "process_group", "dist_sync_fn"),
    *("distributed_available_fn", "sync_on_compute", "compute_with_cache"),
}


class RankingMetric(torchmetrics.Metric):
    """Ranking metrics, exact under ties, as one metric of torchmetrics.

    >>> import torch
    >>> from tfrankmetrics.integrations.torchmetrics import RankingMetric
    >>> metrics = RankingMetric(["ndcg@10", "mrr"])
    >>> preds = torch.tensor([[0.9, 0.3, 0.1], [0.8, 0.4, 0.2]])
    >>> metrics.update(preds, torch.tensor([[1, 0, 0], [0, 2, -1]]))
    >>> {name: round(value.item(), 4) for name, value in metrics.compute().items()}
    {'ndcg@10': 0.8155, 'mrr': 0.75}

    The state is two sums for each metric, in float64. It adds up over batches and
    processes with any numbers of queries.

    Args:
        metrics: Names and metric objects, as in `tfrankmetrics.evaluate`, whose values
            are a dict; or one of them, whose value is a scalar, as `self.log` takes it.
        inputs: "labels" (the default), "ids" or "catalog", as in
            `tfrankmetrics.evaluate`.
        **options: Options for the metrics passed by name, such as `gain="linear"`. See
            `tfrankmetrics.Options`. Or arguments of every `torchmetrics.Metric`, such
            as `sync_on_compute`.

    Raises:
        ValueError: A metric or an option is invalid.
    """

    full_state_update = False
    is_differentiable = False

    def __init__(
        self,
        metrics: str | MetricObject | Sequence[str | MetricObject],
        *,
        inputs: str = "labels",
        **options: Unpack[Options],
    ) -> None:
        of_torchmetrics = {n: options.pop(n) for n in _OF_TORCHMETRICS & {*options}}
        super().__init__(**of_torchmetrics)
        self._is_one = isinstance(metrics, str) or hasattr(metrics, "measure")
        listed: Any = [metrics] if self._is_one else metrics
        self._request = read_request(listed, options, inputs=inputs)
        measures = self._request.measures
        sums = torch.zeros((num_rows(measures), 2), dtype=torch.float64)
        self.add_state("sums", sums, dist_reduce_fx="sum")
        # `MetricCollection` updates only one of two metrics whose states are equal
        # after the first batch. A number of its own keeps this one apart.
        self.add_state("number", torch.tensor(next(_NUMBERS)), dist_reduce_fx="max")

    @property
    def higher_is_better(self) -> bool | None:  # type: ignore[override]
        """Whether a higher value is better; None if the metrics differ in it."""
        lower = {m.declaration.lower_is_better for m in self._request.measures}
        return not lower.pop() if len(lower) == 1 else None

    def update(
        self,
        preds: ArrayLike,
        target: ArrayLike,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> None:
        """Adds a batch of queries.

        Args:
            preds: Scores `[B, N]`; the highest ranks first.
            target: Labels `[B, N]`; a label below 0 marks padding.
            sample_weight: A scalar, `[B]` (one weight per query), or `[B, N]` (one per
                item).
            mask: Booleans `[B, N]`, True for valid items.

        Raises:
            ValueError: A shape, dtype, label or weight is invalid.
        """
        lists = self._request.read(target, preds, sample_weight, mask)
        lists.on_host().require_valid_values()
        with xp.computing_in(xp.library_of(*lists.arrays.values())):
            added = weighted_sums(self._request.measures, lists)
        self.sums = self.sums + torch.as_tensor(added, device=self.sums.device)

    def compute(self) -> torch.Tensor | dict[str, torch.Tensor]:
        """The mean of each metric over the queries so far; NaN without queries."""
        values = results(self._request.measures, self.sums)
        named = dict(zip(self._request.named, values, strict=True))
        return values[0] if self._is_one else named
