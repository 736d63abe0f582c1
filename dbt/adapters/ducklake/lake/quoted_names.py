"""Quoted names, as `changes_made` and the column aliases of views hold them."""

from __future__ import annotations


def quote_name(name: str) -> str:
    """The name in double quotes, with the double quotes inside it doubled."""
    return '"' + name.replace('"', '""') + '"'


def parse_quoted_names(text: str, separator: str = ",") -> tuple[str, ...]:
    """The names in a list of quoted names."""
    names: list[str] = []
    position = 0
    while position < len(text):
        if text[position] != '"':
            raise ValueError(f"a quoted name was expected at {position} of {text!r}")
        start, name = position + 1, ""
        while True:
            quote = text.index('"', start)
            name += text[start:quote]
            if text[quote + 1 : quote + 2] != '"':
                break
            name, start = name + '"', quote + 2
        names.append(name)
        position = quote + 1
        if position < len(text) and text[position] != separator:
            raise ValueError(f"a {separator!r} was expected at {position} of {text!r}")
        position += 1
    return tuple(names)
