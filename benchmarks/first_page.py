"""The first picture and the first table of README and site: `python -m benchmarks.first_page`.

It runs the first block of Python in `README.md`, keeps the picture that this draws as
`docs/_static/comparison.png`, and writes what it prints into README and `docs/index.md`, which has
the same block. It takes about a minute.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from jaxbandits.system.files import replacing

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "README.md", ROOT / "docs" / "index.md"
PICTURE = ROOT / "docs" / "_static" / "comparison.png"
DRAWN = "comparison.png"  # by the block
BLOCKS = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)
COLOURS = 64  # of the picture that is kept


def blocks(page):
    """The code of a page and what it is said to print."""
    found = BLOCKS.search(page.read_text(encoding="utf-8"))
    if found is None:
        raise ValueError(f"{page}: there is no block of Python with a block of text below it")
    return found["code"], found["printed"]


def executed(code):
    """What a block prints in a process of its own, and the picture that it saves, as bytes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "block.py").write_text(code, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "block.py"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout, (folder / DRAWN).read_bytes()


def main():
    """Run the block and keep what it gives."""
    from PIL import Image

    code, _ = blocks(PAGES[0])
    printed, picture = executed(code)
    small = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS)
    with replacing(PICTURE) as new:
        small.save(new, format="png", optimize=True)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        with_table = BLOCKS.sub(
            lambda _: f"```python\n{code}```\n\n```text\n{printed}```", text, count=1
        )
        with replacing(page) as new:
            new.write_text(with_table, encoding="utf-8")


if __name__ == "__main__":
    main()
