"""Sets up all tests: two logical CPU devices, and caches cleared after each module."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest
import tensorflow as tf

# Tests of replicas need two devices.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
)

# Importing helpers creates variables, so the devices are configured first.
import helpers  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def clear_caches_after_module():
    """Frees the compiled graphs of each module."""
    yield
    helpers.clear_caches()


@pytest.fixture
def clear_caches_after_test():
    """Frees the compiled graphs of one test, if they are large and used only once."""
    yield
    helpers.clear_caches()


@pytest.fixture
def run_eagerly():
    """Disables compilation, for tests that would compile many graphs."""
    with helpers.run_eagerly():
        yield
