.PHONY: demo test docs check

demo:
	python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[test]' && .venv/bin/jaxbandits demo

test:
	python3 -m venv .venv && .venv/bin/pip install -q --no-compile -c constraints.txt -e '.[test]' && .venv/bin/pytest -q

docs:
	python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[docs]' && .venv/bin/sphinx-build -q -W --keep-going $(if $(EXECUTE),-D nb_execution_mode=force) docs docs/_build/html

check:
	.ci/run
