"""A store: all sessions of one engine, found by name or id. `open` chooses the engine by the URL."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, TypeVar, overload

from msgspec import structs

from wakelog.config.guards import Guards
from wakelog.engine import Engine, all_heads
from wakelog.errors import ConflictError, NotFoundError, UnsupportedError, WakelogError
from wakelog.log import Log
from wakelog.log.admission import Redact, default_redact
from wakelog.log.append import Clock, now_us
from wakelog.log.damage import every_id
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId, is_session_id
from wakelog.model.late_value import LateValue
from wakelog.model.names import check_name
from wakelog.model.records import Head
from wakelog.model.values import check_text
from wakelog.monitors.budgets import Amount, first_limits, left_of
from wakelog.session import Session
from wakelog.session.base import GitPlace, check_session
from wakelog.session.data import LABEL, DataType, Migrations, split_type, upgrade_data
from wakelog.store.new_ids import new_root_id
from wakelog.store.questions import StoreQuestions
from wakelog.store.url import default_url, open_engine

if TYPE_CHECKING:
    from typing import Unpack

    from wakelog.encryption.key_ring import MasterKey
    from wakelog.index.index import Index
    from wakelog.index.word_places import WordPlaces
    from wakelog.log.reader import Entry
    from wakelog.log.verify import VerifyReport
    from wakelog.monitors.prices import Prices
    from wakelog.monitors.rules import Given
    from wakelog.monitors.store_watch import Watcher
    from wakelog.store.anchors import StoreAnchors
    from wakelog.store.bundles import ImportedBundle
    from wakelog.store.encryption import StoreEncryption
    from wakelog.store.erasure import Erasure
    from wakelog.store.git import StoreGit
    from wakelog.store.keywords import ResumeKeywords, SessionKeywords

S = TypeVar("S")


def open(
    url: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
    clock: Clock = now_us,
    redact: Redact | None = default_redact,
    key: str = "",
    blobs: str = "",
    encryption_key: str = "",
) -> Store:
    """Opens a store by its URL: a folder or `.db` file on a local disk; `postgresql://…`, shared by many machines; the
    `http://…` address of a server, with an API key (`key`, by default `WAKELOG_KEY`); or `memory:`, which ends with the
    process.

    Without a URL: `WAKELOG_STORE` if set, else `store.path` of a configuration file, else the nearest `.wakelog` folder
    from here upward, else `.wakelog` here. `redact` removes secrets from everything that is appended; None turns that
    off, and so does the user's setting `redact.enabled = false`. `blobs` (by default `WAKELOG_BLOBS`) is a folder, or
    `s3://bucket/prefix`, for payloads above 256 KB; every user of the store must pass the same. A server has its own.

    `encryption_key` says where the key of an encrypted store is: `file:PATH`, `env:NAME`, `keyring:SERVICE/NAME` or
    `command:CMD`. With it, a store without sessions becomes encrypted. For a store that is already encrypted, the
    default is the user's setting `encryption.key` (`WAKELOG_ENCRYPTION_KEY`). Without a key such a store still opens:
    it can be verified and copied, but not read.
    """
    if redact is default_redact:
        from wakelog.config.settings import redacts

        redact = default_redact if redacts() else None
    place = os.fspath(url) if url is not None else default_url()
    is_server = place.startswith(("http://", "https://"))
    # Read the key first: if that fails, no store is created.
    master = _master_key(encryption_key, is_server) if encryption_key else None
    engine = open_engine(place, create, key)
    if not is_server:
        engine = _wrap_engine(engine, blobs or os.environ.get("WAKELOG_BLOBS", ""), master)
    store = Store(engine, clock=clock, redact=redact)
    store.has_settings, store.folder = True, os.curdir
    return store


def _master_key(source: str, is_server: bool) -> MasterKey:
    from wakelog.encryption.key_ring import MasterKey

    if is_server:
        raise UnsupportedError(
            "a server holds the key of its own store", kind="no-encryption", hint="give the key to wakelog serve"
        )
    return MasterKey.read(source)


def _wrap_engine(engine: Engine, blobs: str, master: MasterKey | None) -> Engine:
    """Adds a place for big payloads and, above it, encryption."""
    try:
        if blobs:
            from wakelog.engines.blobs import BlobEngine

            engine = BlobEngine(engine, blobs)
        marks = engine.abilities.marks
        if master is not None or (marks is not None and marks.mark("encryption")):  # encryption/mark.py
            from wakelog.store.encryption import with_encryption

            return with_encryption(engine, master)
        return engine
    except BaseException:
        engine.close()
        raise


class Store(StoreQuestions):
    """All sessions of one engine. Close it, or use it in a `with`."""

    def __init__(self, engine: Engine, *, clock: Clock = now_us, redact: Redact | None = default_redact) -> None:
        self.engine = engine
        self.clock = clock
        self.redact = redact
        self.has_settings = False
        """Whether limits for new sessions and the rule for untrusted effects come from the settings."""
        self.folder = ""
        """The folder that sessions work in, for their git labels; empty if unknown."""

    @overload
    def session(self, name: str, *, data: type[S], **opening: Unpack[SessionKeywords]) -> Session[S]: ...
    @overload
    def session(
        self, name: str, *, data: dict[str, Any] | None = None, **opening: Unpack[SessionKeywords]
    ) -> Session[dict[str, Any]]: ...
    @overload
    def session(self, name: str, *, data: S, **opening: Unpack[SessionKeywords]) -> Session[S]: ...
    def session(
        self,
        name: str,
        *,
        data: Any = None,
        version: int = 1,
        migrate: Migrations | None = None,
        goal: str | None = None,
        agent: str = "",
        labels: Mapping[str, str] | None = None,
        limits: Mapping[str, Amount] | None = None,
        spawner: str = "",
        occurred_at: int = 0,
        folder: str | None = None,
    ) -> Session[Any]:
        """Opens the session with that name, or creates it. Several processes may do this at the same time.

        `data` is the initial value of the session's own data, or its type (msgspec, dataclass, TypedDict, Pydantic,
        JSON Schema); on an existing session only the type is used. `goal`, `labels` and `limits` apply at creation;
        limits are as for `Session.budget.set`, by default those of the settings. `occurred_at` (in microseconds) is for
        recording after the fact. `folder` is where the session works, by default the current folder: in git, the
        session gets the labels `project`, `repo`, `branch` and `commit`. An empty `folder` means no labels.
        """
        kind, first = split_type(data)
        data_type: DataType[Any] = DataType(kind, version=version, migrate=migrate)
        marks = {**(labels or {}), **({LABEL: data_type.label} if data_type.label else {})}
        opened = ev.SessionOpened(
            name=name,
            goal=goal,
            labels=marks,
            agent=agent,
            limits=first_limits(self._guards.limits if limits is None else limits),
            data=first,
            data_schema=data_type.label,
            spawner=spawner,
            occurred_at=occurred_at,
        )
        place = GitPlace(self._labelled_folder if folder is None else folder)
        log, is_new = self._open_or_create(name, opened, place)
        session: Session[Any] = Session(log, name=name, data_type=data_type)
        session.store, session._git_place = self, place
        if not is_new:
            upgrade_data(session)
        return session

    def _open_or_create(self, name: str, opened: ev.SessionOpened, place: GitPlace) -> tuple[Log, bool]:
        session, is_new = self.engine.find(check_text(name, "a name")), False
        if session is None:
            check_name(name)
            # Claim the name first: if this process dies before it opens the session, the next one gets the same id
            # and opens it.
            own = new_root_id(self.clock())
            session = self.engine.claim(name, own)
            is_new = session == own
        if not is_new:
            try:
                return Log(self.engine, session, clock=self.clock, redact=self.redact), False
            except NotFoundError as exc:
                if exc.kind != "session-not-found":
                    raise
        opened = structs.replace(opened, labels={**place.labels(), **opened.labels})
        try:
            return Log.create(self.engine, session, opened, clock=self.clock, redact=self.redact), True
        except ConflictError:
            return Log(self.engine, session, clock=self.clock, redact=self.redact), False

    @overload
    def resume(self, name_or_id: str, *, data: type[S], **reading: Unpack[ResumeKeywords]) -> Session[S]: ...
    @overload
    def resume(
        self, name_or_id: str, *, data: dict[str, Any] | None = None, **reading: Unpack[ResumeKeywords]
    ) -> Session[dict[str, Any]]: ...
    @overload
    def resume(self, name_or_id: str, *, data: S, **reading: Unpack[ResumeKeywords]) -> Session[S]: ...
    def resume(
        self,
        name_or_id: str,
        *,
        data: Any = None,
        version: int = 1,
        migrate: Migrations | None = None,
        even_damaged: bool = False,
    ) -> Session[Any]:
        """Opens an existing session by name or id; never creates one. With `even_damaged`, it also opens a session
        whose newest commit is damaged, to read what is left."""
        session = self.find(name_or_id)
        kind, _ = split_type(data)
        log = Log(self.engine, session, clock=self.clock, redact=self.redact, even_damaged=even_damaged)
        found: Session[Any] = Session(
            log, name=log.opened_at.name, data_type=DataType(kind, version=version, migrate=migrate)
        )
        found.store, found._git_place = self, GitPlace(self._labelled_folder)
        upgrade_data(found)
        return found

    def find(self, name_or_id: str) -> SessionId:
        """Returns the id of a session, found by name, by id, or by the first characters of its id (at least four)."""
        session = self.engine.find(check_text(name_or_id, "a name"))
        if session is not None:
            return session
        if is_session_id(name_or_id):
            return SessionId(name_or_id)
        if len(name_or_id) >= 4:
            candidates = self._find_by_prefix(name_or_id)
            exact = [h for h in candidates if h.session.partition(".")[0] == h.session]
            chosen = exact if len(exact) == 1 and "." not in name_or_id else candidates
            if len(chosen) == 1:
                return chosen[0].session
            if chosen:
                names = ", ".join(str(h) for h in chosen[:8])
                raise NotFoundError(f"{name_or_id!r} matches {len(chosen)} sessions: {names}", kind="ambiguous-session")
        raise NotFoundError(
            f"there is no session {name_or_id!r}", kind="session-not-found", hint="wakelog ls shows what there is"
        )

    def reserve(self, name: str) -> SessionId:
        """Returns the id that a session of this name has or will have, to link to it before it is opened."""
        return self.engine.find(check_text(name, "a name")) or self.engine.claim(
            check_name(name), new_root_id(self.clock())
        )

    def is_open(self, name: str) -> bool:
        """Whether a session of this name was opened. A name can be reserved before that."""
        session = self.engine.find(check_text(name, "a name"))
        if session is None:
            return False
        try:
            return self.engine.head(session).status != "deleted"
        except NotFoundError:
            return False

    def _find_by_prefix(self, prefix: str) -> list[Head]:
        full = prefix if prefix.startswith("s_") else f"s_{prefix}"
        full = full[:2] + full[2:].upper()
        page = self.engine.sessions(after=full[:-1] + chr(ord(full[-1]) - 1), limit=1000)
        return [h for h in page if h.session.startswith(full)]

    def spawn(self, parent: Session[Any], name: str, *, task: str = "", **opening: Any) -> Session[Any]:
        """Opens a session for a sub-agent, links it to its parent, and records the start in the parent. By default it
        may spend what its parent has left."""
        check_session(parent)
        opening.setdefault("limits", left_of(parent.log))
        child = self.session(name, goal=task or None, spawner=f"{parent.id}@{parent.head.seq}", **opening)
        parent.calls.spawned(child.id, task)
        return child

    def log(self, name: str, *, goal: str | None = None, labels: Mapping[str, str] | None = None) -> Log:
        """Opens or creates the session of that name and returns its log, for code that works below the verbs."""
        return self.session(name, goal=goal, labels=labels).log

    def sessions(self) -> Iterator[Head]:
        """Lists the heads of all sessions that are not deleted, oldest first, each followed by its forks."""
        return all_heads(self.engine)

    def session_ids(self) -> Iterator[tuple[SessionId, WakelogError | None]]:
        """Lists the ids of all sessions, each with the error if it cannot be opened, or None."""
        return every_id(self.engine)

    def verify(self) -> Iterator[VerifyReport]:
        """Checks all sessions one by one, like `Session.verify`, including those too damaged to open. Damage that
        belongs to no session comes last, in a report without a session."""
        from wakelog.log.verify import Fault, VerifyReport, verify_session

        for session, _ in every_id(self.engine):
            yield verify_session(self.engine, session)
        inspection = self.engine.abilities.inspection
        findings = [f for f in inspection.inspect() if f.is_damage] if inspection is not None else []
        if findings:
            faults = tuple(Fault(f.seq, f.what) for f in findings)
            yield VerifyReport(SessionId(""), 0, "", faults, (), {}, anchored=False)

    def follow(
        self, *, after: Mapping[SessionId, Seq] | None = None, timeout_s: float | None = None
    ) -> Iterator[tuple[Session[Any], Entry]]:
        """Streams events of all sessions live, from any process, each once and in order within its session. `after`
        says how far each session was read; sessions not named there are read from their start. By default only new
        events are streamed. Ends when nothing came for `timeout_s`."""
        from wakelog.store.follow import follow

        return follow(self, after, timeout_s)

    def delete(self, session: Session[Any], *, why: str = "", keep_totals: bool = False) -> Head:
        """Deletes a session permanently; a tombstone stays. Forks keep the shared history until they are deleted too.
        With `keep_totals`, the tombstone keeps the session's totals, numbers only; `rollup` adds them up, if there are
        at least five deleted sessions."""
        from wakelog.log.removal import NO_TOTALS, delete
        from wakelog.store.erasure import scrub_index

        check_session(session)
        head = delete(session.log, why=why, totals=self._totals(session) if keep_totals else NO_TOTALS)
        scrub_index(self)
        return head

    def erase(
        self, session: Session[Any], events: int | str | Iterable[int], *, why: str = "", by: str = ""
    ) -> Erasure:
        """Erases the content of events permanently: in the log, in forks that share them, in sessions that adopted
        them, in the index and in the files. `events` are their numbers, or a selector such as "e12" or "@3..@4".
        Headers stay, so the chain still verifies. Keys and paths stay too; `names` lists them."""
        from wakelog.store.erasure import erase_everywhere
        from wakelog.timeline.selectors import resolve_range

        check_session(session)
        if isinstance(events, str):
            span = resolve_range(session.log, events)
            events = range(max(span.first, 1), span.last + 1)
        chosen = [events] if isinstance(events, int) else events
        return erase_everywhere(self, session.log, chosen, why=why, by=by)

    def import_bundle(self, source: IO[bytes], *, dry_run: bool = False, size_max: int | None = None) -> ImportedBundle:
        """Imports what `Session.export_bundle` wrote, plain or gzipped: all or nothing, and verified first. Events that
        are already here stay as they are. With `dry_run` nothing is written; `size_max` limits the unpacked bytes. An
        encrypted bundle needs an encrypted store; a store without sessions becomes one."""
        from wakelog.store.bundles import import_into

        return import_into(self, source, dry_run=dry_run, size_max=size_max)

    @property
    def anchors(self) -> StoreAnchors:
        """Signs heads, keeps them elsewhere, and compares the store with them: sign, add, verify."""
        from wakelog.store.anchors import StoreAnchors

        return StoreAnchors(self)

    @property
    def encryption(self) -> StoreEncryption:
        """Manages the keys of an encrypted store: tree_keys, rotate, delete."""
        from wakelog.store.encryption import StoreEncryption

        return StoreEncryption(self)

    @property
    def git(self) -> StoreGit:
        """Links git commits to turns, for all sessions: link, turns_behind, commit_of_line."""
        from wakelog.store.git import StoreGit

        return StoreGit(self)

    def watch(
        self,
        *rules: Given,
        pause: bool | Collection[str] | None = None,
        session: str = "",
        ended: bool = False,
        writes: bool = True,
        beside: bool = False,
    ) -> Watcher:
        """Runs rules over all sessions, or one, from any process: the given rules, or else all built-in ones; with
        `beside`, both. `look` returns what is new. See `Session.monitors.add` for `pause`. `ended` includes ended
        sessions; without `writes` nothing is flagged."""
        from wakelog.monitors.monitor import built_in, pausing_rules
        from wakelog.monitors.store_watch import Watcher

        return Watcher(
            self.engine,
            lambda id: Log(self.engine, id, clock=self.clock, redact=self.redact),
            rules if rules and not beside else (*built_in(on_effect=self.on_effect), *rules),
            pause=pausing_rules(self.on_effect) if pause is None else pause,
            session=self.find(session) if session else None,
            ended=ended,
            writes=writes,
        )

    @property
    def on_effect(self) -> str:
        """Returns what happens when a call has effects while untrusted content is in the model's window: `flag` it, or
        `ask`, which pauses the session."""
        return self._guards.on_effect

    @property
    def idle_us(self) -> int:
        """Returns after how many microseconds without a new record an imported session counts as left."""
        return self._guards.idle_us

    @LateValue
    def prices(self) -> Prices:
        """Returns the prices of models: the built-in table, overridden by the user's `prices.toml`. Read once."""
        from wakelog.config.settings import user_prices

        return user_prices()

    @property
    def _labelled_folder(self) -> str:
        return self.folder if self.folder and self._guards.git_labels else ""

    @LateValue
    def _guards(self) -> Guards:
        from wakelog.config.settings import guards, load

        return guards(load()) if self.has_settings else Guards()

    @LateValue
    def index(self) -> Index:
        """Opens the index of this store: in `index.db` beside the log, in the log's database, or in memory."""
        from wakelog.store.index_place import open_index

        return open_index(self.engine)

    @property
    def is_index_behind(self) -> bool:
        """Whether the index is so far behind that a query has to wait for it. Reads one page of the feed."""
        from wakelog.index.index import is_far_behind

        return is_far_behind(self.index)

    def word_places(self, session: SessionId) -> WordPlaces | None:
        """Returns the words that the index has of a session; None if there is no local index, or it cannot be used.
        Does not bring it up to date."""
        from wakelog.store.index_place import has_local_index

        if not has_local_index(self.engine):
            return None
        from wakelog.index.word_places import find_word_places

        try:
            return find_word_places(self.index, session)
        except WakelogError:
            return None  # it cannot be opened, and the answer does not depend on it

    def newest_index(self, most: int) -> Index:
        """Builds a small index in memory of the `most` newest sessions, for a first answer while the index is far
        behind. Close it after use."""
        from wakelog.index.index import newest_index

        return newest_index(self.engine, self.sessions(), most)

    def close(self) -> None:
        """Closes the index and the engine. Sessions of this store cannot be used afterwards."""
        if "index" in self.__dict__:
            self.index.close()
        self.engine.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
