"""The HTML report in a browser: its width, and its network requests."""

import html
import json
import re
import shutil
import subprocess

import pytest
from pages import two_folders

BROWSER = next(filter(shutil.which, ("chromium", "chromium-browser", "google-chrome")), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return two_folders(tmp_path_factory.mktemp("results"))


def chromium(profile, *options):
    """Standard output of Chromium, without a window and without any host that it could reach."""
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND", *options,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def requests(page, folder):
    """Addresses that the page requested; the browser's own requests are left out."""
    log = folder / "net.json"
    chromium(folder / "profile", f"--log-net-log={log}", "--dump-dom", page.as_uri())
    net = json.loads(log.read_text(encoding="utf-8"))
    start = net["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    found = [event.get("params", {}) for event in net["events"] if event["type"] == start]
    return [one["url"] for one in found if one.get("initiator") not in (None, "not an origin")]


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_is_no_wider_than_the_window(page, tmp_path, width):
    # A window has a least width, a frame has none. The page's policy forbids scripts, so the
    # script that measures it belongs to the document around the frame.
    text, file = page.read_text(encoding="utf-8"), tmp_path / "frame.html"
    file.write_text(
        f'<iframe id="f" style="width:{width}px;border:0" srcdoc="{html.escape(text)}"></iframe>'
        "<script>onload = () => { const d = document.getElementById('f').contentDocument;"
        "document.title = [d.documentElement.clientWidth, d.documentElement.scrollWidth,"
        "d.body.scrollWidth, d.querySelector('table').scrollWidth]; }</script>",
        encoding="utf-8",
    )
    dom = chromium(tmp_path / "profile", "--window-size=1300,800", "--dump-dom", file.as_uri())
    window, whole, body, table = map(int, re.search(r"<title>(.*?)</title>", dom)[1].split(","))
    assert width - 20 <= window <= width  # less a scroll bar
    assert max(whole, body) <= window
    assert table > 360  # the box around the table scrolls, so that the page stays narrow


def test_the_page_makes_no_network_request(page, tmp_path):
    twin = tmp_path / "twin.html"
    twin.write_text('<!DOCTYPE html><title>twin</title><img src="http://elsewhere.invalid/x.png">')
    assert requests(twin, tmp_path) == ["http://elsewhere.invalid/x.png"]
    assert requests(page, tmp_path) == []
