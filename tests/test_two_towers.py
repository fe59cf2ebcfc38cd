"""Tests the example with two towers, on made interactions."""

import pytest
import two_towers


@pytest.mark.slow("trains a model")
def test_the_model_learns_and_stops_on_its_rank_among_all_items(tmp_path, capsys):
    path = tmp_path / "curves.png"
    history, test = two_towers.main(epochs=4, path=str(path))
    values = history["val_ndcg@10"]
    assert values[-1] > values[0] + 0.1
    assert path.stat().st_size > 10_000
    printed = capsys.readouterr().out
    assert "--ratings ml-100k/u.data" in printed
    assert f"{test['ndcg@10']:.4f}" in printed
