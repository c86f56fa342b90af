"""Bundles that stay encrypted: the stored bytes as they are, whether or not the receiver has the key.

**Export** needs no key. It includes whole commits, also of ancestors, because encrypted commits cannot be cut, and the
commits in which ancestors recorded later removals. Only the key opens any of it.

**Import.** If the key is available, the bundle is decrypted, fully verified and encrypted again. Without the key, its
chain is verified and its bytes are stored unchanged below the encryption. Erasures made elsewhere since then cannot be
recognised without the key; import those where the key is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from wakelog.codec.envelope import is_encrypted
from wakelog.encryption.engine import EncryptedEngine
from wakelog.encryption.mark import HINT
from wakelog.engine import Encryption, Engine, require
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import NotAllowedError, UnsupportedError
from wakelog.model.events import REMOVAL_KINDS
from wakelog.model.records import Commit, Head


def below(engine: Engine) -> Encryption:
    """The engine below the encryption. Raises UnsupportedError if the store is not encrypted."""
    return require(
        engine.abilities.encryption,
        UnsupportedError("this store is not encrypted", kind="not-encrypted", hint=HINT),
    )


def encrypted_commits(engine: Engine, ancestry: list[Head], head: Head) -> Iterator[Commit]:
    """The commits of a session and its ancestors as stored, oldest first."""
    for ancestor, fork in itertools.pairwise(ancestry):
        assert fork.fork is not None
        cut = max(fork.fork.at, ancestor.fork.at + 1 if ancestor.fork else 1)
        commits = list(engine.read(ancestor.session, payloads=True))
        last = max((c.last for c in commits if not REMOVAL_KINDS.isdisjoint(c.kinds)), default=0)
        yield from (c for c in commits if c.first <= max(cut, last) and "session.deleted" not in c.kinds)
    yield from engine.read(head.session, upto=head.seq, payloads=True)


def trial_of(engine: Engine, ring: str, commits: Sequence[Commit]) -> Engine:
    """An engine in memory with the commits of an encrypted bundle, opened with the keys of `engine`."""
    memory = MemoryEngine()
    memory.submit(*commits).result()
    return EncryptedEngine(memory, engine.ring if isinstance(engine, EncryptedEngine) else None, ring)


def decrypted_commits(trial: Engine, commits: Sequence[Commit]) -> list[Commit] | None:
    """The decrypted commits, or None if the key is not available."""
    plain: list[Commit] = []
    for session in dict.fromkeys(commit.session for commit in commits):
        plain += trial.read(session, payloads=True)
    is_open = not any(is_encrypted(record.body) for commit in plain for record in commit.records)
    return plain if is_open else None


def store_encrypted(engine: Engine, commits: Sequence[Commit]) -> None:
    """Stores encrypted commits unchanged. Commits that are already there stay as they are."""
    below(engine).below.submit(*commits).result()


def refuse_encrypted(engine: Engine, ring: str) -> Engine:
    """Returns the engine if its store is encrypted. A plain store cannot hold encrypted bytes, so it refuses."""
    if engine.abilities.encryption is None:
        raise NotAllowedError(
            f"this bundle is encrypted (key ring {ring}), and this store is not",
            kind="bundle-encrypted",
            hint="import it into a new store: wakelog import FILE --store NEW",
        )
    return engine
