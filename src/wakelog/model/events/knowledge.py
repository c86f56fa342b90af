"""Events of what the agent knows and did (the durable tier), and of money, trust and flags."""

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


@core("artefact.recorded", payloads=("content",))
class ArtefactRecorded(Event, frozen=True, gc=False):
    name: str
    uri: str = ""
    media: str = ""
    content: Value = None


@core("file.changed", payloads=("before", "after"))
class FileChanged(Event, frozen=True, gc=False):
    """A file was created, modified or deleted. `before` and `after` are its contents, text as text and anything else as
    bytes; of a symbolic link, where it points to. The hashes are SHA-256 of the bytes that were on disk; the modes are
    type and permissions as in `st_mode`, in octal: `100644` is a file, `120000` a link. Empty where there was no file,
    or where it is not known. `missing` says why a side's content is not, or not wholly, here: `{"after": "too large"}`.
    A content that was redacted is `redacted` there, and has no hash. `folder` is where a path that is not whole begins,
    on the machine that captured it."""

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
    """Something left the model's window. `handle` (a seq) brings it back."""

    key: str
    handle: int
    tokens: int = 0


@core("context.restored")
class ContextRestored(Event, frozen=True, gc=False):
    key: str


@core("state.patched")
class StatePatched(Event, frozen=True, gc=False):
    """A change to the user's own part. The patch, with paths below /data, is the delta and is stored as such."""

    patch: list[dict[str, Value]] = msgspec.field(name="delta")


# Money, trust, flags


@core("budget.set")
class BudgetSet(Event, frozen=True, gc=False):
    """Limits to write (`tokens`, `usd_micros`, `duration_us`); None lifts one."""

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
