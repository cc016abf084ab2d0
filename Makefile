# Two commands on a fresh machine: `make demo` and `make test`. Each creates what it needs in .venv.
PYTHON ?= python3
VENV ?= .venv
LOWEST_VENV ?= .venv-lowest
BIN := $(VENV)/bin

# Tests start many processes of the package: they find it compiled, whatever the shell says of byte code.
unexport PYTHONDONTWRITEBYTECODE

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test slow lowest check docs screenshots page notebooks wheel clean

demo: $(VENV)/installed
	$(BIN)/cute-py demo

test: $(VENV)/installed
	$(BIN)/python -m pytest -q -n auto --dist loadfile -m "not slow"

# What `make test` leaves out: type checkers, sweeps, and whole tables against other programs; and every property on
# six times as many examples.
slow: $(VENV)/installed-dev
	HYPOTHESIS_PROFILE=ci $(BIN)/python -m pytest -q -n auto --dist load -m "slow or hypothesis"

# The default tests once more, with the lowest versions that pyproject.toml promises.
lowest: $(LOWEST_VENV)/installed
	$(LOWEST_VENV)/bin/python -m pytest -q -n auto --dist loadfile -m "not slow"

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[test,cli]"
	touch $@

$(LOWEST_VENV)/installed: pyproject.toml tests/lowest-versions.txt
	$(PYTHON) -m venv $(LOWEST_VENV)
	$(LOWEST_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint tests/lowest-versions.txt -e ".[test,cli]"
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(PIP) -e ".[dev]"
	touch $@

# The site, in site/; a warning is an error (not with --quiet, which does not count them). Then the HTML is checked.
docs: $(VENV)/installed
	$(PIP) -e ".[docs]"
	-command -v npm >/dev/null && $(MAKE) $(NODE_MODULES)/pyodide/package.json
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site
	CUTE_PY_PYODIDE=$$(ls -d $(NODE_MODULES)/pyodide 2>/dev/null) $(BIN)/cute-py draw --html --out site/playground.html
	SITE=site CUTE_PY_NODE_MODULES=$(abspath $(NODE_MODULES)) $(BIN)/python -m pytest -q -rs tests/test_site.py

# Pictures of the site in Chromium, in build/screenshots: five kinds of pages, three widths, light and dark.
screenshots:
	CUTE_PY_NODE_MODULES=$(abspath $(NODE_MODULES)) $(BIN)/python -m tests.site_browser site build/screenshots

# Node's packages: the interpreter of the page, and what types into it. Where npm is not at hand, nothing is installed.
PYODIDE := 314.0.7
PLAYWRIGHT := 1.65.1
NODE_MODULES ?= .node/node_modules

$(NODE_MODULES)/pyodide/package.json:
	mkdir -p $(dir $(NODE_MODULES))
	cd $(dir $(NODE_MODULES)) && npm install --no-save --no-audit --no-fund --silent \
		pyodide@$(PYODIDE) playwright-core@$(PLAYWRIGHT)

# The playground in Chromium: every tab, 40 inputs, each answer compared with Python's; and Pyodide in node.
page: $(VENV)/installed
	-command -v npm >/dev/null && $(MAKE) $(NODE_MODULES)/pyodide/package.json
	CUTE_PY_NODE_MODULES=$(abspath $(NODE_MODULES)) $(BIN)/python -m pytest -q -rs tests/page

# The notebooks in Jupyter kernels, compared with what they store. `python docs/run_notebooks.py` stores anew.
notebooks: $(VENV)/installed
	$(PIP) -e ".[notebook]"
	$(BIN)/python -m pytest -q tests/test_notebooks.py

# A wheel in dist/, installed into an environment of its own and tried from outside this folder, with each of these
# versions of Python that is installed.
PYTHONS ?= $(PYTHON) python3.12 python3.13
wheel: $(VENV)/installed-dev
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	for python in $(PYTHONS); do \
		"$$python" -c '' 2>/dev/null || { echo "$$python: not installed, so not tried"; continue; }; \
		PYTHON="$$python" MYPY=$(abspath $(BIN))/mypy .ci/try-wheel dist/*.whl || exit 1; \
	done

clean:
	rm -rf $(VENV) $(LOWEST_VENV) site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
