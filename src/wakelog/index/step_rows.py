"""Steps and touches: rows for what calls did, and for the things that sessions touched.

A call that is requested in one event and ends in another is kept in between. It becomes a step when it ends, so that no
row is ever changed. The content of erased events is not in these rows; rewound events are, because they happened.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from wakelog.index.facets import Facets, failure_of
from wakelog.index.rows import AskedStep, Batch, ProjectionState
from wakelog.model.call_subject import TARGET_MAX, CallSubject, is_own_tool, project_path, subject_of
from wakelog.model.calls import ANSWERS, BEGIN_KINDS, FAILURES
from wakelog.model.ids import Seq
from wakelog.model.json_fields import as_text
from wakelog.model.payloads import is_erased
from wakelog.model.records import Header
from wakelog.model.totals import MODEL, NO_PHASE, count_call, phase_of
from wakelog.model.values import Value

_encode = msgspec.json.Encoder(order="sorted").encode
STEP_KINDS = BEGIN_KINDS | ANSWERS | {
    "action.denied", "action.abandoned", "file.changed", "resource.touched", "fact.recorded", "fact.retracted",
    "artefact.recorded", "git_commit.linked", "dead_end.noted", "turn.ended", "knowledge.recalled",
}  # fmt: skip
INPUT_DIGITS = 16
PATHS_MAX = 10
"""How many files of a failed call are counted as places of failure."""


StepEvent = tuple[Header, dict[str, Value], Facets, int, int, int]
"""An event: header, body, facets, when it happened, the rank of its trust, and how long it took."""


class StepRows:
    """Adds the steps and touches of one session."""

    def __init__(self, batch: Batch, session: int, carried: ProjectionState, fetch: Any) -> None:
        self._batch = batch
        self._session = session
        self._carried = carried
        self._fetch = fetch

    def add(
        self, header: Header, body: dict[str, Value], facets: Facets, occurred: int, trust: int, duration_us: int
    ) -> None:
        """Adds the rows of one event of STEP_KINDS, or of a user's message, after its delta was applied."""
        kind = header.kind
        if kind not in BEGIN_KINDS and kind not in ANSWERS:
            self._add_other(header, body, facets, occurred, trust)
        elif facets.effect == "model":
            if facets.outcome and kind in ANSWERS:
                self._count(header, MODEL, facets.outcome, duration_us)
        elif not is_own_tool(facets.tool):
            if kind in BEGIN_KINDS:
                self._ask(header.seq, body, facets, occurred, trust)
            if facets.outcome and kind in ANSWERS:
                self._answer(header, body, facets, occurred, trust, duration_us)

    def _add_other(self, header: Header, body: dict[str, Value], facets: Facets, occurred: int, trust: int) -> None:
        """Adds the rows of kinds other than calls."""
        kind, seq = header.kind, header.seq
        place = (seq, occurred, trust)
        if kind == "message.added":
            self._carried.phase = NO_PHASE
        elif kind in ("action.denied", "action.abandoned"):
            self._carried.asked.pop(facets.action, None)
        elif kind == "file.changed":
            path = project_path(facets.path, self._labels(), as_text(body.get("folder")))
            self._touch("file", path, "changed", *place)
        elif kind == "resource.touched":
            name = "url" if "://" in facets.key else "resource"
            self._touch(name, facets.key, "read" if body.get("mode", "read") == "read" else "changed", *place)
        elif kind in ("fact.recorded", "fact.retracted"):
            self._touch("key", facets.key, kind.rpartition(".")[2], *place)
        elif kind == "artefact.recorded":
            self._touch("artefact", facets.key, "produced", *place)
        elif kind == "git_commit.linked":
            self._touch("commit", facets.key, "committed", *place)
        elif kind == "dead_end.noted" and "tried" in body:
            row = (self._session, seq, as_text(body.get("tried")), as_text(body.get("learned")))
            self._batch.added["wl_dead_end"].append(row)
        elif kind == "turn.ended" and body.get("error"):
            self._touch("error", _signature(*failure_of(body["error"])), "met", *place)
        elif kind == "knowledge.recalled":
            sources = body.get("sources")
            shown = [as_text(each) for each in sources] if type(sources) is list else []
            rows = [(self._session, seq, no, source) for no, source in enumerate(filter(None, shown))]
            self._batch.added["wl_shown"] += rows

    def _ask(self, seq: Seq, body: dict[str, Value], facets: Facets, occurred: int, trust: int) -> None:
        given = body.get("input")
        value = self._fetch(seq, given) if type(given) is dict and "$payload" in given else given
        subject = subject_of(facets.tool, facets.effect, value, self._labels())
        if subject.label.startswith("wakelog"):
            subject = CallSubject(subject.label)
        for address in subject.urls:
            self._touch("url", address, "read", seq, occurred, trust)
        for path in subject.read:
            self._touch("file", path, "read", seq, occurred, trust)
        if facets.action:
            digest = as_text(body.get("input_hash"))[:INPUT_DIGITS] or _digest(given)
            paths = (*subject.written, *subject.read)[:PATHS_MAX]
            question = AskedStep(seq, subject.label, subject.target, subject.act, digest, paths, trust)
            self._carried.asked[facets.action] = question

    def _answer(
        self, header: Header, body: dict[str, Value], facets: Facets, occurred: int, trust: int, duration_us: int
    ) -> None:
        waiting = self._carried.asked
        question = waiting.get(facets.action) if body.get("retry") else waiting.pop(facets.action, None)
        if question is None:  # its request was pruned, or is in another session
            question = AskedStep(header.cause or header.seq, facets.tool, "", "run", "", (), 0)
        if not question.label or question.label.startswith("wakelog"):
            return
        seq, outcome, trust, signature = header.seq, facets.outcome, max(question.trust, trust), ""
        if outcome in FAILURES:
            type_, message = failure_of(body.get("error"))
            default = "timed_out" if outcome == "timed_out" else ""
            signature = _signature(type_ or default, message) if "$erased" not in body else ""
            self._touch("error", signature, "met", seq, occurred, trust)
            for path in question.paths:
                self._touch("file", path, "failed", seq, occurred, trust)
        elif question.act == "write" and outcome == "succeeded":
            for path in question.paths:
                self._touch("file", path, "wrote", seq, occurred, trust)
        where = (self._session, seq, question.seq, header.turn, header.attempt)
        what = (question.label, question.target[:TARGET_MAX], question.act, outcome, question.input, signature)
        self._batch.added["wl_step"].append((*where, *what, duration_us, occurred, trust))
        self._count(header, phase_of(question.act), outcome, duration_us)

    def _count(self, header: Header, phase: int, outcome: str, duration_us: int) -> None:
        here = (header.turn, header.attempt, phase)
        sums = self._batch.calls(self._session)
        self._carried.phase = count_call(sums, self._carried.phase, here, outcome in FAILURES, duration_us)

    def _touch(self, kind: str, name: str, how: str, seq: int, at: int, trust: int) -> None:
        self._batch.touch(self._session, kind, name, how, seq=seq, at=at, trust=trust)

    def _labels(self) -> dict[str, Value]:
        labels = self._carried.doc.get("labels")
        return labels if type(labels) is dict else {}


def _signature(type_: str, message: str) -> str:
    # Its regular expressions take long to compile, and errors are rare.
    from wakelog.model.error_signature import error_signature

    return error_signature(type_, message)


def _digest(given: Value) -> str:
    """Equal for calls with the same input. A payload is identified by its hash."""
    if given is None or is_erased(given):
        return ""
    if type(given) is dict and "$payload" in given:
        return as_text(given["$payload"])[:INPUT_DIGITS] if type(given["$payload"]) is str else ""
    return hashlib.sha256(_encode(given)).hexdigest()[:INPUT_DIGITS]
