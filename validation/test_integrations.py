"""Each module of `tfrankmetrics.integrations` with the tool of its name."""

import doctest
import importlib
import pathlib
import subprocess
import sys
import types
import warnings

import ir_measures
import mlflow
import numpy as np
import pandas as pd
import pyterrier
import pytest
import pytorch_lightning
import pytrec_eval as their_pytrec_eval
import torch
import torchmetrics
from code_blocks import run_blocks
from ir_measures import (
    AP,
    ERR,
    RBP,
    RR,
    Bpref,
    IPrec,
    Judged,
    P,
    R,
    Rprec,
    Success,
    nDCG,
)
from mlflow.utils import validation

from tfrankmetrics import compare as compare_models
from tfrankmetrics import evaluate, evaluate_run
from tfrankmetrics.integrations import ir_measures as provider
from tfrankmetrics.integrations import pytrec_eval
from tfrankmetrics.integrations.mlflow import flat_metrics
from tfrankmetrics.integrations.torchmetrics import RankingMetric

DOCUMENTS = [*(f"d{number}" for number in range(12)), "é", "Z", "z", "10", "9"]
MEASURES = [*sorted(pytrec_eval.supported_measures), "P_3", "ndcg_cut.2,7", "success.2"]


def random_table(random, queries, values, at_least):
    """`{query: {document: value}}`, with many equal values."""
    table = {}
    for query in queries:
        number = random.integers(at_least, len(DOCUMENTS), endpoint=True)
        documents = random.permutation(DOCUMENTS)[:number]
        table[query] = {str(d): random.choice(values).item() for d in documents}
    return table


@pytest.mark.filterwarnings("ignore::tfrankmetrics.RankingWarning")
def test_pytrec_eval(compare):
    random = np.random.default_rng(0)
    ours, theirs = [], []
    for _ in range(250):
        queries = [f"q{number}" for number in range(random.integers(1, 9))]
        qrel = random_table(random, queries, [-1, 0, 0, 0, 1, 1, 2, 3], at_least=0)
        judged = [*queries[random.integers(0, 2) :], "without judgments"]
        # For a query without any document, pytrec_eval 0.5.11 may never return.
        run = random_table(random, judged, [-1.0, 0.1, 0.3, 0.3, 0.5, 7.25], 1)
        measures = {*random.permutation(MEASURES)[:4].tolist()}
        options = int(random.integers(1, 4)), False
        found = pytrec_eval.RelevanceEvaluator(qrel, measures, *options).evaluate(run)
        evaluator = their_pytrec_eval.RelevanceEvaluator(qrel, measures, *options)
        expected = evaluator.evaluate(run)
        assert found.keys() == expected.keys()
        for query, values in expected.items():
            assert found[query].keys() == values.keys()
            theirs += values.values()
            ours += [found[query][measure] for measure in values]
    assert len(ours) > 10_000
    tool = "pytrec-eval-terrier", "trec_eval", "its interface"
    compare(*tool, ours, theirs, atol=1e-12)


def test_functions_of_pytrec_eval():
    run, qrel = ["q Q0 a 1 0.5 x\n", "q Q0 b 2 0.25 x\n"], ["q 0 a 2\n", "r 0 b 0\n"]
    assert pytrec_eval.parse_run(run) == their_pytrec_eval.parse_run(run)
    assert pytrec_eval.parse_qrel(qrel) == their_pytrec_eval.parse_qrel(qrel)
    with pytest.raises(ValueError, match="gm_map"):
        pytrec_eval.compute_aggregated_measure("gm_map", [1.0])
    for measure in sorted(pytrec_eval.supported_measures):
        given = measure, [0.25, 0.5, 1.0]
        expected = their_pytrec_eval.compute_aggregated_measure(*given)
        assert pytrec_eval.compute_aggregated_measure(*given) == expected
    for lines in (["q Q0 a 1 0.5"], [*run, run[0]]):
        with pytest.raises(ValueError, match="Received"):
            pytrec_eval.parse_run(lines)


def test_judged_documents_only():
    given = {"q": {"a": 1, "b": 0, "c": 2}}, {"map", "ndcg", "P_2"}, 1, True
    run = {"q": {"x": 0.9, "a": 0.5, "b": 0.7, "y": 0.6}}
    expected = their_pytrec_eval.RelevanceEvaluator(*given).evaluate(run)["q"]
    found = pytrec_eval.RelevanceEvaluator(*given).evaluate(run)["q"]
    assert found == pytest.approx(expected, rel=1e-12)


def test_empty_runs_of_pytrec_eval():
    evaluator = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}, "r": {}}, {"map", "P_3"})
    assert evaluator.evaluate({}) == {}
    zeros = {"map": 0.0, "P_3": 0.0}
    assert evaluator.evaluate({"q": {}, "r": {"a": 1.0}, "s": {"a": 1.0}}) == {
        "q": zeros
    }


@pytest.mark.parametrize("measure", ["gm_map", "set_F", "ndcg.10", "x", "map.5,"])
def test_pytrec_eval_refuses_other_measures(measure):
    with pytest.raises(ValueError, match=r"Rprec.*bpref.*map_cut"):
        pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {measure})


def test_the_interface_of_pytrec_eval_needs_numpy_alone():
    code = """
import sys
from tfrankmetrics.integrations import ir_measures as provider
from tfrankmetrics.integrations import pytrec_eval
from tfrankmetrics.integrations.mlflow import flat_metrics
evaluator = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"map"})
assert evaluator.evaluate({"q": {"a": 0.5}}) == {"q": {"map": 1.0}}
assert not {"keras", "pandas", "pytrec_eval", "tensorflow", "torch"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


OF_TREC_EVAL = [nDCG, nDCG @ 3, AP, AP(rel=2) @ 4, RR]
OF_TREC_EVAL += [RR(rel=2), P @ 5, P(rel=2) @ 3, R @ 5, R(rel=2) @ 5, Success @ 2]
OF_TREC_EVAL += [Rprec, Rprec(rel=2), Bpref, Bpref(rel=2)]


@pytest.mark.filterwarnings("ignore::tfrankmetrics.RankingWarning")
def test_the_provider_equals_pytrec_eval(compare):
    random = np.random.default_rng(1)
    ours, theirs = [], []
    for _ in range(100):
        queries = [f"q{number}" for number in range(random.integers(1, 7))]
        qrels = random_table(random, queries, [-1, 0, 0, 1, 1, 2, 3], at_least=1)
        judged = [*queries[random.integers(0, 2) :], "without judgments"]
        run = random_table(random, judged, [0.1, 0.2, 0.2, 0.5, 1.0], at_least=1)
        chosen = random.permutation(len(OF_TREC_EVAL))[:5]
        measures = [OF_TREC_EVAL[number] for number in chosen]
        found = values_by_query(provider.Provider(), measures, qrels, run)
        expected = values_by_query(ir_measures.pytrec_eval, measures, qrels, run)
        assert found.keys() == expected.keys()
        ours += [found[key] for key in expected]
        theirs += expected.values()
    compare("ir_measures", "ir_measures", "provider", ours, theirs, atol=1e-12)


def values_by_query(provider, measures, qrels, run):
    """The value of each query and measure, and the means."""
    calculated = provider.calc(measures, qrels, run)
    values = {(None, str(m)): mean for m, mean in calculated.aggregated.items()}
    for query, measure, value in calculated.per_query:
        values[query, str(measure)] = value
    return values


def test_the_provider_drops_unjudged_documents():
    qrels, run = {"q": {"a": 1, "b": 0}}, {"q": {"x": 0.9, "a": 0.5, "b": 0.7}}
    for measure in (AP, AP(judged_only=True), P(judged_only=True) @ 1, nDCG @ 3):
        expected = ir_measures.pytrec_eval.calc_aggregate([measure], qrels, run)
        found = provider.Provider().calc_aggregate([measure], qrels, run)
        assert found[measure] == pytest.approx(expected[measure], rel=1e-12)


def test_the_provider_claims_only_what_it_computes():
    given = provider.Provider()
    qrels, run = {"q": {"a": 1, "b": 0, "c": 2}}, {"q": {"b": 0.5, "a": 0.3}}
    claimed = [RR @ 5, nDCG(dcg="exp-log2") @ 2, Judged @ 2, RBP(rel=1, p=0.5) @ 2]
    claimed += [ERR @ 2]
    for measure in claimed:
        assert given.supports(measure)
        assert given.calc_aggregate([measure], qrels, run)[measure] > 0
    for measure in (nDCG(gains={1: 3}) @ 2, IPrec @ 0.1, RBP):
        assert not given.supports(measure)


TIED = {"q": {"a": 1, "b": 0}}, {"q": {"a": 0.5, "b": 0.5}}


def test_install_and_uninstall_change_the_default_pipeline():
    original = [*ir_measures.DefaultPipeline.providers]
    measures = [RR, IPrec @ 1.0]  # of which the provider computes the first
    by_default = ir_measures.calc_aggregate(measures, *TIED)
    assert by_default == {RR: 0.5, IPrec @ 1.0: 0.5}
    try:
        provider.install(ties="expected")
        installed = ir_measures.calc_aggregate(measures, *TIED)
        assert installed == {RR: 0.75, IPrec @ 1.0: 0.5}
        provider.install()
        assert ir_measures.calc_aggregate(measures, *TIED) == by_default
        assert len(ir_measures.DefaultPipeline.providers) == len(original) + 1
    finally:
        provider.uninstall()
    assert ir_measures.DefaultPipeline.providers == original
    with pytest.raises(ValueError, match="ties"):
        provider.Provider(ties="stable")


def test_an_experiment_of_pyterrier():
    topics = pd.DataFrame({"qid": ["q"], "query": ["words"]})
    qrels = pd.DataFrame({"qid": "q", "docno": ["a", "b"], "label": [1, 0]})
    run = pd.DataFrame({"qid": "q", "docno": ["a", "b"], "score": 0.5, "rank": [0, 1]})
    given = [pyterrier.Transformer.from_df(run)], topics, qrels, [RR]
    try:
        provider.install(ties="expected")
        assert pyterrier.Experiment(*given)["RR"].tolist() == [0.75]
    finally:
        provider.uninstall()
    assert pyterrier.Experiment(*given)["RR"].tolist() == [0.5]


def results_to_log():
    by = {"language": ["C++", "C#/F#", "de", "."]}
    labels, scores = [[1, 0]] * 4, [[2, 1], [1, 2], [1, 1], [2, 1]]
    names = ["ndcg@10(gain=linear)", "mrr"]
    yield evaluate(labels, scores, names)
    yield evaluate(labels, scores, names, by=by)
    rows = pd.DataFrame({"query_id": "q", "item_id": ["a", "b"], "score": [1, 2]})
    rows["model"] = ["ö", "x@1"]
    yield evaluate_run(TIED[0], rows, ["mrr"], model="model")
    models = {
        name: evaluate(labels, each, names, by=by, per_query=True)
        for name, each in (("a/b", scores), ("c@1", [[2, 1]] * 4))
    }
    yield compare_models(models)


def test_mlflow_accepts_the_keys_of_all_results(tmp_path):
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    for result in results_to_log():
        numbers = flat_metrics(result)
        for key in numbers:
            validation._validate_metric_name(key)
        with mlflow.start_run() as run:
            mlflow.log_metrics(numbers)
        assert mlflow.get_run(run.info.run_id).data.metrics == pytest.approx(numbers)
    assert "ndcg_10_gain_linear_" in flat_metrics(next(results_to_log()))


def test_mlflow_keys_that_become_equal_are_refused():
    labels, scores = [[1, 0]] * 2, [[2, 1]] * 2
    with pytest.raises(ValueError, match=r"mrr/slice:a.*mrr/slice:a"):
        flat_metrics(evaluate(labels, scores, ["mrr"], by=["a%", "a&"]))
    with pytest.raises(ValueError, match="per_query"):
        flat_metrics(evaluate(labels, scores, ["mrr"], per_query=True))


@pytest.mark.parametrize("name", ["ir_measures", "torchmetrics"])
def test_examples_in_docstrings(name):
    module = importlib.import_module(f"tfrankmetrics.integrations.{name}")
    assert doctest.testmod(module).failed == 0
    assert doctest.testmod(module).attempted


def test_page():
    pages = pathlib.Path(__file__).parent.parent / "docs" / "guide"
    names = run_blocks(pages / "integrations.md", "(?:py|python)")
    vectors = {"red": [1.0, 0.0], "blue": [0.0, 1.0], "dark red": [0.9, 0.1]}
    model = types.SimpleNamespace(encode=lambda texts: [vectors[t] for t in texts])
    corpus = {"d1": "red", "d2": "blue"}
    values = names["evaluator"](model, {"q": "dark red"}, corpus, {"q": ["d1"]})
    assert values == {"ndcg@10": 1.0, "mrr@10": 1.0, "recall@10": 1.0}


NAMES = ["ndcg@10", "mrr", "auc", "opa"]


def lists(number=101):
    random = np.random.default_rng(0)
    labels = random.integers(-1, 3, (number, 12))
    return torch.tensor(labels), torch.tensor(random.integers(0, 5, labels.shape))


def test_torchmetrics():
    labels, scores = lists()
    metrics = RankingMetric(NAMES)
    for start in range(0, len(labels), 13):
        part = slice(start, start + 13)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            metrics(scores[part], labels[part])  # the values of the batch, which add up
    values = {name: value.item() for name, value in metrics.compute().items()}
    assert values == pytest.approx(evaluate(labels, scores, NAMES), rel=1e-12)
    metrics.reset()
    with pytest.raises(ValueError, match="finite"):
        metrics.update(scores, torch.full(labels.shape, torch.nan))
    assert metrics.higher_is_better
    assert RankingMetric("arp").higher_is_better is False
    assert RankingMetric(["arp", "mrr"]).higher_is_better is None


def test_a_collection_keeps_metrics_apart_that_are_equal_at_first():
    together = torchmetrics.MetricCollection(
        {"first": RankingMetric("ndcg@1"), "second": RankingMetric("mrr")}
    )
    scores = torch.tensor([[2.0, 1.0]])
    together.update(scores, torch.tensor([[1, 0]]))
    together.update(scores, torch.tensor([[0, 1]]))
    values = {name: value.item() for name, value in together.compute().items()}
    assert values == {"first": 0.5, "second": 0.75}


def metrics_of_a_process(rank, folder):
    torch.distributed.init_process_group(
        "gloo", f"file://{folder}/processes", rank=rank, world_size=2
    )
    metrics = RankingMetric(NAMES)
    labels, scores = lists()
    own = slice(0, 70) if rank == 0 else slice(70, 101)
    for start in range(own.start, own.stop, 13):
        part = slice(start, min(start + 13, own.stop))
        metrics.update(scores[part], labels[part])
    torch.save(metrics.compute(), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_a_collection_keeps_functions_of_the_same_name_apart():
    functions = [lambda labels: labels, lambda labels: labels**4]
    given = [torch.tensor([[3.0, 2, 1]]), torch.tensor([[1, 3, 0]])]
    metrics = {str(n): RankingMetric("ndcg", gain=f) for n, f in enumerate(functions)}
    together = torchmetrics.MetricCollection(metrics, prefix="val_")
    together.update(torch.tensor([[2.0, 1.0]]), torch.tensor([[1, 0]]))
    together.update(*given)
    for number, gain in enumerate(functions):
        alone = RankingMetric("ndcg", gain=gain, sync_on_compute=False)
        alone.update(torch.tensor([[2.0, 1.0]]), torch.tensor([[1, 0]]))
        alone.update(*given)
        assert together.compute()[f"val_{number}"] == alone.compute()


def test_scores_of_minus_infinity_are_the_lowest():
    qrel, run = {"q": {"a": 1}}, {"q": {"a": -np.inf, "b": 1.0}}
    theirs = their_pytrec_eval.RelevanceEvaluator(qrel, {"map", "ndcg", "recall_5"})
    ours = pytrec_eval.RelevanceEvaluator(qrel, {"map", "ndcg", "recall_5"})
    assert ours.evaluate(run)["q"] == pytest.approx(theirs.evaluate(run)["q"])
    assert provider.Provider().calc_aggregate([AP], qrel, run) == {AP: 0.5}
    # A query without judged documents has the value 0, as in ir_measures.
    both = {**qrel, "r": {}}
    assert provider.Provider().calc_aggregate([AP], both, run) == {AP: 0.25}
    tied = {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}
    assert provider.Provider().calc_aggregate([Judged @ 1], qrel, tied)[Judged @ 1] == 0


def test_two_processes_of_torchmetrics(tmp_path):
    torch.multiprocessing.spawn(metrics_of_a_process, (str(tmp_path),), nprocs=2)
    for rank in range(2):
        values = torch.load(tmp_path / f"{rank}.pt")
        found = {name: value.item() for name, value in values.items()}
        assert found == pytest.approx(evaluate(*lists(), NAMES), rel=1e-12)


class Ranker(pytorch_lightning.LightningModule):
    """Logs the metrics of the validation, as the page of the integrations does."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.ndcg = RankingMetric("ndcg@3")
        self.others = RankingMetric(["mrr", "auc"])

    def training_step(self, batch, _):
        features, labels = batch
        scores = self.layer(features).squeeze(-1)
        return torch.nn.functional.mse_loss(scores, labels)

    def validation_step(self, batch, _):
        features, labels = batch
        scores = self.layer(features).squeeze(-1)
        self.ndcg(scores, labels)
        self.log("val_ndcg@3", self.ndcg)
        self.others.update(scores, labels)

    def on_validation_epoch_end(self):
        self.log_dict(self.others.compute())
        self.others.reset()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def test_lightning_logs_the_metrics():
    torch.manual_seed(0)
    features = torch.randn(50, 6, 4)
    labels = (features[..., 0] > 1).float()
    data = torch.utils.data.TensorDataset(features, labels)
    loaders = [torch.utils.data.DataLoader(data, 8) for _ in range(2)]
    model = Ranker()
    trainer = pytorch_lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, *loaders)
    logged = {name: value.item() for name, value in trainer.callback_metrics.items()}
    with torch.no_grad():
        scores = model.layer(features).squeeze(-1)
    expected = evaluate(labels, scores, ["ndcg@3", "mrr", "auc"])
    assert logged["val_ndcg@3"] == pytest.approx(expected["ndcg@3"], rel=1e-6)
    assert logged["mrr"] == pytest.approx(expected["mrr"], rel=1e-6)
    assert logged["auc"] == pytest.approx(expected["auc"], rel=1e-6)
