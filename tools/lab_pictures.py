"""The pictures of the page and of a report that the documents show: lab.png, lab-dark.png, lab-phone.png, report.png.

    python tools/lab_pictures.py

Starts messirl lab on this machine, looks at it with Debian's Chromium through Playwright, and writes small PNGs.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

DOCS = Path(__file__).resolve().parent.parent / "docs"
CHROMIUM = "/usr/bin/chromium"
QUIET = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"
LARGEST = 300_000  # bytes
MESSIRL = [sys.executable, "-m", "messirl.app.cli"]
FIT = 'fit museum --expert "who = guide and day <= 2" --unlabelled "who = tourist" --test "who = guide and day > 2"'
LAB = {  # width, height, colours, what is shown
    "lab": (1360, 800, "light", "scene=gridworld&second=MaxEnt"),
    "lab-dark": (1360, 900, "dark", "scene=highway&second=MaxEnt"),
    "lab-phone": (390, 780, "light", "scene=pit&others=true"),
}


def settled(page: Page) -> None:
    """Wait for the exact fit."""
    for _ in range(600):
        if page.evaluate("globalThis.lab?.shown.found?.rough === false && lab.idle()"):
            page.wait_for_timeout(300)
            return
        time.sleep(0.1)
    sys.exit("the page did not come to rest")


def look(browser: Browser, url: str, name: str, wide: int, high: int, scheme: str = "light", scale: float = 1) -> None:
    page = browser.new_page(viewport={"width": wide, "height": high}, color_scheme=scheme, device_scale_factor=scale)
    page.goto(url)
    if url.startswith("http"):
        settled(page)
    target = DOCS / f"{name}.png"
    page.screenshot(path=target)
    page.close()
    if target.stat().st_size > LARGEST:
        sys.exit(f"{target} has {target.stat().st_size:,} bytes, and should have at most {LARGEST:,}")
    print(f"{target.name}: {target.stat().st_size:,} bytes")


def main() -> None:
    command = [*MESSIRL, "lab", "--port", "0", "--no-browser"]
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        subprocess.run([*MESSIRL, "example", "museum"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*MESSIRL, *shlex.split(FIT)], cwd=place, check=True, capture_output=True)
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
        try:
            assert server.stdout is not None
            address = re.search(r"http\S+", server.stdout.readline())[0]
            for name, (wide, high, scheme, fragment) in LAB.items():
                look(browser, f"{address}#{fragment}", name, wide, high, scheme)
            look(browser, (Path(place) / "out/fit/report.html").as_uri(), "report", 1200, 900, "light")
        finally:
            browser.close()
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
