"""Finds what a source influenced in all sessions of a store.

The index says which sessions read the source. The log of each says what it influenced. The newest come first, so a
limit leaves out the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wakelog.errors import WakelogError
from wakelog.model.trust import distrust
from wakelog.provenance.across_sessions import TaintAcross, TouchedSession
from wakelog.provenance.taint import Part
from wakelog.runtime.ambient import TrustMark

if TYPE_CHECKING:
    from wakelog.model.events import Trust
    from wakelog.store import Store

_ROOTS = 10
_TIMEOUT_S = 20.0
_NEWEST = "select session from events where {} group by session order by max(at_us) desc limit :limit"
_BY_SOURCE = "source glob :source or (tool <> '' and 'tool:' || tool glob :source)"
_BY_TRUST = {1: "trust <> 'trusted'", 2: "trust = 'untrusted'"}


def taint_everywhere(
    store: Store, source: str, trust: Trust, parts: Iterable[Part] | None, sessions: int, wide: bool
) -> TaintAcross:
    """Lists what depends on a source, session by session; without one, on input trusted no more than `trust`."""
    where = _BY_SOURCE if source else _BY_TRUST[max(1, distrust(TrustMark(trust).trust))]
    values: dict[str, Any] = {"limit": sessions + 1, **({"source": source} if source else {})}
    rows = store.index.query_sql(_NEWEST.format(where), values, timeout_s=_TIMEOUT_S).rows
    wanted = None if parts is None else tuple(parts)
    results: list[TouchedSession] = []
    limits = [f"more sessions read it; only the newest {sessions} were checked"] if len(rows) > sessions else []
    for (name,) in rows[:sessions]:
        try:
            session = store.resume(str(name))
            here = session.trust.taint(source or None, trust=trust, parts=wanted, wide=wide)
        except WakelogError as exc:
            limits.append(f"{name} cannot be read: {exc.message}")
            continue
        if here.root_count:
            head = session.head
            results.append(TouchedSession(head.session, head.name, None, here.roots[:_ROOTS], here.items, here.reached))
    return TaintAcross(source or trust, tuple(results), tuple(limits))
