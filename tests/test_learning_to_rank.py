"""Tests the search-log example, which compares models query by query."""

import learning_to_rank
import numpy as np
import pytest

import tfrankmetrics as trm


@pytest.mark.slow("trains two models")
def test_the_listwise_model_beats_the_others(tmp_path, capsys):
    values = learning_to_rank.main(epochs=4, output=tmp_path, queries=500)
    printed = capsys.readouterr().out
    for other in ("text score", "pointwise"):
        improvement = values["listwise"]["ndcg@10"] - values[other]["ndcg@10"]
        error = improvement.std(ddof=1) / len(improvement) ** 0.5
        assert improvement.mean() > 4 * error
    for metrics in values.values():
        assert f"{metrics['ndcg@10'].mean():.4f}" in printed
    picture = (tmp_path / "learning_to_rank.png").read_bytes()
    assert picture.startswith(b"\x89PNG")


def test_rows_and_lists_of_the_log_give_equal_values():
    log = learning_to_rank.make_log(queries=30, seed=0)
    features, grades = learning_to_rank.as_lists(log)
    by_rows = learning_to_rank.evaluate_log(log, log["text_score"])
    names = learning_to_rank.METRICS
    by_lists = trm.evaluate(grades, features[:, :, 0], names, per_query=True)
    for name in names:
        np.testing.assert_allclose(by_rows[name], by_lists[name], rtol=1e-12)
