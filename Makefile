# A fresh Debian or macOS machine with python3, its venv module and make is enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test lint clean

# The main job: a real small model on this machine, loaded, measured, reported.
demo: $(VENV)/engine.stamp
	$(BIN)/withstand demo $(DEMO_OPTIONS)

# All tests, the real engine's among them.
test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest $(PYTEST_OPTIONS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV)

$(VENV)/engine.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[engine]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[dev,engine,tiktoken,tokenizers,yaml]'
	@touch $@
