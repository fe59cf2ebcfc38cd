"""Tests that functions take arrays of PyTorch and JAX, whatever holds the numbers.

NumPy cannot convert PyTorch tensors that require a gradient or are in bfloat16.
"""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import tfrankmetrics as tfr

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
CALLS = {
    "lists of ids": lambda of: tfr.evaluate_run(
        {"q": of(np.array([1, 2]))}, {"q": of(np.array([3, 1]))}, NAMES
    ),
    "lists": lambda of: tfr.evaluate(
        of(LABELS), of(SCORES), NAMES, sample_weight=of(LABELS[:, 0] + 1)
    ),
    "a mask": lambda of: tfr.evaluate(
        of(LABELS), of(SCORES), NAMES, mask=of(LABELS < 2)
    ),
    "lists of arrays": lambda of: tfr.evaluate(
        [of(LABELS[0]), of(LABELS[1, :2])], [of(SCORES[0]), of(SCORES[1, :2])], NAMES
    ),
    "ids": lambda of: tfr.evaluate(
        of(IDS), of(IDS[:, ::-1].copy() + 1), NAMES, inputs="ids"
    ),
    "catalogue": lambda of: tfr.evaluate(
        of(IDS), of(SCORES), NAMES, inputs="catalogue"
    ),
    "rows": lambda of: (
        tfr.evaluate_rows(
            of(QUERIES), of(LABELS.ravel()), of(SCORES.ravel()), NAMES, by=of(QUERIES)
        ).whole
    ),
    "retrieval": lambda of: tfr.evaluate_retrieval(
        of(SCORES), of(LABELS), of(np.array([1, 0])), NAMES, exclude=of(IDS[:, 1:] // 2)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_arrays_of_other_libraries_give_the_values_of_numpy(call, kind):
    found = CALLS[call](kind)
    assert dict(found) == pytest.approx(dict(CALLS[call](np.asarray)), rel=1e-12)
