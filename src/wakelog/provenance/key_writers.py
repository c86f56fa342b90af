"""Which event wrote a key of the state last, and for `/data` every event that a value is made of.

The search goes back from the newest event. An event that inserts into a list before the wanted position moves it:
`/data/plan/2` may have been `/data/plan/1` earlier. What a rewind restored was written by its first writer. So the
parts of the state that a rewind restores are followed through the events in view only.
"""

from __future__ import annotations

from collections.abc import Iterator

from wakelog.errors import NotFoundError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.document import REWOUND_PARTS
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.state.patch import MISSING, Op, child_of, escape, tokens_of

_PAGE = 512
_ROOT = b'"path":""'
"""The path of an operation that replaces the whole state."""


def key_writer(log: Log, pointer: str, at: Seq) -> Seq:
    """The last event up to `at` that wrote a key, or something in or around it; 0 when it was pruned."""
    tokens = tokens_of(pointer)
    lists = _lists(log.state(at), tokens, pointer)
    is_restored = bool(tokens) and tokens[0] in (*REWOUND_PARTS, "goal_from")
    marks = (f"/{tokens[0]}".encode() if tokens else b"", _ROOT)
    for entry in _backwards(log, log.view(at) if is_restored else [(1, at)]):
        if not entry.record.body:
            return 0
        if entry.kind == "history.rewound" and is_restored:
            continue
        if not any(mark in entry.record.body for mark in marks):
            continue  # most events do not mention the part, so their delta is not decoded
        for op in reversed(entry.delta):
            if _writes(op, tokens, lists):
                return entry.seq
    return 0


def _backwards(log: Log, ranges: list[tuple[Seq, Seq]]) -> Iterator[Entry]:
    for first, last in reversed(ranges):
        while last >= first:
            start = max(first, last - _PAGE + 1)
            yield from reversed(list(log.entries(after=start - 1, upto=last)))
            last = start - 1


def _lists(state: Value, tokens: list[str], pointer: str) -> list[bool]:
    """For each token, whether it is a place in a list; NotFoundError when nothing is at the pointer."""
    lists, node = [], state
    for token in tokens:
        lists.append(type(node) is list)
        if (node := child_of(node, token)) is MISSING:
            raise NotFoundError(
                f"there is no {pointer} in the state", kind="key-not-found", hint="wakelog state shows what there is"
            )
    return lists


def _writes(op: Op, tokens: list[str], lists: list[bool]) -> bool:
    """Whether an operation wrote the key. If it only moved the key, `tokens` becomes the place before the move."""
    path = tokens_of(op["path"])
    last = len(path) - 1
    if path and last < len(tokens) and lists[last] and path[:last] == tokens[:last]:
        place, mine = int(path[last]), int(tokens[last])
        if op["op"] == "add" and place < mine:
            tokens[last] = str(mine - 1)
            return False
        if op["op"] == "remove" and place <= mine:
            tokens[last] = str(mine + 1)
            return False
        return place == mine
    shorter = min(len(path), len(tokens))
    return path[:shorter] == tokens[:shorter]


# All writers of `/data`


class _Node:
    """A place in `/data`: which event wrote all of it, which wrote parts, and the places below."""

    __slots__ = ("below", "parts", "whole")

    def __init__(self, whole: Seq = -1) -> None:
        self.whole = whole
        self.parts: set[Seq] = set()
        self.below: dict[str, _Node] = {}

    def all_below(self) -> set[Seq]:
        results = set(self.parts)
        for node in self.below.values():
            results |= node.all_below()
            if node.whole >= 0:
                results.add(node.whole)
        return results


def data_writers(log: Log, at: Seq) -> list[tuple[str, frozenset[Seq]]]:
    """For each key of `/data`, the events its value is made of; 0 means a pruned event. A list counts as one key:
    its members move."""
    root = _Node(0)
    for first, last in log.view(at):
        for entry in log.entries(after=first - 1, upto=last):
            if entry.kind in ("session.opened", "state.patched", "history.adopted"):
                for op in entry.delta:
                    _apply(root, op, entry.seq)
    return list(_keys(root, log.state(at)["data"], "/data", 0))


def _apply(root: _Node, op: Op, seq: Seq) -> None:
    tokens = tokens_of(op["path"])
    if tokens[:1] not in ([], ["data"]):
        return
    del tokens[:1]
    if not tokens:
        root.whole, root.parts, root.below = seq, set(), {}
        return
    node = root
    for token in tokens[:-1]:
        node = node.below.setdefault(token, _Node())
    token = tokens[-1]
    if op["op"] == "remove":
        node.parts.add(seq)
        if not token.isdecimal():
            node.below.pop(token, None)
    elif op["op"] == "add" and token.isdecimal() and token in node.below:
        node.below[token].parts.add(seq)  # perhaps it only moved what was there
    else:
        node.below[token] = _Node(seq)


def _keys(node: _Node, value: Value, pointer: str, whole: Seq) -> Iterator[tuple[str, frozenset[Seq]]]:
    whole = node.whole if node.whole >= 0 else whole
    if type(value) is dict and value:
        for key, item in value.items():
            yield from _keys(node.below.get(key) or _Node(), item, f"{pointer}/{escape(key)}", whole)
    elif value != {} or pointer != "/data":
        yield pointer, frozenset({whole, *node.all_below()})
