"""Compares the values of each tool with those of its convention.

Only the tools that `-k` chooses must be installed. The newest releases of XGBoost and
LensKit need a newer Python than the others. Therefore, before a release, run on Python
3.13, the second line in validation/:

    pip install -e . hypothesis pytest scikit-learn xgboost==3.4.1 lenskit==2026.4.0
    KERAS_BACKEND=numpy python -m pytest test_values_of_tools.py -k "XGBoost or LensKit"
"""

import numpy as np
import pytest
from queries import LONG_CUTOFFS, name_of, random_queries
from tools import TOOLS, binary

import tfrankmetrics as trm


def ours(metric, k, queries, tool):
    labels, scores = zip(*queries, strict=True)
    options = {"convention": tool.convention, **tool.options.get(metric, {})}
    names = [name_of(metric, k)]
    (values,) = trm.evaluate(labels, scores, names, **options, per_query=True).values()
    return values


@pytest.mark.parametrize("kind", ["untied", "tied", "missed", "fractional", "long"])
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_equal_values(tool, kind, compare):
    if kind == "missed" and not tool.has_missed:
        pytest.skip("the tool treats every item as retrieved")
    if kind == "fractional" and not tool.has_fractions:
        pytest.skip("the tool accepts only binary or integer labels")
    is_long = kind == "long"
    queries = random_queries(5 if is_long else 60, seed=1, kind=kind)
    if tool.only_binary:
        queries = [(binary(labels), scores) for labels, scores in queries]
    pairs = [
        (metric, k)
        for metric, cutoffs in tool.metrics.items()
        for k in (LONG_CUTOFFS if is_long and len(cutoffs) > 1 else cutoffs)
        if k is not None or None in cutoffs
        if kind != "tied" or metric in tool.ties
        if (kind, metric) != ("missed", "opa")  # pairs of two missed items are tied
    ]
    if not pairs:
        pytest.skip("the tool breaks ties at random; another test compares the mean")
    for metric, k in pairs:
        value = ours(metric, k, queries, tool)
        theirs = np.array(tool.value_of(metric, k, queries))
        if tool.only_mean:
            value = np.nanmean(value, keepdims=True)
        counted = ~np.isnan(theirs)  # NaN marks a query that the tool skips
        if tool.convention != "kaggle":  # implicit skips queries that Kaggle counts
            np.testing.assert_array_equal(np.isnan(value), ~counted)
        value, theirs = value[counted], theirs[counted]
        compare(
            tool.package,
            tool.convention,
            metric if kind == "untied" else f"{metric}, {kind}",
            value,
            theirs,
            rtol=tool.tolerance,
            atol=tool.tolerance,
        )
