"""Compares one update of ten metrics, compiled by JAX, with keras-rs and rax.

All three run as JAX functions on the same arrays, which are on the device before timing
starts, and take turns in one process. Run it with:

    python benchmarks/jit.py
"""

import functools
import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import numpy as np
import rax
from backends import ONE, RS, SUITE, data, suites
from report import publish
from timing import median_and_spread, ratio, timed

SHAPES = [(32, 20), (256, 100), (1024, 200), (256, 1000)]
OURS = "tfrankmetrics"


def updater(metrics, grades, scores):
    """An update of Keras metrics, from the state 0, that returns the new state."""

    def update(states, grades, scores):
        return [
            metric.stateless_update_state(state, grades, scores)
            for metric, state in zip(metrics, states, strict=True)
        ]

    states = [[v.value for v in metric.variables] for metric in metrics]
    return functools.partial(jax.jit(update), states, grades, scores)


def by_rax(grades, scores):
    """The suite in rax."""

    @jax.jit
    def suite(grades, scores):
        found = []
        for name in SUITE:
            kind, cutoff = name.split("@")
            function = getattr(rax, f"{ {'map': 'ap'}.get(kind, kind) }_metric")
            labels = grades if kind == "ndcg" else grades >= 1
            found.append(function(scores, labels, topn=int(cutoff)))
        return found

    return functools.partial(suite, grades, scores)


def calls(shape):
    """What is timed, by tool; each call waits for its result."""
    grades, scores = map(jax.device_put, data(shape))
    made = suites()
    ours = made[ONE]()
    functions = {
        OURS: updater(ours, grades, scores),
        "keras-rs": updater(made[RS](), grades, scores),
        "rax": by_rax(grades, scores),
    }
    ours[0].update_state(grades, scores)
    values = [float(value) for value in ours[0].result().values()]
    np.testing.assert_allclose(values, functions["rax"](), rtol=1e-5)
    return {
        name: lambda call=call: jax.block_until_ready(call())
        for name, call in functions.items()
    }


def main():
    """Measures all shapes and publishes the results."""
    rows = []
    for shape in SHAPES:
        times = timed(calls(shape), seconds=20, least=7)
        names = list(times)
        if not rows:
            rows.append(["batch", *names, *(f"{name} / {OURS}" for name in names[1:])])
        row = [str(list(shape)), *map(median_and_spread, times.values())]
        row += [f"{ratio(times, name, OURS):.3g}" for name in names[1:]]
        rows.append(row)
        print(*row, sep="  ", flush=True)
    publish(
        "jit",
        "One update of ten metrics compiled by JAX, compared with keras-rs and rax",
        ["jax", "keras", "keras-rs", "rax"],
        {"jax.jit, milliseconds": rows},
    )


if __name__ == "__main__":
    main()
