"""The base classes of all metrics, with the options that they share."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tfrankmetrics import keras_hooks
from tfrankmetrics.arguments import ArrayLike
from tfrankmetrics.arrays import Array
from tfrankmetrics.conventions import CONVENTIONS, IN_ORDER_OF_TREC_EVAL
from tfrankmetrics.inputs.formats import InputFormat, input_format
from tfrankmetrics.metrics.fields import Field, with_fields
from tfrankmetrics.metrics.measure import (
    Declaration,
    Measure,
    check_inputs,
    make_measure,
)
from tfrankmetrics.options import (
    ConventionName,
    Cutoff,
    Duplicates,
    Empty,
    Inputs,
    Ties,
    ZeroWeight,
)
from tfrankmetrics.rules import UnknownOptionError, did_you_mean, shortened

if TYPE_CHECKING:  # as the objects are
    from tfrankmetrics.keras.state import StatefulMetric as _Base
else:

    class _Base:
        """The base of `MetricBase` before the first object."""


# The methods of `Accumulator` and of other libraries, and those of a metric object.
_MEANT = {
    "update": "update_state",
    "compute": "result",
    "reset": "reset_state",
    "merge": "merge_state",
}


def require_name(name: Any) -> None:
    """Raises ValueError for a name of a metric object that is not a string."""
    if not (name is None or isinstance(name, str)):
        raise ValueError(f"`name` must be a string. Received: {shortened(name)}.")


class MetricBase(_Base):
    """What all metrics have in common. Its base keeps the sums.

    A subclass of a Keras class would import Keras, and with it TensorFlow: seconds and
    hundreds of megabytes that arrays and tables do not need. This class has its base
    from the first object on: a Keras metric, or without Keras `AccumulatingMetric`.
    """

    if not TYPE_CHECKING:  # type checkers check calls by the fields of a class

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """An object, of a class that has its base."""
            _complete_base()
            return super().__new__(cls)

        def __getattr__(self, name: str) -> Any:
            """Raises AttributeError, for names of other libraries with ours."""
            if name not in _MEANT:
                return object.__getattribute__(self, name)  # raises the first error
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}. Use "
                f"`{_MEANT[name]}`."
            )

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that recreate this metric, except its name and dtype."""
        raise NotImplementedError

    @property
    def result_keys(self) -> tuple[str, ...]:
        """The keys of the result, if it is a dict."""
        return ()

    @property
    def input_format(self) -> InputFormat:
        """The input format of `update_state`: labels, ids or a catalog."""
        return self._input_format

    # These methods stand here for `help` and editors.

    def update_state(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Adds a batch of queries.

        Args:
            y_true: Labels `[B, N]`, `[B, N, 1]`, or `[N]` for one list; dense or
                ragged. For metrics of subtopics `[B, N, T]`, one label for each
                subtopic. A label below 0 marks padding; an item with subtopics is
                padding if all its labels are below 0. Or a dict with `labels` and a
                boolean `mask` `[B, N]`, True for valid items; then the mask
                alone decides, and a negative label is not relevant. A Keras mask on
                `y_pred` has the same effect.

                With inputs="ids", the relevant ids, `[B]` or `[B, M]` in any order,
                integers with -1 for padding. With inputs="catalog", likewise, where
                each id is the position of an item in the catalog; `[B, T]` or
                `[B, T, M]` for sequences. If the batch is the catalog, with scores
                `[B, B]`, each id is a position in the batch, and the value depends on
                the batch. Or a dict of `ids`, optionally their `relevance`, of the same
                shape, and for a catalog the ids to `exclude` from the ranking,
                `[B, E]` or `[B, T, E]`.
            y_pred: Scores of the labels' shape, or `[B, N, 1]`; the highest ranks
                first. Any float or integer dtype, compared without rounding. NaN ranks
                below every number. A score of -inf means that the item was not
                retrieved.

                With inputs="ids", recommended ids `[B, K]`, best first, with -1 for
                padding at the end. With inputs="catalog", scores of all items,
                `[B, V]`, or `[B, T, V]` for each step of a sequence.
            sample_weight: None, a scalar, or `[B]` or `[B, 1]` for one weight per
                query. With labels also of their shape, for one weight per item. With
                sequences also `[B, T]`, for one weight per step.

        Raises:
            ValueError: A shape or dtype is not one of these. In a graph with unknown
                dimensions, `tf.errors.InvalidArgumentError` is raised when it runs. In
                eager mode, an id is outside of the catalog. Without Keras, also an
                invalid value.
        """
        super().update_state(y_true, y_pred, sample_weight)

    def reset_state(self) -> None:
        """Resets the metric to its state before any batch."""
        super().reset_state()

    def merge_state(self, metrics: Iterable[Any]) -> None:
        """Adds the states of other metrics, which have seen other queries.

        >>> import tfrankmetrics as trm
        >>> first, second = trm.MeanReciprocalRank(), trm.MeanReciprocalRank()
        >>> first.update_state([[1, 0]], [[2.0, 1.0]])
        >>> second.update_state([[0, 1]], [[2.0, 1.0]])
        >>> first.merge_state([second])
        >>> float(first.result())
        0.75

        Args:
            metrics: A list of metrics. Apart from their names, prefixes and dtypes,
                they must be configured like this one.

        Raises:
            ValueError: A metric computes different values. No state changes then.
        """
        if not isinstance(metrics, Iterable):
            raise ValueError(
                f"`metrics` must be a list of metrics. Received: {metrics!r}, one "
                "metric. Pass merge_state([metric])."
            )
        metrics = [*metrics]
        for metric in metrics:
            self._require_like(metric)
        super().merge_state(metrics)

    def get_config(self) -> dict[str, Any]:
        """The arguments that recreate this metric, as Keras saves them.

        Without Keras, functions and metric objects among them stay as they are.
        """
        return super().get_config()

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the metric from the result of `get_config`.

        Args:
            config: What `get_config` returns.
        """
        _complete_base()  # Keras may call this method before there is an object
        return super().from_config(config)

    def _require_like(self, metric: Any) -> None:
        """Raises ValueError for a metric that computes something else."""
        if not isinstance(metric, MetricBase):
            raise ValueError(
                f"Only metrics of tfrankmetrics can be merged. Received: {metric!r}."
            )
        for theirs, mine in itertools.zip_longest(
            metric._computed(), self._computed(), fillvalue="nothing"
        ):
            if theirs != mine:
                raise ValueError(
                    "Metrics can be merged if they list the same metrics in the same "
                    "order, with the same options and inputs; functions among them "
                    f"must be the same object. Received: {theirs}, to be merged into "
                    f"{mine}."
                )

    def _computed(self) -> Iterator[Any]:
        """What a metric computes: the input format and the measures."""
        yield self._input_format
        yield f"num_queries={self._num_queries}"
        yield from self._measures

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(self.result_keys) or self.name}>"

    __str__ = __repr__  # the one of Keras 2 calls get_config

    def __reduce__(self) -> tuple:
        """Copies and pickles by config and state, in Keras 2 and 3 alike."""
        return _restore, (type(self), self.get_config(), self._saved_state())


def _complete_base() -> None:
    """Gives the metrics the base that keeps their sums, unless they have it."""
    if MetricBase.__bases__ == (_Base,):
        MetricBase.__bases__ = (keras_hooks.base_of_objects(),)


def _restore(cls: type[MetricBase], config: dict[str, Any], state: Any) -> MetricBase:
    metric = cls.from_config(config)
    metric._load_state(state)
    return metric


@with_fields
class SingleMetric(MetricBase):
    """The base of all metrics. Its objects are Keras metrics where Keras is."""

    ties: Ties = "expected"
    empty: Empty = "zero"
    zero_weight: ZeroWeight = "keep"
    convention: dataclasses.InitVar[ConventionName | None] = None
    name: str | None = None
    dtype: str | None = None

    has_subtopics: ClassVar[bool] = False
    reads_items: ClassVar[bool] = False  # rather than relevance
    declaration: ClassVar[Declaration]
    fields: ClassVar[dict[str, Field]]

    def __init__(self, *args: Any, **given: Any) -> None:
        if not hasattr(self, "declaration"):
            raise TypeError(
                "A metric must be declared with @tfrankmetrics.metric. Received: the "
                f"class {type(self).__name__}, which is not."
            )
        given = self._bind(*args, **given)
        name, dtype = given.pop("name", None), given.pop("dtype", None)
        inputs = given.pop("inputs", self.fields["inputs"].default)
        data = input_format(inputs, given.pop("duplicates", None))
        measure = make_measure(self.declaration, given.pop("k", None), **given)
        check_inputs(measure, data)
        require_name(name)
        super().__init__({measure.name: measure}, data, name or measure.name, dtype)

    def _bind(self, *args: Any, **given: Any) -> dict[str, Any]:
        signature = inspect.signature(type(self))
        parameters, name = signature.parameters, type(self).__name__
        for keyword in given.keys() - parameters:
            is_cutoff = keyword in ("top_k", "topk", "topn", "cutoff")
            hint = did_you_mean("k" if is_cutoff else keyword, parameters)
            raise UnknownOptionError(
                f"{name} takes only these arguments: {', '.join(parameters)}. "
                f"Received: {shortened(keyword)}.{hint}"
            )
        try:
            return signature.bind(*args, **given).arguments
        except TypeError:
            positional = "only `k`" if "k" in parameters else "nothing"
            raise TypeError(
                f"{name} takes {positional} by position. Received: "
                f"{shortened(args)}. Name the other arguments, as in "
                f"{name}(ties='stable')."
            ) from None

    @property
    def measure(self) -> Measure:
        """The metric with its cutoff and all options."""
        return self._measures[0]

    @property
    def _direction(self) -> str:
        """For callbacks of Keras 3 with mode="auto"."""
        return "down" if self.declaration.lower_is_better else "up"

    def result(self) -> Array:
        """The weighted mean over the queries so far, a scalar; NaN without queries."""
        return self._results()[0]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that recreate this metric, except its name and dtype."""
        more: dict[str, Any] = {"k": self.measure.k} if "k" in self.fields else {}
        if self.measure.is_trec_eval:  # which means more than options
            more["convention"] = next(
                name
                for name in IN_ORDER_OF_TREC_EVAL
                if self.declaration.name in CONVENTIONS[name].metrics
            )
        return {**self.measure.by_option, **more, **self.input_format.arguments}


@with_fields
class TopKMetric(SingleMetric):
    """Base class of metrics with a cutoff k, such as NDCG.

    All of them accept the arguments below. Each argument except `convention` is also an
    attribute: `NDCG(k=10).k` is 10.

    >>> import tfrankmetrics as trm
    >>> metric = trm.RecallAtK(k=10, ties="stable", empty="skip", name="recall")
    >>> metric.k, metric.ties, metric.name
    (10, 'stable', 'recall')

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        inputs: The arguments of `update_state`: "labels" and scores (the default),
            relevant "ids" and recommended ids, or relevant ids and the scores of a
            whole "catalog".
        duplicates: How repeated recommendations are counted, with inputs="ids" only:
            "first" (once, at the first position; the default) or "all" (each time).
        name: The name of the result; by default the metric's name and cutoff, as in
            `ndcg@10`.
        dtype: The dtype of the result, by default Keras's floatx, or float64 without
            Keras. The state is always float64, or as exact.
        ties: How ties are broken: "expected" (the average over all orders of
            the tied items), "stable" (in the order of the list), "best" (the
            highest gain first) or "worst" (the lowest gain first), both without weights
            per item. Default "expected".
        empty: What a list without relevant items (all gains are 0) scores: "zero",
            "one" (only metrics whose best value is 1), or "skip", which excludes the
            list from the mean. Lists that consist entirely of padding are always
            excluded. Default "zero".
        zero_weight: The meaning of a weight of 0 for an item: "keep" (the item keeps
            its rank but has no gain) or "mask" (the item is masked, as in TF-Ranking
            and keras-rs). In both, the weight of a list without relevant items is the
            mean over all its items, those of weight 0 included. Default "keep".
        convention: A key of `CONVENTIONS`, such as "trec_eval": uses the settings of
            that tool as defaults. Explicitly passed options take precedence. Default
            None.

    Weights: one weight per query is its weight in the mean. With one weight per item,
    the weight of the query is sum(weight * gain) / sum(gain). Within the list, the
    weights apply to the gains of DCG, NDCG and alpha-DCG, the hits of MAP, the labels
    of ARP and the pairs of OPA. The gain of a binary metric is 1 for a relevant item.

    Raises:
        ValueError: `k` or an option is invalid, or the convention does not cover the
            metric.
        TypeError: An argument is unknown.
    """

    k: Cutoff = dataclasses.field(default=None, kw_only=False)
    inputs: Inputs = "labels"
    duplicates: Duplicates = "first"


@with_fields
class WholeListMetric(SingleMetric):
    """Base class of metrics without a cutoff, such as AUC.

    They require the rank of every item, which a list of recommended ids does not
    contain. They support labels and catalogs only, without `duplicates`.

    >>> import tfrankmetrics as trm
    >>> trm.PerQueryAUC(empty="zero").name
    'auc'

    Args:
        inputs: The arguments of `update_state`: "labels" and scores (the default), or
            relevant ids and the scores of a whole "catalog".
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        name: The name of the result, by default the metric's name.
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.

    Raises:
        ValueError: An option is invalid, or the convention does not cover the metric.
        TypeError: An argument is unknown.
    """

    inputs: Literal["labels", "catalog"] = "labels"


@with_fields
class SubtopicMetric(SingleMetric):
    """Base class of metrics of subtopics, with labels `[B, N, T]`, such as alpha-DCG.

    A query may have several meanings, its subtopics, and an item may be relevant to
    some of the T subtopics. An item is padding if all its labels are below 0.

    >>> import tfrankmetrics as trm
    >>> trm.AlphaDCG(k=10).name
    'alpha_dcg@10'

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        inputs: "labels", the only input format with subtopics.
        ties: "expected" (the default) or "stable". Finding the best order of items with
            several subtopics is NP-hard.
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        name: The name of the result, by default the metric's name and cutoff.
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `empty` on in full.

    Raises:
        ValueError: `k` or an option is invalid, or the convention does not cover the
            metric.
        TypeError: An argument is unknown.
    """

    has_subtopics: ClassVar[bool] = True

    k: Cutoff = dataclasses.field(default=None, kw_only=False)
    ties: Literal["expected", "stable"] = "expected"
    inputs: Literal["labels"] = "labels"


@with_fields
class ItemMetric(SingleMetric):
    """Base class of metrics of which items are recommended, such as catalog coverage.

    They read the recommended ids, not whether these are relevant. They support ids, the
    scores of a whole catalog, and labels and tables with item ids. Their options
    contain data about the items: one value for each, in the order of the ids, or a dict
    by id.

    >>> import tfrankmetrics as trm
    >>> trm.Novelty(k=10, popularity=[0.5, 0.25, 0.01]).name
    'novelty@10'

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        inputs: "ids" (the default), "catalog", or "labels" with item ids, as in
            y_true={"labels": ..., "item_ids": ...}.
        ties: "expected" (the default) or "stable".
        empty: "skip", the only choice: a query without recommendations is excluded.
        zero_weight: "keep", the only choice, since items have no weights.
        duplicates: No effect on these metrics: repeated recommendations are counted
            each time.
        convention: None, the only choice: no convention covers these metrics.
        name: The name of the result, by default the metric's name and cutoff.
        dtype: The dtype of the result, by default Keras's floatx.

    Raises:
        ValueError: `k` or an option is invalid, or data about the items are missing.
        TypeError: An argument is unknown.
    """

    reads_items: ClassVar[bool] = True

    k: Cutoff = dataclasses.field(default=None, kw_only=False)
    ties: Literal["expected", "stable"] = "expected"
    empty: Literal["skip"] = "skip"
    zero_weight: Literal["keep"] = "keep"
    inputs: Literal["labels", "ids", "catalog"] = "ids"
    duplicates: Duplicates = "first"
