"""What all commands share: the store, the session that a selector names, and the forms of an answer.

Only answers go to stdout; messages and suggestions go to stderr. `--json` prints one document with a schema name,
`--ndjson` one record a line. Field names are frozen per schema version.
"""

from __future__ import annotations

import functools
import io
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from wakelog import errors
from wakelog.cli.errors import NO, wants_color
from wakelog.cli.options import complete_names, store_option
from wakelog.cli.render.results import plain, show
from wakelog.cli.text import fold_list, inert_json, inert_line, name_some, with_known_signs

if TYPE_CHECKING:
    # Only commands that read a store import these: help, completion and a server's first answer do without.
    from wakelog.cli.selectors import Place
    from wakelog.model.ids import SessionId
    from wakelog.session import Session
    from wakelog.store import Store

NARROWEST = 40
"""Layouts are squeezed down to this many columns. A narrower terminal wraps the lines itself."""
F = TypeVar("F", bound=Callable[..., Any])


def open_store(url: str, **how: Any) -> Store:
    from wakelog.store import open

    store = open(url, **how)
    store.folder = ""  # sessions that a command opens have nothing to do with the current folder
    return store


class CommandContext:
    """One run of one command."""

    def __init__(self, options: dict[str, Any]) -> None:
        """`options` are those of `common`."""
        self._url: str = options["store_url"] or click.get_current_context().meta.get("wakelog.store") or ""
        self.json: bool = options["as_json"]
        self.ndjson: bool = options["as_ndjson"]
        self.quiet: bool = options["quiet"]
        self.utc: bool = options["utc"]
        self.no_input: bool = options["no_input"] or bool(os.environ.get("CI"))
        self.color = wants_color(sys.stdout, options["color"])
        self._colors_notes = wants_color(sys.stderr, options["color"])
        self.use_pager: bool = options["pager"] and sys.stdout.isatty() and not self.json and not self.ndjson
        self._session: str = options["session_name"] or ""
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A character that the terminal cannot show is printed as an escape instead of failing.
            sys.stdout.reconfigure(errors="backslashreplace")
        self._store: Store | None = None
        self._lines: list[str] = []
        self._warnings: list[str] = []
        self.even_damaged = False
        """True if this command reads what is left of a damaged session."""

    # The store and its sessions

    @functools.cached_property
    def url(self) -> str:
        """The store's URL: the one given (`user` means the user's own), the one configured, the user's own if it
        exists, or the default. Resolved on demand, so that a bad setting does not stop the command that fixes it."""
        from wakelog.store.url import chosen_url, default_url, user_store

        if self._url == "user":
            return user_store()
        return self._url or chosen_url() or user_store(must_exist=True) or default_url()

    @functools.cached_property
    def store(self) -> Store:
        """The store. It must exist: reading a missing store is an error, not an empty answer."""
        self.take_in_hooks()
        try:
            self._store = open_store(self.url, create=False)
        except errors.NotFoundError as exc:
            if exc.kind != "store-not-found":
                raise
            from wakelog.store.url import stores_in

            near = [] if self._url else stores_in(Path.cwd())
            is_near = f"{name_some(near, 3)} {'is a store' if len(near) == 1 else 'are stores'}"
            hint = "wakelog import brings in what your agents wrote; wakelog demo makes a store to look at"
            raise errors.NotFoundError(
                f"there is no store at {hide_password(self.url)}",
                kind="store-not-found",
                hint=exc.hint or (f"{is_near} in this folder: add --store {shlex.quote(near[0])}" if near else hint),
            ) from exc
        return self._store

    def take_in_hooks(self) -> None:
        """Imports what hooks of coding agents recorded since the last command; warns about what fails."""
        from wakelog.hooks.spool import is_waiting

        if not is_waiting():
            return
        from wakelog.hooks.intake import take_in

        for trouble in take_in(open_store).troubles:
            self.warn(f"what hooks recorded is safe, but could not be imported yet: {inert_line(trouble)}")

    def new_store(self) -> Store:
        """The store, created if it is missing: for commands that import."""
        self._store = open_store(self.url)
        return self._store

    def shared_store(self, *, create: bool = True) -> Store:
        """The store for what belongs to no project: the one given or configured, else the user's own."""
        from wakelog.store.url import chosen_url, user_store

        self.__dict__["url"] = user_store() if self._url == "user" else self._url or chosen_url() or user_store()
        self._store = open_store(self.url, create=create)
        self.__dict__["store"] = self._store
        return self._store

    def identity(self, store: Store) -> str:
        """A string that differs for each store on this machine."""
        able = store.engine.abilities
        return str(able.path.resolve()) if able.path is not None else able.identity or self.url

    @property
    def given_url(self) -> str:
        """The store given on the command line; empty if none is."""
        return self._url

    @property
    def names_session(self) -> bool:
        """True if `-s` named a session."""
        return bool(self._session)

    def use_session(self, session: Session[Any]) -> None:
        """From here on, selectors that name no session mean this one."""
        self._session = session.id

    def session(self, name: str = "", *, in_full: bool = False) -> Session[Any]:
        """The session with that name or id, or a unique prefix of one; empty means the one of `-s`, or the newest. A
        command that destroys something accepts no prefix (`in_full`)."""
        from wakelog.cli.selectors import NEWEST, find_session

        store, name = self.store, name or self._session or "."
        session_id = store.find(name) if in_full and name not in NEWEST else find_session(store, name)
        return store.resume(session_id, even_damaged=self.even_damaged)

    def place(self, text: str = "", at: str = "") -> Place:
        """The place that a selector names."""
        from wakelog.cli.selectors import find_place

        return find_place(self, text, at)

    def name_of(self, session: SessionId) -> str:
        """The session's name, or its id if it has none or is damaged."""
        try:
            return self.store.engine.head(session).name or session
        except errors.WakelogError:
            return session

    # Answers

    @property
    def is_for_people(self) -> bool:
        return not self.json and not self.ndjson

    def answer(
        self,
        schema: str,
        data: Any,
        human: Callable[[], None] | Iterable[str] | None = None,
        *,
        records: Iterable[Any] | None = None,
        next_cursor: Any = None,
    ) -> None:
        """Answers in the form that the user chose: one JSON document, one record a line, or lines for people. `human`
        makes the lines; without it, the type of the data decides (render/results.py). `records` are the records of
        `--ndjson`, if they are not the data itself."""
        if self.json:
            document = {
                "schema": f"wakelog.{schema}/1",
                "store": hide_password(self.url),
                "data": plain(data),
                "next": next_cursor,
                "warnings": self._warnings,
            }
            self.print_json(document)
        elif self.ndjson:
            for record in records if records is not None else data if isinstance(data, list) else [data]:
                self.record(schema, record)
        else:
            if human is None:
                self.say_all(show(self, data))
            elif callable(human):
                human()
            else:
                self.say_all([human] if isinstance(human, str) else human)
            self._flush()

    def answer_found(
        self, schema: str, data: Any, found: Sequence[Any], lines: Callable[[], Iterable[str] | None], none: str
    ) -> int:
        """Answers with what was found, or with the sentence `none`; returns the exit code. `lines` is called only if
        something was found."""

        def human() -> None:
            self.say_all(lines() or ()) if found else self.say(inert_line(none))

        self.answer(schema, data, human, records=found)
        return 0 if found else NO

    def done(self, schema: str, session: Session[Any], line: str, **data: Any) -> None:
        """Answers with one sentence about what was done to a session."""
        self.answer(schema, {"session": session.id, "name": session.name, **data}, line)

    def print_json(self, value: Any) -> None:
        """Prints a document, indented, with hostile characters escaped."""
        click.echo(inert_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))

    def record(self, schema: str, record: Any) -> None:
        """Prints one line of NDJSON and flushes it, so that a reader sees it at once."""
        click.echo(inert_json(msgspec.json.encode({"schema": f"wakelog.{schema}/1", **plain(record)}).decode()))
        sys.stdout.flush()

    def tell(self, schema: str, record: Any, line: str) -> None:
        """Prints one item of a streamed answer at once."""
        if self.is_for_people:
            self.say(line)
            self.flush()
        else:
            self.record(schema, record)

    def say(self, line: str = "") -> None:
        """Adds a line to the answer for people."""
        self._lines.append(with_known_signs(line if self.color else click.unstyle(line)))
        if not self.use_pager and len(self._lines) >= 500:
            self._flush()

    def say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)

    def remark(self, line: str) -> None:
        """Adds a dimmed line, folded if it is longer than the screen is wide."""
        for part in [line] if len(line) <= self.columns else textwrap.wrap(line, self.columns, break_on_hyphens=False):
            self.say(self.style(part, dim=True))

    def wrapped(self, text: str, indent: str = "") -> list[str]:
        """A dimmed sentence, on as many lines as it needs."""
        lines = textwrap.wrap(
            text, self.columns, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        )
        return [self.style(line, dim=True) for line in lines]

    def row(self, title: str, text: str) -> None:
        """Adds a line that starts with a title."""
        self.say(f"  {self.style(f'{title:<14}', dim=True)}{text}")

    def rows(self, title: str, lines: Sequence[str], most: int = 0, *, rest: str = "") -> None:
        """Adds lines under one title: at most `most`, then how many more there are, followed by `rest`."""
        for line in lines[: most or None]:
            self.row(title, line)
            title = ""
        if most and len(lines) > most:
            self.row("", f"and {len(lines) - most} more{rest}")

    def suggest(self, *commands: str) -> None:
        """Suggests next commands; only to people, on stderr."""
        if not self.quiet and self.is_for_people and sys.stderr.isatty():
            self._flush()
            self._note(click.style("\n".join(fold_list("next: ", commands, self.columns)), dim=True))

    def warn(self, message: str) -> None:
        """Warns on stderr; with `--json` also in the answer, if that comes later."""
        self._warnings.append(message)
        self._note(f"{click.style('warning:', fg='yellow')} {message}")

    def warn_unread(self, sessions: int) -> None:
        """Warns that an answer lacks what the index could not read of so many sessions."""
        if sessions:
            which = "1 session" if sessions == 1 else f"{sessions:,} sessions"
            self.warn(f"{which} could not be read to the end, so this may be incomplete; wakelog ls says which")

    def _note(self, text: str) -> None:
        click.echo(with_known_signs(text), err=True, color=self._colors_notes)

    def style(self, text: str, **how: Any) -> str:
        return click.style(text, **how) if self.color and text else text

    def mark(self, is_ok: bool) -> str:
        """A green check, or a red cross."""
        return self.style("✔", fg="green") if is_ok else self.style("✗", fg="red", bold=True)

    def flush(self) -> None:
        """Writes the lines so far, for streamed answers."""
        self._flush()
        sys.stdout.flush()

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if self.use_pager and len(lines) > _terminal_size((80, 24)).lines - 1:
            os.environ["PAGER"] = os.environ.get("WAKELOG_PAGER") or os.environ.get("PAGER") or "less -FRX"
            click.echo_via_pager("\n".join(lines) + "\n", color=self.color)
        else:
            for line in lines:
                click.echo(line, color=self.color)

    def confirm(
        self, question: str, *, yes: bool, show: Callable[[], None] | None = None, default: bool = False
    ) -> None:
        """Asks before something that matters. Without a terminal `--yes` is required. `show` prints the difference when
        the user asks for it."""
        if yes:
            return
        self._flush()
        if self.no_input or not sys.stdin.isatty():
            raise click.UsageError(f"'{question}' needs an answer: pass --yes to agree")
        answer = ""
        while show is not None and not answer:
            answer = click.prompt(f"{question} [y/N/d=diff]", default="n", show_default=False, err=True).strip().lower()
            if answer in ("d", "diff"):
                show()
                self._flush()
                answer = ""
        is_yes = answer in ("y", "yes") if show is not None else click.confirm(question, default=default, err=True)
        if not is_yes:
            click.echo("Nothing was done.", err=True)
            raise click.exceptions.Exit(NO)  # "no" is an answer, not an interruption

    def close(self) -> None:
        self._flush()
        if self._store is not None:
            self._store.close()

    @property
    def is_piped(self) -> bool:
        """True if the output goes to a program or a file and no width is set."""
        return not sys.stdout.isatty() and not os.environ.get("COLUMNS")

    @property
    def columns(self) -> int:
        return max(NARROWEST, min(_terminal_size((100, 24)).columns, 160))


def _terminal_size(otherwise: tuple[int, int]) -> os.terminal_size:
    """Like shutil.get_terminal_size, which takes longer to import than most commands take to answer."""
    try:
        shown = os.get_terminal_size(sys.__stdout__.fileno()) if sys.__stdout__ is not None else (0, 0)
    except (AttributeError, ValueError, OSError):  # closed, or no terminal
        shown = (0, 0)
    columns, lines = (
        int(value) if (value := os.environ.get(name, "")).isascii() and value.isdigit() else 0
        for name in ("COLUMNS", "LINES")
    )
    return os.terminal_size((columns or shown[0] or otherwise[0], lines or shown[1] or otherwise[1]))


_SECRETS = (
    (  # user:password@, also in a URL that is a parameter, where any character may be written with %
        re.compile(
            r"((?::|%3a)(?:/|%2f){2}(?:(?!%3a|%2f|%40)[^/@:?])*(?::|%3a))(?:(?!%2f|%3f)[^/?&])*(@|%40)", re.IGNORECASE
        ),
        r"\1***\2",
    ),
    (re.compile(r"((?:[?&]|%3f|%26)password(?:=|%3d))(?:(?!%26)[^&])*", re.IGNORECASE), r"\1***"),
    (re.compile(r"^((?:nats|tls)://)[^/@:]+@"), r"\1***@"),  # a token
)


def hide_password(url: str) -> str:
    """The URL with its passwords masked: also those of URLs in its parameters, and the token of a NATS server."""
    for pattern, masked in _SECRETS:
        url = pattern.sub(masked, url)
    return url


def common(function: F) -> F:
    """Adds the options that every command has, and passes a CommandContext as first argument."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        context = CommandContext({name: kwargs.pop(name) for name in _NAMES})
        try:
            try:
                return function(context, *args, **kwargs)
            finally:
                context.close()
        except BrokenPipeError:
            # The reader went away (head, less), which is fine. Caught here because click would exit with 1.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


_NAMES = ("store_url", "session_name", "as_json", "as_ndjson", "color", "pager", "quiet", "utc", "no_input")
_OPTIONS = (
    store_option,
    click.option(
        "-s",
        "--session",
        "session_name",
        metavar="NAME",
        shell_complete=complete_names,
        help="Use this session: name, id, prefix, . (newest) or - (the one before).",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
    click.option("--ndjson", "as_ndjson", is_flag=True, help="Print one JSON record a line."),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        help="Use colour on terminals, always or never (NO_COLOR is respected).",
    ),
    click.option("--pager/--no-pager", default=True, help="Page long output on a terminal."),
    click.option("-q", "--quiet", is_flag=True, help="Do not suggest next commands."),
    click.option("--utc", is_flag=True, help="Show times in UTC."),
    click.option("--no-input", is_flag=True, help="Never ask questions; fail instead."),
)
