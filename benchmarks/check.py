"""That what was timed also works: the log verifies, the state is right, and nothing of a turn is missing."""

from __future__ import annotations

from typing import Any

import msgspec

from benchmarks.contenders import Contender, Wakelog, as_summary
from benchmarks.results import Checked
from benchmarks.workload import Summary, Turn, fold, seq_after
from wakelog.log import Log
from wakelog.log.reading import Entry
from wakelog.log.verify import verify

_SAMPLES = 3


class WrongResult(Exception):
    """A contender's answer is not the reference's; its times mean nothing."""


def check_state(contender: Contender, turns: list[Turn], place: int | None = None) -> Checked:
    """Compares the state now or at a place with the reference fold of `turns`."""
    _compare(type(contender).__name__, as_summary(contender.load(place)), fold(turns))
    return Checked(states=1)


def check_fork(child: Contender, turns: list[Turn]) -> Checked:
    """The same for a fork. In ours, calls that were pending at the fork point are the parent's to finish."""
    expected = fold(turns)
    if isinstance(child, Wakelog):
        expected = msgspec.structs.replace(expected, pending=[])
    _compare(f"{type(child).__name__} fork", as_summary(child.load()), expected)
    return Checked(states=1)


def check_log(log: Log, turns: list[Turn], *, one_commit_each: bool = True) -> Checked:
    """Verifies a log from end to end, and reads some of its turns back to hold them against the workload."""
    report = verify(log)
    if not report.ok:
        raise WrongResult(f"the log does not verify: {report.integrity + report.completeness}")
    if one_commit_each:
        for index in sorted({round(i * (len(turns) - 1) / (_SAMPLES - 1)) for i in range(_SAMPLES)}):
            before = seq_after(turns[:index])
            entries = list(log.entries(after=before, upto=before + seq_after(turns[index : index + 1]) - 1))
            if read_turn(log, turns[index]["n"], entries) != turns[index]:
                raise WrongResult(f"turn {index + 1} does not come back as it was appended")
    return Checked(logs=1, events=report.events)


def read_turn(log: Log, n: int, entries: list[Entry]) -> Turn:
    """A turn of the workload put together again from the events of its commit."""
    turn: Turn = {"n": n, "tools": [], "decision": None, "pop": None}
    for entry in entries:
        body: dict[str, Any] = {key: log.value(entry, value) for key, value in entry.body.items()}
        match entry.kind:
            case "message.added":
                turn["message"] = {"role": body["role"], "text": body["content"]}
            case "action.recorded":
                call = {"id": "action", "name": "tool", "input": "input", "output": "output"}
                turn["tools"].append({k: body[v] for k, v in call.items()} | {"summary": body["output_summary"]})
            case "file.changed":
                turn["file"] = body["path"]
            case "decision.made":
                turn["decision"] = {"what": body["choice"], "why": body["because"]}
            case "action.requested":
                turn["push"] = {"id": body["action"], "what": body["input"]}
            case "action.succeeded":
                turn["pop"] = body["action"]
    return turn


def _compare(who: str, found: Summary, expected: Summary) -> None:
    for field in expected.__struct_fields__:
        if getattr(found, field) != getattr(expected, field):
            raise WrongResult(f"{who}: {field} differs from the reference fold of {expected.turn} turns")
