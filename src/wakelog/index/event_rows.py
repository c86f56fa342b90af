"""From the events of one commit to rows.

What an event says comes from its body (facets.py). What it did comes from its delta, applied to the few parts of the
state that have columns. So goal, labels, money and pending calls always equal `Log.state()`, also after rewinds, after
erasures and in forks, and no rule about events is written twice. The cost of an event is the amount it added to the
session's spending.

A pruned event has no body. After the pruned part, the state is the prune's base. The base also restores what is
durable: decisions, facts, dead ends and the newest change of each file.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from wakelog.codec.records import decode_body
from wakelog.engine import Engine
from wakelog.errors import InvalidInputError
from wakelog.index import view
from wakelog.index.connection import Keep
from wakelog.index.event_texts import UNREADABLE, Mentioned
from wakelog.index.facets import (
    EARLY_WORDS,
    Facets,
    as_int,
    as_json,
    decision_of,
    facets_of,
    failure_of,
    one_line,
    text_of,
)
from wakelog.index.pruned_rows import keep_totals
from wakelog.index.rows import Batch, ProjectionState, SessionRow
from wakelog.index.step_rows import STEP_KINDS, StepRows
from wakelog.log.reader import check_commit, fold_at, prune_over
from wakelog.model.call_subject import project_of, project_path
from wakelog.model.calls import ANSWERS, ASKS, FAILURES
from wakelog.model.ids import Seq
from wakelog.model.json_fields import as_text
from wakelog.model.records import Commit, Header
from wakelog.model.trust import distrust
from wakelog.model.turns import count_event
from wakelog.model.values import Value
from wakelog.state.patch import apply_op, tokens_of

PARTS = ("goal", "labels", "pending_actions", "last_error", "budget", "flags", "turn", "view")
"""The parts of the state that columns are made of."""

_KEEP = {"message.added": Keep.TEXT, **dict.fromkeys(EARLY_WORDS, Keep.WORDS)}
"""What is kept of the texts of some kinds."""

encode_carried = msgspec.json.Encoder().encode
_decode_carried = msgspec.json.Decoder(ProjectionState).decode
_UNKNOWN = distrust("unverified")
_DAMAGED_DELTA = (InvalidInputError, KeyError, TypeError, AttributeError)


class Taking:
    """One session on its way forward."""

    def __init__(self, engine: Engine, batch: Batch, row: SessionRow) -> None:
        self._engine = engine
        self._batch = batch
        self._row = row
        self._carried = _decode_carried(row.carried)
        self._wants_all = batch.db.words.wants_all
        self._mentioned = Mentioned(engine, row.id)
        self._steps = StepRows(batch, row.no, self._carried, self._mentioned.fetch)
        self._told: list[tuple[Header, dict[str, Value], Facets, int, int, int]] = []

    def take(self, commit: Commit) -> None:
        """Takes in the next commit, or raises having taken in nothing of it: after its bytes are decoded, what goes
        wrong is noted and gone on from."""
        headers, _ = check_commit(commit)
        bodies = [decode_body(record.body) for record in commit.records]
        self._mentioned.along = dict(commit.payloads)
        for header, record, body in zip(headers, commit.records, bodies, strict=True):
            gone = "pruned" if not record.body else "erased" if "$erased" in body else ""
            self._take(header, body, gone, commit.commit_id)
        # Steps come after the other rows of a commit, because two small loops are faster than one that does everything.
        for told in self._told:
            self._steps.take(*told)
        self._told.clear()
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

    def _take(self, header: Header, body: dict[str, Value], gone: str, commit_id: str) -> None:
        row, batch, carried = self._row, self._batch, self._carried
        kind, seq = header.kind, header.seq
        if gone == "pruned":
            said, carried.is_pruned = Facets(), True
        else:
            if carried.is_pruned:
                self._go_on_from_base(seq - 1, header.at)
            has_text = self._wants_all or kind in _KEEP
            said = facets_of(kind, body, lambda mention: self._mentioned.fetch(seq, mention), has_text=has_text)
        self._name_tool(said)
        delta = body.get("delta")
        tokens, usd_micros, duration_us = self._apply(seq, delta) if delta else (0, 0, 0)
        # What an outcome used again had cost was paid when it ran.
        said.tokens_out = min(said.tokens_out, tokens)
        occurred, trust = said.occurred or header.at, distrust(header.trust)
        place = (row.no, seq, header.turn, header.attempt, kind, header.at, occurred, header.actor)
        about = (said.tool, said.model, said.effect, said.action, said.path, said.key, said.outcome, said.summary)
        origin = (header.cause, trust, header.source)
        cost = (tokens, said.tokens_out, usd_micros, duration_us)
        batch.added["wl_event"].append((*place, *about, *origin, *cost, commit_id, gone))
        if tokens or usd_micros or duration_us:
            self._pay(header, said, tokens, usd_micros, duration_us)
        if said.text:
            batch.add_text(row.no, seq, said.text, _KEEP.get(kind, Keep.NOTHING))
        row.first_at = min(row.first_at, occurred) if row.first_at else occurred
        row.last_at = max(row.last_at, occurred)
        # A fork's first event names the turn that was open where it left; that turn's row is its parent's.
        if header.turn and kind != "session.forked":
            self._count(header, body, said, occurred, trust, tokens, usd_micros, gone)
        if gone != "pruned":
            self._keep(header, body, said)
            if kind in STEP_KINDS or (kind == "message.added" and body.get("role") == "user"):
                self._told.append((header, body, said, occurred, trust, duration_us))

    def _pay(self, header: Header, said: Facets, tokens: int, usd_micros: int, duration_us: int) -> None:
        # Only who imports says when something happened: a call that says the same twice is one call.
        call = f"{said.action}@{said.occurred}" if said.action and said.occurred else ""
        sub = said.key if header.kind in ("subagent.returned", "history.adopted") else ""
        place = (self._row.no, header.seq, header.turn, said.occurred or header.at)
        unpriced = tokens if not usd_micros and not said.is_priced else 0
        amounts = (tokens, said.tokens_out, usd_micros, duration_us, unpriced)
        self._batch.added["wl_cost"].append((*place, said.tool, said.model, call, sub, *amounts))

    def _name_tool(self, said: Facets) -> None:
        """An outcome names its action only; tool, class and model are those it was requested with."""
        action, carried = said.action, self._carried
        if not action:
            return
        if said.model:
            carried.models[action] = said.model
        else:
            said.model = carried.models.get(action, "")
        if not said.tool:
            pending = (carried.doc.get("pending_actions") or {}).get(action)
            if type(pending) is dict:
                said.tool, said.effect = as_text(pending.get("tool")), as_text(pending.get("effect"))

    def _apply(self, seq: Seq, delta: Value) -> tuple[int, int, int]:
        """Brings the carried parts of the state forward; returns what the event cost."""
        carried = self._carried
        doc = carried.doc
        cost = (0, 0, 0)
        try:
            for op in delta:
                path = op["path"]
                part = path[1:].partition("/")[0]
                if part == "budget":
                    before = _amounts(doc)
                    apply_op(doc, tokens_of(path), op)
                    cost = _difference(before, _amounts(doc))
                elif part in PARTS:
                    apply_op(doc, tokens_of(path), op)
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
        self,
        header: Header,
        body: dict[str, Value],
        said: Facets,
        occurred: int,
        trust: int,
        tokens: int,
        usd_micros: int,
        gone: str,
    ) -> None:
        """Adds an event to what its turn comes to."""
        batch, kind = self._batch, header.kind
        is_new = header.turn > self._carried.last_turn
        turn = batch.turn(self._row.no, header.turn, header.attempt, seq=header.seq, at=occurred, is_new=is_new)
        if is_new:
            self._carried.last_turn = header.turn
            self._row.turns += 1
        count_event(
            turn,
            header.seq,
            kind,
            body,
            at=occurred,
            effect=said.effect,
            outcome=said.outcome,
            summary=lambda: said.summary,
            is_pruned=gone == "pruned",
        )
        turn.tokens += tokens
        turn.tokens_out += said.tokens_out
        turn.usd_micros += usd_micros
        turn.trust = max(turn.trust, trust)
        if kind == "file.changed":
            batch.with_files.add((turn.session, turn.turn, turn.attempt))
        if gone != "pruned":
            turn.tool_errors += _is_failure(kind, said) and said.effect != "model"

    def _keep(self, header: Header, body: dict[str, Value], said: Facets) -> None:
        """The rows that some kinds have besides that of the event, as far as what they hold was not erased."""
        kind, seq, row, batch = header.kind, header.seq, self._row, self._batch
        added = batch.added
        has_failed = _is_failure(kind, said)
        if said.tool and (kind in ASKS or has_failed):
            batch.use(row.no, said.tool, seq, calls=kind in ASKS, errors=has_failed)
        if kind == "history.rewound":
            to, under = as_int(body.get("to")), as_int(body.get("under"))
            try:
                view.rewind(batch, self._engine, self._mentioned.segments, row.no, seq=seq, to=to, under=under)
            except UNREADABLE as exc:
                self._carried.damage = exc.message
        elif kind == "session.closed":
            self._carried.closing = said.outcome
        elif kind in ("session.opened", "session.forked"):
            row.name = row.name or self._free_name(as_text(body.get("name")))
            row.agent = as_text(body.get("agent")) or row.agent
            row.spawner = as_text(body.get("spawner")) or row.spawner
        if kind == "message.added":
            if "content" in body:
                added["wl_message"].append((row.no, seq, as_text(body.get("role"))))
        elif kind == "file.changed":
            if "path" in body:
                change = as_text(body.get("change")) or "modified"
                lines = as_int(body.get("added")), as_int(body.get("removed"))
                added["wl_file"].append((row.no, seq, said.path, change, *lines))
        elif kind in ("subagent.spawned", "subagent.returned"):
            added["wl_spawn"].append((row.no, seq, header.turn, said.key))
        elif kind == "decision.made":
            if "choice" in body:
                added["wl_decision"].append((row.no, seq, *decision_of(body)))
        elif kind in ("fact.recorded", "fact.retracted"):
            if "key" in body:
                value = as_json(body["value"]) if "value" in body else None
                added["wl_fact"].append((row.no, seq, said.key, value, kind == "fact.retracted"))
        elif has_failed or kind == "turn.ended":
            if "error" not in body and (not has_failed or "$erased" in body):
                return
            default = "timeout" if said.outcome == "timed_out" else "error"
            type_, message = failure_of(body.get("error"))
            added["wl_error"].append((row.no, seq, said.tool, type_ or default, message))

    def _free_name(self, name: str) -> str:
        """The name an event gives its session, unless the engine has bound it to another."""
        return name if name and self._engine.find(name) in (None, self._row.id) else ""

    # Beyond the commit at hand

    def _go_on_from_base(self, seq: Seq, at: int) -> None:
        """After pruned events: the state as it was, and the rows of what is durable in it."""
        row = self._row
        self._carried.is_pruned = False
        try:
            doc = fold_at(self._engine, self._mentioned.segments, seq).fold.doc
            prune = prune_over(self._engine, row.id, seq)
        except UNREADABLE as exc:
            self._carried.damage = exc.message
            return
        before = _amounts(self._carried.doc)
        self._carried.doc = {part: doc[part] for part in PARTS if part in doc}
        keep_totals(self._batch, row, prune.body, seq, at, _difference(before, _amounts(doc)))
        view.resume(self._batch, self._engine, self._mentioned.segments, row.no, row.first, doc["view"])
        _keep_durable(self._batch, row, doc, seq, at)


def _spent(doc: dict[str, Value]) -> dict[str, Value]:
    budget = doc.get("budget")
    spent = budget.get("spent") if type(budget) is dict else None
    return spent if type(spent) is dict else {}


def _amounts(doc: dict[str, Value]) -> tuple[int, int, int]:
    spent = _spent(doc)
    return as_int(spent.get("tokens")), as_int(spent.get("usd_micros")), as_int(spent.get("duration_us"))


def _difference(before: tuple[int, int, int], after: tuple[int, int, int]) -> tuple[int, int, int]:
    return max(0, after[0] - before[0]), max(0, after[1] - before[1]), max(0, after[2] - before[2])


def _is_failure(kind: str, said: Facets) -> bool:
    """A call that is known not to have worked, as the state counts them."""
    return said.outcome in FAILURES and kind in ANSWERS and kind != "action.reconciled"


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
