"""The example on MovieLens, on made ratings in both forms of the file."""

import movielens
import numpy as np
import pytest

USERS, ITEMS, LENGTH = 60, 40, 20


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    """Each user walks through the items in their order, from a place of their own."""
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


def test_both_forms_of_the_file_are_read_alike(ratings):
    plain, items = movielens.read_histories(ratings / "u.data")
    with_header, _ = movielens.read_histories(ratings / "made.inter")
    assert items == ITEMS
    assert len(plain) == USERS
    for ours, others in zip(plain, with_header):
        assert len(set(ours)) == len(ours) == LENGTH
        np.testing.assert_array_equal(ours, others)


def test_the_model_learns_what_popularity_cannot_know(ratings, capsys):
    test = movielens.main(ratings / "u.data", epochs=12)
    assert test["model"]["hit_rate@10"] > test["popularity"]["hit_rate@10"] + 0.3
    assert test["model"]["ndcg@10"] >= test["model, seen items too"]["ndcg@10"]
    printed = capsys.readouterr().out
    assert "val_ndcg@10" in printed
    for values in test.values():
        assert all(f"{value:.4f}" in printed for value in values.values())
