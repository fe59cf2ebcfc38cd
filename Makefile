.PHONY: test lint format quickstart peers tf-ranking tfma

test:
	python -m pytest -n auto

lint:
	ruff check .
	ruff format --check .

format:
	ruff check --fix .
	ruff format .

quickstart:
	python examples/quickstart.py

# The other tools, live; each in an environment of its own (CONTRIBUTING.md).
peers:
	python -m pytest validation/test_tools.py

tf-ranking:
	python -m pytest validation/test_tf_ranking.py

tfma:
	python -m pytest validation/test_tfma.py
