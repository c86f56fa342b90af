"""Edits a JSON file as text: additions are inserted, removals are cut out, and every other byte stays.

A settings file belongs to its owner, with its indentation and key order. So nothing is rewritten: the text is parsed
into spans, and an edit is one insertion at the end of an object or an array, in the style around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

JsonPath = Sequence[str | int]
_BLANK = re.compile(r"[ \t\r\n\ufeff]*")
_BLANK_OR_COMMENT = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
DEPTH_MAX = 100


class BadJsonError(ValueError):
    """The text is not JSON; says where."""


class JsonNode(msgspec.Struct):
    """A value and its span: `start` is its first character, `end` is after its last."""

    start: int
    end: int
    value: Any = None
    members: list[tuple[str | int, int, JsonNode]] = []
    """For an object or array: key or index, where the member starts (at its key, if it has one), and its value."""
    kind: str = "scalar"

    def get(self, key: str | int) -> JsonNode | None:
        return next((node for name, _, node in reversed(self.members) if name == key), None)


class Insertion(msgspec.Struct, frozen=True):
    """An inserted text, and its position."""

    at: int
    text: str


def is_blank(text: str) -> bool:
    return not text.strip("\ufeff \t\r\n")


def parse(text: str, *, comments: bool = False) -> JsonNode:
    """Parses a document into spans. Raises BadJsonError if it is not JSON."""
    return _Parser(text, comments).document()


def add_member(
    text: str, path: JsonPath, key: str, value: Any, *, comments: bool = False, spread: int = 0
) -> list[Insertion]:
    """The insertion that adds a last member to the object at `path`; missing objects on the path are created. The outer
    `spread` levels of the value get a line for each member."""
    root = None if is_blank(text) else parse(text, comments=comments)
    if root is None:
        made: Any = {key: value}
        for name in reversed(path):
            made = {name: made}
        depth = 1 + len(path) + spread
        return [Insertion(len(text), _spread(made, "", "  ", _newline(text), depth) + _newline(text))]
    node, at = root, 0
    while at < len(path) and (found := node.get(path[at])) is not None:
        node, at = found, at + 1
    if node.kind != "object":
        raise BadJsonError(f"{_path_text(path[:at])} is not an object")
    missing = [str(name) for name in path[at:]]
    made = value
    for name in reversed([*missing[1:], key] if missing else []):
        made = {name: made}
    label = json.dumps(missing[0] if missing else key) + ": "
    return [_insert_last(text, node, label, made, depth=len(missing) + spread)]


def append_item(text: str, path: JsonPath, value: Any, *, comments: bool = False) -> list[Insertion]:
    """The insertion that adds a last item to the existing array at `path`."""
    node = find(parse(text, comments=comments), path)
    if node is None or node.kind != "array":
        raise BadJsonError(f"{_path_text(path)} is not an array")
    return [_insert_last(text, node, "", value, depth=0)]


def remove(text: str, path: JsonPath, *, comments: bool = False) -> str:
    """The text without the member at `path`, its comma and the blanks around them. Comments there stay. Unchanged if
    there is no such member."""
    parser = _Parser(text, comments)
    node = find(parser.document(), path[:-1])
    if node is None or not node.members:
        return text
    place = next((i for i in reversed(range(len(node.members))) if node.members[i][0] == path[-1]), None)
    if place is None:
        return text
    _, begin, value = node.members[place]
    if place > 0:
        start, end = node.members[place - 1][2].end, value.end
        comma = parser.skip(start)
        left = text[start:comma] + text[comma + 1 : begin]
    elif len(node.members) > 1:
        start, end = begin, node.members[1][1]
        comma = parser.skip(value.end)
        left = text[value.end : comma] + text[comma + 1 : end]
    else:
        start, end = node.start + 1, node.end - 1
        left = text[start:begin] + text[value.end : end]
    return text[:start] + ("" if is_blank(left) else left) + text[end:]


def find(node: JsonNode | None, path: JsonPath) -> JsonNode | None:
    """The value at a path. None if there is none."""
    for name in path:
        node = node.get(name) if node is not None else None
    return node


def insert(text: str, insertions: Sequence[Insertion]) -> str:
    for each in insertions:
        text = text[: each.at] + each.text + text[each.at :]
    return text


def undo_insertions(text: str, insertions: Sequence[Insertion]) -> str | None:
    """The text without the insertions, also if it was changed around them. None if one of them was changed itself, or
    could be one of several."""
    for each in reversed(insertions):
        at = each.at
        if not text.startswith(each.text, at):
            at = text.find(each.text)
            if at < 0 or text.find(each.text, at + 1) >= 0:
                return None
        text = text[:at] + text[at + len(each.text) :]
    return text


# Style


def _insert_last(text: str, node: JsonNode, label: str, value: Any, depth: int) -> Insertion:
    """Inserts a last member, on its own line if the others are. `depth` more levels are spread over lines."""
    newline = _newline(text)
    opening = text[node.start + 1 : node.members[0][1] if node.members else node.end - 1]
    is_spread = "\n" in opening or (not node.members and (node.start == 0 or "\n" in text[: node.start]))
    if not is_spread:
        at = node.members[-1][2].end if node.members else node.start + 1
        return Insertion(at, (", " if node.members else "") + label + json.dumps(value, ensure_ascii=False))
    outer = _indent_at(text, node.start)
    unit = _unit(text)
    inner = _indent_at(text, node.members[-1][1]) if node.members else outer + unit
    line = newline + inner + label + _spread(value, inner, unit, newline, depth)
    if node.members:
        return Insertion(node.members[-1][2].end, "," + line)
    return Insertion(node.start + 1, line if "\n" in opening else line + newline + outer)


def _spread(value: Any, indent: str, unit: str, newline: str, depth: int) -> str:
    """JSON with a line for each member in its outer levels. Inner levels are on one line."""
    if depth <= 0 or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + unit
    rows = [
        f"{newline}{inner}{json.dumps(k, ensure_ascii=False)}: {_spread(v, inner, unit, newline, depth - 1)}"
        for k, v in value.items()
    ]
    return "{" + ",".join(rows) + newline + indent + "}"


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place]
    found = re.match(r"[ \t]*", line.lstrip("\ufeff"))
    return found[0] if found else ""


def _unit(text: str) -> str:
    """The file's indentation: the blanks before its first member."""
    found = re.search(r"[{\[]\s*\n([ \t]+)", text)
    return found[1] if found else "  "


def _path_text(path: JsonPath) -> str:
    return ".".join(map(str, path)) or "the file"


class _Parser:
    def __init__(self, text: str, comments: bool) -> None:
        self.text = text
        self.blank = _BLANK_OR_COMMENT if comments else _BLANK

    def document(self) -> JsonNode:
        node = self._value(self.skip(0), 0)
        if (rest := self.skip(node.end)) != len(self.text):
            raise self._error("there is more after its end", rest)
        return node

    def skip(self, at: int) -> int:
        found = self.blank.match(self.text, at)
        return found.end() if found else at

    def _error(self, what: str, at: int) -> BadJsonError:
        line = self.text.count("\n", 0, at) + 1
        return BadJsonError(f"line {line}, column {at - self.text.rfind(chr(10), 0, at)}: {what}")

    def _value(self, at: int, depth: int) -> JsonNode:
        if depth > DEPTH_MAX:
            raise self._error("too deep", at)
        sign = self.text[at : at + 1]
        if sign in ("{", "["):
            return self._container(at, depth, "}" if sign == "{" else "]")
        found = (_STRING if sign == '"' else _SCALAR).match(self.text, at)
        if found is None:
            raise self._error("a value is missing" if sign in ("", ",", "}", "]") else "this is no JSON", at)
        try:
            return JsonNode(at, found.end(), json.loads(found[0]))
        except ValueError as exc:
            raise self._error("this is no JSON", at) from exc

    def _container(self, at: int, depth: int, closing: str) -> JsonNode:
        node = JsonNode(at, at, kind="object" if closing == "}" else "array", members=[])
        here = self.skip(at + 1)
        while self.text[here : here + 1] != closing:
            if node.members:
                here = self._comma(here, closing)
            name, begin = self._key(here) if node.kind == "object" else (len(node.members), here)
            value = self._value(begin, depth + 1)
            node.members.append((name, here, value))
            here = self.skip(value.end)
        values = [(name, member.value) for name, _, member in node.members]
        node.value = dict(values) if node.kind == "object" else [value for _, value in values]
        node.end = here + 1
        return node

    def _key(self, at: int) -> tuple[str, int]:
        """The key of a member, and where its value starts."""
        key = _STRING.match(self.text, at)
        if key is None:
            raise self._error("a key in quotes is missing", at)
        colon = self.skip(key.end())
        if self.text[colon : colon + 1] != ":":
            raise self._error("a colon is missing", colon)
        return json.loads(key[0]), self.skip(colon + 1)

    def _comma(self, at: int, closing: str) -> int:
        if self.text[at : at + 1] != ",":
            raise self._error(f"a comma or {closing} is missing", at)
        return self.skip(at + 1)
