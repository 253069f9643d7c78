"""The commands in surroundings that are not ours to choose: plain letters, narrow terminals, closed streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from folders import grid, park

from messirl.app import cli

PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}  # no letter beyond ASCII
SMALL = ["--expert", "role = expert", "--unlabelled", "role = unlabelled", "--n-expert", "3", "--n-unlabelled", "4"]
SMALL += ["--lambdas", "1", "--cv", "2"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    here = tmp_path_factory.mktemp("place")
    grid(here / "grid")
    states = "state,f_grün,f_food\ngate,0,0\npond,1,0\nwood,1,0\ncafé,0,1\n"
    park(here / "park", states__csv=states)
    return here


def command(*words, environment=None, **more):
    told = {**os.environ, **(environment or {})}
    words = [sys.executable, "-m", "messirl.app.cli", *map(str, words)]
    return subprocess.run(words, capture_output=True, env=told, timeout=120, check=False, **more)


def shell(text, place):
    """A line of a shell, where @ is the program."""
    text = text.replace("@", f"'{sys.executable}' -m messirl.app.cli")
    return subprocess.run(["sh", "-c", text], capture_output=True, cwd=place, timeout=120, check=False)


# ------------------------------------------------------------ the front door


def test_the_program_alone_explains_itself(capsys):
    assert cli.main([]) == 0
    alone = capsys.readouterr()
    assert alone.err == ""
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert capsys.readouterr().out == alone.out
    assert alone.out.startswith("usage: messirl ")


@pytest.mark.parametrize("words", [["help"], ["help", "fit"]])
def test_help_is_understood_as_a_word(words, capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(words)
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: messirl {'fit FOLDER' if 'fit' in words else 'COMMAND'}")


def test_every_command_stands_on_one_line_of_the_help(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main([]) == 0
    said = capsys.readouterr().out.splitlines()
    for name, text in cli.COMMANDS.items():
        assert any(line.split(maxsplit=1) == [name, text] for line in said if line.strip()), name


# ------------------------------------------------------------ letters


@pytest.mark.slow
@pytest.mark.parametrize("environment", [PLAIN, {"PYTHONIOENCODING": "ascii"}], ids=["locale", "encoding"])
def test_where_there_are_no_greek_letters_a_word_stands_for_them(place, tmp_path, environment):
    done = command("select", place / "grid", *SMALL, "--out", tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr
    assert b"lambda0=" in done.stdout
    assert b"95 % intervals of theta" in command("select", "--help", environment=environment).stdout


@pytest.mark.slow
def test_the_plain_locale_has_all_letters_where_python_can_give_them(place, tmp_path):
    environment = {"LC_ALL": "C"}
    done = command("fit", place / "park", "--no-report", "--no-baselines", "--out", tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "f_grün" in done.stdout.decode()


def test_json_is_the_same_whatever_letters_there_are(place):
    found = [command("show", place / "park", "--json", environment=told) for told in (PLAIN, {"PYTHONUTF8": "1"})]
    plain, full = (json.loads(done.stdout) for done in found)
    assert plain == full
    assert "f_grün" in plain["feature names"]
    assert found[0].stdout.isascii()


def test_a_name_that_is_no_text_is_written_as_it_is(place):
    name = b"p\xffrk"
    try:
        os.rename(os.fsencode(place / "park"), os.fsencode(place) + b"/" + name)
    except OSError:
        pytest.skip("the disk allows no such name")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "messirl.app.cli", "check", name], capture_output=True, cwd=place, check=False
        )
    finally:
        os.rename(os.fsencode(place) + b"/" + name, os.fsencode(place / "park"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(name + b" is fine")


# ------------------------------------------------------------ widths


@pytest.mark.parametrize("name", [None, *cli.COMMANDS])
@pytest.mark.parametrize("columns", [40, 80])
def test_help_fits_the_terminal(name, columns, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        cli.main([*filter(None, [name]), "--help"])
    said = capsys.readouterr().out
    assert all(len(line) <= columns for line in said.splitlines() if not line.startswith(("  -", "usage")))
    assert len(said.partition("\n\n")[0].splitlines()) == 1  # the usage is one line


# ------------------------------------------------------------ streams


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("@ show grid <&-", 0),
        ("@ show grid >&-", 0),
        ("@ show grid 2>&-", 0),
        ("@ show nowhere 2>&-", 2),
        ("@ show grid <&- >&- 2>&-", 0),
    ],
)
def test_a_closed_stream_is_no_error(place, text, code):
    done = shell(text, place)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr + done.stdout
    assert (b"16" in done.stdout) == (code == 0 and ">&-" not in text.replace("2>&-", ""))


@pytest.mark.slow
def test_a_closed_standard_error_lets_no_file_take_its_place(place, tmp_path):
    done = shell(f"@ fit grid --no-baselines --out '{tmp_path}' 2>&-", place)
    assert done.returncode == 0
    assert json.loads((tmp_path / "fit.json").read_text(encoding="utf-8"))["converged"] is True


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_standard_output_that_takes_nothing_is_one_sentence(place):
    done = shell("@ show grid >/dev/full", place)
    assert done.returncode == 2
    assert done.stderr == b"messirl: No space left on device: finished work is kept\n"


def test_verbose_shows_what_the_library_logs_and_its_absence_does_not(place, tmp_path):
    words = ["fit", place / "grid", *SMALL[:2], "--no-report", "--no-baselines"]
    plain = command(*words, "--out", tmp_path / "one")
    told = command(*words, "--out", tmp_path / "two", "--verbose")
    assert (plain.returncode, told.returncode) == (0, 0)
    assert b" evaluations, objective " not in plain.stderr
    assert b"messirl: MaxEntIRL: " in told.stderr
    assert b" evaluations, objective " in told.stderr
