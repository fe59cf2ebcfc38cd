"""Tests the MovieLens example with synthetic ratings in both file formats."""

import movielens
import numpy as np
import pytest

USERS, ITEMS, LENGTH = 60, 40, 20


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """Writes ratings in which each user rates consecutive items from a random start."""
    rng = np.random.default_rng(0)
    lines = [
        f"{user}\t{100 + (start + step) % ITEMS}\t5\t{1000 + step}\n"
        for user, start in enumerate(rng.integers(0, ITEMS, USERS))
        for step in range(LENGTH)
    ]
    rng.shuffle(lines)
    folder = tmp_path_factory.mktemp("ratings")
    header = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    (folder / "u.data").write_text("".join(lines))
    (folder / "made.inter").write_text(header + "".join(lines))
    return folder


def test_both_file_formats_give_the_same_histories(ratings):
    plain, items = movielens.read_histories(ratings / "u.data")
    with_header, _ = movielens.read_histories(ratings / "made.inter")
    assert items == ITEMS
    assert len(plain) == USERS
    for ours, others in zip(plain, with_header):
        assert len(set(ours)) == len(ours) == LENGTH
        np.testing.assert_array_equal(ours, others)


@pytest.mark.slow("trains a model for 12 epochs")
def test_the_model_beats_popularity(ratings, capsys):
    test = movielens.main(ratings / "u.data", epochs=12)
    assert test["model"]["hit_rate@10"] > test["popularity"]["hit_rate@10"] + 0.3
    assert test["model"]["ndcg@10"] >= test["model, seen items too"]["ndcg@10"]
    printed = capsys.readouterr().out
    assert "val_ndcg@10" in printed
    for values in test.values():
        assert all(f"{value:.4f}" in printed for value in values.values())


@pytest.mark.slow("trains a model")
def test_without_a_path_the_ratings_are_made_and_it_says_where_to_get_them(capsys):
    histories, items = movielens.made_histories()
    for history in histories:
        assert 4 <= len(history) == len(set(history)) <= items
        assert 0 <= min(history) <= max(history) < items
    test = movielens.main(epochs=2)
    assert test["model"]["hit_rate@10"] > test["popularity"]["hit_rate@10"]
    printed = capsys.readouterr().out
    assert "files.grouplens.org/datasets/movielens/ml-100k.zip" in printed
    assert "--ratings ml-100k/u.data" in printed
