"""Big payloads outside the engine: in a folder, or in any S3-compatible store.

This engine wraps another one. A payload above the limit is put into the blob store before its commit is submitted, and
the commit carries a mark instead. A mark is recognized because its bytes do not have the payload's hash. Each blob
belongs to one commit, under `root/session/last/sha256`, so removing a commit's content also finds its blobs. A blob
whose commit was never stored is an orphan, and `sweep` removes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from wakelog.engine import Abilities, Engine, Known, Pending, StoreFinding, Surgery
from wakelog.engine_wrapper import EngineWrapper
from wakelog.engines.object_storage import Object, Objects
from wakelog.errors import CorruptLogError, NotFoundError
from wakelog.model.ids import Seq, SessionId, is_session_id, root_of
from wakelog.model.records import Commit, Head, Snapshot

LIMIT = 256 * 1024
GRACE_S = 86400.0
"""A blob younger than this may belong to an append that is still running."""
_MARK = b"wakelog blob"


class BlobEngine(EngineWrapper):
    """An engine whose big payloads are stored elsewhere."""

    def __init__(self, engine: Engine, url: str, *, limit: int = LIMIT, options: dict[str, Any] | None = None) -> None:
        """`url` is a folder or a URL that obstore opens, such as `s3://bucket/prefix`; `options` are obstore's own
        (`config`, `client_options`). Credentials that are not given come from the environment."""
        self.engine = engine
        self.url = url
        self.limit = limit
        self.durability = engine.durability
        self.objects = Objects(url, options)

    @property
    def abilities(self) -> Abilities:
        inner = self.engine.abilities
        # A bundle imported by the inner engine, or an index inside it, would miss the blobs.
        return msgspec.structs.replace(
            inner,
            inspection=self,
            payloads_apart=True,
            take_bundle=None,
            is_far=False,
            keeps_index=False,
            submit_soon=None,
        )

    def submit(self, *commits: Commit) -> Pending:
        return self.engine.submit(*map(self._with_marks, commits))

    def _with_marks(self, commit: Commit) -> Commit:
        """Stores the big payloads and returns the commit with marks instead. If the commit is then not stored, `sweep`
        removes them."""
        if not any(len(content) > self.limit for _, content in commit.payloads):
            return commit
        slim = []
        for digest, content in commit.payloads:
            if len(content) > self.limit:
                self.objects.put(_key(commit, digest), content)  # a repeated append puts the same bytes again
                content = _MARK
            slim.append((digest, content))
        return msgspec.structs.replace(commit, payloads=tuple(slim))

    def _with_payloads(self, commit: Commit) -> Commit:
        if not any(content == _MARK for _, content in commit.payloads):
            return commit
        payloads = tuple(
            (digest, self._get(_key(commit, digest), commit) if _is_mark(content, digest) else content)
            for digest, content in commit.payloads
        )
        return msgspec.structs.replace(commit, payloads=payloads)

    def _get(self, key: str, commit: Commit) -> bytes:
        try:
            return self.objects.get(key)
        except FileNotFoundError as exc:
            raise CorruptLogError(
                f"a payload of event {commit.first} of {commit.session} is not in {self.url}",
                kind="blob-missing",
                hint="restore the blob store from its backup",
                seq=commit.first,
            ) from exc

    def _drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.objects.drop(key)

    def sweep(self, grace_s: float = 0.0) -> int:
        """Removes blobs of this store's sessions that no commit mentions, and returns how many. Without a grace period,
        do not call it while others append: their commits may not be stored yet. Blobs of unknown sessions are left
        alone, because they may belong to another store."""
        orphans = [blob.key for blob in self._find_orphans(grace_s)]
        self._drop(orphans)
        return len(orphans)

    def _find_orphans(self, grace_s: float) -> Iterator[Object]:
        before = datetime.now(UTC) - timedelta(seconds=grace_s)
        for blob in self.objects.list():
            if blob.at <= before and self._is_wanted(blob.key) is False:
                yield blob

    def _is_wanted(self, key: str) -> bool | None:
        """Whether a stored commit mentions the blob; None if this store does not have its session."""
        parts = key.split("/")
        if len(parts) != 4 or not is_session_id(parts[1]) or not parts[2].isdigit():
            return None
        session, last = SessionId(parts[1]), int(parts[2])
        try:
            return key in _blob_keys(self.engine.read(session, after=last - 1, upto=last, payloads=True))
        except NotFoundError:
            return None

    def inspect(self) -> Iterator[StoreFinding]:
        if (inner := self.engine.abilities.inspection) is not None:
            yield from inner.inspect()
        for blob in self._find_orphans(GRACE_S):
            yield StoreFinding(
                f"the blob {blob.key} ({blob.size} bytes) is mentioned by no commit",
                blob.key.split("/")[1],
                is_damage=False,
                fix="wakelog store scrub --repair removes it",
                can_tidy=True,
            )

    def tidy(self) -> int:
        inner = self.engine.abilities.inspection
        return self.sweep(GRACE_S) + (inner.tidy() if inner is not None else 0)

    # Blobs are removed after the removal of their content is durable.

    def operate(self, surgery: Surgery) -> Head:
        before = {
            (new.session, new.last): _blob_keys(
                self.engine.read(new.session, after=new.last - 1, upto=new.last, payloads=True)
            )
            for new in surgery.rewritten
        }
        slim = msgspec.structs.replace(
            surgery,
            commits=tuple(map(self._with_marks, surgery.commits)),
            rewritten=tuple(map(self._with_marks, surgery.rewritten)),
        )
        head = self.engine.operate(slim)
        for new in slim.rewritten:
            self._drop(before[new.session, new.last] - _blob_keys([new]))
        return head

    def delete(self, commit: Commit) -> Head:
        tree: list[SessionId] = [commit.session]
        while (fork := self.engine.head(tree[-1]).fork) is not None:
            tree.append(fork.parent)
        before = {s: _blob_keys(self.engine.read(s, payloads=True)) for s in tree}
        head = self.engine.delete(commit)
        for session, keys in before.items():
            self._drop(keys - _blob_keys(self.engine.read(session, payloads=True)))
        return head

    def read(
        self, session: SessionId, *, after: Seq = 0, upto: Seq | None = None, payloads: bool = False
    ) -> Iterator[Commit]:
        commits = self.engine.read(session, after=after, upto=upto, payloads=payloads)
        return map(self._with_payloads, commits) if payloads else commits

    def payload(self, session: SessionId, seq: Seq, digest: bytes) -> bytes:
        content = self.engine.payload(session, seq, digest)
        if not _is_mark(content, digest):
            return content
        for commit in self.engine.read(session, after=seq - 1, upto=seq):
            return self._get(_key(commit, digest), commit)
        raise NotFoundError(f"there is no event {seq} in {session}", kind="event-not-found")

    def known(self, session: SessionId, commit_id: str) -> Known | None:
        return self.engine.known(session, commit_id)

    def snapshot(self, session: SessionId, *, upto: Seq) -> Snapshot | None:
        return self.engine.snapshot(session, upto=upto)


def _blob_keys(commits: Iterable[Commit]) -> set[str]:
    return {_key(c, digest) for c in commits for digest, content in c.payloads if content == _MARK}


def _is_mark(content: bytes, digest: bytes) -> bool:
    return content == _MARK and hashlib.sha256(content).digest() != digest


def _key(commit: Commit, digest: bytes) -> str:
    return f"{root_of(commit.session)}/{commit.session}/{commit.last}/{digest.hex()}"
