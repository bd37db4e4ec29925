"""A constructor around another one, with options of its own besides."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool

from ...core import Algorithm
from ...parameters import Constructor, Deviation, Values, converted, options_of
from ...types import Rows


@dataclasses.dataclass(frozen=True)
class Wrapper(Constructor[...]):
    """The constructor `inner` with further options, the wrapper's own.

    Wrappers of equal constructors are equal, so that their programs are shared.
    """

    inner: Callable[..., Algorithm]

    outer: ClassVar[str]  # the wrapper's name in messages and in the names of stored cells
    # A NamedTuple of the wrapper's own options, typed as those of constructors are.
    own: ClassVar[type[tuple[Any, ...]]]
    revisions: ClassVar[tuple[str, ...]] = ()  # its own; the inner constructor keeps those it has

    @property
    def __name__(self) -> str:
        """What messages call it."""
        return f"{self.outer}({getattr(self.inner, '__name__', repr(self.inner))})"

    @property
    def __signature__(self) -> inspect.Signature:
        """That of the inner constructor, with the wrapper's own options as keywords."""
        inner, own = self.inner_parameters.values(), inspect.signature(self.own).parameters
        rest = [p for p in inner if p.kind is p.VAR_KEYWORD]
        kept = [p for p in inner if p not in rest and p.name not in own]
        added = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own.values()]
        return inspect.Signature([*kept, *added, *rest])

    @property
    def inner_parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of the inner constructor."""
        return inspect.signature(self.inner).parameters

    @property
    def contextual(self) -> bool | None:
        """Whether the inner algorithm is shown rows of the arms; None: not known."""
        return getattr(self.inner, "contextual", None)

    @property
    def features(self) -> bool | None:
        """Whether the inner algorithm uses the features of the arms; None: not known."""
        return getattr(self.inner, "features", None)

    @property
    def deviation(self) -> Deviation | None:
        """None: `watched` observes an algorithm itself, not one in a wrapper."""
        return None

    def convert(self, keywords: Values, /) -> dict[str, Any]:
        """The keywords, those that are options checked and converted; the others are ignored."""
        own, rest = self.split_options(keywords)
        rest = getattr(self.inner, "convert", lambda given: given)(rest)
        return rest | converted(options_of(self.own), own)

    def scale_free(self, **keywords: Any) -> bool:
        """Whether the units of columns change nothing for the inner algorithm."""
        _, rest = self.split_options(keywords)
        return getattr(self.inner, "scale_free", lambda **_: False)(**rest)

    def accepts_drawn(self, arms: Array, /, **keywords: Any) -> Bool[Array, ""]:
        """Whether arms that an instance draws in a replication would pass the inner checks."""
        _, rest = self.split_options(keywords)
        return getattr(self.inner, "accepts_drawn", lambda *_, **__: jnp.array(True))(arms, **rest)

    def split_options(self, keywords: Values) -> tuple[dict[str, Any], dict[str, Any]]:
        """`(own, rest)`: the wrapper's own options among those given, and the others."""
        names = options_of(self.own)
        own = {name: value for name, value in keywords.items() if name in names}
        return own, {name: value for name, value in keywords.items() if name not in names}

    def complete_inner(self, arms: Rows, options: Values) -> Values:
        """What the host adds to the options of the inner constructor, once they are checked."""
        return getattr(self.inner, "complete", lambda *_, **__: {})(arms, **options)
