"""Tests that the quickstart trains a model that clearly beats the untrained one."""

import numpy as np
import pytest
import quickstart


@pytest.mark.slow("trains a model for 8 epochs")
def test_trained_model_beats_untrained_model_on_held_out_queries(tmp_path, capsys):
    untrained, trained = quickstart.main(epochs=8, output=tmp_path)
    printed = capsys.readouterr().out
    improvement = trained - untrained
    for name in quickstart.METRICS:
        assert improvement[name].mean() > 10 * improvement[name].sem(), name
        assert f"{trained[name].mean():.4f}" in printed
        assert f"{untrained[name].sem():.4f}" in printed
    assert trained["ndcg@10"].mean() > 0.9
    *_, test = quickstart.load_splits(np.random.default_rng(0))
    skipped = int((test[1] <= 0).all(axis=1).sum())
    assert skipped == len(test[1]) - len(trained)
    assert f"{len(trained)} test queries" in printed
    assert f"{skipped} of {len(test[1])}" in printed
    lines = [line for line in printed.splitlines() if str(tmp_path) not in line]
    assert max(map(len, lines)) <= 80
    picture = (tmp_path / "quickstart.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_splits_share_no_image_and_lists_differ_in_length():
    splits = quickstart.load_splits(np.random.default_rng(0))
    seen = [{image.tobytes() for image in features["query"]} for features, _ in splits]
    assert len(set.union(*seen)) == sum(map(len, seen)) == 1797
    for features, labels in splits:
        lengths = (labels >= 0).sum(axis=1)
        assert len(set(lengths.tolist())) > 10
        is_padding = labels < 0
        assert (features["candidates"][is_padding] == 0).all()
