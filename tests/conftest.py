"""Configures TensorFlow for all tests, and clears its caches between modules.

With JAX or PyTorch as the backend of Keras, the tests run without TensorFlow.
"""

import contextlib
import gc
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# A worker reads it when it starts. The C library would keep the memory of each thread.
os.environ.setdefault("MALLOC_ARENA_MAX", "2")

import pytest

BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")
IS_TENSORFLOW = BACKEND == "tensorflow"
# The files that run with one backend. A file that is not here runs with each of them.
# Most of those of TensorFlow do not depend on the backend.
OF_TENSORFLOW = [
    "accumulator", "action", "alignment", "arms", "arrays", "backends", "call_map",
    "callbacks", "combiner", "command", "compare", "containers", "conventions", "cost", "decisions",
    "declarations", "distribution", "docs", "documents", "explain",
    "extreme_values", "fuzz", "graph", "growth", "ids", "input_formats", "inputs",
    "items", "judged", "layers", "learning_to_rank", "loading", "mistakes",
    "movielens", "names", "notebooks", "own_metrics", "padded_lists", "people",
    "pitfalls", "project", "propensity", "properties", "quickstart", "rag", "recipes",
    "recommendation", "retrieval", "runs", "saved", "sharing", "slices", "sql",
    "subtopics", "tables", "terminal", "tf_ranking_values", "tie_range", "ties", "trec",
    "two_towers", "values", "without_keras",
]  # fmt: skip
OF_ONE_BACKEND = {"tensorflow": OF_TENSORFLOW, "jax": ["jax"], "torch": ["torch"]}
collect_ignore = [
    f"test_{name}.py"
    for backend, names in OF_ONE_BACKEND.items()
    if backend != BACKEND
    for name in names
]
if IS_TENSORFLOW:
    # With TensorFlow, other files test what it tests.
    collect_ignore.append("test_keras_backends.py")
else:
    # Four devices of JAX, which it reads when it is imported.
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=4"

# The expected values say more about a mistake than any other test.
FIRST = "values"
# They take most of the time, so that they must not be the last ones of a worker.
LONGEST = ["properties", "ties", "graph", "docs", "callbacks", "notebooks", "keras"]
LONGEST += ["recommendation", "retrieval", "state"]


def pytest_collection_modifyitems(items):
    """Starts with the values and the longest files.

    `--no-loadscope-reorder` keeps this order.
    """

    def place(item):
        name = item.path.stem.removeprefix("test_")
        return name != FIRST, name not in LONGEST

    items.sort(key=place)
    for item in items:
        for mark in item.iter_markers("slow"):
            if not (len(mark.args) == 1 and isinstance(mark.args[0], str)):
                raise pytest.UsageError(f"{item.nodeid}: slow() requires its reason.")


def pytest_collection_finish(session):
    """Keeps the modules and tests, which stay, out of every garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    """Makes four CPU devices, which tests of replicas need."""
    # A test that causes a warning says so, with `pytest.warns`.
    config.addinivalue_line("filterwarnings", "error::tfrankmetrics.RankingWarning")
    # Many tests rank NaN on purpose.
    config.addinivalue_line("filterwarnings", "ignore:Scores must be numbers")
    if not IS_TENSORFLOW:
        return
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if config.getoption("numprocesses", None) and not is_worker:
        # This process only starts the workers. If it imported TensorFlow, pytest would
        # print TensorFlow's messages after the summary.
        return
    import tensorflow as tf

    # The workers share the cores. Their tensors are too small to be worth more threads.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 4,
    )


# `helpers` creates variables, so the devices must be configured before its import.


@pytest.fixture(autouse=True)
def collective_keys_of_its_own():
    """Keeps the replicas of one test apart from those of others in the process.

    TensorFlow gives the reductions of each `MirroredStrategy` the same keys, and raises
    an error if another model's reduction had another shape. Its own tests do this, too.
    """
    if not IS_TENSORFLOW:
        return
    import tensorflow as tf

    tf.distribute.MirroredStrategy._collective_key_base += 100_000


@pytest.fixture(autouse=True, scope="module")
def clear_caches_after_module():
    """Frees the compiled graphs of each module."""
    yield
    if IS_TENSORFLOW:
        import helpers

        helpers.clear_caches()


@pytest.fixture
def clear_caches_after_test():
    """Frees the compiled graphs of one test, if they are large and used only once."""
    import helpers

    yield
    helpers.clear_caches()


@pytest.fixture
def declarations():
    """The registry of declared names. Changes are undone after the test."""
    from tfrankmetrics.metrics.measure import METRICS

    before = dict(METRICS)
    yield METRICS
    METRICS.clear()
    METRICS.update(before)


@pytest.fixture
def run_eagerly():
    """Disables compilation, for tests that would compile many graphs."""
    if IS_TENSORFLOW:
        import helpers

        context = helpers.run_eagerly()
    elif BACKEND == "jax":
        import jax

        context = jax.disable_jit()
    else:
        context = contextlib.nullcontext()
    with context:
        yield
