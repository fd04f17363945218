# Every target makes what it needs: from a fresh clone with Python 3.11 or later, pip and make,
# `make demo` and `make test` work as they stand. There is one environment, .venv, made once.
# A stamp file in it stands for each set of extras that is installed; when pyproject.toml
# changes, the stamps are out of date and the next target installs again.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# mkdocs-material prints a notice on the future of MkDocs at every build; this is its own switch.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint types contract docs check bench clean
# Two targets at once would run two installations in one environment.
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.stamp-demo ## learn a field from noisy trajectories; results in out/
	$(BIN)/python examples/demo.py

test: $(VENV)/.stamp-test ## run all tests and the examples in docstrings
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.stamp-dev ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.stamp-dev ## mypy in strict mode
	$(BIN)/mypy

contract: $(VENV)/.stamp-dev ## the layers: which module may import which
	$(BIN)/lint-imports

docs: $(VENV)/.stamp-dev ## build the documentation into site/; any warning is an error
	$(BIN)/mkdocs build --strict

check: lint types contract docs demo test ## everything above

bench: $(VENV)/.stamp-test ## measure the figures of docs/performance.md (minutes to hours)
	@set -e; for script in benchmarks/*.py; do \
	  test -e "$$script" || { echo "no benchmarks yet"; break; }; \
	  echo "== $$script"; $(BIN)/python "$$script"; \
	done

clean: ## remove the environment and everything built
	rm -rf $(VENV) .venv-*/ out site dist build
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -path ./.git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment. One without pip (an interrupted `python -m venv`) or of an older Python is
# replaced; any other is kept as it is.
RECENT := import sys; sys.exit(sys.version_info < (3, 11))

$(VENV)/.stamp-venv:
	@if $(BIN)/python -c '$(RECENT)' 2>/dev/null && $(PIP) --version >/dev/null 2>&1; then \
	  echo "using the environment in $(VENV)"; \
	elif $(PYTHON) -c '$(RECENT)' 2>/dev/null; then \
	  echo "making an environment in $(VENV)"; $(PYTHON) -m venv --clear $(VENV); \
	else \
	  echo "vectorfield needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true)." >&2; \
	  echo "Name another one, for example:  make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; \
	fi
	@touch $@

$(VENV)/.stamp-demo: pyproject.toml | $(VENV)/.stamp-venv
	$(PIP) install --quiet --editable '.[plots,cli]'
	@touch $@

$(VENV)/.stamp-test: pyproject.toml | $(VENV)/.stamp-venv
	$(PIP) install --quiet --editable '.[test]'
	@touch $@

$(VENV)/.stamp-dev: pyproject.toml | $(VENV)/.stamp-venv
	$(PIP) install --quiet --editable '.[dev]'
	@touch $@
