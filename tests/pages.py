"""Reading a page that was written, and writing one without drawing its figures."""

from __future__ import annotations

from contextlib import contextmanager
from html.parser import HTMLParser

from messirl.app.report.common import images

EMPTY = b'<svg xmlns="http://www.w3.org/2000/svg" width="1pt" height="1pt"/>', b"\x89PNG\r\n\x1a\n"


@contextmanager
def sketched():
    """Figures are made, and not drawn: what their files hold is empty."""
    drawn, images.formats = images.formats, lambda figure: EMPTY
    try:
        yield
    finally:
        images.formats = drawn


class Page(HTMLParser):
    """Every tag with its attributes, and the text."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, name, attributes):
        self.tags.append((name, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def of(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]
