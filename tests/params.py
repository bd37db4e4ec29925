"""Parameters of a test that is slow for some of them."""

import pytest


def params(values, *others, slow=(), always=None, name=str):
    """Each value, and others with it; slow where its name is in `slow`, or not in `always`."""
    names = [name(value) for value in values]
    known = slow if always is None else always
    assert set(known) <= set(names), f"no value is named {sorted(set(known) - set(names))}"
    end = "".join(f"-{getattr(other, '__name__', other)}" for other in others)
    long = slow if always is None else set(names) - set(always)
    return [
        pytest.param(value, *others, id=own + end, marks=[pytest.mark.slow] * (own in long))
        for value, own in zip(values, names, strict=True)
    ]
