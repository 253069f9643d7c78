# Needs only make and python3 (3.11 or newer) with pip. Everything else is installed into .venv.

PYTHON ?= python3
PYTEST_ARGS ?= -n auto
UPGRADE ?=
SEED ?= 0
export MESSIRL_TEST_SEED := $(SEED)
# Bytecode is kept, also where the surroundings ask for none: every process of every lane would compile the tests anew.
export PYTHONDONTWRITEBYTECODE :=

PEERS := imitation irl-maxent econirl
# Tests run in one process per core: further threads of linear algebra would only wait for each other.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
# Half of an installation is the compilation of modules that nothing ever imports; Python compiles the others itself.
INSTALL := -m pip --disable-pip-version-check -qq install --no-compile
CHECK_PYTHON := $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	|| { echo "messirl needs Python 3.11 or newer, and $(PYTHON) is not: try make PYTHON=/path/to/python3.11." >&2; exit 1; }
# What another version or processor may change: numerics and io (PORTABLE in tests/tiers.py).
ELSEWHERE := -m "portable and not full and not slow and not cluster and not browser"
# At an end of the ranges of pyproject.toml: every loop is kept in that environment, where no other version finds it.
TEST_AT = $(ONE_THREAD) NUMBA_CACHE_DIR=$(CURDIR)/.venv-$(1)/numba .venv-$(1)/bin/python -m pytest $(ELSEWHERE) $(PYTEST_ARGS)
# The environment, and the threads, with which the old processor is tried: oldest or newest in place of the lock.
VERSIONS ?=
THREADS ?= 1 2
PORTABLE := .venv$(VERSIONS:%=-%)

.DEFAULT_GOAL := help
.PHONY: help venv run compiled test test-full test-cluster test-browser test-portable test-oldest test-newest lint format bench bench-check bench-large bench-peers bench-lab screenshots lab-pictures docs dist lock clean

help:  ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

venv: .venv/.ready  ## Make .venv from requirements.lock, with messirl in editable mode

run: .venv/.ready  ## Run the paper's comparison, quickly, and write its report (out/quick/report.html)
	@.venv/bin/messirl reproduce --quick

test: .venv/.ready  ## Lint, then run the thin tier (PYTEST_ARGS="-k name" is passed on; SEED=7 draws other random problems)
	@$(MAKE) --no-print-directory -j2 lint compiled
	@$(ONE_THREAD) .venv/bin/python -m pytest $(PYTEST_ARGS)

# Every loop once, while mypy works: the processes that run the tests would each compile all of them.
compiled: .venv/.ready
	@.venv/bin/python tests/exercise.py >/dev/null

test-full: .venv/.ready  ## Run what make test leaves out: whole products, whole commands and pages, slow tests
	@$(ONE_THREAD) .venv/bin/python -m pytest -m "(full or slow) and not cluster and not browser" --dist worksteal $(PYTEST_ARGS)

test-cluster: .venv/.ready  ## Run the tests that start a Dask scheduler and workers on this machine
	@.venv/bin/python -m pytest -m cluster tests/test_cluster.py

test-browser: .venv/.ready  ## Run the tests of messirl lab in Debian's Chromium, which is installed if it is missing
	@test -x /usr/bin/chromium || { test "$$(id -u)" = 0 && { apt-get update -qq; apt-get install -y -qq chromium >/dev/null; }; } \
		|| { echo "There is no Chromium here: install it (apt-get install chromium) and try again." >&2; exit 1; }
	@$(ONE_THREAD) .venv/bin/python -m pytest -m browser tests/test_browser.py

# Two threads in each of several processes are more than there are cores: those that have nothing to do sleep at once.
test-portable: $(PORTABLE)/.ready  ## Run numerics and io as on an old processor, with one thread of linear algebra and with two
	@for threads in $(THREADS); do \
		OPENBLAS_NUM_THREADS=$$threads OMP_NUM_THREADS=$$threads OPENBLAS_THREAD_TIMEOUT=4 \
			$(PORTABLE)/bin/python tools/portable.py $(PORTABLE)/bin/python -m pytest $(ELSEWHERE) $(PYTEST_ARGS) || exit 1; \
	done

test-oldest: .venv-oldest/.ready  ## Run numerics and io with the oldest packages and Python that pyproject.toml allows, in .venv-oldest
	@$(call TEST_AT,oldest)

test-newest: .venv-newest/.ready  ## Run numerics and io with the newest packages and Python that can be had, in .venv-newest
	@$(call TEST_AT,newest)

lint: .venv/.ready  ## Check style, format and types; changes nothing
	@.venv/bin/ruff check --quiet .
	@.venv/bin/ruff format --check --quiet . || { echo "Run make format." >&2; exit 1; }
	@.venv/bin/mypy --no-error-summary

format: .venv/.ready  ## Fix what can be fixed, and format
	@.venv/bin/ruff check --quiet --fix . || true
	@.venv/bin/ruff format --quiet .

bench: .venv/.ready  ## Run the benchmarks on one thread, and keep their table in out/bench
	@$(ONE_THREAD) .venv/bin/python -m benchmarks

bench-check: bench  ## Run the benchmarks, and fail on a ratio that fell by more than a third (benchmarks/baseline.csv)
	@.venv/bin/python -m benchmarks.stored

bench-large: .venv/.ready  ## Time a grid of up to a million states; some twenty minutes
	@.venv/bin/python -m benchmarks.large

bench-lab: .venv/.ready  ## Time how soon messirl lab follows a slider, in Debian's Chromium
	@$(ONE_THREAD) .venv/bin/python -m benchmarks.slider

bench-peers: .venv-peers/.ready  ## Compare with other packages, installed in .venv-peers (large)
	@.venv-peers/bin/python -m benchmarks.peers

screenshots: .venv/.ready  ## Make pictures of all pages with Chromium, and look for faults (out/screenshots)
	@.venv/bin/python tools/screenshots.py

docs: .venv/.ready  ## Build the documentation (out/site), without a network; a warning or a broken link is an error
	@.venv/bin/python -m mkdocs --quiet build --strict

lab-pictures: .venv/.ready  ## Make the pictures of messirl lab, of a report and of the tutorial in docs/ anew
	@.venv/bin/python tools/lab_pictures.py
	@.venv/bin/python tools/tutorial_pictures.py

dist: .venv/.ready  ## Build wheel and sdist, look into them, and try the wheel in an empty environment (.venv-dist)
	@.venv/bin/python tools/dist.py --try

lock: .venv-lock/.ready  ## Write requirements.lock anew (UPGRADE=--upgrade moves every pin)
	@env -u PIP_FIND_LINKS -u PIP_EXTRA_INDEX_URL PIP_CONFIG_FILE=/dev/null CUSTOM_COMPILE_COMMAND="make lock" \
		.venv-lock/bin/pip-compile --quiet $(UPGRADE) --extra dev --extra docs --extra cluster --extra gym --extra hdf5 --extra lab --extra minari \
		--generate-hashes --strip-extras --allow-unsafe \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
		--output-file requirements.lock pyproject.toml
	@if grep -n '://' requirements.lock; then echo "requirements.lock names a host or a folder." >&2; exit 1; fi

clean:  ## Remove what the other goals made
	@rm -rf .venv .venv-oldest .venv-newest .venv-peers .venv-lock .venv-dist build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment whose pip does not answer (interrupted, or its Python is gone) is made anew.
.venv/.ready: requirements.lock pyproject.toml
	@$(CHECK_PYTHON)
	@.venv/bin/python -m pip --version >/dev/null 2>&1 \
		|| { echo "Making .venv, once: a minute or two."; $(PYTHON) -m venv --clear .venv; }
	@.venv/bin/python $(INSTALL) --require-hashes -r requirements.lock
	@.venv/bin/python $(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

.venv-oldest/.ready: pyproject.toml tools/environment.py
	@$(CHECK_PYTHON)
	@$(PYTHON) tools/environment.py oldest
	@touch $@

# What is newest changes every day.
.venv-newest/.ready: FORCE
	@$(CHECK_PYTHON)
	@$(PYTHON) tools/environment.py newest
	@touch $@

FORCE:

# messirl comes last, so that whatever the peers ask for, its own requirements hold.
.venv-peers/.ready: pyproject.toml
	@$(CHECK_PYTHON)
	@.venv-peers/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv-peers
	@for peer in $(PEERS); do \
		echo "Installing $$peer into .venv-peers."; \
		.venv-peers/bin/python $(INSTALL) $$peer || echo "$$peer could not be installed: going on without it."; \
	done
	@.venv-peers/bin/python $(INSTALL) -e .
	@touch $@

.venv-lock/.ready:
	@$(CHECK_PYTHON)
	@$(PYTHON) -m venv --clear .venv-lock
	@.venv-lock/bin/python $(INSTALL) 'pip-tools>=7.4,<8'
	@touch $@
