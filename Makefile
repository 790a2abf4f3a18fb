# make demo / make test do all of their own set-up from the lock file; nothing else is needed first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test check serve lock clean

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Tapster needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(STAMP)

demo: setup
	$(BIN)/tapster demo

serve: setup
	$(BIN)/tapster serve

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	# flake8-async takes a quarter of a second a file: only files with async code, and beside the type checker.
	$(BIN)/flake8 $$(grep -rl --include="*.py" "async def" runtime actors api tests) & async=$$!; \
	$(BIN)/mypy && wait $$async

test: check
	$(BIN)/python -m pytest

lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --extra dev pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
