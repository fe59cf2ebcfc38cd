"""Updates of metrics on several devices and processes, for `test_distribution.py`.

A process configures its devices and its place in a cluster only once, before TensorFlow
starts. So each role below runs in a process of its own:

    python tests/distribution.py ROLE PORT...

It prints the results as JSON.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf

import tfrankmetrics as trm

NAMES = ["ndcg@3", "mrr"]
QUERIES, ITEMS, FEATURES = 13, 6, 4
# Replicas and servers wait for one another. With a thread for each core, a small machine
# would have too few.
THREADS = 8


def data(queries=QUERIES):
    """Labels with padding, scores and weights."""
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 3, size=(queries, ITEMS)).astype(float)
    return labels, rng.normal(size=labels.shape), rng.uniform(size=queries)


def batches(size, queries=QUERIES):
    return tf.data.Dataset.from_tensor_slices(data(queries)).batch(size)


def metrics_in(strategy):
    """One metric of this library, and one of Keras that gets the weights."""
    with strategy.scope():
        ours = trm.RankingMetrics(NAMES, dtype="float64")
        return ours, tf.keras.metrics.Mean(dtype="float64")


def custom_loop(strategy, batch_size):
    """The results of a custom loop over batches that the replicas share."""
    ours, control = metrics_in(strategy)
    dataset = strategy.experimental_distribute_dataset(batches(batch_size))

    def update(labels, scores, weights):
        ours.update_state(labels, scores, weights)
        control.update_state(weights)

    @tf.function(input_signature=[dataset.element_spec])
    def step(batch):
        strategy.run(update, batch)

    for batch in dataset:
        step(batch)
    return results(ours, control)


def results(ours, control):
    values = {name: float(value) for name, value in ours.result().items()}
    return {**values, "mean weight": float(control.result())}


def expected():
    """The results of one device."""
    labels, scores, weights = data()
    values = trm.evaluate(labels, scores, NAMES, sample_weight=weights)
    return {**values, "mean weight": weights.mean()}


def evaluate(strategy, queries, batch_size):
    """The logs of `model.evaluate` of a linear model, and the values of one device."""
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        inputs = tf.keras.Input((ITEMS, FEATURES))
        scores = tf.keras.layers.Dense(1)(inputs)
        scores = tf.keras.layers.Reshape((ITEMS,))(scores)
        model = tf.keras.Model(inputs, scores)
        model.compile(loss="mse", metrics=[trm.RankingMetrics(NAMES)])
    rng = np.random.default_rng(1)
    features = rng.normal(size=(queries, ITEMS, FEATURES)).astype("float32")
    labels, _, _ = data(queries)
    dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(batch_size)
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    kernel, bias = (np.asarray(variable) for variable in model.trainable_variables)
    scores = (features @ kernel + bias)[..., 0]
    return {"logs": logs, "one device": trm.evaluate(labels, scores, NAMES)}


def four_devices():
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 4,
    )
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])
    return {
        "loop": custom_loop(strategy, 5),  # the last batch gives a replica nothing
        "evaluate": evaluate(strategy, 6, 4),
    }


def worker(index, ports):
    cluster = {"worker": [f"localhost:{port}" for port in ports]}
    task = {"type": "worker", "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    assert strategy.num_replicas_in_sync == 2
    return custom_loop(strategy, 4)  # the last batch is empty on one worker


def parameter_server(ports):
    """Two workers that update the metric at the same time, on a parameter server."""
    first, second, server = (f"localhost:{port}" for port in ports)
    cluster = tf.train.ClusterSpec({"worker": [first, second], "ps": [server]})
    config = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=THREADS)
    servers = [
        tf.distribute.Server(cluster, job, index, protocol="grpc", config=config)
        for job, index in (("worker", 0), ("worker", 1), ("ps", 0))
    ]
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
    )
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    ours, control = metrics_in(strategy)

    def update(labels, scores, weights):
        ours.update_state(labels, scores, weights)
        control.update_state(weights)

    @tf.function(input_signature=batches(4).element_spec)
    def step(*batch):
        strategy.run(update, batch)

    for _ in range(50):
        for batch in batches(4):
            coordinator.schedule(step, args=batch)
    coordinator.join()
    assert len(servers) == 3
    return results(ours, control)


ROLES = {
    "four_devices": lambda ports: four_devices(),
    "worker_0": lambda ports: worker(0, ports[:2]),
    "worker_1": lambda ports: worker(1, ports[:2]),
    "parameter_server": lambda ports: parameter_server(ports[2:]),
}

if __name__ == "__main__":
    print(json.dumps(ROLES[sys.argv[1]](sys.argv[2:])), flush=True)
    os._exit(0)  # the servers of a cluster do not stop
