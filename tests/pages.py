"""Reading a page that was written."""

from __future__ import annotations

from html.parser import HTMLParser


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
