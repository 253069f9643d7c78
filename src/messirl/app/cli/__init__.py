"""The `messirl` command line. Heavy imports are deferred until a command does its work.

Exit codes: 0 success, 1 a bug in messirl, 2 an error in the input or the system, 130 interrupted, 141 broken pipe.
An error is one line on standard error.
"""

from __future__ import annotations

import importlib
import os
import shlex
import signal
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from types import ModuleType

# Each command is a module of this package with a DESCRIPTION, `add(parser)` and `run(arguments)`.
COMMANDS = {
    "fit": "learn a reward and a policy from a problem folder",
    "select": "choose how to use the unlabelled trajectories, by held-out expert trajectories",
    "diagnose": "report whether the unlabelled trajectories help, and which ones",
    "evaluate": "score a saved model on held-out trajectories",
    "sample": "draw trajectories from a saved model",
    "example": "write a small problem with known truth to try the other commands on",
    "show": "summarise a problem folder or a saved model",
    "check": "list everything that is wrong with a problem folder",
    "import": "build a problem folder from raw recordings: positions, places or click logs",
    "convert": "convert problems and trajectories from other formats",
    "compare": "compare methods on your data or on a problem with known truth",
    "benchmark": "compare the core methods over many problems, with ranks",
    "lab": "open an interactive page to try problems and methods",
    "reproduce": "run the paper's experiments and test its claims",
}
RESUMED = ("compare", "benchmark", "reproduce")  # commands that continue where they were stopped


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if argv is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # before there is work, Ctrl-C ends the program silently
    from messirl.app.cli import _stdio
    from messirl.app.cli._parser import Parser, say

    _stdio.prepare()
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:  # `messirl help fit` means `messirl fit --help`, as in other programs
        words = [*words[1:2], "--help"]
    if not words or words[0] not in COMMANDS:
        return _front_door(words)
    command = importlib.import_module(f"messirl.app.cli.{words[0]}")
    parser = Parser(
        prog=f"messirl {words[0]}",
        description=command.DESCRIPTION,
        epilog="Defaults are in parentheses.",
    )
    command.add(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument(
        "--verbose", action="store_true", help="show the log of the library: every fit and how it ended"
    )
    arguments = parser.parse_args(words[1:])
    arguments.command = shlex.join(["messirl", *words])
    from messirl.app.cli._signals import InterruptHandler

    if arguments.verbose:
        _show_log(say)
    with InterruptHandler(to_the_end=argv is None) as stopping:
        try:
            stopping.begin()
            return _run(command, arguments)
        except (KeyboardInterrupt, Exception) as error:
            kept = "; finished work is kept: run the same command to continue" if words[0] in RESUMED else ""
            if stopping.number is None and not isinstance(error, KeyboardInterrupt):
                return _failed(error, kept, debug=arguments.debug)
            stopping.wait_for_message()  # an error after Ctrl-C only comes from the interrupted work
            say(f"interrupted{kept}")
            return stopping.leave()


def _show_log(say: Callable[[str], object]) -> None:
    """Print the log messages of the library from here on."""
    import logging

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage())

    logger = logging.getLogger("messirl")
    logger.handlers = [Said()]
    logger.setLevel(logging.INFO)


def _run(command: ModuleType, arguments: argparse.Namespace) -> int:
    from messirl.app.cli._parser import note

    try:
        _check_threads()
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: note(str(message))
            code = int(command.run(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # as in `messirl show … | head`; Python would complain once more when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _check_threads() -> None:
    """Reject an invalid NUMBA_NUM_THREADS here: the error of Numba is a traceback or does not name the variable."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    if not (threads.isascii() and threads.isdigit() and int(threads) > 0):
        raise ValueError(
            f"NUMBA_NUM_THREADS={threads!r}: must be a whole number >= 1; correct or unset this environment variable"
        )


def _failed(error: Exception, kept: str, *, debug: bool) -> int:
    from messirl.app.cli._parser import one_line, say

    if debug:
        import traceback

        traceback.print_exception(error)
    text, code = _explain(error, kept)
    say(one_line(text))
    return code


def _front_door(words: Sequence[str]) -> int:
    """Answer a call without a command: help, the version, or an error."""
    from messirl._text import did_you_mean
    from messirl.app.cli._parser import Parser

    parser = Parser(
        prog="messirl",
        usage="messirl COMMAND ...",
        description="Learn a reward function from few expert trajectories and many of unknown quality.",
        epilog="messirl COMMAND --help explains a command.",
    )
    version = f"messirl {importlib.import_module('messirl').__version__}" if "--version" in words else ""
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND ...")
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text)
    if words and not words[0].startswith("-"):
        guess = did_you_mean(words[0], COMMANDS) or f"; the commands are {', '.join(COMMANDS)}"
        parser.error(f"unknown command {words[0]!r}{guess}")
    parser.parse_args(words[:1])
    parser.print_help()
    return 0


def _explain(error: Exception, kept: str = "") -> tuple[str, int]:
    """Return a one-line message and an exit code; `kept` is added to errors of a cluster, where work is kept."""
    from messirl._lazy import MISSING, SPARED

    if isinstance(error, OSError):
        return _explain_place(error), 2
    if isinstance(error, ValueError):
        return str(error), 2
    if isinstance(error, ModuleNotFoundError) and error.name in SPARED:
        return MISSING.format(what="this command", package=error.name), 2
    if isinstance(error, ImportError) and error.name is None:  # ours: an optional package is not installed
        return str(error), 2
    if type(error) is MemoryError and error.args:  # ours, foreseen
        return str(error), 2
    if isinstance(error, MemoryError):
        return "not enough memory: draw fewer trajectories with --n-unlabelled, or use a machine with more memory", 2
    if type(error).__name__ == "BrokenProcessPool":
        return "a worker process was killed (out of memory?): run the same command again, perhaps with --jobs 1", 1
    if type(error).__name__ == "ClusterError":
        return f"{error}{kept}", 2
    return f"internal error, {type(error).__name__}: {error}; run again with --debug and report it", 1


def _explain_place(error: OSError) -> str:
    """Return the message about a file or a folder that could not be used."""
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename or "")
    if not where:
        return f"{error.strerror or error}: finished work is kept"
    if isinstance(error, FileNotFoundError):
        return f"{where} does not exist and cannot be created: correct the path"
    if isinstance(error, IsADirectoryError):
        return f"{where} is a folder, but a file is needed: give a file"
    if isinstance(error, NotADirectoryError | FileExistsError):
        return f"{where} is a file, but a folder is needed: give another path"
    return f"{where}: {error.strerror or error}: check the path and the disk; finished work is kept"
