"""`evaluate_run` and `compare` beside pytrec_eval, ir_measures, ranx and SciPy."""

import ir_measures
import numpy as np
import pytest
import pytrec_eval
import ranx
import scipy.stats

import tfrankmetrics as trm

RNG = np.random.default_rng(0)
DOCUMENTS = [f"d{number}" for number in range(60)]


def draw(size, number):
    return {
        f"q{query}": {str(item): number() for item in RNG.permutation(DOCUMENTS)[:size]}
        for query in range(80)
    }


QRELS = draw(20, lambda: int(RNG.integers(0, 4)))
# With ties, and with judged documents that are missing.
RUNS = {
    name: {
        query: {
            item: float(np.round(strength * QRELS[query].get(item, 0) + noise, 1))
            for item, noise in of.items()
        }
        for query, of in draw(40, lambda: float(RNG.normal())).items()
    }
    for name, strength in (("weak", 0.3), ("middle", 0.4), ("strong", 0.6))
}
NAMES = ["ndcg_cut_10", "map", "recip_rank", "P_5", "recall_20", "bpref"]
# As ir_measures writes them, without those that other programs than trec_eval compute.
OF_IR_MEASURES = [
    "nDCG@10",
    "nDCG(dcg='log2')@5",
    "AP",
    "AP(rel=2)@100",
    "AP@20",
    "RR",
    "RR(rel=3)",
    "P@5",
    "P(rel=2)@50",
    "R@20",
    "R(rel=2)@20",
    "Success@5",
    "Success(rel=3)@1",
    "Rprec",
    "Rprec(rel=2)",
    "Bpref",
    "Bpref(rel=2)",
]


@pytest.mark.parametrize("name", RUNS)
def test_dicts_give_the_values_of_pytrec_eval(name):
    theirs = pytrec_eval.RelevanceEvaluator(QRELS, set(NAMES)).evaluate(RUNS[name])
    ours = trm.evaluate_run(
        QRELS, RUNS[name], NAMES, convention="trec_eval", per_query=True
    )
    for number, query in enumerate(ours["query"]):
        for their_name in NAMES:
            assert ours[their_name][number] == pytest.approx(
                theirs[query][their_name], rel=1e-12
            )


@pytest.mark.parametrize("name", RUNS)
def test_names_with_parameters_give_the_values_of_ir_measures(name):
    """Of runs with ties, whose order is that of trec_eval."""
    measures = {each: ir_measures.parse_measure(each) for each in OF_IR_MEASURES}
    theirs = ir_measures.calc_aggregate([*measures.values()], QRELS, RUNS[name])
    options = {"convention": "ir_measures"}
    ours = trm.evaluate_run(QRELS, RUNS[name], OF_IR_MEASURES, **options)
    assert [*ours] == OF_IR_MEASURES
    for each, measure in measures.items():
        assert ours[each] == pytest.approx(theirs[measure], rel=1e-12), each
    metric = trm.evaluate_run(QRELS, RUNS[name], ["nDCG@10", "P@50"])
    assert metric["nDCG@10"] != pytest.approx(ours["nDCG@10"], rel=1e-6)


def test_measures_of_ir_measures_print_as_names():
    """Also those with parameters, of a run without ties."""
    run, qrels = (
        {query.removeprefix("q"): of for query, of in each.items()}  # gdeval's ids
        for each in (without_ties(RUNS["weak"]), QRELS)
    )
    measures = [
        ir_measures.nDCG(dcg="exp-log2") @ 10,
        ir_measures.ERR @ 5,
        ir_measures.RR(rel=2) @ 10,
        ir_measures.Judged @ 10,
        ir_measures.P(rel=2) @ 40,
        ir_measures.Success(rel=3) @ 2,
    ]
    theirs = ir_measures.calc_aggregate(measures, qrels, run)
    names = [str(measure) for measure in measures]
    ours = trm.evaluate_run(qrels, run, names, convention="ir_measures")
    assert [*ours] == names
    for name, measure in zip(names, measures, strict=True):
        is_exact = "exp-log2" not in name and "ERR" not in name
        tolerance = {"rel": 1e-12} if is_exact else {"abs": 5.1e-6}
        assert ours[name] == pytest.approx(theirs[measure], **tolerance), name


def test_rbp_of_ir_measures():
    """It needs cwl-eval, and `rel`."""
    pytest.importorskip("cwl.cwl_eval")
    run = without_ties(RUNS["weak"])
    for name in ("RBP(rel=1)", "RBP(p=0.5,rel=2)"):
        measure = ir_measures.parse_measure(name)
        theirs = ir_measures.calc_aggregate([measure], QRELS, run)[measure]
        ours = trm.evaluate_run(QRELS, run, [name], convention="ir_measures")
        assert ours[name] == pytest.approx(theirs, rel=1e-9)


def test_frames_give_the_values_of_ir_measures():
    import pandas as pd

    qrels, run = (
        pd.DataFrame(
            [(q, d, v) for q, of in pairs.items() for d, v in of.items()],
            columns=["query_id", "doc_id", value],
        )
        for pairs, value in ((QRELS, "relevance"), (RUNS["weak"], "score"))
    )
    measures = [ir_measures.nDCG @ 10, ir_measures.AP, ir_measures.RR]
    theirs = ir_measures.calc_aggregate(measures, qrels, run)
    ours = trm.evaluate_run(
        qrels,
        run,
        [str(measure) for measure in measures],
        item="doc_id",
        label="relevance",
        convention="trec_eval",
    )
    assert [*ours.values()] == pytest.approx([theirs[m] for m in measures], rel=1e-12)


def without_ties(run):
    return {
        query: {
            item: -float(rank) for rank, item in enumerate(sorted(of, key=of.get)[::-1])
        }
        for query, of in run.items()
    }


@pytest.mark.parametrize("test", ["t", "randomization"])
def test_comparisons_are_those_of_ranx(test):
    runs = {name: without_ties(run) for name, run in RUNS.items()}
    values = {
        name: trm.evaluate_run(QRELS, run, ["map", "mrr"], per_query=True)
        for name, run in runs.items()
    }
    ours = trm.compare(values, test=test, correction=None, resamples=5000)
    report = ranx.compare(
        ranx.Qrels(QRELS),
        [ranx.Run(run, name=name) for name, run in runs.items()],
        ["map", "mrr"],
        stat_test={"t": "student", "randomization": "fisher"}[test],
        n_permutations=5000,
        make_comparable=False,
    ).to_dict()
    for mean in ours.means:
        assert mean.mean == pytest.approx(report[mean.model]["scores"][mean.metric])
    for each in ours.differences:
        first, second = each.models
        theirs = report[second]["comparisons"][first][each.metric]
        if test == "t":
            assert each.p == pytest.approx(theirs, rel=1e-9)
        else:  # both draw at random
            error = np.sqrt(2 * each.p * (1 - each.p) / 5000)
            assert each.p == pytest.approx(theirs, abs=5 * error + 5e-4)
        counts = report[second]["win_tie_loss"][first][each.metric]
        assert (each.wins, each.ties, each.losses) == (
            counts["W"],
            counts["T"],
            counts["L"],
        )


def test_the_t_test_is_that_of_scipy():
    values = {
        name: trm.evaluate_run(QRELS, run, ["ndcg@10"], per_query=True)
        for name, run in RUNS.items()
    }
    for each in trm.compare(values, test="t", correction=None).differences:
        first, second = (values[name]["ndcg@10"] for name in each.models)
        expected = scipy.stats.ttest_rel(second, first)
        assert each.p == pytest.approx(expected.pvalue, rel=1e-9)
