"""From the events of one commit to rows.

What an event says comes from its body (facets.py). What it did comes from its delta, applied to the few parts of the
state that have columns. So goal, labels, money and pending calls always equal `Log.state()`, also after rewinds, after
erasures and in forks, and no rule about events is written twice. The cost of an event is the amount it added to the
session's spending.

A pruned event has no body. After the pruned part, the state is the prune's base. The base also restores what is
durable: decisions, facts, dead ends and the newest change of each file.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import msgspec

from wakelog.codec.records import decode_body
from wakelog.engine import Engine
from wakelog.errors import InvalidInputError
from wakelog.index import view
from wakelog.index.connection import Keep
from wakelog.index.event_texts import UNREADABLE, PayloadReader
from wakelog.index.facets import (
    EARLY_WORDS,
    Facets,
    as_json,
    decision_of,
    facets_of,
    failure_of,
    one_line,
    text_of,
)
from wakelog.index.pruned_rows import keep_totals
from wakelog.index.rows import Batch, ProjectionState, SessionRow, TurnRow
from wakelog.index.step_rows import STEP_KINDS, StepEvent, StepRows
from wakelog.log.reader import check_commit, fold_at, prune_over
from wakelog.model.call_subject import project_of, project_path
from wakelog.model.calls import ANSWERS, BEGIN_KINDS, FAILURES
from wakelog.model.ids import Seq
from wakelog.model.json_fields import as_text
from wakelog.model.records import Commit, Header
from wakelog.model.trust import FAR_REACHING, distrust
from wakelog.model.turns import count_event
from wakelog.model.values import Value, as_int
from wakelog.state.patch import apply_op, tokens_of

PARTS = ("goal", "labels", "pending_actions", "last_error", "budget", "flags", "turn", "view")
"""The parts of the state that columns are made of."""

_KEEP = {"message.added": Keep.TEXT, **dict.fromkeys(EARLY_WORDS, Keep.WORDS)}
"""What the index keeps of the texts of some kinds."""

DETAILED_KINDS = BEGIN_KINDS | ANSWERS | {
    "session.opened", "session.forked", "session.closed", "message.added", "file.changed",
    "subagent.spawned", "subagent.returned", "decision.made", "fact.recorded", "fact.retracted", "turn.ended",
}  # fmt: skip
"""Kinds that have rows in other tables too, or change the session's row."""

encode_carried = msgspec.json.Encoder().encode
_decode_carried = msgspec.json.Decoder(ProjectionState).decode
_UNKNOWN = distrust("unverified")
_DAMAGED_DELTA = (InvalidInputError, KeyError, TypeError, AttributeError)

Costs = tuple[int, int, int]
"""Tokens, millionths of a dollar and microseconds."""
_FREE: Costs = (0, 0, 0)


class SessionProjection:
    """Turns the commits of one session into rows, in order."""

    def __init__(self, engine: Engine, batch: Batch, row: SessionRow) -> None:
        self._engine = engine
        self._batch = batch
        self._row = row
        self._carried = _decode_carried(row.carried)
        self._wants_all = batch.db.words.wants_all
        self._payloads = PayloadReader(engine, row.id)
        self._steps = StepRows(batch, row.no, self._carried, self._payloads.fetch)
        self._add_event = batch.added["wl_event"].append
        self._turn: TurnRow | None = None
        """The row that the last event was counted in. Valid for one commit: rows are written between commits."""

    def project(self, commit: Commit) -> None:
        """Adds the rows of the next commit. Raises before anything is added if the commit cannot be read; later
        problems are noted in the session's row."""
        headers, _ = check_commit(commit)
        bodies = [decode_body(record.body) for record in commit.records]
        self._payloads.at_hand = dict(commit.payloads)
        self._turn = None
        steps: list[StepEvent] = []
        for header, record, body in zip(headers, commit.records, bodies, strict=True):
            gone = "pruned" if not record.body else "erased" if "$erased" in body else ""
            self._project_event(header, body, gone, commit.commit_id, steps)
        # Steps are named after the labels that the session has at the end of the commit.
        for step in steps:
            self._steps.add(*step)
        row = self._row
        row.head, row.hash, row.status = commit.last, commit.hash, commit.status
        row.events += len(headers)
        self._batch.events += len(headers)

    def save(self) -> None:
        """Puts the session's row back, with the columns that follow from its state."""
        row, doc = self._row, self._carried.doc
        goal, labels, error = doc.get("goal"), doc.get("labels") or {}, doc.get("last_error")
        spent, before = _spent(doc), self._carried.spent_before
        turn = doc.get("turn") or {}
        row.goal = goal if type(goal) is str else None
        row.labels = encode_carried({k: as_text(v) for k, v in labels.items()}).decode()
        row.project = project_of(labels)
        row.pending = len(doc.get("pending_actions") or ())
        row.flags = len(doc.get("flags") or ())
        row.last_error = one_line(": ".join(filter(None, failure_of(error))))
        row.tokens = as_int(spent.get("tokens")) - as_int(before.get("tokens"))
        row.usd_micros = as_int(spent.get("usd_micros")) - as_int(before.get("usd_micros"))
        row.turn = as_int(turn.get("number"))
        status = as_text(turn.get("status"))
        is_over = row.status in ("closed", "archived")
        row.outcome = self._carried.closing if is_over else status if status != "open" else ""
        row.carried = encode_carried(self._carried)
        row.damaged = row.damaged or self._carried.damage
        self._batch.save(row)

    # One event

    def _project_event(
        self, header: Header, body: dict[str, Value], gone: str, commit_id: str, steps: list[StepEvent]
    ) -> None:
        row, carried = self._row, self._carried
        kind, seq, is_pruned = header.kind, header.seq, gone == "pruned"
        if is_pruned:
            facets, carried.is_pruned = Facets(), True
        else:
            if carried.is_pruned:
                self._continue_from_base(seq - 1, header.at)
            has_text = self._wants_all or kind in _KEEP
            facets = facets_of(kind, body, functools.partial(self._payloads.fetch, seq), has_text=has_text)
        if facets.action:
            self._name_tool(facets)
        cost = self._apply(seq, delta) if (delta := body.get("delta")) else _FREE
        tokens, usd_micros, duration_us = cost
        # The tokens of a reused outcome were paid for when the call ran.
        tokens_out = facets.tokens_out = min(facets.tokens_out, tokens)
        occurred, trust = facets.occurred or header.at, distrust(header.trust)
        self._add_event((
            row.no, seq, header.turn, header.attempt, kind, header.at, occurred, header.actor, facets.tool,
            facets.model, facets.effect, facets.action, facets.path, facets.key, facets.outcome, facets.summary,
            header.cause, trust, header.source, tokens, tokens_out, usd_micros, duration_us, commit_id, gone,
        ))  # fmt: skip
        if trust or kind in FAR_REACHING:
            row.marked = 1
        if cost != _FREE:
            self._add_cost(header, facets, cost)
        if facets.text:
            self._batch.add_text(row.no, seq, facets.text, _KEEP.get(kind, Keep.NOTHING))
        if not row.first_at or occurred < row.first_at:
            row.first_at = occurred
        if occurred > row.last_at:
            row.last_at = occurred
        has_failed = facets.outcome in FAILURES and kind in ANSWERS and kind != "action.reconciled"
        # A fork's first event names the turn that was open at the fork point; that turn's row is its parent's.
        if header.turn and kind != "session.forked":
            self._count(header, body, facets, occurred, trust, is_pruned)
            turn = self._turn
            assert turn is not None
            if cost != _FREE:
                turn.tokens += tokens
                turn.tokens_out += tokens_out
                turn.usd_micros += usd_micros
            if has_failed and not is_pruned and facets.effect != "model":
                turn.tool_errors += 1
        if is_pruned:
            return
        if kind == "history.rewound":
            to, under = as_int(body.get("to")), as_int(body.get("under"))
            try:
                view.rewind(self._batch, self._engine, self._payloads.segments, row.no, seq=seq, to=to, under=under)
            except UNREADABLE as exc:
                carried.damage = exc.message
        elif kind in DETAILED_KINDS:
            self._add_details(header, body, facets, has_failed)
        if kind in STEP_KINDS or (kind == "message.added" and body.get("role") == "user"):
            steps.append((header, body, facets, occurred, trust, duration_us))

    def _add_cost(self, header: Header, facets: Facets, cost: Costs) -> None:
        # Only importers say when something happened: a call with the same name and time twice is one call.
        call = f"{facets.action}@{facets.occurred}" if facets.action and facets.occurred else ""
        sub = facets.key if header.kind in ("subagent.returned", "history.adopted") else ""
        place = (self._row.no, header.seq, header.turn, facets.occurred or header.at)
        tokens, usd_micros, duration_us = cost
        unpriced = tokens if not usd_micros and not facets.is_priced else 0
        amounts = (tokens, facets.tokens_out, usd_micros, duration_us, unpriced)
        self._batch.added["wl_cost"].append((*place, facets.tool, facets.model, call, sub, *amounts))

    def _name_tool(self, facets: Facets) -> None:
        """An outcome names its action only; tool, class and model are those it was requested with."""
        action, carried = facets.action, self._carried
        if facets.model:
            carried.models[action] = facets.model
        elif carried.models:
            facets.model = carried.models.get(action, "")
        if not facets.tool:
            pending = (carried.doc.get("pending_actions") or {}).get(action)
            if type(pending) is dict:
                facets.tool, facets.effect = as_text(pending.get("tool")), as_text(pending.get("effect"))

    def _apply(self, seq: Seq, delta: Value) -> Costs:
        """Applies a delta to the carried parts of the state; returns what the event cost."""
        carried = self._carried
        doc = carried.doc
        cost = _FREE
        try:
            for op in delta:
                path = op["path"]
                part = path[1:].partition("/")[0]
                if part in PARTS:
                    before = _amounts(doc) if part == "budget" else _FREE
                    apply_op(doc, tokens_of(path), op)
                    if part == "budget":
                        cost = _difference(before, _amounts(doc))
                elif not path:
                    doc.clear()
                    doc.update({part: op["value"][part] for part in PARTS})
        except _DAMAGED_DELTA:
            carried.damage = f"the delta of event {seq} does not fit the state before it"
        if carried.models:
            pending = doc.get("pending_actions") or {}
            carried.models = {action: model for action, model in carried.models.items() if action in pending}
        return cost

    def _count(
        self, header: Header, body: dict[str, Value], facets: Facets, at: int, trust: int, is_pruned: bool
    ) -> None:
        """Adds an event to the counts of its turn."""
        turn = self._turn
        if turn is None or turn.turn != header.turn or turn.attempt != header.attempt:
            is_new = header.turn > self._carried.last_turn
            turn = self._turn = self._batch.turn(
                self._row.no, header.turn, header.attempt, seq=header.seq, at=at, is_new=is_new
            )
            if is_new:
                self._carried.last_turn = header.turn
                self._row.turns += 1
        count_event(
            turn,
            header.seq,
            header.kind,
            body,
            at=at,
            effect=facets.effect,
            outcome=facets.outcome,
            summary=lambda: facets.summary,
            is_pruned=is_pruned,
        )
        if trust > turn.trust:
            turn.trust = trust
        if header.kind == "file.changed":
            self._batch.with_files.add((turn.session, turn.turn, turn.attempt))

    def _add_details(self, header: Header, body: dict[str, Value], facets: Facets, has_failed: bool) -> None:
        """Adds the rows that events of DETAILED_KINDS have besides their own, without erased content."""
        kind, seq, row, batch = header.kind, header.seq, self._row, self._batch
        added = batch.added
        if facets.tool and (kind in BEGIN_KINDS or has_failed):
            batch.use(row.no, facets.tool, seq, calls=kind in BEGIN_KINDS, errors=has_failed)
        if kind == "session.closed":
            self._carried.closing = facets.outcome
        elif kind in ("session.opened", "session.forked"):
            row.name = row.name or self._free_name(as_text(body.get("name")))
            row.agent = as_text(body.get("agent")) or row.agent
            row.spawner = as_text(body.get("spawner")) or row.spawner
        elif kind == "message.added":
            if "content" in body:
                added["wl_message"].append((row.no, seq, as_text(body.get("role"))))
        elif kind == "file.changed":
            if "path" in body:
                change = as_text(body.get("change")) or "modified"
                lines = as_int(body.get("added")), as_int(body.get("removed"))
                added["wl_file"].append((row.no, seq, facets.path, change, *lines))
        elif kind in ("subagent.spawned", "subagent.returned"):
            added["wl_spawn"].append((row.no, seq, header.turn, facets.key))
        elif kind == "decision.made":
            if "choice" in body:
                added["wl_decision"].append((row.no, seq, *decision_of(body)))
        elif kind in ("fact.recorded", "fact.retracted"):
            if "key" in body:
                value = as_json(body["value"]) if "value" in body else None
                added["wl_fact"].append((row.no, seq, facets.key, value, kind == "fact.retracted"))
        elif has_failed or kind == "turn.ended":
            if "error" not in body and (not has_failed or "$erased" in body):
                return
            default = "timeout" if facets.outcome == "timed_out" else "error"
            type_, message = failure_of(body.get("error"))
            added["wl_error"].append((row.no, seq, facets.tool, type_ or default, message))

    def _free_name(self, name: str) -> str:
        """The name an event gives its session, unless the engine has bound it to another."""
        return name if name and self._engine.find(name) in (None, self._row.id) else ""

    # Beyond the commit at hand

    def _continue_from_base(self, seq: Seq, at: int) -> None:
        """After pruned events: the state as it was, and the rows of what is durable in it."""
        row = self._row
        self._carried.is_pruned = False
        try:
            doc = fold_at(self._engine, self._payloads.segments, seq).fold.doc
            prune = prune_over(self._engine, row.id, seq)
        except UNREADABLE as exc:
            self._carried.damage = exc.message
            return
        before = _amounts(self._carried.doc)
        self._carried.doc = {part: doc[part] for part in PARTS if part in doc}
        keep_totals(self._batch, row, prune.body, seq, at, _difference(before, _amounts(doc)))
        view.resume(self._batch, self._engine, self._payloads.segments, row.no, row.first, doc["view"])
        _keep_durable(self._batch, row, doc, seq, at)


def _spent(doc: dict[str, Value]) -> dict[str, Value]:
    budget = doc.get("budget")
    spent = budget.get("spent") if type(budget) is dict else None
    return spent if type(spent) is dict else {}


def _amounts(doc: dict[str, Value]) -> Costs:
    spent = _spent(doc)
    return as_int(spent.get("tokens")), as_int(spent.get("usd_micros")), as_int(spent.get("duration_us"))


def _difference(before: Costs, after: Costs) -> Costs:
    return max(0, after[0] - before[0]), max(0, after[1] - before[1]), max(0, after[2] - before[2])


def _keep_durable(batch: Batch, row: SessionRow, doc: dict[str, Value], upto: Seq, at: int) -> None:
    """Adds the rows and words of what outlives a prune: what `doc`, the state at `upto`, tells about the session's own
    events. How many lines a file gained is not among what is known, nor what was trusted."""
    no, added = row.no, batch.added

    def own(part: str, place: str = "") -> Iterator[tuple[Seq, str, dict[str, Value]]]:
        """The entries of a part that come from this session's events, which are its keys or stand in `place`."""
        for key, entry in doc[part].items():
            seq = entry.get(place) if place else int(key) if key.isdigit() else 0
            if type(seq) is int and row.first <= seq <= upto:
                yield seq, key, entry

    for seq, _, decision in own("decisions_made"):
        added["wl_decision"].append((no, seq, *decision_of(decision)))
        batch.add_text(no, seq, _words(decision), Keep.WORDS)
    for seq, key, fact in own("facts", "seq"):
        added["wl_fact"].append((no, seq, key, as_json(fact.get("value")), 0))
        batch.add_text(no, seq, _words({key: fact.get("value")}), Keep.WORDS)
        batch.touch(no, "key", key, "recorded", seq=seq, at=at, trust=_UNKNOWN)
    for seq, _, dead_end in own("dead_ends"):
        batch.add_text(no, seq, _words(dead_end), Keep.WORDS)
        added["wl_dead_end"].append((no, seq, as_text(dead_end.get("tried")), as_text(dead_end.get("learned"))))
    for seq, child, _ in own("subagents", "seq"):
        added["wl_spawn"].append((no, seq, 0, child))
    for seq, path, used in own("files_modified", "last"):
        added["wl_file"].append((no, seq, path, as_text(used.get("change")), 0, 0))
        batch.add_text(no, seq, path, Keep.WORDS)
        named = project_path(path, doc["labels"])
        batch.touch(no, "file", named, "changed", seq=seq, at=at, trust=_UNKNOWN)


def _words(value: Value) -> str:
    return text_of(value, lambda mention: None)
