"""The HTML report of a folder of results: its numbers, its safety, and refused files."""

import html.parser
import itertools
import json
import re
from functools import partial

import numpy as np
import pytest
import xarray
from click.testing import CliRunner
from pages import HOSTILE, example, stored, two_folders

from jaxbandits import estimates, instances
from jaxbandits.cli.main import main
from jaxbandits.engine.problems import type_of
from jaxbandits.intervals import standard_error
from jaxbandits.report import plot, write
from jaxbandits.report.html.claims import claims_of
from jaxbandits.report.html.facts import FROM_INSTANCE
from jaxbandits.report.measured import measured_text
from jaxbandits.report.table import print_table
from jaxbandits.sweeps.dataset import write as save
from jaxbandits.version import VERSION

VOID = {"meta", "link"}
INSTANCE = instances.canonical(2, gap=1.0)


class Reader(html.parser.HTMLParser):
    """Strict parser of the page: asserts that tags are closed in order, and collects references."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.addresses, self.ids, self.rows, self.elements = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        for name, value in attrs:
            if name.split(":")[-1] in ("src", "href", "srcset", "action", "data", "poster"):
                self.addresses.append(value)
            self.ids += [value] if name == "id" else []

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return two_folders(tmp_path_factory.mktemp("results")).parent


@pytest.fixture(scope="module")
def text(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def test_numbers_on_the_page_are_those_of_the_dataset(tmp_path):
    dataset = example()
    dataset["pull_lower_bound"] = dataset.pulls_mean / 4
    page = Reader(write(stored(tmp_path, dataset)).read_text(encoding="utf-8"))
    header, *cells = page.rows[:5]
    assert header == [
        "algorithm", "gap", "errors", "error rate [95%]", "mean pulls ± 95%",
        "/ lower bound ± 95%", "median pulls", "pulls, 5% to 95%",
        "difference ± 95%", "run seconds",
    ]  # fmt: skip
    one = dataset.isel(instance=0, algorithm=0, gap=1)
    row = dict(zip(header, cells[1], strict=True))
    assert (row["algorithm"], row["gap"]) == ("LinGapE", "0.25")
    assert row["errors"] == f"{int(one.errors)} of 20"
    rate, low, high = map(float, re.findall(r"[\d.]+", row["error rate [95%]"]))
    np.testing.assert_allclose(rate, one.error_rate, rtol=1e-3)
    np.testing.assert_allclose((low, high), (one.error_low, one.error_high), rtol=0.06)
    mean, width = (float(x.replace(",", "")) for x in row["mean pulls ± 95%"].split(" ± "))
    np.testing.assert_allclose(width, 2.093 * one.pulls_se, rtol=0.03)  # Student's, not 1.96
    assert abs(mean - one.pulls_mean) < one.pulls_se / 10
    assert row["/ lower bound ± 95%"].startswith("4.0")
    header, *_, last = page.rows[5:10]  # here some are cut short
    assert header[4] == "cut short"
    assert last[4] == "5"
    assert last[5].startswith("≥ ")


def test_regret_and_lower_bounds_have_columns_only_where_they_are_known(folder, text):
    assert "/ lower bound" not in text
    header = "regret at round 6 ± 95%"
    assert text.count(header) == 1
    with xarray.open_dataset(folder / "regret/results.nc") as dataset:
        last = dataset.regret.isel(instance=0, algorithm=0, gap=0, round=-1).values
    expected = estimates.estimate(last.mean(), 2.0930240544 * standard_error(last))
    assert expected in text


def test_the_page_states_the_sweep_its_claims_and_the_environment(text):
    words = " ".join(Reader(text).words)
    for part in (
        "LinGapE(delta=0.05)", "0.5, 0.25", "20 in each cell", "2,000 pulls", "6 rounds", "cpu",
        "ratio: 1.23 ± 0.25", "means: [10.0 ± 3.1]", "low: not known; runs: 12,000", "a < b",
            HOSTILE,
        "0.8.0", "3.11.7", "Linux, 2 CPUs", f"jaxbandits run {HOSTILE}", "compile time",
    ):  # fmt: skip
        assert part in words


def test_claims_that_fail_come_first_and_are_counted_at_the_top(text):
    verdicts = re.findall(r"<strong class=\"(\w+)\"><span[^>]*>.</span> ([^<]*)", text)
    assert verdicts == [("fails", "fails"), ("open", "too small to tell"), ("holds", "holds")]
    contents = text[text.index("<nav") : text.index("</nav>")]
    assert "1 fails, 1 too small to tell, 1 holds" in contents
    assert text.count("1 fails, 1 too small to tell, 1 holds") == 2  # and above the section


def test_the_page_is_sensible_without_a_mouse_and_without_eyes(text):
    page = Reader(text)
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.tags.count("table") == page.tags.count("caption") > 0
    assert all(at.get("scope") in ("row", "col") for tag, at in page.elements if tag == "th")
    labels = [at["aria-label"] for tag, at in page.elements if tag == "svg"]
    assert all("The table “Cells of " in label for label in labels)
    assert all(at["role"] == "img" for tag, at in page.elements if tag == "svg")
    assert next(tag for tag in page.tags if tag in ("a", "nav", "main")) == "a"  # the skip link
    assert ("main", {"id": "results", "tabindex": "-1"}) in page.elements
    boxes = [at for tag, at in page.elements if at.get("class") == "scroll"]
    assert all(at["tabindex"] == "0" and at["aria-label"] for at in boxes)
    for rule in ("prefers-color-scheme: dark", "@media print", ":focus-visible"):
        assert rule in text


def test_the_contents_name_every_section(text):
    page = Reader(text)
    contents = text[text.index("<nav") : text.index("</nav>")]
    linked = re.findall(r'href="#([^"]+)"', contents)
    sections = [at["id"] for tag, at in page.elements if tag == "section"]
    assert sorted(linked) == sorted(sections)


def test_figures_take_the_colours_of_the_page(text):
    svg = text[text.index("<svg") : text.index("</svg>")]
    assert "currentColor" in svg
    assert "var(--series-0)" in svg
    assert not re.search("#(?:000000|ffffff|010203|b0b0b1|fefdfc)", svg)


def test_a_paired_comparison_is_shown_where_it_says_more(tmp_path):
    dataset = example(instances=("soare",))
    shared = np.random.default_rng(1).integers(500, 2000, 20)
    pulls = dataset.pulls.values
    pulls[0, 0, 0], pulls[0, 1, 0] = shared, shared + np.arange(20) + 10
    page = Reader(write(stored(tmp_path, dataset)).read_text(encoding="utf-8"))
    row = next(row for row in page.rows if row[0] == "LinGapE" and row[1] == "GSE")
    assert row[2:4] == ["soare, gap = 0.5", "pulls"]
    assert row[4].startswith("-19.5 [-22, -17]")
    assert row[5] == "overlap"


def test_a_column_has_the_paired_difference_to_the_first_algorithm(tmp_path):
    dataset = example()
    page = Reader(write(stored(tmp_path, dataset)).read_text(encoding="utf-8"))
    header, *cells = page.rows[:5]
    texts = [dict(zip(header, cell, strict=True))["difference ± 95%"] for cell in cells]
    assert texts[:2] == ["–", "–"]
    one, other = dataset.pulls.values[0, :, 1]
    mean, half = (float(x.replace(",", "")) for x in texts[3].split(" ± "))
    np.testing.assert_allclose(mean, (other - one).mean(), rtol=0.1)
    np.testing.assert_allclose(half, 2.093 * standard_error(other - one), rtol=0.05)
    header, *_, last = page.rows[5:10]  # replications were cut short
    assert dict(zip(header, last, strict=True))["difference ± 95%"] == "–"
    assert "Difference: pulls minus those of LinGapE in the same replications." in page.words


@pytest.mark.parametrize(("algorithms", "said"), [(("A", "B"), True), (("A",), False)])
def test_that_no_pair_is_listed_is_said(tmp_path, algorithms, said):
    dataset = example(instances=("soare",), algorithms=algorithms)
    dataset.stopped[..., 0] = False  # one is cut short: not compared then
    text = write(stored(tmp_path, dataset)).read_text(encoding="utf-8")
    assert ("their single intervals and their paired difference agree" in text) == said


@pytest.mark.parametrize("version", [VERSION, "0.0.1"])
def test_defaults_are_shown_where_this_version_has_run(tmp_path, version):
    dataset = example(instances=("soare",), algorithms=("TTTS", "own"))
    tables = {
        "[instances.soare]": {"constructor": "jaxbandits.instances.soare", "dim": 4},
        "[algorithms.TTTS]": {"constructor": "jaxbandits.top_two"},
        "[algorithms.own]": {"constructor": "os.path.join"},
    }
    attributes = {"options": json.dumps(tables), "jaxbandits": version}
    page = Reader(write(stored(tmp_path, dataset.assign_attrs(attributes))).read_text())
    words = " ".join(" ".join(page.words).split())
    instance, algorithm = (
        "soare(dim=4) defaults: angle=0.1, scale=1.0",
        "top_two() defaults: delta=",
    )
    assert (instance in words) == (algorithm in words) == (version == VERSION)
    assert words.count("defaults: ") == (2 if version == VERSION else 0)
    assert "noise_var=" not in words.partition(algorithm)[2]  # the instance tells it


def test_what_an_instance_tells_is_no_default():
    facts = type_of(INSTANCE).facts(INSTANCE)
    assert set(FROM_INSTANCE) == {*facts, "horizon"}


def test_labels_are_never_read_as_markup(text):
    page = Reader(text)
    assert "script" not in page.tags
    assert HOSTILE in " ".join(page.words)
    assert "default-src 'none'" in text


def test_nothing_is_fetched_and_ids_are_unique(text):
    page = Reader(text)
    assert len(page.ids) == len(set(page.ids)) > 20
    inside = {address[1:] for address in page.addresses if address.startswith("#")}
    assert inside <= set(page.ids)
    assert {a for a in page.addresses if not a.startswith("#")} == {"data:,"}
    assert set(re.findall(r"url\((.)", text)) == {"#"}
    assert "@import" not in text
    assert page.tags.count("svg") == 4  # two for the gaps, two for the instances
    assert page.tags.count("h1") == 1


def test_the_same_results_give_the_same_page(folder, text):
    write(folder)
    assert (folder / "report.html").read_text(encoding="utf-8") == text
    assert not list(folder.glob("*.partial"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("results.nc", None, "no such file"),
        ("results.nc", b"", "cannot be read as netCDF"),
        ("results.nc", b"not netCDF at all" * 9, "cannot be read as netCDF"),
        ("results.nc", 3000, "cannot be read as netCDF"),
        ("results.nc", xarray.Dataset({"x": 1}), "not the results of a sweep: it has no attribute"),
        ("results.nc", example().drop_vars("pulls"), "has no variable 'pulls'"),
        ("results.nc", example().isel(gap=[]), "holds no gap"),
        ("results.nc", example().mean("algorithm", keep_attrs=True), "average nothing over them"),
        ("results.nc", example().assign_attrs(axes="[gap"), "'axes' is not JSON"),
        ("results.nc", example().assign_attrs(options="[]"), "'options' is not a table"),
        ("results.nc", example().assign_attrs(seed="x"), "'seed' is not a whole number"),
        ("claims.json", b"[", "cannot be read as JSON"),
        ("claims.json", b"[1]", "must be a list of objects"),
    ],
)
def test_bad_folders_are_refused_and_nothing_is_written(tmp_path, name, content, words):
    file = stored(tmp_path, example()) / name
    (tmp_path / "report.html").write_text("kept")
    if content is None:
        file.unlink()
    elif isinstance(content, int):
        file.write_bytes(file.read_bytes()[:content])
    elif isinstance(content, bytes):
        file.write_bytes(content)
    else:
        save(content, file)
    result = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert str(file) in line
    assert words in line
    assert (tmp_path / "report.html").read_text() == "kept"
    assert not list(tmp_path.glob("*.partial"))


def test_a_missing_folder_is_refused(tmp_path):
    result = CliRunner().invoke(main, ["report", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert result.stderr == f"error: {tmp_path / 'none'}: there is no such folder\n"


def test_the_command_says_where_the_page_is(tmp_path):
    stored(tmp_path, example(instances=("one",)))
    result = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert result.output == f"report: {tmp_path / 'report.html'}\n"


def test_a_page_that_cannot_be_put_in_place_leaves_the_old_one(folder, text, monkeypatch):
    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="no space left"):
        write(folder)
    assert (folder / "report.html").read_text(encoding="utf-8") == text
    assert not list(folder.glob("*.partial"))


def test_measured_values_of_any_structure_become_text():
    assert measured_text(3) == "3"
    assert measured_text({"a": {"2": 1.5}, "ok": True}) == "a: 2: 1.5; ok: True"
    assert measured_text({"whole": 724795, "mean": 724795.3}) == "whole: 724,795; mean: 724,800"
    assert measured_text(list(range(20))).endswith("10, 11, … (20 in all)]")
    assert measured_text({"a": 2.0, "standard_error_of_log": 1e9}) == "a: 2"
    few = {"a": 2.0, "standard_error": 0.1, "replications": 3, "replicas": 4}
    assert measured_text(few) == "a: 2.00 ± 0.43; replicas: 4"
    assert measured_text({"b": few}) == "b: a: 2.00 ± 0.43, replicas: 4"
    assert measured_text({"b": {"a": 2.0, "standard_error": 0.1}}, 3) == "b: 2.00 ± 0.43"
    assert measured_text({"replications": 3}) == "replications: 3"
    assert measured_text({"a": [1.0], "standard_errors": [0.5, 0.5]}) == "a: [1]"


@pytest.mark.parametrize("measured", [3, None, [1.5], "not_played"])
def test_a_claim_without_a_verdict_may_rest_on_anything(measured):
    row = {"claim": "a < b", "measured": measured, "holds": None}
    found = claims_of([row, {**row, "measured": {"not_played": ["a"]}}], 20)
    assert [one.verdict for one in found.claims] == ["too small to tell", "not played"]


def test_panels_and_tables_tell_values_of_an_axis_apart(tmp_path):
    dataset = example(instances=("one",)).assign_coords(gap=[1e6, 1000000.5])
    dataset = dataset.expand_dims({"dim": [2, 3, 4]}, axis=3)
    dataset = dataset.transpose("instance", "algorithm", "gap", "dim", "replication")
    dataset.attrs["axes"] = '["gap", "dim"]'
    text = write(stored(tmp_path, dataset)).read_text(encoding="utf-8")
    assert set(re.findall(r"gap = (\d[\d.e+]*)", text)) == {"1000000", "1000000.5"}
    assert "1e+06" not in text
    part = plot.figure(dataset.isel(gap=[0]), whole=dataset)
    assert part.axes[0].get_title() == "one, gap = 1000000"


def test_labels_on_a_terminal_are_never_read_as_markup(capsys):
    names = "1:100:1", r"a\[b]", "[red]x[/red]"
    print_table(example(instances=("one",), algorithms=names))
    text = capsys.readouterr().out
    assert all(name in text for name in names)


def test_instances_with_numbers_for_names_have_a_page(tmp_path):
    page = Reader(write(stored(tmp_path, example(instances=(3, 4)))).read_text(encoding="utf-8"))
    assert "Cells of 3" in page.words


def test_estimates_on_a_terminal():
    text = partial(estimates.estimate, style=estimates.TERMINAL)
    assert text(1234.5, 10.2) == "1234 ± 10"
    assert text(1234.5, 10.2, at_least=True) == ">= 1234 ± 10"
    assert text(40.0, 0.0) == "40"
    assert text(2.5, float("nan")) == "2.50"
    assert text(0.05, interval=(0.0123, 0.12), digits=3) == "0.05 [0.012, 0.12]"
    assert text(float("nan"), interval=(0.0, 1.0), digits=3) == "-"  # nothing is known
