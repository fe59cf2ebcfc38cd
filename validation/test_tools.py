"""Compares each tool with this library, which uses the tool's convention."""

import ir_measures as ir_measures_package
import lightgbm
import numpy as np
import own_metric  # noqa: F401 (declares graded_rbp)
import pandas as pd
import pyndeval
import pytest
import pytrec_eval
import ranx as ranx_package
from cases import inverse_rank
from conventions_document import (
    choice_examples,
    example_id,
    examples_in_batches,
    same_values,
)
from queries import (
    CUTOFFS,
    GRADES,
    SOME_ZERO,
    WEIGHTS,
    name_of,
    random_batch,
    random_queries,
    subtopics_of,
)
from random_orders import TIED_LABELS, TIED_SCORES, mean_over_orders
from sklearn.metrics import label_ranking_average_precision_score, label_ranking_loss
from tools import (
    KERAS_RS,
    TOOLS,
    binary,
    catboost,
    catboost_value,
    ir_measures,
    keras_rs_metric,
    lightgbm_value,
    qrels_and_run,
    ranx,
    recbole,
    xgboost_value,
)

import tfrankmetrics as trm

by_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def ours(names, queries, convention):
    labels, scores = zip(*queries, strict=True)
    return trm.evaluate(labels, scores, names, convention=convention, per_query=True)


def test_every_metric_of_every_convention_is_compared():
    compared = {(tool.convention, metric) for tool in TOOLS for metric in tool.metrics}
    named = {
        (name, metric)
        for name, convention in trm.CONVENTIONS.items()
        for metric in convention.metrics
    }
    # RBP is compared with ranx, by its options. trec_eval 10, which has RBP, too, is no
    # package: `tests/test_conventions.py` has its values.
    compared.add(("catboost", "pfound"))  # below, by labels up to 1
    compared.add(("ir_measures", "err"))  # below, by gdeval
    compared.add(("ir_measures", "rbp"))  # in `test_runs.py`, by cwl-eval
    compared.add(("trec_eval", "capped_recall"))  # below, by BEIR
    compared.add(("recbole", "gauc"))  # below, since it is a mean over queries
    # In environments of their own: see `test_tf_ranking.py` and `test_tfma.py`.
    elsewhere = ("tf_ranking", "tfrs", "tfma")
    assert compared == {pair for pair in named if pair[0] not in elsewhere}


@pytest.mark.parametrize("kind", ["untied", "tied"])
def test_pfound_equals_catboost(kind, compare):
    graded = random_queries(60, seed=3, kind=kind)
    queries = [([label / 4 for label in labels], scores) for labels, scores in graded]
    for k in CUTOFFS:
        name = name_of("pfound", k)
        theirs = catboost("pfound", k, queries)
        found = ours([name], queries, "catboost")[name]
        compare("catboost", "catboost", f"pfound, {kind}", found, theirs, rtol=1e-12)


@pytest.mark.parametrize("kind", ["untied", "tied"])
def test_err_of_probabilities_equals_catboost(kind, compare):
    graded = random_queries(60, seed=3, kind=kind)
    probabilities = [np.array(labels) / 4 for labels, _ in graded]
    scores = [of_query for _, of_query in graded]
    highest = 30  # the largest error is 2^-30, of a probability of 1
    labels = [np.minimum(highest, np.log2(1 + p * 2.0**highest)) for p in probabilities]
    for k in CUTOFFS:
        err = trm.ExpectedReciprocalRank(k, max_label=highest, ties="worst")
        (values,) = trm.evaluate(labels, scores, [err], per_query=True).values()
        name = "ERR" if k is None else f"ERR:top={k}"
        theirs = [
            catboost_value(name, *q) for q in zip(probabilities, scores, strict=True)
        ]
        compare("catboost", "", f"ERR, as err, {kind}", values, theirs, atol=1e-9)


def test_gauc_of_recbole_weighs_users_by_their_relevant_items(compare):
    queries = random_queries(60, seed=4, kind="tied")
    aucs = np.array(recbole("auc", None, queries))
    relevant = np.array([sum(binary(labels)) for labels, _ in queries])
    counted = ~np.isnan(aucs)
    theirs = np.average(aucs[counted], weights=relevant[counted])
    labels, scores = zip(*queries, strict=True)
    (value,) = trm.evaluate(labels, scores, ["gauc"], convention="recbole").values()
    compare("recbole", "recbole", "gauc", value, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    ("theirs", "gain", "discount"),
    [
        ("NDCG:type=Exp", "exponential", "log2"),
        ("NDCG:denominator=Position", "linear", inverse_rank),
        ("NDCG:type=Exp;denominator=Position", "exponential", inverse_rank),
    ],
)
def test_options_of_ndcg_in_catboost(theirs, gain, discount, compare):
    queries = random_queries(60, seed=5, kind="tied")
    labels, scores = zip(*queries, strict=True)
    made = trm.NDCG(gain=gain, discount=discount, convention="catboost")
    (values,) = trm.evaluate(labels, scores, [made], per_query=True).values()
    values_of_catboost = [catboost_value(theirs, *query) for query in queries]
    compare("catboost", "catboost", theirs, values, values_of_catboost, rtol=1e-12)


@pytest.mark.parametrize(
    ("theirs", "parameters", "options"),
    [
        ("ndcg@5", {"ndcg_exp_gain": False}, {"gain": "linear"}),
        ("ndcg@5-", {}, {"empty": "zero"}),
    ],
)
def test_options_of_ndcg_in_xgboost(theirs, parameters, options, compare):
    queries = random_queries(60, seed=5, kind="tied")
    labels, scores = zip(*queries, strict=True)
    made = trm.NDCG(5, convention="xgboost", **options)
    (values,) = trm.evaluate(labels, scores, [made], per_query=True).values()
    values_of_xgboost = [xgboost_value(theirs, *q, **parameters) for q in queries]
    name = ", ".join([theirs, *parameters])
    compare("xgboost", "xgboost", name, values, values_of_xgboost, rtol=1e-12)


@pytest.mark.parametrize(("example", "rows"), choice_examples(), ids=example_id)
def test_values_of_each_tool_in_the_document(example, rows):
    """The table lists every tool that has the metric, with the tool's value."""
    if example.sample_weight is not None:
        pytest.skip("the next test passes weights")
    queries = list(zip(example.labels, example.scores, strict=True))
    for tool in TOOLS:
        printed = [row.values for row in rows if tool.name in row.tools]
        if example.lists_every_tool:
            has_it = example.k in tool.metrics.get(example.metric, ())
            assert len(printed) == has_it, tool.name
        if printed:
            # Enough draws to see both orders of two tied items.
            draws = 1 if tool.ties else 40
            values = [
                tool.value_of(example.metric, example.k, queries) for _ in range(draws)
            ]
            # NaN marks a query that the tool skips.
            seen = {round(float(np.nanmean(value)), 4) for value in values}
            assert same_values(seen, *printed), tool.name


def test_a_weight_of_zero_in_the_document():
    (example, rows), *others = (
        (example, rows)
        for example, rows in choice_examples()
        if example.sample_weight is not None
    )
    assert not others
    by_tool = {tool: row.values for row in rows for tool in row.tools}
    theirs = keras_rs_metric(example.metric, example.k)
    given = example.labels, example.scores, example.sample_weight
    theirs.update_state(*(np.array(each, "f4") for each in given))
    assert by_tool["keras-rs"] == [pytest.approx(float(theirs.result()), abs=5.1e-5)]


@pytest.mark.parametrize(
    ("example", "batches", "printed"),
    list(examples_in_batches(column=1)),
    ids=example_id,
)
def test_keras_rs_differences_in_the_document(example, batches, printed):
    options = {}
    if "gain" in example.options:
        options["gain_fn"] = example.options["gain"]
    weights, size = example.sample_weight, len(example.labels) // batches
    seen = set()
    for seed in range(40):
        theirs = keras_rs_metric(example.metric, example.k, seed=seed, **options)
        for start in range(0, len(example.labels), size):
            part = slice(start, start + size)
            theirs.update_state(
                np.array(example.labels[part], "f4"),
                np.array(example.scores[part], "f4"),
                None if weights is None else np.array(weights[part], "f4"),
            )
        seen.add(round(float(theirs.result()), 4))
    assert same_values(seen, printed)


def test_bpref_with_unjudged_documents(compare):
    queries = [
        (labels, scores)
        for labels, scores in random_queries(90, seed=4, kind="missed")
        # ranx divides by the numbers of relevant and of irrelevant items.
        if 0 < sum(label > 0 for label in labels) < len(labels)
    ]
    rng = np.random.default_rng(0)
    qrels, run = qrels_and_run(queries)
    for query in run:
        for number in range(rng.integers(0, 4)):
            run[query][f"unjudged{number}"] = rng.random()
    documents = {query: [*{**qrels[query], **run[query]}] for query in qrels}
    labels = [[qrels[q].get(d, -1) for d in documents[q]] for q in qrels]
    scores = [[run[q].get(d, -np.inf) for d in documents[q]] for q in qrels]
    (ours,) = trm.evaluate(
        labels, scores, ["bpref"], convention="trec_eval", per_query=True
    ).values()
    found = pytrec_eval.RelevanceEvaluator(qrels, {"bpref"}).evaluate(run)
    trec_eval = [found[query]["bpref"] for query in qrels]
    from_ranx = ranx_package.evaluate(
        ranx_package.Qrels(qrels), ranx_package.Run(run), "bpref", return_mean=False
    )
    for package, theirs in (("pytrec-eval-terrier", trec_eval), ("ranx", from_ranx)):
        compare(package, "trec_eval", "bpref, unjudged", ours, theirs, rtol=1e-12)


def test_subtopic_metrics_equal_ndeval(compare):
    """TREC's diversity program, ndeval, is part of pyndeval."""
    queries = [query for query in random_queries(60, seed=5) if any(query[0])]
    labels, scores = zip(*queries, strict=True)
    subtopics = [subtopics_of(of_query) for of_query in labels]
    qrels = [
        (str(query), str(topic), f"d{item}", label)
        for query, of_query in enumerate(subtopics)
        for item, of_item in enumerate(of_query)
        for topic, label in enumerate(of_item)
    ]
    run = [
        (str(query), f"d{item}", score)
        for query, of_query in enumerate(scores)
        for item, score in enumerate(of_query)
    ]
    for k in (5, 10, 20):
        names = [f"P-IA@{k}", f"alpha-DCG@{k}"]
        for alpha in (0.5, 0.2):
            theirs = pyndeval.ndeval(qrels, run, measures=names, alpha=alpha)
            theirs = np.array([list(of_query.values()) for of_query in theirs.values()])
            ours = trm.evaluate(
                subtopics,
                scores,
                [trm.PrecisionIA(k=k, denominator="k"), trm.AlphaDCG(k=k, alpha=alpha)],
                per_query=True,
            )
            precision, dcg = ours.values()
            # In ndeval's ideal list, every item belongs to all subtopics of the query.
            number = np.array([np.max(topics, axis=0).sum() for topics in subtopics])
            ranks = np.arange(1, k + 1)
            best = np.sum((1 - alpha) ** (ranks - 1) / np.log2(1 + ranks))
            for name, values, column in (
                ("precision_ia", precision, 0),
                ("alpha_dcg", dcg / (number * best), 1),
            ):
                compare("pyndeval", "", name, values, theirs[:, column], rtol=1e-9)


def diversity_tables(number, seed):
    """Judgments of subtopics, and a run without ties, of which each query has some."""
    rng = np.random.default_rng(seed)
    judgments, predictions = [], []
    for query in map(str, range(number)):
        items = [f"d{each}" for each in rng.permutation(30)[: rng.integers(3, 25)]]
        judgments.append((query, "t0", items[0], 1))
        for topic in range(int(rng.integers(2, 7))):
            for item in items[1:]:
                if rng.random() < 0.4:
                    judgments.append((query, f"t{topic}", item, int(rng.integers(2))))
        found = [*items[: rng.integers(1, len(items))], "x0", "x1"]
        predictions += [(query, item, rng.random()) for item in found]
    return judgments, predictions


def frames_of(judgments, predictions):
    qrels = ["query_id", "subtopic", "item_id", "label"]
    run = ["query_id", "item_id", "score"]
    return pd.DataFrame(judgments, columns=qrels), pd.DataFrame(
        predictions, columns=run
    )


@pytest.mark.parametrize("alpha", [0.5, 0.25])
def test_tables_of_subtopics_equal_ndeval(alpha, compare):
    """10,000 queries, whose ideals meet many equal gains."""
    tables = diversity_tables(10_000, seed=int(100 * alpha))
    theirs = ["strec@5", "strec@20", *(f"alpha-nDCG@{k}" for k in (1, 5, 10, 20))]
    expected = pyndeval.ndeval(*tables, measures=theirs, alpha=alpha)
    names = [name.replace("-nDCG", "_ndcg") for name in theirs]
    found = trm.evaluate_run(*frames_of(*tables), names, alpha=alpha, per_query=True)
    queries = found["query"].tolist()
    for name, of_ndeval in zip(names, theirs, strict=True):
        values = np.array([expected[query][of_ndeval] for query in queries])
        compare("pyndeval", "", name, found[name], values, rtol=1e-12)


def test_nuggets_equal_freshstack():
    """Its alpha-nDCG is pyndeval's, and both means are rounded to four digits.

    Its coverage is the share of a query's nuggets that a document of the top k
    supports, rounded to five digits for each query.
    """
    judgments, predictions = diversity_tables(200, seed=1)
    of_ndeval = pyndeval.ndeval(judgments, predictions, measures=["alpha-nDCG@10"])
    nuggets, ranked = {}, {}
    for query, nugget, item, label in judgments:
        if label > 0:
            nuggets.setdefault(query, {}).setdefault(nugget, set()).add(item)
    for query, item, _ in sorted(predictions, key=lambda row: -row[2]):
        ranked.setdefault(query, []).append(item)
    coverage = [
        round(sum(not of.isdisjoint(ranked[query][:20]) for of in each) / len(each), 5)
        for query, of_query in nuggets.items()
        for each in [of_query.values()]
    ]
    alpha_ndcg = [of_query["alpha-nDCG@10"] for of_query in of_ndeval.values()]
    expected = round(np.mean(alpha_ndcg), 4), round(np.mean(coverage), 4)
    names = ["alpha_ndcg@10", "nugget_recall@20"]
    found = trm.evaluate_run(*frames_of(judgments, predictions), names)
    assert tuple(round(found[name], 4) for name in names) == expected


@pytest.mark.parametrize("persistence", [0.5, 0.8, 0.95])
def test_rank_biased_precision_equals_ranx(persistence, compare):
    """RBP in ranx sums the labels, like graded RBP with max_label=1."""
    graded = random_queries(60, seed=1)
    binary = [([int(x > 0) for x in labels], scores) for labels, scores in graded]
    options = {"persistence": persistence, "per_query": True}
    for name, queries, more in (
        ("rbp", binary, {}),
        ("graded_rbp", graded, {"max_label": 1}),
    ):
        labels, scores = zip(*queries, strict=True)
        ours = trm.evaluate(labels, scores, [name], **options, **more)[name]
        theirs = ranx(f"rbp.{persistence * 100:.0f}", None, queries)
        compare("ranx", "", name, ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("kind", ["untied", "tied", "missed"])
def test_gains_by_grade_equal_ir_measures(kind, compare):
    """Its gains are whole numbers, since trec_eval reads whole grades."""
    queries = random_queries(60, seed=3, kind=kind)
    qrels, run = qrels_and_run(queries)
    name = "nDCG(gains={0:0,1:1,2:5,3:7,4:20})@10"
    measure = ir_measures_package.parse_measure(name)
    results = ir_measures_package.iter_calc([measure], qrels, run)
    theirs = {each.query_id: each.value for each in results}
    (values,) = ours([name], queries, "ir_measures").values()
    theirs = [theirs[query] for query in qrels]
    compare("ir_measures", "ir_measures", "ndcg, gains", values, theirs, rtol=1e-12)


def test_gains_by_grade_equal_label_gain_of_lightgbm(compare):
    gains = [0, 0.1, 3, 3.5, 100]
    for labels, scores in random_queries(60, seed=3, kind="untied"):
        theirs = lightgbm_value("ndcg", 10, labels, scores, label_gain=gains)
        options = {"gain": gains, "convention": "lightgbm"}
        (value,) = trm.evaluate(labels, scores, ["ndcg@10"], **options).values()
        compare("lightgbm", "lightgbm", "ndcg, label_gain", value, theirs, rtol=1e-12)


@pytest.mark.parametrize("kind", ["untied", "tied", "missed"])
def test_capped_recall_equals_beir(kind, compare):
    """Rounded to five digits, and only for queries with a relevant document."""
    from beir.retrieval import custom_metrics

    queries = [
        each for each in random_queries(40, seed=3, kind=kind) if any(binary(each[0]))
    ]
    for k in CUTOFFS[1:]:
        theirs = []
        for query in queries:
            qrels, run = qrels_and_run([query])
            theirs += custom_metrics.recall_cap(qrels, run, [k]).values()
        name = f"R_cap@{k}"
        (values,) = ours([name], queries, "trec_eval").values()
        compare("beir", "trec_eval", "capped_recall", values, theirs, atol=5.1e-6)
        option = trm.RecallAtK(k, denominator="min(k, relevant)", ties="stable")
        labels, scores = zip(*queries, strict=True)
        again = trm.evaluate(labels, scores, [option], per_query=True)[option.name]
        np.testing.assert_array_equal(again, values)


@pytest.mark.parametrize("kind", ["untied", "tied"])
def test_beir_breaks_ties_as_trec_eval_and_in_its_own_metrics_by_input_order(
    kind, compare
):
    """BEIR's values are means, rounded to five digits."""
    from beir.retrieval import custom_metrics
    from beir.retrieval.evaluation import EvaluateRetrieval

    qrels, run = qrels_and_run(random_queries(40, seed=3, kind=kind))
    cutoffs = [1, 3, 10]
    of_trec_eval = EvaluateRetrieval.evaluate(qrels, run, cutoffs)
    theirs = {name: value for each in of_trec_eval for name, value in each.items()}
    names = [
        f"{metric}@{k}" for metric in ("ndcg", "map", "recall", "P") for k in cutoffs
    ]
    found = trm.evaluate_run(qrels, run, names, convention="trec_eval")
    compare(
        "beir",
        "trec_eval",
        f"ndcg, ..., {kind}",
        [*found.values()],
        [*theirs.values()],
        atol=5.1e-6,
    )
    theirs = {
        **custom_metrics.mrr(qrels, run, cutoffs),
        **custom_metrics.top_k_accuracy(qrels, run, cutoffs),
    }
    names = [f"{metric}@{k}" for metric in ("mrr", "hit_rate") for k in cutoffs]
    found = trm.evaluate_run(qrels, run, names, ties="stable")
    compare(
        "beir",
        "",
        f"mrr, hit_rate, {kind}",
        [*found.values()],
        [*theirs.values()],
        atol=5.1e-6,
    )


def test_three_tied_documents_of_beir():
    """The first of them, which is the last one by name, is the relevant one."""
    from beir.retrieval import custom_metrics

    qrels, run = {"q": {"a": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    theirs = [
        custom_metrics.mrr(qrels, run, [10]),
        custom_metrics.recall_cap(qrels, run, [1]),
        custom_metrics.top_k_accuracy(qrels, run, [1]),
    ]
    assert [value for each in theirs for value in each.values()] == [1, 1, 1]
    names = ["mrr@10", "R_cap@1", "hit_rate@1"]
    found = trm.evaluate_run(qrels, run, names, ties="stable")
    assert [*found.values()] == [1, 1, 1]
    found = trm.evaluate_run(qrels, run, names, convention="trec_eval")
    assert [*found.values()] == [1 / 3, 0, 0]


def test_capped_recall_equals_the_r_precision_of_rectools(compare):
    import pandas as pd
    from rectools.metrics import Precision

    queries = [q for q in random_queries(40, seed=3) if any(binary(q[0]))]
    recommended, relevant = [], []
    for user, (labels, scores) in enumerate(queries):
        order = np.argsort(-np.array(scores)).tolist()
        recommended += [(user, item, rank) for rank, item in enumerate(order, 1)]
        relevant += [(user, item) for item, label in enumerate(labels) if label >= 1]
    recommended = pd.DataFrame(recommended, columns=["user_id", "item_id", "rank"])
    relevant = pd.DataFrame(relevant, columns=["user_id", "item_id"])
    for k in CUTOFFS[1:]:
        found = Precision(k, r_precision=True).calc_per_user(recommended, relevant)
        (values,) = ours([f"R_cap@{k}"], queries, "trec_eval").values()
        compare("rectools", "", "capped_recall", values, found.sort_index(), rtol=1e-12)


def test_hole_equals_beir_for_one_query(compare):
    """BEIR also counts items that another query judged, and divides by k."""
    from beir.retrieval import custom_metrics

    qrels = {"q": {"a": 1, "b": 0}}
    run = {"q": {"z": 4.0, "a": 3.0, "y": 2.0, "b": 1.0, "x": 0.5}}
    for k in (1, 2, 3, 5, 10):
        (theirs,) = custom_metrics.hole(qrels, run, [k]).values()
        hole = trm.HoleAtK(k, denominator="k")
        ours = trm.evaluate_run(qrels, run, [hole])[hole.name]
        compare("beir", "", "hole", ours, theirs, atol=5.1e-6)  # of five digits


@pytest.mark.parametrize("metric", ["ndcg", "mrr", "map", "recall", "precision", "f1"])
def test_ties_equal_trm(metric, compare):
    """The expectation over the orders of tied items, and its bounds."""
    import trm as tool

    queries = [
        (binary(q), scores) for q, scores in random_queries(60, seed=4, kind="tied")
    ]
    queries = [each for each in queries if any(each[0])]
    labels, scores = ([*each] for each in zip(*queries, strict=True))
    given = [[bool(label) for label in each] for each in labels]
    cutoffs = [1, 2, 3, 5]
    theirs = tool.evaluate(scores, given, metrics=[metric], k_list=cutoffs)
    for k in cutoffs:
        found = theirs.per_query[metric][k]
        for ties, field in (
            ("expected", "expected"),
            ("stable", "oblivious"),
            ("best", "maximum"),
            ("worst", "minimum"),
        ):
            (values,) = trm.evaluate(
                labels, scores, [f"{metric}@{k}"], ties=ties, per_query=True
            ).values()
            theirs_of_k = np.array([getattr(each, field) for each in found])
            # In a list shorter than k, it divides precision by k or by the length.
            is_long = np.array([len(each) >= k for each in labels])
            compare(
                "tie-aware-retrieval-metrics",
                "",
                f"{metric}, ties={ties}",
                values[is_long],
                theirs_of_k[is_long],
                atol=1e-12,
            )


def test_judged_equals_ir_measures(compare):
    queries = random_queries(60, seed=2)
    qrels, run = qrels_and_run(queries)
    rng = np.random.default_rng(0)
    for query in qrels:  # drops some judgments, but never all
        kept = [name for name in qrels[query] if rng.random() < 0.6]
        qrels[query] = {name: 1 for name in kept or [*qrels[query]][:1]}
    for k in (1, 3, 10):
        measure = ir_measures_package.parse_measure(f"Judged@{k}")
        results = ir_measures_package.iter_calc([measure], qrels, run)
        theirs = {result.query_id: result.value for result in results}
        found = trm.evaluate_run(qrels, run, [f"judged@{k}"], per_query=True)
        values = [theirs[query] for query in found["query"]]
        compare("ir-measures", "", "judged", found[f"judged@{k}"], values, rtol=1e-14)


@pytest.mark.parametrize("kind", ["untied", "tied"])
def test_multilabel_metrics_of_scikit_learn(kind, compare):
    """LRAP is MAP unless scores are tied. The ranking loss is 1 - AUC, ties lost."""
    queries = [(binary(x), s) for x, s in random_queries(80, seed=6, kind=kind)]
    labels, scores = zip(*queries, strict=True)
    metrics = [trm.MeanAveragePrecision(empty="one")]
    metrics += [trm.PerQueryAUC(ties="worst", empty="one")]
    precision, auc = trm.evaluate(labels, scores, metrics, per_query=True).values()
    lrap = [label_ranking_average_precision_score([x], [s]) for x, s in queries]
    loss = [label_ranking_loss([x], [s]) for x, s in queries]
    if kind == "untied":
        compare("scikit-learn", "", "LRAP, as map", precision, lrap, rtol=1e-12)
    name = f"ranking loss, as 1 - auc, {kind}"
    compare("scikit-learn", "", name, 1 - auc, loss, atol=1e-12)


def test_expected_reciprocal_rank_equals_gdeval(compare):
    """TREC's Perl script, gdeval, is part of ir_measures. It prints five digits."""
    queries = random_queries(60, seed=1)
    for k in (1, 3, 10):
        labels, scores = zip(*queries, strict=True)
        ours = trm.evaluate(labels, scores, [f"err@{k}"], per_query=True)[f"err@{k}"]
        theirs = ir_measures("err", k, queries)
        compare("ir-measures", "", "err", ours, theirs, rtol=0, atol=5.1e-6)


def test_read_trec_gives_the_values_of_trec_eval(tmp_path, compare):
    queries = random_queries(40, seed=2, kind="missed")
    qrels, run = qrels_and_run(queries)
    for query in list(run)[::2]:
        run[query]["x"] = 0.3  # not judged
        qrels[query]["y"], run[query]["y"] = -1, 0.2  # outside the judgment pool
    missing = list(run)[3]
    del run[missing]
    qrels[list(run)[5]] = {"x": -1, "y": -1}  # only negative judgments
    paths = tmp_path / "qrels", tmp_path / "run"
    paths[0].write_text(
        "".join(f"{q} 0 {d} {r}\n" for q in qrels for d, r in qrels[q].items())
    )
    paths[1].write_text(
        "".join(f"{q} Q0 {d} 1 {s} tag\n" for q in run for d, s in run[q].items())
    )
    measures = {"map", "ndcg_cut.5", "Rprec", "bpref"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    names = {"map": "map", "ndcg@5": "ndcg_cut_5", "r_precision": "Rprec"}
    options = {"metrics": list(names), "convention": "trec_eval", "per_query": True}
    ours = trm.evaluate_rows(*trm.read_trec(*paths), **options)
    judged = trm.read_trec(*paths, judged_only=True)
    bpref = trm.evaluate_rows(*judged, **{**options, "metrics": ["bpref"]})
    assert bpref["query"].tolist() == ours["query"].tolist()
    ours, names = {**ours, **bpref}, {**names, "bpref": "bpref"}
    assert set(ours["query"]) == set(theirs)
    for our_name, name in names.items():
        values = [theirs[query][name] for query in ours["query"]]
        compare(
            "pytrec-eval-terrier",
            "trec_eval",
            f"{our_name}, from files",
            ours[our_name],
            values,
            rtol=1e-12,
        )
    complete = trm.evaluate_rows(*trm.read_trec(*paths, complete=True), **options)
    assert set(complete["query"]) - set(ours["query"]) == {missing}
    assert complete["map"][complete["query"] == missing] == 0.0


def test_trec_eval_with_a_relevance_level_in_the_document():
    level = 2
    ((example, (row,)),) = (
        (example, rows)
        for example, rows in choice_examples()
        if "relevance_threshold" in example.options
    )
    qrels, run = qrels_and_run(list(zip(example.labels, example.scores, strict=True)))
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"map"}, relevance_level=level)
    (values,) = evaluator.evaluate(run).values()
    assert row.tools == [f"trec_eval -l {level}"]
    assert row.values == [values["map"]]


@pytest.mark.parametrize("weights", [*WEIGHTS, SOME_ZERO])
@pytest.mark.parametrize("grades", GRADES)
def test_keras_rs_with_padding_and_weights(grades, weights, compare):
    rng = np.random.default_rng(2)
    for _ in range(4):
        labels, scores, sample_weight = random_batch(rng, grades, weights)
        names = [name_of(metric, k) for metric in KERAS_RS for k in (None, 3)]
        ours = trm.evaluate(
            labels,
            scores,
            names,
            sample_weight=sample_weight,
            convention="keras_rs",
        )
        for metric in KERAS_RS:
            for k in (None, 3):
                theirs = keras_rs_metric(metric, k)
                theirs.update_state(labels, scores, sample_weight)
                compare(
                    "keras-rs",
                    "keras_rs",
                    f"{metric}, padding, weights",
                    ours[name_of(metric, k)],
                    float(theirs.result()),
                    rtol=1e-5,
                    atol=1e-5,
                )


@pytest.mark.parametrize("metric", KERAS_RS)
def test_our_value_is_the_mean_of_random_orders_in_keras_rs(metric, compare):
    theirs = keras_rs_metric(metric, 2, seed=0)

    def value_of_batch(labels, scores):
        theirs.reset_state()
        theirs.update_state(labels, scores)
        return float(theirs.result())

    mean, standard_error = mean_over_orders(value_of_batch)
    (ours,) = trm.evaluate(
        TIED_LABELS, TIED_SCORES, [f"{metric}@2"], convention="keras_rs"
    ).values()
    compare(
        "keras-rs",
        "keras_rs",
        f"{metric}, mean of random ties",
        ours,
        mean,
        rtol=1e-6,
        atol=4 * standard_error,
    )


@pytest.mark.parametrize(
    ("scores", "value"), [((3, 2, 1), 1.0), ((3, 1, 2), 2 / 3), ((1, 3, 2), 1 / 3)]
)
def test_the_auc_of_xgboost_counts_pairs_of_equal_labels(scores, value):
    """So it has no convention. Both orders of the last two items have the same AUC."""
    assert xgboost_value("auc", [1, 0, 0], scores) == pytest.approx(value)


def test_lightgbm_values_after_each_tree(compare):
    """Compares values after each tree. Trees cause ties, and empty queries count."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 15, 150)
    starts = np.cumsum(sizes)[:-1]
    features = rng.normal(size=(sizes.sum(), 5))
    grades = features[:, 0] + features[:, 1] ** 2 + rng.normal(size=sizes.sum())
    labels = np.digitize(grades, [1.5, 2.5, 3.5])
    data = lightgbm.Dataset(features, label=labels, group=sizes, free_raw_data=False)
    parameters = {
        "objective": "lambdarank",
        "metric": ["ndcg", "map"],
        "eval_at": [1, 3, 10],
        "num_leaves": 4,
        "verbosity": -1,
        "num_threads": 2,
        "deterministic": True,
    }
    evaluations = {}
    model = lightgbm.train(
        parameters,
        data,
        num_boost_round=12,
        valid_sets=[data],
        valid_names=["valid"],
        callbacks=[lightgbm.record_evaluation(evaluations)],
    )
    lists = [part.tolist() for part in np.split(labels, starts)]
    for trees in range(1, 13):
        scores = model.predict(features, num_iteration=trees)
        theirs = {name: of[trees - 1] for name, of in evaluations["valid"].items()}
        by_query = [part.tolist() for part in np.split(scores, starts)]
        ours = trm.evaluate(lists, by_query, list(theirs), convention="lightgbm")
        for name, value in theirs.items():
            compare(
                "lightgbm",
                "lightgbm",
                f"{name.partition('@')[0]}, trained model",
                ours[name],
                value,
                rtol=1e-9,
            )
    assert any(max(part) == 0 for part in lists)
    assert any(len(set(part)) < len(part) for part in by_query)
