"""Parameters of a test, some of which are marked slow."""

import pytest


def params(values, *others, slow=(), always=None, name=str):
    """Parameters of a test: each value, followed by `others`.

    A value is marked slow if its name is in `slow`, or if `always` is given and lacks its name.
    """
    names = [name(value) for value in values]
    known = slow if always is None else always
    assert set(known) <= set(names), f"no value is named {sorted(set(known) - set(names))}"
    end = "".join(f"-{getattr(other, '__name__', other)}" for other in others)
    long = slow if always is None else set(names) - set(always)
    return [
        pytest.param(value, *others, id=own + end, marks=[pytest.mark.slow] * (own in long))
        for value, own in zip(values, names, strict=True)
    ]
