"""One paper, one file: constructors `(arms, *, options) -> Algorithm`."""

from .alba import alba
from .frank_wolfe_sampling import frank_wolfe_sampling
from .glm_tsl import glm_tsl
from .gse import gse
from .lazy_track_and_stop import lazy_track_and_stop
from .lin_game import lin_game
from .lin_gifa import lin_gifa
from .lingape import lingape
from .lucb import lucb
from .m_lingape import m_lingape
from .rage import rage
from .rage_glm import rage_glm
from .sequential_halving import sequential_halving
from .top_two import top_two
from .ugape import ugape
from .xy_adaptive import xy_adaptive
from .xy_oracle import xy_oracle
from .xy_static import xy_static

__all__ = [
    "alba",
    "frank_wolfe_sampling",
    "glm_tsl",
    "gse",
    "lazy_track_and_stop",
    "lin_game",
    "lin_gifa",
    "lingape",
    "lucb",
    "m_lingape",
    "rage",
    "rage_glm",
    "sequential_halving",
    "top_two",
    "ugape",
    "xy_adaptive",
    "xy_oracle",
    "xy_static",
]
