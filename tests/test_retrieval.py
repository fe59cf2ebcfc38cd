"""Tests `evaluate_retrieval` and its callback: exact ranks among all candidates."""

import gc
import itertools
import math
import os
import pickle
import subprocess
import sys
import warnings
import weakref

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from cases import METRICS

import tfrankmetrics as tfr
from tfrankmetrics.engine.measure import DECLARATIONS
from tfrankmetrics.retrieval import array_blocks, comparing, products, streams
from tfrankmetrics.retrieval import inputs as reading
from tfrankmetrics.retrieval.candidates import ArrayCandidates

QUERIES = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
CANDIDATES = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.6], [0.3, 0.3]]
RELEVANT = [0, 2, 3]
WITHOUT_CUTOFF = sorted(
    name
    for name, declaration in METRICS.items()
    if "catalogue" in declaration.inputs and name not in ("judged", "tied")
)
NAMES = WITHOUT_CUTOFF + [
    f"{name}@{k}" for name in WITHOUT_CUTOFF for k in (1, 5) if METRICS[name].has_cutoff
]

# Random items to exclude may be relevant ones.
pytestmark = pytest.mark.filterwarnings("ignore:`exclude` removes items from")


def small_vectors(rng, rows, width):
    """Vectors of small integers, whose products are exact and often tied."""
    return rng.integers(-1, 3, (rows, width)).astype("float32")


def case(number):
    """Queries, candidates, relevant ids with grades, and ids to exclude."""
    rng = np.random.default_rng(number)
    num_queries, num_candidates = rng.integers(1, 9), rng.integers(1, 150)
    width, relevant = rng.integers(1, 4), rng.integers(1, 9)
    queries = small_vectors(rng, num_queries, width)
    candidates = small_vectors(rng, num_candidates, width)
    if number % 3 == 0:
        candidates[rng.integers(num_candidates)] = np.nan
    ids = rng.integers(-1, num_candidates, (num_queries, relevant))
    grades = rng.integers(0, 4, num_candidates)[ids].astype(float)
    exclude = rng.integers(-1, num_candidates, (num_queries, rng.integers(0, 20)))
    return queries, candidates, {"ids": ids, "relevance": grades}, exclude


def both(number, names, **options):
    """Values by query, from chunks and from all scores."""
    queries, candidates, truth, exclude = case(number)
    if options.get("ties") == "random":
        exclude = exclude[:, :0]
    arguments = {"metrics": names, "per_query": True, **options}
    all_scores = np.einsum("bd,vd->bv", queries, candidates)
    whole = tfr.evaluate(
        {**truth, "exclude": exclude}, all_scores, inputs="catalogue", **arguments
    )
    chunks = tfr.evaluate_retrieval(
        queries,
        candidates,
        truth,
        exclude=exclude,
        chunk_size=7,
        batch_size=3,
        **arguments,
    )
    return chunks, whole


@pytest.mark.parametrize("ties", ["expected", "stable", "random", "best", "worst"])
@pytest.mark.parametrize("number", range(6))
def test_the_values_are_those_of_all_scores(number, ties):
    options = {"ties": ties, "seed": 3} if ties == "random" else {"ties": ties}
    chunks, whole = both(number, NAMES, **options)
    for name in NAMES:
        np.testing.assert_allclose(chunks[name], whole[name], rtol=1e-12, err_msg=name)


def test_metrics_may_break_ties_in_different_ways():
    metrics = [
        tfr.MeanReciprocalRank(ties=ties, name=ties)
        for ties in ("expected", "stable", "best", "worst", "random")
    ]
    metrics.append(tfr.MeanReciprocalRank(ties="random", seed=1, name="seed 1"))
    same = [[1.0, 0.0]] * 4
    found = tfr.evaluate_retrieval(QUERIES[:1], same, [2], metrics)
    drawn = tfr.evaluate([2], [[1, 1, 1, 1]], metrics[-2:], inputs="catalogue")
    fixed = {"expected": (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, "stable": 1 / 3}
    assert found == {**fixed, "best": 1, "worst": 1 / 4, **drawn}


@pytest.mark.parametrize("number", range(6))
def test_one_relevant_item_has_the_same_bits_down_to_a_cutoff(number):
    queries, candidates, truth, exclude = case(number)
    ids, names = truth["ids"][:, 0], [name for name in NAMES if "@" in name]
    all_scores = np.einsum("bd,vd->bv", queries, candidates)
    whole = tfr.evaluate(
        {"ids": ids, "exclude": exclude},
        all_scores,
        names,
        inputs="catalogue",
        per_query=True,
    )
    chunks = tfr.evaluate_retrieval(
        queries,
        candidates,
        ids,
        names,
        exclude=exclude,
        per_query=True,
        chunk_size=16,
    )
    for name in names:
        np.testing.assert_array_equal(chunks[name], whole[name], err_msg=name)


FIRST_RELEVANT = ["mrr", "first_relevant_rank", "mrr@5", "ndcg@2"]


@pytest.mark.parametrize("ties", ["expected", "stable", "best", "worst"])
@pytest.mark.parametrize("library", [np.asarray, tf.constant])
@pytest.mark.parametrize("number", range(4))
def test_incomplete_counts_do_not_change_a_value(number, library, ties, monkeypatch):
    monkeypatch.setattr(comparing, "FIRST_COLUMNS", 5)
    queries, candidates, truth, exclude = case(number)
    candidates = np.tile(candidates, (1 + number % 2, 1))
    scores = np.einsum("bd,vd->bv", queries, candidates)
    queries, candidates = library(queries), library(candidates)
    cut = [name for name in NAMES if "@" in name]
    every = truth, {"ids": truth["ids"]}  # some and no items below the threshold
    options = {"per_query": True, "ties": ties}
    for relevant, names in itertools.product(every, (cut, FIRST_RELEVANT, ["mrr"])):
        whole = tfr.evaluate(
            {**relevant, "exclude": exclude},
            scores,
            names,
            inputs="catalogue",
            **options,
        )
        for size in (13, 1000):
            chunks = tfr.evaluate_retrieval(
                queries,
                candidates,
                relevant,
                names,
                exclude=exclude,
                chunk_size=size,
                batch_size=3,
                **options,
            )
            for name in names:
                np.testing.assert_allclose(
                    chunks[name], whole[name], rtol=1e-12, err_msg=name
                )


def test_the_first_relevant_item_may_differ_between_two_products(monkeypatch):
    monkeypatch.setattr(comparing, "FIRST_COLUMNS", 5)
    candidates = np.arange(50.0)[:, np.newaxis]
    truth = [[20, 21, 22]]

    def score(queries, candidates):
        scores = tf.repeat(tf.transpose(candidates), len(queries), axis=0)
        # The scores of 20, 21 and 22 are almost equal. A product of these candidates
        # alone ranks them in the opposite order.
        is_near = (scores >= 20) & (scores <= 22)
        sign = -1.0 if candidates[0, 0] == 20 else 1.0
        return tf.where(is_near, 21 + sign * 1e-3 * (scores - 21), scores)

    names = ["mrr", "first_relevant_rank", "mean_popularity@3"]
    found = tfr.evaluate_retrieval(
        [[1.0]],
        candidates,
        truth,
        names,
        score=score,
        chunk_size=25,
        popularity=np.arange(50.0),
    )
    expected = {"mrr": 1 / 28, "first_relevant_rank": 28, "mean_popularity@3": 48}
    assert found == expected


def test_each_threshold_has_a_first_relevant_item(monkeypatch):
    monkeypatch.setattr(comparing, "FIRST_COLUMNS", 5)
    metrics = [
        tfr.FirstRelevantRank(relevance_threshold=float(grade), name=f"{grade}")
        for grade in (1, 3)
    ]
    truth = {"ids": [[20, 10]], "relevance": [[1, 3]]}
    candidates = np.arange(50.0)[:, np.newaxis]
    found = tfr.evaluate_retrieval([[1.0]], candidates, truth, metrics)
    assert found == {"1": 30, "3": 40}


def test_tied_shares_are_those_of_all_scores():
    for number in range(4):
        chunks, whole = both(number, ["tied", "tied@1", "tied@5"])
        for name, values in whole.items():
            np.testing.assert_array_equal(chunks[name], values)


def dot_under_xla(queries, candidates):
    return tf.matmul(queries, candidates, transpose_b=True)


SCORERS = {"eager": None, "xla": tf.function(dot_under_xla, jit_compile=True)}


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("number", [77, 1000])
def test_an_item_is_tied_with_its_copies(number, dtype, scorer):
    rng = np.random.default_rng(0)
    queries = tf.cast(rng.normal(size=(40, 64)), dtype)
    candidates = tf.cast(np.tile(rng.normal(size=(1, 64)), (number, 1)), dtype)
    relevant = rng.integers(0, number, 40)
    found = tfr.evaluate_retrieval(
        queries,
        candidates,
        relevant,
        ["arp"],
        score=SCORERS[scorer],
        chunk_size=256,
        per_query=True,
    )
    # Each rank from 1 to V is equally likely.
    np.testing.assert_allclose(found["arp"], (number + 1) / 2, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_sum_of_products_would_not_be_the_score_of_the_product(dtype):
    rng = np.random.default_rng(0)
    queries, candidates = (tf.cast(rng.normal(size=(250, 64)), dtype) for _ in range(2))
    own = tf.reduce_sum(queries * candidates, axis=1)
    products = tf.linalg.diag_part(tf.matmul(queries, candidates, transpose_b=True))
    assert np.mean(own.numpy() != products.numpy()) > 0.3
    found = tfr.evaluate_retrieval(queries, candidates, np.arange(250), ["arp"])
    scores = tf.matmul(
        *(reading.padded(each, "tensorflow") for each in (queries, candidates)),
        False,
        True,
    )
    scores = scores.numpy()[:250, :250]
    ranks = 1 + (scores > np.diag(scores)[:, np.newaxis]).sum(axis=1)
    assert found["arp"] == ranks.mean()


class ShiftedOnFewItems:
    """A dot product that is larger by one bit for the products of few candidates."""

    def __init__(self):
        self.calls = 0

    def __call__(self, queries, candidates):
        self.calls += 1
        scores = tf.matmul(queries, candidates, transpose_b=True)
        return scores * (1 + 2**-20) if candidates.shape[0] < 300 else scores


def test_another_first_product_does_not_change_a_rank():
    rng = np.random.default_rng(0)
    queries, candidates = rng.normal(size=(2, 5, 8)).astype("float32")
    candidates = np.tile(candidates, (60, 1))
    score = ShiftedOnFewItems()
    arguments = queries, candidates, np.arange(5), ["arp", "mrr@10"]
    shifted = tfr.evaluate_retrieval(*arguments, score=score, chunk_size=320)
    assert score.calls == 3  # the relevant items, and all candidates twice
    assert shifted == tfr.evaluate_retrieval(*arguments, chunk_size=320)


def minus_squared_distance(queries, candidates):
    squares = [tf.reduce_sum(each**2, axis=1) for each in (queries, candidates)]
    products = tf.matmul(queries, candidates, transpose_b=True)
    return 2 * products - squares[0][:, tf.newaxis] - squares[1]


class ShiftedNearZero(ShiftedOnFewItems):
    """Rounding of large terms that cancel, where the product has another shape."""

    def __call__(self, queries, candidates):
        self.calls += 1
        scores = minus_squared_distance(queries, candidates)
        return scores - (1e-3 if candidates.shape[0] < 300 else 0)


@pytest.mark.parametrize("start", [0, 500])
def test_scores_near_zero_may_differ_by_rounding(start):
    """The distance of an item from itself is 0, and its terms are about 1,000."""
    vectors = 10 * np.random.default_rng(0).normal(size=(800, 8)).astype("float32")
    score, relevant = ShiftedNearZero(), np.arange(start, start + 5)
    shifted = tfr.evaluate_retrieval(
        vectors[relevant], vectors, relevant, ["mrr"], score=score, chunk_size=400
    )
    # The relevant items, the two chunks, one item between copies of it, the chunks.
    assert score.calls == 6
    assert shifted == {"mrr": 1.0}


@pytest.mark.parametrize("kind", [np.asarray, tf.constant])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("size", [1024, 2048, None])
def test_copies_in_every_chunk_are_tied(dtype, size, kind):
    """A narrower product, as of a last chunk, would be summed in a different order."""
    rng = np.random.default_rng(0)
    candidates = rng.normal(size=(2100, 1024)).astype(dtype)
    queries = rng.normal(size=(3, 1024)).astype(dtype).repeat(6, axis=0)
    copies = [0, 5, 1000, 2040, 2060, 2099]
    candidates[copies] = candidates[0]
    dataset = tf.data.Dataset.from_tensor_slices(candidates).batch(size or 700)
    queries, vectors = kind(queries), kind(candidates)
    for data, options in ((vectors, {"chunk_size": size}), (dataset, {})):
        found = tfr.evaluate_retrieval(
            queries, data, copies * 3, ["mrr", "tied"], per_query=True, **options
        )
        assert (found["tied"] == 1).all()
        of_queries = found["mrr"].reshape(3, 6)  # with each copy as the relevant item
        assert (of_queries == of_queries[:, :1]).all()


def vectors_with_copies(rng, dtype, width):
    """Vectors, some of which are copies, or nearly, or hold large or no numbers."""
    vectors = rng.normal(size=(300, width)).astype(dtype)
    vectors[200:] = vectors[rng.integers(0, 100, 100)]
    vectors[280:] += (1e-7 * vectors[280:]).astype(dtype)
    vectors[40:44] *= 2
    vectors[44] = 0
    vectors[45, 0], vectors[46, 0], vectors[47] = np.nan, np.inf, 1e-30
    return vectors


@pytest.mark.parametrize(
    ("sizes", "ties"),
    [
        ({}, "stable"),
        ({"batch_size": 5, "chunk_size": 70}, "stable"),
        ({"chunk_size": 70}, "expected"),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("width", [2, 33, 500])
def test_rounding_in_the_product_of_arrays_changes_no_rank(
    monkeypatch, dtype, width, sizes, ties
):
    """Libraries round in other ways on other processors; scores that matter do not."""
    if sizes:  # otherwise, only long rows are sorted
        monkeypatch.setattr(comparing, "SORT_START", 0)
    dtype, rng = tf.as_dtype(dtype).as_numpy_dtype, np.random.default_rng(width)
    queries, candidates = (vectors_with_copies(rng, dtype, width) for _ in range(2))
    queries = queries[::12]
    relevant = rng.integers(0, 300, (len(queries), 70 if sizes else 3))
    names = ["arp", "mrr", "ndcg@10", "tied", "novelty@1", "mean_popularity@25"]
    arguments = queries, candidates, relevant, names
    options = {"per_query": True, "ties": ties, "popularity": rng.uniform(0, 1, 300)}
    found = tfr.evaluate_retrieval(*arguments, **options)
    wide = (each.astype(np.float64) for each in (queries, candidates))
    with np.errstate(all="ignore"):
        exact = np.stack([(query * next_).sum(axis=1) for query, next_ in pairs(*wide)])
        exact = exact.astype(dtype).astype(np.float64)
    expected = tfr.evaluate(relevant, exact, names, inputs="catalogue", **options)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)

    original = products.product_of_arrays

    def with_other_rounding(queries, candidates, memory, pool=None):
        scores = original(queries, candidates, memory, pool)
        sizes = [np.linalg.norm(v.astype(float), axis=1) for v in (queries, candidates)]
        most = (np.outer(*sizes) + np.abs(scores)) / 2
        most *= width * np.finfo(scores.dtype).eps / 2.01
        noise = rng.uniform(-1, 1, scores.shape) * np.nan_to_num(most, posinf=0)
        with np.errstate(all="ignore"):
            return (scores + noise).astype(dtype).astype(scores.dtype)

    monkeypatch.setattr(array_blocks, "product_of_arrays", with_other_rounding)
    shifted = tfr.evaluate_retrieval(*arguments, **options, **sizes)
    for name, values in found.items():
        np.testing.assert_array_equal(shifted[name], values, err_msg=name)


PRINT_RANKS = """
import numpy as np, tfrankmetrics as tfr
rng = np.random.default_rng(0)
queries, candidates = (rng.normal(size=(n, 256)).astype("float32") for n in (90, 9000))
candidates[6000:] = candidates[:3000]
relevant = rng.integers(0, 9000, (90, 20))
options = {"per_query": True, "popularity": rng.uniform(0, 1, 9000)}
names = ["arp", "tied", "ndcg", "mean_popularity@9"]
found = tfr.evaluate_retrieval(queries, candidates, relevant, names, **options)
print({name: values.tolist() for name, values in found.items()})
"""


def test_values_are_the_same_on_another_processor():
    """With an older instruction set, OpenBLAS adds up products in a different order."""
    found = [
        subprocess.run(
            [sys.executable, "-c", PRINT_RANKS],
            env={**os.environ, **processor},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for processor in ({}, {"OPENBLAS_CORETYPE": "Prescott"})
    ]
    assert found[0] == found[1]


def pairs(queries, candidates):
    return ((query, candidates) for query in queries)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_arrays_and_tensors_have_the_same_values(dtype):
    rng = np.random.default_rng(1)
    queries, candidates = (9 * rng.normal(size=(2, 400, 24))).astype(dtype)
    arguments = rng.integers(-1, 400, (400, 3)), ["ndcg@10", "mrr", "arp", "tied"]
    found = tfr.evaluate_retrieval(queries, candidates, *arguments)
    expected = tfr.evaluate_retrieval(tf.constant(queries), candidates, *arguments)
    assert found == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("dtype", "largest"), [("int64", 2**31), ("int64", -(2**63)), ("uint64", 2**63)]
)
def test_integer_products_that_overflow_raise(dtype, largest):
    vectors = np.array([[1, 1], [largest, 1]], dtype)
    for candidates in (vectors, vectors[::-1], tf.constant(vectors)):
        with pytest.raises(ValueError, match=r"below 2\^63.* Cast them to float64"):
            tfr.evaluate_retrieval(vectors, candidates, [0, 1], ["mrr"])
    small = np.array([[2**30, 1], [1, 1]], "int64")
    assert tfr.evaluate_retrieval(small, small, [0, 1], ["mrr"]) == {"mrr": 3 / 4}


def test_a_score_that_reads_other_rows_is_refused():
    def softmax(queries, candidates):
        products = tf.matmul(queries, candidates, transpose_b=True)
        return tf.nn.softmax(products)

    vectors = np.random.default_rng(0).normal(size=(400, 8)).astype("float32")
    with pytest.raises(ValueError, match="as a softmax over the candidates does"):
        tfr.evaluate_retrieval(vectors[:5], vectors, range(5), ["mrr"], score=softmax)


def test_a_random_score_is_refused():
    def score(queries, candidates):
        return tf.random.normal((queries.shape[0], candidates.shape[0]))

    with pytest.raises(ValueError, match="must have the same score each time"):
        tfr.evaluate_retrieval(QUERIES, CANDIDATES, RELEVANT, ["mrr"], score=score)


def test_a_score_with_little_noise_is_refused():
    """It differs by no more than rounding might, but each time."""
    rng = np.random.default_rng(0)

    def score(queries, candidates):
        products = np.asarray(queries) @ np.asarray(candidates).T
        return products + rng.uniform(0, 1e-3, products.shape)

    with pytest.raises(ValueError, match="other scores for the same queries"):
        tfr.evaluate_retrieval(QUERIES, CANDIDATES, RELEVANT, ["mrr"], score=score)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("other", "is_alike"),
    [
        ([100.0, 0.0, 1.0], True),
        ([104.0, -3.0, 9.0], True),  # 10% of the largest number, as of bfloat16
        ([89.0, 0.0, 1.0], False),
        ([100.0, 0.0, 12.0], False),
        ([-100.0, 0.0, 1.0], False),
        ([100.0, np.nan, 1.0], False),
        ([np.inf, 0.0, 1.0], False),
    ],
)
def test_floats_of_a_dataset_may_differ_by_rounding(other, is_alike, dtype):
    first, same = [100.0, 0.0, 1.0], [np.nan, np.inf, -np.inf]
    one = np.array([same, first, [0, 0, 0]], dtype)
    again = np.array([same, other, [0, 0, 0]], dtype)
    assert streams._alike(one, again).tolist() == [True, is_alike, True]
    assert streams._alike(again, one).tolist() == [True, is_alike, True]


def test_integers_of_a_dataset_must_not_change():
    readings = []

    def vectors():
        readings.append(None)
        changed = [1, 0] if len(readings) == number_of_change else [1, 3]
        yield np.array([[2, 1], changed, [0, 5]])

    spec = tf.TensorSpec([None, 2], tf.int64)
    data = tf.data.Dataset.from_generator(vectors, output_signature=spec)
    arguments = np.array([[1, 1]]), data, [1], ["mrr"]
    number_of_change = None
    assert tfr.evaluate_retrieval(*arguments) == {"mrr": 0.5}
    number_of_change = len(readings) + 2
    with pytest.raises(ValueError, match="for the candidate at position 1"):
        tfr.evaluate_retrieval(*arguments)


def scores_and_thresholds(number, kind):
    """Scores that are integers, `[30, 300]`, some NaN, and thresholds for each row."""
    rng = np.random.default_rng(number)
    scores = rng.integers(0, 50, (30, 300)).astype("float32")
    thresholds = rng.integers(0, 50, (30, number)).astype("float32")
    if kind == "equal":
        scores[:20], thresholds[:10] = 7, 7
    elif kind == "extreme":
        scores[rng.uniform(size=scores.shape) < 0.1] = -np.inf
        scores[rng.uniform(size=scores.shape) < 0.1] = np.inf
        thresholds[::2] = rng.choice([-np.inf, np.inf, np.nan], (15, number))
        thresholds[1::4, 0] = np.finfo("float32").max
    elif kind == "nan":
        scores[rng.uniform(size=scores.shape) < 0.02] = np.nan
    return scores, thresholds


@pytest.mark.parametrize("is_rounded", [False, True])
@pytest.mark.parametrize("kind", ["plain", "equal", "extreme", "nan"])
@pytest.mark.parametrize("number", [1, 3, 24, 25, 200])
def test_all_ways_count_alike(number, kind, is_rounded, monkeypatch):
    scores, thresholds = scores_and_thresholds(number, kind)
    rng = np.random.default_rng(number)
    thresholds = np.sort(thresholds, axis=1)[:, ::-1]
    enough = rng.integers(0, 60, thresholds.shape)
    enough[rng.uniform(size=enough.shape) < 0.3] = 10**6
    enough[np.arange(number) >= rng.integers(0, number + 1, (30, 1))] = 0
    near, given = None, scores
    if is_rounded:
        given = scores + rng.uniform(-1.2, 1.2, scores.shape).astype("float32")
        near = comparing.Near(
            thresholds - np.float32(1.5),
            thresholds + np.float32(1.5),
            lambda rows, columns, places: np.ones(len(rows), bool),
            lambda rows, places: scores[rows, places],
        )
    own, limits = scores[:, np.newaxis], thresholds[:, :, np.newaxis]
    expected = (own > limits).sum(2), (own >= limits).sum(2)
    is_needed = expected[0] < enough
    monkeypatch.setattr(comparing, "SORT_START", 0)
    for most, first in itertools.product((0, 1000), (50, 10**6)):
        monkeypatch.setattr(comparing, "CORRECTIONS_AT_A_TIME", first)
        monkeypatch.setattr(comparing, "MOST_COMPARISONS", most)
        monkeypatch.setattr(comparing, "FIRST_COLUMNS", first)
        with comparing.concurrent.futures.ThreadPoolExecutor(2) as pool:
            found = comparing.compare(given.copy(), thresholds, enough, pool, near)
        for counts, exact in zip(found, expected, strict=False):
            np.testing.assert_array_equal(counts[is_needed], exact[is_needed])
        assert (found[0] >= np.minimum(expected[0], enough)).all()
        assert (found[0] <= expected[0]).all()


def test_a_count_ends_once_enough_scores_are_above():
    scores = np.arange(100_000, dtype="float32")[np.newaxis]
    thresholds = np.array([[99_990, 4_000, 10]], "float32")
    enough = np.full((1, 3), 11)
    with comparing.concurrent.futures.ThreadPoolExecutor(2) as pool:
        above, *_ = comparing.compare(scores, thresholds, enough, pool)
    # Of the first 4,096 scores, 95 and 4,085 are above the second and the third.
    assert above.tolist() == [[9, 95, 4_085]]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_few_scores_are_at_the_level_of_a_limit(dtype):
    rng = np.random.default_rng(0)
    scores = ([[1000], [3000]] * rng.normal(size=(2, 50_000))).astype(dtype)
    limits = np.sort(rng.choice(scores, 40, axis=1))
    ordered, start, stop = comparing._sorted_by_level(scores, limits, limits)
    assert (stop - start).sum() < 0.02 * scores.size
    for row, column in np.ndindex(limits.shape):
        number, limit = stop[row, column], limits[row, column]
        assert (scores[row, ordered[row, number:] % 2**16] > limit).all()
        assert (scores[row, ordered[row, : start[row, column]] % 2**16] < limit).all()


def test_limits_may_be_far_from_each_other():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 70_000)).astype("float32")
    limits = np.sort(scores[:, -30:], axis=1)
    limits[1, -1] = 1e20  # all scores are at one level
    near = np.float32(1e-3)
    counts = np.zeros((2, 3, 30), np.int64)
    found = comparing._found_by_sorting(scores, limits + near, limits - near, *counts)
    own = scores[:, np.newaxis]
    upper, lower = (limits + near)[..., np.newaxis], (limits - near)[..., np.newaxis]
    expected = (own > upper).sum(axis=2), (own >= lower).sum(axis=2)
    np.testing.assert_array_equal(counts, expected)
    is_near = (own <= upper) & (own >= lower)
    assert sorted(zip(*found, strict=True)) == sorted(
        zip(*is_near.nonzero(), strict=True)
    )


def test_a_row_has_more_scores_than_places():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2, 150_000)).astype("float32")
    limits = np.sort(scores[:, -30:], axis=1)
    counts = np.zeros((2, 2, 30), np.int64)
    rows, columns, places = comparing._found_by_sorting(scores, limits, limits, *counts)
    np.testing.assert_array_equal(scores[rows, places], limits[rows, columns])
    for row, column in np.ndindex(2, 30):
        expected = scores[row] > limits[row, column], scores[row] >= limits[row, column]
        assert [*counts[:, row, column]] == [each.sum() for each in expected]


@pytest.mark.parametrize("scale", [1e-30, 1e-16, 1.0, 1e16, 1e30])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_bounds_of_norms_hold_where_squares_overflow(dtype, scale):
    vectors = (scale * np.random.default_rng(0).normal(size=(50, 16))).astype(dtype)
    exact = np.array([math.hypot(*vector) for vector in vectors.tolist()])
    bounds = products.norms_of(vectors)
    assert (bounds >= exact).all()
    assert (bounds <= 4.1 * exact).all()  # sqrt(16) times the largest number
    vectors[3, 2], vectors[5, 0] = np.nan, np.inf
    assert np.flatnonzero(np.isnan(products.norms_of(vectors))).tolist() == [3, 5]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_bound_of_rounding_holds_for_narrow_floats(dtype):
    """Products that differ in float32 may be rounded to different neighbors."""
    rng, narrow = np.random.default_rng(0), tf.as_dtype(dtype).as_numpy_dtype
    queries, candidates = (
        (5 * rng.normal(size=(600, 32))).astype(narrow) for _ in range(2)
    )
    wide = queries.astype(np.float64) @ candidates.astype(np.float64).T
    shifted = wide * (1 + 1e-6 * rng.uniform(-1, 1, wide.shape))
    one, other = (each.astype(narrow).astype(np.float32) for each in (wide, shifted))
    rounding = products.Rounding(queries, ArrayCandidates(candidates, 600))
    assert not rounding.is_exact
    assert (one != other).sum() > 10
    assert (np.abs(one - other) <= rounding.most(one)).all()


@pytest.mark.parametrize("last", [0, -1])
@pytest.mark.parametrize("length", [3, 64, 4000])
@pytest.mark.parametrize(("dtype", "most"), [("float32", 1), ("float64", 2)])
def test_the_bound_of_rounding_is_reached(dtype, most, length, last):
    """Each small product is lost, where it is added to 1.

    In float64, the score that is computed again may be wrong in the other direction.
    """
    half = float(np.finfo(dtype).eps) / 2
    small = 2.0 ** (round(math.log2(half)) // 2)
    vectors = np.full((2, length), [[small], [half / small]], dtype)
    vectors[:, 0], vectors[:, -1] = 1, (abs(last), last)
    rounded = vectors.dtype.type(0)
    for product in vectors[0] * vectors[1]:
        rounded += product
    assert rounded == 1 + last
    lost = (length - 2) * half
    rounding = products.Rounding(vectors[:1], ArrayCandidates(vectors[1:], 1))
    bound = rounding.most(np.full((1, 1), rounded)).item() - 4 * half * abs(rounded)
    assert most * lost <= bound <= most * (length + 2) * half * 1.005


def test_all_vectors_must_hold_integers():
    vectors = np.ones((2500, 2), "float32")
    assert products.hold_integers(vectors)
    vectors[1500, 1] = 0.5
    assert not products.hold_integers(vectors)


@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (64, 64, 64), (65, 130, 63), (130, 9, 2), (300, 9000, 64)],
)
def test_tiles_multiply_like_the_whole(shape):
    rows, columns, length = shape
    rng = np.random.default_rng(0)
    queries, candidates = (
        rng.integers(-9, 10, (size, length)).astype("float32")
        for size in (rows, columns)
    )
    with comparing.concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = products.product_of_arrays(queries, candidates, pool=pool)
    np.testing.assert_array_equal(found, queries @ candidates.T)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
def test_products_of_integers_are_not_computed_again(dtype, monkeypatch):
    rng = np.random.default_rng(0)
    queries, candidates = (rng.choice([-1, 1], (n, 16)).astype(dtype) for n in (4, 500))
    truth = rng.choice(500, (4, 30))
    truth = [np.unique(each) for each in truth]
    monkeypatch.setattr(comparing, "_correct", None)
    values = tfr.evaluate_retrieval(queries, candidates, truth, ["ndcg@5", "auc"])
    scores = queries.astype("float64") @ candidates.T.astype("float64")
    expected = tfr.evaluate(truth, scores, ["ndcg@5", "auc"], inputs="catalogue")
    assert values == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([-1, 4, 5], True),
        ([0, 0, 0], True),
        ([-1, 4, 5.5], False),
        ([3000, 2000, 1000], False),  # a sum may exceed 2^24
        ([1, 2, np.inf], False),
        ([1, 2, np.nan], False),
    ],
)
def test_products_of_few_integers_are_exact(numbers, expected):
    vectors = np.tile(np.array(numbers, "float32"), (9, 4))
    candidates = ArrayCandidates(vectors, 4)
    assert products.Rounding(vectors[:3], candidates).is_exact is expected


@pytest.mark.parametrize("size", [1, 64, 100, 1000])
def test_a_dataset_of_candidates_gives_the_values_of_an_array(size):
    for number in range(4):
        queries, candidates, truth, exclude = case(number)
        dataset = tf.data.Dataset.from_tensor_slices(candidates).batch(size)
        of_queries = tf.data.Dataset.from_tensor_slices(queries).batch(2)
        names = ["ndcg@5", "mrr", "auc"]
        array = tfr.evaluate_retrieval(
            queries, candidates, truth, names, exclude=exclude
        )
        stream = tfr.evaluate_retrieval(
            of_queries, dataset, truth, names, exclude=exclude
        )
        assert stream == pytest.approx(array, rel=1e-14, nan_ok=True)


def test_a_dataset_is_read_twice():
    batches = []

    def tower(batch):
        batches.append(len(batch))
        return batch

    candidates = np.random.default_rng(0).normal(size=(300, 4)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices(candidates).batch(100)
    relevant = [[-1, 7], [299, 100]]
    tfr.evaluate_retrieval(
        candidates[:2], dataset, relevant, ["mrr"], candidate_tower=tower
    )
    assert batches == [128] * 6  # with the last row repeated


def test_a_dataset_that_changes_its_order_is_refused():
    rng = np.random.default_rng(0)
    candidates = rng.normal(size=(300, 4)).astype("float32")

    def in_any_order():
        yield from rng.permutation(candidates)

    spec = tf.TensorSpec(4)
    shuffled = tf.data.Dataset.from_generator(in_any_order, output_signature=spec)
    queries = candidates[:20]
    with pytest.raises(ValueError, match="in the same order each time"):
        tfr.evaluate_retrieval(queries, shuffled.batch(50), np.arange(20), ["mrr"])


@pytest.mark.parametrize("reshuffle", [True, False])
def test_a_shuffled_dataset_is_refused(reshuffle):
    vectors = np.eye(9)
    rows = tf.data.Dataset.from_tensor_slices(vectors)
    shuffled = (
        rows.shuffle(300, reshuffle_each_iteration=reshuffle).batch(7).prefetch(1)
    )
    ids = np.arange(9)
    with pytest.raises(
        ValueError, match=r"row for each query must .* with shuffle\(\)"
    ):
        tfr.evaluate_retrieval(shuffled, vectors, ids, ["mrr"])
    with pytest.raises(
        ValueError, match=r"positions of candidates must .* with shuffle"
    ):
        tfr.evaluate_retrieval(vectors, shuffled, ids, ["mrr"])


def test_a_score_that_reads_other_candidates_is_refused():
    rng = np.random.default_rng(0)
    queries, candidates = rng.normal(size=(40, 8)), rng.normal(size=(600, 8))

    def softmax(queries, candidates):
        return tf.nn.softmax(tf.matmul(queries, candidates, transpose_b=True))

    with pytest.raises(ValueError, match="as a softmax over the candidates does"):
        tfr.evaluate_retrieval(
            queries, candidates, np.arange(40), ["mrr"], score=softmax, chunk_size=64
        )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_copies_are_tied_when_towers_make_the_vectors(dtype):
    """The last batch of a tower is smaller, and would have other last bits."""
    rng = np.random.default_rng(0)
    queries, candidates = rng.normal(size=(40, 256)), rng.normal(size=(601, 256))
    candidates[-1] = candidates[0]
    towers = [tf.keras.layers.Dense(256, dtype=dtype) for _ in range(2)]
    for given in (
        candidates,
        tf.data.Dataset.from_tensor_slices(candidates).batch(300),
    ):
        found = tfr.evaluate_retrieval(
            queries,
            given,
            [0] * 40,
            ["tied"],
            query_tower=towers[0],
            candidate_tower=towers[1],
            chunk_size=300,
        )
        assert found == {"tied": 1.0}


def test_labels_in_place_of_positions_are_a_warning():
    labels = np.random.default_rng(0).integers(0, 4, (len(QUERIES), len(CANDIDATES)))
    with pytest.warns(tfr.RankingWarning, match="probably labels") as caught:
        tfr.evaluate_retrieval(QUERIES, CANDIDATES, labels, ["mrr"])
    assert caught[0].filename == __file__
    padded = np.where(labels > 1, -1, labels)
    with pytest.raises(ValueError, match="not a 0 or 1 for each candidate"):
        tfr.evaluate_retrieval(QUERIES, CANDIDATES, padded, ["mrr"])


def test_padded_positions_as_wide_as_the_catalogue_are_no_labels():
    relevant = [[0, -1, -1, -1], [1, 0, -1, -1], [-1, -1, -1, -1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tfr.evaluate_retrieval(
            QUERIES, CANDIDATES, relevant, ["recall@1"], per_query=True
        )
    assert found["recall@1"][:2].tolist() == [1.0, 0.5]


def test_towers_of_another_model_are_a_warning():
    towers = [tf.keras.layers.Embedding(9, 4) for _ in range(2)]
    for tower in towers:
        tower(tf.range(3))
    ids = np.arange(9)
    callback = tfr.EvaluateRetrieval(
        ids, ids, ids, ["mrr"], query_tower=towers[0], candidate_tower=towers[1]
    )
    for embedding, expected in ((tf.keras.layers.Embedding(9, 4), 1), (towers[0], 0)):
        model = tf.keras.Sequential([embedding, tf.keras.layers.Dense(9)])
        model.build((None,))
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", tfr.RankingWarning)
            model.fit(ids, ids, verbose=0, callbacks=[callback])
        of_towers = [
            w for w in caught if "without any of its weights" in str(w.message)
        ]
        assert len(of_towers) == expected


def test_vectors_that_are_no_arrays_are_refused():
    column = pd.Series([*QUERIES])
    with pytest.raises(ValueError, match=r"Pass np.stack\(column\)"):
        tfr.evaluate_retrieval(column, CANDIDATES, RELEVANT, ["mrr"])
    with pytest.raises(ValueError, match="rows of different lengths"):
        tfr.evaluate_retrieval([[1.0], [1.0, 2.0]], CANDIDATES, [0, 1], ["mrr"])
    masked = np.ma.masked_array(CANDIDATES, np.asarray(CANDIDATES) > 0)
    with pytest.raises(ValueError, match="`candidates`"):
        tfr.evaluate_retrieval(QUERIES, masked, RELEVANT, ["mrr"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": ["de"]}, "a value for each query"),
        ({"sample_weight": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]}, "sample_weight"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
    ],
)
def test_mistakes_of_the_callback_raise_before_the_training(arguments, message):
    with pytest.raises(ValueError, match=message):
        tfr.EvaluateRetrieval(
            QUERIES, CANDIDATES, RELEVANT, ["mrr"], score=tf.matmul, **arguments
        )


@pytest.mark.parametrize("replicas", [2, 4])
def test_the_values_of_replicas_are_those_of_one_device(replicas):
    queries, candidates, truth, exclude = case(1)
    names = ["ndcg@5", "mrr", "map", "auc"]
    arguments = queries, candidates, truth, names
    options = {"exclude": exclude, "chunk_size": 10, "per_query": True}
    one = tfr.evaluate_retrieval(*arguments, **options)
    used = set()

    def score(queries, candidates):
        product = tf.matmul(queries, candidates, transpose_b=True)
        used.add(product.device)
        return product

    devices = [f"CPU:{number}" for number in range(replicas)]
    with tf.distribute.MirroredStrategy(devices).scope():
        many = tfr.evaluate_retrieval(*arguments, score=score, **options)
    assert len(used) == replicas
    for name in names:
        np.testing.assert_array_equal(many[name], one[name])


def test_towers_make_the_vectors():
    rng = np.random.default_rng(0)
    tower = tf.keras.Sequential([tf.keras.layers.Dense(4)])
    items = tf.keras.layers.Embedding(30, 4)
    features, relevant = rng.normal(size=(10, 3)).astype("float32"), np.arange(10)
    found = tfr.evaluate_retrieval(
        features,
        np.arange(30),
        relevant,
        ["mrr", "ndcg@3"],
        query_tower=tower,
        candidate_tower=items,
        batch_size=64,
    )
    vectors = tower.predict(features, verbose=0), items(np.arange(30)).numpy()
    expected = tfr.evaluate_retrieval(*vectors, relevant, ["mrr", "ndcg@3"])
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_dropout_of_a_tower_is_off():
    tower = tf.keras.Sequential([tf.keras.layers.Dropout(0.9)])
    vectors = np.random.default_rng(0).normal(size=(50, 16)).astype("float32")
    others = vectors, np.arange(50), ["arp", "mrr"]
    found = tfr.evaluate_retrieval(vectors, *others, query_tower=tower)
    assert found == tfr.evaluate_retrieval(vectors, *others)


def test_towers_with_dropout_on_replicas():
    devices = [device.name for device in tf.config.list_logical_devices("CPU")]
    with tf.distribute.MirroredStrategy(devices).scope():
        tower = tf.keras.Sequential(
            [tf.keras.layers.Dense(4), tf.keras.layers.Dropout(0.5)]
        )
        features = np.random.default_rng(0).normal(size=(50, 3)).astype("float32")
        others = np.eye(4, dtype="float32"), np.arange(50) % 4, ["arp"]
        found = tfr.evaluate_retrieval(features, *others, query_tower=tower)
    vectors = tower(features, training=False)
    assert found == tfr.evaluate_retrieval(vectors, *others)


def test_a_tower_may_take_a_dict_and_read_a_dataset():
    features = {"id": np.arange(6), "price": np.linspace(0, 1, 6).astype("float32")}

    def tower(batch):
        return tf.stack([tf.cast(batch["id"], tf.float32), batch["price"]], axis=1)

    vectors = tower({name: tf.constant(each) for name, each in features.items()})
    queries, relevant = [[1.0, 0.5], [-1.0, 1.0]], [1, 2]
    expected = tfr.evaluate_retrieval(queries, vectors, relevant, ["arp"])
    dataset = tf.data.Dataset.from_tensor_slices(features).batch(4)
    for candidates in (features, dataset):
        found = tfr.evaluate_retrieval(
            queries, candidates, relevant, ["arp"], candidate_tower=tower
        )
        assert found == expected


def test_a_score_function_ranks_by_distance():
    def closeness(queries, candidates):
        return -tf.norm(queries[:, tf.newaxis] - candidates[tf.newaxis], axis=2)

    points = [[0.0, 0.0], [1.0, 1.0], [3.0, 3.0]]
    found = tfr.evaluate_retrieval(
        [[0.9, 0.9], [0.1, 0.0]], points, [1, 2], ["mrr"], score=closeness
    )
    assert found == {"mrr": (1 + 1 / 3) / 2}


@pytest.mark.parametrize("kind", [list, np.array])
def test_ids_of_candidates(kind):
    ids = kind(["shoe", "hat", "tie", "sock"])
    arguments = QUERIES, CANDIDATES
    found = tfr.evaluate_retrieval(
        *arguments,
        [["shoe"], ["tie", "hat"], ["sock"]],
        ["mrr", "ndcg@2"],
        candidate_ids=ids,
        exclude=[["hat"], [], ["shoe", "tie"]],
    )
    assert found == tfr.evaluate_retrieval(
        *arguments,
        [[0], [2, 1], [3]],
        ["mrr", "ndcg@2"],
        exclude=[[1], [], [0, 2]],
    )
    numbers = tfr.evaluate_retrieval(
        *arguments, [70, 50, 40], ["mrr"], candidate_ids=kind([70, 60, 50, 40])
    )
    assert numbers == tfr.evaluate_retrieval(*arguments, RELEVANT, ["mrr"])


def test_weights_slices_and_numbers_of_queries():
    languages = ["de", "en", "de"]
    arguments = QUERIES, CANDIDATES, RELEVANT
    # By arithmetic: the ranks are 1, 2 and 4.
    weighted = tfr.evaluate_retrieval(*arguments, ["mrr"], sample_weight=[1, 2, 1])
    assert weighted == {"mrr": (1 + 2 / 2 + 1 / 4) / 4}
    by = tfr.evaluate_retrieval(*arguments, ["mrr"], by={"language": languages})
    assert by.whole["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 4) / 3)
    assert (by["de"]["mrr"], by["en"]["mrr"]) == ((1 + 1 / 4) / 2, 1 / 2)
    counted = tfr.evaluate_retrieval(
        QUERIES, CANDIDATES, [0, -1, 3], ["mrr"], num_queries=True
    )
    assert counted == {"mrr": (1 + 1 / 4) / 2, "num_queries": 2}


def test_an_excluded_relevant_item_counts_as_missed():
    found = tfr.evaluate_retrieval(
        QUERIES, CANDIDATES, RELEVANT, ["recall@4"], exclude=[[0], [1], [1]]
    )
    assert found == {"recall@4": pytest.approx(2 / 3)}


def test_scores_of_minus_infinity_are_not_retrieved():
    def score(queries, candidates):
        scores = tf.matmul(queries, candidates, transpose_b=True)
        return tf.where(scores < 0.35, -np.inf, scores)

    found = tfr.evaluate_retrieval(
        QUERIES, CANDIDATES, RELEVANT, ["recall@4", "mrr"], score=score, per_query=True
    )
    scores = np.array(QUERIES) @ np.array(CANDIDATES).T
    whole = tfr.evaluate(
        RELEVANT,
        np.where(scores < 0.35, -np.inf, scores),
        ["recall@4", "mrr"],
        inputs="catalogue",
        per_query=True,
    )
    for name, values in whole.items():
        np.testing.assert_array_equal(found[name], values)


def discounted_hits(lists, relevance):
    hits = lists.expected(relevance) * 0.5**lists.ranks
    return lists.sum_to_cutoffs(hits)


def test_a_metric_of_ones_own():
    @tfr.metric("hits_test", formula=discounted_hits, gain=tfr.BinaryGain)
    class DiscountedHits(tfr.TopKMetric):
        """Hits, discounted by a half at each rank."""

        relevance_threshold: float = 1.0

    try:
        found = tfr.evaluate_retrieval(
            QUERIES,
            CANDIDATES,
            RELEVANT,
            [DiscountedHits(), "hits_test@3"],
            per_query=True,
        )
        np.testing.assert_array_equal(found["hits_test"], [1 / 2, 1 / 4, 1 / 16])
        np.testing.assert_array_equal(found["hits_test@3"], [1 / 2, 1 / 4, 0])
    finally:
        DECLARATIONS.pop("hits_test")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"relevant": [0, 1]}, "`relevant` must have a row for each query"),
        ({"relevant": [0, 1, 4]}, "from 0 to 3, or -1 for padding. Received in `rele"),
        ({"relevant": [0, 1, -2]}, "Ids must be positions"),
        ({"relevant": ["a", "b", "c"]}, "real numbers of at most 64 bits|candidate_id"),
        ({"relevant": [[[0]], [[1]], [[2]]]}, r"must hold ids \[B\] or \[B, M\]"),
        ({"exclude": [[9], [], []]}, "Received in `exclude`: 9"),
        ({"exclude": [[1]]}, "`exclude` must have a row for each query"),
        ({"exclude": [1, 1, 1]}, r"`exclude` must hold ids \[B, E\]"),
        ({"candidate_ids": [0, 2, 3]}, "an id for each candidate"),
        ({"candidate_ids": [0, 0, 2, 3]}, "must be unique. Received: 0 twice"),
        ({"candidate_ids": [-5, 0, 2, 3]}, "must be at least 0.*Received: -5"),
        (
            {"candidate_ids": [0, 1, 2, 3], "relevant": [0, 1, 9]},
            "must hold ids that are in `candidate_ids`",
        ),
        (
            {"relevant": {"ids": [0, 1, 2], "relevance": [1, 1, np.nan]}},
            "'relevance' must hold finite numbers",
        ),
        (
            {"candidates": [[1.0, 0.0]] * 3, "relevant": [[0, 0, 1]] * 3},
            "not a 0 or 1 for each candidate",
        ),
        (
            {"candidate_ids": [10, 11, 12, 13]},
            "must hold ids that are in `candidate_ids`",
        ),
        ({"queries": [[1.0], [2.0], [3.0]]}, "vectors of the same length"),
        ({"queries": []}, "`queries` must not be empty"),
        ({"candidates": np.zeros((0, 2))}, "`candidates` must not be empty"),
        ({"queries": 1.0}, "a row for each"),
        ({"metrics": ["opa"]}, "`opa` supports only"),
        ({"metrics": ["alpha_dcg@3"]}, "supports only"),
        ({"chunk_size": 0}, "`chunk_size` must be at least 1"),
        ({"batch_size": 2.5}, "`batch_size` of `evaluate_retrieval` must be"),
        ({"score": lambda q, c: q}, r"a score for each query and candidate, \[B, C\]"),
        ({"sample_weight": [1, 2]}, "one weight per query"),
        ({"sample_weight": [1, 2, -1]}, "finite numbers of at least 0"),
        ({"by": ["de"]}, "`by` must have a value for each query"),
        ({"tie": "best"}, "Did you mean 'ties'"),
        ({"score": "dot"}, "`score` must be a function"),
        ({"score": lambda q, c: tf.matmul(c, q, transpose_b=True)}, "the last rows"),
        ({"candidate_tower": "items"}, "`candidate_tower` must be a function"),
        ({"relevant": np.eye(3, 4, dtype=int)}, "not a 0 or 1 for each candidate"),
        ({"queries": [["a"], ["b"], ["c"]], "candidates": [["a"]] * 4}, "real numbers"),
        (
            {"relevant": {"ids": RELEVANT, "exclude": [[1]] * 3}, "exclude": [[2]] * 3},
            "must be passed once",
        ),
        (
            {"relevant": ["a", "b", "z"], "candidate_ids": ["a", "b", "c", "d"]},
            "an unknown id in row 2: 'z'",
        ),
    ],
)
def test_mistakes(changes, message):
    arguments = {
        "queries": QUERIES,
        "candidates": CANDIDATES,
        "relevant": RELEVANT,
        "metrics": ["mrr"],
        **changes,
    }
    with pytest.raises((ValueError, TypeError), match=message):
        tfr.evaluate_retrieval(**arguments)


def test_datasets_that_cannot_work():
    endless = tf.data.Dataset.from_tensors(CANDIDATES).repeat()
    with pytest.raises(ValueError, match="`candidates` must be finite"):
        tfr.evaluate_retrieval(QUERIES, endless, RELEVANT, ["mrr"])
    empty = tf.data.Dataset.from_tensor_slices(CANDIDATES).batch(2).take(0)
    with pytest.raises(ValueError, match="`candidates` must not be empty"):
        tfr.evaluate_retrieval(QUERIES, empty, RELEVANT, ["mrr"])


def test_a_generator_that_does_not_start_again_is_refused():
    batches = iter([np.array(CANDIDATES[:3]), np.array(CANDIDATES[3:])])
    spec = tf.TensorSpec([None, 2], tf.float64)
    once = tf.data.Dataset.from_generator(lambda: batches, output_signature=spec)
    with pytest.raises(
        ValueError, match=r"4, and then 0. A generator must be restartable"
    ):
        tfr.evaluate_retrieval(QUERIES, once, RELEVANT, ["mrr"])


def test_empty_batches_and_rows():
    spec = tf.TensorSpec([None, 2], tf.float64)
    parts = [np.zeros((0, 2)), np.array(CANDIDATES), np.zeros((0, 2))]
    dataset = tf.data.Dataset.from_generator(lambda: iter(parts), output_signature=spec)
    found = tfr.evaluate_retrieval(QUERIES, dataset, RELEVANT, ["mrr"])
    assert found == tfr.evaluate_retrieval(QUERIES, CANDIDATES, RELEVANT, ["mrr"])
    nothing = tfr.evaluate_retrieval(QUERIES, CANDIDATES, [[], [], []], ["mrr"])
    assert np.isnan(nothing["mrr"])


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "int64"])
def test_products_of_integers_do_not_overflow(dtype):
    largest = min(np.iinfo(dtype).max, 2**20)
    queries, candidates = np.array([[largest, 1]], dtype), np.eye(3, 2, dtype=dtype)
    candidates[2, 0] = largest
    found = tfr.evaluate_retrieval(queries, candidates, [2], ["mrr"])
    assert found == {"mrr": 1.0}


def test_vectors_of_two_dtypes():
    queries = tf.cast(QUERIES, tf.bfloat16)
    for dtype in ("float16", "float32", "float64", "int32"):
        candidates = tf.cast(4 * np.array(CANDIDATES), dtype)
        found = tfr.evaluate_retrieval(queries, candidates, RELEVANT, ["arp"])
        scores = np.array(QUERIES) @ np.asarray(candidates, float).T
        expected = tfr.evaluate(RELEVANT, scores, ["arp"], inputs="catalogue")
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("swap", [False, True])
def test_integers_and_floats_make_a_product_of_floats(swap):
    floats = np.array([[0.25, 0.5], [0.75, 0.5]], "float32")
    integers = np.array([[1, 0], [0, 1], [1, 1]])
    queries, candidates = (integers, floats) if swap else (floats, integers)
    found = tfr.evaluate_retrieval(
        queries, candidates, np.zeros(len(queries), int), ["arp"], per_query=True
    )
    scores = queries.astype(float) @ candidates.T.astype(float)
    above = (scores[:, 1:] > scores[:, :1]).sum(axis=1)
    tied = (scores[:, 1:] == scores[:, :1]).sum(axis=1)
    assert found["arp"].tolist() == (1 + above + tied / 2).tolist()


def test_a_product_of_integers_and_floats_is_a_float64():
    integers = np.array([[2**24], [2**24 + 1]])  # equal in float32
    floats = np.ones((1, 1), "float32")
    found = tfr.evaluate_retrieval(floats, integers, [0], ["mrr"])
    assert found == {"mrr": 0.5}


@pytest.mark.parametrize("odd", range(4))
def test_scores_of_minus_infinity_are_found_in_every_row(odd, monkeypatch):
    rng = np.random.default_rng(0)
    queries, candidates = rng.normal(size=(2, 40, 3)).astype("float32")
    ids, of_odd = np.arange(40), queries[odd]

    def score(queries, candidates):
        products = tf.matmul(queries, candidates, transpose_b=True)
        is_odd = tf.reduce_all(queries == of_odd, axis=1, keepdims=True)
        return tf.where(is_odd & (products < 0.5), -np.inf, products)

    others = candidates, ids, ["mrr", "recall@5", "precision@40", "auc"]
    expected = tfr.evaluate(
        ids, score(queries, candidates), others[2], inputs="catalogue"
    )
    monkeypatch.setattr(comparing, "COMPARISONS_AT_A_TIME", 1)
    found = tfr.evaluate_retrieval(queries, *others, score=score)
    assert found == pytest.approx(expected, rel=1e-12)


def test_batches_and_chunks_may_have_one_row():
    found = tfr.evaluate_retrieval(
        QUERIES, CANDIDATES, RELEVANT, ["arp"], batch_size=1, chunk_size=1
    )
    assert found == tfr.evaluate_retrieval(QUERIES, CANDIDATES, RELEVANT, ["arp"])


def test_a_graph_is_refused():
    @tf.function
    def in_graph():
        return tfr.evaluate_retrieval(QUERIES, CANDIDATES, RELEVANT, ["mrr"])

    with pytest.raises(RuntimeError, match="must be called eagerly"):
        in_graph()


def test_a_progress_bar(capsys):
    tfr.evaluate_retrieval(QUERIES, CANDIDATES, RELEVANT, ["mrr"], verbose=True)
    assert capsys.readouterr().err.endswith("4 of 4 candidates\n")


class TwoTowers(tf.keras.Model):
    """Two embeddings, trained on the other items of the batch."""

    def __init__(self, size=20):
        super().__init__()
        self.users = tf.keras.layers.Embedding(size, 8)
        self.items = tf.keras.layers.Embedding(size, 8)

    def call(self, inputs):
        users, items = self.users(inputs["user"]), self.items(inputs["item"])
        return tf.matmul(users, items, transpose_b=True)


def test_two_towers_stop_early_on_their_rank_among_all_items():
    tf.keras.utils.set_random_seed(0)
    model, ids = TwoTowers(), np.arange(20)
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(True))
    data = tf.data.Dataset.from_tensor_slices({"user": ids, "item": ids}).batch(10)
    data = data.map(lambda inputs: (inputs, tf.range(10)))
    history = model.fit(
        data,
        epochs=30,
        shuffle=False,
        verbose=0,
        callbacks=[
            tfr.EvaluateRetrieval(
                ids,
                ids,
                ids,
                ["mrr", "arp"],
                query_tower=model.users,
                candidate_tower=model.items,
                by={"half": ids % 2},
            ),
            tf.keras.callbacks.EarlyStopping("val_arp", mode="min", min_delta=5),
        ],
    ).history
    assert {"loss", "val_mrr", "val_arp/half:1"} <= set(history)
    assert len(history["val_arp"]) < 30
    vectors = model.users(ids), model.items(ids)
    expected = tfr.evaluate_retrieval(*vectors, ids, ["mrr"])
    assert history["val_mrr"][-1] == pytest.approx(expected["mrr"], rel=1e-12)


def test_the_callback_must_come_before_those_that_read_its_values():
    model = TwoTowers()
    callback = tfr.EvaluateRetrieval(
        [0],
        range(9),
        [0],
        ["mrr"],
        query_tower=model.users,
        candidate_tower=model.items,
    )
    stop = tf.keras.callbacks.EarlyStopping("val_mrr")
    with pytest.raises(ValueError, match="EarlyStopping before it"):
        tf.keras.callbacks.CallbackList([stop, callback], model=model).on_train_begin()


def test_the_callback_checks_its_arguments_before_the_training():
    users, items = (tf.keras.layers.Embedding(9, 2) for _ in range(2))
    towers = {"query_tower": users, "candidate_tower": items}
    for relevant, message in (([0, 9], "from 0 to 8"), ([0], "a row for each query")):
        with pytest.raises(ValueError, match=message):
            tfr.EvaluateRetrieval([0, 1], np.arange(9), relevant, ["mrr"], **towers)


def test_the_callback_needs_a_part_of_the_model():
    with pytest.raises(ValueError, match="the parts of the model that score"):
        tfr.EvaluateRetrieval(QUERIES, CANDIDATES, RELEVANT, ["mrr"])


def test_repeated_positions_among_two_candidates_are_not_labels():
    """With so few candidates, [0, 0] is as likely an id that comes twice."""
    vectors = [[1.0, 0.0], [0.0, 1.0]]
    found = tfr.evaluate_retrieval(vectors, vectors, [[0, 0], [1, 1]], ["mrr"])
    assert found == {"mrr": 1.0}


class CountsTraces(tf.keras.layers.Layer):
    """A tower that counts how often it is traced."""

    def __init__(self):
        super().__init__()
        self.traces = 0

    def call(self, inputs):
        self.traces += 1
        return inputs


def test_a_tower_is_compiled_once_and_is_freed():
    queries, candidates = np.eye(5, 8, dtype="float32"), np.eye(8, dtype="float32")
    towers = CountsTraces(), CountsTraces()
    for _ in range(3):
        value = tfr.evaluate_retrieval(
            queries,
            candidates,
            range(5),
            ["mrr"],
            query_tower=towers[0],
            candidate_tower=towers[1],
        )
        assert value == {"mrr": 1.0}
    assert [tower.traces for tower in towers] == [1, 1]
    remains = [weakref.ref(tower) for tower in towers]
    del towers
    gc.collect()
    assert [each() for each in remains] == [None, None]


def test_a_callback_with_towers_can_be_pickled():
    dense = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(3)])
    vectors = np.eye(8, dtype="float32")
    callback = tfr.EvaluateRetrieval(
        vectors, vectors, range(8), ["mrr"], query_tower=dense, candidate_tower=dense
    )
    copy = pickle.loads(pickle.dumps(callback))
    for each in (callback, copy):
        each.set_params({"verbose": 0})
    assert copy._values() == callback._values()


@pytest.mark.parametrize("library", ["numpy", "tensorflow"])
@pytest.mark.parametrize(("dtype", "scale"), [("float16", 300), ("float32", 1e20)])
def test_products_that_overflow_are_an_error(library, dtype, scale):
    """As -inf, they would mean that a candidate was not retrieved."""
    rng = np.random.default_rng(0)
    queries, candidates = (
        (scale * rng.normal(size=(size, 8))).astype(dtype) for size in (20, 200)
    )
    relevant = np.argmax(queries.astype(float) @ candidates.astype(float).T, axis=1)
    if library == "tensorflow":
        queries, candidates = tf.constant(queries), tf.constant(candidates)
    with pytest.raises(ValueError, match=f"finite.*vectors of {dtype}, and a product"):
        tfr.evaluate_retrieval(queries, candidates, relevant, ["recall@1"])
    wide = (np.asarray(each, np.float64) for each in (queries, candidates))
    assert tfr.evaluate_retrieval(*wide, relevant, ["recall@1"]) == {"recall@1": 1.0}


@pytest.mark.parametrize("library", [np.asarray, tf.constant])
def test_an_overflow_of_an_irrelevant_candidate_is_an_error(library):
    queries, candidates = (
        library(np.array(each, "float32")) for each in ([[1e20]], [[1.0], [-1e20]])
    )
    with pytest.raises(ValueError, match=r"finite.*vectors of float32, and a product"):
        tfr.evaluate_retrieval(queries, candidates, [0], ["mrr"])
    one_of_two = library(np.array([[1e20], [1.0]], "float32"))
    with pytest.raises(ValueError, match=r"finite.*vectors of float32, and a product"):
        tfr.evaluate_retrieval(queries, one_of_two, [[0, 1]], ["mrr"])


@pytest.mark.parametrize("library", [np.asarray, tf.constant])
def test_the_best_candidates_may_be_excluded(library):
    """Each of the first eight is the highest score of a part of the candidates."""
    candidates = library(-np.arange(2000, dtype="float32")[:, np.newaxis])
    queries = library(np.ones((2, 1), "float32"))
    exclude = [[0, 1, 2, 3, 4], [7, 5, 0, -1, -1]]
    found = tfr.retrieve(queries, candidates, k=3, exclude=exclude)
    assert found.ids.tolist() == [[5, 6, 7], [1, 2, 3]]
    found = tfr.evaluate_retrieval(
        queries,
        candidates,
        [5, 1],
        ["mean_popularity@3"],
        exclude=exclude,
        popularity=np.arange(2000.0),
        per_query=True,
    )
    assert found["mean_popularity@3"].tolist() == [6, 2]


def test_vectors_that_are_not_finite_are_no_overflow():
    queries = np.array([[1.0, 0.0]])
    candidates = np.array([[1.0, 0.0], [-np.inf, 0.0], [0.5, 0.0]])
    with np.errstate(invalid="ignore"):
        found = tfr.evaluate_retrieval(queries, candidates, [0], ["mrr"])
    assert found == {"mrr": 1.0}


def test_more_candidates_above_than_a_byte_counts():
    """The relevant item is the last of 9,000."""
    candidates = np.arange(9_000, 0, -1.0)[:, np.newaxis]
    found = tfr.evaluate_retrieval([[1.0]] * 3, candidates, [8_999] * 3, ["mrr"])
    assert found == {"mrr": pytest.approx(1 / 9_000)}


@pytest.mark.parametrize("library", ["numpy", "tensorflow"])
def test_more_relevant_items_than_are_scored_at_a_time(library):
    rng = np.random.default_rng(0)
    queries, candidates = rng.normal(size=(2, 4)), rng.normal(size=(7_000, 4))
    relevant = [rng.permutation(7_000)[:5_000], rng.permutation(7_000)[:4_500]]
    names = ["map", "recall@100", "auc"]
    expected = tfr.evaluate(
        [each.tolist() for each in relevant],
        queries @ candidates.T,
        names,
        inputs="catalogue",
    )
    if library == "tensorflow":
        queries, candidates = tf.constant(queries), tf.constant(candidates)
    found = tfr.evaluate_retrieval(queries, candidates, relevant, names)
    assert found == pytest.approx(expected, rel=1e-12)


def test_excluded_candidates_that_were_not_retrieved_count_once():
    """A candidate may be excluded and have the score -inf: it is one candidate."""
    scores = np.array([[3.0, -np.inf, 2.0, -np.inf, 1.0, 0.5]])
    truth = {"ids": [[2, 3]], "exclude": [[1, 0]]}
    names = ["auc", "arp"]
    expected = tfr.evaluate(truth, scores, names, inputs="catalogue")
    found = tfr.evaluate_retrieval(
        np.zeros((1, 1)),
        np.arange(6.0)[:, np.newaxis],
        truth,
        names,
        score=lambda queries, items: np.asarray(scores)[
            :, np.asarray(items)[:, 0].astype(int)
        ].repeat(len(queries), axis=0),
    )
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("kind", [np.asarray, tf.constant])
@pytest.mark.parametrize("chunk_size", [None, 7])
def test_retrieve_returns_the_best_candidates(kind, chunk_size):
    """Whole numbers are often tied; the first of tied candidates is the best."""
    rng = np.random.default_rng(0)
    queries, candidates = (rng.integers(-2, 3, (n, 3)).astype("f") for n in (5, 30))
    scores = queries @ candidates.T
    exclude = np.argsort(-scores, axis=1)[:, :2]
    expected = scores.copy()
    np.put_along_axis(expected, exclude, -np.inf, axis=1)
    order = np.argsort(-expected, axis=1, kind="stable")[:, :4]
    arguments = kind(queries), kind(candidates), 4
    options = {"batch_size": 2, "chunk_size": chunk_size}
    found = tfr.retrieve(*arguments, exclude=exclude, **options)
    np.testing.assert_array_equal(found.ids, order)
    np.testing.assert_array_equal(found.scores, np.take_along_axis(scores, order, 1))
    names = np.array([f"item {number}" for number in range(30)])
    named = tfr.retrieve(
        *arguments, candidate_ids=names, exclude=names[exclude], **options
    )
    np.testing.assert_array_equal(named.ids, names[order])


def test_retrieve_fills_up_what_was_not_retrieved():
    lowest = np.finfo(np.float64).min
    vectors = np.array([[1.0], [-np.inf], [np.nan], [lowest]])
    found = tfr.retrieve(vectors[:1], vectors, 9)
    assert found.ids.tolist() == [[0, 3, 2, -1]]
    np.testing.assert_array_equal(found.scores, [[1, lowest, np.nan, -np.inf]])
    named = tfr.retrieve(vectors[:1], vectors, 4, candidate_ids=["a", "b", "c", "d"])
    assert named.ids.tolist() == [["a", "d", "c", None]]
    assert tfr.retrieve(vectors[:1], vectors, 1).ids.tolist() == [[0]]
    for k in (0, None, 2.5):
        with pytest.raises(ValueError, match="`k` of `retrieve` must be"):
            tfr.retrieve(vectors[:1], vectors, k)


def test_retrieve_finds_candidates_after_a_chunk_without_any():
    vectors = np.eye(6, dtype="float32")
    found = tfr.retrieve(vectors[:1], vectors, 2, exclude=[[0, 1]], chunk_size=2)
    assert found.ids.tolist() == [[2, 3]]
    nothing = tfr.retrieve(vectors[:1], vectors[:2], 2, exclude=[[0, 1]])
    assert nothing.ids.tolist() == [[-1, -1]]
