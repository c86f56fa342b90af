"""What earlier sessions knew: one line says where it comes from, the next what it says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wakelog.cli.context import CommandContext
from wakelog.cli.render.results import shape
from wakelog.cli.text import age, fit, glyph, inert_line, trust_mark, width
from wakelog.knowledge.connections import PathStep, ThingPath
from wakelog.knowledge.likeness import LikeSession, LikeSessions
from wakelog.knowledge.lines import KnownLine, KnownThing
from wakelog.knowledge.recall import PastLines
from wakelog.model.names import unquoted_name

shape(
    KnownLine,
    "kind text session name? seq turn? timestamp=at:iso trust known project? times roots sources conflicts stale why?",
)
shape(KnownThing, "subject kind lines more")
shape(PastLines, "signature? lines more")
shape(ThingPath, "a b steps")
shape(PathStep, "kind name session session_name? seq")
shape(LikeSessions, "text sessions")
shape(LikeSession, "session name? project? about outcome? timestamp=at:iso trust score why")


def place_of(session: str, name: str, turn: int, seq: int) -> str:
    """A selector to paste after `wakelog show`."""
    named = unquoted_name(name) or session
    return f"{named}@{turn} e{seq}" if turn else f"-s {named} e{seq}"


def known_lines(ctx: CommandContext, lines: Iterable[KnownLine], *, projects: bool = False) -> Iterator[str]:
    """Two rows for each line: its source and marks, then its text. Derived lines are marked ~."""
    now = ctx.store.clock()
    for line in lines:
        place = fit(place_of(line.session, line.name, line.turn, line.seq), ctx.columns // 2)
        sign = "~ " if line.known != "recorded" else ""
        marks = [f"{sign}{line.kind.replace('_', ' ')}", age(line.at, now)]
        marks += [f"{line.roots} sessions"] if line.roots > 1 else []
        marks += [trust_mark(line.trust)] if line.trust != "trusted" else []
        marks += [f"{glyph('warn')} contradicted"] if line.conflicts else []
        marks += ["the file has changed since"] if line.stale else []
        marks += [line.project] if projects and line.project else []
        marks += [line.why] if line.why else []
        rest = fit("  ".join(inert_line(mark) for mark in marks), max(10, ctx.columns - width(place) - 2))
        yield f"{ctx.style(place, fg='cyan')}  {ctx.style(rest, dim=True)}"
        yield "    " + fit(inert_line(line.text), ctx.columns - 4)


def like_lines(ctx: CommandContext, sessions: Iterable[LikeSession]) -> Iterator[str]:
    now = ctx.store.clock()
    for session in sessions:
        named = fit(unquoted_name(session.name) or session.session, ctx.columns // 2)
        marks = [age(session.at, now), *([session.outcome] if session.outcome else []), *session.why]
        marks += [f"{glyph('warn')} {session.trust}"] if session.trust == "untrusted" else []
        rest = fit("  ".join(inert_line(mark) for mark in marks), max(10, ctx.columns - width(named) - 2))
        yield f"{ctx.style(named, fg='cyan')}  {ctx.style(rest, dim=True)}"
        yield "    " + fit(inert_line(session.about), ctx.columns - 4)
