"""Where words of the command line point: the one file that turns them into sessions, events and keys.

Commands ask their context for a `Place` and get things, not text. When a word points nowhere, the error names what is
near it.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.text import age, fit, inert_line, width
from wakelog.errors import ConflictError, InvalidInputError, NotFoundError, WakelogError
from wakelog.log import Log
from wakelog.model.document import is_key
from wakelog.model.ids import Seq, SessionId
from wakelog.model.names import is_of_store
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.state.patch import escape, tokens_of
from wakelog.timeline.points import first_commit, seq_at_time
from wakelog.timeline.selectors import Range, Selector, parse_selector, parse_time, resolve_change, resolve_range

if TYPE_CHECKING:
    from wakelog.store.line_writer import LineWriter

T = TypeVar("T")
SHOWN = 8
MOST = 10
RECENT = 1000
"""Of so many sessions, the last active ones, the newest of this folder is looked for."""


class Place(msgspec.Struct, frozen=True):
    """A session, and a point or range in it as text; without text it is the session as it is now."""

    session: Session[Any]
    text: str = ""
    named: str = ""
    """The session as the words name it; empty when the one of `-s` or the newest is meant."""
    at: Seq | None = None
    """The event that `--at` names; None is now."""
    line: LineWriter | None = None
    """What led here, for a line of a file where no session was named."""

    @property
    def is_range(self) -> bool:
        return ".." in self.text

    @property
    def span(self) -> Range:
        """The events it covers, which may be none: @0 lies before the first."""
        return span_of(self.session, self.text)

    @property
    def events(self) -> Range:
        """The events it covers; an error where nothing had happened yet."""
        return something(self.session, self.text)

    @property
    def change(self) -> tuple[Seq, Seq]:
        """The points before and after what it changed; without text, what the last turn changed."""
        return _or_near(self.session, self.text, lambda log: resolve_change(log, self.text or None))

    @property
    def seq(self) -> Seq | None:
        """The event it stands for; None is now."""
        return self.events.last if self.text else None


def find_place(ctx: CommandContext, text: str = "", at: str = "") -> Place:
    """What a selector stands for, looked at from `at`, which may itself name the session: `--at fix-auth@5`."""
    selector = parse_selector(text) if text else Selector("", "", "")
    session = ctx.session(selector.session)
    spot = selector.first + (f"..{selector.last}" if selector.last else "")
    seq = None
    if at:
        looked = parse_selector(at)
        if looked.session and not selector.session:
            session = ctx.session(looked.session)
        elif looked.session and ctx.session(looked.session).id != session.id:
            raise InvalidInputError(
                f"--at {at} names another session than {text}", kind="bad-selector", hint="name it once"
            )
        seq = something(session, looked.first or "@").last
    return Place(session, spot, selector.session, seq)


def find_session(ctx: CommandContext, name: str) -> SessionId:
    """The session with that name or id, or the only one whose name begins so; `.` is the newest of this folder,
    or of all, and `-` the one before."""
    if name in (".", "-"):
        return _newest(ctx, 0 if name == "." else 1)
    try:
        return ctx.store.find(name)
    except NotFoundError as exc:
        if exc.kind != "session-not-found":
            raise
        names = {head.name: head.session for head in ctx.store.sessions() if head.name}
    begun = sorted(each for each in names if each.startswith(name))
    if len(begun) == 1:
        return names[begun[0]]
    if begun:
        more = f" and {len(begun) - SHOWN} more" if len(begun) > SHOWN else ""
        raise NotFoundError(
            f"{name!r} begins the names of {len(begun)} sessions: {', '.join(begun[:SHOWN])}{more}",
            kind="ambiguous-session",
            hint="give more of the name",
        )
    import difflib

    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    raise NotFoundError(
        f"there is no session {name!r}",
        kind="session-not-found",
        hint=f"did you mean {near[0]}?" if near else "list them with wakelog ls",
    )


def _newest(ctx: CommandContext, place: int) -> SessionId:
    """The session that was last active; of this folder, where there are some that worked here. When an imported one was
    active its program says; where the index does not know that yet, the last write counts."""
    if ctx.store.is_index_behind:
        heads = [head for head in ctx.store.sessions() if not is_of_store(head.name)]
        newest = [h.session for h in sorted(heads, key=lambda h: h.at, reverse=True)]
    else:
        recent = ctx.store.index.sessions(limit=RECENT)
        found = [info for info in recent if not info.spawner and not is_of_store(info.name)]
        here = _this_folder()
        newest = [i.id for i in [i for i in found if f"{i.labels.get('project', '')}/".startswith(here)] or found]
    if len(newest) <= place:
        raise NotFoundError(
            "this store has no session yet" if place == 0 else "there is no other session",
            kind="session-not-found",
            hint="wakelog demo makes some",
        )
    return newest[place]


def _this_folder() -> str:
    """The working copy that this folder is in, else the folder itself; with its slash."""
    folder = Path.cwd()
    return f"{next((str(up) for up in (folder, *folder.parents) if (up / '.git').exists()), str(folder))}/"


def find_time(ctx: CommandContext, text: str | None, now: int | None = None) -> int:
    """The time that words such as 2h, today or 2026-11-15T18:00 name; 0 for none."""
    return parse_time(text, ctx.store.clock() if now is None else now) if text else 0


def span_of(session: Session[Any], text: str) -> Range:
    """The events a point or range covers; when there is none, the error names the session and the nearest places."""
    return _or_near(session, text, lambda log: resolve_range(log, text))


def _or_near(session: Session[Any], text: str, resolve: Callable[[Log], T]) -> T:
    from wakelog.cli.render.sessions import handle

    try:
        return resolve(session.log)
    except NotFoundError as exc:
        name, head = handle(session), session.head
        message = exc.message.replace(session.id, str(session))
        hint = exc.hint or f"wakelog log {name}"
        if exc.kind == "turn-not-found" and head.turn:
            hint = f"wakelog log {name}   or   {name}@{head.turn}"
        elif exc.kind == "event-not-found" and text[:1] == "e":
            hint = f"wakelog log {name} --events   or   e{head.seq}"
        raise NotFoundError(message, kind=exc.kind, hint=hint) from exc


def something(session: Session[Any], text: str) -> Range:
    """The same, unless it lies before the session's first event: nothing is there to look at."""
    from wakelog.cli.render.sessions import handle

    found = span_of(session, text)
    if found.last:
        return found
    raise NotFoundError(
        f"there is no event yet at {text} in {session}",
        kind="event-not-found",
        hint=f"the first event is e1: wakelog log {handle(session)} --events --reverse",
    )


def within(session: Session[Any], span: Range, since: int, until: int) -> Range:
    """The part of a span that was written from one time to another; 0 is no limit."""
    first = max(span.first, seq_at_time(session.log, since - 1) + 1) if since else span.first
    return Range(first, min(span.last, seq_at_time(session.log, until)) if until else span.last)


def start_of(session: Session[Any], turn: int) -> Seq:
    """Where a turn, or the first one after it, begins."""
    commit = first_commit(session.log, lambda c: c.turn >= turn)
    return commit.first if commit else 1


def turn_at(session: Session[Any], seq: Seq) -> int:
    """The newest turn begun at or before an event."""
    commit = first_commit(session.log, lambda c: c.last >= seq)
    return commit.turn if commit else session.head.turn


def refuse_if_moved(session: Session[Any], seen: Seq) -> None:
    """What somebody agreed to must still be what is there."""
    if (head := session.head.seq) != seen:
        raise ConflictError(
            f"{session} has new events since the preview: it is now at e{head}",
            kind="head-moved",
            hint="run the command again",
            head_seq=head,
        )


# What `why` and its like are asked about


def find_subject(ctx: CommandContext, text: str, at: str = "") -> Place:
    """What is asked about: `fix-auth@e12` names a session and an event of it; a key, a file or a source is itself."""
    if text and not is_key(text):
        try:
            selector = parse_selector(text)
        except WakelogError:
            selector = Selector("", "", "")
        if selector.first:
            found = find_place(ctx, text)
            _ = found.events  # for its error
            return msgspec.structs.replace(found, at=_as_of(ctx, found.session, at))
        if selector.session and ctx.store.engine.find(text) is not None:
            raise InvalidInputError(
                f"{text} is a session: name an event, a turn or a key of it",
                kind="no-target",
                hint=f"{text}@3, or -s {text} e12",
            )
    writer = _writer(ctx, text) if not at else None
    if writer is not None:
        return Place(writer.session, writer.what, at=writer.at, line=writer)
    here = _that_changed(ctx, text) or ctx.session()
    return Place(here, text, at=_as_of(ctx, here, at))


def _writer(ctx: CommandContext, text: str) -> LineWriter | None:
    """Who wrote a line of a file, where no session is named."""
    match = re.fullmatch(r"(?P<path>.+):(?P<line>\d+)", text)
    if match is None or ctx.names_session or is_key(text):
        return None
    return ctx.store.line_writer(match["path"], int(match["line"]))


def _that_changed(ctx: CommandContext, text: str) -> Session[Any] | None:
    """The session that last changed a file, where no session is named."""
    path = re.sub(r":\d+$", "", text)
    if ctx.names_session or not path or is_key(path) or not re.search(r"[./]", path):
        return None
    return next((each.session for each in ctx.store.changers(path)), None)


def find_subject_in(ctx: CommandContext, front: str, text: str, at: str = "") -> Place:
    """The same where the session stands in front, perhaps with the point from which it is looked at."""
    place = find_place(ctx, front)
    if place.is_range or (place.text and at):
        raise InvalidInputError(
            f"{front} is more than a session and a point", kind="bad-selector", hint=f"{place.named or '@5'} {text}"
        )
    ctx.stand_in(place.session)
    found = find_subject(ctx, text, at or place.text)
    if found.session.id != place.session.id:
        raise InvalidInputError(f"{text} names another session than {front}", kind="bad-selector", hint="name it once")
    return found


def _as_of(ctx: CommandContext, session: Session[Any], at: str) -> Seq | None:
    if not at:
        return None
    selector = parse_selector(at)
    if selector.session and ctx.session(selector.session).id != session.id:
        raise InvalidInputError(f"--at {at} names another session", kind="bad-selector", hint="name it once")
    return something(session, selector.first or "@").last


def find_subjects(ctx: CommandContext, words: Sequence[str]) -> tuple[Session[Any], list[str]]:
    """The session that all the words are about, and what of it. A session named once is meant for the rest."""
    found = [find_subject(ctx, word) for word in words]
    if any(each.named and each.session.id != found[0].session.id for each in found):
        raise InvalidInputError(
            "these events belong to different sessions",
            kind="across-sessions",
            hint="run the command once for each session",
        )
    return found[0].session, [each.text for each in found]


# Keys of the state


def find_key(document: Value, key: str) -> tuple[str, Value]:
    """The value at a JSON Pointer; when it is not one or nothing is there, the error says what is near."""
    if key and not key.startswith("/"):
        guess = "/" + key.replace(".", "/")
        raise InvalidInputError(
            f"{key!r} is not a key: keys are JSON Pointers and start with /",
            kind="bad-key",
            hint=f"try {_existing(document, guess) or guess}",
        )
    node, known = document, ""
    tokens = tokens_of(key)
    for place, token in enumerate(tokens):
        rest = "/".join(tokens[place:])
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, dict) and rest in node:
            # As `plain_key` shows it.
            return f"{known}/{escape(rest)}", node[rest]
        elif isinstance(node, list) and token.isdigit() and int(token) < len(node):
            node = node[int(token)]
        else:
            raise _no_key(document, node, key, known, token)
        known += "/" + escape(token)
    return key, node


def plain_key(pointer: str) -> str:
    """A key as people read it: a path in it is a path, without the escapes of a JSON Pointer."""
    return "".join(f"/{token}" for token in tokens_of(pointer))


def _existing(document: Value, guess: str) -> str:
    """The guess, or the same below /data, if something is there."""
    for candidate in (guess, f"/data{guess}"):
        try:
            return find_key(document, candidate)[0]
        except WakelogError:
            continue
    return ""


def _no_key(document: Value, node: Value, key: str, known: str, token: str) -> NotFoundError:
    if not known and isinstance(document, dict) and token in document.get("data", {}):
        return NotFoundError(f"there is no {key} in the state", kind="key-not-found", hint=f"try /data{key}")
    if isinstance(node, dict):
        import difflib

        near = difflib.get_close_matches(token, list(node)[:5000], 3) or list(node)[:6]
        there = ", ".join(f"{known}/{escape(name)}" for name in near) or "it is empty"
    elif isinstance(node, list):
        there = f"{known}/0..{known}/{len(node) - 1}" if node else "the list is empty"
    else:
        there = f"{known} is a single value"
    return NotFoundError(f"there is no {key} in the state (near it: {there})", kind="key-not-found")


def picked_session(ctx: CommandContext) -> Session[Any]:
    """The session that a person chooses; the newest where there is nobody to ask, or nothing to choose from."""
    if ctx.names_session or not _can_ask(ctx):
        return ctx.session()
    with ctx.store.newest_index(MOST * 3) as index:
        rows = list(itertools.islice((i for i in index.every_session() if i.status != "archived"), MOST))
    if len(rows) < 2:
        return ctx.session()
    names = [fit(str(info), ctx.columns // 3) for info in rows]
    ages = [age(info.last_at, ctx.store.clock()) for info in rows]
    column, ago = max(map(width, names)), max(map(len, ages))
    for number, (info, name, when) in enumerate(zip(rows, names, ages, strict=True), 1):
        room = ctx.columns - column - ago - 9
        front = f"{number:>3}  {name}{' ' * (column - width(name))}  {when:>{ago}}"
        click.echo(f"{front}  {fit(inert_line(info.about), room)}".rstrip(), err=True)
    chosen = click.prompt("Which one?", type=click.IntRange(1, len(rows)), default=1, err=True)
    return ctx.session(rows[chosen - 1].id)


def _can_ask(ctx: CommandContext) -> bool:
    return ctx.is_for_people and not ctx.no_input and sys.stdin.isatty() and sys.stderr.isatty()
