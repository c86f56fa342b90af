"""Selectors of the command line: the one file that turns words into sessions, events and keys.

Commands get a `Place` from their context. When a word names nothing, the error suggests what is close to it.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shlex
import sys
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.text import age, fit, inert_line, name_some, width
from wakelog.errors import ConflictError, InvalidInputError, NotFoundError, UnsupportedError, WakelogError
from wakelog.model.document import is_key
from wakelog.model.ids import Seq, SessionId
from wakelog.model.names import is_of_store
from wakelog.model.values import Value
from wakelog.session import Session
from wakelog.state.patch import escape, tokens_of
from wakelog.timeline.points import first_commit, seq_at_time
from wakelog.timeline.selectors import Range, Selector, parse_selector, parse_time, resolve_change, resolve_range

if TYPE_CHECKING:
    from wakelog.store import Store
    from wakelog.store.line_writer import LineWriter

MAX_NAMES = 8
PICK_FROM = 10
NEWEST = (".", "-")
"""Names of the session that was active last, and of the one before."""
RECENT = 1000
"""The newest session of this folder is looked for among this many recently active sessions."""


class Place(msgspec.Struct, frozen=True):
    """A session, and a point or range in it as text. Without text it means the session as it is now."""

    session: Session[Any]
    text: str = ""
    named: str = ""
    """The session as the selector names it; empty if `-s` or the newest is meant."""
    at: Seq | None = None
    """The event that `--at` names; None is now."""
    line: LineWriter | None = None
    """Who wrote the line, for `FILE:LINE` without a session."""

    @property
    def is_range(self) -> bool:
        return ".." in self.text

    @property
    def span(self) -> Range:
        """The events it covers. May be empty: @0 is before the first event."""
        return find_span(self.session, self.text)

    @property
    def events(self) -> Range:
        """The events it covers; an error if there are none yet."""
        return find_events(self.session, self.text)

    @property
    def change(self) -> tuple[Seq, Seq]:
        """The points before and after the change it names; without text, those of the last turn."""
        with _suggesting(self.session, self.text):
            return resolve_change(self.session.log, self.text or None)

    def point(self, refusal: str) -> Seq | None:
        """The event that its point means; None without text. A range is a mistake, and `refusal` says so."""
        if self.is_range:
            raise click.UsageError(refusal)
        return find_point(self.session, self.text) if self.text else None

    @property
    def seq(self) -> Seq | None:
        """The event it ends at; None is now."""
        return self.events.last if self.text else None


def find_place(ctx: CommandContext, text: str = "", at: str = "") -> Place:
    """The place that a selector names, as seen from `at`, which may also name the session: `--at fix-auth@5`."""
    selector = _parse(text) if text else Selector("", "", "")
    session = ctx.session(selector.session or (parse_selector(at).session if at else ""))
    text_in_session = selector.first + (f"..{selector.last}" if selector.last else "")
    return Place(session, text_in_session, selector.session, _find_at(ctx, session, at))


def _parse(text: str) -> Selector:
    text = _unlinked(text)
    try:
        return parse_selector(text)
    except InvalidInputError:
        if Path(text).is_file():  # ../x.jsonl looks like a range
            return Selector(text, "", "")
        raise


_LINK = re.compile(r"https?://[^/]+(?:/[^?#]*?)?/s/(?P<session>[^/?#]+)/?(?P<rest>[^?#]*)")


def _unlinked(text: str) -> str:
    """The selector for an address of the page: fix-auth@12 for http://127.0.0.1:8426/s/fix-auth/@12. Any other text
    as it is."""
    link = _LINK.match(text)
    if link is None:
        return text
    session = urllib.parse.unquote(link["session"])
    for part in map(urllib.parse.unquote, link["rest"].split("/")):
        with contextlib.suppress(InvalidInputError):
            if part and not parse_selector(part).session:
                return f"{session}{'' if part.startswith('@') else '@'}{part}"
    return session


def find_session(store: Store, name: str) -> SessionId:
    """The session with that name or id, or the only one whose name starts with it. `.` is the session of this folder
    that was active last, or of the store if it has none; `-` is the one before. An imported session is also found by
    its transcript, and by its tool and the tool's id: `claude:5a1e7c02`."""
    name = _unlinked(name)
    if name not in NEWEST:
        try:
            return store.find(name)
        except NotFoundError as exc:
            if exc.kind != "session-not-found":
                raise
        return _find_otherwise(store, name)
    # For imported sessions the index knows when they were active. While it is behind, the last write counts.
    if store.is_index_behind:
        heads = [head for head in store.sessions() if not is_of_store(head.name)]
        newest = [h.session for h in sorted(heads, key=lambda h: h.at, reverse=True)]
    else:
        recent = store.index.sessions(limit=RECENT)
        infos = [info for info in recent if not info.spawner and not is_of_store(info.name)]
        here = _this_folder()
        in_folder = [info for info in infos if f"{info.labels.get('project', '')}/".startswith(here)]
        newest = [info.id for info in in_folder or infos]
    rank = NEWEST.index(name)
    if len(newest) <= rank:
        raise NotFoundError(
            "this store has no session yet" if rank == 0 else "there is no other session",
            kind="session-not-found",
            hint="wakelog demo makes some",
        )
    return newest[rank]


def _find_otherwise(store: Store, name: str) -> SessionId:
    """The session that a word means which is no name or id: the start of a name, an origin, or a transcript."""
    names = {head.name: head.session for head in store.sessions() if head.name}
    if ":" in name:
        from wakelog.importers.imported_sessions import name_of_origin

        name = name_of_origin(store, name) or name
    matches = sorted(known for known in names if known.startswith(name))
    if len(matches) == 1:
        return names[matches[0]]
    if matches:
        raise NotFoundError(
            f"{len(matches)} sessions have names that start with {name!r}: {name_some(matches, MAX_NAMES)}",
            kind="ambiguous-session",
            hint="give more of the name",
        )
    if Path(name).is_file():
        from wakelog.importers.imported_sessions import session_of_file

        with contextlib.suppress(UnsupportedError):  # it is no transcript
            return session_of_file(store, Path(name))
    import difflib

    if name in ("last", "latest", "newest"):
        raise NotFoundError(
            f"there is no session {name!r}",
            kind="session-not-found",
            hint="the newest session is written as a dot: wakelog show .",
        )
    near = [f"@{name} or e{name}"] if name.isdecimal() else difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    raise NotFoundError(
        f"there is no session {name!r}",
        kind="session-not-found",
        hint=f"did you mean {near[0]}?" if near else "list them with wakelog ls",
    )


def _this_folder() -> str:
    """The root of the working copy around this folder, else the folder itself; ends with a slash."""
    folder = Path.cwd()
    return f"{next((str(up) for up in (folder, *folder.parents) if (up / '.git').exists()), str(folder))}/"


def find_time(ctx: CommandContext, text: str | None, now: int | None = None) -> int:
    """The time that 2h, today or 2026-11-15T18:00 means; 0 for no text."""
    return parse_time(text, ctx.store.clock() if now is None else now) if text else 0


def find_span(session: Session[Any], text: str) -> Range:
    """The events that a point or range covers."""
    with _suggesting(session, text):
        return resolve_range(session.log, text)


def find_point(session: Session[Any], text: str) -> Seq:
    """The event that a point means; for a turn, its last one."""
    with _suggesting(session, text):
        return session.seq(text)


@contextlib.contextmanager
def _suggesting(session: Session[Any], text: str) -> Iterator[None]:
    """Resolves a position inside. The error for a missing one names the session and suggests one that exists."""
    from wakelog.cli.render.sessions import handle

    try:
        yield
    except NotFoundError as exc:
        name, head = handle(session), session.head
        message = exc.message.replace(session.id, str(session))
        hint = exc.hint or f"wakelog log {name}"
        if exc.kind == "turn-not-found" and head.turn:
            hint = f"wakelog log {name}   or   {name}@{head.turn}"
        elif exc.kind == "event-not-found" and text[:1] == "e":
            hint = f"wakelog log {name} --events   or   e{head.seq}"
        raise NotFoundError(message, kind=exc.kind, hint=hint) from exc


def find_events(session: Session[Any], text: str) -> Range:
    """Like find_span, but a point before the first event is an error."""
    from wakelog.cli.render.sessions import handle

    extent = find_span(session, text)
    if extent.last:
        return extent
    raise NotFoundError(
        f"there is no event yet at {text} in {session}",
        kind="event-not-found",
        hint=f"the first event is e1: wakelog log {handle(session)} --events --reverse",
    )


def clip_to_time(session: Session[Any], span: Range, since: int, until: int) -> Range:
    """The part of a span that was written between two times; 0 is no limit."""
    first = max(span.first, seq_at_time(session.log, since - 1) + 1) if since else span.first
    return Range(first, min(span.last, seq_at_time(session.log, until)) if until else span.last)


def start_of(session: Session[Any], turn: int) -> Seq:
    """The first event of a turn, or of the next turn that exists."""
    commit = first_commit(session.log, lambda c: c.turn >= turn)
    return commit.first if commit else 1


def turn_at(session: Session[Any], seq: Seq) -> int:
    """The newest turn that started at or before an event."""
    commit = first_commit(session.log, lambda c: c.last >= seq)
    return commit.turn if commit else session.head.turn


def refuse_if_moved(session: Session[Any], seen: Seq) -> None:
    """Raises ConflictError if the session has changed since the user saw the preview."""
    if (head := session.head.seq) != seen:
        raise ConflictError(
            f"{session} has new events since the preview: it is now at e{head}",
            kind="head-moved",
            hint="run the command again",
            head_seq=head,
        )


# Subjects of `why`, `taint` and the like


def find_subject(ctx: CommandContext, text: str, at: str = "") -> Place:
    """The subject of a question: an event or turn such as `fix-auth@e12`, or a key, a file or a source."""
    if text and not is_key(text):
        try:
            selector = parse_selector(text)
        except WakelogError:
            selector = Selector("", "", "")
        if selector.first:
            place = find_place(ctx, text)
            _ = place.events  # raises if there are none
            return msgspec.structs.replace(place, at=_find_at(ctx, place.session, at))
        if selector.session and ctx.store.engine.find(text) is not None:
            raise InvalidInputError(
                f"{text} is a session: name an event, a turn or a key of it",
                kind="no-target",
                hint=f"{text}@3, or -s {text} e12",
            )
    writer = _find_line_writer(ctx, text) if not at else None
    if writer is not None:
        return Place(writer.session, writer.what, at=writer.at, line=writer)
    session = _find_changer(ctx, text) or ctx.session()
    return Place(session, text, at=_find_at(ctx, session, at))


def _find_line_writer(ctx: CommandContext, text: str) -> LineWriter | None:
    """Who wrote `FILE:LINE`, if no session is named."""
    match = re.fullmatch(r"(?P<path>.+):(?P<line>\d+)", text)
    if match is None or ctx.names_session or is_key(text):
        return None
    return ctx.store.line_writer(match["path"], int(match["line"]))


def _find_changer(ctx: CommandContext, text: str) -> Session[Any] | None:
    """The session that last changed a file, if no session is named."""
    path = re.sub(r":\d+$", "", text)
    if ctx.names_session or not path or is_key(path) or not re.search(r"[./]", path):
        return None
    return next((changer.session for changer in ctx.store.changers(path)), None)


def find_subject_in(ctx: CommandContext, front: str, text: str, at: str = "") -> Place:
    """Like find_subject, with the session in front, and perhaps the point it is seen from."""
    place = find_place(ctx, front)
    if place.is_range or (place.text and at):
        raise InvalidInputError(
            f"{front} is more than a session and a point", kind="bad-selector", hint=f"{place.named or '@5'} {text}"
        )
    ctx.use_session(place.session)
    subject = find_subject(ctx, text, at or place.text)
    if subject.session.id != place.session.id:
        raise InvalidInputError(f"{text} names another session than {front}", kind="bad-selector", hint="name it once")
    return subject


def _find_at(ctx: CommandContext, session: Session[Any], at: str) -> Seq | None:
    """The event that `--at` names; None without it."""
    if not at:
        return None
    selector = parse_selector(at)
    if selector.session and ctx.session(selector.session).id != session.id:
        raise InvalidInputError(f"--at {at} names another session", kind="bad-selector", hint="name it once")
    return find_events(session, selector.first or "@").last


def find_subjects(ctx: CommandContext, words: Sequence[str]) -> tuple[Session[Any], list[str]]:
    """The session that all the words are about, and what they name in it. Naming the session once is enough."""
    places = [find_subject(ctx, word) for word in words]
    if any(place.named and place.session.id != places[0].session.id for place in places):
        raise InvalidInputError(
            "these events belong to different sessions",
            kind="across-sessions",
            hint="run the command once for each session",
        )
    return places[0].session, [place.text for place in places]


# Keys of the state


def find_key(document: Value, key: str) -> tuple[str, Value]:
    """The pointer and its value in the document. If there is none, the error names keys that are close."""
    if key and not key.startswith("/"):
        guess = "/" + key.replace(".", "/")
        if Path(key).is_file() or any(f"/{path}".endswith(f"/{key}") for path in document.get("files_modified", {})):
            hint = f"of a file, ask: wakelog why {shlex.quote(key)}, or with :LINE behind it"
        else:
            hint = f"try {_find_existing(document, guess) or guess}"
        raise InvalidInputError(
            f"{key!r} is not a key: keys are JSON Pointers and start with /",
            kind="bad-key",
            hint=hint,
        )
    node, known = document, ""
    tokens = tokens_of(key)
    for position, token in enumerate(tokens):
        rest = "/".join(tokens[position:])
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, dict) and rest in node:
            # A path with slashes, typed as `plain_key` shows it.
            return f"{known}/{escape(rest)}", node[rest]
        elif isinstance(node, list) and token.isdigit() and int(token) < len(node):
            node = node[int(token)]
        else:
            raise _key_not_found(document, node, key, known, token)
        known += "/" + escape(token)
    return key, node


def child_key(pointer: str, name: str) -> str:
    """The JSON Pointer of a key inside the value at a pointer."""
    return f"{pointer}/{escape(name)}"


def plain_key(pointer: str) -> str:
    """A JSON Pointer without its escapes, as people read it."""
    return "".join(f"/{token}" for token in tokens_of(pointer))


def _find_existing(document: Value, guess: str) -> str:
    """The pointer, or the same below /data, if the document has it; else empty."""
    for candidate in (guess, f"/data{guess}"):
        try:
            return find_key(document, candidate)[0]
        except WakelogError:
            continue
    return ""


def _key_not_found(document: Value, node: Value, key: str, known: str, token: str) -> NotFoundError:
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


def pick_session(ctx: CommandContext) -> Session[Any]:
    """The session that the user picks from a list; the newest if there is no terminal or no choice."""
    if ctx.names_session or not _can_ask(ctx):
        return ctx.session()
    with ctx.store.newest_index(PICK_FROM * 3) as index:
        rows = list(itertools.islice((i for i in index.every_session() if i.status != "archived"), PICK_FROM))
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
