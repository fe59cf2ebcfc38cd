"""The commands that install the package, in error messages and in the documentation.

`IS_RELEASED` is the one place that states whether PyPI has the package. After a change,
`make tables` writes the commands of README.md, of the site and of the notebooks.
"""

from __future__ import annotations

IS_RELEASED = False
REPOSITORY = "https://github.com/tfrankmetrics/tfrankmetrics"


def install_command(extras: str) -> str:
    """The command that installs the package with some extras, such as "jax"."""
    name = "tfrankmetrics" if IS_RELEASED else "."
    return f'pip install "{name}[{extras}]"'


def install_hint(extras: str) -> str:
    """The command in a sentence of an error, and where to run it."""
    where = "" if IS_RELEASED else f" in a clone of {REPOSITORY}"
    return f"Run {install_command(extras)}{where}."
