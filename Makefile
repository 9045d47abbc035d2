# make quickstart   trains a small translation model and scores it (minutes)
# make test         runs the tests
# make lint         checks format, style and types
# make clean        removes the environment and everything that was built
#
# The first run makes .venv and installs into it; later runs only look at the
# stamp files. Choose another interpreter with `make PYTHON=python3.10 test`.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
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

.PHONY: quickstart test lint clean

quickstart: $(VENV)/installed
	$(BIN)/mesh_transformer --gin_file=runs/quickstart.gin \
	  --model_dir=$(MODEL_DIR)

# Tests compare numbers between meshes on the CPU; export the variable to have
# them see a GPU.
test: export CUDA_VISIBLE_DEVICES ?=
test: $(VENV)/installed
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(TESTS)

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
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache

$(VENV)/installed: setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRA),test]'
	@touch $@

$(VENV)/linters: setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRA),test,lint]'
	@touch $@ $(VENV)/installed

# Some systems ship Python without the wheel of pip that venv copies; the pip
# that is installed can then fill the environment from outside. And the pip that
# comes with Python 3.10 looks for versions that fit together for half an hour,
# where a newer one needs seconds.
$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { \
	  echo "mesh_tf2 needs Python 3.10 to 3.13, and none was found on the" \
	    "path; name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
	  rm -rf $(VENV) && $(PYTHON) -m venv --without-pip $(VENV) && \
	  $(PYTHON) -m pip --python $(VENV)/bin/python install --quiet pip; }
	@$@ -m pip install --quiet --upgrade 'pip>=24.1' || { rm -rf $(VENV); \
	  exit 1; }
