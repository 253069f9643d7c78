"""The page of words, from those that the reports explain."""

from __future__ import annotations

from messirl.app.report.common.glossary import TERMS, anchor
from tools.pages.text import safe


def page() -> str:
    """Every word of the reports with its explanation; it can be linked to as it can in a report."""
    lines = ["# Glossary", "", "The words of the reports, which explain those that occur in them in the same way.", ""]
    for term, text in sorted(TERMS.items(), key=lambda entry: entry[0].lower()):
        lines += [f'<span id="{anchor(term)}">{safe(term)}</span>', f":   {safe(text)}", ""]
    return "\n".join(lines)
