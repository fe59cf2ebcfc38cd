"""Runs the TFX example and checks its blessings and metrics."""

import pytest
import tfx_pipeline


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("tfx") / "output"


@pytest.fixture(scope="module")
def outcomes(output):
    return tfx_pipeline.main(output, queries=400)


def test_better_models_are_blessed_and_worse_models_rejected(outcomes, output):
    blessings = [of["blessing"] for of in outcomes]
    assert blessings == ["BLESSED", "BLESSED", "NOT_BLESSED"]
    folders = sorted(
        (output / "pipeline" / "Evaluator" / "blessing").iterdir(),
        key=lambda folder: int(folder.name),
    )
    files = [[file.name for file in folder.iterdir()] for folder in folders]
    assert files == [[blessing] for blessing in blessings]


def test_only_the_ndcg_threshold_rejects_a_model(outcomes):
    assert [of["failures"] for of in outcomes] == [set(), set(), {"ndcg@10"}]
    values = (of["slices"]["value"]["ndcg@10", "overall"] for of in outcomes)
    first, best, refused = values
    assert best > refused >= 0.5  # so only the change threshold rejects it
    assert best > first
    assert outcomes[2]["fit"]["val_loss"] < outcomes[0]["fit"]["val_loss"]


@pytest.mark.parametrize("name", tfx_pipeline.METRICS)
def test_fit_evaluate_and_evaluator_give_equal_values(outcomes, name):
    for of in outcomes:
        expected = of["evaluate"][name]
        assert of["fit"][f"val_{name}"] == pytest.approx(expected, abs=1e-6)
        value = of["slices"]["value"][name, "overall"]
        assert value == pytest.approx(expected, abs=1e-6)


def test_slice_values_average_to_the_overall_value(outcomes, output):
    pattern = tfx_pipeline.newest(output, "ImportExampleGen", "examples")
    log = tfx_pipeline.read_log([str(pattern / "Split-eval/*")])
    queries = log.groupby("words")["query"].nunique()
    for of in outcomes:
        slices = of["slices"].loc["ndcg@10"]
        assert [*slices.index] == ["overall", "few words", "many words"]
        parts = [
            slices["value"][words.decode()] * number
            for words, number in queries.items()
        ]
        mean = sum(parts) / queries.sum()
        overall = slices.loc["overall"]
        assert overall["value"] == pytest.approx(mean, abs=1e-9)
        assert overall["lower"] < overall["value"] < overall["upper"]
        numbers = [queries.sum(), *queries]
        assert slices["queries"].tolist() == numbers


def test_no_query_is_in_both_splits(output, outcomes):
    examples = tfx_pipeline.newest(output, "ImportExampleGen", "examples")
    train, evaluation = (
        set(tfx_pipeline.read_log([str(examples / f"Split-{split}/*")])["query"])
        for split in ("train", "eval")
    )
    assert not train & evaluation
    assert len(train | evaluation) == 400


def test_slices_are_plotted(output, outcomes):
    picture = (output / "per_slice.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
