"""Text matches: text in an agent's action that is word for word in something it had read before.

Where no data flow is recorded, content can still show it: the address of a mail was in a page, and nowhere before. Each
event gives a few *needles*: addresses, links, paths, hashes, and lines or values of at least 16 characters. Each is
searched in everything read before, from the beginning; the earliest event that has it is its source. A match shows
where the text could have come from; the same words can be written twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

import msgspec

from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.log.reader import Entry, fetch, open_commit, read_commits
from wakelog.model.document import agent_ops
from wakelog.model.ids import Seq
from wakelog.model.payloads import as_ref, decode_payload
from wakelog.model.read_texts import READ_FIELDS, texts_of
from wakelog.model.values import Value
from wakelog.provenance.event_index import Role, is_read_by_models
from wakelog.provenance.graph import Edge, Graph

NEEDLES = 12
"""How many needles are taken from an event at most, the most distinctive first."""
LEAST, SHORT, LONGEST = 16, 8, 400
TRIES = 256
"""How many events that the index names are read; with more, all are searched."""
FEW = 48
"""Up to this many needles are searched one by one; more are looked up word by word, by their first characters."""

# Each match starts at the beginning of a word, so that no word is scanned twice.
_ADDRESS = re.compile(
    r"""(?<![\w.+~/-]) (?: https?://[^\s"'<>\\)\]}]+ | [\w.+-]+@[\w-]+(?:\.[\w-]+)+ | [\w.~-]*/[\w./~-]*\w )""",
    re.VERBOSE,
)
_HASH = re.compile(r"\b[0-9a-fA-F]{12,}\b")
_BREAKS = re.compile(r"[\r\n]+|(?<=[.!?;])\s+")
_STARTS = re.compile(r"(?<!\w)\S")

# Where each kind keeps what the agent wrote.
_WRITTEN = {
    "action.requested": ("input",),
    "action.recorded": ("input",),
    "decision.made": ("choice", "because"),
    "fact.recorded": ("value",),
    "artefact.recorded": ("content", "uri"),
    "subagent.spawned": ("task",),
    "input.requested": ("prompt",),
}
TARGETS = frozenset({*_WRITTEN, "file.changed", "state.patched"})
_CHUNK = 5_000

Wanted = dict[str, list[Seq]]
"""Needle → the events it was taken from."""


def written_texts(graph: Graph, entry: Entry) -> list[str]:
    """What the agent wrote in an event; for a file only the new lines, for a patch the new values."""
    if entry.kind == "state.patched":
        return [text for op in agent_ops(entry.delta) for text in texts_of(op.get("value"))]
    if entry.kind == "file.changed":
        before = {line.strip() for text in _texts(graph, entry, ("before",)) for line in text.splitlines()}
        after = (line.strip() for text in _texts(graph, entry, ("after",)) for line in text.splitlines())
        return [line for line in after if line not in before]
    return _texts(graph, entry, _WRITTEN.get(entry.kind, ()))


def readable_text(graph: Graph, entry: Entry) -> str:
    """What a model could read of an event."""
    return "\n".join(_texts(graph, entry, READ_FIELDS.get(entry.kind, ())))


def _texts(graph: Graph, entry: Entry, fields: Iterable[str]) -> list[str]:
    values = (_value(graph, entry, entry.body.get(field)) for field in fields)
    return [text for value in values for text in texts_of(value)]


def _value(graph: Graph, entry: Entry, value: Value) -> Value:
    try:
        return graph.log.value(entry, value)
    except NotFoundError:
        return None  # erased or pruned: no text


def needles_of(texts: Iterable[str]) -> list[str]:
    """The most distinctive strings of some texts: addresses, paths and hashes first, then the longest lines."""
    distinctive: dict[str, None] = {}
    lines: dict[str, None] = {}
    for text in texts:
        results = _ADDRESS.findall(text) if "/" in text or "@" in text else []
        for word in (*results, *_HASH.findall(text)):
            distinctive[word.rstrip(".,;:")[:LONGEST]] = None
        for line in _BREAKS.split(text):
            line = line.strip()
            if len(line) >= LEAST and len(set(line)) > 5:
                lines[line[:LONGEST]] = None
    ranked = [*distinctive, *sorted(lines, key=len, reverse=True)]
    return [n for n in dict.fromkeys(ranked) if len(n) >= SHORT and len(set(n)) > 4][:NEEDLES]


def is_target(graph: Graph, seq: Seq) -> bool:
    """Whether an event has text that the agent wrote."""
    tracks = graph.tracks
    return tracks.kinds[seq] in TARGETS and tracks.roles[seq] not in (Role.MODEL_ASKED, Role.MODEL_RECORDED)


def match(graph: Graph, targets: Iterable[Seq]) -> dict[Seq, tuple[Edge, ...]]:
    """For each target, edges to the earliest events that contain its text. One pass over everything before the last
    target."""
    wanted = _wanted(graph, _entries_at(graph, [s for s in sorted(set(targets)) if is_target(graph, s)]))
    return _edges(wanted, _first_mentions(graph, wanted))


def match_from(graph: Graph, sources: Iterable[Seq], targets: Iterable[Seq]) -> dict[Seq, tuple[Edge, ...]]:
    """Edges from targets whose text appeared first in one of the sources. Targets are processed a few thousand at a
    time, so that their text is never all in memory."""
    chosen = sorted(s for s in set(sources) if graph.is_carrier(s))
    later = [s for s in sorted(set(targets)) if chosen and s > chosen[0] and is_target(graph, s)]
    mine: Wanted = {}
    for start in range(0, len(later), _CHUNK):
        wanted = _wanted(graph, _entries_at(graph, later[start : start + _CHUNK]))
        by_start = _by_start(wanted)
        for entry in _entries_at(graph, chosen):
            for needle in _held(readable_text(graph, entry), by_start):
                mine.setdefault(needle, []).extend(wanted[needle])
    seqs = _first_mentions(graph, mine)
    return _edges(mine, {needle: seq for needle, seq in seqs.items() if seq in set(chosen)})


def _wanted(graph: Graph, entries: Iterable[Entry]) -> Wanted:
    wanted: Wanted = {}
    for entry in entries:
        if entry.is_intact:
            for needle in needles_of(written_texts(graph, entry)):
                wanted.setdefault(needle, []).append(entry.seq)
    return wanted


def _edges(wanted: Wanted, seqs: dict[str, Seq]) -> dict[Seq, tuple[Edge, ...]]:
    """One edge for each pair of events, with the longest text that both contain."""
    best: dict[Seq, dict[Seq, str]] = {}
    for needle, source in seqs.items():
        for target in wanted[needle]:
            if source < target:
                shared = best.setdefault(target, {})
                if len(needle) > len(shared.get(source, "")):
                    shared[source] = needle
    return {
        target: tuple(Edge(source, source, "match", "matched", text) for source, text in sorted(shared.items()))
        for target, shared in best.items()
    }


def _entries_at(graph: Graph, seqs: list[Seq]) -> Iterator[Entry]:
    """The entries at `seqs`; neighbours are read together."""
    place = 0
    while place < len(seqs):
        end = place
        while end + 1 < len(seqs) and seqs[end + 1] - seqs[end] <= 64:
            end += 1
        wanted = set(seqs[place : end + 1])
        yield from (e for e in graph.log.entries(after=seqs[place] - 1, upto=seqs[end]) if e.seq in wanted)
        place = end + 1


# Searching


def _first_mentions(graph: Graph, wanted: Wanted) -> dict[str, Seq]:
    """For each needle, the earliest event that a model could read and that contains it."""
    upto = max((max(seqs) for seqs in wanted.values()), default=1) - 1
    asked = (tuple(wanted), upto)
    if asked in graph.mentions:
        return graph.mentions[asked]
    results = graph.mentions[asked] = {}
    left = dict.fromkeys(wanted)
    by_start = _by_start(wanted)
    contents = _likely_contents(graph, upto, left) if _is_raw(graph, left) else _contents(graph, upto)
    for seq, content in contents:
        if not left:
            break
        hits = [n for n in left if n in content] if len(left) <= FEW else _held(content, by_start) & left.keys()
        # A hit is read again and checked against its hash: the scan itself does not verify bytes.
        sure = _held(readable_text(graph, graph.log.entry(seq)), by_start) if hits else ()
        for needle in hits:
            if needle in sure:
                results[needle] = seq
                del left[needle]
    return results


def _by_start(needles: Iterable[str]) -> dict[str, list[str]]:
    by_start: dict[str, list[str]] = {}
    for needle in needles:
        by_start.setdefault(needle[:SHORT], []).append(needle)
    return by_start


def _held(text: str, by_start: dict[str, list[str]]) -> set[str]:
    """The needles that a text contains at the beginning of a word."""
    held = set()
    for start in _STARTS.finditer(text):
        at = start.start()
        for needle in by_start.get(text[at : at + SHORT], ()):
            if text.startswith(needle, at):
                held.add(needle)
    return held


def _is_raw(graph: Graph, needles: Collection[str]) -> bool:
    """Whether stored bytes can be searched: there are few needles, and payloads are stored with their commits."""
    return len(needles) <= FEW and not graph.log.engine.abilities.payloads_apart


def _likely_contents(graph: Graph, upto: Seq, left: Collection[str]) -> Iterator[tuple[Seq, str]]:
    """What a model could read in the events that may contain a needle that is still `left`, oldest first: in those that
    the index names, and then in the commits that it does not know. If it names very many, all are searched from
    there."""
    known = graph.places.named(left, upto, TRIES) if graph.places is not None else None
    named, after = known or ((), 0)
    tries, newest = 0, 0
    for seq, needle in named:
        if needle and needle not in left:
            continue
        tries += 1
        if tries == TRIES:
            after = seq - 1
            break
        if seq == newest:
            continue
        newest = seq
        try:
            entry = graph.log.entry(seq)
        except CorruptLogError:
            after = seq - 1
            break
        following = graph.log.entry(seq + 1) if entry.kind == "turn.started" and seq < graph.head else None
        if is_read_by_models(entry, following):
            yield seq, readable_text(graph, entry)
    if after < upto:
        yield from _contents_of_likely_commits(graph, after, upto, left)


def _contents_of_likely_commits(
    graph: Graph, after: Seq, upto: Seq, needles: Iterable[str]
) -> Iterator[tuple[Seq, str]]:
    """What a model could read in the commits whose bytes contain a needle. Other commits are not decoded."""
    marks = {mark for needle in needles for mark in (needle.encode(errors="replace"), _encode(needle)[1:-1])}
    for commit, last in read_commits(graph.log.engine, graph.log.segments, after=after, upto=upto, payloads=True):
        graph.notice(commit, last)
        stored = b"\n".join([*(record.body for record in commit.records), *(content for _, content in commit.payloads)])
        if not _may_hold(stored, marks):
            continue
        # A later event may refer to the same payload by its hash.
        marks |= {digest.hex().encode() for digest, content in commit.payloads if _may_hold(content, marks)}
        entries = open_commit(commit)
        for entry, following in zip(entries, [*entries[1:], None], strict=True):
            if after < entry.seq <= last:
                if following is None and entry.kind == "turn.started" and entry.seq < graph.head:
                    following = graph.log.entry(entry.seq + 1)
                if is_read_by_models(entry, following):
                    yield entry.seq, readable_text(graph, entry)


def _may_hold(stored: bytes, marks: Collection[bytes]) -> bool:
    """Whether bytes may contain a mark. Bytes with escapes that we do not write ourselves count as a maybe."""
    return any(mark in stored for mark in marks) or (b"\\" in stored and (b"\\u" in stored or b"\\/" in stored))


class _Body(msgspec.Struct):
    """The fields of a body that a model could read; others are not decoded."""

    content: Value = None
    output: Value = None
    error: Value = None
    input: Value = None
    answer: Value = None
    summary: Value = None


_decode = msgspec.json.Decoder(_Body).decode
_encode = msgspec.json.Encoder().encode


def _contents(graph: Graph, upto: Seq) -> Iterator[tuple[Seq, str]]:
    """What a model could read, event by event. A repeated payload is left out: only its first occurrence counts."""
    log, seen = graph.log, set[bytes]()
    for commit, last in read_commits(log.engine, log.segments, upto=upto, payloads=True):
        payloads = dict(commit.payloads)
        for seq in range(commit.first, last + 1):
            if graph.is_carrier(seq):
                body = commit.records[seq - commit.first].body
                yield seq, "\n".join(_readable_texts(graph, seq, body, payloads, seen))


def _readable_texts(
    graph: Graph, seq: Seq, body: bytes, payloads: dict[bytes, bytes], seen: set[bytes]
) -> Iterator[str]:
    try:
        fields = _decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    for field in READ_FIELDS.get(graph.tracks.kinds[seq], ()):
        value = getattr(fields, field)
        ref = as_ref(value)
        if ref is None:
            yield from texts_of(value)
            continue
        digest = bytes.fromhex(ref.hash)
        if digest not in seen:
            seen.add(digest)
            content = payloads.get(digest)
            if content is None:
                content = _fetch_payload(graph, ref.at or seq, digest)
            yield from texts_of(decode_payload(content, ref.media)) if content else ()


def _fetch_payload(graph: Graph, seq: Seq, digest: bytes) -> bytes:
    try:
        return fetch(graph.log.engine, graph.log.segments, seq, digest)
    except NotFoundError:
        return b""
