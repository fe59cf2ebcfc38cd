"""Tests metrics of subtopics: their ties and ideals, and judgments in tables."""

import itertools
import math

import numpy as np
import oracle
import pandas as pd
import pytest

import tfrankmetrics as trm
from tfrankmetrics.__main__ import main
from tfrankmetrics.evaluation import rows_by_query, trec_files

EXAMPLE = {"subtopic_recall@5": 2 / 3, "alpha_ndcg@5": 0.6347442334897557}
NAMES = [*EXAMPLE]
COLUMNS = ["query_id", "subtopic", "item_id", "label"]
QRELS = pd.DataFrame(
    [("q", *row, 1) for row in ("1a", "1b", "2b", "2c", "3d")], columns=COLUMNS
)
RUN = pd.DataFrame({"query_id": "q", "item_id": [*"axbc"], "score": [4, 3, 2, 1]})
ALL = ["precision_ia@3", "subtopic_recall@3", "alpha_dcg@3", "alpha_ndcg@3"]
ALL += ["alpha_ndcg", "ndcg@3", "recall@2", "judged@3"]


def random_tables(seed, queries=30, *, ties=False):
    """Judgments of subtopics and a run, with unjudged and missed items."""
    rng = np.random.default_rng(seed)
    judgments, predictions = [], []
    for query in range(queries):
        number = int(rng.integers(1, 6))
        for item in range(int(rng.integers(1, 12))):
            topics = rng.choice(number, int(rng.integers(0, number + 1)), replace=False)
            for topic in topics:
                label = int(rng.integers(-1, 3))
                judgments.append((query, f"t{topic}", f"d{item}", label))
            if rng.random() < 0.8:
                score = rng.integers(0, 4) if ties else rng.random()
                predictions.append((query, f"d{item}", score))
        judgments.append((query, "t0", "missed", 1))
    run = pd.DataFrame(predictions, columns=["query_id", "item_id", "score"])
    return pd.DataFrame(judgments, columns=COLUMNS), run


def merged(qrels, run):
    """One table of both, with a row for each subtopic of an item."""
    table = run.merge(qrels, how="outer", on=["query_id", "item_id"])
    values = {"score": -np.inf, "label": 0, "subtopic": "t0"}
    return table.fillna(values)[table["query_id"].isin(qrels["query_id"])]


def of_rows(table, names, **options):
    columns = {"item_ids": "item_id", "subtopic": "subtopic", **options}
    return trm.evaluate_rows(
        *["query_id", "label", "score"], names, data=table, **columns
    )


def arrays_of(qrels, run):
    """Labels `[1, N, T]` and scores of each query, whose items are sorted by id."""
    for query, judged in qrels.groupby("query_id"):
        labels = judged.pivot(index="item_id", columns="subtopic", values="label")
        scores = run[run["query_id"] == query].set_index("item_id")["score"]
        items = sorted({*labels.index, *scores.index}, reverse=True)
        labels = labels.reindex(items).fillna(0).clip(0).to_numpy()
        yield labels[np.newaxis], scores.reindex(items).fillna(-np.inf).to_numpy()[None]


# Values


@pytest.mark.parametrize("seed", range(2))
def test_tied_lists_equal_the_mean_over_all_orders(seed):
    rng = np.random.default_rng(seed)
    labels = (rng.random((1000, 5, 3)) < 0.35).astype(float)
    scores = rng.integers(0, 3, (1000, 5))
    discounts = 1 / np.log2(np.arange(2, 7))
    recalls, gains = np.zeros((2, 5, 1000))
    orders = [*itertools.permutations(range(5))]
    for order in orders:
        ranks = np.argsort(-scores[:, order], axis=1, kind="stable")
        ranked = labels[np.arange(1000)[:, None], np.array(order)[ranks]]
        above = np.cumsum(ranked, axis=1) - ranked
        gain = np.sum(ranked * 0.5**above, axis=2) * discounts
        gains += np.cumsum(gain, axis=1).T / len(orders)
        recalls += (above + ranked > 0).sum(axis=2).T / len(orders)
    number = np.maximum(labels.any(axis=1).sum(axis=1), 1)
    for k in range(1, 6):
        names = [f"strec@{k}", f"alpha_dcg@{k}", f"alpha_ndcg@{k}"]
        recall, dcg, ndcg = trm.evaluate(labels, scores, names, per_query=True).values()
        np.testing.assert_allclose(recall, recalls[k - 1] / number, atol=1e-12)
        np.testing.assert_allclose(dcg, gains[k - 1], atol=1e-12)
        ideal = np.divide(dcg, ndcg, where=ndcg > 0, out=np.zeros(1000))
        for query in np.flatnonzero(ndcg):
            in_order = sorted(labels[query].tolist(), reverse=True)
            greedy = dcg_of_greedy_ideal(np.array(in_order), k)
            assert ideal[query] == pytest.approx(greedy, rel=1e-12)


def dcg_of_greedy_ideal(labels, k):
    """The alpha-DCG of a greedy ideal that takes the first item of equal gains."""
    left, times, total = [*range(len(labels))], np.zeros(labels.shape[1]), 0.0
    for rank in range(min(k, len(left))):
        gains = [labels[i] @ 0.5**times for i in left]
        best = left.pop(int(np.argmax(gains)))
        total += max(gains) / math.log2(rank + 2)
        times += labels[best]
    return total


def test_the_greedy_ideal_is_not_always_the_best_order():
    # It begins with the item of two subtopics, and not with those of the other pairs.
    labels = [[[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]]
    value = trm.evaluate(labels, [[1, 3, 2]], ["alpha_ndcg@2"])["alpha_ndcg@2"]
    assert value == pytest.approx((2 + 2 / math.log2(3)) / (2 + 1.5 / math.log2(3)))


@pytest.mark.parametrize("subtopics", [3, 130])
@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
def test_the_order_of_the_items_does_not_change_the_greedy_ideal(subtopics, alpha):
    rng = np.random.default_rng(subtopics)
    labels = (rng.random((20, 12, subtopics)) < min(0.4, 4 / subtopics)).astype(float)
    labels[:, ::3] = np.roll(labels[:, 1::3], 1, axis=2)  # other items of equal gains
    scores = rng.normal(size=(20, 12))
    expected = trm.evaluate(labels, scores, ["alpha_ndcg@5"], alpha=alpha)
    order = rng.permutation(12)
    moved = labels[:, order], scores[:, order]
    assert trm.evaluate(*moved, ["alpha_ndcg@5"], alpha=alpha) == expected
    one = labels[:1, :6, :60], scores[:1, :6]
    value, _ = oracle.evaluate("alpha_ndcg", one[0][0], one[1][0], alpha=alpha)
    found = trm.evaluate(*one, ["alpha_ndcg"], alpha=alpha)["alpha_ndcg"]
    assert found == pytest.approx(value, rel=1e-12)


# Tables


def test_the_example_in_each_form(tmp_path):
    assert trm.evaluate_run(QRELS, RUN, NAMES) == pytest.approx(EXAMPLE)
    assert of_rows(merged(QRELS, RUN), NAMES) == pytest.approx(EXAMPLE)
    renamed = QRELS.rename(columns={"subtopic": "nugget"})
    found = trm.evaluate_run(renamed, RUN, NAMES, subtopic="nugget")
    assert found == pytest.approx(EXAMPLE)
    paths = tmp_path / "qrels.txt", tmp_path / "qrels.csv"
    paths[0].write_text("q 1 a 1\nq 1 b 1\n# a comment\nq 2 b 1\nq 2 c 1\nq 3 d 1\n")
    QRELS.to_csv(paths[1], index=False)
    for path in paths:
        assert trm.evaluate_run(path, RUN, NAMES) == pytest.approx(EXAMPLE)
        assert trm.evaluate_run(path, RUN, ["recall@3"], subtopic="subtopic") == {
            "recall@3": 0.5
        }


def test_explanations_of_tables_show_the_labels_of_subtopics():
    explained = trm.explain_run(QRELS, RUN, "alpha_ndcg@5", "q")
    assert explained.value == pytest.approx(EXAMPLE["alpha_ndcg@5"])
    assert "3     b         2  1 1 0" in str(explained)
    assert "contribution = novelty * discount / 3.0963" in str(explained)
    columns = {"item_ids": "item_id", "subtopic": "subtopic"}
    rows = "query_id", "label", "score", "strec@5", "q"
    of_table = trm.explain_rows(*rows, data=merged(QRELS, RUN), **columns)
    assert of_table.value == pytest.approx(2 / 3)
    both = trm.explain_run(QRELS, RUN, "alpha_ndcg@5", "q", versus=trm.RecallAtK(k=5))
    assert both.value == explained.value


def test_the_command(tmp_path, capsys):
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    rows = QRELS.itertuples(index=False)
    qrels.write_text("".join(f"{' '.join(map(str, row))}\n" for row in rows))
    run.write_text("".join(f"q Q0 {i} 1 {s} x\n" for _, i, s in RUN.to_numpy()))
    files = [str(qrels), str(run)]
    assert main([*files, "-m", "alpha_ndcg@5", "-m", "strec@5"]) == 0
    assert capsys.readouterr().out.split()[2::3] == ["0.6347", "0.6667"]
    assert main([*files, "-m", "recall@3", "--subtopic", "any"]) == 0
    assert capsys.readouterr().out.split()[2] == "0.5000"
    assert main([*files, "-m", "recall@3"]) == 2
    assert "name their column: --subtopic." in capsys.readouterr().err
    table, models = tmp_path / "table.csv", tmp_path / "models.csv"
    rows = merged(QRELS, RUN).assign(model="a")
    rows.to_csv(table, index=False)
    assert main([str(table), "-m", "alpha_ndcg@5"]) == 0
    assert capsys.readouterr().out.split()[2] == "0.6347"
    other = rows.assign(model="b", score=rows["score"] + 1)
    pd.concat([rows, other]).to_csv(models, index=False)
    assert main([str(models), "-m", "alpha_ndcg@5", "--model", "model"]) == 0
    assert "0.6347" in capsys.readouterr().out


@pytest.mark.parametrize("ties", [False, True])
def test_tables_equal_arrays_of_items_by_descending_id(ties):
    """Of these, `argmax` of a greedy ideal takes the first, with the greatest id."""
    qrels, run = random_tables(3, ties=ties)
    names = ["subtopic_recall@3", "alpha_dcg@3", "precision_ia@3"]
    found = trm.evaluate_run(qrels, run, [*names, "alpha_ndcg@3"], per_query=True)
    assert (found["query"] == [*qrels.groupby("query_id").groups]).all()
    for query, (labels, scores) in enumerate(arrays_of(qrels, run)):
        expected = trm.evaluate(labels, scores, names)
        assert {n: found[n][query] for n in names} == pytest.approx(expected)
        dcg, items = expected["alpha_dcg@3"], (labels[0] >= 1) * 1.0
        ideal = dcg_of_greedy_ideal(items, 3)
        assert found["alpha_ndcg@3"][query] == pytest.approx(dcg / ideal)


@pytest.mark.parametrize("form", ["run", "rows"])
def test_order_parts_and_names_of_rows_do_not_matter(form, monkeypatch):
    qrels, run = random_tables(4, ties=True)

    def evaluate(qrels, run, **options):
        if form == "run":
            return trm.evaluate_run(qrels, run, ALL, per_query=True, **options)
        return of_rows(merged(qrels, run), ALL, per_query=True, **options)

    def assert_same(found):
        by_query = pd.DataFrame(found).set_index("query").sort_index()
        pd.testing.assert_frame_equal(by_query, expected, rtol=1e-14)

    expected = pd.DataFrame(evaluate(qrels, run)).set_index("query").sort_index()
    rng = np.random.default_rng(0)
    shuffled = [each.sample(frac=1, random_state=rng) for each in (qrels, run)]
    assert_same(evaluate(*shuffled))
    names = {f"t{number}": f"{(7 * number) % 5} x" for number in range(6)}
    assert_same(evaluate(qrels.replace({"subtopic": names}), run))
    monkeypatch.setattr(rows_by_query, "ELEMENTS_IN_CACHE", 40)
    assert_same(evaluate(qrels, run))


def test_other_metrics_take_the_highest_label_of_an_item():
    qrels, run = random_tables(5)
    names = ["ndcg@3", "recall@2", "map", "judged@3", "bpref"]
    highest = qrels.groupby(["query_id", "item_id"], as_index=False)["label"].max()
    found = trm.evaluate_run(qrels, run, [*names, "alpha_ndcg"], subtopic="subtopic")
    del found["alpha_ndcg"]
    assert found == pytest.approx(trm.evaluate_run(highest, run, names))
    table = merged(qrels, run)
    once = table.groupby(["query_id", "item_id"], as_index=False).max()
    columns = "query_id", "label", "score"
    expected = trm.evaluate_rows(*columns, names, data=once)
    assert of_rows(table, names) == pytest.approx(expected)


def test_weights_slices_and_models_by_columns_of_judgments():
    qrels, run = random_tables(6)
    qrels["weight"], qrels["by"] = qrels["query_id"] + 1, qrels["query_id"] % 2
    options = {"sample_weight": "weight", "by": "by"}
    found = trm.evaluate_run(qrels, run, ["strec@3"], **options)
    values = trm.evaluate_run(qrels, run, ["strec@3"], per_query=True)["strec@3"]
    weights = np.arange(len(values)) + 1
    expected = np.average(values, weights=weights)
    assert found.to_dicts()[-1]["strec@3"] == pytest.approx(expected)
    models = pd.concat([run.assign(model="a"), run.assign(model="b", score=1)])
    both = trm.evaluate_run(qrels, models, ["strec@3"], model="model")
    assert both["a"]["strec@3"] == pytest.approx(values.mean())


@pytest.mark.parametrize("separator", [" ", "\t", "  "])
def test_a_large_file_of_judgments(separator, tmp_path, monkeypatch):
    qrels, run = random_tables(7)
    path, run = tmp_path / "qrels.txt", run.astype({"query_id": str})
    lines = (separator.join(map(str, row)) for row in qrels.itertuples(index=False))
    path.write_text("\n".join(lines))
    expected = trm.evaluate_run(qrels.astype({"query_id": str}), run, ALL)
    for large in (0, 10**9):
        monkeypatch.setattr(trec_files, "LARGE", large)
        assert trm.evaluate_run(path, run, ALL) == expected


# Mistakes


def test_a_repeated_pair_is_an_error_that_names_the_option(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("q 1 b 1\nq 2 b 1\n")
    for qrels in (QRELS, path):
        with pytest.raises(ValueError, match=r"'b' twice.*subtopic='\.\.\.'"):
            trm.evaluate_run(qrels, RUN, ["recall@3"])
    columns = {"data": merged(QRELS, RUN), "item_ids": "item_id"}
    with pytest.raises(ValueError, match=r"'b' twice.* pass `subtopic`"):
        trm.evaluate_rows("query_id", "label", "score", ["recall@3"], **columns)


def test_an_item_is_judged_once_for_a_subtopic(tmp_path):
    twice = pd.concat([QRELS, QRELS[3:4]], ignore_index=True)
    message = "'q' with the item 'c' and the subtopic '2' twice, the second time in "
    with pytest.raises(ValueError, match=f"{message}row 5"):
        trm.evaluate_run(twice, RUN, NAMES)
    path = tmp_path / "qrels.txt"
    twice.to_csv(path, sep=" ", header=False, index=False)
    with pytest.raises(ValueError, match=f"{message}line 6"):
        trm.evaluate_run(path, RUN, NAMES)


def test_judgments_without_subtopics_are_an_error(tmp_path):
    path = tmp_path / "qrels.txt"
    path.write_text("query-id corpus-id score\nq a 1\n")
    for qrels in ({"q": {"a": 1}}, path):
        with pytest.raises(ValueError, match="Judgments of subtopics must be a frame"):
            trm.evaluate_run(qrels, RUN, NAMES)
    with pytest.raises(ValueError, match="`subtopic` must name one column"):
        trm.evaluate_run(QRELS.drop(columns="subtopic"), RUN, NAMES)
    missing = QRELS.assign(subtopic=[*"1122", None])
    with pytest.raises(ValueError, match=r"subtopics must not be missing.*row 4"):
        trm.evaluate_run(missing, RUN, NAMES)


def test_rows_need_subtopics_and_items_and_one_score_for_each():
    table = merged(QRELS, RUN)
    with pytest.raises(ValueError, match="Received: no `subtopic`"):
        of_rows(table, NAMES, subtopic=None)
    with pytest.raises(ValueError, match="Received: no `item_ids`"):
        of_rows(table, NAMES, item_ids=None)
    with pytest.raises(ValueError, match="`subtopic` must contain a value for each"):
        of_rows(table, NAMES, subtopic=["a"])
    table["score"] = np.arange(len(table))
    with pytest.raises(ValueError, match="`scores` must have the same value in all"):
        of_rows(table, NAMES)
    assert of_rows(table.assign(score=np.nan), ["strec@5"])["strec@5"] > 0
