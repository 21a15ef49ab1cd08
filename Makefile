# SPDX-License-Identifier: Apache-2.0
# make probe    what this board is, what its NPU can do, what is wrong (LEVEL=quick|medium|long, ARGS="--only gemm ...")
# make test     every test
# make help     the rest
SHELL := /bin/sh
.DEFAULT_GOAL := help

TOP    := $(dir $(abspath $(lastword $(MAKEFILE_LIST))))
BUILD  ?= $(TOP)build
PYTHON ?= python3
CC     ?= cc
VENV   ?= $(TOP).venv
PY     := $(VENV)/bin/python
LEVEL  ?= medium
MODEL  ?= smollm2
ARGS   ?=
PREFIX ?=

export CC

# What a set-up was made for: a change of the requirements or of the interpreter makes it anew.
READY := $(VENV)/.ready
DEV   := $(VENV)/.ready-dev

# Each check says in one line what is missing and which package brings it.
CHECK_CC = { command -v $(firstword $(CC)) >/dev/null 2>&1 || \
	{ echo 'no C compiler ($(firstword $(CC))): apt-get install gcc libc6-dev' >&2; false; }; } && \
	{ echo '\#include <stdio.h>' | $(CC) -E - >/dev/null 2>&1 || \
	{ echo 'no headers of the C library for $(CC): apt-get install libc6-dev' >&2; false; }; }
CHECK_PYTHON = command -v $(PYTHON) >/dev/null 2>&1 || \
	{ echo 'no $(PYTHON): apt-get install python3' >&2; exit 1; }; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	{ echo '$(PYTHON) is older than 3.10: name a newer one with PYTHON=...' >&2; exit 1; }
CHECK_VENV = $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	{ echo 'no venv module: apt-get install python3-venv' >&2; false; }

# In a checkout that this user may not write: one line as well.
CHECK_BUILD = { mkdir -p $(BUILD) 2>/dev/null && test -w $(BUILD); } || \
	{ echo 'cannot write $(BUILD): copy the kit to a folder of yours' >&2; false; }
CHECK_TOP = test -w $(TOP) || \
	{ echo 'cannot install from $(TOP), which this user may not write: copy the kit to a folder of yours' >&2; false; }

.PHONY: help probe test lint format build mock model fuzz conformance test-arm test-browser bench clean have-cc have-python have-venv

help:
	@echo 'make probe              probe this machine (LEVEL=quick: facts only; ARGS="--library PATH ...")'
	@echo 'make test               run every test'
	@echo 'make conformance        is a librknnrt numerically right (ARGS="--library PATH --level quick|medium|long");'
	@echo '                        ARGS="--engine npu|device" this kit'"'"'s engine, ARGS="--server URL" a llama-server'
	@echo 'make lint               ruff, ruff format, mypy --strict'
	@echo 'make build              build the C probes, the mock librknnrt and the kernels of the reference engine'
	@echo 'make model              bring SmolLM2-135M, which some tests run (MODEL=gemma3: Gemma 3 270M; its terms are shown)'
	@echo 'make mock PREFIX=DIR    build the mock librknnrt; with PREFIX install library, headers and pkg-config file there'
	@echo 'make test-arm           cross-compile for aarch64 and 32-bit Arm and run the C tests under qemu-user'
	@echo 'make test-browser       open the HTML page in Chromium and hold it against what a reader needs'
	@echo 'make fuzz               fuzz the mock API for 60 s'
	@echo 'make bench              benchmarks (compare ratios; absolute times of a shared machine prove nothing);'
	@echo '                        BENCHES="speculation forecast_table" some of them, BENCH_MODEL=smollm2 pipelines on a model'
	@echo 'make clean              remove what was built'

# A board without a compiler, without python3-venv or without a network still gets its facts: each thing that is
# missing is named in one line, with the package that brings it, and costs its own feature only.
probe: have-python
	@{ $(CHECK_CC); } && { $(CHECK_BUILD); } && $(MAKE) --no-print-directory -s build || true
	@test -f $(READY) || { { $(CHECK_VENV); } && { $(CHECK_TOP); }; } && $(MAKE) --no-print-directory -s $(READY) || true
	@cd $(TOP) && if [ -f $(READY) ]; then exec $(PY) -m probes --level $(LEVEL) $(ARGS); \
	else echo 'probe: going on with $(PYTHON) and the standard library alone' >&2; \
	exec $(PYTHON) -m probes --level $(LEVEL) $(ARGS); fi

test: $(DEV) build
	@cd $(TOP) && $(PY) -m pytest $(ARGS)

lint: $(DEV)
	@cd $(TOP) && $(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy

format: $(DEV)
	@cd $(TOP) && $(VENV)/bin/ruff check --fix . && $(VENV)/bin/ruff format .

build: have-cc
	@$(MAKE) --no-print-directory -s -C $(TOP)c_probes/mock BUILD=$(BUILD)
	@$(MAKE) --no-print-directory -s -C $(TOP)c_probes/src BUILD=$(BUILD)
	@$(MAKE) --no-print-directory -s -C $(TOP)reference_engine/kernels BUILD=$(BUILD)

mock: have-cc
	@$(MAKE) --no-print-directory -s -C $(TOP)c_probes/mock BUILD=$(BUILD)
	@if [ -n "$(PREFIX)" ]; then $(MAKE) --no-print-directory -s -C $(TOP)c_probes/mock BUILD=$(BUILD) PREFIX=$(PREFIX) install; \
	else echo 'built $(BUILD)/mock/librknnrt.so'; fi

model: $(READY)
	@cd $(TOP) && $(PY) -m reference_engine.fetch_model $(MODEL)

fuzz:
	@$(MAKE) --no-print-directory -C $(TOP)c_probes/mock BUILD=$(BUILD) fuzz

# Is this librknnrt numerically right? The one that is found, else the mock; ARGS="--library PATH --level medium".
# The engine with ARGS="--engine npu" or "--engine device", somebody's server with ARGS="--server http://localhost:8080".
conformance: $(DEV) build
	@cd $(TOP) && $(PY) -m pytest conformance $(ARGS)

test-arm: $(DEV)
	@cd $(TOP) && RKNPU_KIT_ARM=1 $(PY) -m pytest -m arm $(ARGS)

test-browser: $(DEV) build
	@cd $(TOP) && $(PY) -m pytest -m browser $(ARGS)

# Each says what it measures and holds it against its bar: 1 a bar missed, 3 not measurable now (a busy machine, a peer
# that is not here). Those with a peer take its path: bench/engine_speed.py --help, bench/gemm_s8.py --help.
BENCHES ?= gemm_s8 truth clean_runs bandwidth report_pairs forecast_table page_time speculation
bench: $(DEV) build
	@cd $(TOP) && worst=0; for name in $(BENCHES); do echo "== bench/$$name.py"; code=0; \
	$(PY) bench/$$name.py $(ARGS) || code=$$?; \
	case $$code in 0) ;; 3) echo "$$name: could not be measured now" ;; *) echo "$$name: exit code $$code"; worst=1 ;; esac; \
	done; if [ -n "$(BENCH_MODEL)" ]; then $(PY) bench/engine_quality.py $(BENCH_MODEL) || worst=1; fi; exit $$worst

$(READY): pyproject.toml | have-venv
	@echo 'setting up $(VENV), once' >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable $(TOP) || { \
	echo 'pip could not install the Python packages: is there a network, and is pip up to date?' >&2; exit 1; }
	@touch $(READY)

$(DEV): pyproject.toml $(READY)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '$(TOP)[dev,engine,report]' || { \
	echo 'pip could not install the development packages: is there a network?' >&2; exit 1; }
	@touch $(DEV)

have-cc:
	@$(CHECK_CC)
	@$(CHECK_BUILD)

have-python:
	@$(CHECK_PYTHON)

have-venv: have-python
	@$(CHECK_VENV)
	@$(CHECK_TOP)

clean:
	rm -rf $(BUILD) $(VENV)
