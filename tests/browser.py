"""A browser without a window, for tests of pages."""

import html
import json
import re
import shutil
import subprocess

import pytest

# Firefox prints no document on a command line, so that Chromium and its relatives are used.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(shutil.which, BROWSERS), None)
needed = [
    pytest.mark.skipif(
        BROWSER is None, reason=f"none of these browsers is on the PATH: {', '.join(BROWSERS)}"
    ),
    pytest.mark.slow,  # a browser takes about a second to start
]


def chromium(profile, *options):
    """Standard output of Chromium, without a window and without any host that it could reach."""
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND", *options,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout


def found_by(script, folder, *options, body=""):
    """What a script writes as JSON into the title of a page that may look into its frames."""
    file = folder / "frames.html"
    file.write_text(f"<body>{body}<script>{script}</script>", encoding="utf-8")
    look = "--allow-file-access-from-files"
    dom = chromium(folder / "profile", look, *options, "--dump-dom", file.as_uri())
    return json.loads(html.unescape(re.search(r"<title>(.*?)</title>", dom, re.DOTALL)[1]))
