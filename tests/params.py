"""Parameters of a test, some of which are marked slow."""

import pytest


def params(values, *others, slow=(), always=None, optimised=(), name=str):
    """Parameters of a test: each value, followed by `others`.

    A value is marked slow if its name is in `slow`, or if `always` is given and lacks its name, and
    `optimised` if its name is in there.
    """
    names = [name(value) for value in values]
    always = None if always is None else set(always)
    known = slow if always is None else always
    unknown = (set(known) | set(optimised)) - set(names)
    assert not unknown, f"no value is named {sorted(unknown)}"
    end = "".join(f"-{getattr(other, '__name__', other)}" for other in others)
    long = slow if always is None else set(names) - always

    def marks(own):
        return [pytest.mark.slow] * (own in long) + [pytest.mark.optimised] * (own in optimised)

    return [
        pytest.param(value, *others, id=own + end, marks=marks(own))
        for value, own in zip(values, names, strict=True)
    ]
