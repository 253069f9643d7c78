"""Shared code of the commands: a parser with one-line errors, argument types, and JSON on standard output.

The modules of this package that declare options import almost nothing, not even pathlib or typing, so that help
appears at once. Everything else is imported when the work starts.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import sys

from messirl._parameters import SETTINGS
from messirl._text import did_you_mean
from messirl.app.cli import _stdio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, NoReturn

    from messirl.data.problem import Problem
    from messirl.data.streamed_trajectories import StreamedTrajectories


DASHES = "-\N{EN DASH}\N{EM DASH}"  # word processors turn -- into the last two


class Parser(argparse.ArgumentParser):
    """Argument parser with one-line errors."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(formatter_class=_Formatter, **arguments)

    def format_help(self) -> str:
        """Return the help; the usage line shows required arguments only, since the options are explained below it."""
        if self.usage is None:
            places = [str(action.metavar or action.dest) for action in self._actions if not action.option_strings]
            self.usage = " ".join([self.prog, *places, "[options]"])
        return super().format_help()

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments as argparse does; the error about an unknown option suggests a similar one."""
        found, left = self.parse_known_args(args, namespace)
        if left:
            known = [option for action in self._actions for option in action.option_strings if option[:2] == "--"]
            wrong = next((word.partition("=")[0] for word in left if word[:1] in DASHES and len(word) > 2), "")
            close = did_you_mean(f"--{wrong.lstrip(DASHES)}", known) if wrong and wrong not in known else ""
            self.error(f"unrecognized arguments: {' '.join(left)}{close}")
        return found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check a choice as argparse does; the error suggests a similar one."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(str(value), [str(choice) for choice in action.choices or ()])
            raise

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 and one line that states the error and points to the help."""
        text = one_line(message)
        self.exit(2, f"{self.prog}: {text}{'' if text.endswith('?') else ';'} see {self.prog} --help\n")


class StoreOnce(argparse.Action):
    """Store the value of an option that may be given only once."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Store the value."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "is given twice: give it once")
        setattr(namespace, self.dest, values)


class _Formatter(argparse.HelpFormatter):
    """Help formatter as wide as the terminal; the type of a value gives its metavar: N, X or PATH."""

    def __init__(self, prog: str) -> None:
        wide = os.environ.get("COLUMNS", "")  # what argparse calls here imports compression libraries
        try:
            width = int(wide) if wide.isascii() and wide.isdigit() and int(wide) > 0 else os.get_terminal_size().columns
        except OSError:
            width = 100
        super().__init__(prog, width=min(width, 120) - 2)

    def _get_default_metavar_for_optional(self, action: argparse.Action) -> str:
        kinds: dict[Any, str] = {count: "N", seed: "N", positive: "X", not_negative: "X", path: "PATH"}
        return kinds.get(action.type, "X")


def say(text: str) -> None:
    """Write a line to standard error, so that standard output holds only the result."""
    with contextlib.suppress(OSError):  # standard error may be a file on a full disk
        print(f"messirl: {with_flags(text)}", file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Write a note to standard error."""
    say(f"note: {one_line(text)}")


def one_line(text: str) -> str:
    """Return text from outside on one line, without characters that a terminal would interpret."""
    lines = " ".join(line.strip() for line in text.splitlines() if line.strip())  # spaces between words may matter
    return "".join(sign if sign.isprintable() else " " if sign == "\t" else "?" for sign in lines)


def as_json(value: Any) -> str:
    """Return JSON for other programs; NaN and infinities become null."""
    import json

    plain = not _stdio.encodes_all_characters(sys.stdout)  # then such characters are written as \\u…
    return json.dumps(_plain(value), indent=2, ensure_ascii=plain, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def add_with_default(group: Any, name: str, kind: Any, default: Any, text: str, metavar: str | None = None) -> None:
    """Add an option whose help gives its default in parentheses."""
    shown = default if isinstance(default, str) else "none" if default is None else f"{default:g}"
    group.add_argument(name, type=kind, default=default, metavar=metavar, help=f"{text} ({shown})")


def settings_from_options(kind: Any, options: dict[str, Any]) -> Any:
    """Return settings of a class, each field from the option of the same name if that was given or has a default."""
    values = {name: options[name] for name in kind.__dataclass_fields__ if name in options}
    if "given" in kind.__dataclass_fields__:
        values["given"] = frozenset(SETTINGS.keys() & options.keys())
    return kind(**values)


def flag_of(name: str) -> str:
    """Return the flag of a setting or another option, by its name in Python."""
    entry = SETTINGS.get(name)
    if entry is not None and entry.flag:
        return entry.flag
    return f"--{'no-' if entry is not None and entry.default is True else ''}{name.replace('_', '-')}"


def with_flags(text: str) -> str:
    """Return a message of the library with flags: for names in backquotes, and for parameters, as in `tol=0.1`."""
    text = re.sub(r"`(\w+)`", lambda found: flag_of(found[1]), text)
    names = "|".join(one.name for one in SETTINGS.values() if one.kind != "flag")
    settings = {one.name: name for name, one in SETTINGS.items()}
    given = rf"(?<![\w-])({names})=(?:'([^']*)'|(-?[\w.+-]*\w))"
    return re.sub(given, lambda found: f"{flag_of(settings[found[1]])} {found[2] or found[3]}", text)


def problem_in(folder: Path) -> Problem:
    """Read the problem in a folder and print its notes on standard error."""
    from messirl.io.folder.reader import read_problem

    return print_notes(read_problem(folder))


def trajectories_in(place: Path | None, problem: Problem, executor: Any) -> StreamedTrajectories | None:
    """Return trajectories that stay in Parquet files, labelled with the states and actions of the problem.

    executor : reads the files (see execution.run); None: this process
    """
    if place is None:
        return None
    from messirl.io import StreamedTrajectories

    both = problem.state_ids, problem.action_ids
    states, actions = (None if ids is None else ids.tolist() for ids in both)
    return StreamedTrajectories(place, state_labels=states, action_labels=actions, executor=executor)


def print_notes(problem: Problem) -> Problem:
    """Print the notes of a problem and return the problem."""
    for text in problem.notes:
        note(text)
    return problem


def path(text: str) -> Path:
    """Convert an argument to a path, which must not be empty."""
    from pathlib import Path

    if not text.strip():
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def folder_name(folder: Path) -> str:
    """Return the name of a folder for messages: as it was given or, for ".", "..", its resolved name."""
    return str(folder) if folder.name not in ("", "..") else folder.resolve().name or str(folder)


def same_place(one: str | Path, other: str | Path) -> bool:
    """Return whether two paths lead to the same file or folder."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them does not exist
        return os.path.realpath(one) == os.path.realpath(other)


def model_file(place: Path) -> Path:
    """Return the file of a model: the path itself, or model.npz in a folder that `messirl fit` wrote."""
    if place.is_dir():
        place = place / "model.npz"
    if not place.is_file():
        raise ValueError(f"{place} does not exist: give the model.npz that messirl fit wrote")
    with place.open("rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(f"{place} is not a model or is damaged: give the model.npz that messirl fit wrote")
    return place


def seed(text: str) -> int:
    """Convert an argument to a seed that every generator accepts: a whole number from 0 to 2³¹ − 1."""
    if not text.isascii() or not text.isdigit() or int(text) >= 2**31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2147483647")
    return int(text)


def count(text: str) -> int:
    """Convert an argument to a whole number >= 1."""
    return whole(text, 1)


def at_least_two(text: str) -> int:
    """Convert an argument to a whole number >= 2."""
    return whole(text, 2)


def whole(text: str, least: int) -> int:
    """Convert an argument to a whole number >= `least`."""
    try:
        value = int(text) if _plain_signs(text) else least - 1
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= {least}")
    return value


def _plain_signs(text: str) -> bool:
    """Return whether a text has ASCII digits and no underscore; Python also reads 1_000 and digits of other scripts."""
    return text.isascii() and "_" not in text


def positive(text: str) -> float:
    """Convert an argument to a finite number > 0."""
    return finite(text, lambda x: x > 0, "a number > 0")


def not_negative(text: str) -> float:
    """Convert an argument to a finite number >= 0."""
    return finite(text, lambda x: x >= 0, "a number >= 0")


def finite(text: str, good: Any, what: str) -> float:
    """Convert an argument to a finite number that satisfies `good`; `what` describes these numbers in errors."""
    try:
        value = float(text) if _plain_signs(text) else math.nan
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and good(value)):
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return value
