"""Parts of the tests: each test is in one, together with those that use the same programs."""

from itertools import chain

import pytest
from distribution import measured, part, scope_of

CASES = ("lingape", "rage", "rage_transductive", "lin_ucb", "gse_d_opt")
IDS = [f"tests/test_protocol.py::test_law_{law}[{case}]" for law in range(3) for case in CASES]
IDS += [f"tests/test_live.py::test_live[{case}]" for case in CASES]
IDS += [f"tests/test_tables.py::test_cells[{k}]" for k in range(25)]
IDS += ["tests/test_tables.py::test_alone", "jaxbandits/design.py::jaxbandits.design"]


def parts_of(parts, seconds=()):
    seconds = dict(seconds)
    return [part(IDS, number + 1, parts, seconds) for number in range(parts)]


@pytest.mark.parametrize("parts", [1, 3, 10])
def test_each_test_is_in_one_part(parts):
    found = parts_of(parts)
    assert sorted(chain(*found)) == sorted(IDS)
    assert parts > 3 or max(map(len, found)) - min(map(len, found)) < 5


def test_the_tests_of_a_case_are_in_the_same_part():
    """Variants of an algorithm too."""
    found = parts_of(4)
    for case in CASES:
        tests = {
            i for i in IDS if scope_of(i) == scope_of(f"tests/test_live.py::test_live[{case}]")
        }
        assert len(tests) == (8 if "rage" in case else 4)
        assert sum(bool(tests & set(one)) for one in found) == 1


def test_a_table_is_divided_into_neighbours():
    cells = [i for i in IDS if "cells" in i]
    for one in parts_of(5):
        numbers = [cells.index(i) for i in one if i in cells]
        blocks = [numbers[k : k + 5] for k in range(0, len(numbers), 5)]
        assert all(block == list(range(block[0], block[0] + 5)) for block in blocks)


def test_parts_take_equally_long():
    """The cells take half of the time: with three parts one of them would hold few other tests."""
    seconds = {"tests/test_tables.py::test_cells": 100.0}
    found = parts_of(2, seconds)
    taken = [sum(4.0 if "cells" in i else 2.0 for i in one) for one in found]
    assert abs(taken[0] - taken[1]) <= 10
    assert len(found[0]) != len(found[1])


def test_seconds_are_read_from_a_report(tmp_path):
    report = tmp_path / "slow.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.test_live" name="test_live[rage]" '
        'time="1.5"/><testcase classname="tests.kernels.test_a" name="test_b[1]" time="2.04"/>'
        '<testcase classname="tests.kernels.test_a" name="test_b[2]" time="3.0"/>'
        "</testsuite></testsuites>"
    )
    assert measured(report) == {"cases of rage": 1.5, "tests/kernels/test_a.py::test_b": 5.0}
