"""The command `messirl`. Nothing heavy is imported before there is work to do.

Exit codes: 0 done, 2 something wrong with the input or the system, 1 a bug in messirl, 130 interrupted, 141 nobody
reads the output any more. An error is one line on standard error.
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

# Each is a file of this package, with a DESCRIPTION, `add(parser)` for its arguments and `run(arguments)`.
COMMANDS = {
    "fit": "learn a reward and a policy from a folder",
    "select": "choose the strength of the penalty by held-out expert trajectories",
    "diagnose": "say whether the unlabelled trajectories help, and which",
    "evaluate": "score a saved model on held-out trajectories",
    "sample": "draw trajectories of a saved model",
    "example": "write a small problem with a known truth, to try the others on",
    "show": "say what a folder or a saved model holds",
    "check": "say everything that is wrong with a folder",
    "import": "make a folder of raw recordings: positions, places, click logs",
    "convert": "make a folder or a table of ours from another format",
    "compare": "methods side by side, on your data or on a problem with a known truth",
    "benchmark": "the core methods over many problems, with ranks",
    "lab": "open a page on which to try problems and methods",
    "reproduce": "run the paper's experiments and decide its claims",
}
RESUMED = ("compare", "benchmark", "reproduce")  # go on where they were stopped


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
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
        epilog="In brackets: what is taken where nothing is given.",
    )
    command.add(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument("--verbose", action="store_true", help="show what the library logs: every fit, how it ended")
    arguments = parser.parse_args(words[1:])
    arguments.command = shlex.join(["messirl", *words])
    from messirl.app.cli._signals import Stopping

    if arguments.verbose:
        _show_log(say)
    with Stopping(to_the_end=argv is None) as stopping:
        try:
            stopping.begin()
            return _run(command, arguments)
        except (KeyboardInterrupt, Exception) as error:
            kept = "; what was finished is kept, run the same command to go on" if words[0] in RESUMED else ""
            if stopping.number is None and not isinstance(error, KeyboardInterrupt):
                return _failed(error, kept, debug=arguments.debug)
            stopping.wait_until_said()  # an error after Ctrl-C only comes from the interrupted work
            say(f"interrupted{kept}")
            return stopping.leave()


def _show_log(say: Callable[[str], object]) -> None:
    """Show what the library logs, from here on."""
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
    """Refuse a number of threads that is none; what Numba says of it does not name its place, or is a traceback."""
    told = os.environ.get("NUMBA_NUM_THREADS", "1")
    if not (told.isascii() and told.isdigit() and int(told) > 0):
        raise ValueError(
            f"the environment says NUMBA_NUM_THREADS={told!r}: make it a whole number from 1 on, or unset it"
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
    """Answer whatever is not a command: help, the version, or an error."""
    from messirl._text import did_you_mean
    from messirl.app.cli._parser import Parser

    parser = Parser(
        prog="messirl",
        usage="messirl COMMAND ...",
        description="Learn what an expert wants from few expert trajectories and many of unknown quality.",
        epilog="messirl COMMAND --help explains a command.",
    )
    version = f"messirl {importlib.import_module('messirl').__version__}" if "--version" in words else ""
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND ...")
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text)
    if words and not words[0].startswith("-"):
        guess = did_you_mean(words[0], COMMANDS) or f"; the commands are {', '.join(COMMANDS)}"
        parser.error(f"{words[0]!r} is no command{guess}")
    parser.parse_args(words[:1])
    parser.print_help()
    return 0


def _explain(error: Exception, kept: str = "") -> tuple[str, int]:
    """One sentence and an exit code for what went wrong; `kept` says what is not lost with a cluster."""
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
        return "there is not enough memory: draw fewer trajectories with --n-unlabelled, or use a larger computer", 2
    if type(error).__name__ == "BrokenProcessPool":
        return "a worker process was killed (out of memory?): run the same command to go on, perhaps with --jobs 1", 1
    if type(error).__name__ == "ClusterError":
        return f"{error}{kept}", 2
    return f"internal error, {type(error).__name__}: {error}; run again with --debug and report it", 1


def _explain_place(error: OSError) -> str:
    """What is wrong with a file or a folder."""
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename or "")
    if not where:
        return f"{error.strerror or error}: nothing that was finished is lost"
    if isinstance(error, FileNotFoundError):
        return f"{where} is not there, and cannot be made: correct the path"
    if isinstance(error, IsADirectoryError):
        return f"{where} is a folder where a file is needed: give a file"
    if isinstance(error, NotADirectoryError | FileExistsError):
        return f"{where}: a file stands where a folder is needed: give another place"
    return f"{where}: {error.strerror or error}: check the place and the disk; nothing that was finished is lost"
