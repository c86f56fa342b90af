"""What all servers on one database or cluster share: API keys, and the names of namespaces.

They are stored with the sessions, so a key made through one server, or by `wakelog key new`, is valid on all. A server
reads the keys again when it meets an unknown one, and otherwise every `FRESH_S`. So a new key works at once, and a
revoked one is refused everywhere within that time.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from wakelog.errors import CorruptLogError
from wakelog.http.keys import Key, Keys, id_in, name_taken, no_such_key
from wakelog.model.described import described

if TYPE_CHECKING:
    from wakelog.engines.nats.notes import ClusterNotes
    from wakelog.engines.postgres.notes import Notes

FRESH_S = 1.0
_KEY, _SPACE = "key", "namespace"


class SharedNotes:
    """The keys and namespaces in one database. Connects on first use."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._found: Notes | ClusterNotes | None = None
        self._lock = threading.Lock()

    @property
    def _notes(self) -> Notes | ClusterNotes:
        with self._lock:
            if self._found is None:
                self._found = _open_notes(self._url)
            return self._found

    def keys(self) -> dict[bytes, Key]:
        """The keys by their stored bytes, which a change or removal must name."""
        found = self._notes.of(_KEY).values()
        try:
            return {content: msgspec.json.decode(content, type=described(Key)) for content in found}
        except msgspec.DecodeError as exc:
            raise CorruptLogError(f"a key in the database cannot be read: {exc}", kind="bad-key-file") from exc

    def make_space(self, name: str) -> None:
        self._notes.add(_SPACE, name, b"")

    def spaces(self) -> set[str]:
        """The namespaces made through a server, and those that were written to without one."""
        return {*self._notes.of(_SPACE), *self._notes.namespaces()}

    def add_key(self, key: Key) -> bool:
        return self._notes.add(_KEY, key.name, msgspec.json.encode(key))

    def change_key(self, key: Key, was: bytes) -> bool:
        return self._notes.change(_KEY, key.name, msgspec.json.encode(key), was)

    def drop_key(self, key: Key, was: bytes) -> bool:
        return self._notes.drop(_KEY, key.name, was)

    def close(self) -> None:
        if self._found is not None:
            self._found.close()


def _open_notes(url: str) -> Notes | ClusterNotes:
    parts = urlsplit(url)
    if is_cluster(url):
        from wakelog.engines.nats.notes import ClusterNotes
        from wakelog.store.nats_url import open_nats

        return ClusterNotes(open_nats(url, True))
    from wakelog.engines.postgres import PostgresEngine
    from wakelog.engines.postgres.notes import Notes

    query = "&".join(each for each in parts.query.split("&") if not each.startswith("namespace="))
    return Notes(PostgresEngine(parts._replace(query=query).geturl()))


def is_cluster(url: str) -> bool:
    return url.startswith(("nats://", "tls://"))


class SharedKeys(Keys):
    """The keys of a store in a database or on a cluster."""

    def __init__(self, shared: SharedNotes, launch: tuple[Key, str] | None = None) -> None:
        super().__init__(None, launch)
        self._shared = shared
        self._refreshed_at = float("-inf")

    def needs_refresh(self, token: str, arrived: float) -> bool:
        id = id_in(token)
        if not id or id in self._launch:
            return False
        return self._refreshed_at < (arrived - FRESH_S if id in self._keys else arrived)

    def refresh(self) -> None:
        now = time.monotonic()
        self._keys = {key.id: key for key in self._shared.keys().values()}
        self._refreshed_at = now

    def _current(self) -> dict[str, Key]:
        return self._keys

    def all(self) -> list[Key]:
        self.refresh()
        return list(self._keys.values())

    def add(self, key: Key) -> None:
        if not self._shared.add_key(key):
            raise name_taken(key)
        self.refresh()

    def revoke(self, name_or_id: str) -> Key:
        while True:
            results = [(was, key) for was, key in self._shared.keys().items() if name_or_id in (key.name, key.id)]
            if not results:
                raise no_such_key(name_or_id)
            if self._shared.drop_key(results[0][1], results[0][0]):  # fails if its use was noted meanwhile
                self.refresh()
                return results[0][1]

    def note_use(self) -> None:
        used, self._used = self._used, {}
        if not used.keys() & self._keys.keys():
            return
        for was, key in self._shared.keys().items():
            if used.get(key.id, 0) > key.last_used:
                self._shared.change_key(msgspec.structs.replace(key, last_used=used[key.id]), was)

    def close(self) -> None:
        self._shared.close()
