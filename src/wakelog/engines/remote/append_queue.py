"""The queue of appends to a server. Everything that waits goes into one request.

The first caller that waits for an answer while no other sends, sends the whole queue, and gets the answers for all
(group_commit.py). So a single caller sends in its own thread. Under load, appends that arrive while a request runs
share the next request, and its sync on the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy

from wakelog.engines.group_commit import Group, GroupedAppend
from wakelog.engines.remote.wire import SubmitAnswer, error_of
from wakelog.errors import UnavailableError, WakelogError
from wakelog.model.records import Commit

BYTES_MAX = 8 << 20

Send = Callable[[Sequence[tuple[Commit, ...]]], Sequence[SubmitAnswer]]
QueuedAppend = GroupedAppend[Commit]


class SendQueue:
    """The queue of appends to one server. One thread at a time sends."""

    def __init__(self, send: Send, check: Callable[[], None]) -> None:
        """`check` raises when the store is closed."""
        self._send = send
        self._group = Group(self._write, check)

    def submit(self, commits: tuple[Commit, ...]) -> QueuedAppend:
        return self._group.submit(commits)

    def _write(self, batch: list[QueuedAppend]) -> None:
        for part in _requests(batch):
            try:
                answers = self._send([each.commits for each in part])
                for each, answer in zip(part, answers, strict=True):
                    _settle(each, answer)
            except Exception as exc:
                for each in part:
                    each.fail(_error_for_caller(exc), exc)


def _requests(batch: list[QueuedAppend]) -> Iterator[list[QueuedAppend]]:
    """The appends in their order, as many in a request as fit, at least one."""
    part: list[QueuedAppend] = []
    size = 0
    for each in batch:
        if part and size >= BYTES_MAX:
            yield part
            part, size = [], 0
        part.append(each)
        size += sum(map(_size, each.commits))
    yield part


def _settle(pending: QueuedAppend, answer: SubmitAnswer) -> None:
    if answer.problem is not None:
        pending.fail(error_of(answer.problem))
    elif answer.head is None:
        pending.fail(UnavailableError("the server's answer cannot be read", kind="answer-unknown"))
    else:
        pending.head = answer.head


def _size(commit: Commit) -> int:
    return sum(len(r.header) + len(r.body) for r in commit.records) + sum(len(p) for _, p in commit.payloads)


def _error_for_caller(exc: Exception) -> WakelogError:
    """A separate error for each append of a batch, because they are raised in different threads."""
    if isinstance(exc, WakelogError):
        return copy(exc)
    return UnavailableError(f"the append was interrupted: {exc!r}", kind="answer-unknown")
