"""Why an engine plays, and why a faster one does not, in the user's words."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandits as jb
from jaxbandits.compilers import cpp
from jaxbandits.engine import choices
from jaxbandits.engine.choices import Choice
from jaxbandits.engine.engine_reasons import ASKED, FASTEST, hindrance
from jaxbandits.engine.episode import MoveTraits, Traits
from jaxbandits.engine.results import Runs, joined
from jaxbandits.engine.traits import Sizes
from jaxbandits.report.table import print_table


@jax.jit
def helper(x):
    return jax.scipy.linalg.expm(jnp.outer(x, x))


def in_a_loop(x):
    def step(k, total):
        return total + jnp.linalg.eigvalsh(jnp.outer(x, x)).sum()

    return jax.lax.fori_loop(0, 3, step, 0.0)


def printing(x):
    jax.debug.print("{}", x)
    return x


# By case: a function, what is said of it, and what stands in the line that is named.
LACKS = {
    "called within JAX": (
        lambda x: jnp.linalg.solve(jnp.outer(x, x), x),
        "jnp.linalg.solve (lu)",
        "linalg.solve(",
    ),
    "called at once": (lambda x: jax.lax.top_k(x, 2), "jax.lax.top_k (top_k)", "top_k("),
    "in a helper": (helper, "jax.scipy.linalg.expm (lt_to)", "expm("),
    "in a loop": (in_a_loop, "jnp.linalg.eigvalsh (eigh)", "eigvalsh("),
    "a callback": (printing, "jax.debug.print (debug_print)", "debug.print("),
    "a type of a function": (
        lambda x: jnp.abs(jnp.fft.fft(x)),
        "numbers of type complex128 (jnp.fft.fft)",
        "fft(",
    ),
    "a type of an operator": (lambda x: (1j * x).real, "numbers of type complex128", "1j"),
}


@pytest.mark.parametrize("case", LACKS)
def test_an_operation_is_named_as_the_user_has_written_it(case):
    function, what, written = LACKS[case]
    with jax.enable_x64(True), pytest.raises(cpp.Unsupported) as found:
        cpp.natively(function, 16)(jnp.zeros((3, 16)))
    reason, _, line = found.value.reason.rpartition(":")
    assert reason == f"lacks {what}, test_engine_reasons.py"
    assert written in Path(__file__).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert f"test_engine_reasons.py:{line}" in str(found.value)


def test_an_operation_of_the_package_is_named_by_its_own_line():
    from jaxbandits.compilers.origins import origin_of
    from jaxbandits.kernels.linalg import spd

    with jax.enable_x64(True):
        eqn = jax.make_jaxpr(lambda x: spd.quadratic(x, jnp.eye(3)))(jnp.zeros((2, 3))).eqns[-1]
    assert origin_of(eqn).rpartition(", ")[2].startswith(("spd.py:", "test_engine_reasons.py:"))


def chosen(monkeypatch, platform="cpu", *, lane=500, one_arm=True, in_common=False, number=100):
    moves = MoveTraits(one_arm, True, True)._replace(in_common=in_common)
    return choices.automatic(Sizes(lane, 10, False, Traits(moves)), platform, number)


@pytest.mark.parametrize(
    ("platform", "how", "engine", "begins"),
    [
        ("cpu", {}, "native", "fastest"),
        ("cpu", {"lane": 2**21}, "in turn", "fastest: lanes are large"),
        ("cpu", {"in_common": True, "number": 2000}, "xla", "fastest: it computes designs"),
        ("tpu", {}, "xla", "fastest: the device is a tpu"),
        ("cuda", {}, "cuda", "fastest"),
        ("cuda", {"one_arm": False}, "xla", "fastest: a move is a phase"),
        ("cuda", {"lane": 10**5}, "xla", "fastest: a lane of 100000 bytes"),
    ],
)
def test_a_rule_that_chooses_says_so(monkeypatch, platform, how, engine, begins):
    monkeypatch.setattr(choices, "found_library", lambda: "nvrtc")
    monkeypatch.setattr(choices, "compiler", lambda: "g++")
    found = chosen(monkeypatch, platform, **how)
    assert found.engine == engine
    assert found.reason.startswith(begins)
    assert hindrance(found.reason) == ""


def test_what_keeps_a_faster_engine_from_playing(monkeypatch):
    monkeypatch.setattr(choices, "found_library", lambda: None)
    assert hindrance(chosen(monkeypatch, "cuda").reason).startswith("cuda needs NVIDIA's")
    assert Choice("native").begun_with("xla") == Choice(
        "xla", "stored replications were begun with xla"
    )
    assert Choice("native").begun_with("native") == Choice("native")
    shared = Choice("cuda", ASKED).instead(cpp.values.SharedByLanes())
    assert shared == Choice("xla", "cuda would compute designs that lanes share for each of them")


def runs_of(reason, first=0):
    number = np.arange(first, first + 2)
    zeros, ones = np.zeros(2, int), np.ones(2, bool)
    meta = {"engine": "xla", "engine_reason": reason}
    return Runs(number, zeros + 3, zeros, ones, ones, np.array([[1, 2]] * 2), meta=meta)


def test_a_line_is_printed_where_it_matters_alone():
    lacks = "native lacks jnp.linalg.solve (lu), mine.py:9"
    assert f"xla: {lacks}" in repr(runs_of(lacks))
    assert lacks in runs_of(lacks)._repr_html_()
    for plain in (ASKED, FASTEST, f"{FASTEST}: a move is a phase"):
        assert plain not in repr(runs_of(plain))
    both = joined([runs_of(FASTEST), runs_of(lacks, 2)])
    assert both.meta["engine_reason"] == f"{FASTEST}; {lacks}"
    assert f"xla: {lacks}" in repr(both)


def test_reasons_are_stored(tmp_path):
    runs = runs_of("native lacks sorting")
    runs.save(tmp_path / "runs.npz")
    assert jb.load(tmp_path / "runs.npz").meta == runs.meta


def test_tables_of_sweeps_and_comparisons_have_a_note(monkeypatch, capsys):
    monkeypatch.setattr(choices, "compiler", lambda: None)
    found = jb.compare(
        {"halving": partial(jb.sequential_halving, budget=12)},
        jb.instances.canonical(3, gap=1.0),
        replications=4,
        bounds=False,
    )
    note = "A faster engine did not play: native needs a C++ compiler: found none"
    assert note in repr(found)
    print_table(found.dataset)
    assert note in " ".join(capsys.readouterr().out.split())
    one = found.dataset.sel(algorithm="halving", instance="instance").engine_reason.item()
    assert one.startswith("native needs a C++ compiler")
