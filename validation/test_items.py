"""Compares the metrics of recommended items with RecTools, LensKit and recommenders.

Each tool computes them from its own tables, for random recommendations without ties.
"""

import numpy as np
import pandas as pd
import pytest
import rectools
from lenskit.data import ItemList, ItemListCollection, UserIDKey
from lenskit.metrics import ranking as lenskit_metrics
from lenskit.metrics.ranking import GeometricRankWeight
from recommenders.evaluation import python_evaluation as recommenders
from rectools import metrics as rectools_metrics

import tfrankmetrics as trm
from tfrankmetrics.options import NumItems

USERS, ITEMS, K = 40, 30, 5
COLUMNS = [rectools.Columns.User, rectools.Columns.Item, rectools.Columns.Rank]


def declare_discounted_gini():
    """A Gini coefficient of exposure that falls geometrically with the rank."""

    def geometric(recommended):
        return 0.85 ** (recommended.ranks - 1)

    @trm.metric(
        "geometric_gini",
        formula=geometric,
        value=trm.ExposureGini.declaration.value,
        lower_is_better=True,
    )
    class GeometricGini(trm.ItemMetric):
        """The Gini coefficient with geometric attention."""

        num_items: NumItems = None

    return GeometricGini


class Data:
    """Random recommendations, and the interactions of a training set."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.recommended = np.stack([rng.permutation(ITEMS)[:10] for _ in range(USERS)])
        is_known = rng.random((USERS, ITEMS)) < rng.random(ITEMS) * 0.6
        is_shown = np.zeros((USERS, ITEMS), bool)
        np.put_along_axis(is_shown, self.recommended, True, axis=1)
        is_known |= np.cumsum(~is_shown, axis=0) == 1  # each item at least once
        is_known &= ~is_shown  # `recommenders` requires new items
        users, items = np.nonzero(is_known)
        self.train = pd.DataFrame({"user_id": users, "item_id": items})
        self.counts = is_known.sum(axis=0)
        self.num_users = len(np.unique(users))
        self.categories = rng.integers(0, 4, ITEMS)
        self.vectors = rng.random((ITEMS, 6))
        self.by_rank = pd.DataFrame(
            {
                COLUMNS[0]: np.repeat(np.arange(USERS), 10),
                COLUMNS[1]: self.recommended.ravel(),
                COLUMNS[2]: np.tile(np.arange(1, 11), USERS),
            }
        )

    @property
    def top(self):
        """The first K items of each user, as `recommenders` takes them."""
        rows = self.by_rank[self.by_rank[COLUMNS[2]] <= K]
        return rows[COLUMNS[:2]].reset_index(drop=True)

    def ours(self, *names, **options):
        """Our values of these metrics."""
        relevant = np.zeros((USERS, 1), int)
        found = trm.evaluate(
            relevant, self.recommended, [*names], inputs="ids", **options
        )
        return [*found.values()]


@pytest.fixture
def pandas_2(monkeypatch):
    """In recommenders 1.2.1 `series[0]` is the first value, as in pandas 2."""
    by_label = pd.Series.__getitem__

    def by_position(series, key):
        is_first = isinstance(key, int) and key == 0 and 0 not in series.index
        return series.iloc[0] if is_first else by_label(series, key)

    monkeypatch.setattr(pd.Series, "__getitem__", by_position)


@pytest.fixture(params=range(3))
def data(request):
    return Data(request.param)


def test_coverage(data):
    (ours,) = data.ours(f"coverage@{K}", num_items=ITEMS)
    metric = rectools_metrics.CatalogCoverage(k=K, normalize=True)
    assert ours == pytest.approx(metric.calc(data.by_rank, range(ITEMS)), rel=1e-12)
    theirs = recommenders.catalog_coverage(
        data.train, data.top, col_user="user_id", col_item="item_id"
    )
    assert ours == pytest.approx(theirs, rel=1e-12)


def test_entropy(data, pandas_2):
    (ours,) = data.ours(f"entropy@{K}", num_items=ITEMS)
    theirs = recommenders.distributional_coverage(
        data.train, data.top, col_user="user_id", col_item="item_id"
    )
    assert ours == pytest.approx(theirs, rel=1e-12)


def test_gini(data):
    lists = ItemListCollection(UserIDKey)
    for user, items in enumerate(data.recommended):
        lists.add(ItemList(item_ids=items, ordered=True), user_id=user)
    geometric = declare_discounted_gini()
    ours = data.ours("gini@5", geometric(k=5, num_items=ITEMS), num_items=ITEMS)
    weight = GeometricRankWeight(0.85)
    for value, metric in zip(
        ours,
        [
            lenskit_metrics.ListGini(n=5, items=ITEMS),
            lenskit_metrics.ExposureGini(n=5, items=ITEMS, weight=weight),
        ],
        strict=True,
    ):
        parts = [metric.compute_list_data(each, None) for each in lists.lists()]
        # LensKit adds up the exposure in float32.
        assert value == pytest.approx(metric.global_aggregate(parts), rel=1e-6)


def test_popularity(data):
    (ours,) = data.ours(f"mean_popularity@{K}", popularity=data.counts)
    metric = rectools_metrics.AvgRecPopularity(k=K)
    assert ours == pytest.approx(metric.calc(data.by_rank, data.train), rel=1e-12)


def test_novelty(data, pandas_2):
    """RecTools divides by the users, and recommenders by all interactions."""
    (ours,) = data.ours(f"novelty@{K}", popularity=data.counts / data.num_users)
    metric = rectools_metrics.MeanInvUserFreq(k=K)
    assert ours == pytest.approx(metric.calc(data.by_rank, data.train), rel=1e-12)
    (ours,) = data.ours(f"novelty@{K}", popularity=data.counts / len(data.train))
    theirs = recommenders.novelty(
        data.train, data.top, col_user="user_id", col_item="item_id"
    )
    assert ours == pytest.approx(theirs, rel=1e-12)


def test_diversity(data, pandas_2):
    """The Hamming distance of two categories is 2: one has a 1 that the other lacks."""
    one_hot = np.eye(4)[data.categories]
    (ours,) = data.ours(f"intra_list_diversity@{K}", vectors=one_hot)
    frame = pd.DataFrame(one_hot, index=np.arange(ITEMS))
    distances = rectools_metrics.PairwiseHammingDistanceCalculator(frame)
    metric = rectools_metrics.IntraListDiversity(k=K, distance_calculator=distances)
    assert 2 * ours == pytest.approx(metric.calc(data.by_rank), rel=1e-12)

    (ours,) = data.ours(f"intra_list_diversity@{K}", vectors=data.vectors)
    features = pd.DataFrame({"item_id": np.arange(ITEMS), "features": [*data.vectors]})
    theirs = recommenders.diversity(
        data.train,
        data.top,
        item_feature_df=features,
        item_sim_measure="item_feature_vector",
        col_user="user_id",
        col_item="item_id",
    )
    assert ours == pytest.approx(theirs, rel=1e-12)
