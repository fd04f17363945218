"""Griffe extension: docstrings as this project writes them, in a form that Markdown understands.

Griffe knows the section "Examples" but not "Example". A line of Markdown that begins with > is a
quotation, which neither a doctest is nor a bound on a parameter ("alpha: > 0").
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_HEADING = re.compile(r"^Example:$", flags=re.MULTILINE)
_BOUND = re.compile(r"^( *[\w, ]+: )>(?=[ =])", flags=re.MULTILINE)
_DOCTEST = re.compile(r"^( *)>>> .*(?:\n\1\S.*|\n\1 +\S.*)*", flags=re.MULTILINE)


class Doctests(griffe.Extension):
    """Rename the heading, escape bounds and put doctests between fences, in every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the text of one docstring."""
        if obj.docstring is not None:
            text = _HEADING.sub("Examples:", obj.docstring.value)
            text = _BOUND.sub(r"\1\>", text)
            obj.docstring.value = _DOCTEST.sub(r"\1```pycon\n\g<0>\n\1```", text)
