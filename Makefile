# Everything starts here: `make run` serves, `make test` is what CI runs. Needs Python 3.11+ with venv, and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNNING := $(VENV)/.running-stamp
TESTING := $(VENV)/.testing-stamp
RIVALS := .venv-rivals/.stamp
LITELLM := .venv-rivals/litellm/.stamp
CLIENTS := .venv-clients/.stamp
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
LOCK := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --no-strip-extras --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options

.PHONY: help run setup test coverage lint format bench judge outside soak mutants way lock docs screenshots image clean

help:
	@echo "make run     install what is missing and serve http://127.0.0.1:8000"
	@echo "make setup   install the service into $(VENV), do not start it"
	@echo "make test    format, lint, types, imports, migrations and tests: what CI runs (<= 15 minutes on two cores);"
	@echo "             SLUICE_TEST_SEED=7 draws other samples of the large suites"
	@echo "make coverage  the same tests, and which lines they reach"
	@echo "make lint    the checks of make test that run no test"
	@echo "make bench   measure, print the tables and write them to docs/figures.md"
	@echo "make judge   measure how well it judges, with intervals, and write it to docs/judgement.md"
	@echo "make outside real clients, proxies and browsers, and the whole of what make test samples (<= 60 minutes);"
	@echo "             with CI set it installs what is missing from Debian, else it names what it leaves out"
	@echo "make soak    long fault and load tests (hours)"
	@echo "make mutants put faults into the logic and list those that no test notices (two hours)"
	@echo "make way     print the files that a request goes through"
	@echo "make format  format the code"
	@echo "make docs    write the generated pages in docs/, and the bill of materials"
	@echo "make screenshots  take the pictures of docs/console.md (Debian's Chromium)"
	@echo "make image   build deploy/Dockerfile without a container engine (Debian, root)"
	@echo "make lock    resolve the locked versions again"
	@echo "make clean   remove $(VENV) and caches; data in var/ stays"

# A new shell replaces itself by the service, which ends with make: no child is left holding the port.
run: $(RUNNING)
	@exec $(BIN)/sluice serve --exit-with-parent

setup: $(RUNNING)

# One thread for each process, and two processes for each core, since most tests wait for processes that they start.
# Those are to find their modules compiled.
PYTEST := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest

# The patterns are compiled once, not by each of the first services that the tests start side by side.
COMPILE := XDG_CACHE_HOME=.pytest_cache $(BIN)/sluice pii explain "Compile the patterns." > $(VENV)/.compiled

test: lint
	$(COMPILE)
	$(PYTEST) -n 4 --dist worksteal -m "not soak and not outside" --durations=10 \
		--hypothesis-seed=$${SLUICE_TEST_SEED:-1}

# Apart from the tests: watching each line makes pure Python three times as slow.
coverage: $(TESTING)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not soak and not outside" --timeout 240 --cov --cov-report=term

lint: $(TESTING)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(TESTING)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(TESTING) $(RIVALS) $(LITELLM)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.speed --write docs/figures.md

# Rivals are judged beside it where `make bench` has installed them.
judge: $(TESTING)
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks.judge --write docs/judgement.md

# Each rival in an environment of its own, so that none is slowed by what another needs.
$(RIVALS): $(filter-out %/litellm.txt,$(wildcard tests/benchmarks/rivals/*.txt)) tests/benchmarks/node/package-lock.json
	cd tests/benchmarks/node && PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --silent
	for rival in contextforge fastmcp judging; do \
		$(PYTHON) -m venv .venv-rivals/$$rival && \
		.venv-rivals/$$rival/bin/python -m pip --disable-pip-version-check --quiet install \
			-r tests/benchmarks/rivals/$$rival.txt || exit 1; \
	done
	$(PYTHON) -m venv .venv-rivals/llmguard
	.venv-rivals/llmguard/bin/python -m pip --disable-pip-version-check --quiet install --no-deps \
		-r tests/benchmarks/rivals/llmguard.txt
	touch $@

# Of the rivals, LiteLLM's proxy is also one of the gateways that Sluice stands behind.
$(LITELLM): tests/benchmarks/rivals/litellm.txt
	$(PYTHON) -m venv .venv-rivals/litellm
	.venv-rivals/litellm/bin/python -m pip --disable-pip-version-check --quiet install -r $<
	touch $@

# A file stays in one process: what its tests share, such as an image or a proxy, is built once. Files come in their
# order, the longest among the first.
outside: $(TESTING) $(LITELLM) $(CLIENTS)
	$(BIN)/python -m tests.outside.debian
	$(PYTEST) -n 2 --dist loadfile --no-loadscope-reorder -m "outside and not soak" --timeout 900 --durations=10

# Frameworks that talk through the gateway, each in an environment of its own and with all it needs pinned.
$(CLIENTS): $(wildcard tests/outside/clients/*.txt) tests/outside/clients/node/package-lock.json tests/outside/issuer/package-lock.json | $(TESTING)
	for folder in clients/node issuer; do \
		(cd tests/outside/$$folder && PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --ignore-scripts --no-audit --no-fund --silent) || exit 1; \
	done
	for client in agents langchain llamaindex pydantic; do \
		$(PYTHON) -m venv .venv-clients/$$client && \
		.venv-clients/$$client/bin/python -m pip --disable-pip-version-check --quiet install --no-deps \
			-r tests/outside/clients/$$client.txt || exit 1; \
	done
	touch $@

soak: $(TESTING)
	$(BIN)/python -m tests.outside.debian
	$(PYTEST) -m soak --timeout 7200
	SLUICE_TEST_WHOLE=1 $(PYTEST) -n 2 tests/unit/core tests/unit/engines/pii/scan tests/integration/test_hostile_schema.py \
		tests/integration/test_aggregator_chaos.py \
		tests/integration/test_canary.py tests/integration/test_audit_tampering.py tests/integration/test_audit_gaps.py \
		tests/protocol/test_famous_values.py tests/protocol/test_restoration_attacks.py \
		tests/integration/test_gateway_prefix.py tests/gateway/test_malformed_answers.py \
		tests/unit/services/servers/test_token_cache.py --timeout 600
	SLUICE_TEST_WHOLE=1 $(PYTEST) -n 2 -m "in_turn and not outside and not soak" --timeout 600

mutants: $(TESTING)
	$(BIN)/python -m tests.mutation

way: $(TESTING)
	@$(BIN)/python -m tests.way

docs: $(TESTING)
	$(BIN)/python docs/generate.py
	$(BIN)/python deploy/bill.py

# A sample service of its own, and Debian's Chromium: apt-get install chromium
screenshots: $(TESTING)
	$(BIN)/python -m tests.outside.screenshots docs/pictures

image:
	deploy/image.sh

# Resolved on the oldest Python that is supported, against the index that pip is configured for. Extras stay in the locks:
# without them the pip of Python 3.11 takes `coverage[toml]` for a package that is not pinned once there is a newer one.
lock: $(TESTING)
	$(LOCK) --build-deps-for editable --output-file requirements.lock pyproject.toml
	sed -E 's/^([a-z0-9-]+)\[[a-z,]+\]==/\1==/' requirements.lock > $(VENV)/requirements.lock
	$(LOCK) --extra archive --extra dev --extra kafka --extra kms --extra otel --extra pkcs11 --extra redis --extra s3 --constraint $(VENV)/requirements.lock --output-file tests/requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .venv-rivals .venv-clients build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* .mutants

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Sluice needs Python 3.11 or newer as '$(PYTHON)'; name another with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "Python's venv module is missing; on Debian install it with: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# Of all that is installed, only what the service imports is compiled ahead, a tenth of it; an environment that forbids
# Python to write bytecode would otherwise make every start as slow as the first.
$(RUNNING): requirements.lock pyproject.toml clients/python/pyproject.toml | $(BIN)/python
	@echo "Installing the locked versions into $(VENV) (a minute, once)"
	@$(PIP) install --no-compile --require-hashes -r requirements.lock
	@PYTHONWARNINGS=ignore $(PIP) install --no-deps --no-build-isolation --editable . --editable clients/python
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c "import app.cli.serve.server, app.cli.serve.serve, app.engines.pii.processes.worker"
	@touch $@

$(TESTING): tests/requirements.lock tests/encoder-source.txt tests/protocol/python-sdk-source.txt $(RUNNING)
	@echo "Installing what the tests need into $(VENV) (a minute, once)"
	@$(PIP) install --no-compile --require-hashes -r tests/requirements.lock
	@$(PIP) install --no-compile --no-deps --require-hashes -r tests/encoder-source.txt
	@$(BIN)/python -m tests.protocol.foreign_servers
	@$(COMPILE)
	@touch $@
