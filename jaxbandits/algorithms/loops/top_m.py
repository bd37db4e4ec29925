"""What constructors over the gap-index loop have in common: options, checks, assembly."""

from ...kernels.allocate import pair_shares
from ...kernels.confidence import radius
from ...parameters import (
    array,
    choice,
    fewer_than_arms,
    is_concrete,
    nonnegative,
    number_or,
    positive,
    probability,
    ratios_known,
    ridge_in_reach,
    size,
    theta_norm_known,
)
from .gap_index import SELECTIONS, by_averages, by_features, gap_index

COMMON = {
    "m": size(),
    "delta": probability,
    "epsilon": nonnegative,
    "noise_var": positive,
    "stale_pair": choice(False, True),
}
WITHOUT_FEATURES = {
    **COMMON,
    "selection": choice("largest_variance", "both"),
    "threshold": choice(*radius.NEED_NO_FEATURES),
}
WITH_FEATURES = {
    **COMMON,
    "theta_norm": nonnegative,
    "v0": number_or("paper", "code"),
    "selection": choice(*SELECTIONS),
    "ratios": array("K", "K", "K"),
    "threshold": choice(*radius.THRESHOLDS),
}


def consistent(values, code):
    """Raise on conditions between the options `WITH_FEATURES`; `code` is the ridge of that name."""
    fewer_than_arms(values)
    noise_var, v0 = values["noise_var"], values["v0"]
    if isinstance(v0, str) and is_concrete(noise_var):
        v0 = {"paper": float(noise_var) ** 0.5 / 20.0, "code": code(float(noise_var))}[v0]
    if not isinstance(v0, str):
        ridge_in_reach(values, v0)
    theta_norm_known(values, radius.NEED_THETA_NORM)
    ratios_known(values, pair_shares.num_bases(values["arms"]), pair_shares.MOST_BASES)


def without_features(arms, rules, *, m, delta, epsilon, noise_var, threshold):
    """The algorithm of these rules on average rewards."""
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=1.0, theta_norm=None)
    width = radius.width(threshold, facts)
    return gap_index(arms, by_averages(arms.shape[0]), rules, width, m=m, epsilon=epsilon)


def with_features(
    arms,
    rules,
    *,
    m,
    delta,
    epsilon,
    noise_var,
    theta_norm,
    v0,
    ratios,
    threshold,
    arm_space=True,
    **rest,
):
    """The algorithm of these rules on least squares; `rest` goes to `gap_index`."""
    facts = radius.facts(arms, delta=delta, noise_var=noise_var, v0=v0, theta_norm=theta_norm)
    evidence = by_features(arms, v0, arm_space=arm_space)
    width = radius.width(threshold, facts)
    return gap_index(arms, evidence, rules, width, m=m, epsilon=epsilon, table=ratios, **rest)
