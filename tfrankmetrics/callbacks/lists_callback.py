"""`EvaluateLists`: evaluates a listwise model."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrankmetrics.arguments import ArrayLike, SlicesLike
from tfrankmetrics.callbacks.base_callback import Evaluation, Unit, output_of
from tfrankmetrics.evaluation.evaluate import ListData, evaluate_lists
from tfrankmetrics.graphs import keras_mask_of
from tfrankmetrics.inputs.alignment import aligned
from tfrankmetrics.inputs.datasets import (
    batches_of,
    comes_in_batches,
    is_dataset,
    refuse_unordered,
    require_end,
)
from tfrankmetrics.inputs.model_inputs import flattened, rows_of
from tfrankmetrics.inputs.parts_by_length import Batch
from tfrankmetrics.keras.inference import MaskedArray, prediction_of
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Duplicates, Inputs, Options, Separator
from tfrankmetrics.results.request import read_request
from tfrankmetrics.rules import listed, shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack


_NO_BATCHES = (
    "A dataset must have batches (x, y) or (x, y, sample_weight), as for `fit`. "
)


class EvaluateLists(Evaluation):
    """Evaluates a listwise model during training, with all formats of `evaluate`.

    Metrics in `compile` are cheaper, since they see the batches of the validation
    anyway. This callback supports slices, masks and string ids and evaluates separate
    data. It adds its values to the logs, for the callbacks that come after it in
    `callbacks`: those before it do not see them.

    >>> import numpy as np
    >>> import tensorflow as tf
    >>> x = np.random.default_rng(0).normal(size=(2, 3, 4))
    >>> labels, languages = np.array([[1, 0, 0], [0, 0, 1]]), ["de", "en"]
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> by_language = EvaluateLists(x, labels, ["mrr"], by={"language": languages})
    >>> history = model.fit(x, labels, callbacks=[by_language], verbose=0).history
    >>> sorted(history)
    ['loss', 'val_mrr', 'val_mrr/language:de', 'val_mrr/language:en']

    A `tf.data.Dataset` of batches of lists may replace `x` and `y`, such as the one for
    `validation_data`. Its batches may be padded to different widths:

    >>> lists = tf.data.Dataset.from_tensor_slices((x, labels)).batch(1)
    >>> in_batches = EvaluateLists(lists, metrics=["mrr"])
    >>> history = model.fit(x, labels, callbacks=[in_batches], verbose=0).history
    >>> sorted(history)
    ['loss', 'val_mrr']

    Args:
        x: The inputs, as for `model.predict`. Or a finite `tf.data.Dataset`, a
            `keras.utils.PyDataset` or a `DataLoader` of PyTorch, of batches `(x, y)` or
            `(x, y, sample_weight)`. Each evaluation iterates over it once. A dataset
            may be reshuffled each time, except with `by`.
        y: Labels or relevant ids, as `y_true` of `evaluate`. Omit it if `x` is a
            dataset.
        metrics: Names and metric objects, as in `evaluate`.
        mask: Booleans of the labels' shape, True for valid items. A dataset contains
            its own in `y`, as `{"labels": ..., "mask": ...}`. Without one, the mask
            that Keras attaches to the scores is used, as in `compile`.
        sample_weight: A scalar, `[B]` (one weight per query), or of the labels' shape
            (one per item). A dataset contains its own.
        by: A slice for each query, `[B]`, or a dict of columns. The keys of a slice
            look like `val_ndcg@10/language:de`. The slices of a dataset are in the
            order of its lists, which must not be shuffled.
        output: The name or the number of the model's output that holds the scores, if
            it has several. If the `y` of a dataset is a dict or a tuple for all
            outputs, the entry of this output is used.
        batch_size: The batch size of the prediction, as for `model.predict`. A dataset
            defines its own.
        every: Evaluates after every so many epochs or steps, and after the first epoch.
            An epoch without an evaluation logs the last values.
        unit: "epochs" (the default) or "steps" (batches). Steps are logged at the
            batch, and the last values also at the end of the epoch. With
            `steps_per_execution`, it is the first end of an execution after the step.
        prefix: A string put before each key.
        inputs: The format of `y_true` and `y_pred`: "labels" and scores (the default);
            relevant "ids" and recommended ids, best first; or relevant ids and the
            scores of a whole "catalog".
        duplicates: With inputs="ids", how repeated recommendations are counted: "first"
            (once, at the first position; the default) or "all" (each time).
        lower_is_better: If True, the lowest score ranks first.
        num_queries: If True, adds the number of included queries, under the key
            "num_queries".
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        **options: Options for the metrics passed by name. See
            `tfrankmetrics.Options`.

    Raises:
        ValueError: `evaluate` rejects an argument, or a dataset is infinite, contains
            other elements, or is shuffled with `by`.
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike | None = None,
        metrics: Sequence[str | MetricObject] = (),
        *,
        mask: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        inputs: Inputs = "labels",
        duplicates: Duplicates | None = None,
        lower_is_better: bool = False,
        by: SlicesLike | None = None,
        num_queries: bool = False,
        separator: Separator = "@",
        output: str | int | None = None,
        batch_size: int | None = None,
        every: int = 1,
        unit: Unit = "epochs",
        prefix: str = "val_",
        **options: Unpack[Options],
    ) -> None:
        form = {"by": by, "num_queries": num_queries, "separator": separator}
        form |= {"inputs": inputs, "duplicates": duplicates}
        request = read_request(
            metrics, options, **form, lower_is_better=lower_is_better
        )
        super().__init__(request, every, unit, prefix, output, batch_size)
        of_arrays = {"y": y, "mask": mask, "sample_weight": sample_weight}
        if comes_in_batches(x):
            _require_batches_of_lists(x, {**of_arrays, "batch_size": batch_size})
            if request.by is not None:
                refuse_unordered(x, "`by`")
        elif y is None:
            raise ValueError(
                "EvaluateLists needs the labels, or the relevant ids, of its lists. "
                f"Received: y=None, and x={shortened(x)}. Pass y, or a tf.data.Dataset "
                "of batches (x, y)."
            )
        request.slice_columns()  # raises errors before the training
        of_arrays = aligned({"x": x, **of_arrays, "by": request.by})
        self._x, self._y = of_arrays.pop("x"), of_arrays.pop("y")
        self._request = dataclasses.replace(request, by=of_arrays.pop("by"))
        self._of_arrays = of_arrays
        self._outputs: Callable[[Any], Any] | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Discards the model of an earlier training."""
        super().on_train_begin(logs)
        self._outputs = None

    def _values(self) -> Any:
        if comes_in_batches(self._x):
            return evaluate_lists(ListData(self._request, self._batches()))
        scores = self._scores_of_arrays()
        data = ListData.of_arrays(self._request, self._y, scores, **self._of_arrays)
        return evaluate_lists(data)

    def _scores_of_arrays(self) -> np.ndarray:
        """The scores of all lists, with their mask, which `predict` drops."""
        arrays, size = flattened(self._x), self._batch_size or 32
        if not all(hasattr(each, "shape") for each in arrays):
            return self._predict(self._x)
        batches = (
            self._scores(rows_of(self._x, slice(start, start + size)))
            for start in range(0, max(1, len(arrays[0])), size)
        )
        first = next(batches)
        if keras_mask_of(first) is None:
            return self._predict(self._x)
        batches = [first, *batches]
        scores = np.concatenate([np.asarray(each) for each in batches])
        masks = [np.asarray(keras_mask_of(each)) for each in batches]
        return MaskedArray.of(scores, np.concatenate(masks))

    def _scores(self, x: Any) -> Any:
        """The scores of a batch, with their mask if they have one."""
        if self._outputs is None:
            self._outputs = prediction_of(self.model)
        return output_of(self._outputs(x), self._output, "EvaluateLists")

    def _batches(self) -> Iterator[Batch]:
        """The labels, scores and weights of each batch, from one pass."""
        for batch in batches_of(self._x):
            if not isinstance(batch, (list, tuple)) or len(batch) not in (2, 3):
                raise ValueError(_NO_BATCHES + f"Received: {shortened(batch)}.")
            x, y, *weights = batch
            yield Batch(
                _of_output(y, self._output),
                self._scores(x),
                _of_output(weights[0], self._output) if weights else None,
            )


def _require_batches_of_lists(x: Any, others: Mapping[str, Any]) -> None:
    """Raises ValueError for a dataset that cannot be evaluated, or one with arrays."""
    beside = [name for name, value in others.items() if value is not None]
    if beside:
        raise ValueError(
            "A dataset includes its labels, masks, weights and batches. Received: a "
            f"dataset, and also {listed(beside)}. Pass EvaluateLists(dataset, "
            "metrics=[...]), with batches (x, y) or (x, y, sample_weight), where y may "
            'be {"labels": ..., "mask": ...}.'
        )
    if is_dataset(x):
        spec = x.element_spec
        if not isinstance(spec, tuple) or len(spec) not in (2, 3):
            raise ValueError(_NO_BATCHES + f"Received: {shortened(spec)}.")
    require_end("A dataset", x)


def _of_output(data: Any, output: Any) -> Any:
    """The labels or weights of one output, if these are of several, as for `fit`."""
    is_list_of_arrays = isinstance(data, list) and hasattr(data[0], "shape")
    is_of_several = isinstance(data, (Mapping, tuple)) or is_list_of_arrays
    if output is not None and is_of_several:
        with contextlib.suppress(KeyError, IndexError, TypeError):
            return data[output]
    return data
