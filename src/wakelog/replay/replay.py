"""A replay: a session in which the agent runs again, and a report that compares it with the recording.

    with session.replay("@4..@7") as replay:
        run_agent(replay.session)
    print(replay.report)

A strict replay ends with an error if anything differs, even if the agent swallowed the error or left something out. The
other modes only report.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar

from wakelog.errors import InvalidInputError, WakelogError
from wakelog.model.payloads import is_erased
from wakelog.model.values import Value
from wakelog.replay.agent_run import drive_agent, drive_agent_async
from wakelog.replay.recorded_runtime import ReplayRuntime
from wakelog.replay.recording import RecordedTurn, Recording
from wakelog.replay.report import Report
from wakelog.runtime.ambient import enter_replay
from wakelog.state.diff import diff
from wakelog.state.patch import child_of, equal, escape, tokens_of

T = TypeVar("T")


class Replay(Generic[T]):
    """One replay. Use it in a `with` (or `async with`), and pass its session to the agent."""

    def __init__(self, session: T, runtime: ReplayRuntime, recording: Recording, *, is_fork: bool) -> None:
        self.session: T = session
        self.runtime = runtime
        self.recording = recording
        self.inputs: list[Value] = [turn.input for turn in recording.turns]
        """The inputs of the recorded turns. Change them to make `run` use others."""
        self._fork = runtime.log.id if is_fork else None
        self._error = ""
        self._is_over = False
        """Whether it reached its end, so that unmatched steps are missing."""
        self._before: list[Any] = []

    @property
    def turns(self) -> tuple[RecordedTurn, ...]:
        """The recorded turns: number, input, and how each ended."""
        return self.recording.turns

    @property
    def report(self) -> Report:
        """The comparison with the recording so far."""
        recording, rows = self.recording, self.runtime.matcher.rows(reached=self._reached())
        notes = []
        if recording.steps and not self._error and not any(row.made for row in rows):
            notes.append("no call was made through this replay: does the agent use replay.session?")
        return Report(
            recording.log.id,
            recording.name,
            self.runtime.mode,
            recording.first,
            recording.last,
            self._fork,
            len(recording.steps),
            rows,
            self._error,
            self._state(),
            tuple(notes),
        )

    def _reached(self) -> int | None:
        """The last turn that is complete, so that its unmatched steps are missing; None for all turns."""
        failed, place = self.runtime.failed, self.runtime.matcher.place
        if self._is_over:
            return None
        if failed is not None and failed.kind == "call-missing":
            return place
        return place - 1 if failed is not None or self._error else None

    def _state(self) -> tuple[str, ...]:
        """What differs in the final state; empty for a replay that did not reach its end."""
        if self._error or self.runtime.failed is not None or self.runtime.matcher.place != len(self.recording.turns):
            return ()
        return _differing_keys(self.recording.log.state(self.recording.last), self.runtime.log.state())

    def run(self, agent: str | Callable[..., Any]) -> Any:
        """Runs an agent: a function, or `"module:function"`. One that takes `(session, input)` is called once for each
        recorded turn, one that takes only the session is called once. A turn that failed is expected to fail again with
        the same error."""
        return drive_agent(self, agent)

    async def arun(self, agent: str | Callable[..., Any]) -> Any:
        """Like `run`, for a coroutine function."""
        return await drive_agent_async(self, agent)

    def finish(self) -> Report:
        """The report. A strict replay raises DivergenceError if anything differs."""
        report = self.report
        if self.runtime.mode == "strict":
            if self.runtime.failed is not None:
                raise self.runtime.failed
            self._is_over = True
            if report.divergence is not None:
                error = self.runtime.diverged(report.divergence)
                for note in report.notes:
                    error.add_note(note)
                raise error
        return report

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Answers all calls inside, including those of tools that are bound to another session."""
        before = enter_replay(self.runtime)
        try:
            yield
        finally:
            enter_replay(before)

    def __enter__(self) -> Replay[T]:
        self._before.append(enter_replay(self.runtime))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        enter_replay(self._before.pop())
        if error is None:
            self.finish()
            return
        self._error = f"{type(error).__name__}: {error}"
        failed = self.runtime.failed
        if failed is not None and error is not failed and isinstance(error, Exception):
            # The agent replaced the error; raise the one that says where the replay diverged.
            raise failed from error
        if failed is None and not isinstance(error, WakelogError):
            left = next((row for row in self.report.steps if row.verdict in ("missing", "unreached")), None)
            if left is not None:
                error.add_note(
                    f"the replay had come to step {left.number} of {len(self.recording.steps)} (e{left.seq})"
                )

    async def __aenter__(self) -> Replay[T]:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def check_choice(value: str, known: tuple[str, ...], what: str) -> None:
    if value not in known:
        raise InvalidInputError(f"{value!r} is not {what}", kind="bad-replay", hint=f"one of {', '.join(known)}")


_POSITIONS = frozenset({"seq", "turn", "last", "evidence", "trust"})
_BY_NAME = ("labels", "facts", "artefacts")
_IN_ORDER = ("decisions_made", "dead_ends")


def _differing_keys(recorded: dict[str, Value], replayed: dict[str, Value]) -> tuple[str, ...]:
    """Pointers to what differs in goal, labels, facts, decisions, dead ends, artefacts and data. Values that were
    erased since are not compared."""
    return tuple(dict.fromkeys(_differing(recorded, replayed)))


def _differing(a: dict[str, Value], b: dict[str, Value]) -> Iterator[str]:
    if not _same(a["goal"], b["goal"]):
        yield "/goal"
    for part in _BY_NAME:
        for name in dict.fromkeys((*a[part], *b[part])):
            if (
                name not in a[part]
                or name not in b[part]
                or not _same(_without_positions(a[part][name]), _without_positions(b[part][name]))
            ):
                yield f"/{part}/{escape(name)}"
    for part in _IN_ORDER:
        one, two = (list(map(_without_positions, state[part].values())) for state in (a, b))
        for n in range(max(len(one), len(two))):
            if n >= len(one) or n >= len(two) or not _same(one[n], two[n]):
                keys = list(b[part]) if n < len(two) else list(a[part])
                yield f"/{part}/{escape(keys[n])}"
    for op in diff(a["data"], b["data"], "/data"):
        if not _is_erased(op, a):
            yield op["path"]


def _without_positions(entry: Value) -> Value:
    return {k: v for k, v in entry.items() if k not in _POSITIONS} if type(entry) is dict else entry


def _same(a: Value, b: Value) -> bool:
    if is_erased(a):
        return True
    if type(a) is dict and type(b) is dict:
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if type(a) is list and type(b) is list:
        return len(a) == len(b) and all(map(_same, a, b))
    return equal(a, b)


def _is_erased(op: dict[str, Value], recorded: dict[str, Value]) -> bool:
    node: Value = recorded
    for token in tokens_of(op["path"]):
        if is_erased(node):
            return True
        node = child_of(node, token)
    return is_erased(node)
