"""`tampered`: an amount in a stored event was changed by one digit, behind our back."""

from __future__ import annotations

import contextlib

import msgspec

from wakelog.cli.demo.scene import Scene
from wakelog.engine import Engine
from wakelog.errors import UnsupportedError
from wakelog.maintenance.measures import file_of
from wakelog.model.records import Commit, Record

FIRST = "tampered"
_BEFORE, _AFTER = b"4200", b"9200"


def build(scene: Scene) -> None:
    s = scene.session(FIRST, goal="Approve refunds below 50.00", agent="demo-agent")
    for order, cents in ((1001, 1900), (1002, 4200), (1003, 700)):
        with s.turn(f"refund order {order}"):
            decided = s.decide(f"refund {cents} cents", because="below the limit", alternatives=["ask a person"])
            given = {"order": order, "cents": cents}
            flow = ((decided, decided),)
            scene.call(s, "refund", given, "done", effect="external", key=f"refund-{order}", derived_from=flow)
            s.fact(f"refund-{order}", cents)
        scene.wait(60)
    s.end()


def afterwards(engine: Engine, scene: Scene) -> None:
    """Changes one byte of a stored body, as somebody would who can write the file and knows how it is packed."""
    path = file_of(engine)
    if path is None:
        raise UnsupportedError("only a store on disk can be tampered with", kind="not-on-disk")
    from wakelog.engines.sqlite.connection import connect, transaction
    from wakelog.engines.sqlite.tables import require_number, update_commit

    session = scene.id_of(FIRST)
    altered = next(_altered(c) for c in engine.read(session, payloads=True) if _holds(c))
    with contextlib.closing(connect(path, create=False)) as db, transaction(db):
        update_commit(db, require_number(db, session), altered)


def _holds(commit: Commit) -> bool:
    return any(map(_is_the_request, commit.records))


def _is_the_request(record: Record) -> bool:
    return b'"tool":"refund"' in record.body and _BEFORE in record.body


def _altered(commit: Commit) -> Commit:
    records = tuple(
        Record(r.header, r.salt, r.body.replace(_BEFORE, _AFTER, 1)) if _is_the_request(r) else r
        for r in commit.records
    )
    return msgspec.structs.replace(commit, records=records)
