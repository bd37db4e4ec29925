"""The page of a folder's results: its numbers, its guards, and what it refuses."""

import html.parser
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
import xarray
from click.testing import CliRunner

from jaxbandits.cli import main
from jaxbandits.report import numbers, write
from jaxbandits.report.claims import measured_text
from jaxbandits.results import binomial_interval, standard_error
from jaxbandits.sweeps.dataset import write as save

HOSTILE = '<script>alert("1")</script> & $x'
GRID = ("instance", "algorithm", "gap")
CLAIMS = [
    {"claim": "a < b", "measured": {"ratio": 1.2345, "standard_error": 0.12}, "holds": True},
    {"claim": "no", "measured": {"means": [10.0], "standard_errors": [1.5]}, "holds": False},
    {"claim": "perhaps", "measured": {"low": None, "runs": 12000}, "holds": None},
]
VOID = {"meta", "link"}
BROWSER = next(filter(shutil.which, ("chromium", "chromium-browser", "google-chrome")), None)


def example(*, instances=("soare", HOSTILE), algorithms=("LinGapE", "GSE"), regret=False):
    """A sweep's dataset with made-up runs: some err, and in the last cell some are cut short."""
    rng = np.random.default_rng(0)
    shape = (len(instances), len(algorithms), 2)
    pulls = rng.integers(500, 2000, (*shape, 20))
    correct, stopped = rng.random(pulls.shape) < 0.8, np.ones(pulls.shape, bool)
    stopped[-1, -1, -1, :5] = False
    errors, finished = (stopped & ~correct).sum(-1), stopped.sum(-1)
    bounds = [binomial_interval(*pair) for pair in zip(errors.flat, finished.flat, strict=True)]
    low, high = np.reshape(bounds, (*shape, 2)).transpose(3, 0, 1, 2)
    columns = {name: (GRID, values) for name, values in {
        "cut_short": 20 - finished, "errors": errors, "error_rate": errors / finished,
        "error_low": low, "error_high": high, "seconds": rng.random(shape),
        "pulls_mean": pulls.mean(-1), "pulls_se": pulls.std(-1, ddof=1) / 20**0.5,
        "pulls_mean_is_lower_bound": finished < 20,
    }.items()}  # fmt: skip
    runs = {"pulls": pulls, "correct": correct, "stopped": stopped}
    columns |= {name: ((*GRID, "replication"), values) for name, values in runs.items()}
    coordinates = {"instance": list(instances), "algorithm": list(algorithms), "gap": [0.5, 0.25]}
    if regret:
        curves = rng.random((*shape, 20, 6)).cumsum(-1)
        columns["regret"] = ((*GRID, "replication", "round"), curves)
        coordinates["round"] = np.arange(1, 7)
    tables = {f"[algorithms.{name}]": {"constructor": f"a.b.{name}", "delta": "0.05"}
              for name in algorithms}  # fmt: skip
    attributes = {
        "jaxbandits": "0.1.0", "jax": "0.8.0", "device": "cpu", "seed": 7, "replications": 20,
        "max_pulls": 2000, "horizon": 6 if regret else 0, "axes": '["gap"]',
        "options": json.dumps(tables),
    }  # fmt: skip
    return xarray.Dataset(columns, coordinates, attributes)


def stored(folder, dataset, claims=None):
    folder.mkdir(parents=True, exist_ok=True)
    save(dataset, folder / "results.nc")
    if claims is not None:
        (folder / "claims.json").write_text(json.dumps(claims))
    return folder


class Reader(html.parser.HTMLParser):
    """Reads the page strictly: every tag closed where it must be, every reference noted."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.addresses, self.ids, self.rows = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
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
    """Two folders of results, one of them with claims."""
    path = tmp_path_factory.mktemp("results")
    stored(path / "regret", example(regret=True, instances=("cube",)))
    stored(path / "paper/fig1", example(), CLAIMS)
    write(path)
    return path


@pytest.fixture(scope="module")
def text(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


def test_numbers_on_the_page_are_those_of_the_dataset(tmp_path):
    dataset = example()
    dataset["pull_lower_bound"] = dataset.pulls_mean / 4
    page = Reader(write(stored(tmp_path, dataset)).read_text(encoding="utf-8"))
    header, *cells = page.rows[:5]
    assert header == [
        "algorithm", "gap", "errors", "error rate [95%]", "cut short", "mean pulls",
        "median pulls", "5% to 95%", "pulls / lower bound", "seconds",
    ]  # fmt: skip
    one = dataset.isel(instance=0, algorithm=0, gap=1)
    row = dict(zip(header, cells[1], strict=True))
    assert (row["algorithm"], row["gap"]) == ("LinGapE", "0.25")
    assert row["errors"] == f"{int(one.errors)} of 20"
    rate, low, high = map(float, re.findall(r"[\d.]+", row["error rate [95%]"]))
    np.testing.assert_allclose(rate, one.error_rate, rtol=1e-3)
    np.testing.assert_allclose((low, high), (one.error_low, one.error_high), rtol=0.06)
    mean, error = (float(x.replace(",", "")) for x in row["mean pulls"].split(" ± "))
    np.testing.assert_allclose(error, one.pulls_se, rtol=0.06)
    assert abs(mean - one.pulls_mean) < one.pulls_se / 10
    assert row["pulls / lower bound"].startswith("4.0")
    assert row["cut short"] == "0"
    last = page.rows[9]
    assert last[4] == "5"
    assert last[5].startswith("≥ ")


def test_regret_and_lower_bounds_have_columns_only_where_they_are_known(folder, text):
    assert "pulls / lower bound" not in text
    header = "regret at round 6"
    assert text.count(header) == 1
    with xarray.open_dataset(folder / "regret/results.nc") as dataset:
        last = dataset.regret.isel(instance=0, algorithm=0, gap=0, round=-1).values
    expected = numbers.estimate(last.mean(), standard_error(last))
    assert expected in text


def test_what_was_run_claims_and_environment(text):
    words = " ".join(Reader(text).words)
    for part in (
        "LinGapE(delta=0.05)", "0.5, 0.25", "20 in each cell", "2,000 pulls", "6 rounds", "cpu",
        "ratio: 1.23 ± 0.12", "means: 10.0 ± 1.5", "low: –; runs: 12,000", "a < b", HOSTILE,
        "0.8.0",
    ):  # fmt: skip
        assert part in words
    verdicts = re.findall(r"<strong class=\"(\w+)\">([^<]*)", text)
    assert verdicts == [("holds", "holds"), ("fails", "fails"), ("open", "too small to tell")]


def test_labels_are_never_mark_up(text):
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
    assert page.tags.count("svg") == 4  # of two gaps and of two instances
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
        ("results.nc", example().drop_vars("pulls"), "it has no variable 'pulls'"),
        ("results.nc", example().isel(gap=0), "on the dimensions"),
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


def test_no_folder(tmp_path):
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


def test_measured_numbers_of_any_shape():
    assert measured_text(3) == "3"
    assert measured_text({"a": {"2": 1.5}, "ok": True}) == "a: 2: 1.5; ok: True"
    assert measured_text({"whole": 724795, "mean": 724795.0}) == "whole: 724,795; mean: 724,800"
    assert measured_text(list(range(20))).endswith("10, 11, … (20 in all)")


def chromium(profile, *options):
    """What the browser prints; it opens no window and finds no other machine."""
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND", *options,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def requests(page, folder):
    """Addresses that a page, and not the browser of its own accord, asked for."""
    log = folder / "net.json"
    chromium(folder / "profile", f"--log-net-log={log}", "--dump-dom", page.as_uri())
    net = json.loads(log.read_text(encoding="utf-8"))
    start = net["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    found = [event.get("params", {}) for event in net["events"] if event["type"] == start]
    return [one["url"] for one in found if one.get("initiator") not in (None, "not an origin")]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_is_no_wider_than_the_window(text, tmp_path, width):
    # A window has a least width, a frame has none. The policy forbids scripts, so the frame
    # holds the page and the measuring stands outside it.
    file = tmp_path / "frame.html"
    file.write_text(
        f'<iframe id="f" style="width:{width}px;border:0" srcdoc="{html.escape(text)}"></iframe>'
        "<script>onload = () => { const d = document.getElementById('f').contentDocument;"
        "document.title = [d.documentElement.clientWidth, d.documentElement.scrollWidth,"
        "d.body.scrollWidth, d.querySelector('table').scrollWidth]; }</script>",
        encoding="utf-8",
    )
    dom = chromium(tmp_path / "profile", "--window-size=1300,800", "--dump-dom", file.as_uri())
    window, page, body, table = map(int, re.search(r"<title>(.*?)</title>", dom)[1].split(","))
    assert width - 20 <= window <= width  # less a scroll bar
    assert max(page, body) <= window
    assert table > 360  # which the box around it hides from the page


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_the_page_asks_the_network_for_nothing(folder, tmp_path):
    twin = tmp_path / "twin.html"
    twin.write_text('<!DOCTYPE html><title>twin</title><img src="http://elsewhere.invalid/x.png">')
    assert requests(twin, tmp_path) == ["http://elsewhere.invalid/x.png"]
    assert requests(folder / "report.html", tmp_path) == []
