"""What a question about provenance can be about: an event, a turn, a key of the state, a file or line, a source."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import msgspec

from wakelog.errors import InvalidInputError, NotFoundError
from wakelog.model.document import agent_ops, is_key
from wakelog.model.ids import Seq
from wakelog.model.trust import TRUSTS
from wakelog.provenance.effective_trust import TrustByEvent
from wakelog.provenance.event_index import OUTSIDE, Role
from wakelog.provenance.graph import Graph
from wakelog.provenance.key_writers import key_writer
from wakelog.provenance.line_origin import find_line
from wakelog.timeline.selectors import parse_selector, resolve_range

CHANGES = 12
"""How many changes of a file are asked about at once, the newest first."""

What = Seq | str
_LINE = re.compile(r"(?P<path>.+):(?P<line>\d+)")
_TOLD = frozenset({"decision.made", "fact.recorded", "file.changed", "artefact.recorded", "state.patched"})


class Target(msgspec.Struct, frozen=True):
    """The events a question is about, and how they were found."""

    what: str
    kind: str
    """event, events, key, file, line or source."""
    seqs: tuple[Seq, ...]
    way: str = ""
    """For a line, how its change was found (line_origin.py)."""
    note: str = ""
    """What could not be found out."""


def point_in(text: str) -> str:
    """The text as a position in a session, such as e12 or @3..@4; empty if it is not one."""
    try:
        selector = parse_selector(text)
    except InvalidInputError:
        return ""
    return selector.first + (f"..{selector.last}" if selector.last else "") if not selector.session else ""


def find(graph: Graph, what: What) -> Target:
    """Finds the events that a question is about; NotFoundError if there are none."""
    if isinstance(what, int):
        what = f"e{what}"
    if is_key(what):
        return _key(graph, what)
    if place := point_in(what):
        return _events(graph, what, place)
    return _file(graph, what)


def _key(graph: Graph, pointer: str) -> Target:
    seq = key_writer(graph.log, pointer, graph.head)
    note = "" if seq else "it was written in a part of the history that was pruned"
    return Target(pointer, "key", (seq,) if seq else (), note=note)


def _events(graph: Graph, what: str, place: str) -> Target:
    span = resolve_range(graph.log, place)
    first, last = max(1, span.first), min(span.last, graph.head)
    if first > last:
        raise NotFoundError(f"there is no event yet at {what}", kind="event-not-found")
    if first == last:
        return Target(what, "event", (first,))
    return Target(what, "events", tuple(range(first, last + 1)))


def narrow(graph: Graph, target: Target) -> Target:
    """Narrows a target: a range of events to those that show what was done (decisions, facts, files, effects), and the
    changes of a file to the newest."""
    if target.kind == "file" and len(target.seqs) > CHANGES:
        older = len(target.seqs) - CHANGES
        note = "1 older change is not asked about" if older == 1 else f"{older} older changes are not asked about"
        return msgspec.structs.replace(target, seqs=target.seqs[:CHANGES], note=note)
    if target.kind != "events":
        return target
    chosen = [s for s in target.seqs if _is_telling(graph, s) or graph.effect(s) in ("write", "external")]
    said = [s for s in target.seqs if graph.tracks.roles[s] == Role.SAID][-1:]
    return msgspec.structs.replace(target, seqs=tuple(chosen or said or target.seqs[-1:]))


def _is_telling(graph: Graph, seq: Seq) -> bool:
    kind = graph.tracks.kinds[seq]
    return kind in _TOLD and (kind != "state.patched" or bool(agent_ops(graph.log.entry(seq).delta)))


def _file(graph: Graph, what: str) -> Target:
    match = _LINE.fullmatch(what)
    paths = [match["path"]] if match else []
    path = next((p for text in (what, *paths) if (p := _known_path(graph, text))), "")
    if not path:
        raise _no_file(graph, what)
    every = graph.tracks.files[path]
    changes = [s for s in every if graph.in_view(s)] or list(every)
    if match and path != what and _known_path(graph, what) == "":
        line = find_line(graph.log, path, changes, int(match["line"]))
        return Target(f"{path}:{match['line']}", "line", (line.seq,) if line.seq else (), line.way, line.note)
    return Target(path, "file", tuple(reversed(changes)))


def _known_path(graph: Graph, text: str) -> str:
    """The recorded path that a text means: an equal one, or the only one that ends with it."""
    files = graph.tracks.files
    text = text.removeprefix("./")
    if text in files:
        return text
    ending = [path for path in files if path.endswith(f"/{text}")]
    return ending[0] if len(ending) == 1 else ""


def _no_file(graph: Graph, what: str) -> NotFoundError:
    import difflib

    bare = what.rpartition(":")[0] or what
    same_end = [p for p in graph.tracks.files if p.endswith(f"/{bare}")]
    near = same_end[:3] or difflib.get_close_matches(bare, list(graph.tracks.files)[:5000], 3, 0.4)
    known = f" (near it: {', '.join(near)})" if near else ""
    return NotFoundError(
        f"{what!r} is not a position, a key of the state, or a file with recorded changes{known}",
        kind="nothing-to-trace",
        hint="ask of an event (e12), a turn (@3), a key (/facts/x), a file or a line (src/a.py:12)",
    )


# Sources


def find_sources(graph: Graph, trusts: TrustByEvent, source: What) -> Target:
    """The events to start from: everything that came in from sources of that name (`web:*`), or what `find` finds."""
    if isinstance(source, int) or is_key(source) or point_in(source):
        return find(graph, source)
    tracks = graph.tracks
    named = [seqs for name, seqs in tracks.by_source.items() if fnmatchcase(name, source)]
    seqs = {s for each in named for s in each if graph.is_origin(s) or trusts.own[s]}
    # Without a recorded source, the user or the tool that brought it counts as one: user, tool:fetch.
    labelled = (s for s in tracks.carriers if s not in tracks.sources and tracks.roles[s] in OUTSIDE)
    seqs |= {s for s in labelled if graph.is_origin(s) and fnmatchcase(graph.source(s), source)}
    if seqs or not _known_path(graph, source):
        return Target(source, "source", tuple(sorted(seqs)))
    return find(graph, source)


def distrusted_target(graph: Graph, trusts: TrustByEvent, rank: int) -> Target:
    """Everything that is distrusted for its own sake: stamped when it came in, or invalidated."""
    marks = graph.tracks.marks
    seqs = [
        s
        for s in range(1, graph.head + 1)
        if trusts.rank(s) >= rank and (trusts.own[s] or (s in marks and marks[s][-1].mark == "invalidated"))
    ]
    return Target(TRUSTS[rank], "source", tuple(seqs))
