"""`store.patterns`: what sessions do repeatedly, and how sets of sessions differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from wakelog.patterns.cohorts import AskCohorts, Cohort, CohortComparison
from wakelog.patterns.findings import PER_KIND, AskPattern, AskPatterns, FoundPatterns, WorkPattern
from wakelog.patterns.follows_map import AskMap, FollowsMap

if TYPE_CHECKING:
    from wakelog.store import Store


class StorePatterns:
    """Finds patterns in all sessions, or in those of one project."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(
        self,
        *,
        project: str | None = None,
        kinds: Iterable[str] = (),
        since: int | None = None,
        until: int | None = None,
        least: int = 0,
        limit: int = PER_KIND,
    ) -> FoundPatterns:
        """Finds chains of steps, recipes after errors, repeated dead ends, loops, flaky tools, files that change
        together and slow calls: the best of each kind. `kinds` names some of them (chain, recipe, dead_end, loop,
        flaky, together, slow). A pattern must be in at least `least` independent sessions."""
        return self._store.index.ask(AskPatterns(project, tuple(kinds), since, until, least, limit))

    def show(self, id: str, *, project: str | None = None) -> WorkPattern:
        """Returns one pattern with the places where it was seen. Pass the project in which it was found."""
        return self._store.index.ask(AskPattern(id, project))

    def map(self, *, project: str | None = None, since: int | None = None, until: int | None = None) -> FollowsMap:
        """Returns a graph of which step follows which; its `dot` and `svg` draw it."""
        return self._store.index.ask(AskMap(project, since, until))

    def compare(
        self,
        a: Cohort | Mapping[str, str],
        b: Cohort | Mapping[str, str],
        *,
        project: str | None = None,
    ) -> CohortComparison:
        """Compares two sets of sessions, each given by labels (`{"agent_version": "2.1"}`; also agent, model, outcome)
        or as a `Cohort` with times: what differs within tasks, with effect sizes, confidence intervals and p-values."""
        one, two = (given if isinstance(given, Cohort) else Cohort(dict(given)) for given in (a, b))
        return self._store.index.ask(AskCohorts(one, two, project))
