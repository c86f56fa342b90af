"""The store of each namespace. No request can reach from one namespace into another.

The namespace `default` is the store that the server was started on. Every other one is a store in the folder `ns`
below it, or a namespace of the same database or cluster. A request gets one `Namespace` and nothing else, so a verb
cannot reach another namespace.

A space keeps the most recently used logs open, so that an append does not have to compute the state again. All
requests share one log object for each session; that also lets appends of one session share a sync.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import wakelog.store
from wakelog.engine import head_or_none
from wakelog.errors import NotFoundError, UnavailableError, UnsupportedError
from wakelog.http.keys import FILE, Key, Keys, check_namespace
from wakelog.http.problems import no_space
from wakelog.http.shared_keys import SharedKeys, SharedNotes, is_cluster
from wakelog.log import Log
from wakelog.log.foreign_commits import CommitChecker
from wakelog.model.ids import SessionId
from wakelog.model.records import Head
from wakelog.session import Session
from wakelog.store import Store
from wakelog.store.encryption import key_for_another
from wakelog.store.url import FILES

DEFAULT = "default"
FOLDER = "ns"
LOGS_MAX = 512
"""How many logs a namespace keeps open."""


class Namespace:
    """One namespace: its store, and the logs in use."""

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self.engine = store.engine
        self.checker = CommitChecker(
            store.engine, self.log, known_log=self._known_log, redact=store.redact, clock=store.clock
        )
        self._logs: OrderedDict[SessionId, Log] = OrderedDict()
        self._names: OrderedDict[str, SessionId] = OrderedDict()
        self._lock = threading.Lock()

    def _known_log(self, session: SessionId) -> Log | None:
        with self._lock:
            log = self._logs.get(session)
            if log is not None:
                self._logs.move_to_end(session)
            return log

    def log(self, session: SessionId) -> Log:
        """The log of a session; NotFoundError when there is none or it was deleted."""
        log = self._known_log(session)
        if log is None:
            return self._open_log(session)
        self._refuse_deleted(self.engine.head(session))
        return log

    def _open_log(self, session: SessionId) -> Log:
        log = Log(self.engine, session, clock=self.store.clock, redact=self.store.redact)
        with self._lock:
            # Another request may have opened it meanwhile, and there must be only one.
            log = self._logs.setdefault(session, log)
            while len(self._logs) > LOGS_MAX:
                self._logs.popitem(last=False)
        return log

    def _refuse_deleted(self, head: Head) -> None:
        if head.status == "deleted":
            self.forget(head.session)
            raise NotFoundError(f"session {head.session} was deleted", kind="session-deleted")

    def forget(self, session: SessionId) -> None:
        with self._lock:
            self._logs.pop(session, None)

    def head(self, name_or_id: str) -> Head:
        """A session's head; NotFoundError also when it was deleted."""
        head = self._cached_head(name_or_id) or self.engine.head(self.store.find(name_or_id))
        self._refuse_deleted(head)
        if head.name == name_or_id:
            with self._lock:
                self._names[name_or_id] = head.session
                while len(self._names) > LOGS_MAX:
                    self._names.popitem(last=False)
        return head

    def _cached_head(self, name: str) -> Head | None:
        """The head of a session that was found by this name before. A name is free again only after its session was
        deleted, so a session that still exists still has it."""
        session = self._names.get(name)
        if session is None:
            return None
        head = head_or_none(self.engine, session)
        return head if head is not None and head.status != "deleted" else None

    def session(self, name_or_id: str) -> Session[Any]:
        head = self.head(name_or_id)
        log = self._known_log(head.session) or self._open_log(head.session)
        session: Session[Any] = Session(log, name=head.name)
        session.store = self.store
        return session


class NamespaceStores:
    """All namespaces of one server. Each is opened on first use."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lock = threading.Lock()
        self._open: dict[str, Namespace] = {}
        self._closed = False
        self.shared = SharedNotes(url) if self._is_database else None
        """Shared with other servers on the same database."""

    @property
    def folder(self) -> Path | None:
        """The folder of the namespaces and the keys; None for a store without a folder."""
        if self._is_memory or self._is_database:
            return None
        path = Path(self.url.removeprefix("sqlite://"))
        return path.parent if path.suffix in FILES else path

    @property
    def key_file(self) -> Path | None:
        return self.folder / FILE if self.folder is not None else None

    def keys(self, file: Path | None = None, launch: tuple[Key, str] | None = None) -> Keys:
        """The API keys: in `file`, or by default where the store is."""
        if file is None and self.shared is not None:
            return SharedKeys(self.shared, launch)
        return Keys(file or self.key_file, launch)

    @property
    def _is_memory(self) -> bool:
        return self.url in ("memory:", "memory://")

    @property
    def _is_database(self) -> bool:
        return self.url.startswith(("postgresql://", "postgres://")) or is_cluster(self.url)

    def find(self, name: str) -> Namespace | None:
        """The namespace, if it is open."""
        return self._open.get(name)

    def get(self, name: str, *, create: bool = False) -> Namespace:
        """The namespace; NotFoundError when there is none and `create` is false."""
        space = self._open.get(name)
        if space is not None:
            return space
        check_namespace(name)
        with self._lock:
            if self._closed:
                raise UnavailableError("the server has stopped", kind="server-stopping")
            if name not in self._open:
                self._open[name] = Namespace(name, self._open_store(name, create))
            return self._open[name]

    def _open_store(self, name: str, create: bool) -> Store:
        if name == DEFAULT:
            return wakelog.store.open(self.url)
        key = self._encryption_key()
        if self._is_memory:
            if not create:
                raise no_space(name)
            return wakelog.store.open(self.url, encryption_key=key)
        if self.shared is not None:
            if create:
                self.shared.make_space(name)
            elif name not in self.shared.spaces():
                raise no_space(name)
            return wakelog.store.open(_namespace_url(self.url, name), encryption_key=key)
        path = Path(self.url.removeprefix("sqlite://"))
        if path.suffix in FILES:
            raise UnsupportedError(
                f"{path} is a single file and has no namespaces", kind="no-namespaces", hint="serve a folder"
            )
        folder = path / FOLDER / name
        if not create and not folder.is_dir():
            raise no_space(name)
        return wakelog.store.open(folder, encryption_key=key)

    def _encryption_key(self) -> str:
        """The source of the encryption key. If the server's store is encrypted, its namespaces are too."""
        default = self._open.get(DEFAULT)
        if default is None:
            default = self._open[DEFAULT] = Namespace(DEFAULT, self._open_store(DEFAULT, False))
        return key_for_another(default.store)

    def names(self) -> list[str]:
        results = {DEFAULT, *self._open} | (self.shared.spaces() if self.shared is not None else set())
        folder = self.folder
        if folder is not None and (folder / FOLDER).is_dir():
            results |= {each.name for each in (folder / FOLDER).iterdir() if each.is_dir()}
        return sorted(results)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            spaces, self._open = list(self._open.values()), {}
        for space in spaces:
            space.store.close()
        if self.shared is not None:
            self.shared.close()


def _namespace_url(url: str, name: str) -> str:
    """The URL of a namespace of a database."""
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), "namespace": name}
    return parts._replace(query=urlencode(query)).geturl()
