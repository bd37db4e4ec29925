"""Stopping times and errors agree with independent programs, which draw other random numbers."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from params import params
from programs import QUICK

import jaxbandits as jb
from benchmarks import paper_instances

make, soare = jb.instances, partial(jb.instances.soare, 5, scale=2.0)
LINGAPE = partial(jb.lingape, delta=0.05)
TOP = partial(jb.m_lingape, delta=0.05, threshold="heuristic")
EASY = jb.instances.classic_top_m(4, 2, angle=np.pi / 3)
PROVED = partial(jb.m_lingape, m=2, delta=0.05, threshold="self_normalised")
GIFA = partial(jb.lin_gifa, m=2, delta=0.05, threshold="self_normalised")
RAGE = partial(jb.rage, delta=0.05)
ALBA = partial(jb.alba, delta=0.05)
ALBA_PUBLISHED = partial(ALBA, design="frank_wolfe")
XY_STATIC = partial(jb.xy_static, delta=0.05, variant="soare")
XY_ADAPTIVE = partial(jb.xy_adaptive, delta=0.05)

# Instance, algorithm, the reference's mean pulls and standard error, extra relative tolerance.
REFERENCES = {
    "lingape, angle 0.1": (soare(angle=0.1), LINGAPE, 7431, 48, 0.0),
    "lingape, angle 0.05": (soare(angle=0.05), LINGAPE, 29725, 357, 0.0),
    "lin_game": (
        make.classic_top_m(3, 1, angle=0.1),
        partial(jb.lin_game, delta=0.05, threshold="heuristic"),
        1275,
        44,
        0.0,
    ),
    # The mean is printed in the paper of Frank-Wolfe sampling, without a standard error: this one
    # is that of as many of our own runs.
    "lin_game, six dimensions": (
        make.soare(6, scale=2.0),
        partial(jb.lin_game, delta=0.1, threshold="heuristic"),
        2319,
        59,
        0.0,
    ),
    "m_lingape": (
        make.classic_top_m(4, 2, angle=np.pi / 6),
        partial(TOP, m=2),
        530,
        3,
        0.0,
    ),
    "lucb": (EASY, partial(jb.lucb, m=2), 746, 3, 0.0),
    "ugape": (EASY, partial(jb.ugape, m=2), 764, 3, 0.0),
    "m_lingape, variance": (EASY, partial(PROVED, selection="largest_variance"), 200, 1, 0.0),
    "m_lingape, ratio": (EASY, partial(PROVED, selection="ratio"), 177, 1, 0.0),
    "m_lingape, their ridge": (EASY, partial(PROVED, v0="code"), 200, 1, 0.0),
    "m_lingape as published": (
        EASY,
        partial(PROVED, v0="code", stale_pair=True, threshold="self_normalised_code"),
        199,
        1,
        0.0,
    ),
    "lin_gifa": (EASY, GIFA, 169, 1, 0.0),
    "lin_gifa, individual": (
        EASY,
        partial(GIFA, indices="individual", selection="largest_variance"),
        442,
        2,
        0.0,
    ),
    "lin_gifa as published": (
        EASY,
        partial(GIFA, v0="code", stale_pair=True, stopping="lucb"),
        204,
        1,
        0.0,
    ),
    "rage, angle 0.1": (soare(angle=0.1), RAGE, 7315, 213, 0.03),
    "xy_static, soare, angle 0.1": (soare(angle=0.1), XY_STATIC, 121_100, 3_800, 0.0),
    "xy_static, soare, basis, gap 2": (make.canonical(5, gap=2.0), XY_STATIC, 385, 11, 0.0),
    "xy_static, soare, basis, gap 0.5": (make.canonical(5, gap=0.5), XY_STATIC, 8562, 163, 0.0),
    "xy_adaptive, angle 0.1": (soare(angle=0.1), XY_ADAPTIVE, 7655, 38, 0.02),
    "xy_adaptive, angle 0.1, simulator": (soare(angle=0.1), XY_ADAPTIVE, 7304, 265, 0.0),
    "xy_adaptive, soare, without return": (
        make.soare(3, angle=0.9, scale=2.0),
        partial(XY_ADAPTIVE, variant="soare", retest=False),
        1195,
        15,
        0.0,
    ),
    "xy_adaptive, soare, angle 0.1": (
        soare(angle=0.1),
        partial(XY_ADAPTIVE, variant="soare"),
        6.714e6,
        1.36e6,
        0.0,
    ),
    "rage, transductive": (make.transductive(12), RAGE, 30438, 787, 0.03),
    "alba, angle 0.1": (soare(angle=0.1), ALBA, 29471, 1047, 0.0),
    "alba, angle 0.01": (soare(angle=0.01), ALBA, 3_327_000, 104_000, 0.0),
    "alba, sphere": (paper_instances.sphere(20), ALBA, 50_600, 1200, 0.0),
    "alba as published, angle 0.1": (soare(angle=0.1), ALBA_PUBLISHED, 32853, 2327, 0.0),
    "alba as published, sphere": (paper_instances.sphere(20), ALBA_PUBLISHED, 107_000, 4000, 0.0),
}
DATA = os.environ.get("JAXBANDITS_DATA")


def agrees(runs, mean, error, extra):
    """Assert that mean pulls differ by three joint standard errors at most, plus `extra * mean`."""
    digest = runs.summary()
    assert digest["cut_short"] == 0
    assert digest["error_high"] < 0.05 or digest["errors"] == 0
    joint = np.hypot(digest["pulls_se"], error)
    assert abs(digest["pulls_mean"] - mean) <= 3 * joint + extra * mean, digest


FEW = [
    "lingape, angle 0.1",
    "lin_game",
    "ugape",
    "xy_static, soare, basis, gap 0.5",
]


@pytest.mark.parametrize("name", FEW)
def test_a_few_runs_agree(name):
    instance, build, *expected = REFERENCES[name]
    agrees(jb.simulate(instance, build, replications=200, seed=10, engine=QUICK), *expected)


LONG = ["xy_static, soare, angle 0.1", "xy_adaptive, soare, angle 0.1"]


@pytest.mark.slow
@pytest.mark.parametrize("name", params(REFERENCES, optimised=LONG))
def test_many_runs_agree(name):
    instance, build, *expected = REFERENCES[name]
    replications = {"m_lingape": 20_000, "lingape, angle 0.1": 2000}.get(name, 500)
    # That computes designs once for all lanes, which takes a fifth of the time here.
    engine = "xla" if name == "xy_adaptive, soare, angle 0.1" else "auto"
    runs = jb.simulate(
        instance, build, replications=replications, seed=11, max_pulls=10**9, engine=engine
    )
    agrees(runs, *expected)


@pytest.mark.skipif(DATA is None, reason="JAXBANDITS_DATA names no folder")
@pytest.mark.parametrize(
    "replications", [50, pytest.param(1000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_the_drug_table_agrees(replications):
    drugs = make.drug_repurposing(Path(DATA) / "drug_repurposing")
    runs = jb.simulate(drugs, partial(TOP, m=5), replications=replications, seed=12)
    agrees(runs, 7632, 8, 0.0)


def test_a_wrong_noise_variance_does_not_agree():
    """The tolerance is narrow enough to detect a wrong constant."""
    instance, build, *expected = REFERENCES["m_lingape"]
    build = partial(build, noise_var=0.36)
    runs = jb.simulate(instance, build, replications=2000, seed=13, engine=QUICK)
    with pytest.raises(AssertionError):
        agrees(runs, *expected)


@pytest.mark.slow
def test_rage_ends_where_designs_may_be_singular():
    """Two arms separate two layouts; rounding once decided whether that design was chosen."""
    layouts = paper_instances.multivariate(4)
    found = [jb.simulate(layouts, RAGE, replications=9, seed=43, batch=b) for b in (8, 16)]
    np.testing.assert_array_equal(found[0].pulls, found[1].pulls)
    assert all(runs.stopped.all() for runs in found)
