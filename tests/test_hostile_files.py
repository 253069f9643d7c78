"""Files made to do harm are refused, or hold what passes every check: no crash, no hang, no gigabytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process is forked for every file")
@pytest.mark.parametrize("kind", ["models", "recordings", "json"])
def test_hostile_files_are_refused_or_pass_every_check(kind):
    script = Path(__file__).parent / "hostile_files.py"
    done = subprocess.run(
        [sys.executable, str(script), kind, "--count", "150"], capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "read" in done.stdout
    assert "refused" in done.stdout
