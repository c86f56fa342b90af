"""Renders a little Markdown as HTML: headings, lists, quotes, code, emphasis.

Every part of the text goes through `safe`, so recorded text cannot become markup. The web page does
the same in ui/src/prose.ts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Safe = Callable[[str], str]

_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_ITEM = re.compile(r"(\s*)([-*+•]|\d{1,3}[.)])\s+(.*)")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_STYLES = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*")


def prose(text: str, safe: Safe) -> str:
    return f'<div class="prose">{"".join(_lines(text, safe))}</div>'


def _lines(text: str, safe: Safe) -> Iterator[str]:
    rows = iter(text.replace("\r\n", "\n").split("\n"))
    plain: list[str] = []
    for row in rows:
        is_plain = not (_FENCE.match(row) or _ITEM.match(row) or _HEADING.match(row) or row[:1] == ">")
        if is_plain and row.strip():
            plain.append(row)
            continue
        if plain:
            yield f"<p>{_spans(chr(10).join(plain), safe)}</p>"
            plain = []
        if fence := _FENCE.match(row):
            code = []
            for inside in rows:
                if inside.lstrip().startswith(fence[1]):
                    break
                code.append(inside)
            yield f'<pre class="code">{safe(chr(10).join(code))}</pre>'
        elif match := _HEADING.match(row):
            yield f'<p class="heading">{_spans(match[1], safe)}</p>'
        elif match := _ITEM.match(row):
            depth = min(4, len(match[1].expandtabs(2)) // 2)
            mark = match[2] if match[2][0].isdigit() else "•"
            yield f'<p class="item d{depth}">{safe(mark)} {_spans(match[3], safe)}</p>'
        elif row[:1] == ">":
            yield f'<p class="quote">{_spans(row.lstrip("> "), safe)}</p>'
    if plain:
        yield f"<p>{_spans(chr(10).join(plain), safe)}</p>"


def _spans(text: str, safe: Safe) -> str:
    parts, at = [], 0
    for match in _STYLES.finditer(text):
        parts.append(safe(text[at : match.start()]))
        parts.append(f"<code>{safe(match[1])}</code>" if match[1] is not None else f"<b>{safe(match[2])}</b>")
        at = match.end()
    return "".join([*parts, safe(text[at:])])
