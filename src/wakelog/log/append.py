"""Appending on the pending tip.

Under the log's lock, commits are sealed on the *pending* tip: the head plus the commits in flight. So several threads
can share one sync, and every event is still checked against the state it will meet. If the engine answers that another
process came first, the commits in flight are undone, the missed events are folded in, and the commit is sealed again.
Events that are no longer legal then raise.

An interrupt can arrive at any point. It can leave the tip ahead of what was submitted, half changed or half undone, or
leave a landed commit in the list of those in flight. So code that moves the tip clears `_is_whole` first and sets it
last, and an interrupted append sets `_was_interrupted`. The next user of the tip then drops it and folds the store.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from wakelog.engine import Engine, Pending, commit_id_reused, head_moved
from wakelog.errors import ConflictError, InvalidInputError, NotAllowedError, UnavailableError, WakelogError
from wakelog.log.reader import Segment, fold_at, read_entries
from wakelog.log.retry import next_try
from wakelog.log.seal import Sealed, SealStep, Tip, fingerprint_of, seal
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.names import check_length
from wakelog.model.records import Commit, EventDraft, Head

Clock = Callable[[], int]


def now_us() -> int:
    return time.time_ns() // 1000


class Appender:
    """The part of a log that appends: the session's end as this process knows it, and the commits in flight."""

    engine: Engine
    id: SessionId
    segments: list[Segment]
    clock: Clock

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._tip: Tip | None = None
        self._is_whole = True
        self._was_interrupted = False
        self._is_stale = False
        self._is_settled = False
        """Whether the calls that a fork inherited were given up (`_give_up_inherited`)."""
        self._looked_at: Seq = -1
        """The position that a caller has just read: an append that expects it does not ask the engine again."""
        self._lookers: dict[int, bool] = {}
        """Threads inside `one_look`, and whether they have asked the engine yet."""
        self._flight: list[Sealed] = []
        self._generation = 0

    def _append(
        self,
        steps: Sequence[SealStep],
        expect: Seq | None = None,
        commit_id: str = "",
        guard: int | None = None,
        *,
        is_new: bool = False,
    ) -> Head:
        """Appends at the session's end. Without `expect` it retries while other writers come first."""
        tries = 0
        try:
            if not self._is_settled and len(self.segments) > 1:
                self._give_up_inherited()
            if commit_id:
                if not is_new and (answer := self._find_repeated(steps, commit_id)) is not None:
                    return answer
                check_length(commit_id, "a commit id")
            while True:
                try:
                    return self._land(self._launch(steps, expect, commit_id, guard))
                except ConflictError as exc:
                    if expect is not None:
                        raise
                    tries = next_try(tries, exc, self.id, "to append to")
        except BaseException as exc:
            self._note_interrupt(exc)
            raise

    def _give_up_inherited(self) -> None:
        """Abandons calls that the parent left open. A fork does that when it is made, except one made without the key
        of an encrypted store (keyless_fork.py), which cannot read them: there the first append does it."""
        with self._locked():
            tip = self._pending_tip()
            is_new = tip.seq == self.segments[-1].first
            open_calls = list(tip.fold.doc["pending_actions"]) if is_new else []
        self._is_settled = True
        try:
            if open_calls:
                given_up = [ev.ActionAbandoned(action=each, inherited=True) for each in open_calls]
                self._append([SealStep(EventDraft(each, actor="user")) for each in given_up])
        except NotAllowedError:  # another writer did it
            return
        except BaseException:
            self._is_settled = False
            raise

    def _note_interrupt(self, exc: BaseException) -> None:
        """Remembers an interrupt: it may have left the tip half moved."""
        if not isinstance(exc, Exception):
            self._was_interrupted = True

    def _launch(self, steps: Sequence[SealStep], expect: Seq | None, commit_id: str, guard: int | None) -> Sealed:
        """Seals on the pending tip and submits under one lock, so that the engine gets a session's commits in order."""
        while True:
            with self._locked():
                tip = self._pending_tip(refresh=expect is not None and expect != self._looked_at)
                self._looked_at = -1
                if expect is not None and tip.seq != expect:
                    raise head_moved(self.id, tip.seq, expect)
                self._is_whole = False
                try:
                    sealed = seal(tip, self.id, steps, now=self.clock(), commit_id=commit_id, guard=guard)
                except (NotAllowedError, ConflictError, InvalidInputError):
                    self._is_whole = True
                    # Refused by what this process knows, which may be stale: read on and try again.
                    if not self._flight and not self._refresh():
                        raise
                    blocker = self._flight[-1] if self._flight else None
                else:
                    return self._submit(sealed)
            if blocker is not None:
                self._wait_for(blocker)

    def _submit(self, sealed: Sealed, submit: Callable[[Commit], Pending] | None = None) -> Sealed:
        """Hands a sealed commit to the engine. The tip is whole again once the commit is listed as in flight."""
        try:
            sealed.pending = (submit or self.engine.submit)(sealed.commit)
        except Exception:
            sealed.undo()
            self._is_whole = True
            raise
        sealed.generation = self._generation
        self._flight.append(sealed)
        self._is_whole = True
        return sealed

    def launch(self, commit: Commit, reseal: Callable[[Tip], Sealed]) -> Sealed | None:
        """Submits a commit that was sealed elsewhere, after `reseal` has checked it on the tip it follows. None when
        the session is at another position. `land` waits for the answer."""
        try:
            return self._launch_sealed(commit, reseal)
        except BaseException as exc:
            self._note_interrupt(exc)
            raise

    def _launch_sealed(self, commit: Commit, reseal: Callable[[Tip], Sealed]) -> Sealed | None:
        while True:
            with self._locked():
                tip = self._pending_tip()
                if tip.hash != commit.prev and not self._flight and self._refresh():
                    tip = self._pending_tip()
                if (tip.seq + 1, tip.hash) == (commit.first, commit.prev):
                    self._is_whole = False
                    try:
                        sealed = reseal(tip)
                    except WakelogError:
                        self._is_whole = True
                        raise
                    return self._submit(sealed)
                blocker = self._flight[-1] if self._flight else None
            if blocker is None:
                return None
            self._wait_for(blocker)

    def _wait_for(self, blocker: Sealed) -> None:
        """Waits until a commit in flight has landed or was undone. Its own thread may be waiting as well, so this one
        lands it."""
        with contextlib.suppress(WakelogError):
            self._land(blocker)
        time.sleep(0)

    def land(self, sealed: Sealed) -> Head:
        """The head that a launched commit led to; ConflictError when another writer came first."""
        try:
            return self._land(sealed)
        except BaseException as exc:
            self._note_interrupt(exc)
            raise

    def _land(self, sealed: Sealed) -> Head:
        """Waits for the engine's answer. Without an answer, or on a refusal, undoes everything in flight."""
        try:
            try:
                head = sealed.pending.result()
            except UnavailableError as exc:
                if exc.kind != "answer-unknown":
                    raise
                # Submit the same commit again to learn the outcome: it is stored at most once.
                try:
                    head = self.engine.submit(sealed.commit).result()
                except UnavailableError as again:
                    raise exc from again  # what was sent first may be stored, whatever became of this
        except BaseException:
            self._retreat(sealed)
            raise
        if head.hash != sealed.commit.hash:
            self._retreat(sealed)  # a repeated append: this is the first answer, and nothing new was stored
            return head
        with self._locked():
            self._leave_flight(sealed)
        return head

    def _leave_flight(self, sealed: Sealed) -> None:
        """Takes a landed commit out of those in flight, and with it those before it: they have landed too, even if
        their threads have not heard of it. Undoing one of them without those after it would spoil the tip."""
        if sealed.generation == self._generation and sealed in self._flight:
            del self._flight[: self._flight.index(sealed) + 1]

    def _retreat(self, sealed: Sealed) -> None:
        """Undoes everything in flight, unless another thread has done so."""
        with self._locked():
            if sealed.generation == self._generation:
                self._is_whole = False
                for each in reversed(self._flight):
                    each.undo()
                self._flight.clear()
                self._generation += 1
                self._is_stale = True
                self._is_whole = True

    def _find_repeated(self, steps: Sequence[SealStep], commit_id: str) -> Head | None:
        """The first answer to this commit id, if there was one. It holds even if the session has moved on or closed."""
        known = self.engine.known(self.id, commit_id)
        if known is None:
            return None
        if known.fingerprint != fingerprint_of([step.draft.event for step in steps], steps):
            raise commit_id_reused(self.id, commit_id)
        return known.head

    # The tip

    def _locked(self) -> threading.RLock:
        if self._pid != os.getpid():
            self._start()  # a forked child: the lock may be held, and the commits in flight are the parent's
        return self._lock

    @contextlib.contextmanager
    def one_look(self) -> Iterator[None]:
        """Inside, this thread asks the engine for the head once, however many questions it has. Later answers combine
        that head with what this process has appended since. Use it before an append that expects the position: the
        engine refuses that append if another writer came in between."""
        thread = threading.get_ident()
        if thread in self._lookers:
            yield
            return
        self._lookers[thread] = False
        try:
            yield
        finally:
            self._lookers.pop(thread, None)

    def _must_ask(self) -> bool:
        """Whether this thread still has to ask the engine for the head."""
        thread = threading.get_ident()
        if thread not in self._lookers:
            return True
        is_first, self._lookers[thread] = not self._lookers[thread], True
        return is_first

    def _pending_tip(self, *, refresh: bool = False) -> Tip:
        if not self._is_whole or self._was_interrupted:
            # Commits in flight still land or are refused; the threads that wait for them handle that.
            self._flight.clear()
            self._generation += 1
            self._tip = None
            self._is_whole, self._was_interrupted = True, False
        if self._tip is None:
            self._must_ask()  # loading asks, so the rest of a look need not
            self._tip = self._load_tip()
        elif ((refresh and self._must_ask()) or self._is_stale) and not self._flight:
            self._refresh()
        return self._tip

    def _load_tip(self) -> Tip:
        head = self.engine.head(self.id)
        self._is_stale = False
        return self._tip_at(head.seq, head.hash, head.at)

    def _tip_at(self, seq: Seq, hash: bytes, at: int) -> Tip:
        folded = fold_at(self.engine, self.segments, seq)
        tip = Tip(folded.fold, seq, hash, at)
        tip.snapshot_size, tip.bytes_since = folded.snapshot_size, folded.bytes_since
        return tip

    def _refresh(self) -> bool:
        """Folds in what others have appended since; True when there was something. Only with nothing in flight."""
        tip = self._tip
        assert tip is not None
        before = tip.seq
        head = self.engine.head(self.id)
        if (head.seq, head.hash) == (tip.seq, tip.hash):
            self._is_stale = False
            return False  # the usual case, settled by one question
        self._is_whole = False
        for entry in read_entries(self.engine, self.segments, after=tip.seq, prev=tip.hash):
            if entry.kind in ev.REMOVAL_KINDS:
                # The removed content may be in the state held here, or among the payloads that it would refer to.
                self._tip = self._load_tip()
                self._is_whole = True
                return True
            tip.fold.apply(entry.delta)
            tip.seq, tip.hash, tip.at = entry.seq, entry.hash, entry.header.at
            tip.bytes_since += len(entry.record.header) + len(entry.record.body)
        self._is_stale = False
        self._is_whole = True
        return tip.seq > before

    def _hash_of(self, tip: Tip) -> str:
        """The tip's state hash. Asking updates the running digest, and an interrupt could leave that half done."""
        self._is_whole = False
        found = tip.fold.state_hash()
        self._is_whole = True
        return found

    def forget(self) -> None:
        """Drops the state that this process holds. It is folded again when needed."""
        with self._locked():
            self._tip = None
