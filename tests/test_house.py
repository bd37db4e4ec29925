"""The report on the lengths of files and functions counts correctly."""

import ast

from benchmarks.house import lengths, report

SOURCE = '''
def outer(x):
    """One line
    and another."""

    def inner(y):
        return y

    return inner(x)
'''


def test_lengths_leave_out_docstrings_and_inner_functions():
    # Of the outer function: its first line, two empty ones, and the last.
    assert sorted(lengths(ast.parse(SOURCE))) == [("inner", 2), ("outer", 4)]


def test_the_report_counts_what_a_folder_holds(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "whole.py").write_text(SOURCE)
    (tmp_path / "part" / "half.py").write_text("x = 1\n")
    first, second, *rest = report(tmp_path)
    assert first == f"2 files, {SOURCE.count(chr(10)) + 1} lines, 2 functions"
    assert second == "1 files at the root: whole.py"
    assert any(line.endswith("part/half.py") for line in rest)
