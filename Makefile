# A fresh Debian or macOS machine with python3, its venv module and make is enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RAY_VENV := .venv-ray
AGENT_VENV := .venv-agent
PIP := -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test test-agent test-ray lint clean
CLIENTS_VENV := .venv-clients
PIP := -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test test-ray test-clients lint clean

# The main job: a real small model on this machine, loaded, measured, reported.
demo: $(VENV)/engine.stamp
	$(BIN)/withstand demo $(DEMO_OPTIONS)

# All tests, the real engine's among them.
test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest $(PYTEST_OPTIONS)

# The agent. LangGraph has an environment of its own: it is 80 MB.
test-agent: $(AGENT_VENV)/agent.stamp
	timeout 900 $(AGENT_VENV)/bin/python -m pytest $(PYTEST_OPTIONS) tests/agent

# The fleet on a real Ray cluster of several nodes on this machine. Ray has an environment of its own: it is large.
test-ray: $(RAY_VENV)/ray.stamp
	timeout 900 $(RAY_VENV)/bin/python -m pytest $(PYTEST_OPTIONS) tests/load/test_ray_fleet.py

# Clients of the gateway that are too heavy for the other tests.
test-clients: $(CLIENTS_VENV)/clients.stamp
	$(CLIENTS_VENV)/bin/python -m pytest $(PYTEST_OPTIONS) tests/gateway/test_libraries.py

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) $(AGENT_VENV) $(RAY_VENV)

$(VENV)/engine.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --editable '.[engine]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --editable '.[dev,engine,tiktoken,tokenizers,yaml]'
	@touch $@

$(RAY_VENV)/ray.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(RAY_VENV)
	$(RAY_VENV)/bin/python $(PIP) --editable '.[ray,dev]'
	@touch $@

.PHONY: demo test test-agent test-ray test-clients lint clean
	@touch $@
