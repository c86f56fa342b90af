"""That what was timed also works: states are the reference's, our logs verify, and nothing of a turn is missing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from benchmarks.protocol import Contender
from benchmarks.turns import Turn, fold

if TYPE_CHECKING:
    from wakelog.log import Log
    from wakelog.log.reader import Entry

_SAMPLES = 3


class WrongResult(Exception):
    """A contender's answer is not the reference's; its times mean nothing."""


def check_state(contender: Contender, found: Any, turns: list[Turn], *, is_fork: bool = False) -> None:
    """Compares what was loaded with the reference fold of `turns`."""
    expected: Any = fold(turns)
    if is_fork and contender.abandons:
        expected["pending_actions"] = []
    if contender.is_bounded:
        from benchmarks.workload import summarise, summary_of

        _check_messages(found, expected)
        found, expected = _fields(summary_of(found)), _fields(summarise(expected))
    for part, value in expected.items():
        if found.get(part) != value:
            raise WrongResult(f"{part} differs from the reference fold of {len(turns)} turns")


def _fields(struct: Any) -> dict[str, Any]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}


def _check_messages(found: Any, expected: Any) -> None:
    if "messages" in found:
        said = [{"role": message.role, "text": message.content} for message in found["messages"]]
        if said != expected["messages"]:
            raise WrongResult("messages differ from the reference")


def check_diff(contender: Contender, found: Any, turn: Turn) -> None:
    """The change that a turn makes must be in the diff: its file, its decision, its pending action."""
    if contender.is_bounded:
        pointers = {change.pointer for change in found.changes}
        path = turn["file"].replace("/", "~1")
        wanted = {f"/files_modified/{path}", f"/pending_actions/{turn['push']['id']}"}
        is_right = wanted <= pointers and len(found.of("decisions")) == bool(turn["decision"])
    else:
        is_right = (
            found["files_modified"] == {"added": [turn["file"]]} and turn["push"] in (found["pending_actions"]["added"])
        )
    if not is_right:
        raise WrongResult(f"the diff does not tell what turn {turn['n']} changed")


def check_files(found: list[str], turns: list[Turn]) -> None:
    """Each once, as some answer so; the newest change decides the order."""
    wanted = list(dict.fromkeys(turn["file"] for turn in reversed(turns)))
    if list(dict.fromkeys(reversed(found))) != wanted:
        raise WrongResult(f"the files of the last {len(turns)} turns are others")


def count_lost(contender: Contender, acknowledged: list[Turn]) -> int:
    """How many acknowledged turns the state does not show, in whichever part shows fewest."""
    state = contender.load()
    if contender.is_bounded:
        from benchmarks.workload import summary_of

        summary = summary_of(state)
        have = [Counter(summary.files), Counter(dict.fromkeys(summary.pending, 1))]
    else:
        have = [Counter(state["files_modified"]), Counter(action["id"] for action in state["pending_actions"])]
    want = [Counter(turn["file"] for turn in acknowledged), Counter(turn["push"]["id"] for turn in acknowledged)]
    return max((wanted - found).total() for wanted, found in zip(want, have, strict=True))


# Ours


def check_log(log: Log, turns: list[Turn], *, one_commit_each: bool = True) -> int:
    """Verifies a log from end to end, and reads some of its turns back to hold them against the workload. Gives the
    number of events."""
    from benchmarks.workload import seq_after
    from wakelog.log.verify import verify

    report = verify(log)
    if not report.ok:
        raise WrongResult(f"the log does not verify: {report.integrity + report.completeness}")
    if one_commit_each:
        for index in sorted({round(i * (len(turns) - 1) / (_SAMPLES - 1)) for i in range(_SAMPLES)}):
            before = seq_after(turns[:index])
            entries = list(log.entries(after=before, upto=before + seq_after(turns[index : index + 1]) - 1))
            if read_turn(log, turns[index]["n"], entries) != turns[index]:
                raise WrongResult(f"turn {index + 1} does not come back as it was appended")
    return report.events


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
