"""Line breaks for generated prose: within the width of the pages, and never inside `code`."""

from __future__ import annotations

import re
import textwrap

WIDTH = 98
_JOINT = "\0"


def fill(text: str, indent: str = "") -> str:
    """The text in lines; those after the first are indented."""
    whole = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", _JOINT), text)
    lines = textwrap.fill(whole, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines.replace(_JOINT, " ")
