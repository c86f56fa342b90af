"""Webhooks with a real receiver: signed, in order, again after a failure, at least once."""

import json
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook as Verifier

import wakelog
from tests.receiver import Got, Reaction, Receiver, receiving
from wakelog import events as ev
from wakelog.errors import NotFoundError
from wakelog.model.ids import SessionId
from wakelog.session import Session
from wakelog.store import Store
from wakelog.webhooks import sender as sending
from wakelog.webhooks.hooks_file import Webhook
from wakelog.webhooks.positions import Positions
from wakelog.webhooks.sender import WebhookSender
from wakelog.webhooks.signature import make_secret

WORDS = "the quick zebra"


class Clock:
    now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A store, a secret, and senders that share one clock."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.clock, self.secret = folder, Clock(), make_secret()
        monkeypatch.setenv("HOOK_SECRET", self.secret)
        self.store: Store = wakelog.open(folder / "store")
        self.positions = Positions(folder / "positions.db")

    def sender(self, url: str, **how: Any) -> WebhookSender:
        return WebhookSender(self.store, self.hook(url, **how), self.positions, clock=self.clock)

    def hook(self, url: str, **how: Any) -> Webhook:
        return Webhook(how.pop("name", "ops"), f"{url}/in?token=hunter2", "env:HOOK_SECRET", **how)

    def again(self) -> None:
        """As if the process had been killed: what was in memory is gone."""
        self.positions.close()
        self.positions = Positions(self.folder / "positions.db")

    def told(self, receiver: Receiver) -> list[tuple[str, int]]:
        verifier = Verifier(self.secret)
        out = []
        for got in receiver.got:
            # The reference library; it takes a time within five minutes of now, which this clock is not.
            assert got.headers["webhook-signature"] == verifier.sign(
                got.headers["webhook-id"], _moment(got), got.body.decode()
            )
            body = json.loads(got.body)
            out.append((body["type"], body["data"]["event"]))
        return out


def _moment(got: Got) -> Any:
    import datetime

    return datetime.datetime.fromtimestamp(int(got.headers["webhook-timestamp"]), datetime.UTC)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    bench = Bench(tmp_path, monkeypatch)
    yield bench
    bench.positions.close()
    bench.store.close()


def eventful(session: Session[Any]) -> None:
    session.append(ev.TurnStarted(input=WORDS))
    session.append(ev.ActionRequested(action="a", tool="send", approval=True, input=WORDS))
    session.append(ev.ActionDenied(action="a", by="ada"))
    session.append(ev.FlagRaised(flag="loop", rule="loop", message=WORDS, severity="alarm"))
    session.append(ev.FlagRaised(flag="small", message=WORDS, severity="info"))
    session.append(ev.BudgetReached(limit="tokens"))
    session.append(ev.TurnEnded(outcome="failed", error=ev.Failure("lamp-gone", WORDS)))
    session.append(ev.TurnStarted(input="again"), ev.TurnEnded())


def test_everything_that_matters_is_told_signed_and_in_order(bench: Bench) -> None:
    with receiving() as receiver:
        sender = bench.sender(receiver.url)
        eventful(bench.store.session("s"))
        sender.step()
    assert [type for type, _ in bench.told(receiver)] == [
        "approval.requested",
        "action.denied",
        "flag.raised",
        "budget.reached",
        "turn.failed",
    ]
    seqs = [seq for _, seq in bench.told(receiver)]
    assert seqs == sorted(seqs)
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 5
    assert WORDS not in str(receiver.got), "content is off"
    denied = json.loads(receiver.got[1].body)["data"]
    assert (denied["tool"], denied["by"], denied["selector"]) == ("send", "ada", f"s@e{denied['event']}")
    assert (sender.waiting, bench.positions.status("ops").sent) == (0, 5)


def test_a_hook_hears_what_it_asks_for(bench: Bench) -> None:
    with receiving() as receiver:
        flags = bench.sender(receiver.url, on=("flag",), severity="info", content=True)
        eventful(bench.store.session("s"))
        flags.step()
    assert [json.loads(got.body)["data"]["message"] for got in receiver.got] == [WORDS, WORDS]


def test_a_new_hook_is_told_of_what_comes_and_not_of_what_was(bench: Bench) -> None:
    old = bench.store.session("old")
    eventful(old)
    with receiving() as receiver:
        sender = bench.sender(receiver.url)
        sender.step()
        assert receiver.got == []
        old.append(ev.BudgetReached(limit="money"))
        fork = old.fork(name="fork")
        fork.append(ev.BudgetReached(limit="duration"))
        sender.step()
    assert [type for type, _ in bench.told(receiver)] == ["budget.reached", "budget.reached"]
    assert {json.loads(got.body)["data"]["name"] for got in receiver.got} == {"old", "fork"}


def test_a_receiver_that_is_away_gets_everything_later_in_order(bench: Bench) -> None:
    with receiving() as receiver:
        url = receiver.url
    sender = bench.sender(url)
    eventful(bench.store.session("s"))
    sender.step()
    assert "gave no answer" in bench.positions.status("ops").problem
    assert "hunter2" not in bench.positions.status("ops").problem
    port = int(url.rpartition(":")[2])
    with receiving(port=port) as receiver:
        sender.step()
        assert receiver.got == [], "it waits before it tries again"
        bench.clock.now += 1
        sender.step()
    assert len(bench.told(receiver)) == 5
    assert bench.positions.status("ops").failing_since == 0


def test_the_wait_doubles_up_to_an_hour(bench: Bench) -> None:
    with receiving(lambda _: Reaction(503)) as receiver:
        sender = bench.sender(receiver.url)
        bench.store.session("s").append(ev.BudgetReached(limit="tokens"))
        waits: list[int] = []
        for _ in range(14):
            sender.step()
            before = bench.clock.now
            while len(receiver.got) == len(waits) + 1:
                bench.clock.now += 1
                sender.step()
            waits.append(int(bench.clock.now - before))
    assert waits[:6] == [1, 2, 4, 8, 16, 32]
    assert max(waits) == 3600
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1, "the same message each time"


def test_a_message_that_is_refused_holds_up_its_session_alone(bench: Bench) -> None:
    def answer(got: Got) -> Reaction:
        return Reaction(422 if b'"name":"bad"' in got.body else 204)

    with receiving(answer) as receiver:
        sender = bench.sender(receiver.url, on=("budget",))
        for name in ("bad", "good"):
            bench.store.session(name).append(ev.BudgetReached(limit="tokens"), ev.BudgetReached(limit="money"))
        sender.step()
        names = [json.loads(got.body)["data"]["name"] for got in receiver.got]
        assert sorted(names) == ["bad", "good", "good"]
        assert sender.waiting == 1
        receiver.answer = lambda _: Reaction()
        bench.clock.now += 1
        sender.step()
    assert [json.loads(g.body)["data"]["limit"] for g in receiver.got if b'"bad"' in g.body] == [
        "tokens",
        "tokens",
        "money",
    ]


def test_a_message_that_is_never_taken_is_skipped_by_a_person_and_the_next_one_is_sent(bench: Bench) -> None:
    def answer(got: Got) -> Reaction:
        return Reaction(422 if b'"tokens"' in got.body else 204)

    with receiving(answer) as receiver:
        sender = bench.sender(receiver.url, on=("budget",))
        session = bench.store.session("bad")
        session.append(ev.BudgetReached(limit="tokens"), ev.BudgetReached(limit="money"))
        sender.step()
        (refused,) = bench.positions.refused("ops")
        assert (refused.session, refused.event, refused.type) == (session.id, 2, "budget.reached")
        assert "422" in refused.problem
        assert "hunter2" not in refused.problem
        bench.clock.now += 1
        sender.step()
        assert bench.positions.refused("ops")[0].since == refused.since, "the first time counts"
        for wrong in (("ops", SessionId("s_other")), ("other", session.id)):
            with pytest.raises(NotFoundError) as told:
                bench.positions.skip(*wrong, at=7)
            assert told.value.kind == "nothing-refused"
        beside = Positions(bench.folder / "positions.db", writes=False)  # as another process, while this one sends
        assert beside.skip("ops", session.id, at=7).event == 2
        beside.close()
        bench.clock.now += 10
        sender.step()
        assert sender.waiting == 0
        session.append(ev.BudgetReached(limit="time"))
        sender.step()
    limits = [json.loads(got.body)["data"]["limit"] for got in receiver.got]
    assert limits == ["tokens", "tokens", "money", "time"]
    assert [(each.event, each.since) for each in bench.positions.skipped("ops")] == [(2, 7)]
    assert bench.positions.refused("ops") == ()
    assert bench.positions.status("ops").problem == ""


def test_a_receiver_that_is_gone_is_left_alone(bench: Bench) -> None:
    with receiving(lambda _: Reaction(410)) as receiver:
        sender = bench.sender(receiver.url)
        eventful(bench.store.session("s"))
        sender.step()
        bench.clock.now += 9999
        sender.step()
    assert (len(receiver.got), sender.is_gone) == (1, True)


def test_a_redirect_is_no_answer(bench: Bench) -> None:
    with receiving() as other, receiving(lambda _: Reaction(302, {"Location": other.url})) as receiver:
        sender = bench.sender(receiver.url)
        bench.store.session("s").append(ev.BudgetReached(limit="tokens"))
        sender.step()
        assert other.got == []
    assert "answered 302" in bench.positions.status("ops").problem


def test_a_receiver_that_is_too_slow_is_asked_again_with_the_same_id(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "TIMEOUT_S", 0.2)
    released = threading.Event()

    def slow(_: Got) -> Reaction:
        released.wait(60)
        return Reaction()

    with receiving(slow) as receiver:
        sender = bench.sender(receiver.url)
        bench.store.session("s").append(ev.BudgetReached(limit="tokens"))
        sender.step()
        assert "gave no answer" in bench.positions.status("ops").problem
        released.set()
        receiver.wait_for(1)
        bench.clock.now += 1
        sender.step()
        first, second = receiver.wait_for(2)
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


def test_the_next_process_goes_on_where_one_was(bench: Bench) -> None:
    with receiving() as receiver:
        sender = bench.sender(receiver.url)
        session = bench.store.session("s")
        eventful(session)
        sender.step()
        session.append(ev.BudgetReached(limit="money"))
        bench.again()
        bench.sender(receiver.url).step()
    assert [type for type, _ in bench.told(receiver)][5:] == ["budget.reached"]


RUNS = """
import sys, wakelog
from wakelog.cli.app import run
raise SystemExit(run(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_sender_that_is_killed_again_and_again_leaves_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOOK_SECRET", make_secret())
    store_url, count = str(tmp_path / "store"), 40
    with wakelog.open(store_url) as store, receiving() as receiver:
        sessions = [store.session(f"s{n}") for n in range(4)]
        command = [sys.executable, "-c", RUNS, "webhooks"]
        end = ["--store", store_url]
        subprocess.run([*command, "add", "ops", receiver.url, "--secret", "env:HOOK_SECRET", *end], check=True)
        subprocess.run([*command, "run", "--once", *end], check=True)
        for number in range(count):
            for session in sessions:
                session.append(ev.FlagRaised(flag=f"f{number}"))
        for goal in (20, 50, 90):
            with subprocess.Popen([*command, "run", *end], stdout=subprocess.DEVNULL) as process:
                receiver.wait_for(goal)
                process.send_signal(signal.SIGKILL)
        with subprocess.Popen([*command, "run", *end], stdout=subprocess.DEVNULL) as process:
            with receiver.changed:
                assert receiver.changed.wait_for(
                    lambda: len({g.headers["webhook-id"] for g in receiver.got}) == 4 * count, 120
                )
            process.kill()
    seen: dict[str, list[int]] = defaultdict(list)
    for got in receiver.got:
        data = json.loads(got.body)["data"]
        number = int(data["flag"][1:])
        if number not in seen[data["name"]]:
            seen[data["name"]].append(number)
    assert dict(seen) == {f"s{n}": list(range(count)) for n in range(4)}, "first times are in order, none is missing"
    assert len(receiver.got) <= 4 * count + 3 * 4, "twice only around a kill"
