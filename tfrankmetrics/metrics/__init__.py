"""The metrics, one module per family: each formula, and the class that declares it.

The import of this package declares them. `tfrankmetrics/__init__.py` exports them.
"""

# isort: off
# In the order in which errors list the names of metrics.
from tfrankmetrics.metrics import dcg
from tfrankmetrics.metrics import binary
from tfrankmetrics.metrics import user_models
from tfrankmetrics.metrics import whole_list
from tfrankmetrics.metrics import subtopics
from tfrankmetrics.metrics import propensity
from tfrankmetrics.metrics import diagnostics
from tfrankmetrics.metrics import beyond

__all__ = [
    "beyond",
    "binary",
    "dcg",
    "diagnostics",
    "propensity",
    "subtopics",
    "user_models",
    "whole_list",
]
