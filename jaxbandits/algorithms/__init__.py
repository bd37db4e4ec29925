"""One paper, one file: constructors `(arms, *, options) -> Algorithm`."""

from .alba import alba
from .glm_tsl import glm_tsl
from .gse import gse
from .lingape import lingape
from .m_lingape import m_lingape
from .rage import rage
from .sequential_halving import sequential_halving

__all__ = ["alba", "glm_tsl", "gse", "lingape", "m_lingape", "rage", "sequential_halving"]
