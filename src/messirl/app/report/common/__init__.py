"""What all pages share: style, markup, images, numbers as text, progress."""
