"""What several files of tests ask for."""

from __future__ import annotations

import pytest

from messirl import cli


@pytest.fixture
def run(capsys):
    """A command in this process: its standard output; it must succeed."""

    def command(*words):
        code = cli.main([str(word) for word in words])
        written = capsys.readouterr()
        assert code == 0, written.err
        return written.out

    return command
