"""Counts of compilations, and a check that bad input is refused before anything compiles."""

import contextlib

import jax
import pytest

import jaxbandits as jb

_COMPILED = []


def _listen(event, seconds, **_):
    if event == "/jax/core/compile/backend_compile_duration":
        _COMPILED.append(seconds)


jax.monitoring.register_event_duration_secs_listener(_listen)


@contextlib.contextmanager
def compilations():
    """A list that holds, after the block, the seconds of each compilation inside it.

    A program that is read from the persistent cache counts too, because this process lacked it.
    """
    seen, before = [], len(_COMPILED)
    try:
        yield seen
    finally:
        seen.extend(_COMPILED[before:])


def refused(what, message):
    """Assert that a call is refused with this message of one line, and nothing compiles before.

    `what` is a function without arguments, or `(instance, build, options)` for `simulate`.
    """
    with compilations() as seen, pytest.raises(ValueError, match=message) as error:
        _attempt(what)
    assert seen == []
    assert len(str(error.value).splitlines()) == 1


def _attempt(what):
    if callable(what):
        return what()
    instance, build, *more = what
    return jb.simulate(instance, build, **{"replications": 3, **(more[0] if more else {})})
