"""GSE: Azizi, Kveton and Ghavamzadeh, "Fixed-budget best-arm identification in structured bandits".

IJCAI 2022. The sweep files of this folder say what is run, and `jaxbandits run` takes them as well;
the modules hold the claims of the paper. "Wynn" takes Fedorov's steps, as the published program
does. The paper chose the kernel of BayesGap and the delta of LinGapE by its results; here
`benchmarks/tuning.py` chooses them.
"""

from ..experiment import Experiment
from .against_od_linbai import CORNER, SPHERE_OD, SPHERE_OD_100, SPHERE_OD_PER_ARM
from .bounds import BOUNDS, LOGISTIC_BOUNDS
from .data import DATA
from .linear import ADAPTIVE, ETA, SPHERE, STATIC
from .logistic import LOGISTIC

EXPERIMENTS: dict[str, Experiment] = {
    "gse/fig1": STATIC,
    "gse/fig2": ADAPTIVE,
    "gse/fig3": SPHERE,
    "gse/fig4": LOGISTIC,
    "gse/fig5": DATA,
    "gse/fig6": SPHERE_OD,
    "gse/fig6_100": SPHERE_OD_100,
    "gse/fig6_per_arm": SPHERE_OD_PER_ARM,
    "gse/fig7": CORNER,
    "gse/eta": ETA,
    "gse/bounds": BOUNDS,
    "gse/bounds_logistic": LOGISTIC_BOUNDS,
}
