"""`Runs`: intervals, labels, files."""

import dataclasses
import io
import json

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

import jaxbandits as jb
from jaxbandits.engine.results import first_of, joined, none_of, paired_difference
from jaxbandits.intervals import binomial_interval


def runs(num=40, *, errors=3, cut=2, sets=False, regret=False):
    """Synthetic runs: the first `errors` are wrong, the last `cut` are cut short."""
    rng = np.random.default_rng(0)
    correct, stopped = np.arange(num) >= errors, np.arange(num) < num - cut
    arm_pulls = rng.integers(0, 100, (num, 3))
    answer = rng.random((num, 3)) < 0.5 if sets else rng.integers(0, 3, num)
    curve = rng.random((num, 5)).cumsum(1)
    return jb.Runs(
        replication=np.arange(num),
        pulls=arm_pulls.sum(1),
        answer=answer,
        correct=correct,
        stopped=stopped,
        arm_pulls=arm_pulls,
        rounds=np.arange(1, 6) if regret else None,
        regret=curve if regret else None,
        info={"phases": rng.integers(0, 9, num)},
        meta={"seed": 3, "device": "cpu"},
    )


@pytest.mark.parametrize(("errors", "total"), [(0, 10), (10, 10), (3, 38), (1, 100_000)])
def test_the_interval_is_exact(errors, total):
    low, high = binomial_interval(errors, total)
    expected = proportion_confint(errors, total, alpha=0.05, method="beta")
    np.testing.assert_allclose((low, high), np.nan_to_num(expected, nan=0.0), rtol=1e-9)


def test_the_interval_without_observations():
    assert binomial_interval(0, 0) == (0.0, 1.0)


def test_the_summary():
    some = runs()
    digest = some.summary()
    low, high = proportion_confint(3, 38, alpha=0.05, method="beta")
    assert digest["replications"] == 40
    assert digest["cut_short"] == 2
    assert digest["errors"] == 3
    np.testing.assert_allclose(digest["error_rate"], 3 / 38)
    np.testing.assert_allclose((digest["error_low"], digest["error_high"]), (low, high))
    np.testing.assert_allclose(digest["pulls_mean"], some.pulls.mean())
    np.testing.assert_allclose(digest["pulls_se"], some.pulls.std(ddof=1) / np.sqrt(40))
    for level, quantile in digest["pulls_quantiles"].items():
        np.testing.assert_allclose(quantile, np.quantile(some.pulls, level))
    assert digest["pulls_mean_is_lower_bound"] is True
    assert digest["info"] == {"phases": int(some.info["phases"].sum())}


@pytest.mark.parametrize("confidence", [95, 0, 1.0, -1, np.nan, "x", None, [0.9, 0.95]])
def test_a_confidence_is_a_probability(confidence):
    some = runs()
    with pytest.raises(ValueError, match=r"confidence must be a number in .0, 1."):
        some.summary(confidence=confidence)
    with pytest.raises(ValueError, match=r"confidence must be a number in .0, 1."):
        paired_difference(some, some, confidence=confidence)


def test_runs_cut_short_are_neither_right_nor_wrong():
    wrong = dataclasses.replace(runs(cut=0), correct=np.zeros(40, bool))
    cut = dataclasses.replace(wrong, stopped=np.arange(40) < 10)
    assert wrong.summary()["errors"] == 40
    assert cut.summary()["errors"] == 10
    assert cut.summary()["error_rate"] == 1.0
    none = dataclasses.replace(wrong, stopped=np.zeros(40, bool)).summary()
    assert np.isnan(none["error_rate"])
    assert (none["error_low"], none["error_high"]) == (0.0, 1.0)


@pytest.mark.parametrize("options", [{}, {"sets": True}, {"regret": True}], ids=str)
def test_saved_and_loaded(options, tmp_path):
    some = runs(**options)
    some.save(tmp_path / "some.npz")
    again = jb.load(tmp_path / "some.npz")
    assert [file.name for file in tmp_path.iterdir()] == ["some.npz"]
    for field in dataclasses.fields(some):
        one, two = getattr(some, field.name), getattr(again, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)
        elif field.name == "info":
            assert one.keys() == two.keys()
            np.testing.assert_array_equal(one["phases"], two["phases"])
        else:
            assert one == two


def test_saving_replaces_the_file_whole(tmp_path):
    runs().save(tmp_path / "some.npz")
    runs(50).save(tmp_path / "some.npz")
    assert len(jb.load(tmp_path / "some.npz")) == 50


@pytest.mark.parametrize("name", ["a.csv", "a.nc", "a.npz.csv", "a.pkl"])
def test_file_names_with_another_ending_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match=rf"path must end in \.npz .*got .*{name}"):
        runs().save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    runs().save(tmp_path / "bare")
    assert len(jb.load(tmp_path / "bare")) == 40


def damaged(path, kind):
    if kind == "missing":
        return
    if kind == "half":
        runs().save(path)
        path.write_bytes(path.read_bytes()[:-200])
    elif kind == "other":
        np.savez(path, something=np.zeros(3))
    elif kind == "array":
        with path.open("wb") as stream:
            np.save(stream, np.zeros(3))
    else:
        path.write_bytes({"empty": b"", "garbage": b"\x00garbage" * 99}[kind])


@pytest.mark.parametrize("kind", ["missing", "empty", "garbage", "half", "other", "array"])
def test_a_damaged_or_foreign_file_is_a_value_error(kind, tmp_path):
    damaged(tmp_path / "some.npz", kind)
    with pytest.raises(ValueError, match=r"path: .*some.npz does not hold saved runs"):
        jb.load(tmp_path / "some.npz")


def test_a_later_format_is_a_value_error(tmp_path, monkeypatch):
    with monkeypatch.context() as later:
        later.setattr("jaxbandits.engine.saved.FORMAT", 99)
        runs().save(tmp_path / "some.npz")
    with pytest.raises(ValueError, match="has format 99, this version reads 1"):
        jb.load(tmp_path / "some.npz")


def test_the_dataset_has_labelled_dimensions():
    some = runs(regret=True)
    table = some.to_xarray()
    assert dict(table.sizes) == {"replication": 40, "arm": 3, "round": 5}
    assert table["regret"].dims == ("replication", "round")
    assert table["arm_pulls"].dims == ("replication", "arm")
    np.testing.assert_array_equal(table["round"], some.rounds)
    np.testing.assert_array_equal(table["info_phases"], some.info["phases"])
    assert table.attrs["seed"] == "3"
    assert runs(sets=True).to_xarray()["answer"].dims == ("replication", "target")


def test_a_row_for_each_replication():
    some = runs(regret=True)
    frame = some.to_dataframe()
    assert list(frame.index) == list(some.replication)
    assert frame.index.name == "replication"
    names = {"pulls", "answer", "correct", "stopped", "reason", "info_phases", "regret"}
    assert names == set(frame.columns)
    np.testing.assert_array_equal(frame["pulls"], some.pulls)
    sets = runs(sets=True)
    expected = [tuple(np.flatnonzero(mask).tolist()) for mask in sets.answer]
    assert sets.to_dataframe().answer.tolist() == expected
    assert sets.to_dataframe().answer.value_counts().sum() == 40


FLAGS = {"broken": np.arange(40) < 1, "tied": np.arange(40) > 38}
EXPORTED = {
    "indices": runs(),
    "sets": runs(sets=True),
    "regret": runs(regret=True, cut=0),
    "cut short": dataclasses.replace(runs(cut=9), facts=FLAGS),
    "contextual": dataclasses.replace(runs(regret=True), meta={"contextual": True, "seed": 3}),
    "later replications": first_of(dataclasses.replace(runs(), replication=np.arange(7, 47)), 12),
    "one": first_of(runs(sets=True, regret=True), 1),
    "none": none_of(runs(regret=True)),
}


def of_dataset(some):
    """The fields of runs, from their `xarray.Dataset`."""
    table = some.to_xarray()
    return _fields(lambda name: table[name].values, [*map(str, table)], table.attrs) | {
        "replication": table.replication.values,
        "rounds": table["round"].values if "round" in table.coords else None,
    }


def of_frames(some):
    """The same from their three data frames."""
    each, arms = some.to_dataframe(), some.to_dataframe(per="arm")
    found = _fields(lambda name: each[name].to_numpy(), list(each.columns), each.attrs)
    if some.answer.ndim > 1:
        found["answer"] = np.array([np.isin(range(3), x) for x in each.answer]).reshape(-1, 3)
    found |= {
        "replication": each.index.to_numpy(),
        "arm_pulls": arms.arm_pulls.to_numpy().reshape(-1, 3),
    }
    if some.regret is not None:
        curves = some.to_dataframe(per="round").regret
        found["regret"] = curves.to_numpy().reshape(some.regret.shape)
        found["rounds"] = curves.index.unique("round").to_numpy()
    return found


def of_file(some):
    file = io.BytesIO()
    some.write(file)
    file.seek(0)
    return vars(jb.load(file))


def _fields(column, names, attributes):
    fields = [field.name for field in dataclasses.fields(jb.Runs)]
    found = {name: column(name) if name in names else None for name in fields}
    for group in ("info", "facts"):
        own = [name for name in names if name.startswith(f"{group}_")]
        found[group] = {name.removeprefix(f"{group}_"): column(name) for name in own}
    texts = ("device",)
    return found | {"meta": {k: v if k in texts else json.loads(v) for k, v in attributes.items()}}


@pytest.mark.parametrize("export", [of_dataset, of_frames, of_file])
@pytest.mark.parametrize("name", EXPORTED)
def test_no_field_is_lost_on_export(name, export):
    some, found = EXPORTED[name], export(EXPORTED[name])
    for field in dataclasses.fields(jb.Runs):
        expected, given = getattr(some, field.name), found[field.name]
        if field.name == "rounds" and export is of_frames and not len(some):
            continue  # no row says at which rounds
        if isinstance(expected, np.ndarray):
            np.testing.assert_array_equal(given, expected, err_msg=field.name)
        elif field.name in ("info", "facts"):
            assert given.keys() == expected.keys()
            for key in expected:
                np.testing.assert_array_equal(given[key], expected[key], err_msg=key)
        else:
            assert given == expected


def test_the_reason_is_exported_as_its_code():
    some = EXPORTED["cut short"]
    np.testing.assert_array_equal(some.to_dataframe().reason, some.reason)
    np.testing.assert_array_equal(some.to_xarray().reason, some.reason)
    assert set(some.reason) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("per", "message"),
    [
        ("pull", "per must be one of 'replication', 'round', 'arm', got 'pull'"),
        ("round", "per must be 'replication' or 'arm' for these runs, which have no rounds: "),
    ],
)
def test_what_a_row_stands_for_is_checked(per, message):
    with pytest.raises(ValueError, match=message):
        runs().to_dataframe(per=per)


def with_pulls(pulls, *, start=0, correct=None, stopped=None):
    number = len(pulls)
    yes = np.ones(number, bool)
    return jb.Runs(
        replication=np.arange(start, start + number),
        pulls=np.asarray(pulls),
        answer=np.zeros(number, int),
        correct=yes if correct is None else correct,
        stopped=yes if stopped is None else stopped,
        arm_pulls=np.asarray(pulls)[:, None],
        rounds=None,
        regret=None,
    )


def test_a_paired_difference_is_that_of_the_t_test():
    rng = np.random.default_rng(3)
    common = rng.integers(0, 1000, 50)
    one, two = common + rng.integers(0, 9, 50), common + rng.integers(3, 12, 50)
    found = paired_difference(with_pulls(one), with_pulls(two))
    tested = stats.ttest_rel(one, two)
    interval = tested.confidence_interval(0.95)
    assert found["replications"] == 50
    np.testing.assert_allclose(found["mean"], one.mean() - two.mean())
    np.testing.assert_allclose((found["low"], found["high"]), (interval.low, interval.high))
    np.testing.assert_allclose(found["correlation"], np.corrcoef(one, two)[0, 1])
    unpaired = np.hypot(one.std(ddof=1), two.std(ddof=1)) / np.sqrt(50)
    assert found["se"] < unpaired / 10


def test_a_paired_difference_uses_the_replications_in_common():
    one, two = with_pulls(np.arange(10)), with_pulls(np.arange(10) + 3, start=4)
    assert paired_difference(one, two)["replications"] == 6
    assert paired_difference(one, two)["mean"] == 1.0  # 4 to 9 against 3 to 8
    wrong = with_pulls(np.arange(10), correct=np.arange(10) > 1)
    assert paired_difference(wrong, one, of="errors")["mean"] == 0.2


@pytest.mark.parametrize(
    ("other", "of", "message"),
    [
        (with_pulls([1, 2, 3], start=9), "pulls", "2 replications or more in common, got 1"),
        (with_pulls([1] * 10, stopped=np.arange(10) > 2), "pulls", "3 replications were cut short"),
        (with_pulls([1] * 10), "regret", "got 'regret'"),
        (with_pulls([1] * 10), "time", "of must be one of 'pulls', 'errors', 'regret', got 'time'"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(other, of, message):
    with pytest.raises(ValueError, match=message):
        paired_difference(with_pulls(np.arange(10)), other, of=of)


def test_a_dataframe_has_the_regret_of_the_last_round():
    found = runs(regret=True)
    frame = found.to_dataframe()
    np.testing.assert_array_equal(frame.regret, found.regret[:, -1])
    assert "regret" not in runs().to_dataframe()


def test_parts_of_an_earlier_version_have_no_facts_and_lose_none_of_the_others():
    broken, idle = np.arange(40) % 3 == 0, np.arange(40) > 38
    whole = dataclasses.replace(runs(), facts={"broken": broken, "idle": idle})
    first = dataclasses.replace(first_of(whole, 15), facts={})
    found = joined([first, whole])
    assert found.facts.keys() == {"broken", "idle"}
    assert not found.facts["broken"][:15].any()  # not known of the part that comes first
    np.testing.assert_array_equal(found.facts["broken"][15:], broken[15:])
    np.testing.assert_array_equal(found.facts["idle"], idle)
    other = joined([whole, first])  # the part without facts stands last
    np.testing.assert_array_equal(other.facts["broken"], broken)
    np.testing.assert_array_equal(other.facts["idle"], idle)
    np.testing.assert_array_equal(other.reason, whole.reason)
