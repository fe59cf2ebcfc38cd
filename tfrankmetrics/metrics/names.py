"""Names of metrics such as "ndcg@10", and the lists of metrics that users pass.

A name may contain parameters, which are options of its metric:

    ndcg@10(gain=linear)        as `canonical_name` writes them
    nDCG(dcg='exp-log2')@10     as ir_measures writes them
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from tfrankmetrics.conventions import IN_ORDER_OF_TREC_EVAL
from tfrankmetrics.inputs.formats import InputFormat, input_format
from tfrankmetrics.metrics.measure import (
    METRICS,
    Declaration,
    Measure,
    check_inputs,
    convention_for,
    declarations,
    make_measure,
)
from tfrankmetrics.options import Separator
from tfrankmetrics.rules import (
    UnknownOptionError,
    check_option,
    did_you_mean,
    listed,
    shortened,
)


class MetricObject(Protocol):
    """An object of a metric's class, such as `NDCG(k=10)`."""

    @property
    def measure(self) -> Measure:
        """The metric with its cutoff and options."""
        ...

    @property
    def input_format(self) -> InputFormat:
        """The input format of its data."""
        ...


class ParsedName(NamedTuple):
    """What a name of a metric means."""

    declaration: Declaration
    k: int | None
    options: Mapping[str, Any]  # those that the name contains


def parse_name(text: str) -> ParsedName:
    """The metric, the cutoff and the options that a string such as `"P@5"` means.

    Accepts the names of tfrankmetrics, and those of trec_eval and ir_measures
    (`nDCG@10`, `AP`, `ndcg_cut_10`, `ndcg_cut.10`, `recip_rank`), in upper or lower
    case, with parameters before or after the cutoff.
    """
    with_parameters = re.fullmatch(r"([^()]*)\((.*)\)(@[^()]*)?", text, re.DOTALL)
    if not with_parameters:
        return ParsedName(*_metric_and_cutoff(text, text), {})
    begin, parameters, end = with_parameters.groups(default="")
    declaration, k = _metric_and_cutoff(begin.strip() + end, text)
    options: dict[str, Any] = {}
    for parameter, value in _parameters(parameters, text):
        option = _option(parameter, declaration, text)
        if option in options or (option == "k" and k is not None):
            raise ValueError(
                "A metric's name must contain the cutoff and each parameter once. "
                f"Received: {shortened(text)}, with two values of `{option}`."
            )
        if (parameter, option) == ("dcg", "gain"):
            check_option(declaration.name, "dcg", value, Literal["log2", "exp-log2"])
            value = "linear" if value == "log2" else "exponential"
        options[option] = value
    return ParsedName(declaration, options.pop("k", k), options)


def _metric_and_cutoff(name: str, text: str) -> tuple[Declaration, int | None]:
    """The metric and the cutoff of a name without its parameters."""
    name, at, cutoff = name.partition("@")
    if not at and name.lower() not in METRICS:
        suffix = re.fullmatch(r"(\w+?)(?:_cut)?[_.](\d+)", name)
        name, cutoff = suffix.groups() if suffix else (name, "")
    if (at or cutoff) and not re.fullmatch(r"[0-9]{1,100}", cutoff):
        raise ValueError(
            "The cutoff of a metric's name must be a whole number of at least 1, as in "
            f"'ndcg@10' or 'ndcg@10(gain=linear)'. Received: {shortened(text)}."
        )
    if name.lower() not in METRICS:
        hint = _hint_for_name(text, name)
        hint += " Import the module that declares it, if it is a custom metric."
        raise ValueError(
            f"A metric must have a known name. Received: {shortened(text[:100])}."
            f"{hint} The names are {listed(declarations())}, with '@k' for a cutoff."
        )
    return METRICS[name.lower()], int(cutoff) if cutoff else None


def _parameters(code: str, text: str) -> list[tuple[str, Any]]:
    """The parameters in a name, such as `rel=2, ties='stable'`, and their values.

    Numbers, strings, booleans and lists are as in Python. Anything else is a word: its
    value is the text itself, as in `gain=linear` or `denominator=min(k, relevant)`.
    """
    call = f"name({code})"
    try:
        parsed: Any = ast.parse(call, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        parsed = None
    is_call = isinstance(parsed, ast.Call) and isinstance(parsed.func, ast.Name)
    if not is_call or parsed.args or any(each.arg is None for each in parsed.keywords):
        raise ValueError(
            "The parameters in a metric's name must be pairs of an option and its "
            "value, separated by commas, as in 'ndcg@10(gain=linear, ties=stable)' or "
            f"'AP(rel=2)@100'. Received: {shortened(text)}."
        )
    return [
        (str(each.arg), _value_of_parameter(each.value, call))
        for each in parsed.keywords
    ]


def _value_of_parameter(node: ast.expr, code: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return ast.get_source_segment(code, node)


# The parameters of ir_measures, and the options that they are here.
_OPTION_OF = {
    "rel": "relevance_threshold",
    "p": "persistence",
    "max_rel": "max_label",
    "dcg": "gain",
    "gains": "gain",
    "cutoff": "k",
}


def _option(parameter: str, declaration: Declaration, text: str) -> str:
    """The option of a metric that a parameter in its name means."""
    options = [*declaration.types, "convention", "k"]
    for option in (parameter, _OPTION_OF.get(parameter)):
        if option in options:
            return option
    if parameter == "judged_only":
        hint = " Pass unjudged='drop' to `evaluate_run` for judged_only=True."
    else:
        hint = did_you_mean(parameter, options)
    raise UnknownOptionError(
        f"A parameter in the name of `{declaration.name}` must be one of its options: "
        f"{listed(sorted(options))}. Received: {parameter!r} in {shortened(text)}."
        f"{hint or ' Omit it.'}"
    )


def canonical_name(measure: Measure) -> str:
    """The name with every option that differs from its default, for `parse_name`."""
    defaults = measure.declaration.defaults
    chosen = ",".join(
        f"{name}={_written(value)}"
        for name, value in measure.options
        if value != defaults[name]
    )
    return f"{measure.name}({chosen})" if chosen else measure.name


def _written(value: Any) -> str:
    """The value of an option. 2 and 2.0 are the same."""
    if not isinstance(value, tuple):
        return str(value).removesuffix(".0")
    if value and isinstance(value[0], tuple):  # gains by grade, as pairs
        pairs = (":".join(map(_written, pair)) for pair in value)
        return f"{{{','.join(pairs)}}}"
    return f"[{','.join(map(_written, value))}]"


# Names that other tools have for a metric, without being close to its own name.
_MEANT = {"acc": "hit_rate", "accuracy": "hit_rate", "unj": "hole"}


def _hint_for_name(text: str, name: str) -> str:
    """A hint at the name that the user probably meant, or an empty string."""
    end = text.removeprefix(name)
    if name.lower() in _MEANT:
        return f" Did you mean '{_MEANT[name.lower()]}{end}'?"
    suffix = re.fullmatch(r"([a-z_]+?)(?:_at)?[-_@ ]?(\d+|_k)", text.lower())
    if suffix and suffix[1] in METRICS:
        meant = METRICS[suffix[1]].name
        if suffix[2] == "_k":
            return f" Write the cutoff as a number, as in '{meant}@10'."
        return f" Did you mean '{meant}@{suffix[2]}'?"
    names = {each: known.name + end for each, known in METRICS.items()}
    for known in declarations().values():  # MeanReciprocalRank: mean_reciprocal_rank
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", known.cls.__name__)
        names[words.lower()] = known.name + end
    hint = did_you_mean(name, (), names)
    if not hint:  # hits: hit_rate
        begin = name.lower().removesuffix("s")
        begun = {each for key, each in names.items() if key.startswith(f"{begin}_")}
        hint = f" Did you mean {begun.pop()!r}?" if len(begun) == 1 else ""
    return hint


def named_measures(
    metrics: Iterable[Any],
    options: Mapping[str, Any],
    data: InputFormat | None = None,
    separator: Separator = "@",
) -> dict[str, Measure]:
    """The measures of a list of names and metric objects, by the name of each.

    Args:
        metrics: Names of metrics, and metric objects other than `RankingMetrics`.
        options: Options and a convention for the metrics passed by name. Each applies
            to the metrics with that option. Options that are None are ignored.
        data: The input format of the data; labels by default.
        separator: "@", or "_" for names of letters, digits and underscores.
    """
    if isinstance(metrics, (str, Mapping)) or not isinstance(metrics, Iterable):
        raise ValueError(
            "`metrics` must be a list of names or metric objects, as in "
            f"['ndcg@10', 'mrr']. Received: {shortened(metrics)}."
        )
    check_option("metrics", "separator", separator, Separator)
    data = input_format() if data is None else data
    options = {name: value for name, value in options.items() if value is not None}
    if options:
        _check_names_of_options(options)
    unused = set(options)
    named: dict[str, Measure] = {}
    for metric in metrics:
        if isinstance(metric, str):
            parsed = parse_name(metric)
            declaration = parsed.declaration
            taken = options.keys() & {"convention", *declaration.types}
            unused -= taken - {*declaration.unaffected_by}
            if options.get("convention") in IN_ORDER_OF_TREC_EVAL:  # of any metric
                unused.discard("convention")
            measure = _measure_of_name(parsed, {o: options[o] for o in taken})
            name = metric
            if separator == "_":
                name = re.sub(r"\W+", "_", metric).strip("_")
        else:
            measure, name = _measure_of_object(metric, data), metric.name
        check_inputs(measure, data)
        if name in named:
            raise ValueError(
                "The names of `metrics` must be unique, since each is a key of the "
                f"result. Received: {shortened(name)} twice. Remove one, or set a "
                "different name on a metric object, as in NDCG(k=10, "
                "name='linear_ndcg@10')."
            )
        named[name] = measure
    if not named:
        raise ValueError("`metrics` must name at least one metric. Received: [].")
    if unused:
        raise ValueError(
            "Each option must apply to a metric that is passed by name. Received: "
            f"{listed(sorted(unused))}, which no such metric accepts. Set it on a "
            "metric object, or omit it."
        )
    return named


def _measure_of_name(parsed: ParsedName, options: Mapping[str, Any]) -> Measure:
    """The measure of a name in a call with options. Those of the name win.

    If it names a convention, so do the options of the convention.
    """
    declaration, k, of_name = parsed
    convention = of_name.get("convention", options.get("convention"))
    won = {*declaration.unaffected_by, *of_name}
    if of_name.get("convention") is not None:
        won |= convention_for(convention, declaration).options.keys()
    chosen = {o: value for o, value in options.items() if o not in won}
    measure = make_measure(declaration, k, **chosen, **of_name)
    if convention in IN_ORDER_OF_TREC_EVAL:
        # Also a metric whose options no convention sets, such as `tied`.
        measure = dataclasses.replace(measure, is_trec_eval=True)
    return measure


def _measure_of_object(metric: Any, data: InputFormat) -> Measure:
    measure = getattr(metric, "measure", None)
    if not isinstance(measure, Measure):
        raise ValueError(
            "`metrics` must hold names such as 'ndcg@10', or metric objects such as "
            "NDCG(k=10): no classes, and no RankingMetrics. Received: "
            f"{shortened(metric)}."
        )
    by_default = input_format(measure.declaration.cls.fields["inputs"].default)
    if metric.input_format not in (data, by_default):
        raise ValueError(
            "All metrics in a list read the same data: omit `inputs` and `duplicates` "
            f"on the metric objects. Received: {shortened(metric.name)} with "
            f"{metric.input_format}, in a list for {data}."
        )
    return measure


def _check_names_of_options(options: Mapping[str, Any]) -> None:
    """Raises an error for an unknown option, or one that only metric objects take."""
    if "denominator" in options:
        raise ValueError(
            "`denominator` must be set on a metric object or in a name, since its "
            "choices differ from metric to metric. Received: denominator="
            f"{shortened(options['denominator'])}. Pass, for example, "
            "'map@5(denominator=hits)'."
        )
    known = {"convention"}.union(*(each.types for each in declarations().values()))
    for name in options:
        if name not in known:
            raise UnknownOptionError(
                "A keyword must be an argument of the function or an option of a "
                f"metric. Received: {shortened(name)}.{_hint_for_option(name, known)}"
            )


def _hint_for_option(name: str, known: Iterable[str]) -> str:
    """A hint at the intention of a user who passed an unknown keyword."""
    if name in ("k", "top_k", "topk", "topn", "cutoff"):
        return " Write the cutoff in the name of a metric, as in 'ndcg@10'."
    if name in ("weight", "weights", "sample_weights"):
        return " Pass weights as `sample_weight`."
    if name in ("mask", "inputs", "duplicates", "sample_weight", "per_query"):
        return " It is an argument of `evaluate`, not of this function."
    if name == "threshold":
        return (
            " Did you mean 'relevance_threshold', the lowest label of a relevant item, "
            "or `thresholds` of `eval_config`?"
        )
    if name == "model":
        return " To evaluate several models in one table, call evaluate_run(model=...)."
    return did_you_mean(name, known)
