"""Compilations counted, and refusals that must come before the first of them."""

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
    """A list that holds the seconds of each compilation inside the block.

    A program that is read from the persistent cache counts too: this process did not have it.
    """
    seen, before = [], len(_COMPILED)
    try:
        yield seen
    finally:
        seen.extend(_COMPILED[before:])


def refused(what, message):
    """Assert that `what`, a call or `(instance, build, options)`, is refused before compiling."""
    with compilations() as seen, pytest.raises(ValueError, match=message):
        _attempt(what)
    assert seen == []


def _attempt(what):
    if callable(what):
        return what()
    instance, build, *more = what
    return jb.simulate(instance, build, **{"replications": 3, **(more[0] if more else {})})
