"""Compiles updates and results of metrics for a TPU (v5e), without having one.

It prints the seconds and the size of each program, for lists [64, 100] by default. It
fails if a program does not compile. `make tpu` runs it in an environment with libtpu:

    make tpu
    python benchmarks/tpu.py ndcg@10 mrr --items 1000
    python benchmarks/tpu.py --all
"""

import argparse
import os
import sys
import time

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
# What libtpu would ask a machine with a TPU, and that no other process holds one.
os.environ["TPU_ACCELERATOR_TYPE"] = "v5litepod-4"
os.environ["TPU_WORKER_HOSTNAMES"] = "localhost"
os.environ["TPU_WORKER_ID"] = "0"
os.environ["TPU_SKIP_MDS_QUERY"] = "1"
os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "true"

import jax
from backends import SUITE
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding

from tfrankmetrics import RankingMetrics
from tfrankmetrics.metrics.measure import declarations

SIX = ["ndcg@10", "mrr", "map@10", "recall@10", "auc", "err@10"]
QUERIES, SUBTOPICS = 64, 3


def names_of_all():
    """The names of all metrics but those of recommended items."""
    return [
        f"{name}@10" if declaration.has_cutoff else name
        for name, declaration in declarations().items()
        if not declaration.reads_items
    ]


def compiled(names, items):
    """The program of an update with these metrics, and of their results."""
    topology = topologies.get_topology_desc("v5e:2x2", platform="tpu")
    place = SingleDeviceSharding(topology.devices[0])
    metric = RankingMetrics(names)
    has_subtopics = declarations()[names[0].partition("@")[0]].has_subtopics

    def step(variables, labels, scores):
        variables = metric.stateless_update_state(variables, labels, scores)
        return variables, metric.stateless_result(variables)

    def array(*shape):
        return jax.ShapeDtypeStruct(shape, "float32")

    jitted = jax.jit(step, in_shardings=place, out_shardings=place)
    return jitted.lower(
        [array(*variable.shape) for variable in metric.variables],
        array(QUERIES, items, *([SUBTOPICS] if has_subtopics else [])),
        array(QUERIES, items),
    ).compile()


def main():
    """Compiles the metrics that are named, and returns how many of them fail."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=SIX)
    parser.add_argument("--all", action="store_true", help="every metric of relevance")
    parser.add_argument("--items", type=int, default=100, help="the items of a list")
    given = parser.parse_args()
    programs = {name: [name] for name in names_of_all()} if given.all else {}
    programs |= {"ten metrics": SUITE} if given.all else {n: [n] for n in given.names}
    failed = 0
    for title, names in programs.items():
        start = time.perf_counter()
        try:
            size = compiled(names, given.items).memory_analysis()
            found = f"{size.generated_code_size_in_bytes / 1e6:.1f} MB"
        except Exception as error:  # whatever the compiler raises
            first = str(error).strip().partition("\n")[0]
            failed, found = failed + 1, f"{type(error).__name__}: {first:.200}"
        seconds = time.perf_counter() - start
        print(f"{title:20} {seconds:5.1f} s  {found}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(bool(main()))
