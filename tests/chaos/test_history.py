"""The checker of histories finds what it is there to find: in made-up histories, and in stores with a planted fault."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.chaos.client import ChaosClient
from tests.chaos.history import Operation, Verdict, check, longest_stall
from tests.chaos.load import judge_store
from tests.engines.nats_server import NatsServer
from wakelog.engine import head_after
from wakelog.engines.nats import NatsEngine, messages
from wakelog.engines.nats.append_lanes import LanedAppend
from wakelog.model.ids import SessionId
from wakelog.model.records import Commit, Head
from wakelog.session import Session

LOG = {"s": [(2, "a"), (3, "b")]}


def append(key: str, seq: int, began: float, ended: float, client: str = "c") -> Operation:
    return Operation(client, "s", "append", began, ended, seq, key)


def head(seq: int, began: float, ended: float, client: str = "c") -> Operation:
    return Operation(client, "s", "head", began, ended, seq)


A, B = append("a", 2, 1, 2), append("b", 3, 3, 4)


def test_a_history_that_one_order_explains_is_good() -> None:
    verdict = check([A, head(2, 2.5, 2.6), B, head(3, 5, 6), head(3, 3.5, 3.9, "d"), append("c", 0, 7, 0)], LOG)
    assert verdict.faults == []
    assert (verdict.appends, verdict.unknown, verdict.heads, verdict.stale) == (2, 1, 3, 0)
    assert longest_stall([A, B], 1, 5) == 2
    assert longest_stall([A, B], 1, 9) == 5


@pytest.mark.parametrize(
    ("history", "log", "word"),
    [
        ([A, B, append("c", 4, 5, 6)], LOG, "acknowledged at 4"),
        ([A, B], {"s": [(2, "a"), (3, "b"), (4, "a")]}, "stored 2 times"),
        ([A, B], {"s": [(3, "b"), (2, "a")]}, "out of order"),
        ([A], LOG, "nobody appended b"),
        ([append("a", 2, 5, 6), append("b", 3, 1, 2)], LOG, "had been told before it began"),
        ([A, B, head(2, 5, 6)], LOG, "saw 3, and then the head 2"),
        ([A, msgspec.structs.replace(B, verb="refused", seq=0)], LOG, "told as refused"),
        ([A, B, head(3, 1.5, 1.6)], LOG, "before anybody appended it"),
    ],
)
def test_what_is_wrong_is_found(history: list[Operation], log: dict[str, list[tuple[int, str]]], word: str) -> None:
    assert any(word in fault for fault in check(history, log).faults)


def test_an_old_head_that_somebody_else_is_told_is_counted_apart() -> None:
    verdict = check([A, B, head(2, 5, 6, "d")], LOG)
    assert (verdict.faults, verdict.stale) == ([], 1)


def test_an_append_without_an_answer_counts_if_the_log_has_it() -> None:
    assert check([A, append("b", 0, 3, 0)], LOG).faults == []
    assert check([A, append("b", 0, 3, 0)], {"s": [(2, "a")]}).faults == []


class PlantedClient(ChaosClient):
    """A client of the chaos runs, in this process, on a store with a fault."""

    def __init__(self, server: NatsServer, folder: Path) -> None:
        self.url = f"{server.url}&namespace={folder.name}"
        self.notes: list[Any] = []
        super().__init__(self.url, "c", str(folder / "c.ndjson"), 1)

    def note(self, record: object) -> None:
        self.notes.append(record)

    def work(self) -> Verdict:
        """Some appends, each followed by a question for the head."""
        session = self._patiently(lambda: self.store.session("s"))
        for number in range(6):
            self._append(session, f"k{number}")
            self._head(session)
        return judge_store(self.url, [o for o in self.notes if isinstance(o, Operation)])


@pytest.fixture
def client(nats: NatsServer, tmp_path: Path) -> Iterator[PlantedClient]:
    client = PlantedClient(nats, tmp_path)
    yield client
    client.store.close()


def test_a_store_without_a_fault_is_good(client: PlantedClient) -> None:
    verdict = client.work()
    assert (verdict.faults, verdict.appends, verdict.heads, verdict.stale) == ([], 6, 6, 0)


def test_an_acknowledged_append_that_was_not_stored_is_found(
    client: PlantedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = NatsEngine.submit

    def forget(engine: NatsEngine, *commits: Commit) -> LanedAppend:
        if [c.commit_id for c in commits] != ["k5"]:
            return submit(engine, *commits)
        pending = LanedAppend(commits)
        pending.give(head_after(commits[0], engine.head(commits[0].session)))
        return pending

    monkeypatch.setattr(NatsEngine, "submit", forget)
    assert any("k5 was acknowledged at 7, and is at None" in fault for fault in client.work().faults)


def test_an_append_that_was_stored_twice_is_found(client: PlantedClient, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Session.append

    def again(session: Session[Any], *events: Any, commit_id: str = "", **more: Any) -> Any:
        head = append(session, *events, commit_id=commit_id, **more)
        return append(session, *events, **more) if commit_id == "k3" else head

    monkeypatch.setattr(Session, "append", again)
    assert any("k3 is stored 2 times" in fault for fault in client.work().faults)


def test_an_old_head_is_found(client: PlantedClient, monkeypatch: pytest.MonkeyPatch) -> None:
    head, told = NatsEngine.head, list[Head]()

    def old(engine: NatsEngine, session: SessionId) -> Head:
        told.append(head(engine, session))
        return told[2] if len(told) == 5 else told[-1]

    monkeypatch.setattr(NatsEngine, "head", old)
    assert any("and then the head" in fault for fault in client.work().faults)


def test_an_event_that_was_altered_is_found(client: PlantedClient, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = messages.to_stored

    def alter(commit: Commit, *args: Any, **more: Any) -> Any:
        records = [msgspec.structs.replace(r, body=r.body.replace(b'"k3"', b'"k9"')) for r in commit.records]
        return plain(msgspec.structs.replace(commit, records=tuple(records)), *args, **more)

    monkeypatch.setattr(messages, "to_stored", alter)
    assert any("does not verify" in fault for fault in client.work().faults)


def test_an_effect_that_was_done_twice_is_found(client: PlantedClient) -> None:
    client.work()
    [fault] = judge_store(
        client.url, [o for o in client.notes if isinstance(o, Operation)], ["a/1", "a/2", "a/1"]
    ).faults
    assert fault == "a/1 was done 2 times"
