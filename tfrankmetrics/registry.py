"""Which metrics there are, what each is called, and the options each takes.

A `Measure` is a metric fully specified: a formula, a cutoff and every option.
The Keras classes and `evaluate` both turn what the user wrote into measures,
so each rule about names, cutoffs and options stands here once.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import math
import numbers
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import tensorflow as tf

from tfrankmetrics import measures, worths
from tfrankmetrics.conventions import CONVENTIONS, Convention
from tfrankmetrics.ranked_lists import RankedLists, Worth


@dataclasses.dataclass(frozen=True)
class Formula:
    """A row of the registry: a metric's name, its formula, and what is special to it.

    The choices of `empties` and `averages` start with the default.
    """

    name: str
    values: Callable[..., tf.Tensor]  # [B, C]; [B] without a cutoff
    worth: Callable[..., Worth]
    aliases: tuple[str, ...] = ()  # what other tools call it
    empties: tuple[str, ...] = ("zero", "one", "skip")
    averages: tuple[str, ...] = ()
    # How much there is to find in each list, [B]; where it is 0, the list is empty.
    to_find: Callable[[RankedLists, Worth], tf.Tensor] = RankedLists.total
    has_cutoff: bool = True
    has_subtopics: bool = False  # reads labels [B, N, T]
    inputs: tuple[str, ...] = ("labels", "ids", "catalogue")
    lower_is_better: bool = False

    def parameters(self) -> dict[str, inspect.Parameter]:
        """The options that this metric takes, with their defaults."""
        choices = {"empty": self.empties, "average": self.averages}
        return {
            **_keyword_parameters(self.worth),
            **_keyword_parameters(self.values),
            **_keyword_parameters(_options_of_every_metric),
            **{name: _choice(name, of) for name, of in choices.items() if of},
        }


def _options_of_every_metric(
    *,
    ties: Literal["expected", "stable", "random"] = "expected",
    seed: int | None = None,
) -> None:
    """Declares names, choices and defaults; `per_query.py` gives them meaning."""


def _choice(name: str, choices: tuple[str, ...]) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=choices[0],
        annotation=Literal[choices],
    )


def _keyword_parameters(function: Callable) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function, eval_str=True).parameters
    return {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }


# For metrics whose best value is not 1, and for those of pairs.
_ZERO_OR_SKIP = ("zero", "skip")
_SKIP_FIRST = ("skip", "zero", "one")

FORMULAS: dict[str, Formula] = {
    formula.name: formula
    for formula in (
        Formula("ndcg", measures.ndcg, worths.Gain, to_find=RankedLists.largest),
        Formula(
            "dcg",
            measures.dcg,
            worths.Gain,
            empties=_ZERO_OR_SKIP,
            to_find=RankedLists.largest,
        ),
        Formula("map", measures.average_precision, worths.Relevance, ("AP",)),
        Formula(
            "mrr",
            measures.reciprocal_rank,
            worths.Relevance,
            ("RR", "recip_rank"),
        ),
        Formula("precision", measures.precision, worths.Relevance, ("P",)),
        Formula("recall", measures.recall, worths.Relevance, ("R",)),
        Formula("hit_rate", measures.hit_rate, worths.Relevance, ("Success", "HR")),
        Formula("f1", measures.f1, worths.Relevance),
        Formula("r_precision", measures.r_precision, worths.Relevance, ("Rprec",)),
        Formula(
            "rbp",
            measures.rank_biased_precision,
            worths.Relevance,
            empties=_ZERO_OR_SKIP,
        ),
        Formula(
            "err",
            measures.expected_reciprocal_rank,
            worths.StopChance,
            empties=_ZERO_OR_SKIP,
        ),
        Formula(
            "arp",
            measures.average_relevance_position,
            worths.label_of,
            empties=("skip",),
            averages=("micro", "macro"),
            has_cutoff=False,
            inputs=("labels", "catalogue"),
            lower_is_better=True,
        ),
        Formula(
            "opa",
            measures.ordered_pair_accuracy,
            worths.pairs_to_win,
            empties=_SKIP_FIRST,
            averages=("micro", "macro"),
            has_cutoff=False,
            inputs=("labels",),
        ),
        Formula(
            "auc",
            measures.area_under_the_curve,
            worths.Relevance,
            empties=_SKIP_FIRST,
            to_find=measures.mixed_pairs,
            has_cutoff=False,
            inputs=("labels", "catalogue"),
        ),
        Formula(
            "bpref",
            measures.binary_preference,
            worths.Relevance,
            has_cutoff=False,
            inputs=("labels",),
        ),
        Formula(
            "precision_ia",
            measures.intent_aware_precision,
            worths.Coverage,
            ("P_IA", "P-IA"),
            has_subtopics=True,
            inputs=("labels",),
        ),
        Formula(
            "alpha_dcg",
            measures.alpha_dcg,
            worths.Coverage,
            empties=_ZERO_OR_SKIP,
            has_subtopics=True,
            inputs=("labels",),
        ),
    )
}

_BY_ANY_NAME: dict[str, Formula] = {
    name.lower(): formula
    for formula in FORMULAS.values()
    for name in (formula.name, *formula.aliases)
}


@dataclasses.dataclass(frozen=True)
class Measure:
    """A metric fully specified. Equal measures compute the same thing."""

    formula: Formula
    k: int | None
    options: tuple[tuple[str, Any], ...]

    @property
    def name(self) -> str:
        """`ndcg@10`, or `ndcg` without a cutoff."""
        return self.formula.name if self.k is None else f"{self.formula.name}@{self.k}"

    @property
    def family(self) -> Measure:
        """The metric without its cutoff: one of many that are computed together."""
        return dataclasses.replace(self, k=None)

    def __getitem__(self, option: str) -> Any:
        return dict(self.options)[option]

    @property
    def worth(self) -> Worth:
        """What an item is worth to this metric."""
        return self.formula.worth(**self._options_of(self.formula.worth))

    def values(self, lists: RankedLists) -> tf.Tensor:
        """The metric's value at every cutoff of the lists, `[B, C]`, whatever its own.

        `[B, 1]` if it has no cutoff.
        """
        options = self._options_of(self.formula.values)
        values = self.formula.values(lists, self.worth, **options)
        return values if self.formula.has_cutoff else values[:, tf.newaxis]

    def _options_of(self, function: Callable) -> dict[str, Any]:
        return {name: self[name] for name in _keyword_parameters(function)}


def make_measure(
    formula: str, k: int | None = None, *, convention: str | None = None, **options: Any
) -> Measure:
    """Checks a cutoff and options and gives the measure.

    An option that is None is the convention's, or without one the default.
    """
    row = FORMULAS[formula]
    parameters = row.parameters()
    unknown = sorted(options.keys() - parameters.keys())
    if unknown:
        raise ValueError(
            f"`{row.name}` takes the options {_listed(parameters)}. "
            f"Received: {_listed(unknown)}."
        )
    complete = {name: parameter.default for name, parameter in parameters.items()}
    if convention is not None:
        chosen = _convention_for(convention, row)
        for name in complete.keys() & chosen.options.keys():
            complete[name] = chosen.choice(name, row.name)
    given = {name: value for name, value in options.items() if value is not None}
    complete.update(given)
    for name, value in complete.items():
        _check_option(row.name, name, value, parameters[name].annotation)
    k = _checked_cutoff(k)
    if k is not None and not row.has_cutoff:
        raise ValueError(
            f"`{row.name}` is of the whole list and takes no cutoff. Received: k={k}."
        )
    if complete["seed"] is not None and complete["ties"] != "random":
        raise ValueError(
            "`seed` is the seed of ties='random'; other tie modes draw nothing. "
            f"Received: seed={complete['seed']!r}, ties={complete['ties']!r}."
        )
    if complete.get("average") == "micro" and complete["empty"] != "skip":
        raise ValueError(
            "average='micro' counts lists by how much there is to find in them, and so "
            "a list with nothing to find not at all. Use average='macro' or "
            f"empty='skip'. Received: empty={complete['empty']!r}."
        )
    if k is None and complete.get("denominator") == "k":
        complete["denominator"] = "list"  # without a cutoff, k is the list's length
    return Measure(row, k, tuple(complete.items()))


def _convention_for(name: str, row: Formula) -> Convention:
    if not isinstance(name, str) or name not in CONVENTIONS:
        raise ValueError(
            f"`convention` must be None or one of {_listed(CONVENTIONS)}. "
            f"Received: convention={name!r}."
        )
    convention = CONVENTIONS[name]
    if row.name not in convention.metrics:
        raise ValueError(
            f"convention={name!r} has the choices of {convention.tools}, for the "
            f"metrics {_listed(convention.metrics)}. Received: {row.name!r}. In a list "
            "of metrics, give that one as an object, which has options of its own."
        )
    return convention


def parse_name(text: str) -> tuple[str, int | None]:
    """The formula's name and the cutoff that a string such as `"P@5"` means.

    Accepts this library's names, and those of trec_eval and ir_measures
    (`nDCG@10`, `AP`, `ndcg_cut_10`, `recip_rank`), in any case.
    """
    name, at, cutoff = text.partition("@")
    if not at and (suffix := re.fullmatch(r"(\w+?)(?:_cut)?_(\d+)", text)):
        name, cutoff = suffix.groups()
    if (at or cutoff) and not re.fullmatch(r"[0-9]+", cutoff):
        raise ValueError(
            "The cutoff of a metric's name must be a whole number, as in 'ndcg@10'. "
            f"Received: {text!r}."
        )
    formula = _BY_ANY_NAME.get(name.lower())
    if formula is None:
        near = difflib.get_close_matches(name.lower(), _BY_ANY_NAME, n=1, cutoff=0.6)
        hint = f" Did you mean {_BY_ANY_NAME[near[0]].name!r}?" if near else ""
        raise ValueError(
            f"A metric's name is one of {_listed(FORMULAS)}, with '@k' for a cutoff. "
            f"Received: {text!r}.{hint}"
        )
    return formula.name, int(cutoff) if cutoff else None


def named_measures(
    metrics: Iterable[Any], options: Mapping[str, Any]
) -> dict[str, Measure]:
    """The measures of a list of names and metric objects, by the name of each.

    `options`, a convention among them, with a value other than None hold for the
    metrics given by name, each for those that take it.
    """
    if isinstance(metrics, (str, Mapping)) or not isinstance(metrics, Iterable):
        raise ValueError(
            "`metrics` must be a list of names or metric objects, as in "
            f"['ndcg@10', 'mrr']. Received: {metrics!r}."
        )
    options = {name: value for name, value in options.items() if value is not None}
    if "denominator" in options:
        raise ValueError(
            "`denominator` means another thing for each metric: set it on a metric "
            "object, as in MeanAveragePrecision(k=5, denominator='hits')."
        )
    unused = set(options)
    named: dict[str, Measure] = {}
    for metric in metrics:
        if isinstance(metric, str):
            formula, k = parse_name(metric)
            takes = {"convention", *FORMULAS[formula].parameters()}
            taken = options.keys() & takes
            unused -= taken
            measure = make_measure(
                formula, k, **{name: options[name] for name in taken}
            )
            name = measure.name
        elif isinstance(getattr(metric, "measure", None), Measure):
            measure, name = metric.measure, metric.name
        else:
            raise ValueError(
                "`metrics` takes names such as 'ndcg@10' and tfrankmetrics objects of "
                f"one metric, such as NDCG(k=10). Received: {metric!r}."
            )
        if name in named:
            raise ValueError(
                "The names of `metrics` must be unique, since each is a key of the "
                f"result. {name!r} comes up twice: drop one, or give a metric object "
                "a name of its own, as in NDCG(k=10, name='linear_ndcg@10')."
            )
        named[name] = measure
    if not named:
        raise ValueError("`metrics` must name at least one metric. Received: [].")
    if unused:
        raise ValueError(
            "An option must apply to a metric given by name; metric objects keep "
            f"their own. No such metric takes: {_listed(sorted(unused))}."
        )
    return named


def _checked_cutoff(k: Any) -> int | None:
    if k is None:
        return None
    if not _is_number(k, numbers.Integral) or not 1 <= k < 2**31:
        raise ValueError(
            "`k` must be None (the whole list) or an int of at least 1 (and below "
            f"2^31). Received: k={k!r}."
        )
    return int(k)


def _check_option(metric: str, name: str, value: Any, annotation: Any) -> None:
    if typing.get_origin(annotation) is Literal:
        choices = typing.get_args(annotation)
        rule, valid = (
            f"one of {_listed(choices)}",
            isinstance(value, str) and value in choices,
        )
    elif name in ("gain", "discount"):
        functions = {"gain": worths.GAINS, "discount": measures.DISCOUNTS}[name]
        rule = f"one of {_listed(functions)}, or a function of a tensor"
        valid = callable(value) or (isinstance(value, str) and value in functions)
    elif name in ("relevance_threshold", "max_label"):
        rule = "a finite number above 0"
        valid = _is_number(value, numbers.Real) and math.isfinite(value) and value > 0
    elif name == "persistence":
        rule = "a number between 0 and 1"
        valid = _is_number(value, numbers.Real) and 0 < value < 1
    elif name == "alpha":
        rule = "a number from 0.001 to 1"  # it divides differences
        valid = _is_number(value, numbers.Real) and 0.001 <= value <= 1
    else:
        rule = "an int, or None"
        valid = value is None or _is_number(value, numbers.Integral)
    if not valid:
        raise ValueError(
            f"`{name}` of `{metric}` must be {rule}. Received: {name}={value!r}."
        )


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(repr(name) for name in names)
