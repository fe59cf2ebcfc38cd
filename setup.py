"""Gives the package a README whose links lead to the repository.

Links such as `docs/index.md` and pictures work beside the files, but not on PyPI. All
else is in pyproject.toml.
"""

import pathlib
import re

from setuptools import setup

REPOSITORY = "https://github.com/tfrankmetrics/tfrankmetrics"
LINK = re.compile(
    r"(?P<picture>!?)(?P<text>\[[^\]]*\])\((?!https?:|#)(?P<path>[^)]+)\)"
)


def in_repository(link: re.Match) -> str:
    """The same link, to the file on the main branch."""
    kind = "raw" if link["picture"] else "blob"
    path = link["path"]
    if path.endswith(".svg"):
        path += "?sanitize=true"  # or GitHub sends it as text
    return f"{link['picture']}{link['text']}({REPOSITORY}/{kind}/main/{path})"


readme = pathlib.Path(__file__).with_name("README.md").read_text(encoding="utf-8")
setup(
    long_description=LINK.sub(in_repository, readme),
    long_description_content_type="text/markdown",
)
