"""`store.preferences`: what people want, for one project or all, for one person or everybody.

A preference is stated by a person, or accepted from what the rules derive from the user's words in a session ("always
run the linter", "no, use pnpm instead"). A stated one is kept as words. Of an accepted one only the place is kept, and
the words are read from there: erase the source, and the preference is gone. Both are facts in a session of the store,
`wakelog.preferences`; removing one retracts it. Every brief of a session shows those that hold for it, with the source.
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
"""The label that says whose session it is."""
SESSIONS_READ = 40
"""The words of so many sessions, the newest of a project, are read for what could be a preference."""
LASTING = re.compile(
    r"\b(?:always|never|from now on|in (?:the )?future|going forward|every time|whenever|by default|as a rule)\b", re.I
)
"""Words that say it is meant beyond the task at hand. Without them it must have been said in two sessions."""
WORDS_MAX = 300
_KINDS = ("preference", "correction", "redirect")


class Preference(msgspec.Struct, frozen=True):
    """What somebody wants."""

    id: str
    text: str
    project: str
    """The main work tree of a repository; empty: everywhere."""
    person: str
    """Whose it is; empty: everybody's."""
    known: Literal["stated", "accepted"]
    source: str
    """Where it was said, as `session@seq`."""
    at: int


class PossiblePreference(msgspec.Struct, frozen=True):
    """The user's words in a session that may hold beyond it. Derived by rules: nobody has accepted it."""

    session: SessionId
    name: str
    item: str
    """How to accept it: `e17`."""
    kind: str
    text: str
    turn: int
    seq: Seq
    roots: int
    """In how many independent sessions the same was said."""


class StorePreferences:
    """Keeps preferences, and finds what could be one."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, text: str, *, project: str = "", person: str = "", why: str = "") -> Preference:
        """Keeps a preference in the words given."""
        words = " ".join(check_text(text, "a preference").split())
        if not words or len(words) > WORDS_MAX:
            raise InvalidInputError(
                f"a preference is one sentence of at most {WORDS_MAX} characters", kind="bad-preference"
            )
        return self._keep({"text": words, "project": project, "person": person}, why)

    def accept(
        self, session: Session[Any], item: str, *, project: str | None = None, person: str = "", why: str = ""
    ) -> Preference:
        """Keeps what was derived in a session (`derived` lists it) as a preference, by its place. Without a project it
        holds in the session's; an empty one means everywhere. Untrusted words are refused."""
        seq = int(item.removeprefix("e").partition(".")[0]) if re.fullmatch(r"e\d+(\.\d+)?", item) else 0
        if not 0 < seq <= session.head.seq:
            raise NotFoundError(f"{item!r} is no item of {session.name or session.id}", kind="item-not-found")
        entry = session.log.entry(seq)
        found = next((i for i in _derived(session, f"@{entry.header.turn}") if i.id == item), None)
        said = _said(session.log, entry)
        if found is None or found.quote not in said:
            raise NotFoundError(
                f"nothing at {item} in {session.name or session.id} could be a preference",
                kind="item-not-found",
                hint="wakelog preferences derived lists what could",
            )
        if entry.header.trust == "untrusted":
            raise NotAllowedError("untrusted words cannot become a preference", kind="untrusted-preference")
        start = said.index(found.quote)
        place = {"source": f"{session.id}@{seq}", "start": start, "length": len(found.quote)}
        scope = project_of(session.log.part("labels") or {}) if project is None else project
        return self._keep({**place, "project": scope, "person": person}, why)

    def all(self, *, project: str | None = None, person: str | None = None) -> tuple[Preference, ...]:
        """Lists what is kept, the oldest first: with a project those that hold there, with a person theirs too."""
        found = [p for p in self._kept() if project is None or p.project in ("", project)]
        return tuple(p for p in found if person is None or p.person in ("", person))

    def of(self, session: Session[Any]) -> tuple[Preference, ...]:
        """Returns those that hold for a session: by its project, and by its label `person`."""
        if not self._store.is_open(SESSION) or session.name == SESSION:
            return ()
        labels = session.log.part("labels") or {}
        return self.all(project=project_of(labels), person=str(labels.get(PERSON, "")))

    def remove(self, id: str, *, why: str = "") -> None:
        """Removes one for good; NotFoundError when there is none of that id."""
        if not any(each.id == id for each in self._kept(gone=True)):
            there = ", ".join(each.id for each in self._kept()) or "none"
            raise NotFoundError(f"there is no preference {id!r} (there is: {there})", kind="preference-not-found")
        self._session().retract(PREFIX + id, why=why)

    def derived(self, *, project: str | None = None, limit: int = 20) -> tuple[PossiblePreference, ...]:
        """Lists what users said in the newest sessions that may hold beyond them: it was said in several sessions,
        which come first, or says so itself (always, never). Nothing of it is kept unless it is accepted."""
        kept = {each.source for each in self._kept()}
        found: dict[str, list[PossiblePreference]] = {}
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
                found.setdefault(words, []).append(possible)
        told = [
            msgspec.structs.replace(group[0], roots=len(roots[words]))
            for words, group in found.items()
            if len(roots[words]) > 1 or LASTING.search(group[0].text)
        ]
        told.sort(key=lambda each: (-each.roots, _KINDS.index(each.kind)))
        return tuple(told[:limit])

    # Where they are kept

    def _session(self) -> Session[Any]:
        return self._store.session(SESSION, goal="What people want, for all sessions", folder="")

    def _keep(self, value: dict[str, Any], why: str) -> Preference:
        digest = hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:6]
        self._session().fact(f"{PREFIX}{digest}", value, why=why)
        return next(each for each in self._kept() if each.id == digest)

    def _kept(self, *, gone: bool = False) -> list[Preference]:
        """What is kept, oldest first; with `gone`, also what has lost its source."""
        if not self._store.is_open(SESSION):
            return []
        log = Log(self._store.engine, self._store.find(SESSION), clock=self._store.clock)
        out = []
        for key, fact in sorted((log.part("facts") or {}).items(), key=lambda each: each[1]["seq"]):
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
        """The words at a place; empty when they are gone."""
        session, _, seq = str(value.get("source", "")).rpartition("@")
        try:
            log = Log(self._store.engine, SessionId(session))
            entry = log.entry(int(seq))
            said = _said(log, entry) if entry.is_intact else ""
        except (WakelogError, ValueError):
            return ""
        return " ".join(said[value["start"] : value["start"] + value["length"]].split())


def _derived(session: Session[Any], where: str) -> Iterator[InsightItem]:
    try:
        items = session.insight(where).of("preference", "correction", "redirect")
    except WakelogError:
        return  # a damaged session tells nothing here
    seen: set[str] = set()
    for item in items:
        if item.id not in seen:
            seen.add(item.id)
            yield item


def _said(log: Log, entry: Entry) -> str:
    """What a user said in an event, as one text."""
    given: Value = entry.body.get("content" if entry.kind == "message.added" else "input")
    value = log.value(entry, given) if type(given) is dict and "$payload" in given else given
    return value if isinstance(value, str) else content_text(value)
