"""Queries of a store over all its sessions: costs, roll-ups, knowledge, patterns, influence of a source.

They read the index and write nothing. They are in a separate class only because a store has many verbs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from wakelog.model.ids import SessionId
from wakelog.model.totals import SessionTotals

if TYPE_CHECKING:
    from wakelog.index.results import Costs
    from wakelog.index.rollups import Rollup
    from wakelog.model.events import Trust
    from wakelog.provenance.across_sessions import TaintAcross
    from wakelog.provenance.taint import Part
    from wakelog.session import Session
    from wakelog.store import Store
    from wakelog.store.file_sessions import FileSession
    from wakelog.store.insight_search import DerivedHit
    from wakelog.store.known import StoreKnown
    from wakelog.store.line_writer import LineWriter
    from wakelog.store.patterns import StorePatterns
    from wakelog.store.plans import StorePlans
    from wakelog.store.preferences import StorePreferences


class StoreQuestions:
    """Queries over all sessions."""

    @property
    def _store(self) -> Store:
        return cast("Store", self)

    def find_derived(
        self,
        words: str,
        kind: str = "decision",
        *,
        session: SessionId | None = None,
        since: int | None = None,
        limit: int = 20,
    ) -> list[DerivedHit]:
        """Finds derived decisions, or dead ends (`kind="dead_end"`), whose quotes contain all the words, in all
        sessions or in one. Other kinds are never derived and return nothing."""
        from wakelog.store.insight_search import find_derived

        return find_derived(self._store, words, kind, session, since, limit)

    def taint(
        self,
        source: str = "",
        *,
        trust: Trust = "unverified",
        parts: Iterable[Part] | None = None,
        sessions: int = 20,
        wide: bool = False,
    ) -> TaintAcross:
        """Shows everything influenced by a source ("web:*") in at most `sessions` sessions, the newest first. Without a
        source, it starts from input that is trusted no more than `trust`. The index says which sessions to read."""
        from wakelog.store.taint import taint_everywhere

        return taint_everywhere(self._store, source, trust, parts, sessions, wide)

    def changers(self, path: str) -> list[FileSession]:
        """Lists the sessions that changed a file, the newest first. The path may be relative to this folder or to the
        session's, or the end of a known path."""
        from wakelog.store.file_sessions import sessions_of_file

        return sessions_of_file(self._store, path)

    def line_writer(self, path: str, line: int) -> LineWriter | None:
        """Finds the session that wrote a line of a file, among all sessions that changed the file: from the file on
        disk back to the change that wrote the line. If git knows the line, its commit is named."""
        from wakelog.store.line_writer import line_writer

        return line_writer(self._store, path, line)

    def cost(
        self,
        sessions: str | Iterable[str] | None = None,
        *,
        by: str = "session",
        turns: tuple[int, int] | None = None,
        since: int | None = None,
        until: int | None = None,
        utc: bool = True,
    ) -> Costs:
        """Sums up what was spent, by session, turn, tool, model, agent, day or `label:NAME`. Each amount is counted
        once. Named sessions include their sub-agents; without names, all sessions count. Times are in microseconds."""
        named = [sessions] if isinstance(sessions, str) else sessions
        session_ids = None if named is None else [self._store.find(name) for name in named]
        return self._store.index.costs(session_ids, by=by, turns=turns, since=since, until=until, utc=utc)

    def rollup(
        self,
        by: str = "session",
        *,
        sessions: str | Iterable[str] | None = None,
        project: str | None = None,
        since: int | None = None,
        until: int | None = None,
        utc: bool = True,
    ) -> Rollup:
        """Sums up work by turn, phase, session, project or day: calls, errors, time, tokens, money. Each session counts
        its own work; pruning changes no number. Phases of named sessions are listed turn by turn. Its `svg` draws it.
        Times are in microseconds."""
        from wakelog.index.questions import AskRollup

        named = [sessions] if isinstance(sessions, str) else sessions
        session_ids = None if named is None else tuple(self._store.find(name) for name in named)
        return self._store.index.ask(AskRollup(by, session_ids, project, since, until, utc))

    def _totals(self, session: Session[Any]) -> SessionTotals:
        from wakelog.index.questions import AskTotals

        return self._store.index.ask(AskTotals(session.id))

    @property
    def known(self) -> StoreKnown:
        """Queries what earlier sessions knew: about, failed, decisions, who, facts, path, like, recall, past, here."""
        from wakelog.store.known import StoreKnown

        return StoreKnown(self._store)

    @property
    def preferences(self) -> StorePreferences:
        """Stores what people want, shown in briefs: add, accept, all, of, derived, remove."""
        from wakelog.store.preferences import StorePreferences

        return StorePreferences(self._store)

    def preferences_for(self, session: Session[Any]) -> list[tuple[str, str]]:
        """Returns the preferences that apply to a session, each with its source, for the brief."""
        return [(p.text, p.source.replace("@", "@e")) for p in self.preferences.of(session)]

    @property
    def plans(self) -> StorePlans:
        """Promotes proven chains to plans that run on new inputs: promote, all, get, endorse, run, remove."""
        from wakelog.store.plans import StorePlans

        return StorePlans(self._store)

    @property
    def patterns(self) -> StorePatterns:
        """Finds what sessions do repeatedly, and how sets of sessions differ: find, show, map, compare."""
        from wakelog.store.patterns import StorePatterns

        return StorePatterns(self._store)
