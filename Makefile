.PHONY: demo test docs check

demo:
	python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[test]' && .venv/bin/jaxbandits demo

test:
	python3 -m venv .venv && .venv/bin/pip install -q --no-compile -c constraints.txt -e '.[test]' && .venv/bin/pytest -q

SITE = docs/_build/$(if $(PAGE),page,html)
ONE = $(if $(PAGE),-t page -D root_doc=$(basename $(PAGE)) -D include_patterns=$(PAGE))
INSTALL = python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[docs]'

# PAGE=how_to/live.md builds that page alone, in seconds; EXECUTE=1 plays the tutorials anew.
docs:
	$(if $(PAGE),[ -x .venv/bin/sphinx-build ] ||) { $(INSTALL); }
	.venv/bin/sphinx-build -q -W --keep-going $(ONE) $(if $(EXECUTE),-D nb_execution_mode=force) docs $(SITE)
	@echo "file://$(CURDIR)/$(SITE)/$(or $(basename $(PAGE)),index).html"

check:
	.ci/run
