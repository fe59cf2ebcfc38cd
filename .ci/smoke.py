"""Checks that an installed wheel works. Run it outside the checkout.

Its argument is the only distribution of TensorFlow that may be installed, or "jax" for
Keras with JAX and without TensorFlow. Without an argument there must be no Keras; then
arrays and tables work, and metric objects accumulate in NumPy.
"""

import importlib.metadata
import importlib.resources
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tfrankmetrics as trm

installed = importlib.metadata.distributions()
names = {each.metadata["Name"].replace("_", "-") for each in installed}
variants = {"tensorflow", "tensorflow-cpu", "tf-nightly"}
is_jax = sys.argv[1:] == ["jax"]
assert names & variants == {*sys.argv[1:]} - {"jax"}, names & variants

package = importlib.resources.files("tfrankmetrics")

assert "site-packages" in str(package), package
assert (package / "py.typed").is_file()
assert (package / "__init__.pyi").is_file()

labels, scores = [[1, 0, 0], [0, 2]], [[0.9, 0.3, 0.1], [0.8, 0.4]]
assert trm.evaluate(labels, scores, ["mrr", "P@1"]) == {"mrr": 0.75, "P@1": 0.5}
assert trm.evaluate_run({"q": {"a": 1}}, {"q": ["b", "a"]}, ["mrr"]) == {"mrr": 0.5}
assert trm.evaluate(labels, scores, [trm.NDCG(k=1, name="x")]).keys() == {"x"}
assert trm.evaluate_retrieval([[1.0]], [[1.0], [2.0]], [0], ["mrr"]) == {"mrr": 0.5}
assert not {"tensorflow", "keras"} & {*sys.modules} or sys.argv[1:]


def check_keras() -> str:
    """Metrics in `fit`. Returns the version of the library that computes."""
    import numpy as np

    if is_jax:
        import jax
        import keras
    else:
        import tensorflow as tf

        keras = tf.keras
    model = keras.Sequential([keras.layers.Dense(1)])
    metrics = [trm.RankingMetrics(["ndcg@2"]), trm.NDCG(k=2, name="same")]
    model.compile("sgd", "mse", metrics=metrics)
    labels = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, -1.0]])
    logs = model.fit(np.ones((2, 3, 4)), labels, verbose=0).history
    assert logs["ndcg@2"] == logs["same"]
    expected = trm.evaluate(labels, np.zeros((2, 3)), ["ndcg@2"])["ndcg@2"]
    assert abs(logs["ndcg@2"][0] - expected) < 1e-6
    if is_jax:
        assert "tensorflow" not in sys.modules
        return f"JAX {jax.__version__}"
    return f"TensorFlow {tf.__version__}"


if sys.argv[1:]:
    library = check_keras()
else:
    library = "no Keras"
    ndcg, many = trm.NDCG(k=2), trm.RankingMetrics(["ndcg@2", "mrr"])
    for metric in (ndcg, many):
        for query in zip(labels, scores, strict=True):
            metric.update_state(*([each] for each in query))
    assert many.result() == trm.evaluate(labels, scores, ["ndcg@2", "mrr"])
    assert ndcg.result() == many.result()["ndcg@2"]
    assert not hasattr(trm, "EvaluateRows")  # callbacks need Keras

python = sys.version.split()[0]
print(f"tfrankmetrics {trm.__version__} works on Python {python}, with {library}")
