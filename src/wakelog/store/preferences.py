"""`store.preferences`: what people want, in one project or all, for one person or everybody.

A preference is stated by a person, or accepted from what rules derive from the user's words in a session ("always run
the linter", "no, use pnpm instead"). A stated preference is stored as text. An accepted one is stored as a reference to
the words: if the source is erased, the preference is gone. Both are facts in the store's session `wakelog.preferences`;
removing one retracts the fact. Each session's brief shows the preferences that apply to it, with their sources.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from wakelog.errors import InvalidInputError, NotAllowedError, NotFoundError, WakelogError
from wakelog.index.questions import AskSessions
from wakelog.insight.items import InsightItem
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.call_subject import project_of
from wakelog.model.ids import Seq, SessionId
from wakelog.model.parts import content_text
from wakelog.model.values import Value, check_text

if TYPE_CHECKING:
    from wakelog.session import Session
    from wakelog.store import Store

SESSION = "wakelog.preferences"
PREFIX = "preference:"
PERSON = "person"
"""The label with the person whose session it is."""
SESSIONS_READ = 40
"""How many sessions, the newest of a project, are read to find possible preferences."""
LASTING = re.compile(
    r"\b(?:always|never|from now on|in (?:the )?future|going forward|every time|whenever|by default|as a rule)\b", re.I
)
"""Words that mean it applies beyond the current task. Without them it must be said in two sessions."""
WORDS_MAX = 300
_KINDS = ("preference", "correction", "redirect")


class Preference(msgspec.Struct, frozen=True):
    """What the user wants."""

    id: str
    text: str
    project: str
    """The main work tree of a repository; empty means everywhere."""
    person: str
    """The person; empty means everybody."""
    known: Literal["stated", "accepted"]
    source: str
    """Where it was said, as `session@seq`."""
    at: int


class PossiblePreference(msgspec.Struct, frozen=True):
    """A user's words that may apply beyond their session. Derived by rules, not yet accepted."""

    session: SessionId
    name: str
    item: str
    """The id to accept it with, such as `e17`."""
    kind: str
    text: str
    turn: int
    seq: Seq
    roots: int
    """How many independent sessions say the same."""


class StorePreferences:
    """Stores preferences, and finds possible ones."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, text: str, *, project: str = "", person: str = "", why: str = "") -> Preference:
        """Stores a preference as text."""
        words = " ".join(check_text(text, "a preference").split())
        if not words or len(words) > WORDS_MAX:
            raise InvalidInputError(
                f"a preference is one sentence of at most {WORDS_MAX} characters", kind="bad-preference"
            )
        return self._keep({"text": words, "project": project, "person": person}, why)

    def accept(
        self, session: Session[Any], item: str, *, project: str | None = None, person: str = "", why: str = ""
    ) -> Preference:
        """Stores a derived item of a session (`derived` lists them) as a preference, as a reference to the words. It
        applies in `project`, by default the session's; an empty one means everywhere. Untrusted words are refused."""
        seq = int(item.removeprefix("e").partition(".")[0]) if re.fullmatch(r"e\d+(\.\d+)?", item) else 0
        if not 0 < seq <= session.head.seq:
            raise NotFoundError(f"{item!r} is no item of {session.name or session.id}", kind="item-not-found")
        entry = session.log.entry(seq)
        found = next((i for i in _derived(session, f"@{entry.header.turn}") if i.id == item), None)
        text = _user_text(session.log, entry)
        if found is None or found.quote not in text:
            raise NotFoundError(
                f"nothing at {item} in {session.name or session.id} could be a preference",
                kind="item-not-found",
                hint="wakelog preferences derived lists what could",
            )
        if entry.header.trust == "untrusted":
            raise NotAllowedError("untrusted words cannot become a preference", kind="untrusted-preference")
        start = text.index(found.quote)
        place = {"source": f"{session.id}@{seq}", "start": start, "length": len(found.quote)}
        scope = project_of(session.log.part("labels") or {}) if project is None else project
        return self._keep({**place, "project": scope, "person": person}, why)

    def all(self, *, project: str | None = None, person: str | None = None) -> tuple[Preference, ...]:
        """Lists the preferences, oldest first; with a project or a person, only those that apply there or to them."""
        preferences = [p for p in self._kept() if project is None or p.project in ("", project)]
        return tuple(p for p in preferences if person is None or p.person in ("", person))

    def of(self, session: Session[Any]) -> tuple[Preference, ...]:
        """Returns those that apply to a session, by its project and its label `person`."""
        if not self._store.is_open(SESSION) or session.name == SESSION:
            return ()
        labels = session.log.part("labels") or {}
        return self.all(project=project_of(labels), person=str(labels.get(PERSON, "")))

    def remove(self, id: str, *, why: str = "") -> None:
        """Removes a preference. Raises NotFoundError if there is none with that id."""
        if not any(preference.id == id for preference in self._kept(gone=True)):
            known = ", ".join(preference.id for preference in self._kept())
            there = f"there are {known}" if known else "none is recorded yet"
            raise NotFoundError(
                f"there is no preference {id!r}: {there}",
                kind="preference-not-found",
                hint="wakelog preferences lists them",
            )
        self._session().retract(PREFIX + id, why=why)

    def derived(self, *, project: str | None = None, limit: int = 20) -> tuple[PossiblePreference, ...]:
        """Lists what users said in the newest sessions that may apply beyond them: said in several sessions, which come
        first, or with words such as "always" or "never". Nothing is stored until it is accepted."""
        kept = {preference.source for preference in self._kept()}
        results: dict[str, list[PossiblePreference]] = {}
        roots: dict[str, set[str]] = {}
        newest = self._store.index.ask(AskSessions(limit=1000)).rows
        read = [info for info in newest if project is None or project_of(info.labels) == project]
        for info in read[:SESSIONS_READ]:
            for item in _derived(self._store.resume(info.id), f"@1..@{info.turn}") if info.turn else ():
                words = " ".join(re.findall(r"[^\W\d_]+", item.quote.lower()))
                if not words or f"{info.id}@{item.seq}" in kept:
                    continue
                roots.setdefault(words, set()).add(info.root)
                possible = PossiblePreference(
                    info.id, info.name, item.id, item.kind, item.quote[:WORDS_MAX], item.turn, item.seq, 1
                )
                results.setdefault(words, []).append(possible)
        out = [
            msgspec.structs.replace(group[0], roots=len(roots[words]))
            for words, group in results.items()
            if len(roots[words]) > 1 or LASTING.search(group[0].text)
        ]
        out.sort(key=lambda possible: (-possible.roots, _KINDS.index(possible.kind)))
        return tuple(out[:limit])

    # The session `wakelog.preferences`

    def _session(self) -> Session[Any]:
        return self._store.session(SESSION, goal="What people want, for all sessions", folder="")

    def _keep(self, value: dict[str, Any], why: str) -> Preference:
        digest = hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:6]
        self._session().fact(f"{PREFIX}{digest}", value, why=why)
        return next(preference for preference in self._kept() if preference.id == digest)

    def _kept(self, *, gone: bool = False) -> list[Preference]:
        """Reads the preferences, oldest first; with `gone`, also those whose source is erased."""
        if not self._store.is_open(SESSION):
            return []
        log = Log(self._store.engine, self._store.find(SESSION), clock=self._store.clock)
        out = []
        for key, fact in sorted((log.part("facts") or {}).items(), key=lambda item: item[1]["seq"]):
            value = fact.get("value")
            if not key.startswith(PREFIX) or type(value) is not dict or "project" not in value:
                continue
            text = value.get("text") or self._quoted(value)
            if text or gone:
                out.append(
                    Preference(
                        id=key.removeprefix(PREFIX),
                        text=text,
                        project=value["project"],
                        person=value.get("person", ""),
                        known="stated" if "text" in value else "accepted",
                        source=value.get("source") or f"{log.id}@{fact['seq']}",
                        at=log.entry(fact["seq"]).header.at,
                    )
                )
        return out

    def _quoted(self, value: dict[str, Any]) -> str:
        """Reads the words of an accepted preference; empty if they are erased."""
        session, _, seq = str(value.get("source", "")).rpartition("@")
        try:
            log = Log(self._store.engine, SessionId(session))
            entry = log.entry(int(seq))
            text = _user_text(log, entry) if entry.is_intact else ""
        except (WakelogError, ValueError):
            return ""
        return " ".join(text[value["start"] : value["start"] + value["length"]].split())


def _derived(session: Session[Any], where: str) -> Iterator[InsightItem]:
    try:
        items = session.insight(where).of("preference", "correction", "redirect")
    except WakelogError:
        return  # skip a damaged session
    seen: set[str] = set()
    for item in items:
        if item.id not in seen:
            seen.add(item.id)
            yield item


def _user_text(log: Log, entry: Entry) -> str:
    """Returns what a user said in an event, as one text."""
    stored: Value = entry.body.get("content" if entry.kind == "message.added" else "input")
    value = log.value(entry, stored) if type(stored) is dict and "$payload" in stored else stored
    return value if isinstance(value, str) else content_text(value)
