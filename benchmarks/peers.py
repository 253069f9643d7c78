"""`make bench-peers`: against other packages, where they are installed; each in a process of its own, with a cap."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import asdict

from benchmarks.table import Row, markdown

PEERS = {"imitation": "peer_imitation", "irl-maxent": "peer_irl_maxent", "econirl": "peer_econirl"}
CAP = 900  # seconds a package is given in all


def main() -> None:
    """The table. A package that runs out of time keeps the lines it has."""
    rows: list[Row] = []
    for name in PEERS:
        try:
            done = subprocess.run([sys.executable, "-m", "benchmarks.peers", name], capture_output=True, timeout=CAP)
            text, trouble = done.stdout, done.stderr.decode().strip().splitlines()[-1:] if done.returncode else []
        except subprocess.TimeoutExpired as late:
            text, trouble = late.stdout or b"", [f"stopped after {CAP} s"]
        rows.extend(Row(**json.loads(line)) for line in text.decode().splitlines() if line.startswith("{"))
        rows.extend(Row(f"{name}: {what}", "", "") for what in trouble)
    print(markdown(rows))


def run(name: str) -> None:
    """The lines of one package, as JSON, each as soon as it is known."""
    try:
        part = importlib.import_module(f"benchmarks.{PEERS[name]}")
    except ImportError as missing:
        print(json.dumps(asdict(Row(f"{name}: not installed ({missing.name})", "", ""))))
        return
    for row in part.rows():
        print(json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    run(sys.argv[1]) if len(sys.argv) > 1 else main()
