"""Values as HTML for notebooks: no scripts, everything escaped, one scoped class, limited in size.

Untrusted notebooks strip scripts, so folding uses `<details>`. Colours come from the notebook's theme if it has one.
Recorded text may be hostile: it is escaped, and control and direction characters are made visible.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wakelog.model.hidden_characters import show_hidden
from wakelog.model.short_text import cut
from wakelog.model.values import Value

ROWS_MAX = 200
BYTES_MAX = 100_000
_TEXT_MAX = 300

_STYLE = (
    "<style>.wakelog{font-family:var(--jp-code-font-family,monospace);font-size:13px;line-height:1.5;"
    "color:var(--jp-content-font-color1,CanvasText);overflow-x:auto}"
    ".wakelog .dim{opacity:.65}.wakelog td{padding:0 1em 0 0;text-align:left;vertical-align:top}"
    ".wakelog details{margin-left:1em}.wakelog summary{cursor:pointer}</style>"
)


def text(value: object, limit: int = _TEXT_MAX) -> str:
    """Returns text that is safe in HTML, cut to a length."""
    whole = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    from html import escape  # slow to import, and notebooks are rare

    return escape(show_hidden(cut(whole, limit)))


def box(title: str, inside: Iterable[str], command: str) -> str:
    """Returns a block with a title; its last line is the command that shows the same. `title` and `inside` are HTML."""
    parts, used = [], 0
    lines = list(inside)
    for number, line in enumerate(lines):
        if number >= ROWS_MAX or used + len(line) > BYTES_MAX:
            parts.append(f'<div class="dim">… {len(lines) - number:,} more</div>')
            break
        used += len(line)
        parts.append(line)
    return (
        f'<div class="wakelog">{_STYLE}<div><b>{title}</b></div>{"".join(parts)}'
        f'<div class="dim">{text(command)}</div></div>'
    )


def table(rows: Iterable[Iterable[str]]) -> str:
    """Returns a table. The cells are HTML."""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{body}</table>"


def tree(value: Value, key: str = "", depth: int = 0) -> str:
    """Returns a JSON value as a tree, open to the second level."""
    label = f"<b>{text(key, 80)}</b> " if key else ""
    if isinstance(value, dict) and value and depth < 6:
        inside = "".join(tree(item, name, depth + 1) for name, item in list(value.items())[:ROWS_MAX])
        more = f'<div class="dim">… {len(value) - ROWS_MAX} more</div>' if len(value) > ROWS_MAX else ""
        opened = " open" if depth < 2 else ""
        return f"<details{opened}><summary>{label}<span class=dim>{len(value)}</span></summary>{inside}{more}</details>"
    return f"<div>{label}{text(value)}</div>"
