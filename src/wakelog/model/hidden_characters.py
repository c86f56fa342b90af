"""Characters that a reader does not see, or that change how the text around them looks: controls, bidirectional
overrides, zero-width characters and tags.

Recorded text may be hostile, so every surface shows these characters as signs or code points.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\u115f\u1160\u3164\uffa0\U000e0000-\U000e007f"
)
"""As a character class of a regular expression, without its brackets. A tab and a line feed are not hidden."""
_HIDDEN = re.compile(f"[{HIDDEN}]")


def code_point(match: re.Match[str]) -> str:
    """The character that was matched, as its code point."""
    return f"\u27e6U+{ord(match[0]):04X}\u27e7"


def show_hidden(text: str) -> str:
    """The text with hidden characters as their code points."""
    return _HIDDEN.sub(code_point, text)
