"""Bounds of the errors of fixed-budget algorithms: by hand, by NumPy, and against runs."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxbandits as jb
from jaxbandits import theory

BASIS = jb.instances.canonical(16, gap=0.8, noise_var=2.0)


def test_bounds_of_gse_equal_closed_forms():
    bound = partial(theory.gse_error_bound, BASIS)
    share = 1000 * 0.64 / (2 * 16)
    cases = {
        ("paper", 2): 4 * 4 * math.exp(-share / (4 * 4)),
        ("paper", 4): 8 * 2 * math.exp(-share / (4 * 2)),
        ("safe", 2): 2 * 4 * math.exp(-250 * 0.64 / (8 * 2 * 16)),
        ("safe", 3): 3 * 3 * math.exp(-333 * 0.64 / (8 * 2 * 16)),
        ("single_stage", 16): 32 * math.exp(-share / 4),
        ("corollary_2", 2): 4 * 4 * math.exp(-share / (8 * 4)),
    }
    for (form, eta), expected in cases.items():
        found = bound(1000, form=form, eta=eta)
        assert found == (pytest.approx(expected, rel=1e-12), 0.0), (form, eta)
    half = bound(1000, form="safe", excess=1.0).value
    assert half == pytest.approx(8 * math.exp(-250 * 0.64 / (16 * 2 * 16)))


def test_stages_are_counted_in_whole_numbers():
    """125 arms and eta = 5 make three stages; a logarithm in floats gives a bit more."""
    arms = jb.instances.canonical(125, gap=1.0)
    found = theory.gse_error_bound(arms, 3000, form="safe", eta=5).value
    assert found == pytest.approx(15 * math.exp(-1000 / (8 * 125)))


@pytest.mark.slow
def test_the_bound_of_a_generalised_model_uses_gaps_of_predictors_and_the_least_slope():
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    instance = jb.instances.glm(arms, [2.0, 0.5])
    least = math.exp(-2) / (1 + math.exp(-2)) ** 2
    for form, slope, c, scale in (
        ("paper", None, least, 8),
        ("paper", 0.05, 0.05, 8),
        ("corollary_2", 0.05, 0.05, 16),
    ):
        found = theory.gse_error_bound(instance, 4000, form=form, slope=slope).value
        stages = math.log2(3)
        expected = 4 * stages * math.exp(-4000 * 1.5**2 * c**2 / (scale * 0.25 * 2 * stages))
        assert found == pytest.approx(expected, rel=1e-9)
    found = theory.gse_error_bound(instance, 4000, form="pairwise_paper", replications=20)
    assert 0 < found.value < 4 * math.log2(3)


def by_numpy(instance, counts, alive, survivors):
    """The term of a stage in the form "normal", and the largest pairwise norm."""
    arms, values = np.asarray(instance.arms), np.asarray(instance.means)
    best, total, widest = int(values.argmax()), 0.0, 0.0
    inverse = np.linalg.pinv((arms.T * counts) @ arms)
    for i in np.flatnonzero(alive):
        direction = arms[i] - arms[best]
        square = direction @ inverse @ direction
        widest = max(widest, square)
        if i != best:
            gap = values[best] - values[i]
            total += stats.norm.sf(gap / math.sqrt(float(instance.noise_var) * square))
    return alive[best] * total / survivors, widest


@pytest.mark.slow
def test_bounds_for_independent_arms_equal_closed_forms():
    """Which rivals survive makes no difference on this instance, where all have the same gap."""
    sizes = [16, 8, 4, 2, 1]
    expected, widest = 0.0, 0.0
    for size, left in itertools.pairwise(sizes):
        alive = np.arange(16) < size
        part, width = by_numpy(BASIS, np.where(alive, 80 / size, 0), alive, left)
        expected, widest = expected + part, max(widest, width)
    runs = jb.simulate(BASIS, partial(jb.gse, budget=320), replications=4000, seed=0, batch=1000)
    found = theory.gse_error_bound(BASIS, 320, form="normal", replications=4000)
    # Some runs eliminate the best arm, so that the mean is below that of runs that keep it.
    assert runs.summary()["error_low"] < found.value < expected
    proof = theory.gse_error_bound(BASIS, 320, form="pairwise_proof", replications=30)
    assert proof.value == pytest.approx(4 * 4 * math.exp(-0.64 / (2 * 2.0 * widest)))
    printed = theory.gse_error_bound(BASIS, 320, form="pairwise_paper", replications=30)
    assert printed.value == pytest.approx(4 * 4 * math.exp(-0.64 / (4 * 2.0 * widest)))
    assert (proof.standard_error, printed.standard_error) == pytest.approx((0.0, 0.0), abs=1e-12)


@pytest.mark.parametrize("design", ["uniform", pytest.param("d_opt", marks=pytest.mark.slow)])
def test_the_bound_by_normal_tails_holds_and_half_the_variance_breaks_it(design):
    instance = jb.instances.sphere(jax.random.key(4), 8, 3, noise_var=0.5)
    algorithm = partial(jb.gse, budget=120, design=design)
    runs = jb.simulate(instance, algorithm, replications=4000, seed=3)
    low = runs.summary()["error_low"]
    found = theory.gse_error_bound(instance, 120, form="normal", design=design, replications=500)
    assert low < found.value + 4 * found.standard_error
    quiet = jb.instances.sphere(jax.random.key(4), 8, 3, noise_var=0.02)
    less = theory.gse_error_bound(quiet, 120, form="normal", design=design, replications=500)
    assert less.value + 4 * less.standard_error < low


def test_one_pair_is_bounded_exactly():
    """With two arms the bound is the error itself."""
    instance = jb.instances.linear([[1.0, 0.2], [0.3, 1.0]], [1.0, 0.5], noise_var=4.0)
    found = theory.gse_error_bound(instance, 20, form="normal", replications=5).value
    expected, _ = by_numpy(instance, np.array([10, 10]), np.array([True, True]), 1)
    assert found == pytest.approx(expected, rel=1e-9)


def test_bounds_of_other_algorithms_equal_their_formulas():
    d, num_arms = 3, 5
    arms = np.vstack([np.eye(d), [[0.5, 0.5, 0.0], [0.0, 0.6, 0.6]]])
    instance = jb.instances.linear(arms, [1.0, 0.2, -0.4], noise_var=2.0)
    gaps = np.sort(1.0 - arms @ [1.0, 0.2, -0.4])
    each = (3000 - 5 - 2) / 2
    hardness = max(2 / gaps[1] ** 2, 3 / gaps[2] ** 2)
    expected = (4 * 5 / 3 + 3 * math.log2(3)) * math.exp(-each / (64 * hardness))
    assert theory.od_linbai_error_bound(instance, 3000).value == pytest.approx(expected)
    power = (9 - 3000) * gaps[1] ** 2 / (32 * 2 * 3 * math.log2(3))
    expected = (4 * 5 / 3 + 3 * math.log2(3)) * math.exp(power)
    found = theory.od_linbai_error_bound(instance, 3000, form="simplified").value
    assert found == pytest.approx(expected)
    expected = 5 * 3000 * math.exp(-3000 * gaps[1] ** 2 / (32 * 5 * 2))
    found = theory.bayes_gap_error_bound(instance, 3000, form="simplified").value
    assert found == pytest.approx(expected)
    gaps[0] = gaps[1]
    hardness = (np.maximum((gaps + 0.1) / 2, 0.1) ** -2).sum()
    lengths = (arms**2).sum(1)
    evidence = 2995 / 2 + (1 / lengths).sum() / 9
    expected = 5 * 3000 * math.exp(-evidence / (8 * hardness))
    found = theory.bayes_gap_error_bound(instance, 3000, prior_scale=3.0, epsilon=0.1).value
    assert found == pytest.approx(expected)
    coins = jb.instances.bernoulli(np.eye(num_arms), [0.2, 0.9, 0.6, 0.5, 0.1])
    hardness = max(2 / 0.3**2, 3 / 0.4**2, 4 / 0.7**2, 5 / 0.8**2)
    expected = 3 * math.log2(5) * math.exp(-900 / (8 * math.log2(5) * hardness))
    assert theory.sequential_halving_error_bound(coins, 900).value == pytest.approx(expected)


def test_lower_bounds_of_independent_arms_equal_their_formulas():
    """The features do not count, and the best arm has the gap of the second."""
    means = np.array([0.2, 0.9, 0.6, 0.5])
    hardness = 2.0 * (2 / 0.3**2 + 1 / 0.4**2 + 1 / 0.7**2)
    for arms in (np.eye(4), np.ones((4, 1))):
        instance = jb.instances.tabular(arms, means, noise_var=2.0)
        found = theory.error_lower_bound(instance, 100)
        assert found == pytest.approx(math.exp(-100 / hardness), rel=1e-12)
        found = theory.error_lower_bound(instance, 100, form="carpentier_locatelli")
        assert found == pytest.approx(math.exp(-100 / (math.log(4) * hardness)), rel=1e-12)
    assert type(found) is float


CUBE = jb.instances.logistic_cube(jax.random.key(0), 4, 2)
ALONE = jb.instances.linear([[1.0]], [1.0])
TIED = jb.instances.linear(np.eye(2), [1.0, 1.0])
WHOLE = "budget must be a whole number, 1 or above, that fits double precision"
BENT = jb.instances.tabular(np.eye(2), [1.0, 0.5])
BENT_AND_SMALL = jb.instances.tabular(np.eye(2), [1e-9, 5e-10], noise_var=1e-18)


@pytest.mark.parametrize(
    ("instance", "options", "message"),
    [
        (BASIS, {"form": "exact"}, "form must be one of .* got 'exact'"),
        (BASIS, {"budget": 0}, f"{WHOLE}, got 0"),
        (BASIS, {"eta": 1.5}, "eta must be a whole number, 2 or above, got 1.5"),
        (BASIS, {"excess": -1}, "excess must be"),
        (BASIS, {"slope": 0.0}, "slope must be"),
        (BASIS, {"budget": "x"}, f"{WHOLE}, got 'x'"),
        (BASIS, {"replications": 0}, "replications must be a whole number, 1 or above, got 0"),
        (BASIS, {"seed": -1}, "seed must be"),
        (ALONE, {}, "it must have two arms or more, got one"),
        (CUBE, {"form": "safe"}, "form 'safe' needs linear means"),
        (CUBE, {"form": "single_stage"}, "form 'single_stage' needs linear means"),
        (CUBE, {"form": "pairwise_proof"}, "form 'pairwise_proof' needs linear means"),
        (BASIS, {"form": "normal", "budget": 3}, "budget must be at least the 4 stages, got 3"),
        (CUBE, {"form": "normal"}, "'normal' needs normal rewards"),
        (TIED, {}, "it must have one best arm"),
        (BENT, {}, "its means are not given by its features"),
        (BENT_AND_SMALL, {}, "its means are not given by its features"),
        ("basis", {}, "instance must be an Instance, got 'basis'"),
    ],
)
def test_bad_input_is_named(instance, options, message):
    with pytest.raises(ValueError, match=message):
        theory.gse_error_bound(instance, **{"budget": 100, **options})


LINE = jb.instances.linear([[1.0], [0.5]], [1.0])


@pytest.mark.parametrize(
    ("bound", "instance", "options", "message"),
    [
        (theory.od_linbai_error_bound, BASIS, {"form": "x"}, "form must be one of .* got 'x'"),
        (theory.bayes_gap_error_bound, BASIS, {"form": "safe"}, "form must be one of 'paper', 's"),
        (theory.error_lower_bound, BASIS, {"form": None}, "form must be one of 'kaufmann', .* got"),
        (theory.error_lower_bound, TIED, {}, "it must have one best arm"),
        (theory.error_lower_bound, ALONE, {}, "it must have two arms or more, got one"),
        (theory.od_linbai_error_bound, LINE, {"form": "simplified"}, "two dimensions or more"),
        (
            theory.bayes_gap_error_bound,
            BASIS,
            {"form": "simplified", "epsilon": 0.1},
            "form 'simplified' has no other options",
        ),
    ],
)
def test_bad_forms_of_bounds_are_named(bound, instance, options, message):
    with pytest.raises(ValueError, match=message):
        bound(instance, 100, **options)


@pytest.mark.parametrize("name", ["od_linbai", "bayes_gap", "sequential_halving"])
def test_one_arm_alone_has_no_bound(name):
    with pytest.raises(ValueError, match="it must have two arms or more, got one"):
        getattr(theory, f"{name}_error_bound")(ALONE, 10)


def test_bounds_out_of_range_are_infinite():
    """Far fewer draws than arms, and large gaps."""
    easy = jb.instances.canonical(64, gap=100.0, noise_var=1e-3)
    assert theory.od_linbai_error_bound(easy, 10).value == math.inf
    assert theory.bayes_gap_error_bound(easy, 10, prior_scale=1.0).value == math.inf


def test_an_arm_of_length_0_adds_nothing_to_the_prior():
    rows = [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    instance = jb.instances.linear(rows, [1.0, 0.5])
    hardness = 2 * 4 / 0.25 + 4 / 1.0
    expected = 3 * 1000 * math.exp(-(997 + 2) / (8 * hardness))
    assert theory.bayes_gap_error_bound(instance, 1000).value == pytest.approx(expected)


@pytest.mark.slow
def test_the_bound_by_normal_tails_is_1_where_an_arm_is_not_drawn():
    """One draw, always of the same arm, with hardly any noise: that arm is answered."""
    errors, bounds = [], []
    for theta in ([1.0, 0.9], [0.9, 1.0]):
        instance = jb.instances.linear(np.eye(2), theta, noise_var=1e-4)
        options = {"budget": 1, "design": "greedy"}
        runs = jb.simulate(instance, partial(jb.gse, **options), replications=20)
        errors.append(runs.summary()["error_rate"])
        found = theory.gse_error_bound(instance, **options, form="normal", replications=20)
        bounds.append(found.value)
    assert sorted(errors) == [0.0, 1.0]
    assert bounds == [1.0, 1.0]


ERRORS = ("gse", "od_linbai", "bayes_gap", "sequential_halving")


@pytest.mark.parametrize("name", ERRORS)
def test_the_budget_may_be_a_number_of_jax_but_not_none(name):
    bound, instance = getattr(theory, f"{name}_error_bound"), jb.instances.canonical(4, gap=0.5)
    assert bound(instance, jnp.array(60)) == bound(instance, 60)
    with pytest.raises(ValueError, match=r"budget must be a whole number, .*, got None"):
        bound(instance, None)


@pytest.mark.parametrize("option", ["form", "eta", "excess", "replications", "seed"])
def test_none_is_no_option_of_the_bound_of_gse(option):
    with pytest.raises(ValueError, match=f"{option} must be .*, got None"):
        theory.gse_error_bound(BASIS, 100, **{option: None})


def test_options_of_the_bound_of_gse_may_be_numbers_of_jax():
    numbers = {"budget": 60, "eta": 2, "replications": 5, "seed": 3, "forced": 1}
    given = {name: jnp.array(number) for name, number in numbers.items()}
    found = theory.gse_error_bound(BASIS, form="normal", **given)
    assert found == theory.gse_error_bound(BASIS, form="normal", **numbers)


FORMS = (
    "paper",
    "corollary_2",
    "safe",
    "single_stage",
    "pairwise_paper",
    "pairwise_proof",
    "normal",
)
BOUNDS = {
    **{form: partial(theory.gse_error_bound, form=form, replications=5) for form in FORMS},
    "od_linbai": theory.od_linbai_error_bound,
    "bayes_gap": theory.bayes_gap_error_bound,
    "od_linbai, simplified": partial(theory.od_linbai_error_bound, form="simplified"),
    "bayes_gap, simplified": partial(theory.bayes_gap_error_bound, form="simplified"),
}


def in_unit(unit, noise_var):
    arms = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]
    return jb.instances.linear(arms, [unit, 0.3 * unit], noise_var=noise_var)


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_errors_do_not_depend_on_the_unit_of_rewards(name):
    bound = BOUNDS[name]
    expected = bound(in_unit(1.0, 1.0), 300).value
    for unit in (2.0**-400, 2.0**400):
        for more in ({}, {"prior_scale": unit} if name == "bayes_gap" else {}):
            found = bound(in_unit(unit, unit**2), 300, **more).value
            assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", ["kaufmann", "carpentier_locatelli"])
def test_lower_bounds_of_errors_do_not_depend_on_the_unit_of_rewards(form):
    bound = partial(theory.error_lower_bound, form=form)
    expected = bound(in_unit(1.0, 1.0), 30)
    for unit in (2.0**-400, 2.0**400):
        assert bound(in_unit(unit, unit**2), 30) == pytest.approx(expected, rel=1e-12)
    assert (bound(in_unit(1e200, 1.0), 30), bound(in_unit(1e-200, 1.0), 30)) == (0.0, 1.0)


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_errors_are_finite_for_gaps_whose_squares_are_not(name):
    """There is no doubt about arms that far apart, and all doubt about arms that near."""
    bound = BOUNDS[name]
    assert bound(in_unit(1e200, 1.0), 100).value == 0.0
    tied = in_unit(1e-9, 1.0)
    assert bound(in_unit(1e-200, 1.0), 100).value == pytest.approx(bound(tied, 100).value, rel=1e-6)


@pytest.mark.parametrize("bound", [theory.od_linbai_error_bound, theory.bayes_gap_error_bound])
def test_bounds_for_linear_means_refuse_others(bound):
    """With gaps of predictors in place of those of means a bound was 1e-140 and not 0.03."""
    instance = jb.instances.glm(np.eye(3), [2.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="its means must be linear, got family 'logistic'"):
        bound(instance, 2000)


def test_the_bound_of_od_linbai_has_the_draws_of_its_round_also_for_arms_of_low_rank():
    rng = np.random.default_rng(0)
    arms = np.hstack([rng.normal(size=(10, 2)), np.zeros((10, 3))])
    instance = jb.instances.linear(arms, [1.0, 0.5, 0.0, 0.0, 0.0])
    draws = 40 - 10  # one round, with room for all arms
    runs = jb.simulate(instance, partial(jb.od_linbai, budget=40), replications=16)
    assert draws <= runs.pulls.min() <= runs.pulls.max() <= 40
    gap = np.diff(np.sort(instance.means))[-1]
    expected = (4 * 10 / 2 + 3 * math.log2(2)) * math.exp(-draws / (32 * 2 / gap**2))
    np.testing.assert_allclose(theory.od_linbai_error_bound(instance, 40).value, expected)
