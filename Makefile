# `make demo` and `make test` set up whatever a fresh machine lacks, then run.
# Needed before: Python 3.11 or 3.12 and Java 17. No root, nothing outside this folder but caches.

MAKEFLAGS += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# Compiled modules are kept, whatever the caller's environment says: without them, every process that
# a test starts compiles Airflow, sqlglot and pyspark again (seconds each).
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
PY := .venv/bin/python
# A uv that is on PATH but cannot run (a shim of another Python) is as good as none.
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo .tools/uv/bin/uv)
# One queue for all workers; tests/conftest.py sorts it.
WORKERS ?= 2
PYTEST = $(PY) -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder
ROUNDS ?= 200

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: jars ## Watch events flow into gold; ARGS="--events 200000 --json"
	@.venv/bin/headgate demo $(ARGS)

# Tests of e2e and recovery mostly wait for processes, so three workers keep two processors busy.
.PHONY: test
test: WORKERS = 3
test: checked ## Everything: set-up, lint and all tests; ARGS="-k late"
	@$(PYTEST) -m "not bench" tests $(ARGS)

# Types take a minute on one core; the classes are recorded beside them.
.PHONY: checked
checked: sync jars
	@$(MAKE) -j2 lint classes

.PHONY: check
check: lint ## The quick part: lint, types, imports, tests without Spark
	@$(PYTEST) -q -m "not spark and not recovery and not e2e and not bench and not long and not slow" \
		tests/unit tests/property $(ARGS)

.PHONY: lint
lint: types style contracts ## Style, types and import contracts

.PHONY: types
types: sync
	@.venv/bin/mypy --strict --num-workers 2 pipelines/headgate tests

.PHONY: style
style: sync
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .

.PHONY: contracts
contracts: sync
	@.venv/bin/lint-imports

.PHONY: format
format: sync ## Rewrite the code in the house style
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

.PHONY: chaos
chaos: classes ## Kill, pause and take over drivers, and every long proof in full; ROUNDS=200
	@HEADGATE_CHAOS_ROUNDS=$(ROUNDS) $(PYTEST) -m "recovery or long" tests $(ARGS)

.PHONY: nightly
nightly: checked ## All tests, and every long proof in full (hours); ROUNDS=20
	@HEADGATE_CHAOS_ROUNDS=$(if $(filter file,$(origin ROUNDS)),20,$(ROUNDS)) \
		$(PYTEST) -m "not bench" tests $(ARGS)

.PHONY: bench
bench: jars ## Measure speed on this machine, with its noise
	@$(PY) -m pytest -m bench -s $(ARGS)

.PHONY: nexmark
nexmark: jars ## The queries of Nexmark, compared with DuckDB, and their CPU time; ARGS="-k q5"
	@$(PY) -m pytest -m bench -s tests/benchmarks/test_nexmark.py $(ARGS)

.PHONY: sync
sync: .venv/.synced ## Install the locked packages into .venv

.PHONY: jars
jars: sync ## Fetch the locked jars into the cache (once), the dev broker's too
	@$(PY) -m headgate.machine.jars

.PHONY: clean
clean: ## Remove caches and build results; keeps .venv, landing/ and lake/
	@rm -rf dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@rm -rf spark-warehouse metastore_db derby.log
	@find dags pipelines tests -name __pycache__ -type d -prune -exec rm -rf {} +

# Only when the lock changed: everything after the first time works offline.
.venv/.synced: pyproject.toml uv.lock | preflight $(filter .tools/%,$(UV))
	@$(UV) sync --locked --extra airflow --extra quality --extra postgres --extra otel --extra lineage --compile-bytecode
	@touch $@

# The classes that JVMs load; recorded again when the packages change. Tests run without them, too.
.PHONY: classes
classes: jars
	@$(PY) -m headgate.machine.jars.class_archive || echo "no archive of classes: JVMs start more slowly" >&2

.PHONY: preflight
preflight:
	@infra/preflight.sh

# A virtual environment of its own: needs no root and works where pip must not touch the system.
.tools/uv/bin/uv:
	@echo "uv is not installed: putting it into .tools/uv"
	@mkdir -p .tools && echo '*' > .tools/.gitignore
	@{ $(PYTHON) -m venv .tools/uv && .tools/uv/bin/python -m pip install --quiet uv; } \
		|| $(PYTHON) -m pip install --quiet --target .tools/uv uv \
		|| { rm -rf .tools/uv; echo "uv could not be installed. It needs $(PYTHON) with venv or pip" \
			"(Debian, Ubuntu: sudo apt install python3-venv), or put uv on PATH yourself." >&2; exit 1; }
