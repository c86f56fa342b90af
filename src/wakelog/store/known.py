"""`store.known`: what earlier sessions of a store knew.

A project is named by the main work tree of its repository; without one, all projects are searched. Answers come from
the index, which can be rebuilt from the log.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wakelog.files.git_head import git_labels, top_of
from wakelog.knowledge.connections import AskConnections, ThingPath
from wakelog.knowledge.facts import AskFacts
from wakelog.knowledge.likeness import AskLike, LikeSessions
from wakelog.knowledge.lines import KnownThing
from wakelog.knowledge.recall import TOKENS, TOKENS_AT_ERROR, AskRecall, PastLines, as_markdown
from wakelog.knowledge.things import LINES, AskKnown, Aspect
from wakelog.model import events as ev
from wakelog.model.call_subject import project_of, project_path
from wakelog.model.error_signature import error_signature
from wakelog.model.json_fields import as_text
from wakelog.monitors.rules import RuleFinding

if TYPE_CHECKING:
    from wakelog.log.reader import Entry
    from wakelog.monitors.session_view import SessionView
    from wakelog.session import Session
    from wakelog.store import Store


class StoreKnown:
    """Asks what earlier sessions knew about files, keys, addresses and errors."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def about(
        self,
        subject: str,
        *,
        aspect: Aspect = "all",
        project: str | None = None,
        kind: str = "",
        as_of: int | None = None,
        known_at: int | None = None,
        limit: int = LINES,
    ) -> KnownThing:
        """Returns what is known about a file (as its project names it), a fact's key, an address, a commit, an artefact
        or an error's signature: facts that hold, dead ends, failures, decisions, and who touched it. `aspect` asks for
        some of it: `failed` for failures and dead ends, `decisions` for those that name the thing or were made in a
        turn that changed it, `who` for the sessions and agents that touched it. `as_of` asks what held at a time,
        `known_at` what was stored by a time (in microseconds)."""
        return self._store.index.ask(AskKnown(subject, aspect, kind, project, as_of, known_at, limit))

    def facts(
        self,
        key: str | None = None,
        *,
        project: str | None = None,
        conflicts: bool = False,
        as_of: int | None = None,
        known_at: int | None = None,
        limit: int = 50,
    ) -> KnownThing:
        """Returns the facts that hold, of one key or of all. With `conflicts`, only those that contradict each
        other."""
        return self._store.index.ask(AskFacts(key, project, conflicts, as_of, known_at, limit))

    def path(self, a: str, b: str, *, project: str | None = None) -> ThingPath:
        """Returns how two things are connected: the shortest path over sessions and things between them."""
        return self._store.index.ask(AskConnections(a, b, project))

    def like(
        self, text: str, *, project: str | None = None, session: Session[Any] | None = None, limit: int = 5
    ) -> LikeSessions:
        """Finds past sessions that match a description ("yesterday's export job"), and says why each matched."""
        now = self._store.clock()
        own = session.id if session is not None else ""
        return self._store.index.ask(AskLike(text, project, own, now, _offset_us(now), limit))

    def recall(
        self,
        *,
        files: Iterable[str] = (),
        error: str = "",
        goal: str = "",
        project: str | None = None,
        session: Session[Any] | None = None,
        tokens: int | None = None,
        record: bool = True,
    ) -> PastLines:
        """Returns a few lines from past sessions that are relevant now, or none. With a session, its own fork tree is
        left out, its project is searched, and what was shown is recorded in its log, without the words, unless `record`
        is false. `tokens` limits the size: by default about 500, or 150 if only an error is given."""
        named = tuple(files)
        if session is not None and project is None:
            project = project_of(session.log.part("labels") or {}) or None
        only_error = bool(error) and not named and not goal
        room = tokens if tokens is not None else TOKENS_AT_ERROR if only_error else TOKENS
        own = session.id if session is not None else ""
        past = self._store.index.ask(AskRecall(named, error, goal, project, own, room, self._store.clock()))
        if session is not None and record and past.lines:
            shown = tuple(line.sources[0] for line in past.lines)
            occasion: Any = "error" if only_error else "asked"
            event = ev.KnowledgeRecalled(sources=shown, lines=tuple(x.kind for x in past.lines), occasion=occasion)
            session.append(event)
        return past

    def past(self, session: Session[Any], *, tokens: int = TOKENS) -> PastLines:
        """Returns what a session should know at its start: `recall` for its goal and its changed files. Nothing is
        recorded."""
        log = session.log
        labels = log.part("labels") or {}
        files = tuple(project_path(path, labels) for path in log.part("files_modified") or {})
        goal = log.part("goal") or labels.get("title") or ""
        project = project_of(labels) or None
        return self._store.index.ask(
            AskRecall(files, "", as_text(goal), project, session.id, tokens, self._store.clock())
        )

    def known_error(self, entry: Entry, view: SessionView) -> RuleFinding | None:
        """A rule for `Store.watch` and `Session.monitors.add`: flags an error that at least two earlier sessions
        solved, with what they did. It reads the index and writes only the flag."""
        if not entry.kind.startswith("action.") or not entry.is_intact:
            return None
        error = entry.body.get("error")
        if not isinstance(error, dict):
            return None
        signature = error_signature(str(error.get("type") or ""), str(error.get("message") or ""))
        if not signature:
            return None
        project = project_of(view.state.get("labels") or {}) or None
        asked = AskRecall(error=signature, project=project, tokens=TOKENS_AT_ERROR, now=self._store.clock())
        line = next((x for x in self._store.index.ask(asked).lines if x.kind == "recipe" and x.roots > 1), None)
        if line is None or line.trust == "untrusted":
            return None
        digest = hashlib.sha256(signature.encode()).hexdigest()[:8]
        return RuleFinding(f"known-error:{digest}", line.text, severity="info", targets=(entry.seq,))

    def as_markdown(self, recalled: PastLines) -> str:
        """Returns recalled lines as Markdown for a model, each with its source; untrusted ones are fenced."""
        return as_markdown(recalled)

    def here(self, subject: str = "", *, folder: str = ".") -> tuple[str, str | None]:
        """Returns a subject as the project of a folder names it, and that project; None if the folder is in no
        repository. An existing file gets its path in the project; anything else is returned unchanged."""
        labels = git_labels(folder)
        project = labels.get("repo")
        is_path = "://" not in subject and os.path.exists(os.path.join(folder, subject))
        if project is None or not subject or not is_path:
            return subject, project
        place = {"project": os.path.realpath(top_of(folder)), "repo": project}
        return project_path(os.path.realpath(os.path.join(folder, subject)), place), project


def _offset_us(now: int) -> int:
    """Returns how far the local time is ahead of UTC."""
    return int(time.localtime(now / 1e6).tm_gmtoff) * 1_000_000
