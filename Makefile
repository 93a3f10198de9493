# Everything from a fresh clone, with Python 3.10 or newer: `make demo` and `make test`.
# Another Python than python3: make PYTHON=python3.12 demo

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo demo-prometheus test check docs dashboards fuzz-rest clean

help:
	@echo "make demo             start the service and a Spark job on real data"
	@echo "make demo-prometheus  the demo, with Prometheus and Alertmanager beside it"
	@echo "make test             run the checks and every test"
	@echo "make check            lint, formatting and types only"
	@echo "make dashboards       write Grafana's dashboards and Prometheus' rules from their modules"
	@echo "make docs             write docs/metrics.md from the catalogue"
	@echo "make fuzz-rest        ask the REST 1,000 things of each kind that /openapi.json allows, and some that it does not"
	@echo "make clean            remove the virtual environment, the fetched Java and Flink's clients"

# What the tests need holds all that the demo needs.
demo: $(firstword $(wildcard $(VENV)/.installed-test) $(VENV)/.installed-demo)
	@exec $(BIN)/streamgauge demo

demo-prometheus: $(firstword $(wildcard $(VENV)/.installed-test) $(VENV)/.installed-demo)
	@exec $(BIN)/streamgauge demo --prometheus

# A Java that is missing is fetched before the tests, not in one of them. Most tests of a driver wait for it: so
# two run at once. What needs the whole machine comes last.
test: check
	@$(BIN)/python -m examples.java $(BIN)/python -m pytest -n 2 --dist loadfile -m "not alone"
	@exec $(BIN)/python -m examples.java $(BIN)/python -m pytest -m alone

check: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(if $(shell $(BIN)/python -c 'import sys; print("types" if sys.version_info >= (3, 11) else "")'),$(BIN)/mypy,@echo "types are not checked on Python 3.10: the stubs of its last NumPy know less")

docs: $(VENV)/.installed-test
	$(BIN)/python -m docs.metrics

# Python 3.11 or newer, as Grafana's SDK wants it.
dashboards: $(VENV)/.installed-test
	$(BIN)/python -m dashboards.grafana.build
	$(BIN)/python -m dashboards.prometheus.build

# The tests ask a few of each kind; this one takes its time.
fuzz-rest: $(VENV)/.installed-test
	REST_FUZZ_EXAMPLES=1000 $(BIN)/python -m pytest tests/contract/test_openapi_fuzz.py -o timeout=7200

clean:
	rm -rf $(VENV) .java build

# One environment for both; the stamp's name is the extra that it holds.
$(VENV)/.installed-%: pyproject.toml constraints.txt
	@$(PYTHON) -c '' 2>/dev/null \
		|| { echo "error: $(PYTHON) does not run; install Python 3.10 or newer, or name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "error: Python 3.10 or newer is needed, $(PYTHON) is $$($(PYTHON) -c 'import platform; print(platform.python_version())'); name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "error: $(PYTHON) has no venv module; install it (Debian and Ubuntu: the package python3-venv), or name another Python: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "making the virtual environment $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "installing what '$*' needs; pyspark alone is a download of about 450 MB, the first time takes minutes"
	@$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e '.[$*]' \
		|| { echo "error: the packages could not be installed; see pip's message above, and check the network or the index that pip is set to use" >&2; exit 1; }
	@touch $@
