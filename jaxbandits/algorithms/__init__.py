"""One paper, one file: constructors `(arms, *, options) -> Algorithm`."""

from .glm_tsl import glm_tsl
from .gse import gse
from .lingape import lingape
from .m_lingape import m_lingape
from .rage import rage
from .sequential_halving import sequential_halving
from .xy_adaptive import xy_adaptive
from .xy_oracle import xy_oracle
from .xy_static import xy_static

__all__ = [
    "glm_tsl",
    "gse",
    "lingape",
    "m_lingape",
    "rage",
    "sequential_halving",
    "xy_adaptive",
    "xy_oracle",
    "xy_static",
]
