"""What an agent can record about itself: a closed list of entries, each becoming one event.

An agent's own words are claims: nobody has checked them. They are stamped as such (trust `unverified`, source
`mcp:<client>`), and what the agent itself read elsewhere can name that source and is then `untrusted`. No tool argument
can make an entry more trusted.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from wakelog.codec.canonical import hash_value
from wakelog.model import events as ev
from wakelog.model.records import Draft
from wakelog.runtime.values import plain, summarise

Name = Annotated[str, Field(min_length=1)]


class Entry(BaseModel):
    # What the two fields mean is said once, by the tool: each entry's schema repeats them.
    model_config = ConfigDict(extra="forbid")
    why: str = ""
    source: str = ""


class MessageEntry(Entry):
    kind: Literal["message"]
    role: Literal["user", "assistant", "tool", "system"] = "assistant"
    text: str

    def event(self, action: str) -> ev.Event:
        return ev.MessageAdded(role=self.role, content=self.text, why=self.why)


class ToolCallEntry(Entry):
    kind: Literal["tool_call"]
    tool: Name
    input: dict[str, Any] = Field(default_factory=dict)
    output: Any = None
    error: str = Field("", description="If the call failed.")
    effect: Literal["pure", "read", "write", "external"] = "external"

    def event(self, action: str) -> ev.Event:
        given, output = plain(self.input), plain(self.output)
        return ev.ActionRecorded(
            action=action,
            tool=self.tool,
            effect=self.effect,
            outcome="failed" if self.error else "succeeded",
            input=given,
            input_hash=hash_value(given),
            output=output,
            output_summary=summarise(output),
            error=ev.Failure("error", self.error) if self.error else None,
            why=self.why,
        )


class DecisionEntry(Entry):
    kind: Literal["decision"]
    choice: Name
    because: str = ""
    alternatives: list[str] = Field(default_factory=list)
    evidence: list[int] = Field(default_factory=list, description="Events it rests on, by number.")

    def event(self, action: str) -> ev.Event:
        return ev.DecisionMade(
            choice=self.choice,
            because=self.because or self.why,
            alternatives=tuple(self.alternatives),
            evidence=tuple(self.evidence),
        )


class FactEntry(Entry):
    kind: Literal["fact"]
    key: str = Field(description="A later fact under the same key replaces this one.", min_length=1)
    value: Any

    def event(self, action: str) -> ev.Event:
        return ev.FactRecorded(key=self.key, value=plain(self.value), why=self.why)


class DeadEndEntry(Entry):
    kind: Literal["dead_end"]
    tried: Name
    learned: str = ""

    def event(self, action: str) -> ev.Event:
        return ev.DeadEndNoted(tried=self.tried, learned=self.learned, why=self.why)


class FileEntry(Entry):
    kind: Literal["file"]
    path: Name
    change: Literal["created", "modified", "deleted"] = "modified"
    added: int = Field(0, description="Lines added.", ge=0)
    removed: int = Field(0, description="Lines removed.", ge=0)

    def event(self, action: str) -> ev.Event:
        return ev.FileChanged(path=self.path, change=self.change, added=self.added, removed=self.removed, why=self.why)


class ArtefactEntry(Entry):
    kind: Literal["artefact"]
    name: Name
    uri: str = ""
    media: str = ""

    def event(self, action: str) -> ev.Event:
        return ev.ArtefactRecorded(name=self.name, uri=self.uri, media=self.media, why=self.why)


class GoalEntry(Entry):
    kind: Literal["goal"]
    goal: str

    def event(self, action: str) -> ev.Event:
        return ev.GoalSet(goal=self.goal, why=self.why)


AnyEntry = Annotated[
    MessageEntry | ToolCallEntry | DecisionEntry | FactEntry | DeadEndEntry | FileEntry | ArtefactEntry | GoalEntry,
    Field(discriminator="kind"),
]


def draft(entry: Entry, action: str, client: str) -> Draft:
    """An entry as an event, stamped with where it came from."""
    made = entry.event(action)  # type: ignore[attr-defined]
    actor = "user" if isinstance(entry, MessageEntry) and entry.role == "user" else "agent"
    ranges = tuple((n, n) for n in entry.evidence) if isinstance(entry, DecisionEntry) else ()
    return Draft(
        made,
        actor=actor,
        derived_from=ranges,
        source=entry.source or f"mcp:{client}",
        trust="untrusted" if entry.source else "unverified",
    )
