"""The HTML report in a browser: its width, its links, and its network requests."""

import json
import re

import pytest
from browser import chromium, found_by, needed
from pages import two_folders

WIDTHS = (420, 1280)
pytestmark = needed
# Runs in the document around the frames, as the page's policy forbids scripts. It follows each link
# of the contents, and tells how far the section is from the top of the window, and whether the
# page ends there.
SCRIPT = """
onload = () => {
  const found = [];
  for (const frame of document.querySelectorAll('iframe')) {
    const page = frame.contentDocument, root = page.documentElement;
    const sizes = [root.clientWidth, root.scrollWidth, page.body.scrollWidth,
                   page.querySelector('table').scrollWidth];
    const links = [];
    for (const link of page.querySelectorAll('nav a, a.skip')) {
      frame.contentWindow.scrollTo(0, 0);
      frame.contentWindow.location.hash = link.hash;  // at once, where a click may be queued
      const target = page.getElementById(decodeURIComponent(link.hash.slice(1)));
      const ends = root.scrollTop + root.clientHeight >= root.scrollHeight - 2;
      links.push([link.hash, target ? target.getBoundingClientRect().top : null, ends]);
    }
    found.push({sizes, links});
  }
  document.title = JSON.stringify(found);
}
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return two_folders(tmp_path_factory.mktemp("results"))


def requests(page, folder):
    """Addresses that the page requested; the browser's own requests are left out."""
    log = folder / "net.json"
    chromium(folder / "profile", f"--log-net-log={log}", "--dump-dom", page.as_uri())
    net = json.loads(log.read_text(encoding="utf-8"))
    start = net["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    found = [event.get("params", {}) for event in net["events"] if event["type"] == start]
    return [one["url"] for one in found if one.get("initiator") not in (None, "not an origin")]


@pytest.fixture(scope="module")
def measured(page, tmp_path_factory):
    """What `SCRIPT` finds, by width; a window has a least width, a frame has none."""
    folder = tmp_path_factory.mktemp("frames")
    frames = [
        f'<iframe style="width:{width}px;height:800px;border:0" src="{page.as_uri()}"></iframe>'
        for width in WIDTHS
    ]
    found = found_by(SCRIPT, folder, body="\n".join(frames))
    return dict(zip(WIDTHS, found, strict=True))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_no_wider_than_the_window(measured, width):
    window, whole, body, table = measured[width]["sizes"]
    assert width - 20 <= window <= width  # less a scroll bar
    assert max(whole, body) <= window
    assert table > 420  # the box around the table scrolls, so that the page stays narrow


@pytest.mark.parametrize("width", WIDTHS)
def test_the_links_of_the_contents_reach_their_sections(page, measured, width):
    links = measured[width]["links"]
    text = page.read_text(encoding="utf-8")
    assert len(links) == len(re.findall(r"<section ", text)) + 1  # and the skip link
    for name, top, at_the_end in links:
        assert top is not None, f"{name} leads nowhere"
        assert -2 <= top <= 20 or (at_the_end and 0 <= top < 800), (name, top)


def test_the_page_makes_no_network_request(page, tmp_path):
    twin = tmp_path / "twin.html"
    twin.write_text('<!DOCTYPE html><title>twin</title><img src="http://elsewhere.invalid/x.png">')
    assert requests(twin, tmp_path) == ["http://elsewhere.invalid/x.png"]
    assert requests(page, tmp_path) == []
