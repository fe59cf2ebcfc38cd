"""`Accumulator`: the metrics of queries that come in batches, from several processes.

An update makes the `Totals` of a batch and adds them to those of earlier batches. An
error leaves everything as it was.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arguments import ArrayLike, ColumnLike, SlicesLike
from tfrankmetrics.arrays import Array
from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.columns.slices import in_order
from tfrankmetrics.compute.calls import require_eager
from tfrankmetrics.compute.exposures import exposures, with_num_items
from tfrankmetrics.compute.sums import (
    in_float32_parts,
    num_rows,
    results,
    sums_by_slice,
    weighted_sums_and_queries,
)
from tfrankmetrics.compute.values import values_and_weights
from tfrankmetrics.evaluation.evaluate import ListData, compute_lists
from tfrankmetrics.evaluation.evaluate_rows import RowData, compute_rows
from tfrankmetrics.evaluation.totals import Totals, sum_of
from tfrankmetrics.inputs.devices import library_for
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.mistakes import (
    Asked,
    Facts,
    refuse_signed_labels,
    warn_if_signed,
    warn_of,
)
from tfrankmetrics.keras.evidence import Evidence
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Duplicates, Inputs, Options, Separator
from tfrankmetrics.results.metric_values import (
    NUM_QUERIES,
    SlicedValues,
    Values,
    ValuesAndNumber,
)
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.rules import shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack


class BatchToAdd(ListData):
    """The lists of an update. Their facts are reported with those of all others."""

    is_first = True
    facts = Facts()
    num_items: int | None = None  # of a catalog

    def _warn_of_first(self, lists: Lists, y_true: Any) -> None:
        self.num_items = lists.num_items
        if self.is_first:
            super()._warn_of_first(lists, y_true)

    def _report(self, facts: Facts, remedy: str) -> None:
        self.facts = facts


class Accumulator:
    """Computes ranking metrics from queries that come in batches.

    The result equals that of `evaluate` on all queries at once. The order, number and
    sizes of the batches do not matter. Several accumulators, such as one per process,
    add up to one. Keras is not required.

    >>> accumulator = Accumulator(["ndcg@10", "mrr"])
    >>> accumulator.update([[1, 0, 0]], [[0.9, 0.3, 0.1]])
    >>> accumulator.update([[0, 2]], [[0.8, 0.4]])
    >>> accumulator.compute()
    {'ndcg@10': 0.815465, 'mrr': 0.75}

    For each metric it keeps two numbers in float64, the sums over the queries q

        Σ_q weight_q * value_q   and   Σ_q weight_q,

    whose quotient is the result; for a metric with one value over all queries, such as
    `coverage`, instead the exposure of each item, Σ_q exposure_q; and these for each
    slice. Their size does not depend on the number of queries.

    Tensors of PyTorch on a GPU are computed there, and an update does not wait for it.
    Then invalid values raise an error in `compute` rather than in `update`. NumPy
    computes other arrays, as in `evaluate`. Use `batch_sums` in code that JAX compiles.

    Args:
        metrics: Names and metric objects, as in `evaluate`. A metric object imports
            Keras if it is installed; a name does not.
        inputs: The format of `y_true` and `y_pred`: "labels", "ids" or "catalog", as in
            `evaluate`.
        duplicates: How repeated recommendations are counted, with inputs="ids" only:
            "first" (the default) or "all".
        lower_is_better: If True, the lowest score ranks first.
        num_queries: If True, the result also contains the number of queries that are
            included in any of the metrics, under the key "num_queries".
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        **options: Options for the metrics passed by name, such as `gain="linear"` or
            `num_items=V`, the size of the catalog, which metrics such as `coverage`
            require. See `tfrankmetrics.Options`.

    Raises:
        ValueError: A metric or an option is not one of those above.
    """

    def __init__(
        self,
        metrics: Sequence[str | MetricObject],
        *,
        inputs: Inputs = "labels",
        duplicates: Duplicates | None = None,
        lower_is_better: bool = False,
        num_queries: bool = False,
        separator: Separator = "@",
        **options: Unpack[Options],
    ) -> None:
        self._request: Request = read_request(
            metrics,
            options,
            inputs=inputs,
            duplicates=duplicates,
            lower_is_better=lower_is_better,
            num_queries=num_queries,
            separator=separator,
        )
        self._request.require_free_keys((), has_ids=False)
        # It counts the facts of batches whose numbers stay on a device.
        self._evidence = Evidence(self._request.input_format, self._request.measures)
        # Whether the scores of a catalog state how many items it has.
        self._reads_num_items = inputs == "catalog" and any(
            each.declaration.value is not None and each["num_items"] is None
            for each in self._request.measures
        )
        if not self._reads_num_items:
            self._measures_for(None)
        self.reset()

    def reset(self) -> None:
        """Forgets all queries."""
        self._totals = Totals()
        self._warned: set[str] = set()

    def update(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
        by: SlicesLike | None = None,
    ) -> None:
        """Adds a batch of queries.

        >>> accumulator = Accumulator(["mrr"])
        >>> accumulator.update([[1, 0], [0, 1]], [[2, 1], [2, 1]], by=["de", "en"])
        >>> accumulator.update([[0, 0, 1]], [[3, 2, 1]], by=["en"])
        >>> accumulator.compute()
        slice  queries     mrr
        de           1  1.0000
        en           2  0.4167
        all          3  0.6111

        Args:
            y_true: Labels `[B, N]`, or relevant ids, as in `evaluate`.
            y_pred: Scores of the same shape, recommended ids, or the scores of a
                catalog. The number N of items may differ from batch to batch.
            sample_weight: A scalar, `[B]` or `[B, 1]` (one weight per query), or of the
                labels' shape (one per item).
            mask: Booleans of the labels' shape, True for valid items.
            by: A slice for each query, `[B]`, or a dict of columns, in all batches or
                in none. A batch may lack any of the slices.

        Raises:
            ValueError: `evaluate` would raise an error for the batch; or its columns of
                `by`, or its number of items, differ from those of earlier batches. The
                accumulator then stays as it was.
            RuntimeError: The call is inside a `tf.function`.
        """
        require_eager("Accumulator.update")
        request = (
            self._request if by is None else dataclasses.replace(self._request, by=by)
        )
        given = y_true, y_pred, mask, sample_weight
        if library_for(*given) == "torch" and not request.has_data_by_id:
            self._add(self._totals_on_device(request, *given))
            return
        batch = BatchToAdd.of_arrays(request, *given)
        batch.is_first = self._totals.by is None
        computed, slices = compute_lists(batch)
        items = [*batch.id_numbers.recommended]
        num_items = batch.num_items if self._reads_num_items else None
        found = computed, batch.num_queries, slices, items, batch.facts, num_items
        self._add(Totals.of_computed(request.named, *found))

    def update_rows(
        self,
        query_ids: ColumnLike,
        labels: ColumnLike,
        scores: ColumnLike,
        *,
        by: SlicesLike | None = None,
        sample_weight: ColumnLike | None = None,
        item_ids: ColumnLike | None = None,
        subtopic: ColumnLike | None = None,
    ) -> None:
        """Adds the rows of some queries. A call must contain all rows of its queries.

        >>> accumulator = Accumulator(["mrr", "precision@1"])
        >>> accumulator.update_rows(["b", "a", "b"], [0, 1, 1], [0.2, 0.9, 0.3])
        >>> accumulator.compute()
        {'mrr': 1.0, 'precision@1': 1.0}

        Args:
            query_ids: The query id of each row, `[rows]`, in any order.
            labels: The label of each row. A row with a label below 0 was not judged.
            scores: The score of each row.
            by: A slice for each row, the same in all rows of a query, or a dict of
                columns.
            sample_weight: One weight per row. If it is the same in all rows of a query,
                it is the weight of the query.
            item_ids: The item of each row, which metrics of recommended items require.
            subtopic: The subtopic that each row judges, as in `evaluate_rows`.

        Raises:
            ValueError: `evaluate_rows` would raise an error, or the columns of `by`
                differ from those of earlier batches. The accumulator then stays as it
                was.
            RuntimeError: The call is inside a `tf.function`.
        """
        require_eager("Accumulator.update_rows")
        if self._request.input_format.inputs != "labels":
            raise ValueError(
                "Rows contain labels. Received: an accumulator with "
                f"{self._request.input_format}. Omit `inputs`."
            )
        columns = {"query_ids": query_ids, "labels": labels, "scores": scores}
        columns |= {"sample_weight": sample_weight, "item_ids": item_ids}
        columns["subtopic"] = subtopic
        request = dataclasses.replace(self._request, by=by)
        data, facts = RowData.with_facts(request, columns, None, None)
        request, data = data.with_items(request)
        computed = compute_rows(request, data)
        items = _items_by_position(self._request, data)
        found = computed, len(data.ids), data.slices, items, facts
        self._add(Totals.of_computed(request.named, *found))

    def batch_sums(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> Array:
        """The sums of a batch as an array of JAX, which `add_sums` adds.

        A pure function for `jax.jit`, `jax.vmap`, `jax.lax.scan` and `jax.shard_map`.
        Sums of batches add up, as by `+` and `jax.lax.psum`.

        Args:
            y_true: Labels `[B, N]`, or relevant ids, which are integers.
            y_pred: Scores of the same shape, recommended ids, or the scores of a
                catalog.
            sample_weight: A scalar, `[B]` (one weight per query), or of the labels'
                shape (one per item).
            mask: Booleans of the labels' shape, True for valid items.

        Returns:
            Float64 `[rows, 2]` if JAX computes in 64 bits. Otherwise, float32
            `[3, rows, 2]`: three parts of each number, whose sum it is. They are exact
            until they are added in 32 bits.

        Raises:
            ValueError: A shape or dtype is not one of those of `update`. An invalid
                value raises an error in `compute`.
        """
        from tfrankmetrics.arrays.jax import is_narrow

        is_in_32_bits = is_narrow()
        measures = self._measures_for(None)
        given = y_true, y_pred, sample_weight, mask
        with xp.computing_in("jax"):
            lists = self._request.read_unchecked(*given, "jax")
            sums = weighted_sums_and_queries(measures, lists)
            evidence = self._evidence_in(lists, y_true)
            sums = sums if evidence is None else xp.concat([sums, evidence], axis=0)
            return xp.stack(in_float32_parts(sums)) if is_in_32_bits else sums

    def add_sums(self, sums: Array) -> None:
        """Adds the sums of batches, `[..., rows, 2]`, which `batch_sums` returns.

        Args:
            sums: What `batch_sums` returns, or sums of these. Those of several batches
                along further axes are added up.

        Raises:
            ValueError: The sums have another number of rows.
        """
        rows = num_rows(self._measures_for(None)) + 1
        shape = rows + self._evidence.num_rows, 2
        if tuple(np.shape(sums)[-2:]) != shape:
            raise ValueError(
                "Sums must be those of `batch_sums` of an accumulator with the same "
                f"metrics, of shape [..., {shape[0]}, 2]. Received: shape "
                f"{np.shape(sums)}."
            )
        with xp.computing_in(xp.library_of(sums)):
            sums = xp.reshape(xp.astype(sums, xp.float64), [-1, *shape])
            total = xp.sum(sums, axis=0)
            by_key = {(): total[:rows]}
            self._add(Totals(by=(), sums=by_key, evidence=total[rows:]))

    def merge(self, *others: Accumulator) -> None:
        """Adds the queries of other accumulators.

        >>> first, second = Accumulator(["mrr"]), Accumulator(["mrr"])
        >>> first.update([[1, 0]], [[2, 1]])
        >>> second.update([[0, 1]], [[2, 1]])
        >>> first.merge(second)
        >>> first.compute()
        {'mrr': 0.75}

        Args:
            *others: Accumulators of the same metrics and options, which stay as they
                are.

        Raises:
            ValueError: One has other metrics, options or columns of `by`. The
                accumulator then stays as it was.
        """
        for other in others:
            if not isinstance(other, Accumulator) or other._adds != self._adds:
                raise ValueError(
                    "Accumulators can be merged if they have the same metrics in the "
                    "same order, with the same options; functions among them must be "
                    f"the same object. Received: {shortened(other)}."
                )
        self._add(*(other._totals for other in others))

    def all_reduce(self, group: Any = None) -> None:
        """Adds the queries of all processes of `torch.distributed`, in each of them.

        All processes of the group must call it, also those that have no query. It
        exchanges slices and item ids together with the sums. Call it once after the
        last batch, since a second call would add everything again.

        Args:
            group: A process group of `torch.distributed`, by default all processes.

        Raises:
            ValueError: The processes have different metrics or columns of `by`; raised
                in each of them.
        """
        distributed = importlib.import_module("torch.distributed")
        states: list[Any] = [None] * distributed.get_world_size(group)
        distributed.all_gather_object(states, self.state_dict(), group)
        totals = [*map(self._totals_of_state, states)]
        self._totals = sum_of(totals, self._request.named)

    def compute(self) -> dict[str, Any] | SlicedValues:
        """The metrics of all queries so far.

        Returns:
            A dict from each metric's name to its weighted mean, a float (NaN if no
            query is included); with `by`, a `SlicedValues`.

        Raises:
            ValueError: A batch that was computed on a device contained an invalid
                value, the sums are not finite, or all labels are 1 or below 0.
        """
        totals = self._totals.on_host()
        sums, keys = totals.sums, [*totals.sums]
        of_slices = {keys[n]: self._values_of(sums[keys[n]]) for n in in_order(keys)}
        whole = Values(dict.fromkeys(self._request.named, float("nan"))), 0
        if sums:
            whole = self._values_of(np.sum([*sums.values()], axis=0))
        self._report_mistakes(totals)
        if totals.by:
            return SlicedValues(totals.by, whole, of_slices)
        values, number = whole
        counted = {NUM_QUERIES: number} if self._request.num_queries else {}
        return Values(values | counted)

    def state_dict(self) -> dict[str, Any]:
        """The state, for `load_state_dict`: dicts, lists, numbers and text.

        `torch.save`, `pickle` and, if the slices are text, `json` can store it.
        """
        return {"metrics": self._identity, **self._totals.state()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces the state by that of an accumulator of the same metrics.

        >>> accumulator = Accumulator(["mrr"])
        >>> accumulator.update([[0, 1]], [[2, 1]])
        >>> copy = Accumulator(["mrr"])
        >>> copy.load_state_dict(accumulator.state_dict())
        >>> copy.compute()
        {'mrr': 0.5}

        Args:
            state: What `state_dict` returned.

        Raises:
            ValueError: The state is of other metrics. The accumulator then stays as it
                was.
        """
        self._totals = self._totals_of_state(state)
        self._warned = set()

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, which hold arrays of NumPy."""
        own = {"_totals": self._totals.on_host(), "_warned": {*self._warned}}
        return {**vars(self), **own}

    @property
    def _adds(self) -> tuple[Any, ...]:
        """What it adds up: the metrics in their order, without names, and the data."""
        return self._request.measures, self._request.with_measures({})

    @property
    def _identity(self) -> dict[str, str]:
        """The metrics with their options, and how the data are read, as text."""
        request = self._request
        form = f"{request.input_format}, lower_is_better={request.lower_is_better}"
        return {name: f"{each}, {form}" for name, each in request.named.items()}

    def _evidence_in(self, lists: Any, y_true: Any) -> Array | None:
        """The facts of a batch; None if its input format has none."""
        if not self._evidence.num_rows:
            return None
        return self._evidence.counted_in(lists, getattr(y_true, "ndim", None) == 1)

    def _measures_for(self, num_items: int | None) -> tuple[Measure, ...]:
        """The metrics for a number of items, which the scores of a catalog contain."""
        return (*with_num_items(self._request.named, num_items).values(),)

    def _totals_on_device(
        self, request: Request, y_true: Any, y_pred: Any, mask: Any, weights: Any
    ) -> Totals:
        """The totals of a batch that PyTorch computes without waiting for a result."""
        lists = request.read_unchecked(y_true, y_pred, weights, mask, "torch")
        measures = self._measures_for(lists.num_items)
        slices = request.slices_of_queries(int(lists.num_queries))
        segments, number = None, 1
        if slices is not None:
            segments, number = slices.of_query, len(slices.keys)
        with xp.computing_in("torch"):
            values, weights = values_and_weights(measures, lists)
            of_items = exposures(measures, lists, segments, number)
            return Totals(
                by=slices.names if slices else (),
                sums=sums_by_slice(values, weights, of_items, slices),
                num_items=lists.num_items if self._reads_num_items else None,
                evidence=self._evidence_in(lists, y_true),
            )

    def _add(self, *others: Totals) -> None:
        self._totals = sum_of([self._totals, *others], self._request.named)

    def _report_mistakes(self, totals: Totals) -> None:
        remedy = "mask these items, or drop their rows"
        refuse_signed_labels(totals.facts, remedy)
        asked = Asked(self._request.label_rules, warned=self._warned)
        evidence = Facts()
        if totals.evidence is not None:
            evidence = self._evidence.facts(totals.evidence)
        warn_of(totals.facts + evidence, asked)
        warn_if_signed(evidence, remedy, asked)

    def _values_of(self, sums: np.ndarray) -> ValuesAndNumber:
        """The metrics that follow from sums, and the number of queries."""
        if not np.isfinite(sums).all():
            raise ValueError(
                "The sums over all queries must be finite. Received: other sums. "
                "Either the weights are too high, or a batch that was computed on a "
                "device contained an invalid value: a label or weight that is NaN or "
                "infinite, a negative weight, gains that overflow, or an id outside of "
                "the catalog. Pass the same data to tfrankmetrics.evaluate to get an "
                "error that names the value."
            )
        measures = self._measures_for(self._totals.num_items)
        with quiet():
            values = results(measures, sums[:-1]).tolist()
        named = zip(self._request.named, values, strict=True)
        return Values(named), int(sums[-1, 0])

    def _totals_of_state(self, state: Mapping[str, Any]) -> Totals:
        """The inverse of `state_dict`. Raises ValueError for that of other metrics."""
        received = state.get("metrics") if isinstance(state, Mapping) else state
        # Dicts are equal in any order, and sums are not.
        own = [*self._identity.items()]
        if not isinstance(received, Mapping) or [*received.items()] != own:
            raise ValueError(
                "The state must be that of an accumulator with the same metrics, "
                f"options and input format, {shortened(self._identity)}. Received: "
                f"{shortened(received)}."
            )
        return Totals.of_state(state, self._request.named)


def _items_by_position(request: Request, data: RowData) -> Sequence[Any]:
    """The items at the positions 0, 1, ..., unless their ids are positions."""
    if data.items is None or request.has_data_by_id:
        return ()
    if isinstance(data.items.distinct, np.ndarray):  # of integers
        return ()
    rows = np.unique(data.columns["items"], return_index=True)[1]
    return data.items.at(data.items.codes[rows])
