"""MkDocs hook: turn the formulas of a page into MathML when the site is built.

Browsers show MathML by themselves, so that no script and no font has to be loaded.
"""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree import ElementTree

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', flags=re.DOTALL
)


def on_page_content(content: str, /, *, page: Any, **_: Any) -> str:
    """Replace what pymdownx.arithmatex marked as formulas."""

    def mathml(match: re.Match[str]) -> str:
        formula = html.unescape(match[2]).strip()
        display = "block" if match[1] == "div" else "inline"
        converted = convert(formula, display=display)
        _refuse_leftovers(converted, formula, page.file.src_uri)
        return converted

    return _FORMULA.sub(mathml, content)


def _refuse_leftovers(converted: str, formula: str, where: str) -> None:
    """The converter passes on commands that it does not know as text; a reader would see them."""
    try:
        text = "".join(ElementTree.fromstring(converted).itertext())
    except ElementTree.ParseError as error:
        raise PluginError(
            f"{where}: the formula {formula!r} gives no valid MathML: {error}"
        ) from error
    if "\\" in text:
        raise PluginError(
            f"{where}: the formula {formula!r} has a command with no MathML: {text!r}"
        )
