"""What the documents quote is what the program prints, and every command and option they name is there.

A block marked `text` that begins with `$ ` is a session in a shell, in a folder that is empty at the beginning of the
page but for docs/. A line `…` stands for any lines, a `…` in a line for anything. Seconds and numbers of iterations
are another machine's affair; other numbers agree to two digits.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shlex
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from test_stopping import COMMAND, PYTHON, Program

from messirl.app import cli
from messirl.app.cli._parser import Parser
from studies import standings, tables

HOME = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("MESSIRL_DATA") or HOME.parent / "shared" / "data")
PAGES = [HOME / "README.md", *sorted((HOME / "docs").glob("*.md"))]
NAMES = [str(page.relative_to(HOME)) for page in PAGES]
every_page = pytest.mark.parametrize("page", PAGES, ids=NAMES)
NUMBER = r"[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?"


def sessions(page):
    """Commands of a document in their order, each with the lines that follow it."""
    found = []
    for block in re.findall(r"^```text\n(\$ .*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            found.append((command, lines))
    return found


# ------------------------------------------------------------ sessions


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with the program `messirl`."""
    place = tmp_path_factory.mktemp("programs")
    program = place / "messirl"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m messirl.app.cli "$@"\n')
    program.chmod(0o755)
    return place


@pytest.fixture
def said(programs, monkeypatch, capsys, tmp_path):
    """What a shell shows of a command in the page's folder; one of messirl alone is run in this process."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(HOME / "docs")

    def lines(command):
        if not re.match(r"messirl [^|<>;&$]+$", command):
            return in_a_shell(command, programs, tmp_path)
        with warnings.catch_warnings():
            warnings.resetwarnings()
            with suppress(SystemExit):  # wrong options
                cli.main(shlex.split(command)[1:])
        written = capsys.readouterr()
        return (written.err + written.out).splitlines()

    return lines


def in_a_shell(command, programs, folder):
    """The output, and the errors before it."""
    told = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONUTF8": "1"}
    done = subprocess.run(
        ["sh", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=told,
        timeout=300,
        check=False,
        encoding="utf-8",
    )
    return done.stdout.splitlines()


def agree(quoted, line):
    """Words are the same, numbers nearly."""
    parts = re.split(rf"(?<![\w.])({NUMBER})(?!\w)", quoted)
    texts, numbers = parts[::2], parts[1::2]
    words = [re.escape(text).replace("…", ".*").replace(r"\ ", " ") for text in texts]
    found = re.fullmatch(re.sub(" +", " +", f"({NUMBER})".join(words)), line)
    if found is None:
        return False
    loose = [re.match(r" s\b| iterations", text) is not None for text in texts[1:]]
    near = zip(numbers, found.groups(), loose, strict=True)
    return all(free or value(there) == pytest.approx(value(here), rel=0.02) for here, there, free in near)


def value(text):
    return float(text.replace(",", ""))


def differ(quoted, lines):
    """The first quoted line that was not said where it should have been, or None."""
    at, anywhere = 0, False
    for text in quoted:
        if text == "…":
            anywhere = True
            continue
        while anywhere and at < len(lines) and not agree(text, lines[at]):
            at += 1
        if at >= len(lines) or not agree(text, lines[at]):
            return text
        at, anywhere = at + 1, False
    return None if anywhere or at == len(lines) else f"nothing, where the program says {lines[at]!r}"


ON_DATA = {"routes.md": "borlange", "inference.md": "bus_engines"}


def of_page(page, *, real):
    """The sessions of a page that are on real data, or those that are not."""
    data = ON_DATA.get(page.name)
    return [(command, lines) for command, lines in sessions(page) if (data is not None and data in command) == real]


def check_sessions(some, said):
    for command, quoted in some:
        lines = said(command)
        wrong = differ(quoted, lines)
        assert wrong is None, f"$ {command}\nquoted: {wrong}\nsaid:\n" + "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if of_page(page, real=False)], ids=lambda page: page.name)
def test_a_session_in_the_documents_is_what_the_program_prints(page, said):
    check_sessions(of_page(page, real=False), said)


def test_a_program_prints_what_is_printed_here(said, programs, tmp_path):
    said("messirl example museum")
    for command in ("messirl fitt museum", "messirl check museum", "messirl fit museum --lamda0 0.1"):
        assert in_a_shell(command, programs, tmp_path) == said(command) != []


@pytest.mark.slow
@pytest.mark.parametrize(("page", "data"), ON_DATA.items())
def test_a_session_on_real_data_is_what_the_program_prints(page, data, said, tmp_path):
    if not (DATA / data).exists():
        pytest.skip(f"there is no {data} in {DATA}: set MESSIRL_DATA to the folder of the data")
    (tmp_path / data).symlink_to(DATA / data)
    check_sessions(of_page(HOME / "docs" / page, real=True), said)


def test_messages_quoted_in_the_text_are_those_of_the_program():
    """In backquotes and beginning with the program's name; each must be said by one of these."""
    started = Program([sys.executable, "-c", COMMAND.format(work=PYTHON)])
    started.wait_for("begun")
    started.press()
    known = started.end()[2]
    quoted = [text for page in PAGES for text in re.findall(r"`(messirl: [^`]+)`", page.read_text(encoding="utf-8"))]
    assert quoted
    assert [text for text in quoted if text not in known] == []


@pytest.mark.parametrize(
    ("quoted", "line", "same"),
    [
        ("done after 13 iterations, 0.6 s", "done after 15 iterations, 2.1 s", True),
        ("done after 13 iterations, 0.6 s", "ended after 15 iterations, 2.1 s", False),
        ("  -2.4941  g_time", "  -2.4990  g_time", True),
        ("  -2.4941  g_time", "  -2.9  g_time", False),
        ("  -2.4941  g_time", "  -2.4941  g_tim", False),
        ("MESSI: 13 iterations, …", "MESSI: 12 iterations, it (was) good", True),
        ("p <0.0001", "p <0.0001", True),
        ("12 of 20 (x)", "12 of 20 (x)", True),
        ("", "", True),
        ("", "more", False),
    ],
)
def test_the_comparison_sees_what_it_should(quoted, line, same):
    assert agree(quoted, line) is same


def test_the_comparison_sees_missing_and_further_lines():
    assert differ(["a", "…", "c"], ["a", "b", "b", "c"]) is None
    assert differ(["a", "…"], ["a"]) is None
    assert differ(["a", "…", "c"], ["a", "b"]) == "c"
    assert differ(["a"], ["a", "b"]) == "nothing, where the program says 'b'"


# ------------------------------------------------------------ commands and options


def parser_of(name):
    made = Parser(prog=f"messirl {name}")
    importlib.import_module(f"messirl.app.cli.{name}").add(made)
    made.add_argument("--debug", action="store_true")
    return made


def options_of(parser):
    return {option for action in parser._actions for option in action.option_strings}


def commands(page):
    """Every `messirl …` of a document: lines of blocks, and pieces in backquotes."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += [line for line in text.splitlines() if line.startswith("    ")]
    found = [line.strip().removeprefix("$ ") for line in lines]
    found += re.findall(r"`([^`\n]+)`", text)
    found = [re.sub(r"^\S*/bin/", "", line) for line in found]
    return [shlex.split(line, comments=True)[1:] for line in found if re.match(r"messirl [a-z]", line)]


@every_page
def test_every_command_in_the_documents_can_be_given(page):
    for name, *words in commands(page):
        if (name, *words[:1]) == ("fitt", "museum") or "--lamda0" in words:  # the mistakes it shows
            continue
        assert name in cli.COMMANDS, name
        if not words:
            continue
        try:
            parser_of(name).parse_args(words)
        except (SystemExit, argparse.ArgumentError):
            pytest.fail(f"messirl {name} {shlex.join(words)}")


@every_page
def test_every_option_in_the_documents_is_there(page):
    known = {option for name in cli.COMMANDS for option in options_of(parser_of(name))}
    text = re.sub(r"^.*(python -m |pip ).*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))
    assert named - known <= {"--help", "--version", "--verbose", "--lamda0"}


def test_every_command_is_in_the_documents():
    there = {name for page in PAGES for name, *_ in commands(page)}
    assert set(cli.COMMANDS) <= there


def test_the_tables_of_the_reproduction_are_those_of_the_results():
    page = (HOME / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert tables.filled(page, HOME / "results") == page, "run python -m studies.tables"


def test_the_tables_of_the_benchmark_are_those_of_the_results():
    page = (HOME / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert standings.filled(page, HOME / "results") == page, "run python -m studies.standings"
