"""What is recorded of a turn that has an id of its caller's: whether it is completed, what it gave, and its calls.

The commit that first starts such a turn has an id made from it, so the turn is found without a search, and of two
processes that start it at once one comes second. A turn that somebody rewound is out of view: its id is free again,
and the next turn of that id is another *generation*.

Calls of such a turn are named after the turn's id, not its number. So the same script run again finds them, whether it
continues the turn, begins it again after others, or is only answered because it is completed.
"""

from __future__ import annotations

import msgspec

from wakelog.errors import InvalidInputError, NotAllowedError
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.values import Value
from wakelog.runtime.call_history import Past, follow, known_at
from wakelog.timeline.points import commit_at

ID_MAX = 200


class TurnRecord(msgspec.Struct):
    """A turn by its id, as far as the log knows it."""

    id: str
    generation: int = 1
    retries: int = 0
    """How often it was begun anew on purpose: what it had called before is called again."""
    turn: int = 0
    """The newest turn of that id; 0 when there is none in view."""
    attempt: int = 0
    started: Seq = 0
    ended: Seq = 0
    outcome: str = ""
    output: Value = None
    calls: dict[str, Past] = {}

    @property
    def name(self) -> str:
        """What the ids of its calls are made from."""
        return f"id {self.generation}.{self.retries} {self.id}"

    @property
    def commit_id(self) -> str:
        return f"turn:{self.generation}:{self.id}"

    @property
    def is_done(self) -> bool:
        return self.outcome == "completed"


def check_turn_id(id: object) -> None:
    if not isinstance(id, str) or not 0 < len(id) <= ID_MAX:
        raise InvalidInputError(
            f"a turn's id is a text of 1 to {ID_MAX} characters, not {id!r}"[:300], kind="bad-turn-id"
        )


def find_turn(log: Log, id: str) -> TurnRecord:
    """The newest generation of a turn; a fresh one when there is none yet, or it was rewound."""
    generation = 1
    while True:
        record = TurnRecord(id, generation)
        at = known_at(log, record.commit_id)
        if at is None:
            return record
        _read(log, record, commit_at(log, at).first)
        if _is_in_view(log, record.started):
            return record
        generation += 1


def _read(log: Log, record: TurnRecord, first: Seq) -> None:
    """Reads on from where it was first started. Outcomes of calls may come after it was cut."""
    for entry in log.entries(after=first - 1):
        if entry.kind == "turn.started" and entry.body.get("id") == record.id:
            _start(record, entry)
        elif entry.kind == "turn.ended" and (entry.header.turn, entry.header.attempt) == (record.turn, record.attempt):
            record.ended, record.outcome = entry.seq, str(entry.body.get("outcome", "completed"))
            if record.is_done and _is_in_view(log, entry.seq):
                record.output = log.value(entry, entry.body.get("output"))
                return
        elif entry.kind.startswith("action.") or entry.kind == "file.changed":
            action = entry.body.get("action")
            if isinstance(action, str) and (past := follow(record.calls.get(action), entry)) is not None:
                record.calls[action] = past


def _start(record: TurnRecord, entry: Entry) -> None:
    if record.turn and entry.body.get("retry") and not entry.body.get("resumes"):
        record.retries, record.calls = record.retries + 1, {}
    record.turn, record.attempt, record.started = entry.header.turn, entry.header.attempt, entry.seq
    record.ended, record.outcome = 0, "open"


def _is_in_view(log: Log, seq: Seq) -> bool:
    return any(low <= seq <= high for low, high in log.view())


def done_error(id: str, tool: str) -> NotAllowedError:
    return NotAllowedError(
        f"turn {id!r} is completed, and this call of {tool} is not in its record: nothing was run",
        kind="turn-done",
        hint="leave the turn when `turn.is_done`, use session.run_turn(…), or give the new work a new id",
    )
