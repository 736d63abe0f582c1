# Everything here makes its own .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The dbt that the tests run on. CI runs a part of the functional tests on dbt-core 1.12 too.
DBT ?= dbt-core<1.12
STAMP := $(VENV)/.installed
# Where it is set, every test process compiles and rewrites each module again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: check lint test quickstart bench format clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]' '$(DBT)'
	touch $@

lint: style types layers docs  ## what pre-commit runs too

.PHONY: style types layers
style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# In an environment with dbt-core, `dbt` is its package: import-linter sees ours as `ducklake`.
LAYERS := .layers
layers: $(STAMP)
	mkdir -p $(LAYERS) && ln -sfn ../dbt/adapters/ducklake $(LAYERS)/ducklake
	PYTHONPATH=$(LAYERS) $(BIN)/lint-imports --no-cache

check: $(STAMP)  ## quick checks, without Spark and servers
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint quick

.PHONY: quick
QUICK := not catalogs and not processes and not large and not long
quick: $(STAMP)
	$(BIN)/pytest tests/unit tests/docs -n 2 -m '$(QUICK)' --ignore-glob '*/test_examples_*'

test: lint java  ## everything, as CI runs it
	$(BIN)/pytest tests/unit -n 2
	$(BIN)/pytest tests/ui
	$(BIN)/pytest tests/docs
	$(BIN)/pytest tests/spark tests/interop tests/corpus -n 2 -m 'not long'
	$(BIN)/pytest tests/functional -n 2 --dist loadscope -m 'not long'  # the tests of a class share a project

quickstart: $(STAMP) java  ## a first lake, in the folder quickstart/
	$(BIN)/python -m integration_project.quickstart

bench: $(STAMP) java
	$(BIN)/python -m benchmarks

# Delta Lake and Iceberg have releases for this Spark, so all systems run on it.
PEERS := build/peers/venv
$(PEERS)/.installed: pyproject.toml
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --editable '.[postgres]' '$(DBT)' 'pyspark==4.1.4' \
		'dbt-spark==1.11.0' 'dbt-duckdb==1.11.1' 'duckdb==1.5.5' \
		'duckdb-extension-ducklake==1.5.5' 'duckdb-extension-sqlite-scanner==1.5.5' 'duckdb-extension-tpch==1.5.5'
	touch $@

.PHONY: bench-peers
PEERS_OPTIONS ?= --scale 0.1
bench-peers: $(PEERS)/.installed java  ## the same dbt project on other systems
	$(PEERS)/bin/python -m benchmarks.peers $(PEERS_OPTIONS)

DOCS_STAMP := $(VENV)/.installed-docs
$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

.PHONY: docs docs-serve reference
docs: $(DOCS_STAMP)  ## the site of docs/, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reference: $(STAMP)  ## docs/reference/, from the code
	$(BIN)/python docs/generate_reference.py

docs-serve: $(DOCS_STAMP)  ## the same on http://127.0.0.1:8000, rebuilt on every change
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

.PHONY: java
java: $(STAMP)
	@$(BIN)/python -c 'import sys; from dbt.adapters.ducklake.spark.engine.java import main; sys.exit(main())'

# The jar is checked in, so that installing the project needs no Java compiler; a test says when it is older than its
# sources.
JAVA := dbt/adapters/ducklake/spark/engine/java_classes
JAVA_SOURCES := $(sort $(wildcard $(JAVA)/*/*.java))
CLASSES := build/java-classes
.PHONY: jar
jar: $(STAMP)  ## the classes in Java
	rm -rf $(CLASSES) && mkdir -p $(CLASSES)
	javac --release 17 -Werror -cp "$$($(BIN)/python -c 'import pyspark; print(pyspark.__path__[0])')/jars/*" \
		-d $(CLASSES) $(JAVA_SOURCES)
	echo "Sources-SHA256: $$(cat $(JAVA_SOURCES) | sha256sum | cut -d' ' -f1)" > $(CLASSES)/manifest
	jar --create --file $(JAVA)/ducklake-spark.jar --manifest $(CLASSES)/manifest \
		--date 2026-01-01T00:00:00Z -C $(CLASSES) dbt

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) quickstart site .mypy_cache .ruff_cache .import_linter_cache .hypothesis
