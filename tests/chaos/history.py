"""A small checker of histories: what clients saw of sessions' heads, and whether one order explains it.

A history is a list of operations with the times at which they began and ended. An append goes from one event to the
next, so in a session the order of appends is given by their seqs, and a head is a number that only grows. What must
hold:

- every acknowledged append is in the log, once, at the seq that was answered; none has the seq of another;
- one that was refused is not in the log;
- an append that began after another one had ended has a greater seq;
- a head is at least as new as every append and every head that had ended before it was asked for;
- a head is not newer than what had been begun by the time it was told.

What has no answer may have happened or not; it counts only if the log has it. A head that is older than something that
had ended before is a *stale* read: JetStream's leaders do not ask their followers before they answer a read, so one
that was replaced may tell it until it notices. They are counted apart, for the clients that had not seen the newer one
themselves; for those that had, it is an error."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec


class Operation(msgspec.Struct, frozen=True):
    """What one client did to one session."""

    client: str
    session: str
    verb: str
    """append, head, or refused: an append that was told not to be stored."""
    began: float
    ended: float
    seq: int
    """The seq that was answered; 0 for an append without an answer."""
    key: str = ""
    """Which append it is."""


class Verdict(msgspec.Struct):
    """What is wrong with a history, and how much it holds."""

    appends: int = 0
    unknown: int = 0
    heads: int = 0
    stale: int = 0
    effects: int = 0
    refused: int = 0
    faults: list[str] = []


def check(history: Sequence[Operation], logs: dict[str, list[tuple[int, str]]]) -> Verdict:
    """Holds a history against what the logs have in the end: seq and key of each append, by session."""
    verdict = Verdict()
    sessions: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        sessions[operation.session].append(operation)
    for session, operations in sessions.items():
        _check_session(session, operations, logs.get(session, []), verdict)
    return verdict


def _check_session(session: str, operations: list[Operation], log: list[tuple[int, str]], verdict: Verdict) -> None:
    seqs = [seq for seq, _ in log]
    if seqs != sorted(set(seqs)):
        verdict.faults.append(f"{session}: the log is out of order")
    where: dict[str, list[int]] = defaultdict(list)
    for seq, key in log:
        where[key].append(seq)
    verdict.faults += [f"{session}: {key} is stored {len(at)} times" for key, at in where.items() if len(at) > 1]
    appends = [o for o in operations if o.verb == "append"]
    for append in appends:
        verdict.appends += append.seq > 0
        verdict.unknown += append.seq == 0
        if append.seq and where.get(append.key) != [append.seq]:
            found = where.get(append.key)
            verdict.faults.append(f"{session}: {append.key} was acknowledged at {append.seq}, and is at {found}")
    refused = [o for o in operations if o.verb == "refused"]
    verdict.refused += len(refused)
    verdict.faults += [
        f"{session}: {each.key} was told as refused, and is at {where[each.key]}"
        for each in refused
        if each.key in where
    ]
    known = {a.key for a in (*appends, *refused)}
    verdict.faults += [f"{session}: nobody appended {key}" for key in where if key not in known]
    done = [msgspec.structs.replace(a, seq=a.seq or where[a.key][0]) for a in appends if a.seq or where.get(a.key)]
    _check_order(session, done, [o for o in operations if o.verb == "head"], verdict)


def _check_order(session: str, appends: list[Operation], heads: list[Operation], verdict: Verdict) -> None:
    newest, own = 0, dict[str, int]()
    begun = sorted((a.began, a.seq) for a in appends)
    # Everything by the time at which it ended, and each looked at when it began.
    ended = sorted((o.ended, o.seq, o.client) for o in (*appends, *heads) if o.ended)
    at = 0
    for each in sorted((*appends, *heads), key=lambda o: o.began):
        while at < len(ended) and ended[at][0] < each.began:
            newest = max(newest, ended[at][1])
            own[ended[at][2]] = max(own.get(ended[at][2], 0), ended[at][1])
            at += 1
        if each.verb == "append":
            if each.seq <= newest:
                told = f"{each.key} got {each.seq}, and {newest} had been told before it began"
                verdict.faults.append(f"{session}: {told}")
            continue
        verdict.heads += 1
        if each.seq < own.get(each.client, 0):
            verdict.faults.append(f"{session}: {each.client} saw {own[each.client]}, and then the head {each.seq}")
        elif each.seq < newest:
            verdict.stale += 1
        possible = max((seq for began, seq in begun if began <= each.ended), default=0)
        if each.seq > max(possible, 1):
            verdict.faults.append(f"{session}: the head {each.seq} was told before anybody appended it")


def longest_stall(history: Iterable[Operation], began: float, ended: float) -> float:
    """The longest time in which no append was acknowledged, between two moments."""
    times = [began, *sorted(o.ended for o in history if o.verb == "append" and began <= o.ended <= ended), ended]
    return max((b - a for a, b in itertools.pairwise(times)), default=0.0)
