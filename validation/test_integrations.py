"""Each module of `tfrankmetrics.integrations` against the tool whose interface it has."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import pytorch_lightning
import pytrec_eval as their_pytrec_eval
import torch
import torchmetrics

from tfrankmetrics import evaluate
from tfrankmetrics.integrations import pytrec_eval
from tfrankmetrics.integrations.torchmetrics import RankingMetrics

DOCUMENTS = [*(f"d{number}" for number in range(12)), "é", "Z", "z", "10", "9"]
MEASURES = [*pytrec_eval.supported_measures, "P_3", "ndcg_cut.2,7", "success.2"]


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
        run = random_table(random, judged, [-1.0, 0.1, 0.3, 0.3, 0.5, 7.25], 0)
        measures = {*random.permutation(MEASURES)[:4].tolist()}
        options = int(random.integers(1, 4)), bool(random.random() < 0.2)
        found = pytrec_eval.RelevanceEvaluator(qrel, measures, *options).evaluate(run)
        evaluator = their_pytrec_eval.RelevanceEvaluator(qrel, measures, *options)
        expected = evaluator.evaluate(run)
        assert found.keys() == expected.keys()
        for query, values in expected.items():
            assert found[query].keys() == values.keys()
            theirs += values.values()
            ours += [found[query][measure] for measure in values]
    assert len(ours) > 10_000
    compare("pytrec-eval-terrier", "trec_eval", "its interface", ours, theirs, atol=1e-12)


def test_functions_of_pytrec_eval():
    run, qrel = ["q Q0 a 1 0.5 x\n", "q Q0 b 2 0.25 x\n"], ["q 0 a 2\n", "r 0 b 0\n"]
    assert pytrec_eval.parse_run(run) == their_pytrec_eval.parse_run(run)
    assert pytrec_eval.parse_qrel(qrel) == their_pytrec_eval.parse_qrel(qrel)
    for measure in pytrec_eval.supported_measures:
        given = measure, [0.25, 0.5, 1.0]
        expected = their_pytrec_eval.compute_aggregated_measure(*given)
        assert pytrec_eval.compute_aggregated_measure(*given) == expected
    for lines in (["q Q0 a 1 0.5"], [*run, run[0]]):
        with pytest.raises(ValueError, match="Received"):
            pytrec_eval.parse_run(lines)


@pytest.mark.parametrize("measure", ["gm_map", "set_F", "ndcg.10", "x", "map.5,"])
def test_pytrec_eval_refuses_other_measures(measure):
    with pytest.raises(ValueError, match="Rprec.*bpref.*map_cut"):
        pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {measure})


def test_the_interface_of_pytrec_eval_needs_numpy_alone():
    code = """
import sys
from tfrankmetrics.integrations import pytrec_eval
evaluator = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"map"})
assert evaluator.evaluate({"q": {"a": 0.5}}) == {"q": {"map": 1.0}}
assert not {"keras", "pandas", "pytrec_eval", "tensorflow", "torch"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


NAMES = ["ndcg@10", "mrr", "auc", "opa"]


def lists(number=101):
    random = np.random.default_rng(0)
    labels = random.integers(-1, 3, (number, 12))
    return torch.tensor(labels), torch.tensor(random.integers(0, 5, labels.shape))


def test_torchmetrics():
    labels, scores = lists()
    metrics = RankingMetrics(NAMES)
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
    assert RankingMetrics("arp").higher_is_better is False
    assert RankingMetrics(["arp", "mrr"]).higher_is_better is None


def test_a_collection_keeps_metrics_apart_that_are_equal_at_first():
    together = torchmetrics.MetricCollection(
        {"first": RankingMetrics("ndcg@1"), "second": RankingMetrics("mrr")}
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
    metrics = RankingMetrics(NAMES)
    labels, scores = lists()
    own = slice(0, 70) if rank == 0 else slice(70, 101)
    for start in range(own.start, own.stop, 13):
        part = slice(start, min(start + 13, own.stop))
        metrics.update(scores[part], labels[part])
    torch.save(metrics.compute(), f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


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
        self.ndcg = RankingMetrics("ndcg@3")
        self.others = RankingMetrics(["mrr", "auc"])

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
