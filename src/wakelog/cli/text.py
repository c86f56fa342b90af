"""Text for terminals: recorded content made inert, widths, times, sizes, money.

Recorded text is hostile. Control characters, escape sequences, bidirectional overrides and zero-width characters are
shown as visible signs and never reach the terminal as themselves.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence

from wakelog.config.amounts import show_size
from wakelog.model.hidden_characters import HIDDEN, code_point

_HOSTILE = re.compile(f"[{HIDDEN}]")
_BEYOND_ASCII = re.compile("[^\t\n -~]")
_BREAKS = re.compile(r"[\n\t]")

_GLYPHS = {  # in Unicode, and in ASCII where the terminal has nothing better
    "check": ("✔", "+"),
    "done": ("●", "*"),
    "failed": ("✗", "x"),
    "open": ("◐", "~"),
    "warn": ("⚠", "!"),
    "arrow": ("→", "->"),
    "from": ("←", "<-"),
    "more": ("…", "..."),
    "paused": ("‖", "="),
    "minus": ("−", "-"),
    "dot": ("·", "|"),
    "times": ("×", "x"),
    "call": ("▸", ">"),
    "note": ("◦", "."),
    "fork": ("⑂", "Y"),
    "back": ("↶", "<"),
    "line": ("│", "|"),
    "gone": ("╎", ":"),
    "dash": ("–", "-"),
    "first": ("◀", "<<"),
}
_IN_ASCII = str.maketrans(dict(_GLYPHS.values()))


def glyph(name: str) -> str:
    """A sign, in ASCII where the terminal has nothing better."""
    return _GLYPHS[name][_is_plain()]


def with_known_signs(line: str) -> str:
    """The line with our signs in ASCII, where the terminal has nothing better."""
    return line.translate(_IN_ASCII) if _is_plain() and not line.isascii() else line


def _is_plain() -> bool:
    return os.environ.get("WAKELOG_ASCII") == "1" or "utf" not in (sys.stdout.encoding or "").lower()


def inert(text: str) -> str:
    """The text with hostile characters made visible, so that it cannot control the terminal."""
    return _HOSTILE.sub(_visible, text)


def inert_line(text: str) -> str:
    """Like inert, on one line."""
    return _BREAKS.sub(" ", inert(text))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if _is_plain():
        return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"<U+{code:04X}>"
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else code_point(match)


def inert_json(text: str) -> str:
    """The same JSON with hostile characters, and those that stdout cannot write, as escapes."""
    unsafe = _HOSTILE if "utf" in (sys.stdout.encoding or "").lower() else _BEYOND_ASCII
    return unsafe.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    import json

    return json.dumps(match[0])[1:-1]


def width(text: str) -> int:
    """How many columns the text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns_of, text))


def _columns_of(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, columns: int) -> str:
    """The text on one line, cut to `columns`."""
    line = inert_line(text)
    if width(line) <= columns:
        return line
    return take_columns(line, columns - 1) + glyph("more")[:1]


def fit_path(text: str, columns: int) -> str:
    """Like fit, but cut in the middle: the end of a path or key says most."""
    line = inert_line(text)
    if width(line) <= columns:
        return line
    end = take_columns(line[::-1], max(0, columns - 1 - columns // 3))[::-1]
    return take_columns(line, columns - 1 - width(end)) + glyph("more")[:1] + end


def take_columns(line: str, columns: int) -> str:
    used = 0
    for place, char in enumerate(line):
        used += width(char)
        if used > columns:
            return line[:place]
    return line


def fold_list(head: str, parts: Sequence[str], columns: int) -> list[str]:
    """The parts after a head, separated by dots, on as many lines as they need."""
    lines, line = [], head
    for number, part in enumerate(map(inert_line, parts)):
        joined = f"{line} · {part}" if number else f"{line}{part}"
        if number and width(joined) > columns:
            lines.append(line)
            joined = " " * width(head) + part
        line = joined
    return [*lines, line]


def join_facts(facts: Iterable[str]) -> str:
    """Facts on one line, with dots between them; empty ones are left out."""
    return f" {glyph('dot')} ".join(filter(None, facts))


def name_some(names: Sequence[str], most: int, *, by: str = ", ") -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return by.join(names[:most]) + more


def pad(text: str, columns: int, *, middle: bool = False) -> str:
    """The text cut or filled to exactly `columns`."""
    cut = fit_path(text, columns) if middle else fit(text, columns)
    return cut + " " * (columns - width(cut))


def clock(at_us: int, *, utc: bool = False, long: bool = False) -> str:
    """A time of day, or with `long` the whole time."""
    when = dt.datetime.fromtimestamp(at_us / 1e6, tz=dt.UTC)
    when = when if utc else when.astimezone()
    return when.strftime("%Y-%m-%d %H:%M:%S" if long else "%H:%M")


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def day(at_us: int, now_us: int, *, utc: bool = False) -> str:
    """A day as people write it: 3 Nov, with the year if it is not this year."""
    then, now = (clock(each, utc=utc, long=True) for each in (at_us, now_us))
    month = _MONTHS[int(then[5:7]) - 1]
    return f"{int(then[8:10])} {month}" + (f" {then[:4]}" if then[:4] != now[:4] else "")


def place_of_turn(turn: int, attempt: int = 1) -> str:
    """A turn as a selector, `@5`, with its attempt if that is not the first; empty for 0."""
    return f"@{turn}" + (f".{attempt}" if attempt > 1 else "") if turn else ""


def trust_mark(trust: str, source: str = "") -> str:
    """A warning sign with the source of what is not trusted; else empty."""
    return f"{glyph('warn')} {source or trust}" if trust != "trusted" else ""


def other_time(happened_us: int, stored_us: int) -> str:
    """A star if the time of the event differs from the time it was stored."""
    return "*" if abs(happened_us - stored_us) >= 1_000_000 else ""


def iso(at_us: int) -> str:
    """RFC 3339 in UTC, for machines."""
    return dt.datetime.fromtimestamp(at_us / 1e6, tz=dt.UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def age(at_us: int, now_us: int) -> str:
    """How long ago, in one unit."""
    seconds = max(0, (now_us - at_us) // 1_000_000)
    for size, unit in ((604800, "w"), (86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit} ago"
    return f"{seconds}s ago"


size = show_size


def money(usd_micros: int) -> str:
    """Dollars and cents. Less than a cent is not shown as nothing."""
    return "<$0.01" if 0 < usd_micros < 10_000 else f"${usd_micros / 1e6:.2f}"


def count(number: int) -> str:
    """A number for people: 950, 4.0k, 1.2M."""
    for size_, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= size_:
            return f"{number / size_:.1f}{unit}"
    return str(number)


def duration(us: int) -> str:
    """How long something took, in at most two units."""
    if us < 1_000_000:
        return f"{us // 1000}ms"
    seconds = us // 1_000_000
    if seconds < 10:
        return f"{us / 1e6:.1f}s"
    for large, small, big, little in ((86400, 3600, "d", "h"), (3600, 60, "h", "m"), (60, 1, "m", "s")):
        if seconds >= large:
            rest = seconds % large // small
            return f"{seconds // large}{big}{rest:02}{little}" if rest else f"{seconds // large}{big}"
    return f"{seconds}s"
