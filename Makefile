.PHONY: test test-slow test-all backends measure-tests fuzz mutate lint format types quickstart bench bench-tf-ranking bench-tfma peers published tf-ranking tfma tfx docs serve-docs tables dist

test:
	python -m pytest -n auto

# The tests with the marker `slow`: settings under XLA, notebooks, training, processes.
test-slow:
	python -m pytest -n auto -m slow

test-all: test test-slow

# The time, the memory and the slowest tests of `make test`.
measure-tests:
	python benchmarks/tests.py

# Random lists against the oracle, and random tables, models and catalogues.
fuzz:
	python tests/fuzz.py --seconds 600
	python tests/fuzz_tables.py --seconds 600

# Small changes of the package, each of which should make a test fail.
mutate:
	python tests/mutate.py

lint:
	ruff check .
	ruff format --check .

format:
	ruff check --fix .
	ruff format .

# The package, and then calls that a type checker must accept or refuse.
types:
	basedpyright
	basedpyright --project tests/typing

# The site, in site/. It needs the extra `docs`, and no TensorFlow.
docs:
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

serve-docs:
	NO_MKDOCS_2_WARNING=1 mkdocs serve

# The tables of the documents that follow from the declarations of metrics.
tables:
	PYTHONPATH=. python tests/doc_tables.py

# The package as PyPI gets it, in dist/.
dist:
	rm -rf dist
	python -m build
	twine check --strict dist/*

quickstart:
	python examples/quickstart.py

# The targets below need other environments: see CONTRIBUTING.md.
bench:
	python benchmarks/training.py
	python benchmarks/cost.py
	python benchmarks/ops.py
	python benchmarks/startup.py
	python benchmarks/backends.py
	python benchmarks/ties.py
	python benchmarks/rows.py
	python benchmarks/callbacks.py
	python benchmarks/compare.py
	python benchmarks/retrieval.py

bench-tf-ranking:
	python benchmarks/training.py
	python benchmarks/cost.py
	python benchmarks/retrieval.py

bench-tfma:
	python benchmarks/beam.py

# Metrics and callbacks in Keras with the backend of KERAS_BACKEND.
backends:
	python -m pytest -n auto --dist load tests/test_keras_backends.py

# These targets compare this library with the installed tools.
peers:
	python -m pytest -n auto --dist load validation/test_tools.py validation/test_runs.py \
		validation/test_trackers.py validation/test_moving.py validation/test_pitfalls.py \
		validation/test_published.py validation/test_items.py
# Triton, which PyTorch loads for nested tensors, aborts a process that loaded other tools.
	python -m pytest validation/test_torch_and_jax.py

# Published numbers, in seconds: those without data or models everywhere, others with the
# folder PUBLISHED_DATA and the packages recommenders and recbole.
published:
	python -m pytest -n 0 validation/test_published.py

tf-ranking:
	python -m pytest -n auto --dist load validation/test_tf_ranking.py \
		validation/test_moving_tf_ranking.py

tfma:
	python -m pytest -n auto --dist load validation/test_tfma.py validation/test_beam.py
	TF_USE_LEGACY_KERAS=1 python -m pytest validation/test_tfma_keras.py

tfx:
	python -m pytest -n auto validation/test_tfma.py validation/test_tfx_pipeline.py
