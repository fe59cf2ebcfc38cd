"""Prints what ten ranking metrics cost on a GPU, or on the device that Keras finds.

The tables list a step of a model's evaluation, a step of `fit`, an update alone, and
the evaluation of a catalog of a million items, with tfrankmetrics and keras-rs. For a
GPU, install JAX or PyTorch with CUDA, and run one of:

    KERAS_BACKEND=jax python benchmarks/accelerators.py
    KERAS_BACKEND=torch python benchmarks/accelerators.py

Each takes about two minutes.
"""

import functools
import importlib.metadata
import time

import keras
import numpy as np
from backends import ONE, SUITE, data, suites
from timing import median_and_spread, timed

import tfrankmetrics as trm

BACKEND = keras.backend.backend()
SHAPES = [(1024, 50), (1024, 200), (8192, 200), (256, 1000)]
FEW_SHAPES, STEPS = SHAPES[:3], 64
QUERIES, CANDIDATES, NUMBERS = 1000, 1_000_000, 64
SECONDS = 0.6  # for each row


def device():
    """The name of the device, and a function that waits for its work."""
    if BACKEND == "jax":
        import jax

        return jax.devices()[0].device_kind, jax.block_until_ready
    import torch

    if not torch.cuda.is_available():
        return "cpu", lambda _: None
    return torch.cuda.get_device_name(), lambda _: torch.cuda.synchronize()


def on_device(array):
    """The array on the device of Keras."""
    return keras.ops.convert_to_tensor(array)


def steps():
    """A step of `test_on_batch`, which also returns the results."""
    for shape in SHAPES:
        grades, scores = map(on_device, data(shape))
        calls = {}
        for name, metrics in suites().items():
            inputs = keras.Input(shape[1:])
            # New tensors in each step: metrics of PyTorch share results of the same.
            model = keras.Model(inputs, keras.layers.Rescaling(1.0)(inputs))
            model.compile(loss="mse", metrics=metrics())
            calls[name] = functools.partial(model.test_on_batch, scores, grades)
        yield shape, timed(calls, seconds=SECONDS)


def fits():
    """A step of `fit`, after the epoch in which it is compiled."""
    for shape in FEW_SHAPES:
        grades, features = data(shape)
        features = features[..., np.newaxis]
        times = {}
        for name, metrics in suites().items():
            inputs = keras.Input((shape[1], 1))
            outputs = keras.layers.Reshape(shape[1:])(keras.layers.Dense(1)(inputs))
            model = keras.Model(inputs, outputs)
            model.compile("sgd", "mse", metrics=metrics())
            steps = 8 if BACKEND == "torch" else STEPS
            batches = [(on_device(features), on_device(grades))] * steps
            times[name] = of_epochs(model, batches)
        yield shape, times


def of_epochs(model, batches):
    """The milliseconds of a step in each epoch but the first."""

    def generator():
        while True:
            yield from batches

    starts = []

    class Times(keras.callbacks.Callback):  # without a method for each batch
        def on_epoch_begin(self, *_):
            starts.append(time.perf_counter())

        on_epoch_end = on_epoch_begin

    number = len(batches)
    model.fit(
        generator(),
        steps_per_epoch=number,
        epochs=4,
        verbose=0,
        shuffle=False,
        callbacks=[Times()],
    )
    return 1000 * (np.array(starts[3::2]) - starts[2::2]) / number


def updates(wait):
    """An update outside of a model, beside two selections of the best items."""
    for shape in FEW_SHAPES:
        grades, scores = map(on_device, data(shape))
        functions = updates_in_jax if BACKEND == "jax" else updates_in_torch
        calls = {
            name: lambda call=call: wait(call())
            for name, call in functions(grades, scores).items()
        }
        yield shape, timed(calls, seconds=SECONDS)


def updates_in_jax(grades, scores):
    """Compiled updates, and a lower bound."""
    import jax

    calls = {}
    for name, metrics in suites().items():
        made = metrics()

        def update(states, grades, scores, made=made):
            return [
                metric.stateless_update_state(state, grades, scores)
                for metric, state in zip(made, states, strict=True)
            ]

        states = [[v.value for v in metric.variables] for metric in made]
        calls[name] = functools.partial(jax.jit(update), states, grades, scores)
    best = jax.jit(lambda *lists: [jax.lax.top_k(each, 11) for each in lists])
    return calls | {"two top_k": functools.partial(best, grades, scores)}


def updates_in_torch(grades, scores):
    """Updates one operation at a time, and as a CUDA graph."""
    import torch

    calls = {}
    for name, metrics in suites().items():

        def update(made):
            for metric in made:
                metric.update_state(grades, scores)

        calls[name] = functools.partial(update, metrics())
    calls["two topk"] = lambda: [torch.topk(each, 11) for each in (grades, scores)]
    if grades.is_cuda:
        metric = trm.RankingMetrics(SUITE)
        calls["CUDA graph of " + ONE] = cuda_graph(metric, grades, scores).replay
    return calls


def cuda_graph(metric, grades, scores):
    """A graph of an update with whatever these tensors hold when it is replayed."""
    import torch

    metric.update_state(grades, scores)  # copies constants to the GPU
    metric.reset_state()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        metric.update_state(grades, scores)
    return graph


def catalogs():
    """`evaluate_retrieval` and `retrieve` of a million candidates."""
    rng = np.random.default_rng(0)
    queries, candidates = (
        on_device(rng.normal(size=(number, NUMBERS)).astype("float32"))
        for number in (QUERIES, CANDIDATES)
    )
    relevant = rng.integers(0, CANDIDATES, (QUERIES, 1))
    names = ["mrr", "recall@10", "ndcg@10"]
    calls = {
        "evaluate_retrieval": lambda: trm.evaluate_retrieval(
            queries, candidates, relevant, names
        ),
        "retrieve 100": lambda: trm.retrieve(queries, candidates, k=100),
    }
    yield (QUERIES, CANDIDATES), timed(calls, seconds=SECONDS, least=3)


def main():
    """Measures and prints."""
    name, wait = device()
    packages = [BACKEND, "keras", "keras-rs"]
    versions = [f"{each} {importlib.metadata.version(each)}" for each in packages]
    print(f"{name}, {', '.join(versions)}; milliseconds")
    for title, rows in (
        ("A step of test_on_batch", steps()),
        ("A step of fit", fits()),
        ("A catalog", catalogs()),
        ("An update", updates(wait)),
    ):
        print(f"\n{title}")
        for number, (shape, times) in enumerate(rows):
            if number == 0:
                print("scores", *times, sep=" | ")
            print(list(shape), *map(median_and_spread, times.values()), sep=" | ")


if __name__ == "__main__":
    main()
