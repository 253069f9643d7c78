"""`make bench-lab`: how soon the page of messirl lab follows a slider, in Debian's Chromium.

From the last move of λ0 to the picture that shows it, on the gridworld of 16 × 16: what the page itself measures, of
fifty drags. The machine should have nothing else to do: the browser, the server and the fit are three processes.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time

from playwright.sync_api import Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
QUIET = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"
COMMAND = (sys.executable, "-m", "messirl.app.cli", "lab", "--port", "0", "--no-browser")
DRAGS, MOVES = 50, 6
AIM = 200.0  # milliseconds


def drag(page: Page, begin: float, end: float) -> None:
    """Drag λ0 from one share of its slider to another."""
    box = page.locator("#lambda0").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    places = [box["x"] + 8 + (begin + (end - begin) * i / MOVES) * (box["width"] - 16) for i in range(MOVES + 1)]
    page.mouse.move(places[0], y)
    page.mouse.down()
    for x in places[1:]:
        page.mouse.move(x, y)
    page.mouse.up()


def until(page: Page, what: str) -> None:
    """Wait until something is true of the page, whose policy forbids Playwright's own way of waiting."""
    end = time.monotonic() + 60
    while not page.evaluate(what):
        if time.monotonic() > end:
            sys.exit(f"the page did not come to rest: {what}")
        time.sleep(0.05)


def measured(page: Page, address: str) -> list[float]:
    """Milliseconds of each drag; the first one, which compiles, is left out."""
    page.goto(f"{address}#scene=gridworld")
    until(page, "globalThis.lab?.shown.found?.rough === false && lab.idle()")
    for i in range(DRAGS + 1):
        drag(page, *((0.3, 0.6) if i % 2 else (0.6, 0.3)))
        until(page, f"lab.timings.length > {i} && lab.idle()")
    return [float(t) for t in page.evaluate("lab.timings")][1:]


def main() -> int:
    """Print the median and the slowest tenth; 1 if the median is beyond what is aimed at."""
    server = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = re.search(r"http\S+", server.stdout.readline())
        assert address is not None
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET.split())
            took = measured(browser.new_page(viewport={"width": 1400, "height": 1000}), address[0])
            browser.close()
    finally:
        server.terminate()
        server.wait()
    median, slow = statistics.median(took), statistics.quantiles(took, n=10)[-1]
    print(f"from the last move of the slider to the picture, 16 × 16, {len(took)} drags: median {median:.0f} ms,")
    print(f"nine of ten within {slow:.0f} ms; {AIM:.0f} ms are aimed at{'' if median <= AIM else ', and missed'}")
    return int(median > AIM)


if __name__ == "__main__":
    sys.exit(main())
