"""The metrics, one module per family: each formula, and the class that declares it.

The import of this package declares them. `tfrankmetrics/__init__.py` exports them.
"""

# isort: off
# In the order in which errors list the names of metrics.
from tfrankmetrics.metrics import dcg, binary, user_models, whole_list  # noqa: F401
from tfrankmetrics.metrics import subtopics, propensity, diagnostics  # noqa: F401
from tfrankmetrics.metrics import beyond  # noqa: F401
