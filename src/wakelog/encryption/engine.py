"""An engine that wraps another one: it encrypts what it writes there, and decrypts what it reads.

    record     salt and body together are one envelope, stored as the body; the header is not encrypted
    payload    an envelope, stored under a name that only the key can compute
    snapshot, paths, fingerprint       encrypted too

The header's `body_hash` is computed from the plain salt and body. So the chain, its hashes and its anchors are the same
with and without encryption: a session can be encrypted, decrypted or moved to other keys by copying it. Without the
key, headers and chain can be checked. With the key, the content is checked twice: by AES-GCM and by its hash.

Without a ring, nothing is decrypted: reads return envelopes (which the codec refuses to decode), and the only possible
write is a fork (plain_fork.py). With a ring, an envelope of another ring is returned as it is; if its key was deleted,
only the key's id is left. Copies and bundles that stay encrypted bypass this engine (`Encryption.below`).

Some data is not encrypted, because an engine needs it to find and order things: ids and names of sessions, headers
(kinds, times, turns, actors, sources, trust), commit ids, who holds a lease, and sizes.
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
"""Encrypts or decrypts a value that belongs to a place."""

_DIGEST = 32
_ALTERED = "was altered or moved here from elsewhere"
_paths = msgspec.json.Decoder(tuple[str, ...]).decode


class EncryptedEngine(EngineWrapper):
    """An engine whose content is encrypted. Without a ring, it gives what is readable without a key."""

    def __init__(self, engine: Engine, ring: KeyRing | None, ring_id: str) -> None:
        self.engine = engine
        self.ring = ring
        self.ring_id = ring_id
        self.durability = engine.durability

    @property
    def abilities(self) -> Abilities:
        # An index in the database would not be encrypted.
        return msgspec.structs.replace(
            self.engine.abilities,
            encryption=Encryption(self.engine, self.ring_id, self.ring is not None),
            keeps_index=False,
            take_bundle=None,
            submit_soon=None,
        )

    # Writing

    def submit(self, *commits: Commit) -> Pending:
        return self.engine.submit(*map(self._encrypt, commits))

    def operate(self, surgery: Surgery) -> Head:
        return self.engine.operate(
            msgspec.structs.replace(
                surgery,
                commits=tuple(map(self._encrypt, surgery.commits)),
                rewritten=tuple(map(self._encrypt, surgery.rewritten)),
            )
        )

    def delete(self, commit: Commit) -> Head:
        return self.engine.delete(self._encrypt(commit))

    def _encrypt(self, commit: Commit) -> Commit:
        if self.ring is None:
            raise no_key(f"nothing can be added to {commit.session}")
        key, session = self.ring.ensure_key(root_of(commit.session)), commit.session
        encrypt = key.encryptor("event", session)
        records = [_encrypt_record(encrypt, seq, r) for seq, r in enumerate(commit.records, commit.first)]
        payloads = [_encrypt_payload(key, session, digest, content) for digest, content in commit.payloads]
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
            fingerprint=key.encrypt_fingerprint(commit.fingerprint),
        )

    # Reading

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        return map(self._decrypt, self.engine.read(session, after=after, upto=upto, payloads=payloads))

    def _decrypt(self, commit: Commit) -> Commit:
        values = [r.body for r in commit.records if r.body]
        if commit.payloads:
            values += [content for _, content in commit.payloads if content]
        envelope = values[0] if values else None
        if not all(map(is_encrypted, values)):
            if is_plain_fork(commit, self.engine.head(commit.session).fork):
                return commit
            raise _damage(commit, "is not encrypted, but everything in this store must be")
        if envelope is None:
            return commit  # its whole content was pruned
        try:
            key = self._key_of(envelope, commit)
        except NotFoundError:
            gone = [Record(r.header, b"", without_content(r.body)) for r in commit.records]
            return msgspec.structs.replace(commit, records=tuple(gone), payloads=(), paths=(), fingerprint=b"")
        if key is None:
            return msgspec.structs.replace(commit, paths=())
        session = commit.session
        decrypt = key.decryptor("event", session)
        records = [_decrypt_record(decrypt, commit, seq, r) for seq, r in enumerate(commit.records, commit.first)]
        paths = commit.paths
        try:
            if paths:
                paths = _paths(key.decrypt(from_text(paths[0]), "paths", session, b"%d" % commit.last))
            payloads = [_decrypt_payload(key, session, name, content) for name, content in commit.payloads]
            fingerprint = key.decrypt_fingerprint(commit.fingerprint)
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
        """The key of a commit; None if it is not available. NotFoundError if it was deleted."""
        if self.ring is None:
            return None
        key = self.ring.find_by_envelope(envelope)
        if key is None and self.ring.find_key(root_of(commit.session)) is not None:
            raise _damage(commit, "has a key that its tree never had")
        return key

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        key = self._available_key(session)
        if key is None:
            return self.engine.payload(session, seq, digest)
        name = key.payload_name(digest)
        content = self.engine.payload(session, seq, name)
        return _decrypt_payload(key, session, name, content)[1]

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        found, key = self.engine.snapshot(session, upto=upto), self._available_key(session)
        if key is None or found is None:
            return None
        try:
            return Snapshot(found.seq, key.decrypt(found.data, "snapshot", session, b"%d" % found.seq))
        except CorruptLogError:
            return Snapshot(found.seq, b"")  # readers ignore it, and `verify` reports it

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        found, key = self.engine.known(session, commit_id), self._available_key(session)
        if found is None or key is None:
            return found
        return Known(found.head, key.decrypt_fingerprint(found.fingerprint))

    def _available_key(self, session: SessionId) -> TreeKey | None:
        """The key of a session's tree, or None."""
        if self.ring is None:
            return None
        try:
            return self.ring.find_key(root_of(session))
        except NotFoundError:  # it was deleted
            return None


# A record is encrypted as the length of its salt (one byte), the salt and the body. Erased bodies have no salt.


def _encrypt_record(encrypt: Cipher, seq: Seq, record: Record) -> Record:
    if not record.body:
        return record
    if is_encrypted(record.body):
        raise refusal(record.body)
    value = bytes([len(record.salt)]) + record.salt + record.body
    return Record(record.header, b"", encrypt(value, b"%d" % seq))


def _decrypt_record(decrypt: Cipher, commit: Commit, seq: Seq, record: Record) -> Record:
    if not record.body:
        return record
    try:
        value = decrypt(record.body, b"%d" % seq)
    except CorruptLogError as exc:
        raise _damage(commit, _ALTERED, seq) from exc
    start = 1 + value[0]
    return Record(record.header, value[1:start], value[start:])


def _encrypt_payload(key: TreeKey, session: SessionId, digest: bytes, content: bytes) -> tuple[bytes, bytes]:
    name = key.payload_name(digest)
    return name, key.encrypt(digest + content, "payload", session, name)


def _decrypt_payload(key: TreeKey, session: SessionId, name: bytes, content: bytes) -> tuple[bytes, bytes]:
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
