"""Records a model call that other code makes, without changing it.

It is recorded with the same events as a call through `session.model`: intent before, outcome after, with usage, cost
and what it depends on. Nothing can answer, delay or refuse it: it is never answered from the record, and no budget or
guard stops it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

from wakelog.model import events as ev
from wakelog.model.records import EventDraft
from wakelog.monitors.prices import Prices
from wakelog.runtime.ambient import TrustMark, current_action
from wakelog.runtime.call import Runtime
from wakelog.runtime.models import MODEL, described_call
from wakelog.runtime.outcome import Outcome, classify_error
from wakelog.runtime.streams import StreamRecord
from wakelog.runtime.tools import CallRequest, End


def _made_elsewhere() -> None:
    raise AssertionError("an observed call is not run here")


class ObservedCall:
    """One model call from its request to its outcome."""

    def __init__(
        self, runtime: Runtime, arguments: dict[str, Any], *, prices: Callable[[], Prices], provider: str
    ) -> None:
        request = described_call(
            runtime.flow, _made_elsewhere, _made_elsewhere, arguments, MODEL, prices, provider=provider
        )
        request.action = f"{request.tool.name}-{secrets.token_hex(6)}"
        self._runtime = runtime
        self._running = runtime.prepare(request)
        self._began_ns = time.monotonic_ns()

    @property
    def request(self) -> CallRequest:
        return self._running.request

    def begin(self) -> None:
        """Records that the call starts."""
        runtime, running, request = self._runtime, self._running, self.request
        running.turn = runtime.turn  # it happens whether the turn is over or not
        intent = ev.ActionRequested(
            action=running.call.action,
            tool=running.call.tool,
            effect="model",
            input=running.input,
            input_hash=running.input_hash,
            params=request.params,
            context_hash=request.context_hash,
            inside=current_action(),
        )
        draft = runtime.flow.draft(intent, mark=running.mark, derived_from=request.derived_from)
        running.mark = TrustMark(draft.trust, draft.source)
        # First mark it as at work: then a turn that ends meanwhile leaves it open.
        runtime.at_work.append(running.call.action)
        try:
            runtime.record_start(running, draft)
        except BaseException:
            runtime.at_work.remove(running.call.action)
            raise

    def finish(self, end: End, *also: EventDraft) -> Outcome:
        """Records its outcome, and `also` in the same commit."""
        end.took_us = end.took_us or (time.monotonic_ns() - self._began_ns) // 1000
        try:
            return self._runtime.finish(self._running, end, *also)
        finally:
            self._runtime.at_work.remove(self._running.call.action)

    def classify_error(self, error: BaseException) -> End:
        """Says how the call ended if the client raised `error`."""
        return classify_error(error, self.request)


def observed_stream(record: Callable[[End], object], classify_error: Callable[[BaseException], End]) -> StreamRecord:
    """Collects the parts of an observed stream and passes its end to `record`."""
    stream = StreamRecord(record, classify_error, lambda: True, 0)
    stream.is_provider = True
    return stream
