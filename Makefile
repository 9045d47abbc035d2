# make quickstart   trains a small translation model and scores it (minutes)
# make test         runs the tests
# make test-tpu     compiles for Cloud TPUs on this CPU, and checks the result
# make lint         checks format, style and types
# make clean        removes the environments and everything that was built
#
# The first run makes .venv (for TPUs, .venv-tpu) and installs into it; later
# runs only look at the stamp files. Choose another interpreter with
# `make PYTHON=python3.10 test`.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
TPU_VENV := .venv-tpu
TPU_BIN := $(TPU_VENV)/bin
EXTRA ?= cpu
WORKERS ?= 2
MODEL_DIR ?= model_dirs/quickstart

# The newest interpreter that both exists and runs: a name on the path may be
# a shim of a version manager with nothing behind it.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.10 \
  python3 python; do \
    if $$p -c 'import sys, venv; \
      sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' \
      >/dev/null 2>&1; then echo $$p; break; fi; done)

export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: quickstart test test-tpu lint clean

quickstart: $(VENV)/installed
	$(BIN)/mesh_transformer --gin_file=runs/quickstart.gin \
	  --model_dir=$(MODEL_DIR)

# Tests compare numbers between meshes on the CPU; export the variable to have
# them see a GPU.
test: export CUDA_VISIBLE_DEVICES ?=
test: $(VENV)/installed
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

# The TPU's compiler asks a metadata server in the cloud what it runs on, unless
# it is told not to before anything is loaded; where a process may do without a
# network, it gets none. TensorFlow for TPUs and the compiler that fits it are
# there for Linux on x86-64, in an environment of their own.
OFFLINE = $(shell unshare --net true 2>/dev/null && echo unshare --net)
test-tpu: export TPU_SKIP_MDS_QUERY := 1
test-tpu: export CUDA_VISIBLE_DEVICES ?=
test-tpu: $(TPU_VENV)/installed
	$(OFFLINE) $(TPU_BIN)/python -m pytest $(or $(TESTS),tests_tpu)

# mypy wants the package as it is installed, so it gets one made of links.
lint: $(VENV)/linters $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@rm -rf build/types && mkdir -p build/types/mesh_tf2
	@ln -s $(CURDIR)/mesh_tf2/* build/types/mesh_tf2/
	@for folder in transformer data configs; do \
	  ln -s $(CURDIR)/$$folder build/types/mesh_tf2/$$folder; done
	cd build/types && $(CURDIR)/$(BIN)/mypy \
	  --config-file $(CURDIR)/pyproject.toml -p mesh_tf2

clean:
	rm -rf $(VENV) $(TPU_VENV) build dist *.egg-info .pytest_cache \
	  .mypy_cache .ruff_cache

$(VENV)/installed: setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRA),test]'
	@touch $@

$(VENV)/linters: setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRA),test,lint]'
	@touch $@ $(VENV)/installed

$(TPU_VENV)/installed: export TPU_SKIP_MDS_QUERY := 1
$(TPU_VENV)/installed: setup.py | $(TPU_VENV)/bin/python
	@$(TPU_BIN)/python -m pip install --quiet --editable '.[tpu-aot,test]' || { \
	  echo "make test-tpu needs tensorflow-tpu 2.20.0, libtpu 0.0.17, jax and" \
	    "jaxlib 0.6.2, which exist for Linux on x86-64 and Python 3.10 to" \
	    "3.13; they could not be installed" >&2; exit 1; }
	@touch $@

# Some systems ship Python without the wheel of pip that venv copies; the pip
# that is installed can then fill the environment from outside. And the pip that
# comes with Python 3.10 looks for versions that fit together for half an hour,
# where a newer one needs seconds.
$(VENV)/bin/python $(TPU_VENV)/bin/python:
	@test -n "$(PYTHON)" || { \
	  echo "mesh_tf2 needs Python 3.10 to 3.13, and none was found on the" \
	    "path; name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(@:/bin/python=) >/dev/null 2>&1 || { \
	  rm -rf $(@:/bin/python=) && \
	  $(PYTHON) -m venv --without-pip $(@:/bin/python=) && \
	  $(PYTHON) -m pip --python $@ install --quiet pip; }
	@$@ -m pip install --quiet --upgrade 'pip>=24.1' || { \
	  rm -rf $(@:/bin/python=); exit 1; }
