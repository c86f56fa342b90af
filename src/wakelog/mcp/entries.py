"""What an agent can record about itself: a fixed list of kinds; each entry becomes one event.

The schema is one flat object. With a union, clients that check arguments themselves would report an error for every
alternative, and the model would never see our message. Which fields a kind needs and accepts is checked here, and the
error is one sentence.

An agent's own words are unchecked claims. They are stored with trust `unverified` and the source `mcp:<client>`. For
something it read elsewhere, the agent can name that source, and the entry is `untrusted`. No argument can make an entry
more trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from wakelog.codec.canonical import hash_value
from wakelog.errors import InvalidInputError
from wakelog.model import events as ev
from wakelog.model.events import Trust
from wakelog.model.records import EventDraft
from wakelog.runtime.values import plain, summarise

Kind = Literal["message", "tool_call", "decision", "fact", "dead_end", "file", "artefact", "goal"]


class AgentEntry(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Kind
    why: str = Field("", description="The reason, in a few words.")
    source: str = Field("", description='Where you read it, e.g. "web:example.com".')
    text: str = Field("", description="message: what was said.")
    role: Literal["user", "assistant", "tool", "system"] = Field("assistant", description="message.")
    tool: str = Field("", description="tool_call: its name.")
    input: dict[str, Any] = Field(default_factory=dict, description="tool_call: arguments.")
    output: Any = Field(None, description="tool_call: result.")
    error: str = Field("", description="tool_call: if it failed.")
    effect: Literal["pure", "read", "write", "external"] = Field("external", description="tool_call.")
    choice: str = Field("", description="decision.")
    because: str = Field("", description="decision.")
    alternatives: list[str] = Field(default_factory=list, description="decision: not chosen.")
    evidence: list[int] = Field(default_factory=list, description="decision: numbers of events behind it.")
    key: str = Field("", description="fact: a new value of the same key replaces it.")
    value: Any = Field(None, description="fact.")
    tried: str = Field("", description="dead_end.")
    learned: str = Field("", description="dead_end.")
    path: str = Field("", description="file.")
    change: Literal["created", "modified", "deleted"] = Field("modified", description="file.")
    added: int = Field(0, description="file: lines added.", ge=0)
    removed: int = Field(0, description="file: lines removed.", ge=0)
    name: str = Field("", description="artefact.")
    uri: str = Field("", description="artefact.")
    media: str = Field("", description="artefact: its media type.")
    goal: str = Field("", description="goal.")


def _tool_call(e: AgentEntry, action: str) -> ev.Event:
    input, output = plain(e.input), plain(e.output)
    return ev.ActionRecorded(
        action=action,
        tool=e.tool,
        effect=e.effect,
        outcome="failed" if e.error else "succeeded",
        input=input,
        input_hash=hash_value(input),
        output=output,
        output_summary=summarise(output),
        error=ev.Failure("error", e.error) if e.error else None,
        why=e.why,
    )


def _decision(e: AgentEntry, action: str) -> ev.Event:
    return ev.DecisionMade(
        choice=e.choice,
        because=e.because or e.why,
        alternatives=tuple(e.alternatives),
        evidence=tuple(e.evidence),
    )


def _file(e: AgentEntry, action: str) -> ev.Event:
    return ev.FileChanged(path=e.path, change=e.change, added=e.added, removed=e.removed, why=e.why)


# kind → required fields, optional fields, and the event it becomes
_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[AgentEntry, str], ev.Event]]] = {
    "message": (("text",), ("role",), lambda e, _: ev.MessageAdded(role=e.role, content=e.text, why=e.why)),
    "tool_call": (("tool",), ("input", "output", "error", "effect"), _tool_call),
    "decision": (("choice",), ("because", "alternatives", "evidence"), _decision),
    "fact": (("key", "value"), (), lambda e, _: ev.FactRecorded(key=e.key, value=plain(e.value), why=e.why)),
    "dead_end": (("tried",), ("learned",), lambda e, _: ev.DeadEndNoted(tried=e.tried, learned=e.learned, why=e.why)),
    "file": (("path",), ("change", "added", "removed"), _file),
    "artefact": (
        ("name",),
        ("uri", "media"),
        lambda e, _: ev.ArtefactRecorded(name=e.name, uri=e.uri, media=e.media, why=e.why),
    ),
    "goal": (("goal",), (), lambda e, _: ev.GoalSet(goal=e.goal, why=e.why)),
}
_ALWAYS = ("kind", "why", "source")
_MAY_BE_EMPTY = frozenset({"value", "goal", "text"})


def check(entry: AgentEntry, place: int) -> None:
    """Refuses an entry with missing fields or fields of another kind. Empty fields of other kinds are ignored: some
    models fill in every field of a schema."""
    required, optional, _ = _KINDS[entry.kind]
    given = {name for name in entry.model_fields_set if not _is_empty(entry, name)}
    missing = [n for n in required if n not in given and not (n in _MAY_BE_EMPTY and n in entry.model_fields_set)]
    foreign = sorted(given - {*_ALWAYS, *required, *optional})
    wrong = [f"needs {' and '.join(missing)}"] if missing else []
    wrong += [f"takes no {' and '.join(foreign)}"] if foreign else []
    if wrong:
        fields = ", ".join((*required, *optional, "why", "source"))
        raise InvalidInputError(
            f"entries.{place}: a {entry.kind} {' and '.join(wrong)}; its fields are {fields}", kind="bad-arguments"
        )


def _is_empty(entry: AgentEntry, name: str) -> bool:
    value = getattr(entry, name)
    return value in (None, "", [], {}) or (name != "value" and value == type(entry).model_fields[name].default)


def draft(entry: AgentEntry, action: str, client: str) -> EventDraft:
    """An entry as an event, with its source."""
    ranges = tuple((n, n) for n in entry.evidence) if entry.kind == "decision" else ()
    event = _KINDS[entry.kind][2](entry, action)
    return claim(event, client, source=entry.source, derived_from=ranges)


def claim(
    event: ev.Event, client: str, *, source: str = "", derived_from: tuple[tuple[int, int], ...] = ()
) -> EventDraft:
    """An event that an agent reports. A user's words that it reports are also the agent's claim."""
    trust: Trust = "untrusted" if source else "unverified"
    return EventDraft(event, actor="agent", derived_from=derived_from, source=source or f"mcp:{client}", trust=trust)
