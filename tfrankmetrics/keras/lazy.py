"""Metrics whose classes exist without Keras, and whose instances are Keras metrics.

A subclass of a Keras class requires Keras, and therefore TensorFlow: seconds and
hundreds of megabytes that arrays and tables do not need. Therefore, the classes of
metrics derive from `LazyKerasMetric`. Creating an instance imports Keras, and the
instance is of a subclass that also derives from `StatefulMetric`. Without Keras, the
instance of a single metric only holds its options, which functions such as `evaluate`
read.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any, ClassVar

from tfrankmetrics.engine.names import require_name
from tfrankmetrics.keras.backends import can_make_metrics, require_keras

if TYPE_CHECKING:  # as the objects are
    from tfrankmetrics.keras.state import StatefulMetric as _Base
else:
    _Base = object


class LazyKerasMetric(_Base):
    """The base of all metrics."""

    _written_class: ClassVar[type[Any]]  # the class in the code, without Keras
    needs_keras: ClassVar[bool] = True  # otherwise functions read its options

    if not TYPE_CHECKING:  # type checkers check calls by the fields of a class

        def __new__(cls, *_: Any, **__: Any) -> Any:
            """An object of the subclass that is a Keras metric."""
            kind = with_keras(cls)
            return super(LazyKerasMetric, kind).__new__(kind)

    @classmethod
    def require_declaration(cls) -> None:
        """Raises TypeError for a class without a declaration, if it needs one."""

    @classmethod
    def require_use_in_keras(cls) -> None:
        """Raises TypeError for a class that cannot be a Keras metric."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that recreate this metric, except its name and dtype."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that recreate this metric."""
        config = super().get_config()
        from tfrankmetrics.keras.configs import to_config

        return {**config, **{name: to_config(v) for name, v in self.arguments.items()}}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the metric from the result of `get_config`."""
        from tfrankmetrics.keras.configs import from_config

        return cls(**{name: from_config(value) for name, value in config.items()})


@functools.cache
def with_keras(cls: Any) -> Any:
    """The subclass of a metric's class that is also a Keras metric."""
    if "_written_class" in vars(cls):  # it is one
        return cls
    cls.require_declaration()
    if cls.needs_keras:
        require_keras(f"`{cls.__name__}`")
    elif not can_make_metrics():
        return _subclass(cls, WithoutKeras)
    from tfrankmetrics.keras.configs import register_like
    from tfrankmetrics.keras.state import StatefulMetric

    cls.require_use_in_keras()
    kind = _subclass(cls, StatefulMetric)
    register_like(cls, kind)
    return kind


def _subclass(cls: type[Any], base: type[Any]) -> type[Any]:
    facts = {
        "_written_class": cls,
        "__doc__": cls.__doc__,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
    }
    return types.new_class(cls.__name__, (cls, base), {}, lambda it: it.update(facts))


def _made(cls: type[Any], arguments: dict[str, Any]) -> Any:
    return cls(**arguments)


class WithoutKeras:
    """A metric without Keras: a name and options."""

    _written_class: ClassVar[type[Any]]
    arguments: dict[str, Any]

    def __init__(self, measures: Any, data: Any, name: Any, dtype: Any) -> None:
        require_name(name)
        self.name, self.dtype = name, dtype
        self._measures, self._input_format = measures, data

    @property
    def input_format(self) -> Any:
        """The input format of its data."""
        return self._input_format

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}, without Keras>"

    def __reduce__(self) -> tuple:
        """Copies and pickles by its arguments."""
        arguments = {**self.arguments, "name": self.name, "dtype": self.dtype}
        return _made, (self._written_class, arguments)

    def update_state(self, *_: Any, **__: Any) -> None:
        """Raises ImportError, as do the other methods of Keras metrics."""
        require_keras(f"The use of {self!r} as a Keras metric")

    reset_state = merge_state = get_config = __call__ = _results = update_state
