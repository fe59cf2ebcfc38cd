"""The hook by which Keras takes part in a declaration of a metric.

`metrics/` declares metrics and does not know Keras. `keras/` imports `metrics/`, and
`tfrankmetrics/__init__.py` sets these two functions, before any metric is declared.
"""

from __future__ import annotations

from collections.abc import Callable

# The class that keeps the sums of metric objects: a Keras metric if Keras is installed.
base_of_objects: Callable[[], type]

# Registers a class with Keras, by its package and its name in configs.
register: Callable[[type, str, str | None], None]
