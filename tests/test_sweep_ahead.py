"""Programs compiled ahead of their use: order, results, errors, and the limit of their number."""

import threading
from functools import partial

import numpy as np
import pytest
from params import params

import jaxbandits as jb
from jaxbandits.sweeps import ahead, local


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_each_program_is_made_once_and_taken_in_order(threads):
    made, most, lock = [], [], threading.Lock()

    def make(number):
        with lock:
            made.append(number)
        return number * 10

    with ahead.Ahead([partial(make, i) for i in range(6)], threads) as makers:
        for number in range(6):
            assert makers.take(number) == 10 * number
            most.append(len(made) - number)
    assert sorted(made) == list(range(6))
    assert max(most) <= max(threads, 1)


def test_the_next_is_made_while_the_first_is_used():
    begun = threading.Event()
    with ahead.Ahead([lambda: 0, begun.set], threads=2) as makers:
        makers.take(0)
        assert begun.wait(10)


def test_an_error_is_raised_at_its_turn_and_cancels_the_rest():
    later = []

    def fails():
        raise ValueError("no such program")

    makers = ahead.Ahead([lambda: 1, fails, *[partial(later.append, 3)] * 5], threads=1)

    def use():
        with makers:
            assert makers.take(0) == 1
            makers.take(1)

    with pytest.raises(ValueError, match="no such program"):
        use()
    assert len(later) < 5


@pytest.mark.parametrize("engine", params(["xla", "native"], slow=["xla"]))
def test_a_sweep_has_the_numbers_of_single_calls(engine, monkeypatch):
    seen, used = set(), ahead.Ahead

    def watched(makers, threads):
        def note(maker):
            seen.add(threading.get_ident())
            return maker()

        return used([partial(note, maker) for maker in makers], 2)

    monkeypatch.setattr(local, "Ahead", watched)
    build = partial(jb.gse, budget=60)
    dataset = jb.sweep(
        {"basis": partial(jb.instances.canonical, gap=0.5)},
        {"GSE": build},
        axes={"dim": [2, 3, 4]},
        replications=30,
        progress=False,
        engine=engine,
    )
    for dim in (2, 3, 4):
        runs = jb.simulate(
            jb.instances.canonical(dim, gap=0.5), build, replications=30, engine=engine
        )
        np.testing.assert_array_equal(dataset.correct.sel(dim=dim).values.ravel(), runs.correct)
    assert threading.get_ident() not in seen
