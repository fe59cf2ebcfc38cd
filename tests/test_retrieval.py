"""Tests `evaluate_retrieval` and its callback: exact ranks among all candidates."""

import gc
import math
import pickle
import tracemalloc
import warnings
import weakref

import numpy as np
import pytest
import tensorflow as tf
from cases import METRICS

import tfrankmetrics as trm

QUERIES = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
CANDIDATES = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.6], [0.3, 0.3]]
RELEVANT = [0, 2, 3]
WITHOUT_CUTOFF = sorted(
    name
    for name, declaration in METRICS.items()
    if "catalog" in declaration.inputs and name != "judged"
)
NAMES = WITHOUT_CUTOFF + [
    f"{name}@{k}" for name in WITHOUT_CUTOFF for k in (1, 5) if METRICS[name].has_cutoff
]

# Random items to exclude may be relevant ones.
pytestmark = pytest.mark.filterwarnings("ignore:`exclude` removes items from")


def random_catalog(rng):
    """Vectors with copies, neighbors in the last place, zeros, NaN and infinity."""
    name = rng.choice(["int8", "int64", "float16", "bfloat16", "float32", "float64"])
    dtype = np.dtype(tf.as_dtype(name).as_numpy_dtype)
    number = int(rng.integers(1, rng.choice([10, 300, 2000])))
    width = rng.choice([1, 2, 3, 17, 64, 130])
    if dtype.kind == "i":
        queries, candidates = (rng.integers(-5, 6, (n, width)) for n in (4, number))
        if name == "int64" and rng.random() < 0.3:  # products above 2^53
            queries, candidates = (2**25 * v + 1 for v in (queries, candidates))
        return queries.astype(dtype), candidates.astype(dtype)
    queries, candidates = (rng.normal(size=(n, width)) for n in (4, number))
    if rng.random() < 0.2:
        queries, candidates = np.round(queries), np.round(candidates)
    if rng.random() < 0.2 and name != "float16":
        candidates *= 10 ** rng.uniform(-3, 3, (number, 1))
    queries, candidates = queries.astype(dtype), candidates.astype(dtype)

    def some():
        return rng.integers(0, number, rng.integers(1, 2 + number // 3))

    for _ in range(rng.integers(0, 4)):
        candidates[some()] = candidates[some()[0]]
    if rng.random() < 0.2 and name in ("float32", "float64"):
        candidates[some()] = np.nextafter(candidates[some()[0]], np.inf, dtype=dtype)
    for value in (0.0, np.nan, np.inf, -np.inf):
        if rng.random() < 0.1:
            candidates[some(), 0] = value
    if rng.random() < 0.1:
        queries[0] = rng.choice([0.0, np.nan])
    candidates[abs(candidates) < 1e-30] = 0  # TensorFlow treats denormal numbers as 0
    return queries, candidates


def products_in_float64(queries, candidates):
    """All scores, each from its two vectors alone, rounded once to at least float32."""
    if queries.dtype.kind == "i":
        return queries.astype(np.int64) @ candidates.astype(np.int64).T
    wide = candidates.astype(np.float64)
    with np.errstate(all="ignore"):
        scores = np.stack([np.sum(q * wide, axis=1) for q in queries.astype(float)])
        is_wide = queries.dtype == np.float64
        return scores.astype(np.float64 if is_wide else np.float32).astype(np.float64)


def closeness(queries, candidates):
    """Whole numbers for vectors of whole numbers; those far away are not retrieved."""
    found = -abs(queries[:, None] - candidates[None]).sum(axis=2)
    return np.where(found < -4 * queries.shape[1], -np.inf, found)


def check_random_catalog(seed, kind):
    """Compares `evaluate_retrieval` and `retrieve` with the scores of all pairs."""
    rng = np.random.default_rng(seed)
    queries, candidates = random_catalog(rng)
    number, score, options = len(candidates), {}, {}
    if kind == "score":
        score["score"] = closeness
        queries, candidates = (
            np.nan_to_num(each.astype(np.float64).round(), posinf=9, neginf=-9)
            for each in (queries, candidates)
        )
        scores = closeness(queries, candidates)
    else:
        scores = products_in_float64(queries, candidates)
    truth, names = {}, [*map(str, rng.permutation(NAMES)[:6])]
    truth["ids"] = [
        sorted({*map(int, rng.integers(0, number, rng.integers(0, most)))})
        for most in rng.choice([2, 9, 50, 2 + number], 4)
    ]
    ties = str(rng.choice(["expected", "stable", "best", "worst"]))
    if rng.random() < 0.5:
        some = rng.integers(0, number, (4, rng.integers(1, 6))).tolist()
        truth["exclude"] = [2 * each for each in some]
    if ties in ("expected", "stable"):
        names.append("mean_popularity@3")
        options["popularity"] = rng.uniform(0.1, 1, number)
    options |= {"per_query": True, "ties": ties}
    expected = trm.evaluate(truth, scores, names, inputs="catalog", **options)
    size = int(rng.choice([*((1, 7) if number < 100 else (60, 70)), 333, 65_536]))
    sizes = {"batch_size": int(rng.choice([1, 3, 256])), "chunk_size": size, **score}
    vectors = IN_LIBRARY.get(kind, np.asarray)
    given = vectors(queries), vectors(candidates)
    if kind == "dataset":
        dataset = tf.data.Dataset.from_tensor_slices(candidates).batch(size)
        given = queries, dataset
    found = trm.evaluate_retrieval(*given, truth, names, **options, **sizes)
    for name, values in expected.items():
        message = f"{seed} {kind} {name} {queries.dtype} {ties} {sizes}"
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=message)

    k, exclude = int(rng.choice([1, 3, 10, number + 1])), truth.get("exclude")
    best = trm.retrieve(*given, k, exclude=exclude, **sizes)
    for query, of_query in enumerate(scores):
        keys = [
            (bool(np.isnan(score)), 0 if np.isnan(score) else -score, place)
            for place, score in enumerate(of_query.tolist())
            if score != -math.inf and place not in (exclude or [[]] * 4)[query]
        ]
        order = [place for *_, place in sorted(keys)][:k]
        assert [each for each in best.ids[query].tolist() if each >= 0] == order, seed
        np.testing.assert_array_equal(best.scores[query][: len(order)], of_query[order])


IN_LIBRARY = {"tensorflow": tf.constant}


@pytest.mark.filterwarnings("ignore:Scores must be numbers")
@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        (kind, seed)
        for kind, number in (("numpy", 25), ("score", 25), ("tensorflow", 8), ("dataset", 8))
        for seed in range(number)
    ],
)  # fmt: skip
def test_the_values_of_random_catalogs_are_those_of_all_scores(kind, seed):
    check_random_catalog(seed, kind)


@pytest.mark.slow("checks 300 catalogs")
@pytest.mark.filterwarnings("ignore:Scores must be numbers")
def test_many_random_catalogs():
    for seed in range(100, 400):
        check_random_catalog(seed, "numpy")


def test_metrics_may_break_ties_in_different_ways():
    metrics = [
        trm.MeanReciprocalRank(ties=ties, name=ties)
        for ties in ("expected", "stable", "best", "worst")
    ]
    same = [[1.0, 0.0]] * 4
    found = trm.evaluate_retrieval(QUERIES[:1], same, [2], metrics)
    fixed = {"expected": (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, "stable": 1 / 3}
    assert found == {**fixed, "best": 1, "worst": 1 / 4}


def dot_under_xla(queries, candidates):
    return tf.matmul(queries, candidates, transpose_b=True)


SCORERS = {"eager": None, "xla": tf.function(dot_under_xla, jit_compile=True)}


@pytest.mark.parametrize(
    ("dtype", "scorer"),
    [
        *((each, "eager") for each in ("float32", "float64", "bfloat16", "float16")),
        ("float32", "xla"),
    ],
)
@pytest.mark.parametrize("number", [77, 1000])
def test_an_item_is_tied_with_its_copies(number, dtype, scorer):
    rng = np.random.default_rng(0)
    queries = tf.cast(rng.normal(size=(40, 64)), dtype)
    candidates = tf.cast(np.tile(rng.normal(size=(1, 64)), (number, 1)), dtype)
    relevant = rng.integers(0, number, 40)
    found = trm.evaluate_retrieval(
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
    shifted = trm.evaluate_retrieval(*arguments, score=score, chunk_size=320)
    assert score.calls == 3  # the relevant items, and all candidates twice
    assert shifted == trm.evaluate_retrieval(*arguments, chunk_size=320)


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
    shifted = trm.evaluate_retrieval(
        vectors[relevant], vectors, relevant, ["mrr"], score=score, chunk_size=400
    )
    # The relevant items, the two chunks, one item between copies of it, the chunks.
    assert score.calls == 6
    assert shifted == {"mrr": 1.0}


@pytest.mark.parametrize(
    ("dtype", "largest"), [("int64", 2**31), ("int64", -(2**63)), ("uint64", 2**63)]
)
def test_integer_products_that_overflow_raise(dtype, largest):
    vectors = np.array([[1, 1], [largest, 1]], dtype)
    for candidates in (vectors, vectors[::-1], tf.constant(vectors)):
        with pytest.raises(ValueError, match=r"below 2\^63.* Cast them to float64"):
            trm.evaluate_retrieval(vectors, candidates, [0, 1], ["mrr"])
    small = np.array([[2**30, 1], [1, 1]], "int64")
    assert trm.evaluate_retrieval(small, small, [0, 1], ["mrr"]) == {"mrr": 3 / 4}


def test_a_dataset_that_changes_its_order_is_refused():
    rng = np.random.default_rng(0)
    candidates = rng.normal(size=(300, 4)).astype("float32")

    def in_any_order():
        yield from rng.permutation(candidates)

    spec = tf.TensorSpec(4)
    shuffled = tf.data.Dataset.from_generator(in_any_order, output_signature=spec)
    queries = candidates[:20]
    with pytest.raises(ValueError, match="in the same order each time"):
        trm.evaluate_retrieval(queries, shuffled.batch(50), np.arange(20), ["mrr"])


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
        trm.evaluate_retrieval(shuffled, vectors, ids, ["mrr"])
    with pytest.raises(
        ValueError, match=r"positions of candidates must .* with shuffle"
    ):
        trm.evaluate_retrieval(vectors, shuffled, ids, ["mrr"])


def test_a_score_that_reads_other_candidates_is_refused():
    rng = np.random.default_rng(0)
    queries, candidates = rng.normal(size=(40, 8)), rng.normal(size=(600, 8))

    def softmax(queries, candidates):
        return tf.nn.softmax(tf.matmul(queries, candidates, transpose_b=True))

    with pytest.raises(ValueError, match="as a softmax over the candidates does"):
        trm.evaluate_retrieval(
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
        found = trm.evaluate_retrieval(
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
    with pytest.warns(trm.RankingWarning, match="probably labels") as caught:
        trm.evaluate_retrieval(QUERIES, CANDIDATES, labels, ["mrr"])
    assert caught[0].filename == __file__
    padded = np.where(labels > 1, -1, labels)
    with pytest.raises(ValueError, match="not a 0 or 1 for each candidate"):
        trm.evaluate_retrieval(QUERIES, CANDIDATES, padded, ["mrr"])


def test_padded_positions_as_wide_as_the_catalog_are_no_labels():
    relevant = [[0, -1, -1, -1], [1, 0, -1, -1], [-1, -1, -1, -1]]
    found = trm.evaluate_retrieval(
        QUERIES, CANDIDATES, relevant, ["recall@1"], per_query=True
    )
    assert found["recall@1"][:2].tolist() == [1.0, 0.5]


def test_towers_of_another_model_are_a_warning():
    towers = [tf.keras.layers.Embedding(9, 4) for _ in range(2)]
    for tower in towers:
        tower(tf.range(3))
    ids = np.arange(9)
    callback = trm.EvaluateRetrieval(
        ids, ids, ids, ["mrr"], query_tower=towers[0], candidate_tower=towers[1]
    )
    for embedding, expected in ((tf.keras.layers.Embedding(9, 4), 1), (towers[0], 0)):
        model = tf.keras.Sequential([embedding, tf.keras.layers.Dense(9)])
        model.build((None,))
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", trm.RankingWarning)
            model.fit(ids, ids, verbose=0, callbacks=[callback])
        of_towers = [
            w for w in caught if "without any of its weights" in str(w.message)
        ]
        assert len(of_towers) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": ["de"]}, "a value for each query"),
        ({"sample_weight": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]}, "sample_weight"),
        ({"batch_size": 0}, "`batch_size` .* an int of at least 1"),
        ({"relevant": [0, 9, 1]}, "from 0 to 3"),
        ({"relevant": [0]}, "a row for each query"),
        ({"score": None}, "the parts of the model that score"),
    ],
)
def test_mistakes_of_the_callback_raise_before_the_training(arguments, message):
    given = {"queries": QUERIES, "candidates": CANDIDATES, "relevant": RELEVANT}
    given |= {"metrics": ["mrr"], "score": tf.matmul, **arguments}
    with pytest.raises(ValueError, match=message):
        trm.EvaluateRetrieval(**given)


def test_the_dropout_of_a_tower_is_off():
    tower = tf.keras.Sequential([tf.keras.layers.Dropout(0.9)])
    vectors = np.random.default_rng(0).normal(size=(50, 16)).astype("float32")
    others = vectors, np.arange(50), ["arp", "mrr"]
    found = trm.evaluate_retrieval(vectors, *others, query_tower=tower)
    assert found == trm.evaluate_retrieval(vectors, *others)


def test_a_tower_may_take_a_dict_and_read_a_dataset():
    features = {"id": np.arange(6), "price": np.linspace(0, 1, 6).astype("float32")}

    def tower(batch):
        return tf.stack([tf.cast(batch["id"], tf.float32), batch["price"]], axis=1)

    vectors = tower({name: tf.constant(each) for name, each in features.items()})
    queries, relevant = [[1.0, 0.5], [-1.0, 1.0]], [1, 2]
    expected = trm.evaluate_retrieval(queries, vectors, relevant, ["arp"])
    dataset = tf.data.Dataset.from_tensor_slices(features).batch(4)
    for candidates in (features, dataset):
        found = trm.evaluate_retrieval(
            queries, candidates, relevant, ["arp"], candidate_tower=tower
        )
        assert found == expected


@pytest.mark.parametrize("library", ["numpy", "tensorflow"])
def test_functions_receive_arrays_of_the_library_of_their_inputs(library):
    received = set()

    def doubled(rows):
        received.add(type(rows))
        return rows + rows

    def product(queries, candidates):
        received.update(map(type, (queries, candidates)))
        return queries @ (
            candidates.T if library != "tensorflow" else tf.transpose(candidates)
        )

    vectors = IN_LIBRARY.get(library, np.asarray)(np.eye(3))
    found = trm.evaluate_retrieval(
        vectors, vectors, range(3), ["mrr"], query_tower=doubled, score=product
    )
    assert found == {"mrr": 1.0}
    assert received == {type(vectors)}


def test_errors_in_functions_name_them_and_their_inputs():
    def broken(rows, others=None):
        return rows.missing

    for name in ("query_tower", "candidate_tower", "score"):
        with pytest.raises(
            ValueError,
            match=r"AttributeError from <function .*broken.* for numpy.ndarray",
        ) as raised:
            trm.evaluate_retrieval(
                QUERIES, CANDIDATES, RELEVANT, ["mrr"], **{name: broken}
            )
        assert isinstance(raised.value.__cause__, AttributeError)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_large_candidate_takes_no_more_memory(dtype):
    rng, peaks = np.random.default_rng(0), []
    queries, candidates = (rng.normal(size=(n, 16)).astype(dtype) for n in (4, 20_000))
    for factor in (1, 1, 1e6):  # the first call loads modules
        candidates[0] *= factor
        tracemalloc.start()
        trm.evaluate_retrieval(queries, candidates, [range(500)] * 4, ["map"])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]


@pytest.mark.parametrize("kind", [list, np.array])
def test_ids_of_candidates(kind):
    ids = kind(["shoe", "hat", "tie", "sock"])
    arguments = QUERIES, CANDIDATES
    found = trm.evaluate_retrieval(
        *arguments,
        [["shoe"], ["tie", "hat"], ["sock"]],
        ["mrr", "ndcg@2"],
        candidate_ids=ids,
        exclude=[["hat"], [], ["shoe", "tie"]],
    )
    assert found == trm.evaluate_retrieval(
        *arguments, [[0], [2, 1], [3]], ["mrr", "ndcg@2"], exclude=[[1], [], [0, 2]]
    )
    numbers = trm.evaluate_retrieval(
        *arguments, [70, 50, 40], ["mrr"], candidate_ids=kind([70, 60, 50, 40])
    )
    assert numbers == trm.evaluate_retrieval(*arguments, RELEVANT, ["mrr"])


def test_weights_slices_and_numbers_of_queries():
    languages = ["de", "en", "de"]
    arguments = QUERIES, CANDIDATES, RELEVANT
    # By arithmetic: the ranks are 1, 2 and 4.
    weighted = trm.evaluate_retrieval(*arguments, ["mrr"], sample_weight=[1, 2, 1])
    assert weighted == {"mrr": (1 + 2 / 2 + 1 / 4) / 4}
    by = trm.evaluate_retrieval(*arguments, ["mrr"], by={"language": languages})
    assert by.whole["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 4) / 3)
    assert (by["de"]["mrr"], by["en"]["mrr"]) == ((1 + 1 / 4) / 2, 1 / 2)
    counted = trm.evaluate_retrieval(
        QUERIES, CANDIDATES, [0, -1, 3], ["mrr"], num_queries=True
    )
    assert counted == {"mrr": (1 + 1 / 4) / 2, "num_queries": 2}


def random_scores(queries, candidates):
    return tf.random.normal((queries.shape[0], candidates.shape[0]))


def scores_with_little_noise(queries, candidates):
    """They differ by no more than rounding might, but each time."""
    products = queries @ candidates.T
    return products + NOISE.uniform(0, 1e-3, products.shape)


NOISE = np.random.default_rng(0)
ROWS_OF_CANDIDATES = tf.data.Dataset.from_tensor_slices(CANDIDATES)


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
        ({"candidate_ids": [0, 1, 2, 3], "relevant": [0, 1, 9]}, "must hold ids that are in `candidate_ids`"),
        ({"relevant": {"ids": [0, 1, 2], "relevance": [1, 1, np.nan]}}, "'relevance' must hold finite numbers"),
        ({"candidates": [[1.0, 0.0]] * 3, "relevant": [[0, 0, 1]] * 3}, "not a 0 or 1 for each candidate"),
        ({"candidate_ids": [10, 11, 12, 13]}, "must hold ids that are in `candidate_ids`"),
        ({"queries": [[1.0], [2.0], [3.0]]}, "vectors of the same length"),
        ({"queries": []}, "`queries` must not be empty"),
        ({"candidates": np.zeros((0, 2))}, "`candidates` must not be empty"),
        ({"queries": 1.0}, "a row for each"),
        ({"queries": np.array(QUERIES, np.longdouble)}, "at most 64 bits. Received"),
        ({"metrics": ["opa"]}, "`opa` supports only"),
        ({"metrics": ["alpha_dcg@3"]}, "supports only"),
        ({"chunk_size": 0}, "`chunk_size` .* an int of at least 1"),
        ({"batch_size": 2.5}, "`batch_size` of `evaluate_retrieval` must be"),
        ({"score": lambda q, c: q}, r"a score for each query and candidate, \[B, C\]"),
        ({"sample_weight": [1, 2]}, "one weight per query"),
        ({"sample_weight": [1, 2, -1]}, "finite numbers of at least 0"),
        ({"by": ["de"]}, "`by` must have a value for each query"),
        ({"tie": "best"}, "Did you mean 'ties'"),
        ({"score": "dot"}, "`score` must be a function"),
        ({"queries": {"id": np.arange(3)}}, r"\[B, d\] and \[V, d\].* shapes of a dict"),
        ({"query_tower": lambda rows: None}, "a row for each input, 64 in this call"),
        ({"candidate_tower": lambda rows: rows[:2]}, r"Received: \[\[2, 2\]\]"),
        ({"score": lambda q, c: tf.matmul(c, q, transpose_b=True)}, "the last rows"),
        ({"candidate_tower": "items"}, "`candidate_tower` must be a function"),
        ({"relevant": np.eye(3, 4, dtype=int)}, "not a 0 or 1 for each candidate"),
        ({"queries": [["a"], ["b"], ["c"]], "candidates": [["a"]] * 4}, "real numbers"),
        ({"relevant": {"ids": RELEVANT, "exclude": [[1]] * 3}, "exclude": [[2]] * 3}, "must be passed once"),
        ({"relevant": ["a", "b", "z"], "candidate_ids": ["a", "b", "c", "d"]}, "an unknown id in row 2: 'z'"),
        ({"score": random_scores}, "must have the same score each time"),
        ({"score": scores_with_little_noise}, "other scores for the same queries"),
        ({"candidates": ROWS_OF_CANDIDATES.batch(4).repeat()}, "`candidates` must be finite"),
        ({"candidates": ROWS_OF_CANDIDATES.batch(2).take(0)}, "`candidates` must not be empty"),
        ({"queries": [[1.0], [1.0, 2.0]]}, "rows of different lengths"),
        ({"candidates": np.ma.masked_array(CANDIDATES, np.asarray(CANDIDATES) > 0)}, "`candidates`"),
        ({"queries": (row for row in QUERIES)}, "`queries` must be arrays.*can be read only once"),
        ({"candidates": (row for row in CANDIDATES)}, "`candidates`.*can be read only once"),
        ({"queries": np.array(QUERIES, object)}, "`queries` must be arrays.*dtype object. Convert it to float"),
        ({"candidate_ids": [[1], [2], [3], [4]]}, "`candidate_ids` must be hashable.*list"),
    ],
)  # fmt: skip
def test_mistakes(changes, message):
    arguments = {
        "queries": QUERIES,
        "candidates": CANDIDATES,
        "relevant": RELEVANT,
        "metrics": ["mrr"],
        **changes,
    }
    with pytest.raises((ValueError, TypeError), match=message):
        trm.evaluate_retrieval(**arguments)


def test_a_generator_that_does_not_start_again_is_refused():
    batches = iter([np.array(CANDIDATES[:3]), np.array(CANDIDATES[3:])])
    spec = tf.TensorSpec([None, 2], tf.float64)
    once = tf.data.Dataset.from_generator(lambda: batches, output_signature=spec)
    with pytest.raises(
        ValueError, match=r"4, and then 0. A generator must be restartable"
    ):
        trm.evaluate_retrieval(QUERIES, once, RELEVANT, ["mrr"])


def test_empty_batches_and_rows():
    spec = tf.TensorSpec([None, 2], tf.float64)
    parts = [np.zeros((0, 2)), np.array(CANDIDATES), np.zeros((0, 2))]
    dataset = tf.data.Dataset.from_generator(lambda: iter(parts), output_signature=spec)
    found = trm.evaluate_retrieval(QUERIES, dataset, RELEVANT, ["mrr"])
    assert found == trm.evaluate_retrieval(QUERIES, CANDIDATES, RELEVANT, ["mrr"])
    nothing = trm.evaluate_retrieval(QUERIES, CANDIDATES, [[], [], []], ["mrr"])
    assert np.isnan(nothing["mrr"])


def test_vectors_of_two_dtypes():
    queries = tf.cast(QUERIES, tf.bfloat16)
    for dtype in ("float16", "float32", "float64", "int32"):
        candidates = tf.cast(4 * np.array(CANDIDATES), dtype)
        found = trm.evaluate_retrieval(queries, candidates, RELEVANT, ["arp"])
        scores = np.array(QUERIES) @ np.asarray(candidates, float).T
        expected = trm.evaluate(RELEVANT, scores, ["arp"], inputs="catalog")
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("of", [np.asarray, tf.constant])
@pytest.mark.parametrize("score", [None, lambda q, c: q @ np.transpose(c)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_products_of_half_precision_keep_their_digits(dtype, score, of):
    """1 + 2^-12 is above 1, but would be rounded to 1 in half precision."""
    dtype = tf.as_dtype(dtype).as_numpy_dtype
    vectors = [[1.0, 1.0]], [[1.0, 0.0], [1.0, 2**-12]]
    vectors = [of(np.array(each, dtype)) for each in vectors]
    found = trm.evaluate_retrieval(*vectors, [0], ["mrr"], score=score)
    assert found == {"mrr": 0.5}
    assert trm.explain_retrieval(*vectors, [0], "mrr", score=score).value == 0.5
    found = trm.retrieve(*vectors, k=2, score=score)
    assert found.ids.tolist() == [[1, 0]]
    assert found.scores.tolist() == [[1 + 2**-12, 1.0]]
    callback = trm.EvaluateRetrieval(
        *vectors, [0], ["mrr"], query_tower=lambda rows: rows, score=score
    )
    callback.set_params({"verbose": 0})
    assert callback._values() == {"mrr": 0.5}


def test_products_of_float16_do_not_overflow():
    vectors = np.array([[60_000.0], [50_000.0]], "float16")
    found = trm.retrieve(vectors[:1], vectors, k=2).scores.astype(float)
    # 60,000 is a float16, and 50,000 is rounded to 49,984.
    np.testing.assert_allclose(found, [[60_000.0**2, 60_000.0 * 49_984]], rtol=2**-24)


def test_a_graph_is_refused():
    @tf.function
    def in_graph():
        return trm.evaluate_retrieval(QUERIES, CANDIDATES, RELEVANT, ["mrr"])

    with pytest.raises(RuntimeError, match="must be called eagerly"):
        in_graph()


def test_a_progress_bar(capsys):
    trm.evaluate_retrieval(QUERIES, CANDIDATES, RELEVANT, ["mrr"], verbose=True)
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
            trm.EvaluateRetrieval(
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
    expected = trm.evaluate_retrieval(*vectors, ids, ["mrr"])
    assert history["val_mrr"][-1] == pytest.approx(expected["mrr"], rel=1e-12)


def test_repeated_positions_among_two_candidates_are_not_labels():
    """With so few candidates, [0, 0] is as likely an id that comes twice."""
    vectors = [[1.0, 0.0], [0.0, 1.0]]
    found = trm.evaluate_retrieval(vectors, vectors, [[0, 0], [1, 1]], ["mrr"])
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
        value = trm.evaluate_retrieval(
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
    callback = trm.EvaluateRetrieval(
        vectors, vectors, range(8), ["mrr"], query_tower=dense, candidate_tower=dense
    )
    copy = pickle.loads(pickle.dumps(callback))
    for each in (callback, copy):
        each.set_params({"verbose": 0})
    assert copy._values() == callback._values()


@pytest.mark.parametrize("library", ["numpy", "tensorflow"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_products_that_overflow_are_an_error(library, dtype):
    """As -inf, they would mean that a candidate was not retrieved."""
    rng = np.random.default_rng(0)
    queries, candidates = (
        (1e20 * rng.normal(size=(size, 8))).astype(tf.as_dtype(dtype).as_numpy_dtype)
        for size in (20, 200)
    )
    relevant = np.argmax(queries.astype(float) @ candidates.astype(float).T, axis=1)
    if library == "tensorflow":
        queries, candidates = tf.constant(queries), tf.constant(candidates)
    with pytest.raises(ValueError, match=f"finite.*vectors of {dtype}, and a product"):
        trm.evaluate_retrieval(queries, candidates, relevant, ["recall@1"])
    wide = (np.asarray(each, np.float64) for each in (queries, candidates))
    assert trm.evaluate_retrieval(*wide, relevant, ["recall@1"]) == {"recall@1": 1.0}


@pytest.mark.parametrize("library", [np.asarray, tf.constant])
@pytest.mark.parametrize(
    ("candidates", "relevant"), [([[1.0], [-1e20]], [0]), ([[1e20], [1.0]], [[0, 1]])]
)
def test_an_overflow_of_one_candidate_is_an_error(candidates, relevant, library):
    vectors = (library(np.array(each, "float32")) for each in ([[1e20]], candidates))
    with pytest.raises(ValueError, match=r"finite.*vectors of float32, and a product"):
        trm.evaluate_retrieval(*vectors, relevant, ["mrr"])


def test_retrieve_fills_up_what_was_not_retrieved():
    lowest = np.finfo(np.float64).min
    vectors = np.array([[1.0], [-np.inf], [np.nan], [lowest]])
    found = trm.retrieve(vectors[:1], vectors, 9)
    assert found.ids.tolist() == [[0, 3, 2, -1]]
    np.testing.assert_array_equal(found.scores, [[1, lowest, np.nan, -np.inf]])
    named = trm.retrieve(vectors[:1], vectors, 4, candidate_ids=["a", "b", "c", "d"])
    assert named.ids.tolist() == [["a", "d", "c", None]]
    assert trm.retrieve(vectors[:1], vectors, 1).ids.tolist() == [[0]]
    for k in (0, None, 2.5):
        with pytest.raises(ValueError, match="`k` of `retrieve` must be"):
            trm.retrieve(vectors[:1], vectors, k)
