"""Public kernels and bounds name the argument that cannot be used, in one line."""

import inspect

import numpy as np
import pytest

import jaxbandits as jb

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
SHARES = np.full(3, 1 / 3)
# By name, what each function is given besides the odd argument.
VALID = {
    "arms": ARMS,
    "targets": ARMS,
    "weights": SHARES,
    "design": SHARES,
    "total": 10,
    "counts": np.ones(3),
    "sums": np.ones(3),
    "instance": jb.instances.soare(2, angle=0.5),
    "delta": 0.1,
    "budget": 100,
    "horizon": 1000,
    "m": 1,
    "complexity": 100.0,
    "values": np.ones(3),
}
ODD = {
    "None": None,
    "a text": "3",
    "texts": ["a", "b"],
    "objects": np.array([object(), 1], object),
    "a complex number": 1j,
    "complex numbers": np.array([1j, 2.0]),
    "NaN": float("nan"),
    "a table of NaN": np.full((3, 2), np.nan),
    "nothing": np.zeros(0),
    "no rows": np.zeros((0, 2)),
    "an object": object(),
    "a dict": {},
}
ANY = {"why_not"}  # says of anything what is wrong with it
FUNCTIONS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": function
    for module in (jb.theory, jb.design, jb.rounding, jb)
    for name in (["fit_glm"] if module is jb else dir(module))
    if inspect.isfunction(function := getattr(module, name)) and name not in ANY
}


def arguments(function):
    return {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_odd_argument_is_named_in_a_line(name):
    function, wrong = FUNCTIONS[name], []
    known = arguments(function)
    needed = {key: VALID[key] for key, default in known.items() if default is inspect._empty}
    for key, default in known.items():
        for kind, value in ODD.items():
            if value is None and default is None:
                continue
            try:
                function(**needed | {key: value})
                said = "nothing"
            except (ValueError, TypeError) as error:
                said = str(error)
            if key not in said or "\n" in said:
                wrong.append((key, kind, said))
    assert wrong == []


@pytest.mark.parametrize("cluster", [object(), 3, "", " ", [], True])
def test_a_cluster_is_an_address_or_a_client(cluster, tmp_path):
    cells = {"a": VALID["instance"]}, {"b": jb.rage}
    with pytest.raises(ValueError, match=r"^cluster must be the address of a scheduler or a .*$"):
        jb.sweep(*cells, replications=2, cluster=cluster, out=tmp_path / "out", progress=False)
