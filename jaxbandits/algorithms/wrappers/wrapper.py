"""A constructor around another one, with options of its own besides."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import ClassVar

from ...parameters import converted


@dataclasses.dataclass(frozen=True)
class Wrapped:
    """The constructor `inner` with more options; those it has itself are its own.

    Equal where the inner ones are, so that their programs are shared.
    """

    inner: Callable

    outer: ClassVar[str]  # for messages and for the names of stored cells
    own: ClassVar[Mapping]  # name -> Option
    defaults: ClassVar[Mapping]  # name -> value, or inspect's `empty`

    @property
    def __name__(self):
        """What messages call it."""
        return f"{self.outer}({getattr(self.inner, '__name__', repr(self.inner))})"

    @property
    def __signature__(self):
        inner = list(self.parameters.values())
        rest = [p for p in inner if p.kind is p.VAR_KEYWORD]
        mine = [p for p in inner if p not in rest and p.name not in self.own]
        own = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in self.defaults.items()
        ]
        return inspect.Signature([*mine, *own, *rest])

    @property
    def contextual(self):
        """Whether the algorithm is shown something; None where it does not tell."""
        return getattr(self.inner, "contextual", None)

    @property
    def parameters(self):
        """Those of the inner constructor."""
        return inspect.signature(self.inner).parameters

    def convert(self, keywords):
        """Check and convert concrete values, as a constructor's `convert` does."""
        own, rest = self.parted(keywords)
        rest = getattr(self.inner, "convert", lambda given: given)(rest)
        return rest | converted(self.own, own)

    def parted(self, keywords):
        """`(own, the inner's)`, of which the former are those given."""
        own = {name: value for name, value in keywords.items() if name in self.own}
        return own, {name: value for name, value in keywords.items() if name not in self.own}

    def complete_inner(self, arms, told):
        """What the host adds to the inner options, once they are checked."""
        return getattr(self.inner, "complete", lambda *_, **__: {})(arms, **told)
