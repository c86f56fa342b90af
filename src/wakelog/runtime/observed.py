"""A model call that somebody else makes: it is recorded as it goes by, and nothing about it is changed.

It becomes the same events as a call through `session.model`: intent before, outcome after, with usage, cost and what it
rests on. What is left out is everything that could answer, delay or refuse it: it is never given again from the record,
no budget and no guard stops it before it starts.
"""

from __future__ import annotations

import functools
import secrets
import time
from collections.abc import Callable
from typing import Any

from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.monitors.prices import Prices
from wakelog.runtime.ambient import TrustMark, inside
from wakelog.runtime.call import Runtime
from wakelog.runtime.models import MODEL, described_call
from wakelog.runtime.outcome import Outcome
from wakelog.runtime.streams import StreamRecord
from wakelog.runtime.tools import CallRequest, End


def _made_elsewhere() -> None:
    raise AssertionError("an observed call is not run here")


class ObservedCall:
    """One model call from its request to its outcome."""

    def __init__(
        self, runtime: Runtime, arguments: dict[str, Any], *, prices: Callable[[], Prices], provider: str
    ) -> None:
        given = described_call(
            runtime.flow, _made_elsewhere, _made_elsewhere, arguments, MODEL, prices, provider=provider
        )
        given.action = f"{given.tool.name}-{secrets.token_hex(6)}"
        self._runtime = runtime
        self._running = runtime.prepare(given)
        self._began_ns = time.monotonic_ns()

    @property
    def given(self) -> CallRequest:
        return self._running.given

    def begin(self) -> None:
        """Records that the call starts."""
        runtime, running, given = self._runtime, self._running, self.given
        request = ev.ActionRequested(
            action=running.call.action,
            tool=running.call.tool,
            effect="model",
            input=running.input,
            input_hash=running.input_hash,
            params=given.params,
            context_hash=given.context_hash,
            inside=inside(),
        )
        draft = runtime.flow.draft(request, mark=running.mark, derived_from=given.derived_from)
        running.mark = TrustMark(draft.trust, draft.source)
        # At work first: a turn that ends meanwhile leaves it open.
        runtime.at_work.append(running.call.action)
        try:
            runtime.start(running, draft)
        except BaseException:
            runtime.at_work.remove(running.call.action)
            raise

    def finish(self, end: End, *also: EventDraft) -> Outcome:
        """Records how it ended, and `also` with it."""
        end.took_us = end.took_us or (time.monotonic_ns() - self._began_ns) // 1000
        try:
            return self._runtime.finish(self._running, end, *also)
        finally:
            self._runtime.at_work.remove(self._running.call.action)

    def ended_by(self, error: BaseException) -> End:
        """What an error of the client means."""
        return self._runtime.ended_by(error, self.given)


def observed_stream(record: Callable[[End], object], ended_by: Callable[[BaseException], End]) -> StreamRecord:
    """Takes the parts of an observed stream; its end is handed to `record`."""
    taken = StreamRecord(record, ended_by, functools.partial(bool, True), 0)
    taken.is_provider = True
    return taken
