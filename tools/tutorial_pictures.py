"""The pictures of the tutorial: import.png, fit.png and diagnosis.png in docs/tutorial.

    python tools/tutorial_pictures.py

Runs the commands that stand in docs/tutorial.md, in a folder of their own, and looks at what they write.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from pathlib import Path

from lab_pictures import CHROMIUM, DOCS, MESSIRL, QUIET, look
from PIL import Image
from playwright.sync_api import sync_playwright

SHOWN = {"fit": "out/fit", "diagnosis": "out/diagnosis"}  # picture: the folder of its page
WIDE, HIGH, SCALE = 1200, 780, 0.75  # of the screen, and pixels of the picture for one of it


def commands() -> list[list[str]]:
    """What the tutorial says to type, without what makes no picture."""
    page = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    typed = [shlex.split(line) for line in re.findall(r"^\$ messirl (.*)$", page, flags=re.MULTILINE)]
    return [words for words in typed if words[0] in ("import", "fit", "diagnose")]


def small(source: Path, target: Path) -> None:
    """A picture in a thousand pixels across and 256 colours."""
    with Image.open(source) as picture:
        high = round(picture.height * 1000 / picture.width)
        picture.convert("RGB").resize((1000, high), Image.Resampling.LANCZOS).quantize(256).save(target, optimize=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        place = Path(name)
        (place / "docs").symlink_to(DOCS)
        for words in commands():
            subprocess.run([*MESSIRL, *words], cwd=place, check=True, capture_output=True)
        small(place / "valley" / "import.png", DOCS / "tutorial" / "import.png")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        for picture, folder in SHOWN.items():
            url = (place / folder / "report.html").as_uri()
            look(browser, url, f"tutorial/{picture}", WIDE, HIGH, scale=SCALE)
        browser.close()


if __name__ == "__main__":
    main()
