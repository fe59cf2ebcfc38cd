"""Tests that functions take arrays of PyTorch and JAX, whatever holds the numbers.

NumPy cannot convert PyTorch tensors that require a gradient or are in bfloat16.
"""

import os
import pathlib
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from code_blocks import blocks_of, run_blocks

import tfrankmetrics as trm

GUIDE = pathlib.Path(__file__).parent.parent / "docs" / "guide"
LABELS = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]], "float32")
SCORES = np.array(
    [[0.25, 0.5, 0.125], [0.5, 0.75, 0.5]], "float32"
)  # exact in bfloat16
IDS = np.array([[1, 2], [0, -1]])
QUERIES = np.repeat([7, 8], 3)
NAMES = ["ndcg@2", "mrr"]


def with_gradient(array):
    tensor = torch.tensor(array)
    return tensor.requires_grad_() if tensor.is_floating_point() else tensor


def in_bfloat16_of_torch(array):
    tensor = torch.tensor(array)
    return tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor


def in_bfloat16_of_jax(array):
    array = jnp.asarray(array)
    return array.astype(jnp.bfloat16) if array.dtype.kind == "f" else array


KINDS = [torch.tensor, with_gradient, in_bfloat16_of_torch]
KINDS += [jnp.asarray, in_bfloat16_of_jax]


def accumulated(*batch):
    accumulator = trm.Accumulator(NAMES)
    accumulator.update(*batch)
    return accumulator.compute()


CALLS = {
    "lists of ids": lambda of: trm.evaluate_run(
        {"q": of(np.array([1, 2]))}, {"q": of(np.array([3, 1]))}, NAMES
    ),
    "lists": lambda of: trm.evaluate(
        of(LABELS), of(SCORES), NAMES, sample_weight=of(LABELS[:, 0] + 1)
    ),
    "a mask": lambda of: trm.evaluate(
        of(LABELS), of(SCORES), NAMES, mask=of(LABELS < 2)
    ),
    "lists of arrays": lambda of: trm.evaluate(
        [of(LABELS[0]), of(LABELS[1, :2])], [of(SCORES[0]), of(SCORES[1, :2])], NAMES
    ),
    "ids": lambda of: trm.evaluate(
        of(IDS), of(IDS[:, ::-1].copy() + 1), NAMES, inputs="ids"
    ),
    "catalog": lambda of: trm.evaluate(of(IDS), of(SCORES), NAMES, inputs="catalog"),
    "rows": lambda of: (
        trm.evaluate_rows(
            of(QUERIES), of(LABELS.ravel()), of(SCORES.ravel()), NAMES, by=of(QUERIES)
        ).whole
    ),
    "a batch": lambda of: accumulated(of(LABELS), of(SCORES), of(LABELS[:, 0] + 1)),
    "retrieval": lambda of: trm.evaluate_retrieval(
        of(SCORES), of(LABELS), of(np.array([1, 0])), NAMES, exclude=of(IDS[:, 1:] // 2)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_arrays_of_other_libraries_give_the_values_of_numpy(call, kind):
    found = CALLS[call](kind)
    assert dict(found) == pytest.approx(dict(CALLS[call](np.asarray)), rel=1e-12)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_are_lists_of_unequal_length(layout):
    def nested(rows):
        tensors = [torch.tensor(row) for row in rows]
        return torch.nested.nested_tensor(tensors, layout=layout)

    labels, scores = [[1, 0, 2], [0, 1]], [[0.25, 0.5, 0.125], [0.5, 0.75]]
    expected = trm.evaluate(labels, scores, NAMES)
    assert trm.evaluate(nested(labels), nested(scores), NAMES) == expected
    ids, found = [[1, 2], [0]], [[3, 2], [1, 0, 2]]
    expected = trm.evaluate(ids, found, NAMES, inputs="ids")
    assert trm.evaluate(nested(ids), nested(found), NAMES, inputs="ids") == expected
    vectors = [[0.5, 1.0], [1.0, 0.25], [0.0, 1.0]]
    expected = trm.evaluate_retrieval(
        vectors[:2], vectors, ids, NAMES, exclude=[[0], []]
    )
    given = nested(vectors[:2]), nested(vectors), nested(ids), NAMES
    assert trm.evaluate_retrieval(*given, exclude=[[0], []]) == expected


@pytest.mark.parametrize("of", KINDS)
def test_functions_of_retrieval_receive_the_arrays_that_they_are_for(of):
    received, vectors = set(), of(np.eye(3))

    def product(queries, candidates):
        received.update(map(type, (queries, candidates)))
        return queries @ candidates.T

    found = trm.evaluate_retrieval(
        vectors, vectors, range(3), ["mrr"], query_tower=lambda v: 2 * v, score=product
    )
    assert found == {"mrr": 1.0}
    assert received == {type(vectors)}


@pytest.mark.parametrize("of", KINDS)
@pytest.mark.parametrize("score", [None, lambda q, c: q @ c.T])
def test_products_of_half_precision_keep_their_digits(score, of):
    """1 + 2^-12 is above 1, but would be rounded to 1 in half precision."""
    vectors = [[1.0, 1.0]], [[1.0, 0.0], [1.0, 2**-12]]
    vectors = [of(np.array(each, "float32")) for each in vectors]
    found = trm.evaluate_retrieval(*vectors, [0], ["mrr"], score=score)
    assert found == {"mrr": 0.5}
    assert trm.explain_retrieval(*vectors, [0], "mrr", score=score).value == 0.5
    assert trm.retrieve(*vectors, k=1, score=score).ids.tolist() == [[1]]


@pytest.mark.parametrize("sparse", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_sparse_tensors_are_an_error(sparse):
    scores = sparse(torch.tensor(SCORES))
    for call in (
        lambda: trm.evaluate(LABELS, scores, NAMES),
        lambda: trm.evaluate(scores, SCORES, NAMES),
        lambda: trm.evaluate(IDS, scores, NAMES, inputs="catalog"),
        lambda: trm.evaluate(IDS, scores, NAMES, inputs="ids"),
        lambda: trm.evaluate_rows(QUERIES, LABELS.ravel(), scores, NAMES),
        lambda: trm.evaluate_retrieval(scores, SCORES, [0, 1], NAMES),
    ):
        with pytest.raises(ValueError, match=r"must be dense or nested.*to_dense\(\)"):
            call()


WITHOUT_KERAS = """
import sys
sys.modules["tensorflow"] = sys.modules["keras"] = None
import pytest, test_torch_and_jax as here, tfrankmetrics as trm
expected = trm.evaluate(here.LABELS, here.SCORES, here.NAMES)
for of in here.KINDS:
    metrics = trm.RankingMetrics(here.NAMES)
    for row in (slice(0, 1), slice(1, 2)):
        metrics.update_state(of(here.LABELS[row]), of(here.SCORES[row]))
    assert metrics.result() == pytest.approx(expected, rel=1e-12), of
"""


def test_metric_objects_without_keras():
    folders = [str(pathlib.Path(__file__).parent), *sys.path]
    subprocess.run(
        [sys.executable, "-c", WITHOUT_KERAS],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        check=True,
    )


@pytest.mark.parametrize("page", ["backends.md", "accumulate.md"])
def test_two_processes_of_the_documentation_have_the_value_of_one(page, tmp_path):
    (block,) = blocks_of(GUIDE / page, "py", containing="torch.distributed")
    script = tmp_path / "script.py"
    script.write_text(block["code"])
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*torchrun, "--nproc_per_node=2", str(script)],
        env={**os.environ, "KERAS_BACKEND": "torch"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == block["shown"], done.stderr


@pytest.mark.parametrize("section", ["PyTorch", "JAX"])
def test_own_loops_in_the_documentation(section):
    run_blocks(GUIDE / "accumulate.md", "py", section)


def test_retrieval_in_the_documentation():
    section = "Embeddings and a catalog of any size"
    run_blocks(GUIDE / "retrieval.md", "(?:py|python)", section)
