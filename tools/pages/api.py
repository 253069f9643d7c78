"""Pages of the Python interface from docstrings as `help` shows them: one page per module of docs/public.md.

Docstrings are read from the running program, not from its source: a class takes over what its parents say of their
parameters when it is made (`messirl._docstrings`).
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from messirl._docstrings import entries, sections
from tools.pages.text import definitions, safe

LIST = Path(__file__).parents[2] / "docs" / "public.md"
LINE = re.compile(r"^(\S[^:]{0,40}?)\s+: (.+)$")  # `name : what it is`, in text
WIDTH = 96


def public() -> dict[str, list[str]]:
    """The names of each module that docs/public.md lists, in its order."""
    parts = re.split(r"^## `(messirl[\w.]*)`$", LIST.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        module: [name for line in re.findall(r"^- (.+)$", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)]
        for module, text in zip(parts[::2], parts[1::2], strict=True)
    }


def pages() -> dict[str, str]:
    """Markdown by name of the page."""
    listed = public()
    homes = {
        id(getattr(importlib.import_module(m), n)): m for m, names in listed.items() for n in names if m != "messirl"
    }
    made = {}
    overview = ["# Python", "", "What is [public](../public.md), with what `help` says of it.", ""]
    for module, names in listed.items():
        thing = importlib.import_module(module)
        own = [name for name in names if module != "messirl" or id(getattr(thing, name)) not in homes]
        overview += [f"## {module}", "", safe(_first(thing)), ""]
        overview += definitions(
            (_link(thing, name, module, homes), safe(_first(getattr(thing, name)))) for name in names
        )
        if own:
            made[f"api/{module}.md"] = _module(thing, module, own)
    return {"api/index.md": "\n".join(overview), **made}


def _link(thing: Any, name: str, module: str, homes: dict[int, str]) -> str:
    home = homes.get(id(getattr(thing, name)), module) if module == "messirl" else module
    return f"[`{name}`]({home}.md#{name})"


def _first(thing: Any) -> str:
    """The first paragraph of a docstring; a plain value has none."""
    if not (inspect.ismodule(thing) or inspect.isclass(thing) or inspect.isroutine(thing)):
        return _bare(f"{thing!r}")
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


def _module(thing: Any, module: str, names: list[str]) -> str:
    lines = [f"# {module}", "", *_text((inspect.getdoc(thing) or "").splitlines()), ""]
    shown = [getattr(thing, name) for name in names]
    for name in names:
        lines += [f"## {name} {{: #{name} }}", "", *_object(getattr(thing, name), name, shown)]
    return "\n".join(lines) + "\n"


def _object(thing: Any, name: str, shown: list[Any]) -> list[str]:
    if inspect.ismodule(thing):
        return [safe(_first(thing)), "", f"See [{thing.__name__}]({thing.__name__}.md).", ""]
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return [f"`{_bare(f'{thing!r}')}`", ""]
    lines = [*_signature(thing, name), *_docstring(thing)]
    if inspect.isclass(thing):
        above = [parent for parent in thing.__mro__[1:] if parent in shown]
        if above:
            links = ", ".join(f"[{parent.__name__}](#{parent.__name__})" for parent in above)
            lines += [f"It also has the methods of {links}.", ""]
        for method, function in _methods(thing, above):
            head = f"### {name}.{method} {{: #{name}.{method} }}"
            called = [] if isinstance(function, property) else _signature(function, method)
            lines += [head, "", *called, *_docstring(function)]
    return lines


def _methods(cls: type, above: list[type]) -> list[tuple[str, Any]]:
    """Public methods and documented properties in the order they are written, those of parents of ours included.

    above : parents that have a place of their own on the page
    """
    found: dict[str, Any] = {}
    described = set(entries(sections(cls.__doc__ or "").get("Attributes", [])))
    for parent in reversed(cls.__mro__):
        if not parent.__module__.startswith("messirl") or parent in above:
            continue
        for name, value in vars(parent).items():
            plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            shown = inspect.isfunction(plain) or isinstance(plain, property)
            if (
                name[0] != "_"
                and shown
                and inspect.getdoc(plain)
                and not any(head.startswith(name) for head in described)
            ):
                found[name] = plain
    return list(found.items())


def _signature(thing: Any, name: str) -> list[str]:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return []
    given = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    given = [p for p in given if p.name not in ("self", "cls")]
    bare = str(signature.replace(parameters=given, return_annotation=inspect.Signature.empty))
    bare = _bare(bare)
    text = name + bare
    if len(text) > WIDTH:
        inner = re.split(r", (?![^(\[]*[)\]])", bare[1:-1])
        text = f"{name}(\n    " + ",\n    ".join(inner) + ",\n)"
    return ["```python", text, "```", ""]


def _bare(shown: str) -> str:
    """What repr shows, with functions and classes by their names alone."""
    return re.sub(r"<(?:function|class) '?([\w.]+)'?[^>]*>", r"\1", shown)


def _docstring(thing: Any) -> list[str]:
    found = sections(inspect.getdoc(thing) or "")
    lines = _text(found.pop("", []))
    for title, part in found.items():
        lines += [f"**{title}**", ""]
        if title in ("Parameters", "Attributes", "Returns", "Raises", "Yields"):
            for head, rest in entries(part).items():
                below = inspect.cleandoc("\n".join(rest[1:])).splitlines()
                lines += [safe(_as_code(head)), *_indented(_text(below) or ["–"]), ""]
        elif title == "Examples":
            lines += _examples(part)
        else:
            lines += _text(part)
    return lines


def _as_code(head: str) -> str:
    names, colon, kind = head.partition(" : ")
    return f"`{names}`" + (f" : {kind}" if colon else "")


def _indented(lines: list[str]) -> list[str]:
    return [f"{'    ' if i else ':   '}{line}" if line else "" for i, line in enumerate(lines)]


def _examples(lines: list[str]) -> list[str]:
    out: list[str] = []
    for block in re.split(r"\n\s*\n", "\n".join(lines)):
        if block.lstrip().startswith(">>>"):
            out += ["```pycon", *inspect.cleandoc(block).splitlines(), "```", ""]
        elif block.strip():
            out += _text(block.splitlines())
    return out


def _text(lines: list[str]) -> list[str]:
    """Paragraphs; blocks that are indented stay as they are, and lines `name : meaning` become a list."""
    out: list[str] = []
    for block in re.split(r"\n\s*\n", "\n".join(lines)):
        rows = block.splitlines()
        if not block.strip():
            continue
        if all(row.startswith("    ") for row in rows):
            out += ["```", *(row[4:] for row in rows), "```", ""]
        elif LINE.match(rows[0]) and len(rows[0].split(" : ")[0].split()) <= 4:
            for row in rows:
                found = LINE.match(row)
                if found:
                    out += ["", f"`{found[1]}`", f":   {safe(found[2])}"]
                else:
                    out.append(f"    {safe(row.strip())}")
            out.append("")
        else:
            out += [*(safe(row) for row in rows), ""]
    return out
