"""Set-up for all tests: two logical CPU devices, and caches cleared between modules."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest
import tensorflow as tf

# So that replicas can be tested.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)

# Makes metrics, whose variables are on a device.
import helpers  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def bounded_memory():
    """Frees the graphs of each module."""
    yield
    helpers.clear_caches()


@pytest.fixture
def free_at_once():
    """Frees the graphs of one test, for tests of large graphs that no other uses."""
    yield
    helpers.clear_caches()


@pytest.fixture
def op_by_op():
    """Runs what is compiled otherwise op by op: for tests that would compile much."""
    with helpers.op_by_op():
        yield
