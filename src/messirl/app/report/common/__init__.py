"""Shared parts of all pages: style, markup, images, numbers as text, glossary."""
