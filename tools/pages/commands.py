"""The page of the commands, from their own parsers."""

from __future__ import annotations

import argparse
import importlib

from messirl.app.cli import COMMANDS
from messirl.app.cli._parser import Parser
from tools.pages.text import definitions, safe


def parser_of(name: str) -> Parser:
    """The parser of a command, as the program makes it."""
    command = importlib.import_module(f"messirl.app.cli.{name}")
    made = Parser(prog=f"messirl {name}", description=command.DESCRIPTION)
    command.add(made)
    return made


def page() -> str:
    """Every command with every option."""
    lines = [
        "# Commands",
        "",
        "The help of every command, as `messirl COMMAND --help` prints it. Defaults are in parentheses. Every command "
        "also has `--debug`, which shows the traceback of an error. Exit codes: 0 success, 1 a bug in messirl, 2 an "
        "error in the input or the system, 130 interrupted.",
        "",
        *definitions((f"[`messirl {name}`](#messirl-{name})", safe(text)) for name, text in COMMANDS.items()),
    ]
    for name in COMMANDS:
        lines += ["", f"## messirl {name}", "", *_command(parser_of(name))]
    return "\n".join(lines) + "\n"


def _command(parser: Parser) -> list[str]:
    places = [str(action.metavar or action.dest) for action in parser._actions if not action.option_strings]
    lines = [safe(parser.description or ""), "", "```", " ".join([parser.prog, *places, "[options]"]), "```", ""]
    formatter = parser._get_formatter()
    for group in parser._action_groups:
        shown = [
            (f"`{_head(action, formatter)}`", safe(formatter._expand_help(action) if action.help else ""))
            for action in group._group_actions
            if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction)
        ]
        if shown:
            titled = group.title not in ("options", "positional arguments")
            lines += (
                [f"### {safe(str(group.title))} {{: #{_anchor(parser, group.title)} }}", ""] if titled else []
            ) + [
                *([safe(group.description), ""] if group.description else []),
                *definitions(shown),
                "",
            ]
    return lines


def _anchor(parser: Parser, title: str | None) -> str:
    return f"{parser.prog} {title}".lower().replace(" ", "-").replace(",", "")


def _head(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    values = (
        "" if action.nargs == 0 else formatter._format_args(action, formatter._get_default_metavar_for_optional(action))
    )
    return ", ".join(action.option_strings) + (f" {values}" if values else "")
