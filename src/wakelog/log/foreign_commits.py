"""Accepts commits that were sealed elsewhere, as a server does for its clients.

There is one rule: a commit is accepted if sealing its events here, on the state they follow, with the same times and
salts, gives the same bytes. So everything that a local append refuses is refused here too: an illegal event, a delta
that is not the event's, a summary that does not match, a payload without a reference, a wrong hash. Only the deltas of
rewinds and adoptions are compared by the state they lead to, because their operations have no fixed order.

A sealed commit cannot be redacted, because its hash covers every byte. One with a secret that this redactor knows is
refused, and its writer has to redact first. Snapshots are made here.

The check depends only on the state at the commit's position, and the engine stores a commit at no other position. So no
lock is held until the answer comes. A commit whose position is taken goes to the engine unchecked: it is a repetition
or a conflict, and is never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

import msgspec

from wakelog.codec.chain import SALT_SIZE
from wakelog.codec.records import decode_delta, decode_event, decode_header
from wakelog.engine import Engine, Pending, head_or_none, judge
from wakelog.errors import CorruptLogError, InvalidInputError, NotAllowedError, NotFoundError, WakelogError
from wakelog.log.admission import OWN_KINDS, Redact, default_redact
from wakelog.log.adoption import plan_adoption
from wakelog.log.append import Clock, now_us
from wakelog.log.log import Log
from wakelog.log.reader import fetch, fold_at
from wakelog.log.seal import SealChoices, Sealed, SealStep, Tip, seal
from wakelog.log.verify import NONSENSE
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId, parse_session_id, root_of
from wakelog.model.names import check_length
from wakelog.model.payloads import Payload, as_ref
from wakelog.model.records import Commit, EventDraft, ForkPoint, Head
from wakelog.model.values import Value
from wakelog.state.fold import Fold
from wakelog.state.patch import copy

AHEAD_MAX_US = 300 * 1_000_000
"""How far a writer's clock may be ahead. Times never go back within a session, so a time far ahead would stay."""

_REFUSED = frozenset(OWN_KINDS) - {"session.forked", "history.rewound", "history.adopted", "payload.redacted"}
"""Kinds that the log writes itself and that do not come as appends (foreign_removals.py)."""
_UNORDERED = frozenset({"history.rewound", "history.adopted"})

Fetch = Callable[[Seq, bytes], bytes]


class Unsealed(msgspec.Struct, frozen=True):
    """The parts of a commit that are needed to seal it again."""

    steps: tuple[SealStep, ...]
    given: SealChoices

    @property
    def adopted(self) -> ev.HistoryAdopted | None:
        events = (step.draft.event for step in self.steps)
        return next((event for event in events if isinstance(event, ev.HistoryAdopted)), None)


class Landing:
    """The pending result of a queued commit."""

    __slots__ = ("_log", "_sealed")

    def __init__(self, log: Log, sealed: Sealed) -> None:
        self._log, self._sealed = log, sealed

    def result(self) -> Head:
        return self._log.land(self._sealed)


class CommitChecker:
    """Checks and stores commits that others sealed, for one engine."""

    def __init__(
        self,
        engine: Engine,
        open_log: Callable[[SessionId], Log],
        *,
        known_log: Callable[[SessionId], Log | None] = lambda session: None,
        redact: Redact | None = default_redact,
        clock: Clock = now_us,
    ) -> None:
        """`open_log` gives the log of an existing session; one object a session, so that their tips are shared.
        `known_log` gives it if it is at hand, without looking whether it was deleted meanwhile."""
        self.engine = engine
        self._open_log = open_log
        self._known_log = known_log
        self._redact = redact
        self._clock = clock

    def submit(self, *commits: Commit) -> Pending:
        """Checks commits and queues them, all or nothing."""
        if not commits:
            raise InvalidInputError("nothing was submitted", kind="empty-append")
        return self._one(commits[0]) if len(commits) == 1 else self.engine.submit(*self.check_all(commits))

    def _one(self, commit: Commit) -> Pending:
        # Usually the log is open and the commit follows its tip: then nothing has to be read. The engine refuses it if
        # the session was deleted or has moved meanwhile.
        log = self._known_log(commit.session)
        if log is None:
            head = head_or_none(self.engine, commit.session)
            if head is None:
                return self.engine.submit(self._checked(commit, self._first_tip(commit, {}), self._nothing))
            if head.status == "deleted" or head.seq >= commit.first:
                return self.engine.submit(commit)
            log = self._open_log(commit.session)
        try:
            unsealed = self.unseal(commit, partial(fetch, self.engine, log.segments))
        except NotFoundError:
            # Its writer mentions content that has gone since it looked. Where the erasure or prune moved the head, that
            # is the answer: the writer reads on, and stores the content again.
            if (head := head_or_none(self.engine, commit.session)) is not None and head.seq >= commit.first:
                return self.engine.submit(commit)
            raise
        sealed = log.launch(commit, lambda tip: self.reseal(tip, commit, unsealed, log.state))
        return Landing(log, sealed) if sealed is not None else self._out_of_place(commit)

    def _out_of_place(self, commit: Commit) -> Pending:
        """A commit that does not follow the head. If its place is taken the engine knows the answer; else it is ahead,
        and must not reach the engine, where the head might just come to fit."""
        head = head_or_none(self.engine, commit.session)
        if head is None or (head.seq < commit.first and head.status != "deleted"):
            judge(commit, head, None)
            return self._one(commit)  # the head has just come to fit
        return self.engine.submit(commit)

    def check_all(self, commits: Sequence[Commit], allowed: frozenset[str] = frozenset()) -> list[Commit]:
        """Commits that belong together, each checked on the one before it."""
        tips: dict[SessionId, Tip] = {}
        brought: dict[bytes, bytes] = {}
        out: list[Commit] = []
        for commit in commits:
            tip = tips.get(commit.session) or self.tip_for(commit, tips)
            if tip is None:
                out.append(commit)  # its place is taken
                continue
            if (tip.seq + 1, tip.hash) != (commit.first, commit.prev):
                if not tip.seq:
                    refuse(commit, "it begins a session, and nothing comes before that")
                judge(commit, self._head_at(commit, tip), None)
            out.append(self._checked(commit, tip, partial(self._find, commit, brought), allowed))
            brought.update(commit.payloads)
            tips[commit.session] = tip
        return out

    def tip_for(self, commit: Commit, tips: dict[SessionId, Tip]) -> Tip | None:
        """The state that a commit follows; None when its position is taken."""
        head = head_or_none(self.engine, commit.session)
        if head is None:
            return self._first_tip(commit, tips)
        if head.seq >= commit.first or head.status == "deleted":
            return None
        judge(commit, head, None)
        log = self._open_log(commit.session)
        return Tip(fold_at(self.engine, log.segments, head.seq).fold, head.seq, head.hash, head.at)

    def _first_tip(self, commit: Commit, tips: dict[SessionId, Tip]) -> Tip:
        """The start of a new session: empty, or the fork point of its parent."""
        judge(commit, None, None)
        parse_session_id(commit.session)
        if commit.fork is None:
            if "." in commit.session:
                refuse(commit, "its id is a fork's, and it is none")
            return Tip(Fold())
        return self._fork_tip(commit, commit.fork, tips)

    def _fork_tip(self, commit: Commit, fork: ForkPoint, tips: dict[SessionId, Tip]) -> Tip:
        if root_of(commit.session) != root_of(fork.parent) or "." not in commit.session:
            refuse(commit, "its id does not belong to the tree it forks from")
        parent = tips.get(fork.parent)
        if parent is not None and (parent.seq, parent.hash) == (fork.at, fork.hash):
            return Tip(Fold(copy(parent.fold.doc)), parent.seq, parent.hash, parent.at)
        log = self._open_log(fork.parent)
        entry = log.entry(fork.at)
        if entry.hash != fork.hash:
            refuse(commit, f"event {fork.at} of {fork.parent} has another hash")
        return Tip(fold_at(self.engine, log.segments, fork.at).fold, fork.at, entry.hash, entry.header.at)

    def _checked(self, commit: Commit, tip: Tip, find: Fetch, allowed: frozenset[str] = frozenset()) -> Commit:
        """The commit as sealed here; moves the tip."""

        def state(at: Seq) -> dict[str, Value]:
            return self._open_log(commit.session).state(at)

        return self.reseal(tip, commit, self.unseal(commit, find, allowed), state).commit

    # Taking apart

    def unseal(self, commit: Commit, find: Fetch, allowed: frozenset[str] = frozenset()) -> Unsealed:
        """The events of a commit as they were before they were sealed, payloads in place, looked through for
        secrets."""
        check_length(commit.commit_id, "a commit id")
        if commit.at > self._clock() + AHEAD_MAX_US:
            raise InvalidInputError(
                f"the commit for event {commit.first} of {commit.session} is dated more than"
                f" {AHEAD_MAX_US // 60_000_000} minutes ahead",
                kind="clock-ahead",
                hint="set the clock of the machine that writes",
            )
        try:
            return self._unseal(commit, find, allowed)
        except CorruptLogError as exc:
            refuse(commit, exc.message, exc)
        except WakelogError:
            raise
        except NONSENSE as exc:
            refuse(commit, repr(exc), exc)

    def _unseal(self, commit: Commit, find: Fetch, allowed: frozenset[str]) -> Unsealed:
        own, mentioned = dict(commit.payloads), dict[bytes, Seq]()
        steps: list[SealStep] = []
        for record in commit.records:
            if len(record.salt) != SALT_SIZE or not record.body:
                refuse(commit, "a body or its salt is missing; history that was erased or pruned comes as a bundle")
            header = decode_header(record.header)
            if header.kind in _REFUSED - allowed:
                raise NotAllowedError(
                    f"{header.kind} cannot be appended", kind="own-kind", hint=OWN_KINDS.get(header.kind, "")
                )
            event = decode_event(header.kind, record.body)
            if type(event) is ev.Foreign and header.kind in ev.KINDS:
                refuse(commit, f"the body of its {header.kind} does not fit the kind")
            event = _with_payloads(event, own, mentioned, find)
            self._refuse_secrets(commit, event)
            delta = decode_delta(record.body) if header.kind in _UNORDERED else None
            draft = EventDraft(event, header.actor, header.cause, header.derived_from, header.source, header.trust)
            steps.append(SealStep(draft, delta=delta))
        return Unsealed(tuple(steps), SealChoices(b"".join(r.salt for r in commit.records), mentioned))

    def _refuse_secrets(self, commit: Commit, event: ev.Event) -> None:
        found = self._redact(event)[1] if self._redact is not None else ()
        if found:
            raise NotAllowedError(
                f"the commit for event {commit.first} of {commit.session} holds a secret ({', '.join(found)})",
                kind="secret-found",
                hint="open the store with redaction on, so that secrets are taken out before they are sent",
            )

    # Sealing again

    def reseal(self, tip: Tip, commit: Commit, unsealed: Unsealed, state: Callable[[Seq], dict[str, Value]]) -> Sealed:
        """Seals the commit here and moves the tip. InvalidInputError when the bytes differ from those given."""
        steps = [_with_past(commit, step, state) for step in unsealed.steps]
        if unsealed.adopted is not None:
            steps = self._adopting(commit, unsealed, unsealed.adopted)
        try:
            sealed = seal(
                tip,
                commit.session,
                steps,
                now=commit.at,
                commit_id=commit.commit_id if commit.fingerprint else "",
                guard=commit.guard,
                fork=commit.fork,
                force_snapshot=commit.snapshot is not None,
                given=unsealed.given,
            )
        except WakelogError:
            raise
        except NONSENSE as exc:
            refuse(commit, repr(exc), exc)
        try:
            _compare(sealed.commit, commit)
            if commit.fork is not None:
                _check_fork(commit, commit.fork, unsealed.steps[0].draft.event, tip)
        except BaseException:
            sealed.undo()
            raise
        return sealed

    def _adopting(self, commit: Commit, unsealed: Unsealed, adopted: ev.HistoryAdopted) -> list[SealStep]:
        """Plans an adoption again: the copies must be what the fork holds."""
        log, fork = self._open_log(commit.session), self._open_log(SessionId(adopted.session))
        plan = plan_adoption(log, fork, adopted.at, why=adopted.why, force=True)
        if plan.head + 1 != commit.first:
            judge(commit, log.head(), None)
        if len(plan.steps) != len(unsealed.steps):
            refuse(commit, f"{fork.id} holds {len(plan.steps)} events to adopt")
        both = zip(plan.steps, unsealed.steps, strict=True)
        return [msgspec.structs.replace(planned, delta=step.delta) for planned, step in both]

    # Where payloads come from

    def _find(self, commit: Commit, brought: dict[bytes, bytes], seq: Seq, digest: bytes) -> bytes:
        if digest in brought:
            return brought[digest]
        return fetch(self.engine, self._open_log(commit.session).segments, seq, digest)

    @staticmethod
    def _nothing(seq: Seq, digest: bytes) -> bytes:
        raise NotFoundError(f"a new session has no earlier event {seq}", kind="payload-gone")

    @staticmethod
    def _head_at(commit: Commit, tip: Tip) -> Head:
        return Head(
            commit.session, tip.seq, tip.hash, tip.at, tip.fold.doc["lease"]["epoch"], tip.fold.doc["status"], 0, ""
        )


def refuse(commit: Commit, why: str, cause: BaseException | None = None) -> NoReturn:
    raise InvalidInputError(
        f"the commit for event {commit.first} of {commit.session} is not as this store would seal it: {why}",
        kind="bad-commit",
        hint="use the same version of wakelog on both sides, or append events and let the server seal them",
    ) from cause


def _with_payloads(event: ev.Event, own: dict[bytes, bytes], mentioned: dict[bytes, Seq], find: Fetch) -> ev.Event:
    """The event with payloads instead of references; notes which of them are stored elsewhere."""
    changes: dict[str, Value] = {}
    for name in event.payload_fields:
        ref = as_ref(getattr(event, name))
        if ref is None:
            continue
        digest = bytes.fromhex(ref.hash)
        if ref.at:
            mentioned[digest] = ref.at
        # One that is not there makes a mention of other content, and so other bytes.
        content = find(ref.at, digest) if ref.at else own.get(digest, b"")
        changes[name] = Payload(content, ref.media)
    if type(event) is ev.CheckpointNamed:
        changes["state_hash"] = ""  # sealing says it
    return msgspec.structs.replace(event, **changes) if changes else event


def _with_past(commit: Commit, step: SealStep, state: Callable[[Seq], dict[str, Value]]) -> SealStep:
    """A rewind, with how to read the state it goes back to."""
    event = step.draft.event
    if not isinstance(event, ev.HistoryRewound):
        return step

    def then() -> dict[str, Value]:
        past = state(event.to)
        if event.under != past["view"]["rewound"]:
            refuse(commit, f"event {event.to} is not under the rewind it names")
        return past

    return msgspec.structs.replace(step, then=then)


def _compare(mine: Commit, commit: Commit) -> None:
    """Every field but the snapshot, which is ours."""
    for field in Commit.__struct_fields__:
        if field != "snapshot" and getattr(mine, field) != getattr(commit, field):
            refuse(commit, f"its {field} differs")


def _check_fork(commit: Commit, fork: ForkPoint, event: ev.Event, tip: Tip) -> None:
    if not isinstance(event, ev.SessionForked) or (event.parent, event.at, event.hash) != (
        fork.parent,
        fork.at,
        fork.hash.hex(),
    ):
        refuse(commit, "its first event does not name the place it forks from")
    if tip.fold.doc["pending_actions"]:
        refuse(commit, "calls that were open at the fork point are not abandoned")
