.PHONY: demo test check

demo:
	python3 -m venv .venv && .venv/bin/pip install -q -c constraints.txt -e '.[test]' && .venv/bin/jaxbandits demo

test:
	python3 -m venv .venv && .venv/bin/pip install -q --no-compile -c constraints.txt -e '.[test]' && .venv/bin/pytest -q

check:
	.ci/run
