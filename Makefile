.PHONY: test test-slow fuzz lint format types docs tables dist bench tpu peers tf-ranking tfma

test:
	python -m pytest -n auto

# The tests with the marker `slow`: settings under XLA, notebooks, training, processes.
test-slow:
	python -m pytest -n auto -m slow

# Random lists and tables against slow definitions.
fuzz:
	python tests/fuzz.py --seconds 600

lint:
	ruff check .
	ruff format --check .
	check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	check-jsonschema --builtin-schema vendor.github-actions action.yml
	check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	check-jsonschema --builtin-schema vendor.github-issue-forms \
		.github/ISSUE_TEMPLATE/feature.yml .github/ISSUE_TEMPLATE/wrong-number.yml

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

# The tables of the documents that follow from the declarations of metrics.
tables:
	PYTHONPATH=. python tests/doc_tables.py

# The package as PyPI gets it, in dist/. The time of the last commit makes the wheel the same whenever it is built.
dist: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 1700000000)
dist:
	rm -rf dist
	python -m build
	twine check --strict dist/*

# Beside other tools, in the environment of requirements/peers.txt: see benchmarks/README.md.
bench:
	python benchmarks/training.py
	python benchmarks/cost.py
	python benchmarks/ops.py
	python benchmarks/startup.py
	python benchmarks/backends.py
	python benchmarks/jit.py
	python benchmarks/ties.py
	python benchmarks/rows.py
	python benchmarks/callbacks.py
	python benchmarks/compare.py
	python benchmarks/retrieval.py

# Compiles metrics for a TPU, which need not be here: in an environment of its own with libtpu, of
# 1.5 GB, which a first run makes. It needs Python 3.11 or later.
TPU = $(HOME)/.cache/tfrankmetrics-tpu
tpu:
	test -d $(TPU) || python -m venv $(TPU)
	$(TPU)/bin/python -m pip install --quiet "jax[tpu]==0.10.2" keras
	PYTHONPATH=. $(TPU)/bin/python benchmarks/tpu.py

# The targets below compare this library with other tools. On Python 3.11, with Java for Spark:
# pip install -r requirements/peers.txt && pip install --no-deps -r requirements/peers-alone.txt
peers:
	python -m pytest -n auto --dist load validation/test_tools.py validation/test_values_of_tools.py validation/test_runs.py \
		validation/test_trackers.py validation/test_moving.py validation/test_pitfalls.py \
		validation/test_published.py validation/test_items.py
# Triton, which PyTorch loads for nested tensors, aborts a process that loaded other tools.
	python -m pytest validation/test_torch_and_jax.py
	python -m pytest validation/test_integrations.py
	python -m pytest validation/test_spark.py
	python -m pytest validation/test_postgres.py

# On Python 3.11, in the environment of requirements/tf-ranking.txt.
tf-ranking:
	python -m pytest -n auto --dist load validation/test_tf_ranking.py \
		validation/test_moving_tf_ranking.py

# On Python 3.11, after pip install -e ".[dev-tfma]".
tfma:
	python -m pytest -n auto --dist load validation/test_tfma.py validation/test_beam.py
	TF_USE_LEGACY_KERAS=1 python -m pytest validation/test_tfma_keras.py
