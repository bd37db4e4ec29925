"""Arms from a log of clicks: the synthetic stand-in, and logs written by these tests."""

import functools
import gzip

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from counting import compilations
from test_instances import check

import jaxbandits as jb
from jaxbandits.instances import news
from jaxbandits.instances.data import click_logs
from jaxbandits.sweeps import check as check_plan
from jaxbandits.sweeps import parse

make = jb.instances
LAWS = {"rage": ("bernoulli", 1.0), "lingape": ("sign", 4.0)}
every = pytest.mark.parametrize("protocol", LAWS)


def drawn(protocol, num_arms, num):
    """`(arms, means, theta)` of `num` stand-ins."""

    def draw(key):
        instance = make.clicks(key, num_arms, protocol=protocol)
        return instance.arms, instance.means, instance.theta

    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(1), num))
        return [np.asarray(table) for table in found]


@every
def test_the_stand_in_is_a_valid_instance(protocol):
    instance = check(make.clicks(jax.random.key(0), protocol=protocol))
    assert instance.arms.shape == (40, 36)
    assert (instance.rewards, float(instance.noise_var)) == LAWS[protocol]
    assert instance.family == "gaussian"  # the learner fits a linear model
    np.testing.assert_allclose(instance.theta_norm, np.linalg.norm(instance.theta))
    other = make.clicks(jax.random.key(0), protocol=protocol, noise_var=0.3)
    np.testing.assert_array_equal(instance.arms, other.arms)
    assert float(other.noise_var) == 0.3


@every
def test_features_and_means_of_the_stand_in_are_as_documented(protocol):
    arms, means, thetas = drawn(protocol, 40, 300)
    np.testing.assert_allclose(np.einsum("nki,ni->nk", arms, thetas), means, atol=1e-12)
    assert (np.linalg.matrix_rank(arms) == 36).all()
    tables = arms.reshape(-1, 6, 6)
    np.testing.assert_array_equal(tables[:, 0, 0], 1.0)
    users, articles = tables[:, :, 0], tables[:, 0, :]
    np.testing.assert_allclose(tables, users[:, :, None] * articles[:, None], atol=1e-15)
    assert ((tables > 0) & (tables <= 1)).all()
    for side in (users, articles):
        assert (side[:, 1:].sum(1) < 1).all()
        np.testing.assert_allclose(side[:, 1:].mean(0), 1 / 6, atol=0.01)
    best, others = means[:, 0], means[:, 1:]
    if protocol == "rage":
        np.testing.assert_allclose(best, 0.1)
        assert (others > 0.005 - 1e-12).all()
        assert (others.max(1) <= best - 0.01 + 1e-12).all()
    else:
        assert (best > -0.88).all()
        assert (best <= -0.8 + 1e-12).all()
        assert ((others > -0.99 - 1e-12) & (others < -0.93)).all()


def test_missing_rows_are_filled_with_those_of_nearest_means():
    means = jnp.array([0.5, 0.9, 0.7, 0.1, 0.8])
    best, others = means > 2.0, means < 0.2
    for seed in range(5):
        rows = news._chosen(jax.random.key(seed), means, best, others, 4)
        np.testing.assert_array_equal(rows, [1, 3, 0, 2])


@pytest.mark.slow
def test_what_numpy_rounds_as_jax_does_is_not_compiled():
    with compilations() as seen:
        make.clicks(jax.random.key(0), 19)  # a size of no other test
    assert 0 < len(seen) <= 12


def test_phases_run_on_clicks_drawn_anew():
    """Lanes without a replication draw Bernoulli rewards with probability 0."""
    draw = functools.partial(make.clicks, num_arms=3)
    algorithm = functools.partial(jb.sequential_halving, budget=3000)
    runs = jb.simulate(draw, algorithm, replications=40, seed=0)
    assert (runs.pulls == 3000).all()
    assert runs.correct.sum() > 20  # a third by chance


def features(rng, num, rounded):
    weights = rng.dirichlet(np.ones(5 if rounded else 6), num)[:, :5].round(6)
    return np.column_stack([np.ones(num), weights])


def written(folder, num=3000, *, zipped=False, seed=0, rate=0.05, rounded=False):
    """A log: `(file, lines, X [num, 36], clicks [num])`."""
    rng = np.random.default_rng(seed)
    articles, users = features(rng, 50, rounded), features(rng, num, rounded)
    clicks = (rng.random(num) < rate).astype(int)
    lines, shown = [], []
    for user, click in zip(users, clicks, strict=True):
        pool = rng.choice(50, 8, replace=False)
        shown.append(rng.choice(pool))
        parts = [f"|{9 + a} {listed(articles[a])}" for a in pool]
        head = f"1241160900 {9 + shown[-1]} {click} |user {listed(user)}"
        lines.append(" ".join([head, *parts]))
    X = np.einsum("ni,nj->nij", users, articles[shown]).reshape(num, 36)
    return save(folder, lines, zipped=zipped), lines, X, clicks


def listed(vector):
    return " ".join(f"{i}:{vector[i - 1]:.6f}" for i in (2, 3, 4, 5, 6, 1))


def save(folder, lines, *, zipped=False):
    file = folder / f"ydata-fp-td-clicks-v1_0.20090501{'.gz' * zipped}"
    text = "".join(line + "\n" for line in lines).encode()
    file.write_bytes(gzip.compress(text) if zipped else text)
    return file


def with_constants(X):
    """Rows with each constant replaced by 1 - sum of the weights, scaled to mean square 1."""
    users, articles = X[:, ::6].copy(), X[:, :6].copy()
    for side in (users, articles):
        side[:, 0] -= side[:, 1:].sum(1)
        side[:, 0] /= np.sqrt(np.mean(side[:, 0] ** 2))
    return np.array([np.outer(u, a).ravel() for u, a in zip(users, articles, strict=True)])


def ridge(X, y):
    return np.linalg.inv(X.T @ X + 0.01 * np.eye(36)) @ X.T @ y


@every
@pytest.mark.parametrize("zipped", [False, True], ids=["text", "gz"])
def test_the_instance_of_a_log_equals_a_plain_computation(protocol, zipped, tmp_path, monkeypatch):
    monkeypatch.setattr(click_logs, "BLOCK", 701)
    rate = 0.05 if protocol == "rage" else 0.03
    file, _, X, clicks = written(tmp_path, zipped=zipped, rate=rate)
    y = clicks if protocol == "rage" else 2.0 * clicks - 1.0
    theta = ridge(X, y)
    means = X @ theta
    X = X[(means >= (0 if protocol == "rage" else -1)) & (means <= 1)]
    means = X @ theta
    best_row = X[[means.argmax()]]
    shown = with_constants(np.concatenate([best_row, X])) if protocol == "rage" else X
    tables = []
    for path in (file, tmp_path):
        instance = check(make.yahoo_r6a(jax.random.key(3), path, 40, protocol=protocol))
        distance = np.abs(instance.arms[:, None] - shown).max(-1)
        assert distance.min(1).max() < 1e-9
        of_rows = (shown @ instance.theta)[distance.argmin(1)]
        np.testing.assert_allclose(instance.means, of_rows, atol=1e-9)
        if protocol == "rage":
            np.testing.assert_allclose(shown[1:] @ instance.theta, means, atol=1e-9)
        else:
            np.testing.assert_allclose(instance.theta, theta, atol=1e-8)
        assert len({tuple(x) for x in instance.arms}) == 40
        assert np.linalg.matrix_rank(instance.arms) == 36
        assert (instance.rewards, float(instance.noise_var)) == LAWS[protocol]
        best, others = instance.means[0], instance.means[1:]
        if protocol == "rage":
            np.testing.assert_allclose(best, means.max(), atol=1e-9)
            assert (others <= best - 0.01).all()
            assert (others >= 0).all()
        else:
            assert best > -0.88
            assert ((others > -1) & (others < -0.93)).all()
        tables.append(instance.arms)
    np.testing.assert_array_equal(*tables)
    other = make.yahoo_r6a(jax.random.key(4), file, 40, protocol=protocol, noise_var=0.5)
    assert not np.isin(other.arms[1:, 7], tables[0][1:, 7]).all()
    assert float(other.noise_var) == 0.5


@pytest.mark.slow
def test_weights_that_sum_to_one_give_a_usable_instance(tmp_path):
    """As in the real log: rounding alone makes the rank 36, but no dimension is dropped."""
    file, *_ = written(tmp_path, rounded=True)
    X = click_logs.read_click_log(file).features
    assert np.linalg.cond(X) > 1e11
    instance = make.yahoo_r6a(jax.random.key(0), file, 60)
    assert np.linalg.cond(instance.arms) < 1e5
    np.testing.assert_allclose(instance.arms @ instance.theta, instance.means, atol=1e-12)
    design = jb.design.d_optimal(instance.arms)
    np.testing.assert_allclose(design.bound, 36)


@pytest.mark.slow
def test_candidates_are_a_uniform_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(click_logs, "BLOCK", 100)
    monkeypatch.setattr(click_logs, "POOL", 400)
    file, _, X, clicks = written(tmp_path, 2000, rate=0.3)  # all means are in (0, 1)
    log = click_logs.read_click_log(file)
    assert (log.rows, log.left_out, log.features.shape) == (2000, 0, (401, 36))
    means = X @ ridge(X, clicks)
    assert 0 < means.min() < means.max() < 1
    np.testing.assert_allclose(log.features[0], X[means.argmax()], atol=1e-12)
    distance = np.abs(log.features[1:, None] - X).max(-1)
    where = distance.argmin(1)
    assert distance.min(1).max() < 1e-12
    assert (np.diff(where) > 0).all()  # each once, in the order of the file
    quarters = np.bincount(where // 500)
    assert abs(quarters - 100).max() < 4 * np.sqrt(400 * 3 / 16)
    click_logs._read.cache_clear()
    np.testing.assert_array_equal(click_logs.read_click_log(file).features, log.features)


def test_rows_without_features_are_left_out(tmp_path):
    _, lines, X, clicks = written(tmp_path, 300)
    lines[5] = lines[5].replace("|user ", "|user 7:0.5 ").replace(" 1:1.000000 |", " |", 1)
    lines[9] = lines[9][: lines[9].index("|user ")] + "|user 7:1.0 " + lines[9].split("|", 2)[2]
    lines[9] = lines[9].replace("|user 7:1.0 ", "|user 7:1.0 |", 1)
    lines[12] = lines[12].replace("|user ", "|user 9:0.5 ")  # an index of no feature
    log = click_logs.read_click_log(save(tmp_path, lines))
    assert (log.rows, log.left_out) == (298, 2)
    there = ~np.isin(np.arange(300), [5, 9])
    np.testing.assert_allclose(log.theta, ridge(X[there], clicks[there]), atol=1e-9)


def cut(line):
    return line[: line.index("|user")]


MALFORMED = {
    "cut": (cut, "needs a time, an article"),
    "click": (lambda line: line.replace(" |user", "3 |user"), "needs a time, an article"),
    "pool": (lambda line: "1241160900 1234567" + line[line.index(" ", 12) :], "the article in"),
    "word": (lambda line: line.replace("1:1.000000", "1:much", 1), "could not convert .*much"),
    "pair": (lambda line: line.replace("1:1.000000", "1.000000", 1), "not enough values"),
    "number": (lambda line: line.replace("1:1.000000", "x:1.0", 1), "invalid literal .*x"),
    "NaN": (lambda line: line.replace("1:1.000000", "1:nan", 1), "holds NaN or inf"),
    "bytes": (lambda line: line.replace("1:1.000000", "\udcff", 1), "not enough values"),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_lines_are_named(fault, tmp_path, monkeypatch):
    monkeypatch.setattr(click_logs, "BLOCK", 16)
    change, message = MALFORMED[fault]
    _, lines, _, _ = written(tmp_path, 50)
    lines[36] = change(lines[36])
    file = tmp_path / "log"
    file.write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=rf"path: .*log line 37 is not of the log: .*{message}"):
        make.yahoo_r6a(jax.random.key(0), file, 4)


def test_damaged_and_missing_files_are_named(tmp_path):
    read = functools.partial(make.yahoo_r6a, jax.random.key(0), num_arms=4)
    with pytest.raises(ValueError, match=r"path: no file .*20090501; .*R6A.*Webscope"):
        read(tmp_path)
    with pytest.raises(ValueError, match=r"path: no file .*mine; "):
        read(tmp_path / "mine")
    file, lines, _, _ = written(tmp_path, 200, zipped=True)
    whole = file.read_bytes()
    for damaged in (whole[:-100], whole[:300] + b"\0" * 300 + whole[600:]):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"path: .*gz cannot be read: "):
            read(file)
    for nothing in ([], [line.replace(" 1:1.0", " 7:1.0") for line in lines]):
        with pytest.raises(ValueError, match=r"path: .* has no row with features"):
            read(save(tmp_path, nothing))


def test_more_arms_than_the_log_has_are_refused(tmp_path):
    file, *_ = written(tmp_path, 100)
    with pytest.raises(ValueError, match=r"num_arms must be at most \d+ with this log, got 150"):
        make.yahoo_r6a(jax.random.key(0), file, 150)
    none, *_ = written(tmp_path, 400, rate=0.0)
    with pytest.raises(ValueError, match=r"path: .*has no row with a mean above -0.88"):
        make.yahoo_r6a(jax.random.key(0), none, 4, protocol="lingape")


def test_a_sweep_reads_the_log_once(tmp_path, monkeypatch):
    written(tmp_path, 500)
    calls = []
    fit = click_logs._fit
    monkeypatch.setattr(click_logs, "_fit", lambda *args: calls.append(args) or fit(*args))
    table = {
        "replications": 4,
        "instances": {
            "log": {"name": "yahoo_r6a", "path": str(tmp_path), "num_arms": 5, "protocol": "rage"},
            "fixed": {"name": "yahoo_r6a", "path": str(tmp_path), "num_arms": 5, "redraw": False},
        },
        "algorithms": {"SH": {"name": "sequential_halving", "budget": 50}},
    }
    check_plan(parse(table))
    assert len(calls) == 1
    table["instances"]["log"]["protocol"] = "soare"
    with pytest.raises(ValueError, match=r"instances.log. protocol must be .*'lingape', got 'soa"):
        check_plan(parse(table))
