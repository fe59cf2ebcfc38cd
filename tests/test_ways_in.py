"""Ids and catalogues give the value of the same case as labels beside scores."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from test_properties import OBJECTS, few

import tfrankmetrics as tfr

INF = float("inf")
IDS = st.integers(0, 7)


@st.composite
def id_queries(draw):
    """Relevant ids with grades, and recommended ids, which may repeat."""
    number = draw(st.integers(1, 4))
    relevant = [draw(st.lists(IDS, max_size=4)) for _ in range(number)]
    grades = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])
    relevance = [[draw(grades) for _ in ids] for ids in relevant]
    recommended = [draw(st.lists(IDS, max_size=6)) for _ in range(number)]
    return relevant, relevance, recommended


def as_labels(relevant, relevance, recommended, duplicates):
    """One query's ids as labels and scores; what was missed has the score -inf."""
    grades = {}
    for item, grade in zip(relevant, relevance):
        grades.setdefault(item, grade)
    labels, seen = [], set()
    for item in recommended:
        counts = duplicates == "all" or item not in seen
        labels.append(grades.get(item, 0.0) if counts else 0.0)
        seen.add(item)
    missed = [grade for item, grade in grades.items() if item not in seen]
    scores = [float(-place) for place in range(len(labels))]
    return labels + missed, scores + [-INF] * len(missed)


@pytest.mark.parametrize("duplicates", ["first", "all"])
@few
@given(id_queries())
def test_ids_are_as_good_as_labels(duplicates, queries):
    relevant, relevance, recommended = queries
    ids = tfr.evaluate(
        {"ids": relevant, "relevance": relevance},
        recommended,
        OBJECTS,
        inputs="ids",
        duplicates=duplicates,
        per_query=True,
    )
    dense = [as_labels(*query, duplicates) for query in zip(*queries)]
    labels, scores = map(list, zip(*dense))
    expected = tfr.evaluate(labels, scores, OBJECTS, per_query=True)
    for name, value in ids.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("per_query", [1, 3])
@few
@given(data=st.data())
def test_a_catalogue_is_as_good_as_labels(per_query, data):
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 9)))
    values = st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan, INF, -INF])
    scores = data.draw(hnp.arrays(np.float64, shape, elements=values))
    items = st.integers(0, shape[1] - 1)
    relevant = data.draw(hnp.arrays(np.int64, (shape[0], per_query), elements=items))
    exclude = data.draw(
        hnp.arrays(np.int64, (shape[0], 2), elements=items | st.just(-1))
    )
    catalogue = tfr.evaluate(
        {"ids": relevant, "exclude": exclude},
        scores,
        OBJECTS,
        inputs="catalogue",
        per_query=True,
    )
    labels = np.zeros(shape)
    for query in range(shape[0]):
        labels[query, relevant[query]] = 1.0
        scores[query, exclude[query][exclude[query] >= 0]] = -INF
    for query_scores, how in ((scores, "labels"),):
        expected = tfr.evaluate(labels, query_scores, OBJECTS, per_query=True)
        for name, value in catalogue.items():
            np.testing.assert_allclose(
                value, expected[name], rtol=1e-9, atol=1e-12, err_msg=f"{name}, {how}"
            )
    # A model that scores seen items -inf, inside fit.
    model = tfr.evaluate(relevant, scores, OBJECTS, inputs="catalogue", per_query=True)
    for name, value in catalogue.items():
        np.testing.assert_array_equal(value, model[name], err_msg=name)
