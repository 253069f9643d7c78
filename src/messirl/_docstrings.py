"""Inheritance of docstring sections: a parameter is described once, in the class that introduces it.

A class lists under "Parameters" and "Attributes" only the entries that it adds or changes; inherited ones are appended.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import Field

Sections = dict[str, list[str]]


def inherit_documentation(cls: type) -> None:
    """Complete the docstring of a class with the entries of the class it extends.

    Parameters are taken over if the constructor of `cls` has them, attributes always.
    """
    if cls.__doc__ is None or cls.__mro__[1].__doc__ is None:  # python -OO has none
        return
    own, above = sections(cls.__doc__), sections(cls.__mro__[1].__doc__)
    arguments = set(inspect.signature(cls).parameters)
    arguments -= {name for name, value in vars(cls).items() if isinstance(value, Field) and not value.init}
    for title in ("Parameters", "Attributes"):
        described = {name for head in entries(own.get(title, [])) for name in names(head)}
        for head, lines in entries(above.get(title, [])).items():
            wanted = title == "Attributes" or names(head) <= arguments
            if wanted and not names(head) & described:
                own.setdefault(title, []).extend(lines)
    order = ["", "Parameters", "Attributes", *own]
    cls.__doc__ = "\n".join(
        line
        for title in dict.fromkeys(name for name in order if name in own)
        for line in ([title, "-" * len(title)] if title else []) + [*own[title], ""]
    )


def sections(text: str) -> Sections:
    """Return the lines of each section of a docstring by its title; the text before the first one has the title ''."""
    lines, title = inspect.cleandoc(text).splitlines(), ""
    found: Sections = {"": []}
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if below and set(below) == {"-"} and len(below) == len(line):
            title = line
            found[title] = []
        elif not (line and set(line) == {"-"}):
            found[title].append(line)
    for part in found.values():
        while part and not part[-1]:
            part.pop()
    return found


def entries(lines: list[str]) -> dict[str, list[str]]:
    """Return the entries of a section: each line that is not indented, with the lines below it."""
    found: dict[str, list[str]] = {}
    head = ""
    for line in lines:
        if line and not line.startswith(" "):
            head = line
        found.setdefault(head, []).append(line)
    return found


def names(head: str) -> set[str]:
    """Return the names that an entry describes: `a, b : int` describes a and b."""
    return {name.strip() for name in re.split(r"\s:\s", head)[0].split(",")}
