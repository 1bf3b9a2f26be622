# The menu. Everything starts from a bare Python 3.11 or later; ARGS go to `novacron up`.
SHELL := /bin/sh
BIN := .venv/bin
PYTHON := $(BIN)/python
TOOLS := .venv/.tools
RUN := .venv/.run
DEV := .venv/.dev
BENCH := .venv/.bench
UV := PYTHONPATH=.venv/tools .venv/tools/bin/uv pip
COMPILE := $(UV) compile --quiet --universal --generate-hashes --no-header --python-version 3.11
SOURCES := src tests bench
# Tests wait more than they compute, so more of them at once than there are cores.
PYTEST := $(PYTHON) -m pytest -n 3
# Those of a module share what takes long to make, so they stay together; the directories of the slow
# ones come first by name. All tests have modules that one worker alone would be left with.
TOGETHER := --dist loadfile --no-loadscope-reorder
APART := --dist worksteal
HELM := PYTHONPATH=tests $(PYTHON) -m helm
IMAGE := novacron/novacron:$(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

.PHONY: help up down test test-full check bench generate docs chart image lock binaries kubevirt helm guests versitygw

help: ## what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

up: $(RUN) ## a local cluster with the operator and a first machine; flags in ARGS
	@$(BIN)/novacron up $(ARGS)

down: $(RUN) ## stop it; data stays
	@$(BIN)/novacron down

test: $(DEV) binaries kubevirt helm guests ## the everyday tests
	$(PYTEST) $(TOGETHER) -m "not full" $(ARGS)

test-full: $(DEV) binaries kubevirt helm guests versitygw ## all tests
	$(PYTEST) $(APART) $(ARGS)

check: $(DEV) ## style, types, layers, generated files
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTHON) -m novacron.app.generate --check

bench: $(BENCH) binaries guests ## measurements beside peers
	$(PYTHON) -m bench $(ARGS)

generate: $(DEV) ## definitions and reference pages from the types
	$(PYTHON) -m novacron.app.generate

docs: generate ## the reference pages; the rest of docs/ is written by hand

chart: generate helm ## plain manifests in deploy/ from the chart
	@$(HELM).plain

image: ## the operator's image, by docker build
	docker build --tag $(IMAGE) .

# Builds of Kubernetes, KubeVirt and helm take longer than a test may, so they come before them.
binaries: $(RUN)
	@$(PYTHON) -m novacron.localcluster >/dev/null

kubevirt: $(RUN)
	@$(PYTHON) -m novacron.localcluster.kubevirt >/dev/null

helm: $(RUN)
	@$(HELM) >/dev/null

# An S3 server for the tests of buckets.
versitygw: $(RUN)
	@PYTHONPATH=tests $(PYTHON) -m versitygw >/dev/null

# What real guests need: packages of the system, the binding of libvirt, and an image.
guests: $(RUN)
	@$(PYTHON) -m novacron.localcluster.hypervisor
	@$(PYTHON) -m novacron.guests tiny --install >/dev/null

lock: $(TOOLS) ## resolve all dependencies anew
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) --group dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	$(COMPILE) --group dev --group bench -c requirements-dev.lock pyproject.toml \
		-o requirements-bench.lock
	$(COMPILE) requirements-bootstrap.in -o requirements-bootstrap.lock
	$(COMPILE) src/novacron/localcluster/go.in -o src/novacron/localcluster/go.lock
	$(COMPILE) src/novacron/localcluster/libvirt.in -o src/novacron/localcluster/libvirt.lock
	$(COMPILE) src/novacron/localcluster/libvirt-build.in \
		-o src/novacron/localcluster/libvirt-build.lock

$(TOOLS): scripts/bootstrap.sh requirements-bootstrap.lock
	@sh scripts/bootstrap.sh
	@touch $@

# Adding, not synchronising: `make up` must not take the test tools away from a developer.
$(RUN): $(TOOLS) requirements.lock pyproject.toml
	@echo "Python environment …"
	@$(UV) install --quiet --python $(PYTHON) --require-hashes -r requirements.lock
	@$(UV) install --quiet --python $(PYTHON) --no-deps --no-build-isolation -e .
	@touch $@

$(DEV): $(RUN) requirements-dev.lock
	@$(UV) install --quiet --python $(PYTHON) --require-hashes -r requirements-dev.lock
	@touch $@

$(BENCH): $(DEV) requirements-bench.lock
	@$(UV) install --quiet --python $(PYTHON) --require-hashes -r requirements-bench.lock
	@touch $@
