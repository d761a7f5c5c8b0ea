# perfdb: every job of the project. `make help` lists them.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= site,dashboard,mcore,postgres,parquet,duckdb,mcp,dev
COMMA := ,
INSTALLED := $(VENV)/.installed
AUTOMODEL_VENV ?= .venv-automodel
AUTOMODEL_INSTALLED := $(AUTOMODEL_VENV)/.installed
RECIPES ?= recipes/
SECONDS ?= 60
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
TARGETS ?=
# Where PyTorch's builds for CPU are; PyPI has the one with CUDA alone.
CPU_WHEELS ?= $(or $(PIP_FIND_LINKS),https://download.pytorch.org/whl/cpu/torch/)

.DEFAULT_GOAL := help
.PHONY: help install run run-automodel test check docs dashboard bench fuzz lint format lock advisories clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# $(call install_into,VENV,EXTRAS): perfdb with extras in a virtual environment. uv needs a tenth of
# pip's time, but reads no pip.conf: where it cannot install, pip does.
define install_into
	test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check uv && \
		$(1)/bin/uv pip install --quiet --python $(1)/bin/python $(addprefix --find-links ,$(PIP_FIND_LINKS)) -c constraints.txt -e '.[$(2)]' || \
		$(1)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(2)]'
	touch $@
endef

$(INSTALLED): pyproject.toml constraints.txt
	$(call install_into,$(VENV),$(EXTRAS))

install: $(INSTALLED) ## make .venv and install perfdb with everything it needs

$(AUTOMODEL_INSTALLED): pyproject.toml constraints.txt
	$(call install_into,$(AUTOMODEL_VENV),automodel)

run-automodel: export PERFDB_AUTOMODEL_PYTHON = $(CURDIR)/$(AUTOMODEL_VENV)/bin/python
run-automodel: RECIPES = recipes/smoke-automodel
run-automodel: $(AUTOMODEL_INSTALLED) run ## install NeMo AutoModel beside, and run, store and show its recipes

run: $(INSTALLED) ## install, run the recipes, fill the store, build the site
	$(BIN)/perfdb run $(RECIPES) || [ $$? -eq 1 ]
	$(BIN)/perfdb ingest runs data/published
	$(MAKE) --no-print-directory docs
	@echo
	@echo "runs      $(CURDIR)/runs"
	@echo "store     $(CURDIR)/perfdb.sqlite"
	@echo "site      $(CURDIR)/docs/_build/html/index.html"
	@echo "dashboard make dashboard"

# Two workers more than there are cores: tests of processes, Slurm and browsers often wait.
# Each of them, and each process that a test starts, would else compile every module again.
test: export PYTHONDONTWRITEBYTECODE =
test: $(INSTALLED) ## install and run the whole test suite
	$(BIN)/python -m pytest -q -rs -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=10

docs: $(INSTALLED) ## build the site from the store into docs/_build/html
	$(BIN)/python -m perfdb.site -nWq docs docs/_build

dashboard: $(INSTALLED) ## open the dashboard on the store
	$(BIN)/perfdb dashboard

bench: $(INSTALLED) ## time perfdb against its limits, and beside its peers (benchmarks/)
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.ingest_logs
	$(BIN)/python -m benchmarks.site_build
	$(BIN)/python -m benchmarks.ingest_runs --peers
	$(BIN)/python -m benchmarks.run_overhead

fuzz: $(INSTALLED) ## feed each reader damaged files: SECONDS=60, TARGETS="page nemo2"
	$(BIN)/python -m tests.fuzz.cli --seconds $(SECONDS) $(TARGETS)

lint: $(INSTALLED) ## formatting, lint, types, import rules, and the words that users read
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.prose

format: $(INSTALLED) ## format the code and apply the safe fixes
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

check: lint docs test ## all that continuous integration runs

lock: $(INSTALLED) ## pin what is installed here, with the hashes, into requirements.lock
	$(BIN)/python -m pip freeze --exclude-editable | sed -E '/^(pip|setuptools|uv)==/d' > $(VENV)/tested.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-annotate \
		--no-config --default-index https://pypi.org/simple --find-links $(CPU_WHEELS) --custom-compile-command 'make lock' \
		$(foreach one,$(subst $(COMMA), ,$(EXTRAS)),--extra $(one)) \
		-c constraints.txt -c $(VENV)/tested.txt pyproject.toml -o requirements.lock

advisories: ## known vulnerabilities of what is locked, and its SBOM in dist/
	.ci/advisories

clean: ## remove what was built; runs, the store and .venv stay
	rm -rf docs/_build docs/_generated docs/changes docs/models docs/performance docs/recipes docs/runs docs/scaling docs/sources docs/systems dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
