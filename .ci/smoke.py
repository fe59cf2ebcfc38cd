"""Checks that an installed wheel works. Run it outside the checkout.

Its argument is the only distribution of TensorFlow that may be installed.
"""

import importlib.metadata
import importlib.resources
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from tfrankmetrics import NDCG, RankingMetrics, __version__, evaluate, evaluate_run

installed = importlib.metadata.distributions()
names = {each.metadata["Name"].replace("_", "-") for each in installed}
variants = {"tensorflow", "tensorflow-cpu", "tf-nightly"}
assert names & variants == {*sys.argv[1:]}, names & variants

package = importlib.resources.files("tfrankmetrics")

assert "site-packages" in str(package), package
assert (package / "py.typed").is_file()

labels, scores = [[1, 0, 0], [0, 2]], [[0.9, 0.3, 0.1], [0.8, 0.4]]
assert evaluate(labels, scores, ["mrr", "P@1"]) == {"mrr": 0.75, "precision@1": 0.5}
assert evaluate_run({"q": {"a": 1}}, {"q": ["b", "a"]}, ["mrr"]) == {"mrr": 0.5}

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(
    "sgd", "mse", metrics=[RankingMetrics(["ndcg@2"]), NDCG(k=2, name="same")]
)
labels = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, -1.0]])
logs = model.fit(np.ones((2, 3, 4)), labels, verbose=0).history
assert logs["ndcg@2"] == logs["same"]
assert (
    abs(logs["ndcg@2"][0] - evaluate(labels, np.zeros((2, 3)), ["ndcg@2"])["ndcg@2"])
    < 1e-6
)

print(
    f"tfrankmetrics {__version__} works on Python {sys.version.split()[0]}, "
    f"TensorFlow {tf.__version__}"
)
