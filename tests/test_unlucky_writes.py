"""A full disk or a kill while results are written: the folder holds the old result or the new one."""

from __future__ import annotations

import sys

import pytest
import unlucky_writes


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process is forked for every point")
@pytest.mark.parametrize("how", ["disk full", "kill"])
@pytest.mark.parametrize("command", unlucky_writes.COMMANDS)
def test_a_folder_holds_the_old_result_or_the_new_one(command, how):
    assert list(unlucky_writes.cases(command, 8, how)) == []
