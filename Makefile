# One command each, the same locally and in CI. Needs python3 (3.11 or newer) with pip and venv, and make.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
BENCH_VENV := .venv-bench
BENCH_PY := $(BENCH_VENV)/bin/python
BENCH_STAMP := $(BENCH_VENV)/.installed
BENCH_RESULTS := benchmarks/results

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes. Where compiled files are not kept, each of them compiles all that it imports.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help venv demo page page-check test test-all test-page test-adapters test-fuzz test-native lint check format
.PHONY: chaos bench bench-quick bench-docs bench-venv coverage changelog native release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP) ## create .venv with everything pinned in constraints.txt

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "wakelog needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	WAKELOG_PAGE=skip $(PY) -m pip install -qq -c constraints.txt -e '.[test,check]'
	@touch $@

demo: venv ## run the demo
	$(PY) examples/demo.py

page: venv ## build the web page, for `wakelog ui` in this checkout; brings a node where there is none
	$(PY) hatch_build.py

page-check: page ## check the types of the page
	cd ui && npm run check

test: venv ## run the tests, without the slow ones
	TMPDIR=$$($(PY) scripts/scratch.py) $(PY) -m pytest -q -n 3 --dist worksteal --hypothesis-profile=quick -m "not slow"

test-all: venv ## run every test
	WAKELOG_PAGE=skip $(PY) -m pip install -qq -c constraints.txt -e '.[test-all]'
	$(PY) -m pytest -q -n 2 --dist worksteal

test-page: page ## try the web page in a browser, which is installed where that is allowed
	WAKELOG_PAGE=skip $(PY) -m pip install -qq -c constraints.txt -e '.[page-test]'
	$(PY) scripts/browser.py
	$(PY) -m pytest -q -n 2 --dist loadfile -rs tests/page

test-adapters: venv ## run each framework's suite in its own environment; `make test-adapters ONLY=langgraph` runs one
	$(PY) scripts/adapter_suites.py $(ONLY)

chaos: venv ## kill, pause and replace servers of a cluster and a PostgreSQL pair under load; `ROUNDS=10` takes longer
	$(PY) -m tests.chaos --rounds $(or $(ROUNDS),3) --to chaos-report

test-fuzz: venv ## search with a fresh seed, ten to twenty minutes; `make test-fuzz SEED=…` repeats a search
	$(eval SEED ?= $(shell $(PY) -c 'import random; print(random.randrange(1 << 30))'))
	@echo "SEED=$(SEED)"
	WAKELOG_TEST_SEED=$(SEED) $(PY) -m pytest -q -n 2 --dist worksteal --hypothesis-profile=fuzz --hypothesis-seed=$(SEED) \
		-m "(hypothesis or seeded) and not slow" || { echo "to repeat: make test-fuzz SEED=$(SEED)"; exit 1; }

native: venv ## build the native core with cargo and install it; wakelog is complete without it
	$(PY) scripts/native.py $(ONLY)

test-native: venv ## compare the native core with the Python that it stands for
	WAKELOG_PURE= WAKELOG_TEST_NATIVE=1 $(PY) -m pytest -q --hypothesis-profile=quick tests/native tests/codec tests/golden

lint: venv ## format, lint, types
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy

check: lint ## format, lint, types, layers, docs
	$(PY) -m pytest -q -n 2 tests/architecture tests/docs

format: venv ## format the code and apply safe fixes
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

bench-venv: $(BENCH_STAMP) # the peers never meet the tests' environment

$(BENCH_STAMP): pyproject.toml benchmarks/constraints.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	WAKELOG_PAGE=skip $(BENCH_PY) -m pip install -qq -c benchmarks/constraints.txt -e '.[bench]'
	-$(BENCH_PY) scripts/native.py
	@touch $@

bench: page bench-venv ## run every benchmark, peers and all; about half an hour and more
	$(BENCH_PY) -m benchmarks --json $(BENCH_RESULTS)/full.json --plots $(BENCH_RESULTS)
	$(BENCH_PY) -m benchmarks.adapters
	$(BENCH_PY) -m benchmarks.adk_sessions
	$(BENCH_PY) -m benchmarks.steps --postgres
	$(PY) -m benchmarks.calls
	$(PY) -m benchmarks.mcp
	$(PY) -m benchmarks.serving
	$(PY) -m benchmarks.shared --pair --growth
	$(PY) -m benchmarks.cluster --growth 200000
	WAKELOG_PAGE=skip $(PY) -m pip install -qq -c constraints.txt -e '.[page-test]'
	$(PY) scripts/browser.py
	$(PY) -m benchmarks.page

bench-quick: venv ## ours beside bare loops, compared with the saved run; under two minutes
	$(PY) -m benchmarks --quick

bench-docs: bench-venv ## run the peers' comparison, save it, and write it into the docs
	$(BENCH_PY) -m benchmarks --json $(BENCH_RESULTS)/full.json --save --write-docs

coverage: venv ## run the tests with branch coverage; fails below the floor in pyproject.toml
	$(PY) -m pytest -q -n 2 -m "not slow" --cov --cov-report=term:skip-covered --cov-report=html

changelog: venv ## collect changes/ into CHANGELOG.md, under a version marked as unreleased
	$(PY) scripts/release.py --collect

release: venv ## collect the changelog, build wheel and sdist, try both; DRY=1 changes no file
	$(PY) scripts/release.py $(if $(DRY),--dry-run)

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) $(BENCH_VENV) .venv-adapters ui/node_modules src/wakelog/web/static dist build core/target
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
