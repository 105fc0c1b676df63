# Targets for people. Everything runs from the virtual environment, which `requirements.lock` describes.
STACK ?= dev
PYTHON ?= python3
PY := .venv/bin/python
LOCAL := $(PY) -m local
# The data-plane tests run a real Triton and a network of their own, which there are for Linux only.
LINUX := $(filter Linux,$(shell uname -s))
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install up down status preview logs plan policies review clean test check lock schemas bench

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/installed ## create .venv from requirements.lock

.venv/installed: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"Python 3.11 or newer is needed, {sys.executable} is {sys.version.split()[0]}; run: make PYTHON=python3.12")'
	@echo "creating .venv from requirements.lock"
	@$(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

up: .venv/installed ## stand up the dev stack on the embedded control plane and print its endpoints
	@$(LOCAL) plan --stack $(STACK)
	@$(LOCAL) up --stack $(STACK)
	@eval "$$($(LOCAL) env)" && pulumi up --yes --skip-preview --suppress-outputs --policy-pack policies --stack $(STACK)
	@echo && $(LOCAL) models --stack $(STACK)

preview: .venv/installed ## show what `make up` would change
	@$(LOCAL) up --stack $(STACK)
	@eval "$$($(LOCAL) env)" && pulumi preview --diff --suppress-outputs --policy-pack policies --stack $(STACK)

down: .venv/installed ## destroy the stack and stop the control plane
	@if [ ! -d .plane ]; then echo "nothing is up"; exit 0; fi; \
	$(LOCAL) up --stack $(STACK) && eval "$$($(LOCAL) env)" && \
	pulumi destroy --yes --skip-preview --stack $(STACK) && $(LOCAL) down

status: .venv/installed ## show the control plane's processes and the models
	@$(LOCAL) status && echo && $(LOCAL) models --stack $(STACK)

logs: .venv/installed ## show the end of the control plane's logs
	@$(LOCAL) logs

plan: .venv/installed ## show what the stack would create, with neither engine nor cluster
	@$(LOCAL) plan --stack $(STACK)

policies: .venv/installed ## judge what every stack would be, with neither engine nor cluster
	@$(PY) -m review policies

review: .venv/installed ## write the comment on a pull request: make review BASE=<checkout of the base branch> [OUT=<file>]
	@$(PY) -m review comment --before "$(BASE)" $(if $(OUT),--out "$(OUT)") $(if $(LINK),--link "$(LINK)")

clean: ## stop the control plane, remove its data and .venv; built tools stay in the cache
	@if [ -d .plane ] && [ -x $(PY) ]; then $(LOCAL) down --purge; fi
	@rm -rf .venv .plane .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

test: .venv/installed ## run all tests; builds missing tools first, with progress
	@$(LOCAL) toolchain $(if $(LINUX),--tests) >/dev/null
	@$(PY) -m pytest --numprocesses auto --dist loadfile tests/spec tests/components tests/policies tests/review
	@$(PY) -m pytest tests/local tests/engine
	@$(if $(LINUX),$(PY) -m pytest tests/dataplane)

check: .venv/installed ## lint, format, types, generated schemas
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/ty check
	@$(PY) -m spec.schema --check

schemas: .venv/installed ## write the JSON Schemas that editors use
	@$(PY) -m spec.schema

bench: .venv/installed ## print the figures of the README
	@$(PY) -m bench

lock: .venv/installed ## resolve requirements.in into requirements.lock
	@$(PY) -m pip install --quiet --upgrade --target .venv/uv uv
	@.venv/uv/bin/uv pip compile requirements.in -o requirements.lock --universal --python-version 3.11 --quiet \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate
