"""Bundles that stay encrypted: the stored bytes as they are, for somebody who has the key, or has not.

**Going out** needs no key. Whole commits go along, of ancestors too: what cannot be read cannot be cut. So does what
ancestors removed later; like everything else, only the key opens it.

**Coming in**, a bundle whose key is at hand is opened, verified whole, and encrypted anew. Without the key its chain is
verified, and the bytes go below the encryption as they came. What was erased since elsewhere cannot be told then:
bring that over with the key.
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
from wakelog.log.bundle_ancestry import REMOVALS
from wakelog.model.records import Commit, Head


def below(engine: Engine) -> Encryption:
    """What lies below an encrypted engine; UnsupportedError when it is not encrypted."""
    return require(
        engine.abilities.encryption,
        UnsupportedError("this store is not encrypted", kind="not-encrypted", hint=HINT),
    )


def encrypted_commits(engine: Engine, ancestry: list[Head], head: Head) -> Iterator[Commit]:
    """The commits of a session and of its ancestors, as they are stored, oldest first."""
    for ancestor, fork in itertools.pairwise(ancestry):
        assert fork.fork is not None
        cut = max(fork.fork.at, ancestor.fork.at + 1 if ancestor.fork else 1)
        commits = list(engine.read(ancestor.session, payloads=True))
        last = max((c.last for c in commits if not REMOVALS.isdisjoint(c.kinds)), default=0)
        yield from (c for c in commits if c.first <= max(cut, last) and "session.deleted" not in c.kinds)
    yield from engine.read(head.session, upto=head.seq, payloads=True)


def trial_of(engine: Engine, ring: str, commits: Sequence[Commit]) -> Engine:
    """The commits of an encrypted bundle in memory, to be looked at with the keys that `engine` has."""
    memory = MemoryEngine()
    memory.submit(*commits).result()
    return EncryptedEngine(memory, engine.ring if isinstance(engine, EncryptedEngine) else None, ring)


def opened(trial: Engine, commits: Sequence[Commit]) -> list[Commit] | None:
    """The commits as they are when decrypted; None when the key is not at hand."""
    plain: list[Commit] = []
    for session in dict.fromkeys(commit.session for commit in commits):
        plain += trial.read(session, payloads=True)
    is_open = not any(is_encrypted(record.body) for commit in plain for record in commit.records)
    return plain if is_open else None


def store_encrypted(engine: Engine, commits: Sequence[Commit]) -> None:
    """Stores encrypted commits as they came. What is there already is left as it is."""
    below(engine).below.submit(*commits).result()


def refuse_encrypted(engine: Engine, ring: str) -> Engine:
    """The engine, if its store is encrypted; else there is no place for encrypted bytes in it."""
    if engine.abilities.encryption is None:
        raise NotAllowedError(
            f"this bundle is encrypted (key ring {ring}), and this store is not",
            kind="bundle-encrypted",
            hint="import it into a new store: wakelog import FILE --store NEW",
        )
    return engine
