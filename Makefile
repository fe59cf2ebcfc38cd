.PHONY: test lint format quickstart

test:
	python -m pytest

lint:
	ruff check .
	ruff format --check .

format:
	ruff check --fix .
	ruff format .

quickstart:
	python examples/quickstart.py
