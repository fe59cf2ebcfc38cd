"""Tests the metrics on several devices and in several processes, in uneven batches.

`distribution.py` computes the results.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys

import distribution
import pytest
import tensorflow as tf

SEVERAL_PROCESSES = pytest.mark.slow("waits for four processes that import TensorFlow")
SCRIPT = pathlib.Path(distribution.__file__)


def free_ports(number):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [str(each.getsockname()[1]) for each in sockets]


@pytest.fixture(scope="module")
def outputs():
    """What each role of `distribution.py` printed. They run at the same time."""
    root = str(SCRIPT.parent.parent)
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    ports = free_ports(5)
    processes, printed = {}, {}
    try:
        for role in distribution.ROLES:
            processes[role] = subprocess.Popen(
                [sys.executable, SCRIPT, role, *ports],
                env={**os.environ, "PYTHONPATH": paths},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        for role, process in processes.items():
            output, errors = process.communicate(timeout=240)
            assert process.returncode == 0, f"{role}: {errors}"
            printed[role] = json.loads(output)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    return printed


def one_device():
    return pytest.approx(distribution.expected(), rel=1e-12)


def test_two_replicas_one_with_an_empty_batch():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert distribution.QUERIES % 4 == 1
    assert distribution.custom_loop(strategy, 4) == one_device()


@SEVERAL_PROCESSES
def test_four_replicas_some_with_an_empty_batch(outputs):
    assert outputs["four_devices"]["loop"] == one_device()


@SEVERAL_PROCESSES
def test_evaluate_on_four_replicas_with_a_last_batch_of_two(outputs):
    found = outputs["four_devices"]["evaluate"]
    for name in distribution.NAMES:
        assert found["logs"][name] == pytest.approx(found["one device"][name], rel=1e-6)


@SEVERAL_PROCESSES
def test_two_processes(outputs):
    assert outputs["worker_0"] == one_device()
    assert outputs["worker_1"] == one_device()


@SEVERAL_PROCESSES
def test_workers_of_a_parameter_server_lose_no_updates(outputs):
    """In Keras 3, `keras.metrics.Mean` loses some: its value is wrong at random."""
    found = outputs["parameter_server"]
    reference = distribution.expected()
    for name in distribution.NAMES:
        assert found[name] == pytest.approx(reference[name], rel=1e-12)
