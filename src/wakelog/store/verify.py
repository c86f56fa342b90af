"""Checking a whole store: every session, and what belongs to none."""

from __future__ import annotations

from collections.abc import Iterator

from wakelog.engine import Engine
from wakelog.log.damage import every_id
from wakelog.log.verify import Fault, VerifyReport, verify_session
from wakelog.model.ids import SessionId


def verify_store(engine: Engine) -> Iterator[VerifyReport]:
    """See `Store.verify`."""
    for session, _ in every_id(engine):
        yield verify_session(engine, session)
    inspection = engine.abilities.inspection
    found = [f for f in inspection.inspect() if f.is_damage] if inspection is not None else []
    if found:
        faults = tuple(Fault(f.seq, f.what) for f in found)
        yield VerifyReport(SessionId(""), 0, "", faults, (), {}, anchored=False)
