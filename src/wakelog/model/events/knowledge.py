"""Events about what the agent knows and did (the durable tier), and about money, trust and flags."""

from __future__ import annotations

from typing import Literal

import msgspec

from wakelog.model.events.base import Cost, Event, Severity, core
from wakelog.model.values import Value


@core("decision.made")
class DecisionMade(Event, frozen=True, gc=False):
    choice: str
    because: str = ""
    alternatives: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    evidence: tuple[int | str, ...] = ()


@core("fact.recorded")
class FactRecorded(Event, frozen=True, gc=False):
    key: str
    value: Value


@core("fact.retracted")
class FactRetracted(Event, frozen=True, gc=False):
    key: str


@core("dead_end.noted")
class DeadEndNoted(Event, frozen=True, gc=False):
    tried: str
    learned: str = ""


@core("knowledge.recalled")
class KnowledgeRecalled(Event, frozen=True, gc=False):
    """Lines of earlier sessions were shown to this one. `sources` are their events, each as `session@seq`, and `lines`
    their kinds (`recipe`, `fact` …). Their text is not repeated here, so that it can be erased at its source."""

    sources: tuple[str, ...]
    lines: tuple[str, ...] = ()
    occasion: Literal["start", "error", "asked"] = "asked"


@core("artefact.recorded", payloads=("content",))
class ArtefactRecorded(Event, frozen=True, gc=False):
    name: str
    uri: str = ""
    media: str = ""
    content: Value = None


@core("file.changed", payloads=("before", "after"))
class FileChanged(Event, frozen=True, gc=False):
    """A file was created, modified or deleted. `before` and `after` are its contents: text as text, anything else as
    bytes; for a symbolic link, its target. The hashes are SHA-256 of the bytes on disk. The modes are type and
    permissions as in `st_mode`, in octal: `100644` is a file, `120000` a link. They are empty when there was no file,
    or when they are not known. `missing` says why the content of a side is not here, or not completely: `{"after": "too
    large"}`. Redacted content is `redacted` there, and has no hash. `folder` is the folder that a relative path starts
    from, on the machine that captured it."""

    path: str
    change: Literal["created", "modified", "deleted"] = "modified"
    added: int = 0
    removed: int = 0
    before: Value = None
    after: Value = None
    action: str = ""
    before_hash: str = ""
    after_hash: str = ""
    before_mode: str = ""
    after_mode: str = ""
    missing: dict[str, str] = {}
    folder: str = ""


@core("resource.touched")
class ResourceTouched(Event, frozen=True, gc=False):
    """An app, data source or URL the agent used."""

    resource: str
    category: Literal["file", "app", "data_source"] = "data_source"
    mode: Literal["read", "write"] = "read"


@core("subagent.spawned")
class SubagentSpawned(Event, frozen=True, gc=False):
    session: str
    task: str = ""


@core("subagent.returned", payloads=("output",))
class SubagentReturned(Event, frozen=True, gc=False):
    session: str
    outcome: str = "completed"
    output: Value = None
    cost: Cost = Cost()


@core("context.evicted")
class ContextEvicted(Event, frozen=True, gc=False):
    """Something was evicted from the model's window. `handle` (a seq) restores it."""

    key: str
    handle: int
    tokens: int = 0


@core("context.restored")
class ContextRestored(Event, frozen=True, gc=False):
    key: str


@core("state.patched")
class StatePatched(Event, frozen=True, gc=False):
    """The session's own data changed. The patch, with paths below /data, is stored as the delta."""

    patch: list[dict[str, Value]] = msgspec.field(name="delta")


# Money, trust, flags


@core("budget.set")
class BudgetSet(Event, frozen=True, gc=False):
    """Limits to set (`tokens`, `usd_micros`, `duration_us`); None removes one."""

    limits: dict[str, int | None]


@core("budget.spent")
class BudgetSpent(Event, frozen=True, gc=False):
    cost: Cost


@core("budget.reached")
class BudgetReached(Event, frozen=True, gc=False):
    limit: str


@core("trust.endorsed")
class TrustEndorsed(Event, frozen=True, gc=False):
    targets: tuple[int, ...]
    by: str = ""


@core("step.invalidated")
class StepInvalidated(Event, frozen=True, gc=False):
    targets: tuple[int, ...]
    by: str = ""


@core("flag.raised")
class FlagRaised(Event, frozen=True, gc=False):
    flag: str
    rule: str = ""
    message: str = ""
    severity: Severity = "warning"
    targets: tuple[int, ...] = ()
    count: int = 1


@core("flag.cleared")
class FlagCleared(Event, frozen=True, gc=False):
    flag: str
