"""The engine that encrypts: it wraps any engine and is one. What it hands down is encrypted, what it hands up is plain.

    record     salt and body together are one envelope, in the body's place; the header stays as it is
    payload    an envelope, under a name that only the key gives
    snapshot, paths, fingerprint       encrypted too

The header's `body_hash` is over the plain salt and body, as ever. So the chain, its hashes and its anchors are the same
whether a session is encrypted or not: a session can be encrypted, opened or moved to other keys by copying it. Whoever
has no key checks the headers and the chain; the content itself is checked with the key, twice: by AES-GCM and by its
hash.

Without a ring nothing is decrypted: envelopes are handed up as they are (the codec refuses to read them), and nothing
is handed down but forks (plain_fork.py). With one, an envelope of another ring is handed up too, and of one whose key
was deleted only the key's id is left. Copies and bundles that stay encrypted pass this engine by (`Encryption.below`).

Not encrypted, because an engine needs them to find and order things: ids and names of sessions, headers (kinds, times,
turns, actors, sources, trust), commit ids, who holds a lease, and sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from wakelog.codec.envelope import from_text, is_encrypted, no_key, refusal, to_text, without_content
from wakelog.encryption.key_ring import KeyRing
from wakelog.encryption.plain_fork import is_plain_fork
from wakelog.encryption.tree_key import TreeKey
from wakelog.engine import Abilities, Encryption, Engine, Known, Pending, Surgery
from wakelog.engine_wrapper import EngineWrapper
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.model.ids import Seq, SessionId, root_of
from wakelog.model.records import Commit, Head, Record, Snapshot

Cipher = Callable[[bytes, bytes], bytes]
"""Encrypts or decrypts a value for its place."""

_DIGEST = 32
_ALTERED = "was altered, or was put there from elsewhere"
_paths = msgspec.json.Decoder(tuple[str, ...]).decode


class EncryptedEngine(EngineWrapper):
    """An engine whose content is encrypted; without a ring, what can be had of it without the key."""

    def __init__(self, engine: Engine, ring: KeyRing | None, ring_id: str) -> None:
        self.engine = engine
        self.ring = ring
        self.ring_id = ring_id
        self.durability = engine.durability

    @property
    def abilities(self) -> Abilities:
        # An index that is kept in the database would be plain.
        return msgspec.structs.replace(
            self.engine.abilities,
            encryption=Encryption(self.engine, self.ring_id, self.ring is not None),
            keeps_index=False,
            take_bundle=None,
        )

    # Down

    def submit(self, *commits: Commit) -> Pending:
        return self.engine.submit(*map(self._encrypted, commits))

    def operate(self, surgery: Surgery) -> Head:
        return self.engine.operate(
            msgspec.structs.replace(
                surgery,
                commits=tuple(map(self._encrypted, surgery.commits)),
                rewritten=tuple(map(self._encrypted, surgery.rewritten)),
            )
        )

    def delete(self, commit: Commit) -> Head:
        return self.engine.delete(self._encrypted(commit))

    def _encrypted(self, commit: Commit) -> Commit:
        if self.ring is None:
            raise no_key(f"nothing can be added to {commit.session}")
        key, session = self.ring.of_tree(root_of(commit.session)), commit.session
        sealed = key.sealer("event", session)
        records = [_encrypted_record(sealed, seq, r) for seq, r in enumerate(commit.records, commit.first)]
        payloads = [_encrypted_payload(key, session, digest, content) for digest, content in commit.payloads]
        paths, snapshot = commit.paths, commit.snapshot
        if paths:
            text = to_text(key.encrypt(msgspec.json.encode(paths), "paths", session, b"%d" % commit.last))
            paths = (text,)
        if snapshot is not None:
            snapshot = key.encrypt(snapshot, "snapshot", session, b"%d" % commit.last)
        return msgspec.structs.replace(
            commit,
            records=tuple(records),
            payloads=tuple(payloads),
            paths=paths,
            snapshot=snapshot,
            fingerprint=key.hide_print(commit.fingerprint),
        )

    # Up

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        return map(self._decrypted, self.engine.read(session, after=after, upto=upto, payloads=payloads))

    def _decrypted(self, commit: Commit) -> Commit:
        values = [r.body for r in commit.records if r.body]
        if commit.payloads:
            values += [content for _, content in commit.payloads if content]
        envelope = values[0] if values else None
        if not all(map(is_encrypted, values)):
            if is_plain_fork(commit, self.engine.head(commit.session).fork):
                return commit
            raise _damage(commit, "is not encrypted, as everything in this store is")
        if envelope is None:
            return commit  # all of it was pruned
        try:
            key = self._key_of(envelope, commit)
        except NotFoundError:
            gone = [Record(r.header, b"", without_content(r.body)) for r in commit.records]
            return msgspec.structs.replace(commit, records=tuple(gone), payloads=(), paths=(), fingerprint=b"")
        if key is None:
            return msgspec.structs.replace(commit, paths=())
        session = commit.session
        opened = key.opener("event", session)
        records = [_decrypted_record(opened, commit, seq, r) for seq, r in enumerate(commit.records, commit.first)]
        paths = commit.paths
        try:
            if paths:
                paths = _paths(key.decrypt(from_text(paths[0]), "paths", session, b"%d" % commit.last))
            payloads = [_decrypted_payload(key, session, name, content) for name, content in commit.payloads]
            fingerprint = key.show_print(commit.fingerprint)
        except (CorruptLogError, ValueError) as exc:
            raise _damage(commit, _ALTERED) from exc
        return msgspec.structs.replace(
            commit,
            records=tuple(records),
            payloads=tuple(payloads),
            paths=paths,
            fingerprint=fingerprint,
        )

    def _key_of(self, envelope: bytes, commit: Commit) -> TreeKey | None:
        """The key that opens a commit; None when it is not at hand. NotFoundError when it was deleted."""
        if self.ring is None:
            return None
        key = self.ring.of_envelope(envelope)
        if key is None and self.ring.found(root_of(commit.session)) is not None:
            raise _damage(commit, "names a key that its tree never had")
        return key

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        key = self._readable(session)
        if key is None:
            return self.engine.payload(session, seq, digest)
        name = key.payload_name(digest)
        content = self.engine.payload(session, seq, name)
        return _decrypted_payload(key, session, name, content)[1]

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        found, key = self.engine.snapshot(session, upto=upto), self._readable(session)
        if key is None or found is None:
            return None
        try:
            return Snapshot(found.seq, key.decrypt(found.data, "snapshot", session, b"%d" % found.seq))
        except CorruptLogError:
            return Snapshot(found.seq, b"")  # readers pass it by, and `verify` reports it

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        found, key = self.engine.known(session, commit_id), self._readable(session)
        if found is None or key is None:
            return found
        return Known(found.head, key.show_print(found.fingerprint))

    def _readable(self, session: SessionId) -> TreeKey | None:
        """The key of a session's tree, if there is one."""
        if self.ring is None:
            return None
        try:
            return self.ring.found(root_of(session))
        except NotFoundError:  # it was deleted
            return None


# The value of a record is the length of its salt (one byte), the salt and the body: erased bodies have no salt.


def _encrypted_record(sealed: Cipher, seq: Seq, record: Record) -> Record:
    if not record.body:
        return record
    if is_encrypted(record.body):
        raise refusal(record.body)
    value = bytes([len(record.salt)]) + record.salt + record.body
    return Record(record.header, b"", sealed(value, b"%d" % seq))


def _decrypted_record(opened: Cipher, commit: Commit, seq: Seq, record: Record) -> Record:
    if not record.body:
        return record
    try:
        value = opened(record.body, b"%d" % seq)
    except CorruptLogError as exc:
        raise _damage(commit, _ALTERED, seq) from exc
    start = 1 + value[0]
    return Record(record.header, value[1:start], value[start:])


def _encrypted_payload(key: TreeKey, session: SessionId, digest: bytes, content: bytes) -> tuple[bytes, bytes]:
    name = key.payload_name(digest)
    return name, key.encrypt(digest + content, "payload", session, name)


def _decrypted_payload(key: TreeKey, session: SessionId, name: bytes, content: bytes) -> tuple[bytes, bytes]:
    value = key.decrypt(content, "payload", session, name)
    return value[:_DIGEST], value[_DIGEST:]


def _damage(commit: Commit, what: str, seq: Seq = 0) -> CorruptLogError:
    return CorruptLogError(
        f"the content of event {seq or commit.first} of {commit.session} {what}",
        kind="ciphertext-altered",
        hint=f"wakelog verify {commit.session}",
        seq=commit.first,
        upto=commit.last,
        session=commit.session,
    )
