"""The Keras metric of a declared metric: its twin.

A subclass of a Keras class requires Keras, and therefore TensorFlow: seconds and
hundreds of megabytes that arrays and tables do not need. Therefore, the classes in
`metrics/` do not derive from it. Their objects do: they are of a subclass that also
derives from `StatefulMetric`, which is made when the first object is. Without Keras, an
object only holds its options, which functions such as `evaluate` read.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from tfrankmetrics.keras.backends import (
    can_make_metrics,
    library_of_metrics,
    require_keras,
)


@functools.cache
def twin_of(cls: Any) -> Any:
    """The subclass of a metric's class that is also a Keras metric."""
    if "_written_class" in vars(cls):  # it is one
        return cls
    if not can_make_metrics():
        return _subclass(cls, WithoutKeras)
    from tfrankmetrics.compute.metric_checks import check_declaration
    from tfrankmetrics.keras.configs import register_like
    from tfrankmetrics.keras.state import StatefulMetric

    if hasattr(cls, "declaration"):
        for name in cls.fields.keys() - {"name", "dtype"}:
            if hasattr(StatefulMetric, name):
                raise TypeError(
                    "A field must not have the name of an attribute of Keras's "
                    f"metrics. Received: `{name}` of {cls.__name__}."
                )
        if cls.declaration.is_custom:
            check_declaration(cls.declaration, library_of_metrics())
    twin = _subclass(cls, StatefulMetric)
    register_like(cls, twin)
    return twin


def _subclass(cls: type[Any], base: type[Any]) -> type[Any]:
    attributes = {
        "_written_class": cls,
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
    }
    return type(cls.__name__, (cls, base), attributes)


class WithoutKeras:
    """A metric without Keras: a name and options."""

    _written_class: ClassVar[type[Any]]
    arguments: dict[str, Any]

    def __init__(self, measures: Any, data: Any, name: Any, dtype: Any) -> None:
        self.name, self.dtype = name, dtype
        self._measures, self.input_format = measures, data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}, without Keras>"

    def __reduce__(self) -> tuple:
        """Copies and pickles by its arguments."""
        arguments = {**self.arguments, "name": self.name, "dtype": self.dtype}
        return functools.partial(self._written_class, **arguments), ()

    def update_state(self, *_: Any, **__: Any) -> None:
        """Raises ImportError, as do the other methods of Keras metrics."""
        require_keras(f"The use of {self!r} as a Keras metric")

    reset_state = merge_state = get_config = __call__ = _results = update_state
