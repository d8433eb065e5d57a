# `make demo` and `make test` need nothing but Python >= 3.11: each target makes the virtual
# environment it needs. VENV=folder and PYTHON=python3.12 may be given on the command line.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# one BLAS thread per process: pytest-xdist and joblib already use every core
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: demo test test-gpu test-slow test-experiments loops lint review dist bench bench-check fuzz fuzz-paths fuzz-searches docs format clean reproduce-fast book screenshots

demo: $(VENV)/.app
	$(BIN)/tamis demo

# Two workers are enough for two cores: additional threads of polars would wait for each other, and take
# a third more processor time on small tables.
test test-slow test-experiments: export POLARS_MAX_THREADS ?= 1

# Loops are compiled while mypy runs: else each of the two workers would compile all of them.
test: $(VENV)/.test
	$(MAKE) --jobs=2 lint loops
	$(BIN)/python -m pytest -n 2 -m "not slow and not experiment" $(ARGS)

loops: $(VENV)/.test
	$(BIN)/python -m tests.loops

# On a machine with a GPU; python3 -m tests.gpu runs the same without pytest, and from the sources.
test-gpu: $(VENV)/.gpu
	$(BIN)/python -m pytest -m gpu tests/gpu $(ARGS)

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m slow $(ARGS)

# Published tables and the promises of choices, computed again: hours.
test-experiments: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m experiment $(ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/python -m docs.prose
	$(BIN)/lint-imports
	$(BIN)/mypy

# The guide of Scientific Python, and the workflows; needs nox and uv, as all sessions of nox do.
review:
	nox -s review

# The sdist and the wheel, in dist/. With TAG=v0.1.0, fails unless that is the version.
dist: $(VENV)/.test
	test -z "$(TAG)" || test "$(TAG)" = "v$$($(BIN)/python -c 'import tamis; print(tamis.__version__)')"
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# A few realizations of every published table; the tables themselves need TAMIS_DATA.
reproduce-fast: $(VENV)/.book
	$(BIN)/tamis reproduce --all --realizations 2 $(ARGS)

# Every experiment that has no results yet, with all realizations, the shortest first: days in all, and
# resumable. ARGS="thesis-3.1" for one, ARGS="--most 3600" for those of an hour at most.
book: $(VENV)/.book
	$(BIN)/python -m book.run $(ARGS)

# Speed ratios against other packages, which are stored in benchmarks/ratios.toml. ARGS="relief" for one.
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(ARGS)

# The short benchmarks (three minutes), compared with the stored ratios.
bench-check: $(VENV)/.bench
	$(BIN)/python -m benchmarks --check $(ARGS)

# An hour of hostile tables, or ARGS="--count 1000 --seed 3"; each failure is a line that repeats it.
fuzz: $(VENV)/.test
	$(BIN)/python -m fuzz $(ARGS)

# Ten thousand scaled and degenerate path problems against other solvers (half an hour), or
# ARGS="first count".
fuzz-paths: $(VENV)/.test
	$(BIN)/python -m tests.svm.adversarial $(or $(ARGS),0 10000)

# 500 random searches for C against GridSearchCV (a few minutes), or ARGS="first count".
fuzz-searches: $(VENV)/.test
	$(BIN)/python -m tests.svm.searches $(or $(ARGS),0 500)

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W -b html docs docs/_build

# Pages of several tables and pictures of them, in light, dark, narrow and print; needs chromium.
screenshots: $(VENV)/.test
	$(BIN)/python -m docs.screenshots $(ARGS)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Each stamp stands for one set of extras and groups, and is renewed when the dependencies change.
$(VENV)/.app: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[app]"
	touch $@

$(VENV)/.book: pyproject.toml book/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[app]" --editable book
	touch $@ $(VENV)/.app

$(VENV)/.test: pyproject.toml book/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[app,dask]" --editable book --group test
	touch $@ $(VENV)/.app $(VENV)/.book

$(VENV)/.gpu: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable ".[app,dask,gpu]" --group test
	touch $@

$(VENV)/.bench: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable ".[app,dask]" --group test --group bench
	touch $@

$(VENV)/.docs: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable ".[app,dask]" --group test --group docs
	touch $@

clean:
	rm -rf $(VENV) docs/_build docs/reference/generated dist
