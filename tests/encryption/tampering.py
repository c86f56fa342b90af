"""Changes stored bytes behind the back of a store, as somebody would who can write to it and has no key."""

from collections.abc import Callable, Mapping

import msgspec

from wakelog.engine import Engine, Surgery
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import Commit, Record


def put_bodies(engine: Engine, session: SessionId, bodies: Mapping[Seq, bytes]) -> None:
    """Replaces what is stored as the bodies of events."""

    def changed(commit: Commit) -> Commit:
        records = [
            Record(record.header, b"", bodies[seq]) if seq in bodies else record
            for seq, record in enumerate(commit.records, commit.first)
        ]
        return msgspec.structs.replace(commit, records=tuple(records))

    put(engine, session, changed)


def put(engine: Engine, session: SessionId, change: Callable[[Commit], Commit]) -> None:
    """Replaces the stored commits of a session by what `change` makes of them."""
    rewritten = tuple(change(commit) for commit in engine.read(session, payloads=True))
    head = engine.head(session)
    last = rewritten[-1]
    # An operation needs a commit: the last one again, which is known and stored once.
    engine.operate(Surgery((msgspec.structs.replace(last, fork=head.fork),), rewritten, stale_from={}))


def bodies_of(engine: Engine, session: SessionId) -> dict[Seq, bytes]:
    return {
        seq: record.body
        for commit in engine.read(session)
        for seq, record in enumerate(commit.records, commit.first)
        if record.body
    }
