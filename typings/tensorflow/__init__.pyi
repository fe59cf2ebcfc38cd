# For the type check of this package. TensorFlow has no types of its own, and the types
# that come with type checkers refuse code that works, such as `~tensor`.
from typing import Any

def __getattr__(name: str) -> Any: ...
