"""Packaging of tfrankmetrics; tool settings are in pyproject.toml."""

import pathlib
import re

from setuptools import find_packages, setup

here = pathlib.Path(__file__).parent
package = (here / "tfrankmetrics" / "__init__.py").read_text(encoding="utf-8")

setup(
    name="tfrankmetrics",
    version=re.search(r'^__version__ = "(.+)"$', package, re.MULTILINE).group(1),
    description="Ranking metrics for TensorFlow and Keras: exact under ties, fast, "
    "and the same numbers in fit, evaluate and on arrays.",
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    keywords="ranking metrics ndcg map mrr recall keras tensorflow recommendation",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
    packages=find_packages(include=["tfrankmetrics", "tfrankmetrics.*"]),
    package_data={"tfrankmetrics": ["py.typed"]},
    python_requires=">=3.10",
    install_requires=["tensorflow>=2.15", "numpy"],
    extras_require={
        "examples": ["matplotlib", "pandas", "scikit-learn"],
        "tfx": ["tensorflow-model-analysis>=0.47"],
    },
)
