"""Pictures of every page, wide and on a telephone, by day and by night, and what is wrong with how they look.

    python tools/screenshots.py [PAGE …]

Without pages it makes them first: the commands on the examples, and a quick reproduction. A browser without a window
(Chromium, as Debian has it) then shows each page in a frame of 1,400 and of 390 pixels; a page that can be scrolled
sideways, or has text with less contrast than WCAG AA asks for, is a fault, and named. Pictures: out/screenshots.
"""

from __future__ import annotations

import html
import json
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path("out/screenshots")
WIDTHS = (1400, 390)
SCHEMES = {"light": 1, "dark": 0}  # as the browser numbers them
TALLEST = 16_000  # pixels of a picture; what is below is in a second one, NAME-2.png, and so on
QUIET = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --disable-extensions --hide-scrollbars --allow-file-access-from-files --virtual-time-budget=4000"
)
FEW = '--expert "who = guide and day <= 2"'
COMMANDS = {  # what makes each page
    "fit": 'fit museum --expert "who = guide"',
    "fit-unlabelled": f'fit museum {FEW} --unlabelled "who = tourist" --test "who = guide and day > 2"',
    "fit-base": f'fit museum {FEW} --unlabelled "who = class" --reference unlabelled --test "who = guide and day > 2"',
    "fit-recordings": (
        'fit walks.csv --dynamics fitted --discount 0.9 --expert "who = guide and trajectory_id < 8" '
        '--unlabelled "who = other" --test "who = guide and trajectory_id >= 8"'
    ),
    "fit-roads": 'fit roads --expert "who = commuter" --ratio g_minutes/g_toll --without g_left',
    "select": f'select museum {FEW} --unlabelled "who = tourist"',
    "diagnose": f'diagnose museum {FEW} --unlabelled "who = class"',
    "diagnose-by": f'diagnose museum {FEW} --unlabelled "who != guide" --by who',
    "evaluate": 'evaluate out/fit museum --test "who = tourist"',
    "compare": f'compare museum {FEW} --unlabelled "who = tourist" --methods MaxEnt,MESSI,LightPoolingStd,Cloning',
    "benchmark": "benchmark --quick --methods MaxEnt,MESSI,Cloning",
    "reproduce": "reproduce --quick",
}
FRAME = """<!DOCTYPE html><meta name="color-scheme" content="light dark"><body style="margin:0;background:#888">
<iframe id="frame" src="{page}"
  style="border:0;display:block;width:{width}px;height:{height}px;margin-top:-{top}px"></iframe>
<pre id="found"></pre>
<script>
function parts(colour) {{ return colour.match(/[\\d.]+/g).map(Number); }}
function luminance(c) {{
  const l = c.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2];
}}
function behind(element) {{
  for (let e = element; e; e = e.parentElement) {{
    const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0.99) return c;
  }}
  return [255, 255, 255];
}}
document.getElementById("frame").onload = event => {{
  const page = event.target.contentDocument, root = page.documentElement, faint = new Set();
  for (const e of page.body.querySelectorAll("*")) {{
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const style = getComputedStyle(e), [a, b] = [luminance(parts(style.color)), luminance(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faint.add(e.tagName + "." + e.className + " " + contrast.toFixed(2));
  }}
  const small = [...page.images].filter(i => i.clientWidth > 0 && i.clientWidth < i.naturalWidth * 0.6);
  document.getElementById("found").textContent = JSON.stringify({{
    height: root.scrollHeight, sideways: root.scrollWidth - root.clientWidth, faint: [...faint],
    dark: matchMedia("(prefers-color-scheme: dark)").matches, images: page.images.length, small: small.length,
  }});
}};
</script>"""


def make(out: Path) -> list[Path]:
    """Run the commands in a folder; the pages they wrote, each in a folder of its name."""
    work = out / "work"
    shutil.rmtree(work, ignore_errors=True)  # results of another commit are never taken up
    work.mkdir(parents=True, exist_ok=True)
    messirl = [sys.executable, "-m", "messirl.app.cli"]
    for example in ("museum", "roads"):
        subprocess.run([*messirl, "example", example, "--force"], cwd=work, check=True, stdout=subprocess.DEVNULL)
    write_walks(work / "walks.csv")
    for name, command in COMMANDS.items():
        print(f"messirl {command}", flush=True)
        words = [*shlex.split(command), "--out", f"out/{name}"]
        subprocess.run([*messirl, *words], cwd=work, check=True, capture_output=True)
    return [work / "out" / name / "report.html" for name in COMMANDS]


def write_walks(place: Path) -> None:
    """Walks on a plane, for a fit to recordings: guides go to the right and keep to the middle, others anywhere."""
    draw = random.Random(0)
    moves = ((0.1, 0.0), (-0.1, 0.0), (0.0, 0.1), (0.0, -0.1))
    rows = ["trajectory_id,step,o_x,o_y,action,who"]
    for i in range(36):
        x, y, guide = draw.uniform(-1, 0), draw.uniform(-1, 1), i < 16
        for step in range(25):
            wish = 0 if abs(y) < 0.2 else 3 if y > 0 else 2
            action = wish if guide and draw.random() < 0.8 else draw.randrange(4)
            taken = "" if step == 24 else str(action)
            rows.append(f"{i},{step},{x:.4f},{y:.4f},{taken},{'guide' if guide else 'other'}")
            x, y = x + moves[action][0] + draw.gauss(0, 0.02), y + moves[action][1] + draw.gauss(0, 0.02)
    place.write_text("\n".join(rows) + "\n", encoding="utf-8")


def browser() -> str:
    """The browser's program."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    sys.exit("there is no Chromium here: install it (on Debian: apt-get install chromium)")


def look(program: str, page: Path, name: str, width: int, scheme: str, out: Path) -> list[str]:
    """Take one picture; what is wrong with the page."""
    with tempfile.TemporaryDirectory() as place:
        quiet = [*QUIET.split(), f"--user-data-dir={place}", f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
        frame = Path(place) / "frame.html"

        def show(height: int, *options: str, top: int = 0) -> str:
            text = FRAME.format(page=html.escape(page.resolve().as_uri()), width=width, height=height, top=top)
            frame.write_text(text, encoding="utf-8")
            seen = min(height - top, TALLEST)
            words = [program, *quiet, f"--window-size={max(width, 600)},{seen}", *options, frame.as_uri()]
            done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=True)
            return done.stdout

        found = re.search(r'<pre id="found">(.*?)</pre>', show(1200, "--dump-dom"), re.DOTALL)
        if found is None or not found[1]:
            return ["the browser did not show it"]
        seen = json.loads(html.unescape(found[1]))
        for old in out.glob(f"{name}-{width}-{scheme}*.png"):  # of a page that was taller
            old.unlink()
        for k, top in enumerate(range(0, seen["height"], TALLEST), start=1):
            called = f"{name}-{width}-{scheme}{'' if k == 1 else f'-{k}'}.png"
            show(seen["height"], f"--screenshot={(out / called).resolve()}", top=top)
    faults = [f"{seen['sideways']} pixels too wide"] if seen["sideways"] > 0 else []
    faults += [f"shown by {'night' if seen['dark'] else 'day'}"] if seen["dark"] != (scheme == "dark") else []
    return faults + [f"faint text: {text}" for text in seen["faint"]]


def main() -> None:
    """Look at every page in every way."""
    program = browser()
    pages = [Path(word) for word in sys.argv[1:]] or make(OUT)
    OUT.mkdir(parents=True, exist_ok=True)
    wrong = taken = 0
    for page in pages:
        for width in WIDTHS:
            for scheme in SCHEMES:
                faults = look(program, page, page.parent.name, width, scheme, OUT)
                wrong += len(faults)
                taken += len(list(OUT.glob(f"{page.parent.name}-{width}-{scheme}*.png")))
                for fault in faults:
                    print(f"{page.parent.name}, {width} pixels, {scheme}: {fault}")
    views = len(pages) * len(WIDTHS) * len(SCHEMES)
    print(f"{len(pages)} pages, {views} views in {taken} pictures in {OUT}: {wrong} faults")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
