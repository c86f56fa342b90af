"""The contract has teeth: engines that break one promise each, and the test that says so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from wakelog.engine import Engine, Surgery, judge
from wakelog.engines.memory import MemoryEngine
from wakelog.errors import WakelogError
from wakelog.model.records import Commit, Head
from wakelog.testing.contract import EngineContract

replace = msgspec.structs.replace


class InPieces(MemoryEngine):
    """Stores commits of one submit one by one."""

    def _store(self, commits: tuple[Commit, ...]) -> Head:
        for commit in commits:
            head = super()._store((commit,))
        return head


class Forgetful(MemoryEngine):
    """Does not know a commit that it has."""

    def _known(self, commit: Commit) -> None:
        return None


class Generous(MemoryEngine):
    """Brings payloads unasked."""

    def read(self, session: Any, **kwargs: Any) -> Iterator[Commit]:
        return super().read(session, **{**kwargs, "payloads": True})


class Late(MemoryEngine):
    """Looks for the session only once somebody reads."""

    def read(self, session: Any, **kwargs: Any) -> Iterator[Commit]:
        yield from super().read(session, **kwargs)


class Lenient(MemoryEngine):
    """Does not look at the hash a commit stands on."""

    def _store(self, commits: tuple[Commit, ...]) -> Head:
        heads = [self._sessions[c.session].head if c.session in self._sessions else None for c in commits]
        pairs = zip(commits, heads, strict=True)
        return super()._store(tuple(replace(c, prev=h.hash) if h and h.seq + 1 == c.first else c for c, h in pairs))


class Greedy(MemoryEngine):
    """Lets the last claim of a name win."""

    def claim(self, name: str, session: Any) -> Any:
        self._names[name] = session
        return session


class Undead(MemoryEngine):
    """Keeps a deleted session's content."""

    def _drop_if_unread(self, session: Any) -> None:
        pass


class Hasty(MemoryEngine):
    """Operates first and asks about conflicts later."""

    def operate(self, surgery: Surgery) -> Head:
        for new in surgery.rewritten:
            commits = self._get(new.session).commits
            commits[next(i for i, old in enumerate(commits) if old.last == new.last)] = new
        return super().operate(surgery)


class Deaf(MemoryEngine):
    """Waits for nothing."""

    def wait(self, session: Any, *, after: int, timeout_s: float) -> bool:
        return False


class OutOfOrder(MemoryEngine):
    """Asks about the head before it asks whether it knows the commit."""

    def _store(self, commits: tuple[Commit, ...]) -> Head:
        for commit in commits:
            session = self._sessions.get(commit.session)
            judge(commit, session.head if session else None, None)
        return super()._store(commits)


BROKEN = {
    InPieces: "test_when_one_of_several_commits_is_refused_none_is_stored",
    Forgetful: "test_repeating_a_commit_gives_the_same_answer_and_no_second_copy",
    Generous: "test_payloads_are_left_out_unless_asked_for",
    Late: "test_an_unknown_session_is_refused_at_the_call_and_not_later",
    Lenient: "test_an_append_on_the_right_number_but_another_hash_is_refused",
    Greedy: "test_claiming_a_taken_name_returns_its_owner",
    Undead: "test_content_waits_for_forks_of_forks_too",
    Hasty: "test_a_conflict_changes_nothing_at_all",
    Deaf: "test_what_is_already_there_needs_no_waiting",
    OutOfOrder: "test_a_group_that_was_stored_before_is_answered_as_a_whole",
}


class OnMemory(EngineContract):
    def make_engine(self, tmp_path: Path) -> Engine:
        return MemoryEngine()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.__name__)
def test_a_broken_promise_is_noticed(broken: type[MemoryEngine]) -> None:
    test = getattr(OnMemory(), BROKEN[broken])
    test(MemoryEngine())
    with pytest.raises((AssertionError, WakelogError, pytest.fail.Exception)):
        test(broken())
